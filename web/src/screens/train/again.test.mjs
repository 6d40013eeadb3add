import assert from "node:assert/strict";
import { mock, test } from "node:test";

mock.timers.enable({ apis: ["setInterval"] }); // the page's clock would never end
const [{ draftOf }, { jobFile }] = await Promise.all([import("./again"), import("./draft")]);

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

test("of secrets only the names stay, to be told", () => {
  const draft = draftOf(specOf({ secret_names: ["KEY", "TOKEN"], secret_file: "ab".repeat(16) }), usual);
  assert.deepEqual(draft.secretsBefore, ["KEY", "TOKEN"]);
  assert.deepEqual(draft.rest, {});
  assert.ok(!/secret|KEY|abab/.test(JSON.stringify(jobFile(draft))));
  assert.equal(draftOf(specOf({ secret_names: [], secret_file: "" }), usual).secretsBefore, undefined);
});
