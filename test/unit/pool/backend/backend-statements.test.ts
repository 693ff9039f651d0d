// What is known of one connection's prepared statements while answers are on their way.
import { describe, expect, test } from "bun:test";
import { BackendStatements } from "#pool/backend/backend-statements.ts";
import { StatementRegistry, type RegisteredStatement } from "#pool/session/statement-registry.ts";

const registry = new StatementRegistry();

function statement(text: string): RegisteredStatement {
  return registry.acquire(new TextEncoder().encode(`${text}\0\0\0`));
}

const ONE = statement("select 1");
const TWO = statement("select 2");
const THREE = statement("select 3");

describe("presence of named statements", () => {
  test("a Parse may be relied on in its own segment, and in others only once it is answered", () => {
    const statements = new BackendStatements();
    const before = statements.presence(ONE, 1);
    statements.parseSent(ONE, 1);
    const here = statements.presence(ONE, 1);
    const later = statements.presence(ONE, 2);

    statements.parseAnswered(ONE, true);

    expect([before, here, later, statements.presence(ONE, 2)]).toEqual([
      "absent",
      "present",
      "doubtful",
      "present",
    ]);
  });

  test("a Parse that failed or was skipped leaves nothing behind", () => {
    const statements = new BackendStatements();
    statements.parseSent(ONE, 1);

    statements.parseAnswered(ONE, false);

    expect([statements.presence(ONE, 1), statements.size]).toEqual(["absent", 0]);
  });

  test("a Close and a Parse that were skipped leave the statement as it was", () => {
    const statements = new BackendStatements();
    statements.parseSent(ONE, 1);
    statements.closeSent(ONE, 2);
    statements.parseSent(ONE, 2);

    statements.parseAnswered(ONE, true);
    statements.closeAnswered(ONE, false);
    statements.parseAnswered(ONE, false);

    expect(statements.presence(ONE, 3)).toBe("present");
  });

  test("a statement whose result type has changed is to be parsed again, once", () => {
    const statements = new BackendStatements();
    statements.parseSent(ONE, 1);
    statements.parseAnswered(ONE, true);

    statements.markStale();
    const stale = statements.presence(ONE, 2);
    statements.closeSent(ONE, 2);
    statements.parseSent(ONE, 2);
    statements.closeAnswered(ONE, true);
    statements.parseAnswered(ONE, true);

    expect([stale, statements.presence(ONE, 3)]).toEqual(["doubtful", "present"]);
  });

  test("DISCARD ALL leaves none, but for those parsed behind it", () => {
    const statements = new BackendStatements();
    statements.parseSent(ONE, 1);
    statements.parseAnswered(ONE, true);
    statements.parseSent(TWO, 2);

    statements.clear();
    statements.parseAnswered(TWO, true);

    expect([statements.presence(ONE, 3), statements.presence(TWO, 3)]).toEqual([
      "absent",
      "present",
    ]);
  });
});

describe("eviction", () => {
  function filled(): BackendStatements {
    const statements = new BackendStatements();
    for (const one of [ONE, TWO]) {
      statements.parseSent(one, 1);
      statements.parseAnswered(one, true);
    }
    return statements;
  }

  test("at the limit none is in excess, above it the one unused for longest", () => {
    const statements = filled();
    statements.presence(ONE, 2);

    expect([statements.excess(2), statements.excess(1)]).toEqual([undefined, TWO]);
  });

  test("one that is being closed does not count any more, and is not closed twice", () => {
    const statements = filled();
    statements.closeSent(ONE, 2);

    expect([statements.excess(1), statements.excess(0)]).toEqual([undefined, TWO]);
  });

  test("one whose Parse is on its way counts, and is spared", () => {
    const statements = filled();
    statements.parseSent(THREE, 2);

    expect([statements.excess(3), statements.excess(2)]).toEqual([undefined, ONE]);
  });
});

describe("the unnamed statement", () => {
  const A = {};
  const B = {};

  test("it may be relied on in its own segment, and in others only once it is answered", () => {
    const statements = new BackendStatements();
    const change = statements.unnamedSent(A, 1);
    const pending = [statements.holdsUnnamed(A, 1), statements.holdsUnnamed(A, 2)];

    statements.unnamedAnswered(change, true);

    expect([...pending, statements.holdsUnnamed(A, 2)]).toEqual([true, false, true]);
  });

  test("an answer to an earlier Parse says nothing about a later one", () => {
    const statements = new BackendStatements();
    const first = statements.unnamedSent(A, 1);
    const second = statements.unnamedSent(B, 2);

    statements.unnamedAnswered(first, false);
    const between = statements.holdsUnnamed(B, 2);
    statements.unnamedAnswered(second, true);

    expect([between, statements.holdsUnnamed(B, 3)]).toEqual([true, true]);
  });

  test("a Query behind its Parse ends it, whenever the Parse is answered", () => {
    const statements = new BackendStatements();
    const change = statements.unnamedSent(A, 1);
    statements.unnamedDropped();

    statements.unnamedAnswered(change, true);

    expect(statements.holdsUnnamed(A, 1)).toBe(false);
  });
});
