// PostgreSQL's MD5 answer, for servers that still ask for it: PostgreSQL protocol, "AuthenticationMD5Password".
import { createHash } from "node:crypto";
import type { Secret } from "../secret.ts";

/**
 * The text of PasswordMessage: "md5" and md5(md5(password + user) + salt), both digests in hex.
 * `salt` is the four bytes of AuthenticationMD5Password.
 */
export function md5Response(user: string, password: Secret, salt: Uint8Array): string {
  const inner = createHash("md5").update(password.revealBytes()).update(user).digest("hex");
  return `md5${createHash("md5").update(inner).update(salt).digest("hex")}`;
}
