// What an entry of the statement is about, in words.
import { wallet as words } from "../text/en";
import type { Entry } from "./store";

// As the market's memos name them.
const WELCOME = "sign-up grant";
const MATCHED = "grant earned by lease ";

export const isMatched = (entry: Entry) => entry.kind === "grant" && entry.memo.startsWith(MATCHED);

export function entryWords(entry: Entry): string {
  if (entry.kind === "transfer") return words.transfers[entry.direction];
  if (entry.kind === "grant" && entry.memo === WELCOME) return words.grants.welcome;
  return isMatched(entry) ? words.grants.matched : words.kinds[entry.kind];
}
