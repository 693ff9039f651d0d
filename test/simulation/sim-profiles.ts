// The startup profiles of simulated clients: pool modes, trust and consistency, all before the same servers.
import type { StartupProfile } from "#pool/connections/startup-profile.ts";

/** Few connections, so that most requests wait for one. */
const POOL_SIZE = 6;

const BASE: StartupProfile = {
  name: "trusted",
  generation: 1,
  database: "sim",
  dbname: "sim",
  user: "app",
  password: undefined,
  parameters: {},
  isTrusted: true,
  poolMode: "transaction",
  defaultPoolSize: POOL_SIZE,
  queryWaitTimeoutMs: 1_500,
  waitQueueMax: 60,
  serverLifetimeMs: 4_000,
  serverIdleTimeoutMs: 2_000,
  serverConnectTimeoutMs: 800,
  cancelWaitTimeoutMs: 1_000,
  serverResetQuery: "DISCARD ALL",
  maxPreparedStatements: 4,
  consistencyWaitMs: 60,
  consistency: "session",
};

export const TRUSTED: StartupProfile = BASE;
/** Its clients are of several principals, which share connections by DISCARD ALL. */
export const UNTRUSTED: StartupProfile = {
  ...BASE,
  name: "untrusted",
  user: "tenant",
  isTrusted: false,
};
export const EVENTUAL: StartupProfile = { ...BASE, name: "eventual", consistency: "eventual" };
export const FROM_PRIMARY: StartupProfile = { ...BASE, name: "primary", consistency: "primary" };
export const SESSION_MODE: StartupProfile = {
  ...BASE,
  name: "session",
  user: "batch",
  poolMode: "session",
};
export const STATEMENT_MODE: StartupProfile = {
  ...BASE,
  name: "statement",
  poolMode: "statement",
};

export const PROFILES: readonly StartupProfile[] = [
  TRUSTED,
  UNTRUSTED,
  EVENTUAL,
  FROM_PRIMARY,
  SESSION_MODE,
  STATEMENT_MODE,
];
