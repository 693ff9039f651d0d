// Checks PEM texts of the configuration, so that a wrong file is found at the start and not by the first client.
import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import type { Secret } from "#auth/secret.ts";

const CERTIFICATES = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

function parseCertificate(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}

function parsePrivateKey(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined;
  }
}

/** The certificates of a PEM text in order; undefined when it has none or one that cannot be read. */
export function parseCertificates(text: string): readonly X509Certificate[] | undefined {
  const certificates: X509Certificate[] = [];
  for (const [pem] of text.matchAll(CERTIFICATES)) {
    const certificate = parseCertificate(pem);
    if (certificate === undefined) return undefined;
    certificates.push(certificate);
  }
  return certificates.length === 0 ? undefined : certificates;
}

/** What is wrong with a private key for a certificate; undefined when they fit. Says nothing of the key's text. */
export function privateKeyProblem(key: Secret, certificate: X509Certificate): string | undefined {
  const parsed = parsePrivateKey(key.reveal());
  if (parsed === undefined) return "the file has no private key in PEM without a passphrase";
  return certificate.checkPrivateKey(parsed) ? undefined : "the key is not that of the certificate";
}
