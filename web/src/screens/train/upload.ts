// What is sent as what: code as an archive, a table's parts as records.
import { train as words } from "../../text/en";
import { store, type OnProgress } from "./chunks";
import type { Input, Sent } from "./draft";
import type { Picked } from "./drop";
import type { Part } from "./parts";
import { tarOf } from "./tar";

const CODE_BYTES_MAX = 2 ** 30;
const FILES_KEPT = 500;

// The same files give the same: what was sent of them is known by it.
export const identity = (picked: Picked[]) => JSON.stringify(picked.map(({ path, file }) => [path, file.size, file.lastModified]));

const isArchive = (name: string) => /\.(tar|tgz|tar\.gz|tar\.zst)$/i.test(name);

// An archive goes as it is; other files in one that is made here.
export async function sendCode(picked: Picked[], signal: AbortSignal, onProgress: OnProgress): Promise<Sent> {
  const [first] = picked;
  const isOne = picked.length === 1 && isArchive(first!.path);
  if (picked.some(({ path }) => /\.zip$/i.test(path))) throw new Error(words.code.noZip);
  if (!isOne && picked.some(({ path }) => isArchive(path))) throw new Error(words.code.oneArchive);
  const bytes = isOne ? first!.file : tarOf(picked);
  if (bytes.size > CODE_BYTES_MAX) throw new Error(words.code.large);
  if (bytes.size === 0) throw new Error(words.code.empty);
  const { manifest, records } = await store({ mediaType: "application/x-tar", bytes, of: identity(picked) }, signal, onProgress);
  const paths = picked.map(({ path }) => path);
  const inputs: Input[] = [{ name: "files", split: "files", manifest, records }];
  const files = isOne || paths.length > FILES_KEPT ? {} : { files: paths };
  return { name: paths.join(", ").slice(0, 200), by: "", inputs, train: {}, rows: paths.length, bytes: bytes.size, ...files };
}

export async function sendParts(parts: Part[], signal: AbortSignal, onProgress: OnProgress): Promise<Input[]> {
  const inputs: Input[] = [];
  for (const { name, split, bytes, ...part } of parts)
    inputs.push({ name, split, ...(await store({ ...part, bytes: new Blob([bytes]) }, signal, onProgress)) });
  return inputs;
}

// The text of a file, as it is or by gzip.
export async function textOf(file: File, bytesMax: number): Promise<string> {
  const magic = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  const isGzip = magic[0] === 0x1f && magic[1] === 0x8b;
  const stream = isGzip ? file.stream().pipeThrough(new DecompressionStream("gzip")) : file.stream();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const reader = stream.getReader();
  let text = "";
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.length;
    if (bytes > bytesMax) {
      await reader.cancel();
      throw new Error(words.table.large);
    }
    try {
      text += decoder.decode(value, { stream: true });
    } catch {
      throw new Error(words.table.notText);
    }
  }
}
