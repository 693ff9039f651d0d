// How much memory a WebAssembly module begins with.
import { expect, test } from "bun:test";
import { withInitialMemory } from "#pool/sql/wasm-memory.ts";

const PREAMBLE = [0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0];
/** No types. */
const TYPES = [1, 1, 0];
/** One memory of 2,048 pages or more, at most 16,384. */
const MEMORY = [5, 7, 1, 1, 0x80, 0x10, 0x80, 0x80, 1];
/** It is exported as "m". */
const EXPORT = [7, 5, 1, 1, 0x6d, 2, 0];
const MODULE = new Uint8Array([...PREAMBLE, ...TYPES, ...MEMORY, ...EXPORT]);

function memoryOf(module: Uint8Array<ArrayBuffer>): WebAssembly.Memory {
  const { m } = new WebAssembly.Instance(new WebAssembly.Module(module)).exports;
  if (!(m instanceof WebAssembly.Memory)) throw new TypeError("no memory was exported");
  return m;
}

test.each([0, 1, 64, 127, 128, 2_048])("a module begins with %p pages and grows", (pages) => {
  const memory = memoryOf(withInitialMemory(MODULE, pages));
  const before = memory.buffer.byteLength;

  memory.grow(3_000);

  expect([before, memory.buffer.byteLength]).toEqual([pages * 65_536, (pages + 3_000) * 65_536]);
});

test("more than it asks for, or a module without memory, is refused", () => {
  expect(() => withInitialMemory(MODULE, 2_049)).toThrow("less memory");
  expect(() => withInitialMemory(new Uint8Array(PREAMBLE), 1)).toThrow("no memory");
});
