// What the pool's bookkeeping needs to know of a backend connection; `pool/backend` implements it.
import type { Server } from "../routing/server.ts";
import type { StartupProfile } from "./startup-profile.ts";

export interface PooledConnection {
  readonly server: Server;
  readonly profile: StartupProfile;
  /** The client startup identity it serves: the principal for untrusted SQL, else empty. Changed by `rekey` alone. */
  readonly principal: string;
  /** Startup options that SET cannot change, canonical; empty today. */
  readonly startupOptions: string;
  /** Clock milliseconds. */
  readonly createdAt: number;
  /** False once the socket is closing: such a connection is never handed out. */
  readonly isOpen: boolean;
  /** Called once when the socket has closed, whatever the connection was doing. The pool sets it. */
  onClosed: (() => void) | undefined;
  /** DISCARD ALL, then serve `principal`; rejects (and closes the connection) when that fails or the deadline passes. */
  rekey(principal: string, deadline: number): Promise<void>;
  /** Sends Terminate and closes. */
  close(): void;
}

export interface LeaseRequest<C extends PooledConnection> {
  readonly profile: StartupProfile;
  readonly principal: string;
  readonly startupOptions: string;
  /** Servers that may serve, the preferred one first; never empty. */
  readonly servers: readonly Server[];
  /** Clock milliseconds; past it `refused` with 57014. */
  readonly deadline: number;
  /** Called at most once, and never from inside `acquire`. */
  granted(connection: C): void;
  /** Called at most once, and never from inside `acquire`. */
  refused(error: Error): void;
}
