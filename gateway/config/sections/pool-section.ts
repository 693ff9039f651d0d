// The keys of [pool], which a database or a profile may override.
import { Type } from "@sinclair/typebox";
import { integer, oneOf, seconds, table, withDefault, wireText } from "../values.ts";

/** Without defaults, so that a database or profile that leaves a key out overrides nothing. */
const poolKeys = {
  pool_mode: oneOf(["transaction", "session", "statement"], {
    description: "When a server connection may go to another client.",
  }),
  default_pool_size: integer({
    description: "Most server connections per database, user and server.",
    minimum: 1,
    maximum: 10_000,
  }),
  query_wait_timeout: seconds({
    description:
      "A query that has waited this long for a server connection fails with 57014; its client stays.",
  }),
  max_query_waiters: integer({
    description:
      "Most queries that wait for a server connection at a time; one more fails with 53300.",
    minimum: 1,
    maximum: 1_000_000,
  }),
  server_lifetime: seconds({
    description: "A free server connection that is older than this is closed.",
  }),
  server_idle_timeout: seconds({
    description: "A server connection that has been free for this time is closed.",
  }),
  server_connect_timeout: seconds({
    description: "A connection to a server that has not finished its login after this time failed.",
  }),
  cancel_wait_timeout: seconds({
    description:
      "Limit for a cancel request, and for each step of cleaning a server connection that a client has left; past it the connection is closed.",
  }),
  server_reset_query: wireText({
    description:
      "Statements that clean a server connection after a client in session mode; the other modes need none but DISCARD ALL, which is sent where it is needed.",
  }),
  max_prepared_statements: integer({
    description: "Most prepared statements that are kept on one server connection.",
    minimum: 1,
    maximum: 10_000,
  }),
};

/** One pause for all: it belongs to a server and user, which several profiles may share. */
const serverLoginRetry = seconds({
  description: "Pause after a failed connection before the next one to the same server.",
});

export const poolSection = table(
  {
    pool_mode: withDefault(poolKeys.pool_mode, "transaction"),
    default_pool_size: withDefault(poolKeys.default_pool_size, 20),
    query_wait_timeout: withDefault(poolKeys.query_wait_timeout, 120),
    max_query_waiters: withDefault(poolKeys.max_query_waiters, 10_000),
    server_lifetime: withDefault(poolKeys.server_lifetime, 3600),
    server_idle_timeout: withDefault(poolKeys.server_idle_timeout, 600),
    server_connect_timeout: withDefault(poolKeys.server_connect_timeout, 15),
    server_login_retry: withDefault(serverLoginRetry, 15),
    cancel_wait_timeout: withDefault(poolKeys.cancel_wait_timeout, 10),
    server_reset_query: withDefault(poolKeys.server_reset_query, "DISCARD ALL"),
    max_prepared_statements: withDefault(poolKeys.max_prepared_statements, 200),
  },
  { description: "Server connections, for all databases and profiles.", default: {} },
);

/** The same keys in a database or a profile. */
export const poolOverrides = Type.Partial(Type.Object(poolKeys)).properties;
