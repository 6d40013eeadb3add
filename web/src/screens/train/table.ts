// A table as numbers: what `souk job submit` makes of a CSV file on the borrower's machine, made in the browser.
//
// A row becomes its numbers, then a place for each value of each column of words. Classes are numbered in their order.
import { train as words } from "../../text/en";
import { csvRows, isMissing, numberOf, type CsvRow } from "./csv";
import type { Reading } from "./draft";

const CLASSES_MAX = 1000;
const VALUES_MAX = 1000; // of a column of words
const WIDTH_MAX = 16_384;
const NAME_BYTES_MAX = 63;
const ROWS_MIN = 10;

export interface Feature {
  name: string;
  isScaled: boolean;
}

export interface Table {
  features: Feature[];
  label: string;
  classes: string[]; // none where a number is told
  values: Float32Array; // [rows, features]
  targets: Float64Array;
  rows: number;
  droppedRows: number;
  filledValues: number;
}

interface Column {
  name: string;
  isLabel: boolean;
  isWords: boolean;
  sum: number;
  count: number;
  missing: number;
  values: Set<string>;
  place: number;
}

const bytesOf = (name: string) => new TextEncoder().encode(name).length;

// A word where a number must be makes the first line one of names; the last column may be the label's.
export function hasHeading(first: CsvRow, reading: Reading): boolean {
  const isNumber = first.fields.map((field) => !Number.isNaN(numberOf(field)));
  if (reading.categories !== "refuse") return !isNumber.some(Boolean);
  return first.fields.some((field, at) => !isNumber[at] && field !== "" && at + 1 < first.fields.length);
}

export function columnNames(first: CsvRow, reading: Reading): string[] {
  const named = hasHeading(first, reading);
  return first.fields.map((field, at) => (named && field ? field : String(at + 1)));
}

function columnsOf(first: CsvRow, reading: Reading): Column[] {
  const names = columnNames(first, reading);
  if (names.length < 2) throw new Error(words.table.oneColumn);
  const long = names.find((name) => bytesOf(name) > NAME_BYTES_MAX);
  if (long !== undefined) throw new Error(words.table.longName(long.slice(0, 40), NAME_BYTES_MAX));
  const label = reading.label ? names.indexOf(reading.label) : names.length - 1;
  if (label < 0) throw new Error(words.table.noColumn(reading.label));
  return names.map((name, at) =>
    ({ name, isLabel: at === label, isWords: false, sum: 0, count: 0, missing: 0, values: new Set<string>(), place: 0 }));
}

function see(columns: Column[], row: CsvRow, reading: Reading): void {
  if (row.fields.length !== columns.length) throw new Error(words.table.fields(row.line, row.fields.length, columns.length));
  columns.forEach((column, at) => {
    const field = row.fields[at]!;
    if (column.isLabel) return;
    if (isMissing(field)) {
      column.missing++;
      return;
    }
    if (reading.categories === "one-hot" && column.values.size <= VALUES_MAX) column.values.add(field);
    const number = numberOf(field);
    if (Number.isFinite(Math.fround(number))) {
      column.sum += number;
      column.count++;
      return;
    }
    if (reading.categories === "refuse") throw new Error(words.table.notNumber(row.line, column.name, field.slice(0, 40)));
    column.isWords = true;
  });
}

function layOut(columns: Column[], reading: Reading): Feature[] {
  const features: Feature[] = [];
  for (const column of columns) {
    if (column.isLabel || column.isWords) continue;
    if (column.missing && reading.missing === "refuse") throw new Error(words.table.missing(column.name, column.missing));
    if (!column.count && reading.missing === "mean") throw new Error(words.table.allMissing(column.name));
    column.place = features.push({ name: column.name, isScaled: true }) - 1;
  }
  for (const column of columns) {
    if (!column.isWords) continue;
    if (column.values.size > VALUES_MAX) throw new Error(words.table.manyValues(column.name, VALUES_MAX));
    column.place = features.length;
    column.values = new Set([...column.values].sort());
    for (const value of column.values) features.push({ name: `${column.name}=${value.slice(0, 64)}`, isScaled: false });
  }
  if (features.length > WIDTH_MAX) throw new Error(words.table.wide(features.length, WIDTH_MAX));
  return features;
}

// Numbers in their order, then words in theirs: the same data give the same classes whatever the order of rows.
function compareClasses(a: string, b: string): number {
  const x = numberOf(a), y = numberOf(b);
  if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1;
  return (x - y) || (a < b ? -1 : Number(a > b));
}

class Filling {
  readonly values: Float32Array;
  readonly labels: string[] = [];
  private readonly places: Map<string, number>[];
  rows = 0;
  dropped = 0;
  filled = 0;

  constructor(private readonly columns: Column[], private readonly width: number, count: number, private readonly reading: Reading) {
    this.values = new Float32Array(width * count);
    this.places = columns.map((column) => new Map([...column.values].map((value, at) => [value, column.place + at])));
  }

  add(row: CsvRow): void {
    const label = this.columns.findIndex((column) => column.isLabel);
    if (this.reading.missing === "drop" && row.fields.some(isMissing)) {
      this.dropped++;
      return;
    }
    if (isMissing(row.fields[label]!)) throw new Error(words.table.noLabel(row.line));
    const from = this.rows * this.width;
    this.columns.forEach((column, at) => {
      const field = row.fields[at]!;
      if (column.isLabel) return;
      if (column.isWords) {
        const place = this.places[at]!.get(field);
        if (place !== undefined) this.values[from + place] = 1;
        return;
      }
      const isGap = isMissing(field);
      if (isGap) this.filled++;
      this.values[from + column.place] = isGap ? column.sum / column.count : numberOf(field);
    });
    const told = row.fields[label]!;
    if (this.reading.predict === "number" && !Number.isFinite(Math.fround(numberOf(told))))
      throw new Error(words.table.notNumber(row.line, this.columns[label]!.name, told.slice(0, 40)));
    this.labels.push(told);
    this.rows++;
  }
}

function classesOf(labels: string[]): string[] {
  const classes = [...new Set(labels)].sort(compareClasses);
  if (classes.length < 2) throw new Error(words.table.oneClass);
  if (classes.length > CLASSES_MAX) throw new Error(words.table.manyClasses(CLASSES_MAX));
  const long = classes.find((name) => bytesOf(name) > NAME_BYTES_MAX);
  if (long !== undefined) throw new Error(words.table.longName(long.slice(0, 40), NAME_BYTES_MAX));
  return classes;
}

export function readTable(text: string, reading: Reading): Table {
  let columns: Column[] | undefined;
  let isNamed = false;
  let count = 0;
  for (const row of csvRows(text)) {
    if (!columns) {
      columns = columnsOf(row, reading);
      isNamed = hasHeading(row, reading);
      if (isNamed) continue;
    }
    see(columns, row, reading);
    count++;
  }
  if (!columns) throw new Error(words.table.empty);
  const features = layOut(columns, reading);
  const filling = new Filling(columns, features.length, count, reading);
  let isFirst = true;
  for (const row of csvRows(text)) {
    if (!(isFirst && isNamed)) filling.add(row);
    isFirst = false;
  }
  if (filling.rows < ROWS_MIN) throw new Error(words.table.fewRows(filling.rows, ROWS_MIN));
  const isNumber = reading.predict === "number";
  const classes = isNumber ? [] : classesOf(filling.labels);
  const numberOfClass = new Map(classes.map((name, at) => [name, at]));
  return {
    features, classes, label: columns.find((column) => column.isLabel)!.name, rows: filling.rows,
    values: filling.values.subarray(0, filling.rows * features.length),
    targets: Float64Array.from(filling.labels, (told) => (isNumber ? Math.fround(numberOf(told)) : numberOfClass.get(told)!)),
    droppedRows: filling.dropped, filledValues: filling.filled,
  };
}
