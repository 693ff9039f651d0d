// The sections [databases.NAME] and [profiles.NAME]: where the data is, and as whom an identity gets there.
import { Type } from "@sinclair/typebox";
import {
  integer,
  list,
  oneOf,
  referenceTo,
  secretText,
  secondsOrZero,
  serverAddress,
  table,
  tableOf,
  wireText,
} from "../values.ts";
import { poolOverrides } from "./pool-section.ts";

/**
 * A name that clients ask for: PostgreSQL's longest name is 63 bytes. Not `__proto__`, which would
 * set the prototype of an object when it is assigned.
 */
export const NAME_PATTERN = "^(?!__proto__$)[^\\u0000-\\u001f\\u007f]{1,63}$";
const NAME_EXPECTED = "1 to 63 characters without control characters";

/** Letters as in PostgreSQL's own check of parameter names; a dot separates an extension's prefix. */
export const PARAMETER_NAME_PATTERN =
  "^(?!(?:user|database|replication|options)$)[A-Za-z_][A-Za-z0-9_$]{0,62}(?:\\.[A-Za-z_][A-Za-z0-9_$]{0,62})*$";

const server = Type.Union(
  [
    serverAddress({ description: 'Address of the server, "host:port".' }),
    table(
      {
        name: Type.Optional(
          Type.String({
            description: "Name in answers, logs and metrics; default s1, s2 and so on, by place.",
            pattern: "^[A-Za-z0-9_.-]{1,63}$",
            expected: "1 to 63 letters, digits, dots, dashes or underscores",
          }),
        ),
        address: serverAddress({ description: 'Address of the server, "host:port".' }),
        weight: integer({
          description: "Share of the reads compared with the other servers.",
          default: 1,
          minimum: 1,
          maximum: 1000,
        }),
      },
      { description: "A server with a name or weight." },
    ),
  ],
  {
    description: "A server of the database.",
    expected: '"host:port" with a port from 1 to 65535, or a table with an address',
  },
);

const database = table(
  {
    dbname: Type.Optional(
      wireText({
        description: "Name of the database on the servers; default: the section's name.",
      }),
    ),
    servers: list(server, {
      description:
        'The primary and its replicas as "host:port" or { name, address, weight }; which is which is found out by asking.',
      minItems: 1,
    }),
    monitor_user: Type.Optional(
      wireText({
        description:
          "Role of our own connections; default: the user of the database's first trusted profile.",
      }),
    ),
    monitor_password_env: Type.Optional(
      referenceTo("an environment variable", {
        description: "Environment variable with the password of monitor_user.",
      }),
    ),
    monitor_password_file: Type.Optional(
      referenceTo("a file", { description: "File with the password of monitor_user." }),
    ),
    sslmode: oneOf(["disable", "prefer", "require", "verify-ca", "verify-full"], {
      description: "TLS towards the servers, with libpq's meaning.",
      default: "prefer",
    }),
    sslrootcert: Type.Optional(
      referenceTo("a file", {
        description:
          "PEM file with the certificate authorities for verify-ca and verify-full; default: the system's.",
      }),
    ),
    consistency: oneOf(["session", "eventual", "primary"], {
      notBuilt: ["monotonic", "bounded", "strong"],
      description:
        "How fresh reads are: not older than the client's own writes (session), any (eventual), or always from the primary (primary).",
      default: "session",
    }),
    consistency_wait: secondsOrZero("that it does not wait", {
      description:
        "How long a read waits for a replica to be fresh enough before it goes to the primary.",
      default: 0.1,
    }),
    ...poolOverrides,
  },
  // TypeBox fills in the keys of a named table only if the table itself has a default.
  { description: "A database; NAME is what clients ask for.", default: {} },
);

const profile = table(
  {
    database: wireText({ description: "Name of the [databases.NAME] section." }),
    user: wireText({ description: "Role that logs in to the servers." }),
    password_env: Type.Optional(
      referenceTo("an environment variable", {
        description: "Environment variable with the role's password.",
      }),
    ),
    password_file: Type.Optional(
      referenceTo("a file", { description: "File with the role's password." }),
    ),
    password: Type.Optional(secretText({ description: "The role's password itself." })),
    parameters: tableOf(
      Type.String({
        description: "Value of the parameter.",
        pattern: "^[^\\u0000]*$",
        maxLength: 1024,
        expected: "a string of at most 1024 characters without NUL",
      }),
      PARAMETER_NAME_PATTERN,
      {
        description:
          "Parameters that the server connection starts with, such as statement_timeout.",
        default: {},
        nameExpected: "a parameter name other than user, database, replication and options",
      },
    ),
    sql: oneOf(["untrusted", "trusted"], {
      notBuilt: ["persisted"],
      description:
        "Whose statements arrive: our own servers' (trusted), or anyone's who holds a token (untrusted).",
      default: "untrusted",
    }),
    ...poolOverrides,
  },
  { description: "A startup profile: what an identity becomes towards PostgreSQL.", default: {} },
);

export const databasesSection = tableOf(database, NAME_PATTERN, {
  description: "Databases by the name that clients ask for.",
  default: {},
  nameExpected: NAME_EXPECTED,
});

export const profilesSection = tableOf(profile, NAME_PATTERN, {
  description: "Startup profiles by name.",
  default: {},
  nameExpected: NAME_EXPECTED,
});
