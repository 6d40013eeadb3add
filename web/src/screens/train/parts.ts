// A table as the files that machines train with: idx files of what is known and what is to be told, and how to bring
// further rows into the same shape. The same parts that `souk job submit` sends (src/train/import_parts.h).
import type { Table } from "./table";
import type { Input, Json } from "./draft";

const TEST_ROWS_MAX = 10_000;
const IDX = { byte: 0x08, int: 0x0c, float: 0x0d } as const;

export interface Part {
  name: string;
  split: Input["split"];
  mediaType: string;
  headerBytes: number;
  recordBytes: number;
  bytes: Uint8Array<ArrayBuffer>;
}

export interface Parts {
  parts: Part[];
  train: Json; // what the job file says of them
}

// Seeded: the same file gives the same parts, which the market then has already.
function shuffled(count: number, seed: number): Uint32Array {
  const order = Uint32Array.from({ length: count }, (_none, at) => at);
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  for (let at = count - 1; at > 0; at--) {
    const other = Math.floor(next() * (at + 1));
    [order[at], order[other]] = [order[other]!, order[at]!];
  }
  return order;
}

interface Scale {
  mean: number;
  deviation: number;
}

// Two passes: the squares of large values would drown what lies between them. What never changes is left where it is.
function scaleOf(valueAt: (row: number) => number, rows: Uint32Array): Scale {
  let mean = 0, squares = 0;
  for (const row of rows) mean += valueAt(row) / rows.length;
  for (const row of rows) squares += (valueAt(row) - mean) ** 2;
  const deviation = Math.sqrt(squares / rows.length);
  return { mean, deviation: deviation > 1e-12 * Math.abs(mean) ? deviation : 1 };
}

function idx(element: number, sizes: number[]): { bytes: Uint8Array<ArrayBuffer>; view: DataView; headerBytes: number } {
  const headerBytes = 4 + 4 * sizes.length;
  const elements = sizes.reduce((product, size) => product * size, 1);
  const bytes = new Uint8Array(headerBytes + elements * (element === IDX.byte ? 1 : 4));
  const view = new DataView(bytes.buffer);
  view.setUint16(2, (element << 8) | sizes.length);
  sizes.forEach((size, at) => view.setUint32(4 + 4 * at, size));
  return { bytes, view, headerBytes };
}

function valuesPart(table: Table, rows: Uint32Array, scales: Scale[]): Pick<Part, "bytes" | "headerBytes" | "recordBytes"> {
  const width = table.features.length;
  const { bytes, view, headerBytes } = idx(IDX.float, [rows.length, width]);
  rows.forEach((row, at) => {
    for (let place = 0; place < width; place++) {
      const { mean, deviation } = scales[place]!;
      view.setFloat32(headerBytes + 4 * (at * width + place), (table.values[row * width + place]! - mean) / deviation);
    }
  });
  return { bytes, headerBytes, recordBytes: 4 * width };
}

function targetsPart(table: Table, rows: Uint32Array, scale: Scale): Pick<Part, "bytes" | "headerBytes" | "recordBytes"> {
  const element = table.classes.length === 0 ? IDX.float : table.classes.length <= 256 ? IDX.byte : IDX.int;
  const { bytes, view, headerBytes } = idx(element, [rows.length]);
  rows.forEach((row, at) => {
    const told = table.targets[row]!;
    if (element === IDX.float) view.setFloat32(headerBytes + 4 * at, (told - scale.mean) / scale.deviation);
    else if (element === IDX.byte) view.setUint8(headerBytes + at, told);
    else view.setInt32(headerBytes + 4 * at, told);
  });
  return { bytes, headerBytes, recordBytes: element === IDX.byte ? 1 : 4 };
}

function columnsJson(table: Table, scales: Scale[], target: Scale): string {
  const isNumber = table.classes.length === 0;
  return `${JSON.stringify({
    form: "floats", target: isNumber ? "number" : "class", label: table.label, width: table.features.length, classes: table.classes,
    features: table.features.map(({ name }, at) => ({ name, ...scales[at]! })),
    ...(isNumber ? { target_mean: target.mean, target_deviation: target.deviation } : {}),
  })}\n`;
}

// `isAllTest`: of data that lie at lenders the borrower's own part is the test, whole.
export function partsOf(table: Table, seed: number, isAllTest: boolean): Parts {
  const order = shuffled(table.rows, seed);
  const tests = isAllTest ? table.rows : Math.min(Math.floor(table.rows / 10), TEST_ROWS_MAX);
  const test = order.subarray(0, tests), learnt = order.subarray(tests);
  const measured = isAllTest ? test : learnt;
  const width = table.features.length;
  const scales = table.features.map(({ isScaled }, place): Scale =>
    isScaled ? scaleOf((row) => table.values[row * width + place]!, measured) : { mean: 0, deviation: 1 });
  const isNumber = table.classes.length === 0;
  const target = isNumber ? scaleOf((row) => table.targets[row]!, measured) : { mean: 0, deviation: 1 };
  const parts: Part[] = [];
  const mediaType = "application/x-idx";
  for (const [split, rows] of [["train", learnt], ["test", test]] as const) {
    if (rows.length === 0) continue;
    parts.push({ name: `${split}-images`, split, mediaType, ...valuesPart(table, rows, scales) });
    parts.push({ name: `${split}-labels`, split, mediaType, ...targetsPart(table, rows, target) });
  }
  parts.push({
    name: "columns", split: isAllTest ? "all" : "test", mediaType: "application/json", headerBytes: 0, recordBytes: 1,
    bytes: new TextEncoder().encode(columnsJson(table, scales, target)) as Uint8Array<ArrayBuffer>,
  });
  return {
    parts,
    train: { features: width, ...(isNumber ? { target_deviation: target.deviation } : { classes: table.classes.length }) },
  };
}
