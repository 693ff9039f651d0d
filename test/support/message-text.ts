// The texts in Query and Parse, which the pool itself reads where they lie.
import { readParse, readQuery } from "#pool/wire/frontend-messages.ts";
import { HEADER_BYTES } from "#pool/wire/message-types.ts";
import { utf8 } from "#pool/wire/text.ts";

/** Undefined: it is malformed. */
export function queryText(frame: Uint8Array): string | undefined {
  const textEnd = readQuery(frame);
  return textEnd === undefined ? undefined : utf8(frame, HEADER_BYTES, textEnd);
}

/** Undefined: it is malformed. */
export function parseText(
  frame: Uint8Array,
): { readonly name: string; readonly text: string } | undefined {
  const message = readParse(frame);
  if (message === undefined) return undefined;
  return { name: message.name, text: utf8(frame, message.tailOffset, message.textEnd) };
}
