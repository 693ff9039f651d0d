// `npm start`: builds the SDK where it is missing or old, then runs `walgate dev`.
import { buildSdkIfStale } from "./build-sdk.ts";

const { runDev } = await import("../gateway/dev.ts");

if (!(await buildSdkIfStale())) process.exit(1);
process.exit(await runDev(process.argv.slice(2)));
