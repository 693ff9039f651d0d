// Lowers the memory that a WebAssembly module asks for at its start; it grows when it needs more. Pure.

/** Magic and version. */
const PREAMBLE_BYTES = 8;
const MEMORY_SECTION = 5;
/** Seven bits of the value, and whether another byte follows ("LEB128"). */
const LEB_VALUE = 0x7f;
const LEB_MORE = 0x80;

/**
 * The module with its only memory beginning at `pages` of 64 KB, in a copy. Sizes and offsets stay, since the number is written with as
 * many bytes as before.
 *
 * @throws TypeError when the module defines no memory, or asks for less.
 */
export function withInitialMemory(module: Uint8Array, pages: number): Uint8Array<ArrayBuffer> {
  const patched = Uint8Array.from(module);
  let at = PREAMBLE_BYTES;
  while (at < patched.length) {
    const size = readLeb(patched, at + 1);
    if (patched[at] === MEMORY_SECTION) {
      // Number of memories, flags, then the minimum.
      const count = readLeb(patched, size.end);
      const flags = readLeb(patched, count.end);
      writeLeb(patched, flags.end, pages);
      return patched;
    }
    at = size.end + size.value;
  }
  throw new TypeError("the WebAssembly module defines no memory");
}

function readLeb(bytes: Uint8Array, at: number): { readonly value: number; readonly end: number } {
  let value = 0;
  let end = at;
  let byte: number;
  do {
    byte = bytes[end] ?? 0;
    value += (byte & LEB_VALUE) * 2 ** (7 * (end - at));
    end++;
  } while ((byte & LEB_MORE) !== 0);
  return { value, end };
}

/** In place of the number that stands there. */
function writeLeb(bytes: Uint8Array, at: number, value: number): void {
  const before = readLeb(bytes, at);
  if (before.value < value) throw new TypeError("the WebAssembly module asks for less memory");
  let rest = value;
  for (let i = at; i < before.end; i++) {
    bytes[i] = (rest & LEB_VALUE) | (i < before.end - 1 ? LEB_MORE : 0);
    rest >>>= 7;
  }
}
