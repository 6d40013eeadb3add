// "Train again with changes": the wizard filled from a job that was submitted.
import { marketNow } from "../../core/clock";
import { durationOf } from "../jobs/progress";
import { emptyDraft, groups, isOffered, localMinute, ofRuntime, readBy, type Draft, type Group, type Input, type Json, type Layer, type Mount, type Sent } from "./draft";
import { byBytes } from "./mount";

const text = (value: unknown): string => (value === undefined || value === null ? "" : String(value));
const record = (value: unknown): Json => (typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {});

// Takes the named fields out of `from`; what is left has no field in the wizard.
function take(from: Json, ...names: string[]): Json {
  const taken: Json = {};
  for (const name of names) {
    if (from[name] !== undefined) taken[name] = from[name];
    delete from[name];
  }
  return taken;
}

const layerOf = (given: unknown): Layer => {
  const { type, ...values } = record(given);
  return { type: text(type), values: Object.fromEntries(Object.entries(values).map(([name, value]) => [name, text(value)])) };
};

// "0.25+": a quarter at least.
const amount = (value: unknown): [string, boolean] => [text(value).replace(/\+$/, ""), text(value).endsWith("+")];

function startOf(words: string): Pick<Draft, "start" | "before"> {
  const [, way, when = ""] = /^(by|cheapest before) (.*)$/.exec(words) ?? [];
  const at_ms = /^\d{4}-/.test(when) ? Date.parse(when) : marketNow() + durationOf(when);
  const isPast = !(at_ms > marketNow());
  return { start: way === "by" ? "by" : way ? "cheapest" : "now", before: isPast || !way ? emptyDraft().before : localMinute(at_ms) };
}

const sentOf = (name: string, inputs: Input[], train: Json): Sent | null =>
  inputs.length ? { name, by: "", inputs, train, rows: 0, bytes: 0 } : null;

function dataOf(train: Json, inputs: Input[]): Partial<Draft> {
  const { data, test } = take(train, "data", "test");
  const shape = take(train, "channels", "height", "features", "vocabulary", "classes", "mean", "deviation", "target_deviation");
  const isPeer = text(data).startsWith("peer://");
  if (!isPeer && !/[./]/.test(text(data)))
    return { source: "catalogue", dataset: text(data), sent: sentOf(text(data), inputs, {}) };
  const file = text(isPeer ? test : data).replace(/^\.\//, "");
  return { source: isPeer ? "peer" : "upload", file, sent: sentOf(file, inputs, shape), peer: isPeer ? text(data).slice("peer://".length) : "" };
}

function trainOf(train: Json, inputs: Input[]): Partial<Draft> {
  const data = dataOf(train, inputs);
  const { model, layers, loss, batch, epochs } = take(train, "model", "layers", "loss", "batch", "epochs");
  const optimizer = record(train.optimizer);
  const { name, lr, momentum, weight_decay } = take(optimizer, "name", "lr", "momentum", "weight_decay");
  const target = record(train.target);
  const { accuracy } = take(target, "accuracy");
  return {
    ...data,
    kind: Array.isArray(layers) && layers.length ? "layers" : "model",
    ...(model ? { model: text(model) } : {}),
    ...(Array.isArray(layers) && layers.length ? { layers: layers.map(layerOf) } : {}),
    loss: text(loss), batch: text(batch), epochs: text(epochs), accuracy: text(accuracy),
    optimizer: text(name) || "sgd", rate: text(lr), momentum: text(momentum), decay: text(weight_decay),
  };
}

function filesOf(inputs: Input[]): Sent | null {
  const bytes = inputs.reduce((sum, input) => sum + input.records, 0); // each record of theirs is a byte
  return inputs.length ? { name: "", by: "", inputs, train: {}, rows: 0, bytes } : null;
}

// Their inputs are named by the order of their places.
function mountsOf(file_mounts: Json, inputs: Input[]): Mount[] {
  return Object.keys(file_mounts).sort(byBytes).map((target, at): Mount => {
    const found = inputs.find(({ split, name }) => split === "mount" && name === `mount-${at}`);
    return {
      id: at + 1, target, isShared: record(file_mounts[target]).shard === true, way: "upload", url: "",
      sent: found ? { name: "", url: "", manifest: found.manifest, records: found.records, bytes: found.records, files: 0, parts: 0 } : null,
    };
  });
}

function codeOf(spec: Json, resources: Json, inputs: Input[]): Partial<Draft> {
  const { envs, setup, run, file_mounts, secret_names } = take(spec, "envs", "setup", "run", "file_mounts", "secret_names", "secret_file");
  const wheels = inputs.filter(({ split }) => split === "wheels");
  const install = wheels.length ? take(resources, "install").install : undefined; // it goes with them
  const packages = filesOf(wheels);
  return {
    kind: "code", run: text(run), setup: text(setup),
    envs: Object.entries(record(envs)).map(([name, value]) => `${name}=${text(value)}`).join("\n"),
    network: text(take(resources, "network").network),
    code: filesOf(inputs.filter(({ split }) => split !== "wheels" && split !== "mount")),
    secrets: (Array.isArray(secret_names) ? secret_names : []).map((name, at) => ({ id: at + 1, name: text(name) })),
    mounts: mountsOf(record(file_mounts), inputs),
    wheels: packages && install === "index" ? { ...packages, install } : packages,
  };
}

// Fields with nothing in them, and those that are as they are without being said.
function tidy(rest: Json, usual: Json): Json {
  return Object.fromEntries(
    Object.entries(rest)
      .map(([name, value]): [string, unknown] => {
        const inner = value && typeof value === "object" && !Array.isArray(value) ? tidy(record(value), record(usual[name])) : value;
        return [name, inner];
      })
      .filter(([name, value]) =>
        value !== undefined && JSON.stringify(value) !== JSON.stringify(usual[name]) &&
        !(typeof value === "object" && value !== null && Object.keys(value).length === 0)),
  );
}

// Of what is left, what can be typed in further fields, and the rest.
function moreOf(left: Json, offered: readonly Group[], before = ""): Pick<Draft, "more" | "rest"> {
  const more: Draft["more"] = {};
  const rest: Json = {};
  for (const [name, given] of Object.entries(left)) {
    const path = `${before}${name}`;
    const isList = Array.isArray(given) && given.every((each) => typeof each === "string");
    if (typeof given === "object" && given !== null && !Array.isArray(given)) {
      const inner = moreOf(given as Json, offered, `${path}.`);
      Object.assign(more, inner.more);
      if (Object.keys(inner.rest).length) rest[name] = inner.rest;
    } else if ((isList || typeof given !== "object") && offered.some((group) => isOffered(group, path))) {
      more[path] = isList ? given.join(", ") : text(given);
    } else rest[name] = given;
  }
  return { more, rest };
}

// `usual` is a job of which nothing was said, as the market fills it in.
export function draftOf(spec: Json, usual: Json): Draft {
  const left = structuredClone(spec);
  const inputs = (take(left, "inputs").inputs ?? []) as Input[];
  const { name, num_nodes, num_nodes_max } = take(left, "name", "num_nodes", "num_nodes_max");
  const resources = record(left.resources), sync = record(left.sync), market = record(left.market), train = record(left.train);
  const runtime = text(take(left, "runtime").runtime);
  const own = runtime === "native" ? trainOf(train, inputs) : { ...codeOf(left, resources, inputs), runtime };
  const { cpus, memory, disk_size, accelerators } = take(resources, "cpus", "memory", "disk_size", "accelerators");
  const { policy, servers, replica } = take(sync, "policy", "servers", "replica");
  const { max_run_time, expected_run_time, max_total_cost, start } =
    take(market, "max_run_time", "expected_run_time", "max_total_cost", "start");
  const [cpusText, canHaveMoreCpus] = amount(cpus);
  const [memoryText, canHaveMoreMemory] = amount(memory);
  const draft: Draft = {
    ...emptyDraft(), ...own,
    name: text(name), workers: text(num_nodes), workersMost: num_nodes_max === num_nodes ? "" : text(num_nodes_max),
    cpus: cpusText, canHaveMoreCpus, memory: memoryText, canHaveMoreMemory, disk: text(disk_size), gpus: text(accelerators),
    policy: text(policy) || "auto", servers: text(servers) || "1", hasReplica: replica === true,
    longest: text(max_run_time), expected: text(expected_run_time), cost: text(max_total_cost), ...startOf(text(start)),
    ...moreOf(tidy(left, usual), [...Object.values(groups).flat(), ...ofRuntime(runtime)]),
  };
  return draft.sent ? { ...draft, sent: { ...draft.sent, by: readBy(draft) } } : draft;
}
