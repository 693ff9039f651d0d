// Instants between JavaScript dates and PostgreSQL's ISO text for timestamptz.

/** Digits of a four-digit year, the only form that Date and PostgreSQL write alike. */
const YEAR_DIGITS = 4;

/**
 * PostgreSQL with DateStyle ISO: 2026-01-31 23:59:59.123456+05:30, years past 9999 longer, " BC" at
 * the end.
 */
const ISO_TIMESTAMPTZ =
  /^(\d{4,6})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(\.\d{1,6})?([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?( BC)?$/;

/**
 * The instant in UTC, as PostgreSQL reads it. toISOString() signs years outside 0 to 9999, which
 * PostgreSQL refuses, and counts a year 0, which PostgreSQL calls 1 BC.
 *
 * @throws RangeError for an invalid Date.
 */
export function formatInstant(date: Date): string {
  const iso = date.toISOString();
  const year = date.getUTCFullYear();
  const rest = iso.slice(iso.indexOf("-", 1));
  if (year > 0) {
    return String(year).padStart(YEAR_DIGITS, "0") + rest;
  }
  return `${String(1 - year).padStart(YEAR_DIGITS, "0")}${rest} BC`;
}

/**
 * A Date (milliseconds; finer digits are cut), or Infinity and -Infinity as in `pg`. Text that is
 * no ISO timestamp, or lies past the range of Date, comes back as it is.
 */
export function parseInstant(text: string): Date | number | string {
  if (text === "infinity") {
    return Infinity;
  }
  if (text === "-infinity") {
    return -Infinity;
  }
  const match = ISO_TIMESTAMPTZ.exec(text);
  if (match === null) {
    return text;
  }
  const [, year, month, day, hours, minutes, seconds, fraction, sign, ...zone] = match;
  const [zoneHours, zoneMinutes, zoneSeconds, era] = zone;
  const date = new Date(0);
  date.setUTCFullYear(
    era === undefined ? Number(year) : 1 - Number(year),
    Number(month) - 1,
    Number(day),
  );
  const offsetSeconds =
    Number(zoneHours) * 3600 + Number(zoneMinutes ?? 0) * 60 + Number(zoneSeconds ?? 0);
  date.setUTCHours(
    Number(hours),
    Number(minutes),
    Number(seconds) + (sign === "+" ? -offsetSeconds : offsetSeconds),
    Number((fraction ?? "").slice(1, 4).padEnd(3, "0")),
  );
  return Number.isNaN(date.getTime()) ? text : date;
}
