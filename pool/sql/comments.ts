// Takes the comments out of a statement text.
import { TokenReader } from "./token-reader.ts";

const COMMENT_START = /--|\/\*/;
const LINE_BREAK = /[\n\r]/;

/**
 * The same tokens without comments between them. libpg_query refuses valid SQL with a comment inside
 * the pairs of words that its grammar looks ahead for: NOT and IN, WITH and ORDINALITY, NULLS and FIRST.
 * A text that ends in a broken token is returned as it is.
 */
export function withoutComments(text: string): string {
  if (!COMMENT_START.test(text)) return text;
  const tokens = new TokenReader(text);
  const parts: string[] = [];
  let end = 0;
  while (tokens.next()) {
    if (tokens.kind === "broken") return text;
    const gap = text.slice(end, tokens.start);
    // A line break between two strings makes one of them, so it must stay.
    if (gap !== "") parts.push(LINE_BREAK.test(gap) ? "\n" : " ");
    parts.push(text.slice(tokens.start, tokens.end));
    end = tokens.end;
  }
  return parts.join("");
}
