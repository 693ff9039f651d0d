// Names whom a token is for, so that one tenant's or database's token never verifies for another.

/**
 * Different pairs give different texts, whatever the names hold: JSON escapes NUL and lone surrogates, which
 * would otherwise end the text early or turn into the same replacement character as UTF-8.
 */
export function tokenAudience(database: string, tenant: string): string {
  return JSON.stringify([database, tenant]);
}
