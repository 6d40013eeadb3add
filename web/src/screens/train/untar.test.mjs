import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "node:test";
import { tarAgain, untarred } from "./untar.ts";

const LONG = `${"deep/".repeat(40)}${"n".repeat(120)}.py`;
const WHEEL = "vendor/one-1.0-py3-none-any.whl";

// As tar(1) of this machine packs them.
function packed(t, format) {
  const folder = mkdtempSync(path.join(tmpdir(), "souk-untar-"));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const name of ["main.py", WHEEL, LONG]) {
    mkdirSync(path.join(folder, "in", path.dirname(name)), { recursive: true });
    writeFileSync(path.join(folder, "in", name), `this is ${name}`);
  }
  symlinkSync("main.py", path.join(folder, "in/link.py"));
  const archive = path.join(folder, "a.tar");
  execFileSync("tar", ["--format", format, "-C", path.join(folder, "in"), "-cf", archive, "."]);
  return { folder, bytes: new Blob([readFileSync(archive)]) };
}

for (const format of ["gnu", "pax"])
  test(`what ${format}'s tar packed is found, by its whole name`, async (t) => {
    const { folder, bytes } = packed(t, format);
    const inside = await untarred(bytes);
    const files = inside.filter(({ isFile }) => isFile);
    assert.deepEqual(files.map((each) => each.path).sort(), [LONG, "main.py", WHEEL].sort());
    for (const each of files) assert.equal(await each.bytes.text(), `this is ${each.path}`);
    assert.ok(inside.some((each) => each.path === "link.py" && !each.isFile && !each.isFolder));

    // Without one of them it is an archive of all others, links and long names too.
    const rest = path.join(folder, "rest.tar");
    writeFileSync(rest, Buffer.from(await tarAgain(inside.filter((each) => each.path !== WHEEL)).arrayBuffer()));
    const listed = execFileSync("tar", ["-tf", rest]).toString().trim().split("\n").map((name) => name.replace(/^\.\//, ""));
    assert.ok(listed.includes(LONG) && listed.includes("link.py") && listed.includes("main.py") && !listed.includes(WHEEL));
  });

test("what is damaged, or cut off, is refused", async (t) => {
  const { bytes } = packed(t, "pax");
  await assert.rejects(untarred(bytes.slice(0, 700)), /damaged/);
  const changed = new Uint8Array(await bytes.arrayBuffer());
  changed[3] ^= 1;
  await assert.rejects(untarred(new Blob([changed])), /damaged/);
  await assert.rejects(untarred(new Blob(["no archive at all".repeat(100)])), /damaged/);
});
