// Which FREE connection is taken, and that the index keeps no key that nobody has.
import { describe, expect, test } from "bun:test";
import { type PoolEntry, ServerConnections } from "#pool/connections/server-connections.ts";
import { FakeConnection, fakeProfile, fakeServer } from "./fake-pool.ts";

type Home = ServerConnections<FakeConnection>;

function addFree(home: Home, id: number, key: string, family: string): PoolEntry<FakeConnection> {
  const request = {
    profile: fakeProfile(),
    principal: "",
    startupOptions: "",
    server: home.server,
    deadline: 0,
  };
  const entry = home.createEntry(new FakeConnection(id, request, 0), key, family, false);
  home.putFree(entry, 0);
  return entry;
}

function idsOf(entries: (PoolEntry<FakeConnection> | undefined)[]): (number | undefined)[] {
  return entries.map((entry) => entry?.connection.id);
}

describe("ServerConnections", () => {
  test("of one key the warmest is taken first", () => {
    const home: Home = new ServerConnections(fakeServer("a"));
    addFree(home, 1, "k", "k");
    addFree(home, 2, "k", "k");
    addFree(home, 3, "other", "other");

    expect(idsOf([home.takeFree("k"), home.takeFree("k"), home.takeFree("k")])).toEqual([
      2,
      1,
      undefined,
    ]);
    expect(home.free).toBe(1);
  });

  test("one that is closing is skipped, and counted until it has closed", () => {
    const home: Home = new ServerConnections(fakeServer("a"));
    addFree(home, 1, "k", "f");
    const closing = addFree(home, 2, "k", "f");
    closing.connection.isOpen = false;

    expect(idsOf([home.takeFree("k"), home.takeFree("k"), home.takeFreeOfFamily("f")])).toEqual([
      1,
      undefined,
      undefined,
    ]);
    expect(home.free).toBe(1);
  });

  test("of a family, and of all, the coldest is taken first whatever its key", () => {
    const home: Home = new ServerConnections(fakeServer("a"));
    addFree(home, 1, "g", "g");
    addFree(home, 2, "f,alice", "f");
    addFree(home, 3, "f,bob", "f");
    addFree(home, 4, "f,alice", "f");

    expect(idsOf([home.takeFreeOfFamily("f"), home.takeFreeOfFamily("f")])).toEqual([2, 3]);
    expect(idsOf([home.takeColdest(), home.takeColdest(), home.takeColdest()])).toEqual([
      1,
      4,
      undefined,
    ]);
  });

  test("a changed key is found under the new key only", () => {
    const home: Home = new ServerConnections(fakeServer("a"));
    const entry = addFree(home, 1, "f,alice", "f");
    home.removeFree(entry);
    home.changeKey(entry, "f,bob", "f");
    home.putFree(entry, 1);

    expect(idsOf([home.takeFree("f,alice"), home.takeFree("f,bob")])).toEqual([undefined, 1]);
  });
});
