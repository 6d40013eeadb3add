// Files of a program's file_mounts as the one file they travel in (src/runtime/mount_index.h): an index, then the bytes of
// all files in the order of their paths.
import { train as words } from "../../text/en";
import type { Picked } from "./drop";

const HEADER_BYTES = 16;
const FILES_MAX = 30_000;
const FOLDERS_MAX = 30_000;
const PATH_BYTES_MAX = 1024;
const DEPTH_MAX = 32;
const CUTS_MAX = 8192;
const BYTES_MAX = 64 * 2 ** 30;

export interface PackedMount {
  bytes: Blob;
  headerBytes: number;
  files: number;
  parts: number; // how many ranks can share it: its files, or of a single one its stretches of lines
}

export const MOUNT_TYPE = "application/x-souk-mount";

const encoder = new TextEncoder();
export const compareBytes = (a: Uint8Array, b: Uint8Array): number => {
  const at = a.findIndex((byte, index) => byte !== b[index]);
  return at < 0 ? a.length - b.length : (a[at] ?? -1) - (b[at] ?? -1);
};
// As the market orders them.
export const byBytes = (a: string, b: string) => compareBytes(encoder.encode(a), encoder.encode(b));

const isCompressed = (name: string) => /\.(gz|zst|bz2|xz|zip)$/.test(name);

function checkPath(path: string): void {
  const names = path.split("/");
  const isOdd = names.some((name) => name === "" || name === "." || name === ".." || /[\u0000-\u001f\u007f]/.test(name));
  if (isOdd || names.length > DEPTH_MAX || encoder.encode(path).length > PATH_BYTES_MAX) throw new Error(words.mounts.oddPath(path.slice(0, 60)));
}

// Where lines begin, about evenly: as many as an index holds, and no more than there are.
export async function cutsOf(file: Blob): Promise<number[]> {
  const { size } = file;
  const cuts = size > 0 ? [0] : [];
  const wanted = () => Math.max(Math.floor((size * cuts.length) / CUTS_MAX), cuts.at(-1)!);
  const reader = file.stream().getReader();
  let at = 0;
  for (let step = await reader.read(); !step.done; at += step.value.length, step = await reader.read()) {
    while (cuts.length < CUTS_MAX) {
      const from = Math.max(0, wanted() - at);
      const found = from < step.value.length ? step.value.indexOf(10, from) : -1;
      if (found < 0 || at + found + 1 >= size) break;
      cuts.push(at + found + 1);
    }
  }
  return cuts;
}

class Writer {
  private readonly pieces: Uint8Array<ArrayBuffer>[] = [];

  put(size: number, write: (view: DataView) => void): void {
    const piece = new Uint8Array(size);
    write(new DataView(piece.buffer));
    this.pieces.push(piece);
  }

  u8 = (value: number) => this.put(1, (view) => view.setUint8(0, value));
  u32 = (value: number) => this.put(4, (view) => view.setUint32(0, value, true));
  u64 = (value: number) => this.put(8, (view) => view.setBigUint64(0, BigInt(value), true));
  text = (value: string) => {
    const bytes = encoder.encode(value);
    this.u32(bytes.length);
    this.pieces.push(bytes);
  };
  done = () => new Blob(this.pieces);
}

function indexOf(sorted: Picked[], isSingle: boolean, cuts: number[]): Blob {
  const index = new Writer();
  index.u8(1);
  index.u8(isSingle ? 1 : 0);
  index.u32(sorted.length);
  for (const { path, file } of sorted) {
    index.text(path);
    index.u64(file.size);
    index.u8(0); // a browser does not tell what may be executed
  }
  index.u32(cuts.length);
  cuts.forEach(index.u64);
  return index.done();
}

function check(picked: Picked[]): void {
  const folders = new Set(picked.flatMap(({ path }) => path.split("/").slice(0, -1).map((_name, at, names) => names.slice(0, at + 1).join("/"))));
  if (picked.length === 0) throw new Error(words.code.empty);
  if (picked.length > FILES_MAX || folders.size > FOLDERS_MAX) throw new Error(words.mounts.manyFiles(FILES_MAX));
  if (picked.reduce((sum, { file }) => sum + file.size, 0) > BYTES_MAX) throw new Error(words.mounts.large);
  picked.forEach(({ path }) => checkPath(path));
}

// One file that was chosen is a file there, everything else a folder.
export async function mountOf(picked: Picked[], isFolder: boolean): Promise<PackedMount> {
  check(picked);
  const isSingle = !isFolder && picked.length === 1 && !picked[0]!.path.includes("/");
  const sorted = picked.map((each) => ({ ...each, key: encoder.encode(each.path) })).sort((a, b) => compareBytes(a.key, b.key));
  const cuts = isSingle && !isCompressed(sorted[0]!.path) ? await cutsOf(sorted[0]!.file) : [];
  const index = indexOf(sorted, isSingle, cuts);
  const header = new Writer();
  header.put(8, (view) => new Uint8Array(view.buffer).set(encoder.encode("soukmnt1")));
  header.u64(index.size);
  const bytes = new Blob([header.done(), index, ...sorted.map(({ file }) => file)]);
  return { bytes, headerBytes: HEADER_BYTES, files: sorted.length, parts: isSingle ? cuts.length : sorted.length };
}
