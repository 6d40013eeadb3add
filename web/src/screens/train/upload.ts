// What is sent as what: code as an archive, data as they are.
import { train as words } from "../../text/en";
import { store, type OnProgress } from "./chunks";
import type { Input, Raw, Sent } from "./draft";
import type { Picked } from "./drop";
import { inflated } from "./inflate";
import { tarOf } from "./tar";
import { tarAgain, untarred } from "./untar";
import { apart, hasRequirements, isWheel } from "./wheels";
import { unzipped } from "./zip";

const CODE_BYTES_MAX = 2 ** 30;
const FILES_KEPT = 500;

// The same files give the same: what was sent of them is known by it.
export const identity = (picked: Picked[]) => JSON.stringify(picked.map(({ path, file }) => [path, file.size, file.lastModified]));

const isArchive = (name: string) => /\.(tar|tgz|tar\.gz|tar\.zst)$/i.test(name);
const isZip = (name: string) => /\.zip$/i.test(name);

interface Archive {
  split: "files" | "wheels";
  bytes: Blob;
  of: string;
}

async function sendArchive({ split, bytes, of }: Archive, signal: AbortSignal, onProgress: OnProgress): Promise<Input[]> {
  if (bytes.size > CODE_BYTES_MAX) throw new Error(words.code.large);
  if (bytes.size === 0) throw new Error(words.code.empty);
  const { manifest, records } = await store({ mediaType: "application/x-tar", bytes, of }, signal, onProgress);
  return [{ name: split, split, manifest, records }];
}

const namesOf = (picked: Picked[]) => picked.map(({ path }) => path);
const joined = (picked: Picked[]) => namesOf(picked).join(", ").slice(0, 200);

// What is dropped, taken apart: the code, as it is sent and as it is told of, and the wheels.
interface Parts {
  name: string;
  bytes: Blob | null; // null: no code
  paths: string[]; // of the code's files, as far as they are known
  wheels: Picked[];
}

// Null: it is larger than what is looked into here, or packed by zstd, which a browser cannot unpack.
async function unpackedTar({ path, file }: Picked): Promise<Blob | null> {
  if (/\.zst$/i.test(path)) return null;
  if (!/gz$/i.test(path)) return file;
  return inflated(file, "gzip", CODE_BYTES_MAX).catch(() => { throw new Error(words.code.brokenTar); });
}

// An archive goes as it is, unless there are wheels in it: those are taken out.
async function partsOfTar(archive: Picked): Promise<Parts> {
  const { path: name, file } = archive;
  const unpacked = await unpackedTar(archive);
  if (!unpacked) return { name, bytes: file, paths: [], wheels: [] };
  const inside = await untarred(unpacked);
  const found = inside.filter(({ path, isFile }) => isFile && isWheel(path));
  const { wheels } = apart(found.map(({ path, bytes }) => ({ path, file: new File([bytes], path, { lastModified: file.lastModified }) })));
  const code = inside.filter((each) => !found.includes(each));
  const paths = code.filter(({ isFolder }) => !isFolder).map(({ path }) => path);
  return { name, bytes: !paths.length ? null : found.length ? tarAgain(code) : file, paths, wheels };
}

async function partsOfFiles(dropped: Picked[], inside: Picked[]): Promise<Parts> {
  const { code, wheels } = apart(inside);
  return { name: joined(dropped), bytes: code.length ? tarOf(code) : null, paths: namesOf(code), wheels };
}

async function partsOf(dropped: Picked[]): Promise<Parts> {
  const [first] = dropped;
  if (!first) return { name: "", bytes: null, paths: [], wheels: [] };
  if (dropped.length > 1) {
    if (dropped.some(({ path }) => isArchive(path) || isZip(path))) throw new Error(words.code.oneArchive);
    return partsOfFiles(dropped, dropped);
  }
  if (isArchive(first.path)) return partsOfTar(first);
  return partsOfFiles(dropped, isZip(first.path) ? await unzipped(first.file, CODE_BYTES_MAX) : dropped);
}

async function sendFiles({ name, bytes, paths }: Parts & { bytes: Blob }, of: string, signal: AbortSignal, onProgress: OnProgress): Promise<Sent> {
  const inputs = await sendArchive({ split: "files", bytes, of }, signal, onProgress);
  const files = paths.length === 0 || paths.length > FILES_KEPT ? {} : { files: paths };
  const needs = hasRequirements(paths) ? { hasRequirements: true } : {};
  return { name, by: "", inputs, train: {}, rows: paths.length, bytes: bytes.size, ...files, ...needs };
}

async function sendWheels(wheels: Picked[], signal: AbortSignal, onProgress: OnProgress): Promise<Sent> {
  const bytes = tarOf(wheels, /* isPlain= */ true);
  const inputs = await sendArchive({ split: "wheels", bytes, of: identity(wheels) }, signal, onProgress);
  return { name: joined(wheels), by: "", inputs, train: {}, rows: wheels.length, bytes: bytes.size, files: namesOf(wheels) };
}

// Wheels among what was dropped, also inside an archive, are packages: they go in an archive of their own. What was not
// dropped is not told of.
export async function sendCode(dropped: Picked[], signal: AbortSignal, onProgress: OnProgress): Promise<{ code?: Sent; wheels?: Sent }> {
  const beside = apart(dropped);
  const parts = await partsOf(beside.code);
  const { wheels } = apart([...parts.wheels, ...beside.wheels]);
  const { bytes } = parts;
  if (!bytes && wheels.length === 0) throw new Error(words.code.empty);
  return {
    ...(bytes ? { code: await sendFiles({ ...parts, bytes }, identity(beside.code), signal, onProgress) } : {}),
    ...(wheels.length ? { wheels: await sendWheels(wheels, signal, onProgress) } : {}),
  };
}

const typeOf = (name: string) =>
  isArchive(name) ? "application/x-tar" : isZip(name) ? "application/zip" : "application/octet-stream";

export interface Packed {
  name: string;
  mediaType: string;
  bytes: Blob;
  of: string;
}

// One file or archive goes as it is; several, and folders, in an archive that is made here.
export function pack(picked: Picked[], folder: string): Packed {
  const [first] = picked;
  const isOne = picked.length === 1 && !first!.path.includes("/");
  const name = isOne ? first!.path : `${folder || words.data.folder}.tar`;
  return { name, mediaType: typeOf(name), bytes: isOne ? first!.file : tarOf(picked), of: identity(picked) };
}

export async function sendPacked(packed: Packed, signal: AbortSignal, onProgress: OnProgress): Promise<Raw> {
  if (packed.bytes.size === 0) throw new Error(words.code.empty);
  const { manifest } = await store(packed, signal, onProgress);
  return { name: packed.name, manifest, bytes: packed.bytes.size };
}
