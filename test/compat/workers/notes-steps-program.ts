// The steps as a program: takes its input as JSON from standard input and prints the report as JSON.
import { text } from "node:stream/consumers";
import { runNotesSteps, type StepsInput } from "./notes-steps.ts";

const input = JSON.parse(await text(process.stdin)) as StepsInput;
process.stdout.write(`${JSON.stringify(await runNotesSteps(input))}\n`);
