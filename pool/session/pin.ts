// Why a session keeps its connection until it ends, if it does.
import type { PinReason } from "../sql/statement-class.ts";
import type { RelayCounters } from "./relay-environment.ts";

export class Pin {
  readonly #counters: RelayCounters;
  #reason: PinReason | "session_mode" | undefined;

  constructor(counters: RelayCounters) {
    this.#counters = counters;
  }

  get reason(): PinReason | "session_mode" | undefined {
    return this.#reason;
  }

  get isSet(): boolean {
    return this.#reason !== undefined;
  }

  /** The first reason stays: nothing unpins a session yet. */
  set(reason: PinReason | "session_mode"): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    const { pins } = this.#counters;
    pins.set(reason, (pins.get(reason) ?? 0) + 1);
  }
}
