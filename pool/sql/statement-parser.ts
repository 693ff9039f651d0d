// PostgreSQL's own grammar, as WebAssembly: text to syntax tree. A trap inside the module costs the
// text that caused it, never the parser.
//
// The module is instantiated here instead of by the package's entry, because it has to be replaced:
// a tree of some 7,500 levels overflows the stack in the middle of a parse, which leaves 2 MB
// allocated for good. The module's heap ends at 1 GB, so 450 such texts would switch the parser off
// for everybody. Callers keep such texts away by a bound on the nesting; this is the net below it.
import createPgQueryModule, { type PgQueryModule } from "libpg-query/wasm/libpg-query.js";
import { isTreeNode, listOf, type Statement, unwrap } from "./syntax-tree.ts";
import { withInitialMemory } from "./wasm-memory.ts";

const MODULE_FILE = "libpg-query/wasm/libpg-query.wasm";

/**
 * 4 MB; its allocator takes 41 MB with the first text. The module asks for 128 MB. That much of address space would cost nothing, but
 * the garbage collector takes it for live data, twice for each of the two instances, and lets garbage grow in proportion, by 130 MB.
 */
const INITIAL_PAGES = 64;

/** Offsets into the parse result of libpg_query: tree text, then two pointers of 4 bytes each. */
const TREE_OFFSET = 0;
const ERROR_OFFSET = 8;

export type ParseOutcome =
  | { readonly kind: "parsed"; readonly statements: readonly Statement[] }
  /** Not SQL of this grammar version; the same text always gives the same answer. */
  | { readonly kind: "refused" }
  /** No verdict on the text: the module trapped, or its replacement is not ready. */
  | { readonly kind: "failed" };

/** Two instances, so that a trap of one text leaves no moment without a parser for the next one. */
class StatementParser {
  readonly #code: WebAssembly.Module;
  #current: PgQueryModule | undefined;
  #spare: PgQueryModule | undefined;
  #isRefilling = false;

  private constructor(code: WebAssembly.Module, current: PgQueryModule, spare: PgQueryModule) {
    this.#code = code;
    this.#current = current;
    this.#spare = spare;
  }

  static async load(): Promise<StatementParser> {
    const path = Bun.resolveSync(MODULE_FILE, import.meta.dir);
    const module = withInitialMemory(await Bun.file(path).bytes(), INITIAL_PAGES);
    const code = await WebAssembly.compile(module);
    return new StatementParser(code, await instantiate(code), await instantiate(code));
  }

  parse(text: string): ParseOutcome {
    const module = this.#current;
    if (module === undefined) {
      this.#refill();
      return { kind: "failed" };
    }
    try {
      const tree = parseWith(module, text);
      return tree === undefined
        ? { kind: "refused" }
        : { kind: "parsed", statements: statementsOf(tree) };
    } catch {
      // Which of its invariants the trap broke is unknown: a RangeError is a full stack, a
      // RuntimeError may be anything. The text is the caller's and stays out of every log.
      this.#current = this.#spare;
      this.#spare = undefined;
      this.#refill();
      return { kind: "failed" };
    }
  }

  /** If no instance can be made, for lack of memory, the next text without a parser tries again. */
  #refill(): void {
    if (this.#isRefilling) return;
    this.#isRefilling = true;
    const accept = (module: PgQueryModule): void => {
      this.#isRefilling = false;
      if (this.#current === undefined) {
        this.#current = module;
        this.#refill();
      } else {
        this.#spare = module;
      }
    };
    const giveUp = (): void => {
      this.#isRefilling = false;
    };
    instantiate(this.#code).then(accept, giveUp);
  }
}

function instantiate(code: WebAssembly.Module): Promise<PgQueryModule> {
  return createPgQueryModule({
    instantiateWasm: (imports, onInstance) => onInstance(new WebAssembly.Instance(code, imports)),
  });
}

/** The tree as parsed JSON, or undefined if the grammar refuses the text. Throws if the module traps. */
function parseWith(module: PgQueryModule, text: string): unknown {
  const sizeBytes = module.lengthBytesUTF8(text) + 1;
  const input = module._malloc(sizeBytes);
  if (input === 0) throw new RangeError("The parser is out of memory.");
  module.stringToUTF8(text, input, sizeBytes);
  const result = module._wasm_parse_query_raw(input);
  if (result === 0) throw new RangeError("The parser is out of memory.");
  const isRefused = module.getValue(result + ERROR_OFFSET, "i32") !== 0;
  const json = isRefused
    ? undefined
    : module.UTF8ToString(module.getValue(result + TREE_OFFSET, "i32"));
  module._wasm_free_parse_result(result);
  module._free(input);
  return json === undefined ? undefined : JSON.parse(json);
}

function statementsOf(tree: unknown): readonly Statement[] {
  if (!isTreeNode(tree)) throw new TypeError("The parser returned no tree.");
  return listOf(tree, "stmts").map((raw) => {
    const statement = isTreeNode(raw) ? unwrap(raw["stmt"]) : undefined;
    if (statement === undefined) throw new TypeError("The parser returned no statement.");
    return statement;
  });
}

let parser: StatementParser | undefined;
let loading: Promise<void> | undefined;

/** Loads the parser, once per process. Later calls wait for the first; a failed load may be repeated. */
export function loadStatementParser(): Promise<void> {
  loading ??= StatementParser.load().then(
    (loaded) => {
      parser = loaded;
    },
    (error: unknown) => {
      loading = undefined;
      throw error;
    },
  );
  return loading;
}

/** The loaded parser. Throws a programmer error before `loadStatementParser` is through. */
export function statementParser(): StatementParser {
  if (parser === undefined) throw new Error("loadStatementParser() has not been awaited.");
  return parser;
}
