// Types of the WebAssembly module inside libpg-query, which the package itself leaves untyped.
declare module "libpg-query/wasm/libpg-query.js" {
  export interface PgQueryModule {
    _malloc(sizeBytes: number): number;
    _free(pointer: number): void;
    /** Takes a C string; returns a pointer to { char *tree; char *stderr; Error *error }, or 0. */
    _wasm_parse_query_raw(text: number): number;
    _wasm_free_parse_result(result: number): void;
    lengthBytesUTF8(text: string): number;
    stringToUTF8(text: string, pointer: number, sizeBytes: number): void;
    UTF8ToString(pointer: number): string;
    getValue(pointer: number, type: "i32"): number;
  }

  export interface PgQueryModuleOptions {
    instantiateWasm(
      imports: WebAssembly.Imports,
      onInstance: (instance: WebAssembly.Instance) => void,
    ): void;
  }

  export default function createPgQueryModule(
    options: PgQueryModuleOptions,
  ): Promise<PgQueryModule>;
}
