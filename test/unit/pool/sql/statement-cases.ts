// The whole table of statements with their expected classes.
import type { CaseGroup } from "./case-group.ts";
import { PINNING } from "./pinning-cases.ts";
import { PRIMARY_WITHOUT_PIN } from "./primary-cases.ts";
import { READS } from "./read-cases.ts";
import { TRANSACTIONS } from "./transaction-cases.ts";

export const ALL_CASES: readonly CaseGroup[] = [
  ...READS,
  ...PRIMARY_WITHOUT_PIN,
  ...PINNING,
  ...TRANSACTIONS,
];
