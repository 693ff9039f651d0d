// Channel binding data of type tls-server-end-point: RFC 5929, section 4. Pure: DER bytes in.
import { createHash } from "node:crypto";

interface DerElement {
  readonly tag: number;
  readonly content: Uint8Array;
  /** What follows the element. */
  readonly rest: Uint8Array;
}

const TAG_SEQUENCE = 0x30;
const TAG_OBJECT_IDENTIFIER = 0x06;
/** RSASSA-PSS-params, RFC 4055: hashAlgorithm is [0] EXPLICIT and SHA-1 when it is left out. */
const TAG_PSS_HASH = 0xa0;
/** A longer length field would describe more than 16 MB. */
const LENGTH_OF_LENGTH_MAX = 3;

// Object identifiers by the hex form of their DER content.
const RSASSA_PSS = "2a864886f70d01010a";
// RFC 5929: MD5 and SHA-1 count as SHA-256; any other algorithm gives its own hash.
const HASH_OF_SIGNATURE: ReadonlyMap<string, string> = new Map([
  ["2a864886f70d010104", "sha256"], // md5WithRSAEncryption
  ["2a864886f70d010105", "sha256"], // sha1WithRSAEncryption
  ["2a864886f70d01010b", "sha256"], // sha256WithRSAEncryption
  ["2a864886f70d01010c", "sha384"], // sha384WithRSAEncryption
  ["2a864886f70d01010d", "sha512"], // sha512WithRSAEncryption
  ["2a864886f70d01010e", "sha224"], // sha224WithRSAEncryption
  ["2a8648ce3d0401", "sha256"], // ecdsa-with-SHA1
  ["2a8648ce3d040301", "sha224"], // ecdsa-with-SHA224
  ["2a8648ce3d040302", "sha256"], // ecdsa-with-SHA256
  ["2a8648ce3d040303", "sha384"], // ecdsa-with-SHA384
  ["2a8648ce3d040304", "sha512"], // ecdsa-with-SHA512
]);
const HASH_OF_DIGEST: ReadonlyMap<string, string> = new Map([
  ["2b0e03021a", "sha256"], // id-sha1
  ["608648016503040201", "sha256"], // id-sha256
  ["608648016503040202", "sha384"], // id-sha384
  ["608648016503040203", "sha512"], // id-sha512
  ["608648016503040204", "sha224"], // id-sha224
]);

/**
 * The hash of a DER certificate that both ends of SCRAM-SHA-256-PLUS mix into their proofs.
 * Undefined if the bytes are no certificate, or its signature algorithm has no single hash
 * (Ed25519): RFC 5929 leaves that case open and libpq cannot bind to such a certificate either.
 */
export function tlsServerEndPoint(certificate: Uint8Array): Uint8Array | undefined {
  const hash = signatureHash(certificate);
  if (hash === undefined) return undefined;
  return Uint8Array.from(createHash(hash).update(certificate).digest());
}

// Certificate ::= SEQUENCE { tbsCertificate, signatureAlgorithm, signatureValue }
function signatureHash(certificate: Uint8Array): string | undefined {
  const outer = readElement(certificate, TAG_SEQUENCE);
  if (outer === undefined || outer.rest.byteLength > 0) return undefined;
  const toBeSigned = readElement(outer.content, TAG_SEQUENCE);
  const algorithm = toBeSigned && readElement(toBeSigned.rest, TAG_SEQUENCE);
  const identifier = algorithm && readElement(algorithm.content, TAG_OBJECT_IDENTIFIER);
  if (identifier === undefined) return undefined;
  const name = toHex(identifier.content);
  return name === RSASSA_PSS ? pssHash(identifier.rest) : HASH_OF_SIGNATURE.get(name);
}

function pssHash(parameters: Uint8Array): string | undefined {
  const fields = readElement(parameters, TAG_SEQUENCE);
  if (fields === undefined) return undefined;
  const hashField = readElement(fields.content, TAG_PSS_HASH);
  if (hashField === undefined) return "sha256";
  const algorithm = readElement(hashField.content, TAG_SEQUENCE);
  const identifier = algorithm && readElement(algorithm.content, TAG_OBJECT_IDENTIFIER);
  return identifier && HASH_OF_DIGEST.get(toHex(identifier.content));
}

/** Reads one element with this tag, or nothing if the tag or the length does not fit. */
function readElement(bytes: Uint8Array, tag: number): DerElement | undefined {
  const first = bytes[1];
  if (bytes[0] !== tag || first === undefined) return undefined;
  let start = 2;
  let length = first;
  if (first >= 0x80) {
    const lengthOfLength = first & 0x7f;
    if (lengthOfLength === 0 || lengthOfLength > LENGTH_OF_LENGTH_MAX) return undefined;
    length = 0;
    for (let index = 0; index < lengthOfLength; index += 1) {
      length = length * 256 + (bytes[start + index] ?? 0);
    }
    start += lengthOfLength;
  }
  const end = start + length;
  if (end > bytes.byteLength) return undefined;
  return { tag, content: bytes.subarray(start, end), rest: bytes.subarray(end) };
}

function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}
