// Both sides of the two ages, and what 0 means for each.
import { describe, expect, test } from "bun:test";
import { isPastIdleTimeout, isPastLifetime } from "#pool/connections/limits.ts";
import type { StartupProfile } from "#pool/connections/startup-profile.ts";
import { FakeConnection, fakeProfile, fakeServer } from "./fake-pool.ts";

function connectionWith(changes: Partial<StartupProfile>, createdAt: number): FakeConnection {
  const profile = fakeProfile(changes);
  const server = fakeServer("a");
  const request = { profile, principal: "", startupOptions: "", server, deadline: 0 };
  return new FakeConnection(1, request, createdAt);
}

describe("limits", () => {
  test("a connection is past its lifetime when it is exactly that old", () => {
    const connection = connectionWith({ serverLifetimeMs: 1_000 }, 500);

    expect([isPastLifetime(connection, 1_499.9), isPastLifetime(connection, 1_500)]).toEqual([
      false,
      true,
    ]);
  });

  test("a lifetime of 0 is over at once", () => {
    expect(isPastLifetime(connectionWith({ serverLifetimeMs: 0 }, 500), 500)).toBe(true);
  });

  test("a connection is past its idle timeout when it was FREE for exactly that long", () => {
    const connection = connectionWith({ serverIdleTimeoutMs: 1_000 }, 0);

    expect([
      isPastIdleTimeout(connection, 500, 1_499.9),
      isPastIdleTimeout(connection, 500, 1_500),
    ]).toEqual([false, true]);
  });

  test("an idle timeout of 0 never ends a connection", () => {
    expect(isPastIdleTimeout(connectionWith({ serverIdleTimeoutMs: 0 }, 0), 0, 1e12)).toBe(false);
  });
});
