import { describe, expect, test } from "bun:test";
import { ClientLinks } from "#gateway/session/client-link.ts";

const links = new ClientLinks(false, ["10.0.0.0/8", "192.0.2.7", "fd00::/8"]);

function link(peer: string, headers: Record<string, string> = {}) {
  return links.of(peer, new Headers(headers));
}

describe("a link", () => {
  test("is secure from a loopback peer, in whichever form it comes", () => {
    for (const peer of ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"]) {
      expect(link(peer)).toEqual({ address: peer, isSecure: true });
    }
  });

  test("is not secure from elsewhere, nor from nowhere", () => {
    for (const peer of ["198.51.100.1", "2001:db8::1", "::ffff:198.51.100.1", ""]) {
      expect(link(peer)).toEqual({ address: peer, isSecure: false });
    }
  });

  test("is secure from everywhere when it is our own TLS", () => {
    const own = new ClientLinks(true, []);

    expect(own.of("198.51.100.1", new Headers())).toEqual({
      address: "198.51.100.1",
      isSecure: true,
    });
  });

  test("is what a trusted proxy says it is", () => {
    const headers = {
      "X-Forwarded-Proto": "https",
      "X-Forwarded-For": "203.0.113.9, 203.0.113.5",
    };

    for (const peer of ["10.1.2.3", "192.0.2.7", "fd00::1", "::ffff:10.1.2.3"]) {
      expect(link(peer, headers)).toEqual({ address: "203.0.113.5", isSecure: true });
      expect(link(peer, { "X-Forwarded-Proto": "http" })).toEqual({
        address: peer,
        isSecure: false,
      });
    }
  });

  test("is not what anybody else says it is", () => {
    const headers = { "X-Forwarded-Proto": "https", "X-Forwarded-For": "127.0.0.1" };

    expect(link("11.1.2.3", headers)).toEqual({ address: "11.1.2.3", isSecure: false });
  });

  test("needs exactly https from the proxy, and an address to be believed", () => {
    const headers = { "X-Forwarded-Proto": "https, http", "X-Forwarded-For": "unknown" };

    expect(link("10.1.2.3", headers)).toEqual({ address: "10.1.2.3", isSecure: false });
  });
});
