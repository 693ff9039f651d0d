// One login to a scripted server, with everything a test may look at.
import { Secret } from "#auth/secret.ts";
import { loginToServer } from "#pool/backend/login.ts";
import type { LoggedInServer, LoginOptions } from "#pool/backend/login.ts";
import { PoolError } from "#pool/errors.ts";
import { FakeClock } from "#test/support/fake-clock.ts";
import { FakeTransport } from "#test/support/fake-socket.ts";
import type { SocketPairOptions } from "#test/support/fake-socket.ts";
import { ScriptedServer, fakeServer } from "./scripted-server.ts";

/** Not a loopback address. */
export const REMOTE = { remoteAddress: "192.0.2.7" };

export interface Attempt {
  readonly clock: FakeClock;
  readonly transport: FakeTransport;
  readonly outcome: Promise<LoggedInServer>;
}

/** Logs in to a server that behaves as `script` says. */
export function login(
  script: (server: ScriptedServer) => Promise<void>,
  options: Partial<LoginOptions> = {},
  pair: SocketPairOptions = REMOTE,
): Attempt {
  const clock = new FakeClock();
  const transport = new FakeTransport((socket) => {
    // A script that the client hangs up on ends there; what the client says of it is what counts.
    script(new ScriptedServer(socket)).catch(() => {});
  }, pair);
  const outcome = loginToServer({
    transport,
    clock,
    server: fakeServer(),
    dbname: "shop",
    user: "app",
    password: new Secret("pencil"),
    parameters: { application_name: "api" },
    deadline: 1000,
    ...options,
  });
  return { clock, transport, outcome };
}

export async function failureOf(attempt: Attempt): Promise<PoolError> {
  try {
    await attempt.outcome;
  } catch (error) {
    if (error instanceof PoolError) return error;
    throw error;
  }
  throw new Error("the login went well");
}
