// What one frontend message asks for, worked out when it is read and kept until a server is chosen for its segment.
import type { ClientStatement } from "./client-statements.ts";
import type { BindMessage } from "../wire/frontend-messages.ts";
import type { Span } from "../wire/message-types.ts";
import type { StatementClass } from "../sql/statement-class.ts";

/** `Span` is where the message lies as the client sent it. */
export type Operation =
  | (Span & {
      readonly kind: "query";
      readonly class: StatementClass | undefined;
      /** RESET ALL occurs in it. */
      readonly resetsAll: boolean;
    })
  | (Span & {
      readonly kind: "parse";
      readonly statement: ClientStatement;
    })
  | (Span & {
      readonly kind: "bind";
      readonly message: BindMessage;
      /** Undefined: a name we don't know, sent on as it is (SQL-level PREPARE, or the server's 26000). */
      readonly statement: ClientStatement | undefined;
    })
  | (Span & {
      readonly kind: "describe_statement";
      readonly statement: ClientStatement | undefined;
    })
  | (Span & {
      readonly kind: "close_statement";
      readonly statement: ClientStatement | undefined;
      /** False: nothing of the client's has this name, so the answer is ours. */
      readonly mayExistOnServer: boolean;
    })
  | (Span & { readonly kind: "describe_portal" | "close_portal" | "execute" })
  | (Span & { readonly kind: "sync" | "flush" | "function_call" })
  | (Span & { readonly kind: "copy_data" | "copy_end" })
  /** An error of ours that the server's state must go along with: the server is made to fail here, the client reads `error`. */
  | { readonly kind: "fail"; readonly error: Uint8Array }
  /** A Query that is refused by us: no server hears of it. `answer` ends with ReadyForQuery. */
  | { readonly kind: "refused_query"; readonly answer: Uint8Array };
