// Turns a client's operations into messages for one particular server and enters each expected answer into the reply plan.
import { type BackendConnection, Forecast } from "../backend/backend-connection.ts";
import type { OutputBatch } from "../backend/output-batch.ts";
import { Expect, Fate } from "../exchange/reply-plan.ts";
import { readFirstColumn } from "../wire/backend-messages.ts";
import { SYNC_FRAME, encodeQuery } from "../wire/frontend-messages.ts";
import type { Span } from "../wire/message-types.ts";
import type { ClientStatements } from "./client-statements.ts";
import type { Operation } from "./operation.ts";
import { runningClassOf } from "./operation-class.ts";
import { PROBE_BIND_EXECUTE_FRAMES, PROBE_PARSE_FRAME } from "./probe.ts";
import { StatementWriter } from "./statement-writer.ts";

/** What a probe found: the primary's WAL position as text, or undefined when the probe was not answered. */
export type ProbeResult = (lsn: string | undefined) => void;

/** Made anew for each lease: it is the lease's view of the connection. */
export class SegmentWriter {
  readonly #backend: BackendConnection;
  readonly #batch: OutputBatch;
  readonly #statements: StatementWriter;

  constructor(backend: BackendConnection, statements: ClientStatements) {
    this.#backend = backend;
    this.#batch = backend.batch;
    this.#statements = new StatementWriter(backend, statements);
  }

  /** Sends what was written since the last flush in one go. */
  flush(): void {
    this.#batch.flush(this.#backend);
  }

  write(operation: Operation): void {
    const { plan } = this.#backend;
    this.#foresee(operation);
    switch (operation.kind) {
      case "query":
        plan.expect(Expect.QUERY);
        this.#backend.statements.unnamedDropped();
        this.#endingWithReady(operation);
        return;
      case "parse":
        this.#statements.parse(operation, operation.statement);
        return;
      case "bind":
        this.#statements.bind(operation);
        return;
      case "describe_statement":
        this.#statements.describe(operation, operation.statement);
        return;
      case "close_statement":
        this.#statements.close(operation);
        return;
      case "describe_portal":
        this.#extended(Expect.DESCRIBE, operation);
        return;
      case "close_portal":
        this.#extended(Expect.CLOSE, operation);
        return;
      case "execute":
        this.#extended(Expect.EXECUTE, operation);
        return;
      case "sync":
        this.#expectSync(Fate.FORWARD);
        this.#add(operation);
        return;
      case "flush":
      case "copy_data":
        this.#add(operation);
        return;
      case "function_call":
        plan.expect(Expect.FUNCTION_CALL);
        this.#endingWithReady(operation);
        return;
      case "copy_end":
        // Known to end the copy that goes on; without one it may be ahead of CopyInResponse, or behind a failed copy.
        if (this.#backend.isCopyIn) this.#backend.isCopyIn = false;
        else plan.expect(Expect.COPY_END);
        this.#add(operation);
        return;
      case "fail":
        this.#statements.fail(operation.error);
        return;
      case "refused_query":
        plan.answerQuery(operation.answer);
        return;
    }
  }

  /** A Sync with the answer's fate; in copy-in mode the server ignores it, so nothing is expected. */
  sync(fate: number): void {
    this.#expectSync(fate);
    this.#batch.add(SYNC_FRAME);
  }

  /** Bind and Execute of the probe, Parse before it where the server does not have it; hidden, without a Sync of its own. */
  probe(result: ProbeResult): void {
    const backend = this.#backend;
    let answered: string | undefined;
    const forget = (): void => {
      backend.hasProbe = false;
    };
    backend.hasUnsynced = true;
    if (!backend.hasProbe) {
      backend.hasProbe = true;
      backend.plan.expect(Expect.PARSE, Fate.HIDE_ALL, { failed: forget });
      this.#batch.add(PROBE_PARSE_FRAME);
    }
    backend.plan.expect(Expect.BIND, Fate.HIDE_ALL, { failed: forget });
    backend.plan.expect(Expect.EXECUTE, Fate.HIDE_ALL, {
      row: (frame) => {
        answered = readFirstColumn(frame);
      },
      completed: () => result(answered),
      failed: () => result(undefined),
    });
    this.#batch.add(PROBE_BIND_EXECUTE_FRAMES);
  }

  /** Settings for the client before anything of its own; hidden. `failed` with the server's error. */
  parameters(text: string, failed: (error: Uint8Array | undefined) => void): void {
    this.#backend.statements.unnamedDropped();
    this.#backend.plan.expect(Expect.QUERY, Fate.HIDE_ALL, { failed });
    this.#batch.add(encodeQuery(text));
  }

  /** More of a large message. */
  raw(bytes: Uint8Array): void {
    this.#batch.add(bytes);
  }

  #expectSync(fate: number): void {
    const backend = this.#backend;
    if (backend.isCopyIn) return;
    backend.plan.expect(Expect.SYNC, fate);
    backend.hasUnsynced = false;
    backend.segment++;
  }

  /** What is executed decides in what state the session will be when all of it has been. */
  #foresee(operation: Operation): void {
    const running = runningClassOf(operation);
    if (running === undefined) return;
    const backend = this.#backend;
    if (running === "unknown") {
      backend.forecast = Forecast.OPEN;
    } else if (running.hasTransactionControl) {
      const { transactionCommand, chains } = running;
      // Skipped, it leaves a failed block or none: either way nothing runs in a block that goes on.
      const isEnd = transactionCommand === "commit" || transactionCommand === "rollback";
      backend.forecast = isEnd && !chains ? Forecast.IDLE : Forecast.OPEN;
    } else if (running.copy === "in" && backend.forecast === Forecast.IDLE) {
      backend.forecast = Forecast.COPY;
    }
  }

  #extended(kind: number, message: Span): void {
    this.#backend.plan.expect(kind);
    this.#backend.hasUnsynced = true;
    this.#add(message);
  }

  /** Query and FunctionCall end what a Sync would end, unless the server skips them; the plan knows that. */
  #endingWithReady(message: Span): void {
    this.#backend.hasUnsynced = false;
    this.#add(message);
  }

  #add({ chunk, start, end }: Span): void {
    this.#batch.add(chunk, start, end);
  }
}
