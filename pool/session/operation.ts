// What one frontend message asks for, worked out when it is read and kept until a server is chosen for its segment.
import type { ClientStatement } from "./client-statements.ts";
import type { BindMessage } from "../wire/frontend-messages.ts";
import type { StatementClass } from "../sql/statement-class.ts";

export type Operation =
  | {
      readonly kind: "query";
      readonly bytes: Uint8Array;
      readonly class: StatementClass | undefined;
      /** RESET ALL occurs in it. */
      readonly resetsAll?: boolean;
    }
  | {
      readonly kind: "parse";
      readonly bytes: Uint8Array;
      readonly statement: ClientStatement;
    }
  | {
      readonly kind: "bind";
      readonly bytes: Uint8Array;
      readonly message: BindMessage;
      /** Undefined: a name we don't know, sent on as it is (SQL-level PREPARE, or the server's 26000). */
      readonly statement: ClientStatement | undefined;
    }
  | {
      readonly kind: "describe_statement";
      readonly bytes: Uint8Array;
      readonly statement: ClientStatement | undefined;
    }
  | {
      readonly kind: "close_statement";
      readonly bytes: Uint8Array;
      readonly statement: ClientStatement | undefined;
      /** False: nothing of the client's has this name, so the answer is ours. */
      readonly mayExistOnServer: boolean;
    }
  | { readonly kind: "describe_portal" | "close_portal" | "execute"; readonly bytes: Uint8Array }
  | { readonly kind: "sync" | "flush" | "function_call"; readonly bytes: Uint8Array }
  | { readonly kind: "copy_data" | "copy_end"; readonly bytes: Uint8Array }
  /** An error of ours that the server's state must go along with: the server is made to fail here, the client reads `error`. */
  | { readonly kind: "fail"; readonly error: Uint8Array }
  /** A Query that is refused by us: no server hears of it. `answer` ends with ReadyForQuery. */
  | { readonly kind: "refused_query"; readonly answer: Uint8Array };
