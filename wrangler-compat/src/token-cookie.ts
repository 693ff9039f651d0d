// Carries the read-after-write token of a session from one request of a visitor to the next, in a cookie.
import type { Db, Session } from "@walgate/sdk";

const NAME = "walgate-token";

/**
 * For so long after their last request, visitors are sure to see what they wrote: the gateway dates the token anew in each answer.
 * Replicas are seldom seconds behind; an older cookie would only keep going to and fro.
 */
const MAX_AGE_SECONDS = 300;

/** No gateway has signed it. Where a token does not verify, the gateway lets the primary answer. */
const UNVERIFIABLE = "unreadable-cookie";

/** A session that goes on where the visitor's last one ended. Any cookie is good enough for an answer. */
export function openSession(db: Db, cookies: string | null): Session {
  const seed = readCookie(cookies);
  try {
    return db.session(seed);
  } catch (error) {
    // The SDK takes nothing that cannot be a token. This visitor may have written, so the primary is to answer.
    if (error instanceof TypeError) return db.session(UNVERIFIABLE);
    throw error;
  }
}

/**
 * The value of a Set-Cookie header. The gateway signs its tokens, so the browser may hold them as they are; they prove nothing about
 * the visitor and open nothing.
 */
export function tokenCookie(token: string): string {
  // After queries in parallel there may be several tokens with commas between, which cookies may not hold.
  const value = token.replaceAll(",", "%2C");
  return `${NAME}=${value}; Path=/; Max-Age=${MAX_AGE_SECONDS}; HttpOnly; Secure; SameSite=Lax`;
}

function readCookie(cookies: string | null): string | null {
  const pairs = (cookies ?? "").split(";").map((pair) => pair.trim());
  const pair = pairs.find((text) => text.startsWith(`${NAME}=`));
  return pair?.slice(NAME.length + 1).replaceAll("%2C", ",") ?? null;
}
