// The sections [gateway], [http] and [tokens]: how clients arrive and what they may cost.
import { isIP } from "node:net";
import { Type } from "@sinclair/typebox";
import { LOG_LEVELS } from "../../telemetry/logger.ts";
import {
  byteSize,
  integer,
  list,
  listenAddress,
  oneOf,
  referenceTo,
  seconds,
  secondsOrZero,
  table,
  textThat,
} from "../values.ts";

const KB = 1024;
const MB = 1024 ** 2;
const GB = 1024 ** 3;

/** PostgreSQL itself refuses a message of 1 GB and more, so a higher cap could never be used. */
const FRAME_BYTES_MAX = GB;
/** Messages up to 64 KB are forwarded whole, so a lower cap would cut what must pass. */
const FRAME_BYTES_MIN = 64 * KB;

const tls = table(
  {
    cert_file: referenceTo("a file", {
      description: "PEM file with the server certificate and its chain.",
    }),
    key_file: referenceTo("a file", {
      description: "PEM file with the private key of the certificate.",
    }),
  },
  { description: "TLS of the wire and HTTP doors. Without this section no door offers TLS." },
);

export const gatewaySection = table(
  {
    http: Type.Optional(
      listenAddress({
        description:
          "Address of the HTTP and WebSocket door. Without it the door stays closed. Port 0 lets the system choose.",
      }),
    ),
    postgres: Type.Optional(
      listenAddress({
        description:
          "Address of the wire protocol door. Without it the door stays closed. Port 0 lets the system choose.",
      }),
    ),
    worker_id: integer({
      description: "Number of this process among those of one instance; part of cancel keys.",
      default: 0,
      minimum: 0,
      maximum: 63,
    }),
    peer_id: integer({
      description: "Number of this instance among those behind one address; part of cancel keys.",
      default: 0,
      minimum: 0,
      maximum: 31,
    }),
    max_client_conn: integer({
      description: "Most clients at a time over all doors; one more is refused with 53300.",
      default: 1000,
      minimum: 1,
      maximum: 1_000_000,
    }),
    max_login_clients: integer({
      description:
        "Most clients at a time that have not finished their login; one more is refused with 53300.",
      default: 1000,
      minimum: 1,
      maximum: 1_000_000,
    }),
    client_login_timeout: seconds({
      description: "A client that has not finished its login after this time is closed.",
      default: 60,
    }),
    client_idle_timeout: secondsOrZero("never", {
      description: "A client that has sent nothing for this time, outside a query, is closed.",
      default: 0,
    }),
    client_read_timeout: seconds({
      description:
        "A client that takes none of its answers for this time is closed; its query is cancelled first.",
      default: 60,
    }),
    max_packet_size: byteSize({
      description:
        "Longest single protocol message of a client; a longer one closes its connection with 08P01.",
      default: "1GB",
      minimum: FRAME_BYTES_MIN,
      maximum: FRAME_BYTES_MAX,
    }),
    max_client_buffer: byteSize({
      description: "Most memory for answers that clients have not read yet, over all clients.",
      default: "256MB",
      minimum: MB,
      maximum: 1024 * GB,
    }),
    shutdown_timeout: seconds({
      description: "How long a stop waits for running queries before it closes their clients.",
      default: 30,
    }),
    log_level: oneOf(LOG_LEVELS, {
      description: "Least important lines that are logged.",
      default: "info",
    }),
    tls: Type.Optional(tls),
  },
  { description: "The process and its clients.", default: {} },
);

function isOrigin(text: string): boolean {
  return text === "*" || (URL.canParse(text) && new URL(text).origin === text);
}

const origin = textThat(isOrigin, {
  description: "A web origin.",
  expected: 'an origin such as "https://app.example", or "*"',
});

function isNetwork(text: string): boolean {
  const [address = "", prefix, ...rest] = text.split("/");
  const family = isIP(address);
  if (family === 0 || rest.length > 0) return false;
  if (prefix === undefined) return true;
  return /^\d{1,3}$/.test(prefix) && Number(prefix) <= (family === 4 ? 32 : 128);
}

const network = textThat(isNetwork, {
  description: "An address or network.",
  expected: 'an IP address or a network such as "10.0.0.0/8"',
});

export const httpSection = table(
  {
    allowed_origins: list(origin, {
      description: 'Origins whose pages in a browser may read answers; "*" allows all.',
      default: [],
    }),
    trusted_proxies: list(network, {
      description:
        "Addresses and networks of proxies whose X-Forwarded-For and X-Forwarded-Proto are believed.",
      default: [],
    }),
    max_request_body: byteSize({
      description: "Longest request body; a longer one is answered 413.",
      default: "16MB",
      minimum: KB,
      maximum: GB,
    }),
    max_response_body: byteSize({
      description: "Longest answer of /sql and /v1/query, which must be whole in memory.",
      default: "64MB",
      minimum: KB,
      maximum: GB,
    }),
    prepare_threshold: integer({
      description:
        "A query that comes for the so many-th time by /sql or /v1/query, alone in its request and under a trusted profile, is a prepared statement on the server connections from then on, with PostgreSQL's choice of a generic plan. 0: none ever is.",
      default: 5,
      minimum: 0,
      maximum: 1_000_000,
    }),
    max_header_size: byteSize({
      description: "Longest header block of a request; a longer one is answered 431.",
      default: "64KB",
      minimum: 4 * KB,
      maximum: MB,
    }),
    max_ws_message: byteSize({
      description: "Longest WebSocket message; a longer one closes the WebSocket with 1009.",
      default: "64MB",
      minimum: 64 * KB,
      maximum: GB,
    }),
  },
  { description: "The HTTP and WebSocket door.", default: {} },
);

const tokenKey = table(
  {
    secret_env: Type.Optional(
      referenceTo("an environment variable", {
        description: "Environment variable with the secret, at least 32 bytes.",
      }),
    ),
    secret_file: Type.Optional(
      referenceTo("a file", { description: "File with the secret, at least 32 bytes." }),
    ),
  },
  { description: "One signing key: exactly one of its keys is given." },
);

export const tokensSection = table(
  {
    keys: list(tokenKey, {
      description:
        "Keys of read-after-write tokens: the first signs, all verify. Without one, a random key is made at each start and tokens end with the process.",
      default: [],
    }),
    max_wait: seconds({
      description:
        "Longest time that a request may ask a read to wait for a replica; a longer wish is shortened to it.",
      default: 5,
    }),
  },
  { description: "Read-after-write tokens.", default: {} },
);
