// The names under which a session's temporary relations, types and functions are reached.

const TEMPORARY_SCHEMA = /^pg_(?:toast_)?temp(?:_[0-9]+)?$/;

export function isTemporarySchema(name: string): boolean {
  return name.startsWith("pg_") && TEMPORARY_SCHEMA.test(name);
}
