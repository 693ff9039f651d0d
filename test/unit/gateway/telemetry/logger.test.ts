import { expect, test } from "bun:test";
import { Secret } from "#auth/secret.ts";
import {
  createLogger,
  LOG_TEXT_CHARACTERS_MAX,
  type Logger,
  type LogLevel,
} from "#gateway/telemetry/logger.ts";

const TIME = "2026-01-02T03:04:05.678Z";

function recordedLogger(level: LogLevel): { readonly log: Logger; readonly lines: string[] } {
  const lines: string[] = [];
  const sink = (line: string): void => void lines.push(line);
  return { log: createLogger({ level, sink, nowMs: () => Date.parse(TIME) }), lines };
}

test("a line is one JSON object with time, level, message and fields", () => {
  const { log, lines } = recordedLogger("info");

  log.info("client connected", { door: "http", port: 1, size: 2n ** 60n, gone: undefined });

  expect(lines).toEqual([
    `{"time":"${TIME}","level":"info","message":"client connected","door":"http","port":1,"size":"1152921504606846976"}\n`,
  ]);
});

test("each level writes its own lines and those of higher levels", () => {
  const written = (["debug", "info", "warning", "error", "off"] as const).map((level) => {
    const { log, lines } = recordedLogger(level);
    log.debug("d");
    log.info("i");
    log.warning("w");
    log.error("e");
    const enabled = (["debug", "info", "warning", "error"] as const).filter((wanted) =>
      log.isEnabled(wanted),
    );
    return [lines.length, enabled.length];
  });

  expect(written).toEqual([
    [4, 4],
    [3, 3],
    [2, 2],
    [1, 1],
    [0, 0],
  ]);
});

test("a logger that is off does not look at the fields", () => {
  const { log } = recordedLogger("off");
  const fields = {
    get expensive(): never {
      throw new Error("read");
    },
  };

  expect(() => log.error("quiet", fields)).not.toThrow();
});

test("a secret prints as *** wherever it stands", () => {
  const { log, lines } = recordedLogger("info");
  const secret = new Secret("hunter2");

  log.info("login", { secret, nested: { list: [secret] }, text: String(secret) });

  expect(lines).toEqual([
    `{"time":"${TIME}","level":"info","message":"login","secret":"***","nested":{"list":["***"]},"text":"***"}\n`,
  ]);
});

test("an error is written with its codes, stack and causes", () => {
  const { log, lines } = recordedLogger("info");
  const cause = Object.assign(new Error("inner"), { code: "ECONNRESET", stack: "inner stack" });
  const error = Object.assign(new TypeError("outer", { cause }), {
    sqlState: "08006",
    stack: "outer stack",
  });

  log.error("lost", { error });

  expect(JSON.parse(lines[0] ?? "")).toEqual({
    time: TIME,
    level: "error",
    message: "lost",
    error: {
      name: "TypeError",
      message: "outer",
      sqlState: "08006",
      stack: "outer stack",
      cause: { name: "Error", message: "inner", code: "ECONNRESET", stack: "inner stack" },
    },
  });
});

test("a circular chain of causes ends", () => {
  const { log, lines } = recordedLogger("info");
  const error = new Error("self");
  error.cause = error;

  log.error("loop", { error });

  expect(lines[0]?.match(/"message":"self"/g)).toHaveLength(5);
});

test("text at the limit is written whole, longer text is cut", () => {
  const { log, lines } = recordedLogger("info");

  log.info("a".repeat(LOG_TEXT_CHARACTERS_MAX), { sql: "b".repeat(LOG_TEXT_CHARACTERS_MAX + 1) });

  expect(JSON.parse(lines[0] ?? "")).toEqual({
    time: TIME,
    level: "info",
    message: "a".repeat(LOG_TEXT_CHARACTERS_MAX),
    sql: `${"b".repeat(LOG_TEXT_CHARACTERS_MAX)}… (${LOG_TEXT_CHARACTERS_MAX + 1} characters)`,
  });
});

test("a field cannot pose as another level or forge a second line", () => {
  const { log, lines } = recordedLogger("info");

  log.info("a\nb", { level: "error", message: 'x\n{"level":"error"}' });

  expect(lines).toEqual([
    `{"time":"${TIME}","level":"info","message":"a\\nb","_level":"error","_message":"x\\n{\\"level\\":\\"error\\"}"}\n`,
  ]);
});

test("a field that has no JSON costs the fields and not the message", () => {
  const { log, lines } = recordedLogger("info");
  const circular: Record<string, unknown> = {};
  circular["self"] = circular;

  log.info("still here", { circular });

  expect(lines).toEqual([
    `{"time":"${TIME}","level":"info","message":"still here","fields":"not serialisable"}\n`,
  ]);
});
