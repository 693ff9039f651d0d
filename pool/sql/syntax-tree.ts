// Reads the parser's JSON tree without trusting its shape: what is not there reads as empty.

export type TreeNode = Readonly<Record<string, unknown>>;

/** One top-level statement: `kind` is the parser's node name, for example "SelectStmt". */
export interface Statement {
  readonly kind: string;
  readonly body: TreeNode;
}

export function isTreeNode(value: unknown): value is TreeNode {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function nodeOf(node: TreeNode, key: string): TreeNode | undefined {
  const value = node[key];
  return isTreeNode(value) ? value : undefined;
}

export function listOf(node: TreeNode, key: string): readonly unknown[] {
  const value = node[key];
  return Array.isArray(value) ? value : [];
}

export function textOf(node: TreeNode, key: string): string {
  const value = node[key];
  return typeof value === "string" ? value : "";
}

/** `{ "SelectStmt": { … } }` as kind and body. */
export function unwrap(wrapped: unknown): Statement | undefined {
  if (!isTreeNode(wrapped)) return undefined;
  const [kind] = Object.keys(wrapped);
  const body = kind === undefined ? undefined : nodeOf(wrapped, kind);
  return kind === undefined || body === undefined ? undefined : { kind, body };
}

/** The options of BEGIN, EXPLAIN and the like: name and value of each `DefElem`. */
export function optionsOf(
  node: TreeNode,
): readonly { readonly name: string; readonly value: Statement | undefined }[] {
  return listOf(node, "options").flatMap((option) => {
    const element = isTreeNode(option) ? nodeOf(option, "DefElem") : undefined;
    if (element === undefined) return [];
    return [{ name: textOf(element, "defname"), value: unwrap(element["arg"]) }];
  });
}

/** A dotted name as a list of strings; a part that is no string reads as "". */
export function nameParts(parts: readonly unknown[]): readonly string[] {
  return parts.map((part) => {
    const string = isTreeNode(part) ? nodeOf(part, "String") : undefined;
    return string === undefined ? "" : textOf(string, "sval");
  });
}

/** True for the literal `true`, not for anything that only evaluates to it. */
export function isLiteralTrue(value: unknown): boolean {
  const constant = isTreeNode(value) ? nodeOf(value, "A_Const") : undefined;
  const boolean = constant === undefined ? undefined : nodeOf(constant, "boolval");
  return boolean !== undefined && boolean["boolval"] === true;
}
