// The file itself: missing, unreadable, and how messages call it.
import { expect, test } from "bun:test";
import { loadConfig } from "#gateway/config/load.ts";

test("a configuration that does not exist is one line", async () => {
  const missing = Object.assign(new Error("gone"), { code: "ENOENT" });

  const result = await loadConfig("conf/walgate.toml", {}, () => Promise.reject(missing));

  expect(result).toMatchObject({
    ok: false,
    error: { message: "conf/walgate.toml: does not exist", sqlState: "F0000" },
  });
});
