// How many clients there are, against max_client_conn and max_login_clients, over all doors.

/** Clients past max_client_conn that are heard out: a cancel request must get through just when everything is busy. */
export const SURPLUS_CLIENTS_MAX = 100;

export class ClientCensus {
  readonly #clientsMax: number;
  readonly #loginsMax: number;
  #clients = 0;
  #logins = 0;
  #surplus = 0;

  constructor(clientsMax: number, loginsMax: number) {
    this.#clientsMax = clientsMax;
    this.#loginsMax = loginsMax;
  }

  get clients(): number {
    return this.#clients;
  }

  get logins(): number {
    return this.#logins;
  }

  /** A client arrives: false when there is no room. It counts as a login until `loggedIn`. */
  enter(): boolean {
    if (this.#clients >= this.#clientsMax || this.#logins >= this.#loginsMax) return false;
    this.#clients++;
    this.#logins++;
    return true;
  }

  /** For one that was not let in: false when enough of those are here. It never logs in. */
  enterSurplus(): boolean {
    if (this.#surplus >= SURPLUS_CLIENTS_MAX) return false;
    this.#surplus++;
    return true;
  }

  leaveSurplus(): void {
    this.#surplus--;
  }

  loggedIn(): void {
    this.#logins--;
  }

  /** One that is logged in counts once more, until another `leave(true)`: its answer outlives the request. */
  stay(): void {
    this.#clients++;
  }

  /** Once for each client that entered. */
  leave(wasLoggedIn: boolean): void {
    this.#clients--;
    if (!wasLoggedIn) this.#logins--;
  }
}
