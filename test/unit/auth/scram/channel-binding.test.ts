// Unit tests of auth/scram/channel-binding.ts. The certificates were made with openssl for these tests.
import { createHash } from "node:crypto";
import { describe, expect, test } from "bun:test";
import { tlsServerEndPoint } from "#auth/scram/channel-binding.ts";

const CERTIFICATES = {
  "ec-sha1":
    "MIIBEjCBugIUYwCOvDiAJS2ldRZxez6i95RUIxEwCQYHKoZIzj0EATAMMQowCAYDVQQDDAF0MCAXDTI2MTEzMDIzMjAwNVoYDzIxMjYxMTA2MjMyMDA1WjAMMQowCAYDVQQDDAF0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEbarc8dtM/LuAQ7ckfQh5XoPt3/dShxTvlxU3gFS1k/wtkmh0AHTPmdDFKRTiTCFF0hZpEHBr/HwMY6Ke0pxxDzAJBgcqhkjOPQQBA0gAMEUCIQCwGYNSqvP3nbats1Wrolv60FkjoURMZgiuKBd9TofnTgIgXCv99DD8bpx6dpex12dKTaUttThZ535SLx5EqwN0yWU=",
  "ec-sha256":
    "MIIBFDCBuwIUclgZ4W1Zk1/mKL09T4Tomx1mmM8wCgYIKoZIzj0EAwIwDDEKMAgGA1UEAwwBdDAgFw0yNjExMzAyMzIwMDVaGA8yMTI2MTEwNjIzMjAwNVowDDEKMAgGA1UEAwwBdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABG2q3PHbTPy7gEO3JH0IeV6D7d/3UocU75cVN4BUtZP8LZJodAB0z5nQxSkU4kwhRdIWaRBwa/x8DGOintKccQ8wCgYIKoZIzj0EAwIDSAAwRQIhAOB3dhJCkvGrx9NQKv6k5PlbGpVSl4hqfPhaJraXroyrAiBLBD3qa1YZE+MNSJyDcra2GH47LT4R2D5lvH+WHrso6g==",
  "ec-sha384":
    "MIIBFDCBuwIUOsicNc+9/2v5PETcwLHsqAUi5IgwCgYIKoZIzj0EAwMwDDEKMAgGA1UEAwwBdDAgFw0yNjExMzAyMzIwMDVaGA8yMTI2MTEwNjIzMjAwNVowDDEKMAgGA1UEAwwBdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABG2q3PHbTPy7gEO3JH0IeV6D7d/3UocU75cVN4BUtZP8LZJodAB0z5nQxSkU4kwhRdIWaRBwa/x8DGOintKccQ8wCgYIKoZIzj0EAwMDSAAwRQIgXWypXsU0a/UR6EU9Kb3YApslCWuuNIwZ0fpfE9mcT2UCIQD7CijMblHJ/QCOOYgJW/Kk3DF5RNZz5W+sQNG4uDDUZQ==",
  "ec-sha512":
    "MIIBFTCBuwIUBBPAyl8baN41PXj8e6qhnUxE5rIwCgYIKoZIzj0EAwQwDDEKMAgGA1UEAwwBdDAgFw0yNjExMzAyMzIwMDVaGA8yMTI2MTEwNjIzMjAwNVowDDEKMAgGA1UEAwwBdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABG2q3PHbTPy7gEO3JH0IeV6D7d/3UocU75cVN4BUtZP8LZJodAB0z5nQxSkU4kwhRdIWaRBwa/x8DGOintKccQ8wCgYIKoZIzj0EAwQDSQAwRgIhANxu5EBYGmU4CsOKxwjeAVc0+5LG5jOTulpwNXrTWAN3AiEAk5FSjlnOpKAgH1/3mpZ3VtQqvxspVwlQsa9fVCWw4QA=",
  "rsa-md5":
    "MIIBnDCCAQUCFHLpZj136Y69idJ4RNfUDohvRPgSMA0GCSqGSIb3DQEBBAUAMAwxCjAIBgNVBAMMAXQwIBcNMjYxMTMwMjMyMDA1WhgPMjEyNjExMDYyMzIwMDVaMAwxCjAIBgNVBAMMAXQwgZ8wDQYJKoZIhvcNAQEBBQADgY0AMIGJAoGBAKelT3tw8e2C7TD4GxSb0XDnwiAwTmUaQA+eEb5RlJD8t8YJIpwLELZUc8dnl6BDhYZOc8AEDDsTgnhTi/U9tToe0jvlPutWgQAYTnfJ74iQZs5ZvOk3rviZ1PWNa2Nd8IdCOtmtzyxIDO4x2wdCW4Wu6lNuheufZXTow5HpH9frAgMBAAEwDQYJKoZIhvcNAQEEBQADgYEAejrF8EmJfvkjYHhmzgbB+z6jCIp2TimZcFt/VMO1NbZ9lBynfG1kThBiryr3EmxNQJpOrqpLFrqTa53c20e8oaRj0HI727bUebOXJvrd6vc7OIaYfSHQpY1KNPvYa+EDqOTZ3o7JGdRtQdI/GzDvUoVGIBG2JTP0Nr+HiPA9LZE=",
  "rsa-sha512":
    "MIIBnDCCAQUCFFJ5m4kCzXe6gPEWdmOXKBbFCxXnMA0GCSqGSIb3DQEBDQUAMAwxCjAIBgNVBAMMAXQwIBcNMjYxMTMwMjMyMDA2WhgPMjEyNjExMDYyMzIwMDZaMAwxCjAIBgNVBAMMAXQwgZ8wDQYJKoZIhvcNAQEBBQADgY0AMIGJAoGBAKelT3tw8e2C7TD4GxSb0XDnwiAwTmUaQA+eEb5RlJD8t8YJIpwLELZUc8dnl6BDhYZOc8AEDDsTgnhTi/U9tToe0jvlPutWgQAYTnfJ74iQZs5ZvOk3rviZ1PWNa2Nd8IdCOtmtzyxIDO4x2wdCW4Wu6lNuheufZXTow5HpH9frAgMBAAEwDQYJKoZIhvcNAQENBQADgYEANcXaIv+Qh4LYPjJisveGZpc6qP2fOECbvAgoVnRL3WiOa1nSz5pwVZ2BKRF6y8OTNyKf+fxNgjHARo+zlg4Sb8cklb3kN9UcgoZ/FnE/0fMAqzp5bPuNdqvPi0CKLqXJG9EFvB8nm0jseDzW0nkVYMDt29iE1LARp6Sp/a/Laqg=",
  "pss-sha384":
    "MIIB+jCCATQCFEY7Q5/vMMI7EqoWU5GK7iHIRKf1MDwGCSqGSIb3DQEBCjAvoA8wDQYJYIZIAWUDBAICBQChHDAaBgkqhkiG9w0BAQgwDQYJYIZIAWUDBAICBQAwDDEKMAgGA1UEAwwBdDAgFw0yNjExMzAyMzIwMDZaGA8yMTI2MTEwNjIzMjAwNlowDDEKMAgGA1UEAwwBdDCBnzANBgkqhkiG9w0BAQEFAAOBjQAwgYkCgYEAp6VPe3Dx7YLtMPgbFJvRcOfCIDBOZRpAD54RvlGUkPy3xgkinAsQtlRzx2eXoEOFhk5zwAQMOxOCeFOL9T21Oh7SO+U+61aBABhOd8nviJBmzlm86Teu+JnU9Y1rY13wh0I62a3PLEgM7jHbB0Jbha7qU26F659ldOjDkekf1+sCAwEAATA8BgkqhkiG9w0BAQowL6APMA0GCWCGSAFlAwQCAgUAoRwwGgYJKoZIhvcNAQEIMA0GCWCGSAFlAwQCAgUAA4GBACRF//PbZolvRdIEn9+E1JC7wkvyDPryV8KAknA2SAeMd+bTVAsO91NTeNakAUT9d86WqGcpacetJQdv8rKrixAqBh9ao9RKlkrKhIqmXb080UaRH19ZFArpYb6ZU/B4lWHxsr00Y2AcU1stiACd4yNhyQ5Pixy/mlkV5fOlnyA0",
  "pss-sha1":
    "MIIBpjCCAQoCFCAAjNVtPW7pAv8dryNRDByyjSPcMBIGCSqGSIb3DQEBCjAFogMCAWowDDEKMAgGA1UEAwwBdDAgFw0yNjExMzAyMzIwMDZaGA8yMTI2MTEwNjIzMjAwNlowDDEKMAgGA1UEAwwBdDCBnzANBgkqhkiG9w0BAQEFAAOBjQAwgYkCgYEAp6VPe3Dx7YLtMPgbFJvRcOfCIDBOZRpAD54RvlGUkPy3xgkinAsQtlRzx2eXoEOFhk5zwAQMOxOCeFOL9T21Oh7SO+U+61aBABhOd8nviJBmzlm86Teu+JnU9Y1rY13wh0I62a3PLEgM7jHbB0Jbha7qU26F659ldOjDkekf1+sCAwEAATASBgkqhkiG9w0BAQowBaIDAgFqA4GBAEKN/8iHcTtNBwYNvQ99/pBa1aqqyvaPJV0Lmj1luLfXRbuivbQiOK1mKjnlP9WYnYjw/ybVAmoVGGMM1klpZ+YN6FfUxw81X7AEhuiOVdgw5vjyxGUW2WXID4VhcsszArYtdnCA17pN9xBYwDbnGVYEN4Nj2EjzBn/v9cY2UgPV",
  ed: "MIHUMIGHAhQM+PHk/HHO1CCVSkS4IQRSbuYSBDAFBgMrZXAwDDEKMAgGA1UEAwwBdDAgFw0yNjExMzAyMzIwMDZaGA8yMTI2MTEwNjIzMjAwNlowDDEKMAgGA1UEAwwBdDAqMAUGAytlcAMhAK8JQfgtrUk5IE0cxCYZ3ovhkBhdWK+mI4n1b2G9gHPzMAUGAytlcANBAHv6sMeidkpFK16DvgkuSDFKqXZLiJ3vwFhttWmISVaHeIFmqlQnjxCmGDPZ+x2yxjnmoFeVSruZ03r7Me0+tQ0=",
};

function der(name: keyof typeof CERTIFICATES): Uint8Array {
  return Uint8Array.from(Buffer.from(CERTIFICATES[name], "base64"));
}

describe("tlsServerEndPoint", () => {
  test.each([
    ["ec-sha1", "sha256"],
    ["ec-sha256", "sha256"],
    ["ec-sha384", "sha384"],
    ["ec-sha512", "sha512"],
    ["rsa-md5", "sha256"],
    ["rsa-sha512", "sha512"],
    ["pss-sha384", "sha384"],
    ["pss-sha1", "sha256"],
  ] as const)("a certificate signed with %s is hashed with %s", (name, hash) => {
    const expected = Uint8Array.from(createHash(hash).update(der(name)).digest());

    expect(tlsServerEndPoint(der(name))).toEqual(expected);
  });

  test("a certificate signed with Ed25519 has no binding data", () => {
    expect(tlsServerEndPoint(der("ed"))).toBeUndefined();
  });

  test("a certificate that is cut off or followed by more bytes has no binding data", () => {
    const whole = der("ec-sha256");

    for (let length = 0; length < whole.byteLength; length += 1) {
      expect(tlsServerEndPoint(whole.subarray(0, length))).toBeUndefined();
    }
    expect(tlsServerEndPoint(Uint8Array.from([...whole, 0]))).toBeUndefined();
  });

  test("a length field of more than three bytes is not believed", () => {
    expect(tlsServerEndPoint(new Uint8Array([0x30, 0x84, 0, 0, 0, 1, 0]))).toBeUndefined();
    expect(tlsServerEndPoint(new Uint8Array([0x30, 0x80, 0, 0]))).toBeUndefined();
  });
});
