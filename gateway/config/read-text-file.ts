// Reads the text files that a configuration names, from disk or a pipe, up to a limit.
import { open } from "node:fs/promises";

/** Enough for 100,000 lines of userlist.txt with SCRAM verifiers of 150 characters. */
export const TEXT_FILE_BYTES_MAX = 16 * 1024 ** 2;

class FileReadError extends Error {
  override readonly name = "FileReadError";
  readonly code: "EFBIG" | "EILSEQ";

  constructor(code: "EFBIG" | "EILSEQ") {
    super(code);
    this.code = code;
  }
}

/**
 * Reads in pieces, since a pipe has no size beforehand and a device has no end.
 * Rejects with an error whose `code` is the system's, EFBIG past the limit, or EILSEQ when it is not UTF-8.
 */
export async function readTextFile(
  path: string,
  bytesMax: number = TEXT_FILE_BYTES_MAX,
): Promise<string> {
  await using file = await open(path, "r");
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of file.createReadStream({ autoClose: false })) {
    size += piece.byteLength;
    if (size > bytesMax) throw new FileReadError("EFBIG");
    pieces.push(piece);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(pieces));
  } catch {
    throw new FileReadError("EILSEQ");
  }
}
