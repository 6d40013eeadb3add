import assert from "node:assert/strict";
import test from "node:test";
import { byBytes, cutsOf, mountOf } from "./mount.ts";

const file = (path, text) => ({ path, file: new File([text], path) });
const bytesOf = async (mount) => Buffer.from(await mount.bytes.arrayBuffer());

test("a folder is packed as src/runtime/mount_index.h says, byte by byte", async () => {
  const mount = await mountOf([file("b/c", "22"), file("a", "1")], true);
  const index = Buffer.concat([
    Buffer.from([1, 0, 2, 0, 0, 0]),
    Buffer.from([1, 0, 0, 0]), Buffer.from("a"), Buffer.from([1, 0, 0, 0, 0, 0, 0, 0, 0]),
    Buffer.from([3, 0, 0, 0]), Buffer.from("b/c"), Buffer.from([2, 0, 0, 0, 0, 0, 0, 0, 0]),
    Buffer.from([0, 0, 0, 0]),
  ]);
  const header = Buffer.concat([Buffer.from("soukmnt1"), Buffer.from([index.length, 0, 0, 0, 0, 0, 0, 0])]);
  assert.ok((await bytesOf(mount)).equals(Buffer.concat([header, index, Buffer.from("122")])));
  assert.deepEqual([mount.headerBytes, mount.files, mount.parts], [16, 2, 2]);
});

test("one file is a file, with the places where its lines begin; one in a folder is a folder", async () => {
  const single = await mountOf([file("rows.csv", "one\ntwo\n\nfour")], false);
  assert.equal(single.parts, 4);
  assert.equal((await bytesOf(single))[16 + 1], 1);
  const folder = await mountOf([file("rows.csv", "one\ntwo\n")], true);
  assert.deepEqual([folder.parts, (await bytesOf(folder))[16 + 1]], [1, 0]);
  assert.equal((await mountOf([file("rows.csv.gz", "packed\n\n")], false)).parts, 0);
});

// The same rule as src/runtime/mount_pack.c, without streams.
function plainCuts(bytes) {
  const cuts = bytes.length ? [0] : [];
  for (let at = 1; at < 8192 && bytes.length; at++) {
    const from = Math.max(Math.floor((bytes.length * at) / 8192), cuts.at(-1));
    const end = from < bytes.length ? bytes.indexOf(10, from) : -1;
    if (end < 0 || end + 1 >= bytes.length) break;
    cuts.push(end + 1);
  }
  return cuts;
}

test("lines are cut where the command line would cut them, however the file comes in pieces", async () => {
  const long = Array.from({ length: 60_000 }, (_, at) => "x".repeat(at % 97)).join("\n");
  for (const text of ["", "\n", "one", "one\n", "one\ntwo", "\n\n\n", `${"y".repeat(300_000)}\nz`, long, `${long}\n`])
    assert.deepEqual(await cutsOf(new Blob([text])), plainCuts(Buffer.from(text)), `${text.length} characters`);
});

test("what the market would not take is refused before it is sent", async () => {
  await assert.rejects(mountOf([], false), /nothing in it/);
  await assert.rejects(mountOf([file("a/../b", "")], true), /cannot travel/);
  await assert.rejects(mountOf([file("a\nb", "")], false), /cannot travel/);
  await assert.rejects(mountOf([file(`${"d/".repeat(40)}f`, "")], true), /cannot travel/);
  await assert.rejects(mountOf(Array.from({ length: 30_001 }, (_, at) => file(`f${at}`, "")), true), /More than 30000/);
});

test("places are in the order of their bytes", () => {
  assert.deepEqual(["b", "a/b", "\u{1f600}", "\uffee", "a"].sort(byBytes), ["a", "a/b", "b", "\uffee", "\u{1f600}"]);
});
