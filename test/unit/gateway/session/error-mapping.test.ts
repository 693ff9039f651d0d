import { expect, test } from "bun:test";
import { httpStatusOf } from "#gateway/session/error-mapping.ts";

const STATUS_BY_SQLSTATE: readonly (readonly [sqlState: string, status: number])[] = [
  ["28000", 401],
  ["28P01", 401],
  ["42501", 403],
  ["53300", 503],
  ["57014", 504],
  ["57P01", 503],
  ["57P03", 503],
  ["08006", 503],
  ["08P01", 400],
  ["54000", 413],
  ["54001", 413],
  ["22P02", 400],
  ["23502", 400],
  ["23503", 409],
  ["23505", 409],
  ["25006", 400],
  ["2D000", 400],
  ["40001", 409],
  ["40P01", 409],
  ["40000", 500],
  ["42601", 400],
  ["42P01", 400],
  ["3D000", 400],
  ["0A000", 400],
  ["P0001", 400],
  ["P0002", 500],
  ["XX000", 500],
  ["ZZZZZ", 400],
];

for (const [sqlState, status] of STATUS_BY_SQLSTATE) {
  test(`${sqlState} is answered with ${status}`, () => {
    expect(httpStatusOf(sqlState)).toBe(status);
  });
}
