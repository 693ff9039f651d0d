import { expect, test } from "bun:test";
import { ClientCensus, SURPLUS_CLIENTS_MAX } from "#gateway/session/client-census.ts";

test("as many clients come in as the limit says, and one more when one has left", () => {
  const census = new ClientCensus(2, 10);
  const entered = [census.enter(), census.enter(), census.enter()];
  census.loggedIn();
  census.leave(true);

  expect(entered).toEqual([true, true, false]);
  expect(census.enter()).toBe(true);
  expect([census.clients, census.logins]).toEqual([2, 2]);
});

test("logins have a limit of their own, which those that are logged in don't count against", () => {
  const census = new ClientCensus(10, 1);
  const first = census.enter();
  const tooMany = census.enter();
  census.loggedIn();
  const second = census.enter();

  expect([first, tooMany, second]).toEqual([true, false, true]);
  expect([census.clients, census.logins]).toEqual([2, 1]);
});

test("a client that leaves during its login is counted nowhere any more", () => {
  const census = new ClientCensus(1, 1);
  census.enter();
  census.leave(false);

  expect([census.clients, census.logins]).toEqual([0, 0]);
});

test("surplus clients are limited, and count as no clients", () => {
  const census = new ClientCensus(1, 1);
  census.enter();
  let entered = 0;
  while (census.enterSurplus()) entered++;
  census.leaveSurplus();

  expect(entered).toBe(SURPLUS_CLIENTS_MAX);
  expect([census.enterSurplus(), census.enterSurplus()]).toEqual([true, false]);
  expect([census.clients, census.logins]).toEqual([1, 1]);
});
