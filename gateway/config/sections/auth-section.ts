// The section [auth]: who may call, how it is proven, and which startup profile it leads to.
import { Type } from "@sinclair/typebox";
import {
  list,
  oneOf,
  referenceTo,
  secretText,
  table,
  tableOf,
  textThat,
  wireText,
} from "../values.ts";

/** Algorithms with a public key; HS256 follows from a secret. */
export const JWS_ALGORITHMS = [
  "HS256",
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "ES256",
  "ES384",
  "EdDSA",
] as const;

/** An http URL would let anyone on the way choose the keys, except where there is no way. */
const LOCAL_HOSTS: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

function isJwksUrl(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol, hostname, username, password } = new URL(value);
  if (username !== "" || password !== "") return false;
  return protocol === "https:" || (protocol === "http:" && LOCAL_HOSTS.has(hostname));
}

const text = (description: string) => wireText({ description });

const jwt = table(
  {
    issuer: text("The iss claim that its tokens carry, compared exactly."),
    audience: Type.Union(
      [
        text("An audience."),
        list(text("An audience."), { description: "Audiences.", minItems: 1 }),
      ],
      {
        description: "The aud claim, one of which a token must carry.",
        expected: "a string or an array of strings",
      },
    ),
    jwks_url: Type.Optional(
      textThat(isJwksUrl, {
        description: "URL of the issuer's public keys; http only on the local machine.",
        expected: "an https URL without user and password, or an http URL of the local machine",
      }),
    ),
    jwks_file: Type.Optional(
      referenceTo("a file", { description: "File with the issuer's public keys (JWKS)." }),
    ),
    secret_env: Type.Optional(
      referenceTo("an environment variable", {
        description: "Environment variable with the secret of HS256, at least 32 bytes.",
      }),
    ),
    secret_file: Type.Optional(
      referenceTo("a file", { description: "File with the secret of HS256, at least 32 bytes." }),
    ),
    algorithms: Type.Optional(
      list(oneOf(JWS_ALGORITHMS, { description: "A signature algorithm." }), {
        description: "Algorithms that are accepted; default: all that fit the key.",
        minItems: 1,
      }),
    ),
  },
  {
    description:
      "An issuer of tokens, with exactly one of jwks_url, jwks_file, secret_env and secret_file.",
  },
);

const rule = table(
  {
    method: oneOf(["jwt", "scram-sha-256", "password", "reject"], {
      description: "How the caller proves who it is.",
    }),
    transport: Type.Optional(
      oneOf(["postgres", "http", "websocket"], { description: "Only for this door." }),
    ),
    database: Type.Optional(text("Only when the client asks for this database.")),
    user: Type.Optional(text("Only when the client names this user.")),
    issuer: Type.Optional(text("Only for tokens of this issuer.")),
    claims: Type.Optional(
      tableOf(
        Type.Union([Type.String(), Type.Number(), Type.Boolean()], {
          description: "Value of the claim, or one of its values.",
          expected: "a string, a number, true or false",
        }),
        "^(?!__proto__$).{1,256}$",
        {
          description: "Only for tokens with these claims.",
          nameExpected: "1 to 256 characters",
        },
      ),
    ),
    tenant: Type.Optional(
      text(
        'What limits and tokens are bound to: "claim:NAME" or a literal; default: the database\'s name.',
      ),
    ),
    profile: Type.Optional(
      text("Name of the [profiles.NAME] section; needed by every method except reject."),
    ),
  },
  { description: "A rule; the first that matches decides, and no match is refused." },
);

const user = table(
  {
    name: text("Name that the client logs in with."),
    secret_env: Type.Optional(
      referenceTo("an environment variable", {
        description: "Environment variable with a SCRAM verifier or a password.",
      }),
    ),
    secret_file: Type.Optional(
      referenceTo("a file", { description: "File with a SCRAM verifier or a password." }),
    ),
    secret: Type.Optional(secretText({ description: "The SCRAM verifier or password itself." })),
  },
  { description: "A user with exactly one of secret_env, secret_file and secret." },
);

export const authSection = table(
  {
    auth_file: Type.Optional(
      referenceTo("a file", { description: "PgBouncer's userlist.txt with more users." }),
    ),
    jwt: list(jwt, { description: "Issuers of tokens.", default: [] }),
    rules: list(rule, { description: "Rules in the order in which they are tried.", default: [] }),
    users: list(user, { description: "Users that log in with a password or SCRAM.", default: [] }),
  },
  { description: "Who may call.", default: {} },
);
