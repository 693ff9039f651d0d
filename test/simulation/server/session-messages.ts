// What a simulated server says at the start of a session, and how it reads the values of a Bind.
import { concatBytes, readInt32 } from "#pool/wire/message-types.ts";
import { encodeFrame } from "#pool/wire/backend-messages.ts";
import { int32, server as reply } from "#test/support/wire-frames.ts";
import { SessionError } from "./statement-runner.ts";

const PARAMETERS: readonly Uint8Array[] = [
  ["client_encoding", "UTF8"],
  ["DateStyle", "ISO, MDY"],
  ["default_transaction_read_only", "off"],
  ["in_hot_standby", "off"],
  ["integer_datetimes", "on"],
  ["IntervalStyle", "postgres"],
  ["is_superuser", "off"],
  ["scram_iterations", "4096"],
  ["search_path", '"$user", public'],
  ["server_encoding", "UTF8"],
  ["server_version", "18.1"],
  ["session_authorization", "app"],
  ["standard_conforming_strings", "on"],
  ["TimeZone", "UTC"],
].map(([name = "", value = ""]) => reply.parameterStatus(name, value));

const AUTHENTICATION_OK = encodeFrame(0x52, int32(0));
const BACKEND_KEY_DATA = 0x4b;

/** AuthenticationOk, parameters, the cancel key, ReadyForQuery. */
export function greeting(processId: number, secret: number, applicationName: string): Uint8Array {
  const key = encodeFrame(BACKEND_KEY_DATA, concatBytes([int32(processId), int32(secret)]));
  const name = reply.parameterStatus("application_name", applicationName);
  return concatBytes([AUTHENTICATION_OK, name, ...PARAMETERS, key, reply.ready("I")]);
}

/** Text values of a Bind, from behind the statement's name on: format codes, then lengths and bytes. */
export function readValues(frame: Uint8Array, offset: number): readonly string[] {
  const int16 = (at: number): number => ((frame[at] ?? 0) << 8) | (frame[at + 1] ?? 0);
  let at = offset + 2 + 2 * int16(offset);
  const count = int16(at);
  at += 2;
  const values: string[] = [];
  for (let i = 0; i < count; i++) {
    const size = Math.max(0, readInt32(frame, at));
    at += 4;
    values.push(Buffer.prototype.toString.call(frame, "latin1", at, at + size));
    at += size;
  }
  return values;
}

export function missingStatement(name: string): SessionError {
  const what = name === "" ? "unnamed prepared statement" : `prepared statement "${name}"`;
  return new SessionError("26000", `${what} does not exist`);
}

export function missingPortal(name: string): SessionError {
  return new SessionError("34000", `portal "${name}" does not exist`);
}
