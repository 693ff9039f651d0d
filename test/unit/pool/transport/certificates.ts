// Makes X.509 certificates (ECDSA P-256, RFC 5280) in the test's process, so that no tool has to be installed.
import { generateKeyPairSync, randomBytes, sign } from "node:crypto";
import type { KeyObject } from "node:crypto";
import { isIPv4 } from "node:net";

export interface Certificate {
  /** PEM. */
  readonly cert: string;
  readonly key: string;
  readonly der: Uint8Array;
  readonly name: string;
  readonly privateKey: KeyObject;
}

export interface CertificateRequest {
  readonly name: string;
  /** Host names and IPv4 addresses it is valid for. */
  readonly hosts?: readonly string[];
  /** Default: signs itself. */
  readonly issuer?: Certificate;
}

/** Valid from 2020 to 2049, the last year that UTCTime can say. */
const VALIDITY = sequence(element(0x17, "200101000000Z"), element(0x17, "491231235959Z"));
const ECDSA_WITH_SHA256 = sequence(element(0x06, Buffer.from("2a8648ce3d040302", "hex")));
const COMMON_NAME = element(0x06, Buffer.from("550403", "hex"));
const SUBJECT_ALT_NAME = element(0x06, Buffer.from("551d11", "hex"));
const BASIC_CONSTRAINTS = element(0x06, Buffer.from("551d13", "hex"));
const TRUE = element(0x01, Buffer.from([0xff]));

export function makeCertificate(request: CertificateRequest): Certificate {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  const hosts = request.hosts ?? [];
  // One with hosts is a server's; one without is an authority's.
  const extension =
    hosts.length > 0
      ? sequence(SUBJECT_ALT_NAME, element(0x04, sequence(...hosts.map(generalName))))
      : sequence(BASIC_CONSTRAINTS, TRUE, element(0x04, sequence(TRUE)));
  const toBeSigned = sequence(
    element(0xa0, element(0x02, Buffer.from([2]))),
    element(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ECDSA_WITH_SHA256,
    distinguishedName(request.issuer?.name ?? request.name),
    VALIDITY,
    distinguishedName(request.name),
    publicKey.export({ type: "spki", format: "der" }),
    element(0xa3, sequence(extension)),
  );
  const signature = sign("sha256", toBeSigned, request.issuer?.privateKey ?? privateKey);
  const der = sequence(
    toBeSigned,
    ECDSA_WITH_SHA256,
    element(0x03, Buffer.concat([Buffer.from([0]), signature])),
  );
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines(der.toString("base64"))}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: "pkcs8", format: "pem" }),
    der: Uint8Array.from(der),
    name: request.name,
    privateKey,
  };
}

function lines(base64: string): string {
  return (base64.match(/.{1,64}/g) ?? []).join("\n");
}

function generalName(host: string): Buffer {
  return isIPv4(host)
    ? element(0x87, Buffer.from(host.split(".").map(Number)))
    : element(0x82, host);
}

function distinguishedName(commonName: string): Buffer {
  return sequence(element(0x31, sequence(COMMON_NAME, element(0x0c, commonName))));
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return element(0x30, Buffer.concat(parts));
}

/** Tag, length, content (X.690). */
function element(tag: number, content: Buffer | string): Buffer {
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  const size = bytes.length;
  const length =
    size < 0x80 ? [size] : size < 0x100 ? [0x81, size] : [0x82, size >>> 8, size & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), bytes]);
}
