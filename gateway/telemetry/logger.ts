// Writes structured log lines: one JSON object per line to an injected sink. Never formats a line that is switched off.

/** From most to least talkative; a logger writes its own level and everything to the right of it. */
export const LOG_LEVELS = ["debug", "info", "warning", "error", "off"] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];
export type MessageLevel = Exclude<LogLevel, "off">;

/** Values are written as JSON. A Secret prints as ***, an Error as its name, message, code and stack. */
export type LogFields = Readonly<Record<string, unknown>>;

export interface Logger {
  /** For callers on hot paths that would build fields only to see them dropped. */
  isEnabled(level: MessageLevel): boolean;
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warning(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

export interface LoggerOptions {
  readonly level: LogLevel;
  /** Receives one line with its line feed. */
  readonly sink: (line: string) => void;
  /** Wall clock, milliseconds since 1970. */
  readonly nowMs: () => number;
}

/** Longest string that is written whole: a statement of 10 MB in an error text must not become a log line of 10 MB. */
export const LOG_TEXT_CHARACTERS_MAX = 4096;

/** Depth of causes that are written: a chain may be circular. */
const ERROR_CAUSES_MAX = 4;

/** A field of these names would overwrite the line's own, so it is written with an underscore before it. */
const RESERVED_FIELDS: ReadonlySet<string> = new Set(["time", "level", "message"]);

function shorten(text: string): string {
  return text.length <= LOG_TEXT_CHARACTERS_MAX
    ? text
    : `${text.slice(0, LOG_TEXT_CHARACTERS_MAX)}… (${text.length} characters)`;
}

function errorFields(error: Error, causesLeft: number): LogFields {
  const fields: Record<string, unknown> = { name: error.name, message: error.message };
  if ("code" in error) fields["code"] = error.code;
  if ("sqlState" in error) fields["sqlState"] = error.sqlState;
  fields["stack"] = error.stack;
  if (error.cause instanceof Error && causesLeft > 0) {
    fields["cause"] = errorFields(error.cause, causesLeft - 1);
  }
  return fields;
}

// JSON.stringify has called a Secret's toJSON before it calls this.
function toLoggable(_key: string, value: unknown): unknown {
  if (typeof value === "string") return shorten(value);
  if (typeof value === "bigint") return value.toString();
  if (value instanceof Error) return errorFields(value, ERROR_CAUSES_MAX);
  return value;
}

function formatLine(
  timeMs: number,
  level: MessageLevel,
  message: string,
  fields: LogFields,
): string {
  const line: Record<string, unknown> = { time: new Date(timeMs).toISOString(), level, message };
  for (const [name, value] of Object.entries(fields)) {
    line[RESERVED_FIELDS.has(name) ? `_${name}` : name] = value;
  }
  return `${JSON.stringify(line, toLoggable)}\n`;
}

/** A field that has no JSON (a cycle, a toJSON that throws) costs the fields, never the message or the caller. */
function formatLineSafely(
  timeMs: number,
  level: MessageLevel,
  message: string,
  fields: LogFields,
): string {
  try {
    return formatLine(timeMs, level, message, fields);
  } catch {
    return formatLine(timeMs, level, message, { fields: "not serialisable" });
  }
}

export function createLogger({ level, sink, nowMs }: LoggerOptions): Logger {
  const threshold = LOG_LEVELS.indexOf(level);
  const isEnabled = (wanted: MessageLevel): boolean => LOG_LEVELS.indexOf(wanted) >= threshold;
  const writerOf = (wanted: MessageLevel): Logger["info"] => {
    const enabled = isEnabled(wanted);
    return (message, fields = {}) => {
      if (!enabled) return;
      sink(formatLineSafely(nowMs(), wanted, message, fields));
    };
  };
  return {
    isEnabled,
    debug: writerOf("debug"),
    info: writerOf("info"),
    warning: writerOf("warning"),
    error: writerOf("error"),
  };
}
