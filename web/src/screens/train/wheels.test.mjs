import assert from "node:assert/strict";
import test from "node:test";
import { tarOf } from "./tar.ts";
import { apart, hasRequirements, WHEELS_MAX } from "./wheels.ts";

const file = (path, lastModified = 1) => ({ path, file: new File([path], path, { lastModified }) });
const paths = (picked) => picked.map(({ path }) => path);

test("wheels are told from the code, wherever they lie in it", () => {
  const { code, wheels } = apart(["main.py", "more/two-1-py3-none-any.whl", "one-1.0-py3-none-any.whl", "whl.txt"].map((path) => file(path)));
  assert.deepEqual(paths(code), ["main.py", "whl.txt"]);
  assert.deepEqual(paths(wheels), ["one-1.0-py3-none-any.whl", "two-1-py3-none-any.whl"]);
});

test("what pip would not take for a wheel, or twice, is refused", () => {
  assert.throws(() => apart([file("mine.whl")]), /mine\.whl is no wheel/);
  assert.throws(() => apart([file("a-1-py3-none-any.whl"), file("more/a-1-py3-none-any.whl")]), /there twice/);
  const many = Array.from({ length: WHEELS_MAX + 1 }, (_, at) => file(`a${at}-1-py3-none-any.whl`));
  assert.equal(apart(many.slice(1)).wheels.length, WHEELS_MAX);
  assert.throws(() => apart(many), /More than 512/);
});

test("requirements are those of the working folder", () => {
  assert.ok(hasRequirements(["main.py", "requirements.txt"]));
  assert.ok(hasRequirements(["requirements-gpu.txt"]));
  assert.ok(!hasRequirements(["docs/requirements.txt", "requirements.py"]));
});

test("the same wheels make the same archive, whenever they were fetched", async () => {
  const archive = async (saved_ms) => Buffer.from(await tarOf(apart([file("b-1-py3-none-any.whl", saved_ms), file("a-1-py3-none-any.whl", saved_ms)]).wheels, true).arrayBuffer());
  assert.ok((await archive(1)).equals(await archive(1_700_000_000_000)));
});
