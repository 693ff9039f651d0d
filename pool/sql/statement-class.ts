// What the rest of the gateway may know about a statement text; the classifier decides.

/**
 * What a statement leaves on the server session that transaction pooling can't carry to another one.
 *
 * - `set`: SET and RESET of a session setting (SET LOCAL belongs to its transaction and is none), and
 *   functions that change the session itself, such as `setseed()`.
 * - `set_config`: `set_config()` whose third argument is not the literal `true`.
 * - `prepare`: PREPARE, EXECUTE and DEALLOCATE as SQL commands.
 * - `listen`: LISTEN and UNLISTEN (NOTIFY leaves nothing behind).
 * - `advisory_lock`: session-level advisory locks; those with `xact` in their name are none.
 * - `temp_table`: creation of a temporary relation, or any name qualified with `pg_temp`.
 * - `hold_cursor`: DECLARE ... WITH HOLD.
 * - `load`: LOAD of a shared library.
 * - `sequence_session`: `currval()` and `lastval()`.
 * - `session_authorization`: SET SESSION AUTHORIZATION and SET ROLE, and their RESET.
 * - `discard`: DISCARD of anything.
 * - `do_block`: DO, and functions that run SQL text such as `query_to_xml()`: the text is not examined.
 * - `unparsed`: the parser refuses the text, so it may do any of the above.
 * - `function_call`: the protocol's FunctionCall, which names its function by number.
 * - `too_long`: longer or more deeply nested than the parser is given, and its tokens don't prove it
 *   harmless.
 */
export type PinReason =
  | "set"
  | "set_config"
  | "prepare"
  | "listen"
  | "advisory_lock"
  | "temp_table"
  | "hold_cursor"
  | "load"
  | "sequence_session"
  | "session_authorization"
  | "discard"
  | "do_block"
  | "unparsed"
  | "too_long"
  | "function_call";

/** `other` is PREPARE TRANSACTION, COMMIT PREPARED and ROLLBACK PREPARED; `savepoint` covers RELEASE and ROLLBACK TO too. */
export type TransactionCommand =
  "begin" | "begin_read_only" | "commit" | "rollback" | "savepoint" | "other";

/** The verdict on one statement text. Frozen and shared between all callers with the same text. */
export interface StatementClass {
  /** `read`: proven read-only and free of session or server effects, so any server may run it. Everything else is `primary`. */
  readonly access: "read" | "primary";
  /** Set when running it leaves state on the server session that transaction pooling can't carry. */
  readonly pin: PinReason | undefined;
  /** BEGIN, COMMIT, ROLLBACK, SAVEPOINT, PREPARE TRANSACTION or the like occurs in the text. */
  readonly hasTransactionControl: boolean;
  /** Statements in the text; 0 = empty or comments only. */
  readonly statementCount: number;
  /** COPY FROM STDIN or COPY TO STDOUT; with several of them, the first. */
  readonly copy: "in" | "out" | undefined;
  /** COMMIT AND CHAIN or ROLLBACK AND CHAIN occurs. */
  readonly chains: boolean;
  /**
   * False when it can't have written even on the primary, so no token needs minting after it. True for
   * COMMIT, which makes the writes of its transaction visible; false for BEGIN and ROLLBACK. Functions
   * behind a view, an operator or a policy are not seen.
   */
  readonly mayWrite: boolean;
  /**
   * The transaction command when it is the only statement of the text. `begin_read_only` is READ ONLY
   * in so many words, and not SERIALIZABLE, which standbys refuse.
   */
  readonly transactionCommand: TransactionCommand | undefined;
}

/** Of what is only known to run: it may write, and says nothing of state it leaves. */
export const UNKNOWN_CLASS: StatementClass = Object.freeze({
  access: "primary",
  pin: undefined,
  hasTransactionControl: false,
  statementCount: 1,
  copy: undefined,
  chains: false,
  mayWrite: true,
  transactionCommand: undefined,
});
