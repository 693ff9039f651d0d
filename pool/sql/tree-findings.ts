// Looks at every node of one statement's tree for what keeps it from running on any server. Iterative
// and generic: a node type that it has never heard of is still searched.
import { effectOfCall } from "./function-effects.ts";
import type { PinReason } from "./statement-class.ts";
import { isTemporarySchema } from "./temporary-schema.ts";
import { isTreeNode, nameParts, textOf, type TreeNode } from "./syntax-tree.ts";

export interface TreeFindings {
  /** A data-modifying statement, a locking clause, INTO, or a function that may write. */
  mayWrite: boolean;
  /** Something that means something else on another server: its statistics, its catalogs' views. */
  isLocal: boolean;
  /** A function that isn't known to be without effects: if marked immutable, planning runs it. */
  callsAnyFunction: boolean;
  /** EXECUTE, also inside EXPLAIN and CREATE TABLE AS. */
  executesPrepared: boolean;
  /** A relation is created as temporary, or a name is qualified with pg_temp. */
  namesTemporary: boolean;
  /** UPDATE of pg_settings. */
  updatesSettings: boolean;
  /** The first function that pins. */
  functionPin: PinReason | undefined;
}

const SYSTEM_SCHEMAS: ReadonlySet<string> = new Set(["pg_catalog", "information_schema"]);
/** Statistics views and catalogs without their schema. Users' relations may be named so, too. */
const SYSTEM_RELATION_PREFIX = "pg_";

/** An UPDATE of this view is a SET: its rule calls set_config(). */
export const SETTINGS_VIEW = "pg_settings";

export function findInTree(root: TreeNode): TreeFindings {
  const findings: TreeFindings = {
    mayWrite: false,
    isLocal: false,
    callsAnyFunction: false,
    executesPrepared: false,
    namesTemporary: false,
    updatesSettings: false,
    functionPin: undefined,
  };
  const open: unknown[] = [root];
  while (open.length > 0) {
    const next = open.pop();
    if (Array.isArray(next)) {
      for (const item of next) open.push(item);
    } else if (isTreeNode(next)) {
      inspectNode(next, findings);
      for (const key in next) {
        const child = next[key];
        if (typeof child !== "object" || child === null) continue;
        inspectChild(key, child, findings);
        open.push(child);
      }
    }
  }
  return findings;
}

function inspectChild(key: string, child: object, findings: TreeFindings): void {
  if (key === "intoClause" || key === "lockingClause") {
    findings.mayWrite = true;
  } else if (key === "ExecuteStmt") {
    findings.executesPrepared = true;
    findings.mayWrite = true;
  } else if (key.endsWith("Stmt") && key !== "SelectStmt") {
    findings.mayWrite = true;
    if (key === "UpdateStmt" && isTreeNode(child)) inspectUpdate(child, findings);
  } else if (key === "FuncCall" || key === "funccall") {
    if (isTreeNode(child)) inspectCall(child, findings);
  } else if (Array.isArray(child) && child.length > 1) {
    const [first] = nameParts(child.slice(0, 1));
    if (first !== undefined && isTemporarySchema(first)) findings.namesTemporary = true;
  }
}

export function inspectUpdate(update: TreeNode, findings: TreeFindings): void {
  const { relation } = update;
  if (isTreeNode(relation) && textOf(relation, "relname") === SETTINGS_VIEW) {
    findings.updatesSettings = true;
  }
}

function inspectCall(call: TreeNode, findings: TreeFindings): void {
  const { effect, pin } = effectOfCall(call);
  findings.functionPin ??= pin;
  if (effect === "local") findings.isLocal = true;
  if (effect !== "any") return;
  findings.mayWrite = true;
  findings.callsAnyFunction = true;
}

/** A RangeVar is found by its fields, since many statements hold one without naming its type. */
function inspectNode(node: TreeNode, findings: TreeFindings): void {
  const relation = textOf(node, "relname");
  if (relation === "") return;
  const schema = textOf(node, "schemaname");
  if (isTemporarySchema(schema) || textOf(node, "relpersistence") === "t") {
    findings.namesTemporary = true;
  }
  const isSystem =
    schema === "" ? relation.startsWith(SYSTEM_RELATION_PREFIX) : SYSTEM_SCHEMAS.has(schema);
  if (isSystem) findings.isLocal = true;
}

/** The pin of a statement that is executed with these findings. */
export function pinOfFindings(findings: TreeFindings): PinReason | undefined {
  if (findings.executesPrepared) return "prepare";
  if (findings.namesTemporary) return "temp_table";
  if (findings.updatesSettings) return "set";
  return findings.functionPin;
}
