// Understands the body of a request to /v1/query. Pure.
import type { StatementRequest } from "../session/query-runner.ts";
import { parameterText } from "./parameter-text.ts";
import { type BodyResult, failure, parseBody } from "./request-body.ts";

/** An unknown key is refused: a misspelt option that is ignored would change what the request means. */
const KEYS: ReadonlySet<string> = new Set(["query", "params"]);

export function readQueryRequest(text: string): BodyResult<StatementRequest> {
  return parseBody(text, (body) => {
    const { query, params = [] } = body;
    if (typeof query !== "string") return failure("08P01", '"query" is not a string');
    if (!Array.isArray(params)) return failure("08P01", '"params" is not an array');
    if (Object.keys(body).some((key) => !KEYS.has(key))) {
      return failure("08P01", 'the request body has other keys than "query" and "params"');
    }
    const format = { isArray: true, isRawText: true };
    return { ok: true, value: { text: query, params: params.map(parameterText), format } };
  });
}
