// The rules by kind of statement: from one statement's tree to what it does. Primary unless proven.
import type { PinReason, TransactionCommand } from "./statement-class.ts";
import { nodeOf, optionsOf, type Statement, textOf, type TreeNode, unwrap } from "./syntax-tree.ts";
import { findInTree, inspectUpdate, pinOfFindings } from "./tree-findings.ts";

export interface StatementEffect {
  readonly access: "read" | "primary";
  readonly pin: PinReason | undefined;
  readonly mayWrite: boolean;
  readonly copy: "in" | "out" | undefined;
  readonly transactionCommand: TransactionCommand | undefined;
  readonly chains: boolean;
}

/** CURSOR_OPT_HOLD of PostgreSQL's parsenodes.h. */
const CURSOR_OPTION_HOLD = 0x20;

/** They store code that runs later, so calls inside them leave nothing behind now. */
const DEFINITIONS: ReadonlySet<string> = new Set([
  "CreateFunctionStmt",
  "CreatePolicyStmt",
  "AlterPolicyStmt",
  "CreateTrigStmt",
  "RuleStmt",
  "ViewStmt",
]);

/** Kinds whose pin doesn't depend on what is in them. */
const PINNING_KINDS: ReadonlyMap<string, PinReason> = new Map<string, PinReason>([
  ["DeallocateStmt", "prepare"],
  ["DiscardStmt", "discard"],
  ["DoStmt", "do_block"],
  ["ExecuteStmt", "prepare"],
  ["ListenStmt", "listen"],
  ["LoadStmt", "load"],
  ["PrepareStmt", "prepare"],
  ["UnlistenStmt", "listen"],
]);

/** COMMIT counts as a write: it is the moment when those of its transaction become visible. */
const TRANSACTION_COMMANDS: ReadonlyMap<string, TransactionCommand> = new Map<
  string,
  TransactionCommand
>([
  ["TRANS_STMT_BEGIN", "begin"],
  ["TRANS_STMT_START", "begin"],
  ["TRANS_STMT_COMMIT", "commit"],
  ["TRANS_STMT_ROLLBACK", "rollback"],
  ["TRANS_STMT_SAVEPOINT", "savepoint"],
  ["TRANS_STMT_RELEASE", "savepoint"],
  ["TRANS_STMT_ROLLBACK_TO", "savepoint"],
]);

/** What is assumed of a statement of which nothing is known. */
const PRIMARY: StatementEffect = Object.freeze({
  access: "primary",
  pin: undefined,
  mayWrite: true,
  copy: undefined,
  transactionCommand: undefined,
  chains: false,
});

export function effectOf(statement: Statement): StatementEffect {
  const { kind, body } = statement;
  switch (kind) {
    case "SelectStmt":
      return effectOfQuery(body);
    case "CopyStmt":
      return effectOfCopy(body);
    case "ExplainStmt":
      return effectOfExplain(body);
    case "VariableShowStmt":
      return { ...PRIMARY, mayWrite: false };
    case "VariableSetStmt":
      return { ...PRIMARY, pin: pinOfSet(body), mayWrite: false };
    case "TransactionStmt":
      return effectOfTransactionCommand(body);
    case "DeclareCursorStmt":
      return effectOfDeclare(body);
    default:
      return effectOfOther(kind, body);
  }
}

function effectOfQuery(body: TreeNode): StatementEffect {
  const findings = findInTree(body);
  const pin = pinOfFindings(findings);
  const isRead = !findings.mayWrite && !findings.isLocal && pin === undefined;
  return { ...PRIMARY, access: isRead ? "read" : "primary", pin, mayWrite: findings.mayWrite };
}

function effectOfCopy(body: TreeNode): StatementEffect {
  const isOutsideClient = "filename" in body || body["is_program"] === true;
  const query = effectOfQuery(body);
  if (isOutsideClient) return { ...query, access: "primary", mayWrite: true };
  if (body["is_from"] === true) {
    return { ...query, access: "primary", mayWrite: true, copy: "in" };
  }
  return { ...query, copy: "out" };
}

/** Without ANALYZE nothing is executed, but planning runs functions that are marked immutable. */
function effectOfExplain(body: TreeNode): StatementEffect {
  const explained = unwrap(body["query"]);
  if (explained === undefined) return PRIMARY;
  if (isExplainAnalyze(body)) {
    return effectOf(explained);
  }
  const findings = findInTree(body);
  if (findings.executesPrepared) return { ...PRIMARY, pin: "prepare", mayWrite: false };
  const isRead = !findings.callsAnyFunction && !findings.namesTemporary;
  return { ...PRIMARY, access: isRead ? "read" : "primary", mayWrite: false };
}

/** Anything but a plain negative counts as ANALYZE, as does one of several. */
function isExplainAnalyze(body: TreeNode): boolean {
  return optionsOf(body).some(({ name, value }) => {
    if (name !== "analyze") return false;
    if (value?.kind === "Integer") return (value.body["ival"] ?? 0) !== 0;
    if (value?.kind === "Boolean") return value.body["boolval"] === true;
    const text = value === undefined ? "" : textOf(value.body, "sval").toLowerCase();
    return text !== "false" && text !== "off";
  });
}

/** SET LOCAL and SET TRANSACTION end with their transaction; everything else stays on the session. */
function pinOfSet(body: TreeNode): PinReason | undefined {
  const name = textOf(body, "name");
  if (body["is_local"] === true) return undefined;
  if (textOf(body, "kind") === "VAR_SET_MULTI") {
    return name === "SESSION CHARACTERISTICS" ? "set" : undefined;
  }
  return name === "role" || name === "session_authorization" ? "session_authorization" : "set";
}

function effectOfTransactionCommand(body: TreeNode): StatementEffect {
  const command = TRANSACTION_COMMANDS.get(textOf(body, "kind")) ?? "other";
  return {
    ...PRIMARY,
    mayWrite: command === "commit" || command === "other",
    transactionCommand: command === "begin" && isReplicaBegin(body) ? "begin_read_only" : command,
    chains: body["chain"] === true,
  };
}

/** READ ONLY, without a READ WRITE beside it, and not SERIALIZABLE, which standbys refuse (0A000). */
function isReplicaBegin(body: TreeNode): boolean {
  const options = optionsOf(body).map(({ name, value }) => ({
    name,
    constant: value?.kind === "A_Const" ? value.body : {},
  }));
  const readOnly = options.filter(({ name }) => name === "transaction_read_only");
  const isSerializable = options.some(({ constant }) => {
    const level = nodeOf(constant, "sval");
    return level !== undefined && textOf(level, "sval").toLowerCase() === "serializable";
  });
  const isReadOnly = readOnly.every(({ constant }) => nodeOf(constant, "ival")?.["ival"] === 1);
  return readOnly.length > 0 && isReadOnly && !isSerializable;
}

function effectOfDeclare(body: TreeNode): StatementEffect {
  const effect = effectOfQuery(body);
  const options = body["options"];
  const isHeld = typeof options === "number" && (options & CURSOR_OPTION_HOLD) !== 0;
  return { ...effect, access: "primary", pin: isHeld ? "hold_cursor" : effect.pin };
}

function effectOfOther(kind: string, body: TreeNode): StatementEffect {
  const pin = PINNING_KINDS.get(kind);
  // PREPARE and DEALLOCATE run nothing; EXECUTE, DO and DISCARD may write.
  if (kind === "PrepareStmt" || kind === "DeallocateStmt") {
    return { ...PRIMARY, pin, mayWrite: false };
  }
  if (pin !== undefined) return { ...PRIMARY, pin };
  const findings = findInTree(body);
  if (kind === "UpdateStmt") inspectUpdate(body, findings);
  if (DEFINITIONS.has(kind)) {
    return { ...PRIMARY, pin: findings.namesTemporary ? "temp_table" : undefined };
  }
  return { ...PRIMARY, pin: pinOfFindings(findings) };
}
