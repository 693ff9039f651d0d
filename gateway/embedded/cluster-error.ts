// The one error of the local cluster: what the launcher could not do, in words for the terminal.

/** The local cluster could not be started, stopped or reached. The message holds no password. */
export class ClusterError extends Error {
  override readonly name = "ClusterError";
}
