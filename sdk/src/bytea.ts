// Bytes between Uint8Array and PostgreSQL's hex format for bytea.

const HEX = /^\\x(?:[0-9a-f]{2})*$/i;
const HEX_RADIX = 16;

/** Bytes as `\x` and two digits per byte. */
export function formatBytes(bytes: Uint8Array): string {
  let text = "\\x";
  for (const byte of bytes) {
    text += byte.toString(HEX_RADIX).padStart(2, "0");
  }
  return text;
}

/** Bytes of the hex format; text in another format (bytea_output = escape) comes back as it is. */
export function parseBytes(text: string): Uint8Array | string {
  if (!HEX.test(text)) {
    return text;
  }
  const bytes = new Uint8Array(text.length / 2 - 1);
  for (let index = 0; index < bytes.length; index += 1) {
    const start = 2 + 2 * index;
    bytes[index] = Number.parseInt(text.slice(start, start + 2), HEX_RADIX);
  }
  return bytes;
}
