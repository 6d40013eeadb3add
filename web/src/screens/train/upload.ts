// Sends files to the market's store: chunks that the market names, and a manifest that says how they go together.
import { postPlain } from "../../api/client";
import { train as words } from "../../text/en";
import type { Input, Sent } from "./draft";
import type { Part } from "./parts";
import { tarOf } from "./tar";

const CHUNK_BYTES = 4 << 20;
const TYPE = "application/octet-stream";
const CODE_BYTES_MAX = 2 ** 30;

export type OnSent = (sent_bytes: number, all_bytes: number) => void;

interface Sending {
  name: string;
  split: Input["split"];
  mediaType: string;
  headerBytes: number;
  recordBytes: number;
  bytes: Blob;
}

const nameChunk = async (body: Blob, signal: AbortSignal) => (await postPlain("/v1/chunks", { body, type: TYPE }, signal)).hash;
const hex = (bytes: Uint8Array) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

async function sendOne(file: Sending, signal: AbortSignal, onChunk: (bytes: number) => void): Promise<Input> {
  const { bytes, headerBytes, recordBytes } = file;
  const chunks: { hash: string; size: number }[] = [];
  for (let from = 0; from < bytes.size; from += CHUNK_BYTES) {
    const chunk = bytes.slice(from, from + CHUNK_BYTES);
    chunks.push({ hash: await nameChunk(chunk, signal), size: chunk.size });
    onChunk(chunk.size);
  }
  const records = (bytes.size - headerBytes) / recordBytes;
  // In this order and without spaces: the market takes no other form.
  const manifest = JSON.stringify({
    media_type: file.mediaType, size: bytes.size, header_bytes: headerBytes, record_bytes: recordBytes, record_count: records,
    header: hex(new Uint8Array(await bytes.slice(0, headerBytes).arrayBuffer())), chunks,
  });
  return { name: file.name, split: file.split, manifest: await nameChunk(new Blob([manifest]), signal), records };
}

async function sendAll(files: Sending[], signal: AbortSignal, onSent: OnSent): Promise<Input[]> {
  const all = files.reduce((sum, file) => sum + file.bytes.size, 0);
  const inputs: Input[] = [];
  let sent = 0;
  for (const file of files)
    inputs.push(await sendOne(file, signal, (bytes) => onSent((sent += bytes), all)));
  return inputs;
}

export async function sendParts(parts: Part[], signal: AbortSignal, onSent: OnSent): Promise<Input[]> {
  return sendAll(parts.map((part) => ({ ...part, bytes: new Blob([part.bytes]) })), signal, onSent);
}

const isArchive = (name: string) => /\.(tar|tgz|tar\.gz|tar\.zst)$/i.test(name);

// An archive goes as it is; other files in one that is made here.
export async function sendCode(files: File[], signal: AbortSignal, onSent: OnSent): Promise<Sent> {
  const first = files[0]!;
  if (files.some((file) => /\.zip$/i.test(file.name))) throw new Error(words.code.noZip);
  if (files.length > 1 && files.some((file) => isArchive(file.name))) throw new Error(words.code.oneArchive);
  const bytes = isArchive(first.name) ? first : tarOf(files);
  if (bytes.size > CODE_BYTES_MAX) throw new Error(words.code.large);
  if (bytes.size === 0) throw new Error(words.code.empty);
  const inputs = await sendAll(
    [{ name: "files", split: "files", mediaType: "application/x-tar", headerBytes: 0, recordBytes: 1, bytes }], signal, onSent);
  return { name: files.map((file) => file.name).join(", ").slice(0, 200), by: "", inputs, train: {}, rows: files.length, bytes: bytes.size };
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
