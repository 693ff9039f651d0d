// The settings file of a local server: quoting, precedence, and what only a replica gets.
import { expect, test } from "bun:test";
import { serverSettings } from "#gateway/embedded/server-settings.ts";

const PRIMARY = { name: "primary", port: 20_001, upstream: undefined, extra: {} } as const;
const REPLICA = {
  name: "replica1",
  port: 20_002,
  upstream: { port: 20_001, password: "abc-_1" },
  extra: {},
} as const;

function linesOf(text: string, ...keys: string[]): string[] {
  return text.split("\n").filter((line) => keys.some((key) => line.startsWith(`${key} = `)));
}

test("a primary gets its name and port, and nothing to follow", () => {
  const text = serverSettings(PRIMARY);

  expect(linesOf(text, "port", "cluster_name", "primary_conninfo", "primary_slot_name")).toEqual([
    "port = '20001'",
    "cluster_name = 'primary'",
  ]);
});

test("a replica follows the primary's port by its own slot", () => {
  const text = serverSettings(REPLICA);

  expect(linesOf(text, "primary_conninfo", "primary_slot_name")).toEqual([
    "primary_conninfo = 'host=127.0.0.1 port=20001 user=replicator password=abc-_1 " +
      "application_name=replica1'",
    "primary_slot_name = 'replica1'",
  ]);
});

test("the caller's settings win, once each, and cannot end their quotes", () => {
  const text = serverSettings({
    ...PRIMARY,
    extra: { shared_buffers: "64MB", log_line_prefix: "it's " },
  });

  expect(linesOf(text, "shared_buffers", "log_line_prefix")).toEqual([
    "shared_buffers = '64MB'",
    "log_line_prefix = 'it''s '",
  ]);
});
