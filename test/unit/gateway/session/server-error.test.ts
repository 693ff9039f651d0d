import { describe, expect, test } from "bun:test";
import { ownError, poolError, serverErrorOf } from "#gateway/session/server-error.ts";
import { PoolError } from "#pool/errors.ts";
import { encodeErrorResponse } from "#pool/wire/backend-messages.ts";

describe("an error", () => {
  test("of a server has all seventeen fields, the untranslated severity first", () => {
    const letters = "SVCMDHPpqWstcdnFLR";
    const fields = new Map(letters.split("").map((letter) => [letter, `value ${letter}`]));

    expect(serverErrorOf(fields)).toEqual({
      message: "value M",
      code: "value C",
      detail: "value D",
      hint: "value H",
      position: "value P",
      internalPosition: "value p",
      internalQuery: "value q",
      severity: "value V",
      where: "value W",
      table: "value t",
      column: "value c",
      schema: "value s",
      dataType: "value d",
      constraint: "value n",
      file: "value F",
      line: "value L",
      routine: "value R",
    });
  });

  test("of ours has all seventeen fields too, null where there is nothing to say", () => {
    expect(ownError("54000", "too long", { hint: "shorten it" })).toEqual({
      message: "too long",
      code: "54000",
      detail: null,
      hint: "shorten it",
      position: null,
      internalPosition: null,
      internalQuery: null,
      severity: "ERROR",
      where: null,
      table: null,
      column: null,
      schema: null,
      dataType: null,
      constraint: null,
      file: null,
      line: null,
      routine: "walgate",
    });
  });

  test("of the pool shows what the server said in place of serving", () => {
    const serverError = encodeErrorResponse({
      severity: "FATAL",
      sqlState: "53300",
      message: "sorry, too many clients already",
    });
    const options = { sqlState: "08001", serverError };

    expect(poolError(new PoolError("ERR_SERVER_LOGIN_REFUSED", "refused", options))).toMatchObject({
      code: "53300",
      message: "sorry, too many clients already",
      severity: "FATAL",
    });
    expect(poolError(new PoolError("ERR_NO_SERVER", "none", { sqlState: "57P03" }))).toMatchObject({
      code: "57P03",
      message: "none",
      severity: "ERROR",
      hint: null,
    });
  });
});
