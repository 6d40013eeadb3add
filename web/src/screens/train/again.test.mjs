import assert from "node:assert/strict";
import { test } from "node:test";
import { draftOf } from "./again";
import { jobFile } from "./draft";

const archive = (split) => ({ name: split, split, manifest: "0a".repeat(32), records: 10 });
const usual = { resources: { install: "none" }, secret_names: [], market: {} };
const specOf = (more) => ({ name: "mine", runtime: "command", run: "true", num_nodes: 1, num_nodes_max: 1, inputs: [archive("files"), archive("wheels")], ...more });

test("a list of packages is installed from the machines' index again, wheels as wheels", () => {
  const listed = draftOf(specOf({ resources: { install: "index" } }), usual);
  assert.equal(jobFile(listed).resources.install, "index");
  assert.deepEqual(listed.rest, {});
  assert.equal(jobFile({ ...listed, wheels: { ...listed.wheels, install: undefined } }).resources?.install, undefined);
  assert.equal(jobFile({ ...listed, wheels: null }).resources?.install, undefined); // left out: the way goes with them
  assert.equal(jobFile(draftOf(specOf({ resources: { install: "wheels" } }), usual)).resources?.install, undefined);
});

test("of secrets only the names stay, whose values have to be given anew", () => {
  const draft = draftOf(specOf({ secret_names: ["KEY", "TOKEN"], secret_file: "ab".repeat(16) }), usual);
  assert.deepEqual(draft.secrets.map(({ name }) => name), ["KEY", "TOKEN"]);
  assert.deepEqual(draft.rest, {});
  assert.deepEqual(jobFile(draft).secret_names, ["KEY", "TOKEN"]);
  assert.ok(!/abab/.test(JSON.stringify(jobFile(draft))));
  assert.deepEqual(draftOf(specOf({ secret_names: [], secret_file: "" }), usual).secrets, []);
});

test("files of mounts stay at their places, whole or in parts, and are no code", () => {
  const inputs = [archive("files"), { ...archive("mount"), name: "mount-0" }, { ...archive("mount"), name: "mount-1", records: 99 }];
  const given = { inputs, file_mounts: { "rows.csv": { shard: true }, images: {} } };
  const draft = draftOf(specOf(given), usual);
  assert.deepEqual(draft.mounts.map(({ target, isShared, sent }) => [target, isShared, sent.records]), [["images", false, 10], ["rows.csv", true, 99]]);
  assert.deepEqual(draft.code.inputs.map(({ split }) => split), ["files"]);
  const again = jobFile(draft);
  assert.deepEqual(again.file_mounts, { images: {}, "rows.csv": { shard: true } });
  assert.deepEqual(again.inputs, inputs);
  assert.deepEqual(draft.rest, {});
});

test("only code asks for GPUs", () => {
  const resources = { accelerators: "T4:1" };
  assert.equal(jobFile(draftOf(specOf({ resources }), usual)).resources.accelerators, "T4:1");
  const model = draftOf(specOf({ runtime: "native", run: undefined, inputs: [], resources, train: { model: "mlp", data: "mnist" } }), usual);
  assert.equal(jobFile(model).resources?.accelerators, undefined);
});
