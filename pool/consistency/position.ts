// A place in a server's write-ahead log, with the history it belongs to.

export interface Position {
  /** pg_control_system().system_identifier, unsigned 64 bit. */
  readonly systemIdentifier: bigint;
  readonly timeline: number;
  /** Byte position, normalised down to the page start when it sits on a page header. */
  readonly lsn: bigint;
}
