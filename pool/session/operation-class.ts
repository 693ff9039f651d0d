// What the text behind an operation may do. Pure.
import { type StatementClass, UNKNOWN_CLASS } from "../sql/statement-class.ts";
import type { Operation } from "./operation.ts";

/** Any function may be called so, set_config() and advisory locks among them. */
const FUNCTION_CALL_CLASS: StatementClass = Object.freeze({
  ...UNKNOWN_CLASS,
  pin: "function_call",
});

/** The class that an operation's text has; undefined when it has none, or none that is known. */
export function classOf(operation: Operation): StatementClass | undefined {
  if (operation.kind === "function_call") return FUNCTION_CALL_CLASS;
  if (operation.kind === "parse") return operation.statement.class;
  if (operation.kind === "describe_statement") return operation.statement?.class;
  const running = runningClassOf(operation);
  return running === "unknown" ? undefined : running;
}

/** The class of a text that will be run by this, since a Parse or a Describe alone runs nothing; undefined when none will. */
export function runningClassOf(operation: Operation): StatementClass | "unknown" | undefined {
  if (operation.kind === "query") return operation.class ?? "unknown";
  if (operation.kind === "bind") return operation.statement?.class ?? "unknown";
  return undefined;
}

/** What a Bind may write is what its statement may; a function may do anything. */
export function mayWrite(operation: Operation): boolean {
  if (operation.kind === "function_call") return true;
  const running = runningClassOf(operation);
  return running === "unknown" || running?.mayWrite === true;
}

/** It depends on a text that is not known: a malformed Query, or a statement that the client did not make by Parse. */
export function needsUnknownText(operation: Operation): boolean {
  if (operation.kind === "describe_statement") return operation.statement === undefined;
  return runningClassOf(operation) === "unknown";
}
