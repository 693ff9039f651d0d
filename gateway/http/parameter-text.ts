// Turns JSON values into the text form of PostgreSQL parameters. Pure.

/** Numbers are JSON.rawJSON objects with their digits as they came, or plain numbers. Recursion follows the nesting of the value. */
export function parameterText(value: unknown): string | null {
  if (value === null) return null;
  if (typeof value === "string") return value;
  return Array.isArray(value) ? arrayText(value) : JSON.stringify(value);
}

/**
 * "Array Input and Output Syntax". Strings and objects are quoted, in which only `"` and `\` are special to PostgreSQL; JSON's own
 * escapes would lose their backslashes there.
 */
function arrayText(values: readonly unknown[]): string {
  return `{${values.map(elementText).join(",")}}`;
}

function elementText(value: unknown): string {
  if (value === null) return "NULL";
  if (typeof value === "string") return quoted(value);
  if (Array.isArray(value)) return arrayText(value);
  const text = JSON.stringify(value);
  return typeof value === "object" && !JSON.isRawJSON(value) ? quoted(text) : text;
}

function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, "\\$&")}"`;
}
