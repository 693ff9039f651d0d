// Turns the text of a TOML file into plain values, or into one line that says where it is wrong.
import type { ConfigProblems } from "./config-error.ts";

/** Longest text whose faulty line is searched for: the search parses the file once per line. */
const LOCATED_LINES_MAX = 2000;

const PARSER_PREFIX = /^TOML Parse error: /;

/** What the parser quotes from the file may be a secret without quotation marks; its own punctuation may stay. */
const QUOTED_FROM_FILE = /(?: but found|:)? (?:"|'(?![=\]}]{1,2}'))[^]*$/;

function parserMessage(text: string): string | undefined {
  try {
    Bun.TOML.parse(text);
    return undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return error.message;
    // The parser is recursive.
    if (error instanceof RangeError) return "nested too deeply";
    throw error;
  }
}

/**
 * The parser gives no position. It reads from the top and stops at the first mistake, so the first
 * run of lines that fails with the same words ends with the faulty line. A cut inside a text or
 * array of several lines fails with other words.
 */
function faultyLine(text: string, message: string): number | undefined {
  const lines = text.split("\n");
  if (lines.length > LOCATED_LINES_MAX) return undefined;
  for (let count = 1; count <= lines.length; count += 1) {
    const head = lines.slice(0, count).join("\n");
    if (parserMessage(`${head}\n`) === message) return count;
  }
  return undefined;
}

/** @throws ConfigError when the text is not TOML. */
export function parseToml(text: string, problems: ConfigProblems): unknown {
  const message = parserMessage(text);
  if (message === undefined) return Bun.TOML.parse(text);
  const line = faultyLine(text, message);
  const reason = message.replace(PARSER_PREFIX, "").replace(QUOTED_FROM_FILE, "");
  throw problems.ofFile(`${line === undefined ? "" : `line ${line}: `}not TOML: ${reason}`);
}
