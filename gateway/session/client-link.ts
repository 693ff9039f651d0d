// Who is at the other end of an HTTP or WebSocket link, and whether nobody on the way can read it. Proxies are believed only where the configuration says so.
import { BlockList, isIP } from "node:net";

export interface ClientLink {
  /** The client's address, or the peer's where no trusted proxy names one; empty when unknown. */
  readonly address: string;
  /** Counts as TLS: passwords and tokens may be sent over it. */
  readonly isSecure: boolean;
}

const LOOPBACK = networks(["127.0.0.0/8", "::1"]);

export class ClientLinks {
  readonly #hasTls: boolean;
  readonly #proxies: BlockList;

  /** `hasTls`: every link is our own TLS. `trustedProxies`: addresses and networks, as configured. */
  constructor(hasTls: boolean, trustedProxies: readonly string[]) {
    this.#hasTls = hasTls;
    this.#proxies = networks(trustedProxies);
  }

  of(peerAddress: string, headers: Headers): ClientLink {
    const isProxied = contains(this.#proxies, peerAddress);
    const proto = headers.get("x-forwarded-proto")?.trim().toLowerCase();
    return {
      address: (isProxied ? nearestClient(headers) : undefined) ?? peerAddress,
      isSecure: this.#hasTls || isLoopback(peerAddress) || (isProxied && proto === "https"),
    };
  }
}

/** The last entry is the one that the trusted proxy has added; those before it are the client's own claims. */
function nearestClient(headers: Headers): string | undefined {
  const last = headers.get("x-forwarded-for")?.split(",").at(-1)?.trim();
  return last !== undefined && isIP(last) !== 0 ? last : undefined;
}

/** Nobody but this machine reads what goes over such a link. */
export function isLoopback(address: string): boolean {
  return contains(LOOPBACK, address);
}

function networks(texts: readonly string[]): BlockList {
  const list = new BlockList();
  for (const text of texts) {
    const [address = "", prefix] = text.split("/");
    const family = familyOf(address);
    if (prefix === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(prefix), family);
  }
  return list;
}

/** IPv4 addresses mapped into IPv6, as a dual-stack listener shows them, count as IPv4. */
function contains(list: BlockList, address: string): boolean {
  return isIP(address) !== 0 && list.check(address, familyOf(address));
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIP(address) === 4 ? "ipv4" : "ipv6";
}
