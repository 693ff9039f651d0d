// What the pools of all users share, and what they ask of their owner.
import type { Clock } from "../time/clock.ts";
import type { Server } from "../routing/server.ts";
import type { Deliveries } from "./deliveries.ts";
import type { PooledConnection } from "./pooled-connection.ts";
import type { StartupProfile } from "./startup-profile.ts";

export interface OpenRequest {
  readonly profile: StartupProfile;
  readonly principal: string;
  readonly startupOptions: string;
  readonly server: Server;
  /** Clock milliseconds. */
  readonly deadline: number;
}

export interface UserPoolHost<C extends PooledConnection> {
  readonly clock: Clock;
  readonly deliveries: Deliveries;
  readonly serverLoginRetryMs: number;
  open(request: OpenRequest): Promise<C>;
  isClosing(): boolean;
  isRetired(profile: StartupProfile): boolean;
  /** There is something to sweep from now on. */
  connectionsExist(): void;
  /** While closing: there is one less to wait for. */
  connectionEnded(): void;
}
