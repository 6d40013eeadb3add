// Rows of fields, as somebody else's program wrote them. The rules are those of `souk job submit` (docs/data.md): the
// separator is the first of comma, semicolon and tab that the first line has, or else blanks; fields may stand in quotes.
import { train as words } from "../../text/en";

export interface CsvRow {
  line: number; // where it begins, from 1
  fields: string[];
}

const MISSING = new Set(["", "na", "n/a", "nan", "null", "none", "?"]);
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;
export const COLUMNS_MAX = 4096;

export const isMissing = (field: string) => MISSING.has(field.toLowerCase());

// NaN for what is no decimal number.
export const numberOf = (field: string) => (NUMBER.test(field) ? Number(field) : NaN);

function separatorOf(text: string): string {
  const end = text.indexOf("\n");
  const first = end < 0 ? text : text.slice(0, end);
  return [",", ";", "\t"].find((mark) => first.includes(mark)) ?? " ";
}

class Reader {
  private at: number;
  private line = 1;
  private readonly separator: string;

  constructor(private readonly text: string) {
    this.at = text.charCodeAt(0) === 0xfeff ? 1 : 0;
    this.separator = separatorOf(text);
  }

  private isBreak(at: number): boolean {
    const mark = this.text[at];
    return mark === undefined || mark === "\n" || mark === "\r";
  }

  private quoted(): string {
    const begun = this.line;
    let value = "";
    for (this.at++; ; this.at++) {
      const mark = this.text[this.at];
      if (mark === undefined) throw new Error(words.table.openQuote(begun));
      if (mark === '"' && this.text[this.at + 1] !== '"') break;
      if (mark === '"') this.at++;
      if (mark === "\n") this.line++;
      value += mark;
    }
    this.at++;
    while (this.text[this.at] === " ") this.at++;
    if (!this.isBreak(this.at) && this.text[this.at] !== this.separator && this.separator !== " ")
      throw new Error(words.table.afterQuote(this.line));
    return value;
  }

  private field(): string {
    while (this.text[this.at] === " ") this.at++;
    if (this.text[this.at] === '"') return this.quoted();
    const from = this.at;
    while (!this.isBreak(this.at) && this.text[this.at] !== this.separator) this.at++;
    return this.text.slice(from, this.at).trim();
  }

  private fields(): string[] {
    const found: string[] = [];
    for (;;) {
      found.push(this.field());
      if (found.length > COLUMNS_MAX) throw new Error(words.table.manyColumns(this.line, COLUMNS_MAX));
      if (this.separator === " ") while (this.text[this.at] === " ") this.at++;
      else if (this.text[this.at] === this.separator) {
        this.at++;
        continue;
      }
      if (this.isBreak(this.at)) return found;
    }
  }

  // The next row that has something in it; null at the end.
  next(): CsvRow | null {
    while (this.at < this.text.length) {
      const line = this.line;
      const fields = this.fields();
      if (this.text[this.at] === "\r") this.at++;
      if (this.text[this.at] === "\n") this.at++;
      this.line++;
      if (fields.length > 1 || fields[0] !== "") return { line, fields };
    }
    return null;
  }
}

export function* csvRows(text: string): Generator<CsvRow> {
  const reader = new Reader(text);
  for (let row = reader.next(); row; row = reader.next()) yield row;
}

// The first rows, to show what the file looks like.
export function csvHead(text: string, count: number): CsvRow[] {
  const head: CsvRow[] = [];
  for (const row of csvRows(text)) {
    head.push(row);
    if (head.length === count) break;
  }
  return head;
}
