// ECMAScript's "JSON.parse source text access", which the runtime has and the type libraries do not describe yet.

interface JSON {
  parse(
    text: string,
    reviver: (
      this: unknown,
      key: string,
      value: unknown,
      context: { readonly source?: string },
    ) => unknown,
  ): unknown;
  /** An object that stringify writes as the given text. */
  rawJSON(text: string): object;
  isRawJSON(value: unknown): boolean;
}
