// The public surface of @walgate/sdk, and its only barrel.

export type { Column, Result, Row } from "./answer.ts";
export type { ConnectOptions, Db, Session } from "./connect.ts";
export { connect } from "./connect.ts";
export type { DatabaseErrorFields } from "./errors.ts";
export {
  ConnectionError,
  DatabaseError,
  QueueFullError,
  RowCountError,
  TimeoutError,
  UnexpectedResponseError,
} from "./errors.ts";
export { Fragment } from "./fragment.ts";
export type { Param } from "./params.ts";
export { Query } from "./query.ts";
export type { QueryOptions, Runner, TemplateValue } from "./runner.ts";
export type { Fetcher, FetchInit, FetchResponse, TokenSource } from "./transport.ts";
