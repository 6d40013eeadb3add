// What is typed in the wizard, and the job file it makes. Everything typed stays text: the market says what is wrong with it.
export type Json = Record<string, unknown>;

export const steps = ["what", "data", "machines", "check"] as const;
export type Step = (typeof steps)[number];

export interface Layer {
  type: string;
  values: Record<string, string>;
}

export interface Input {
  name: string;
  split: "train" | "test" | "files" | "image" | "all";
  manifest: string;
  records: number;
}

// A file that the market has: what it is called, where it lies, and what reading it found out.
export interface Sent {
  name: string;
  by: string; // how it was read: another way needs the file again
  inputs: Input[];
  train: Json; // features, classes …
  rows: number;
  bytes: number;
}

export interface Reading {
  label: string; // "": the last column
  predict: "class" | "number";
  missing: "refuse" | "drop" | "mean";
  categories: "refuse" | "one-hot";
}

export interface Draft {
  name: string;
  kind: "model" | "layers" | "code";
  model: string;
  layers: Layer[];
  loss: string;
  optimizer: string;
  rate: string;
  momentum: string;
  decay: string;
  batch: string;
  epochs: string;
  accuracy: string;
  run: string;
  setup: string;
  envs: string; // a line NAME=value each
  network: string;
  code: Sent | null;
  source: "catalogue" | "upload" | "peer";
  dataset: string;
  file: string; // that was chosen here; its bytes are not kept over a reload
  reading: Reading;
  sent: Sent | null;
  peer: string;
  workers: string;
  workersMost: string;
  cpus: string;
  canHaveMoreCpus: boolean;
  memory: string;
  canHaveMoreMemory: boolean;
  disk: string;
  gpus: string;
  policy: string;
  servers: string;
  hasReplica: boolean;
  longest: string;
  expected: string;
  cost: string;
  start: "now" | "by" | "cheapest";
  before: string; // as <input type="datetime-local"> writes it
  rest: Json; // of the job it began with: what the wizard has no field for
  key: string; // of the submission, and the job file it belongs to: a lost answer is asked for again
  keyOf: string;
}

const DAY_MS = 86_400_000;

// Local time to the minute, as the browser's own field has it.
export function localMinute(at_ms: number): string {
  return new Date(at_ms - new Date(at_ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export function emptyDraft(): Draft {
  return {
    name: "", kind: "model", model: "lenet5", layers: [{ type: "dense", values: {} }], loss: "",
    optimizer: "sgd", rate: "0.01", momentum: "0.9", decay: "0", batch: "32", epochs: "5", accuracy: "",
    run: "", setup: "", envs: "", network: "none", code: null,
    source: "catalogue", dataset: "fashion-mnist", file: "",
    reading: { label: "", predict: "class", missing: "refuse", categories: "refuse" }, sent: null, peer: "",
    workers: "1", workersMost: "", cpus: "0.25", canHaveMoreCpus: true, memory: "0.25", canHaveMoreMemory: true,
    disk: "1", gpus: "", policy: "auto", servers: "1", hasReplica: false,
    longest: "1h", expected: "", cost: "",
    start: "now", before: localMinute(Date.now() + DAY_MS), rest: {}, key: "", keyOf: "",
  };
}

// ---- To a job file ----

// A number where it looks like one; else as it was typed, for the market to say what is wrong with it.
function value(text: string): unknown {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(trimmed) ? Number(trimmed) : trimmed;
}

const words = (text: string) => text.trim() || undefined;
const orMore = (text: string, canHaveMore: boolean) => (text.trim() ? `${text.trim()}${canHaveMore ? "+" : ""}` : undefined);

function filled(given: Json): Json {
  return Object.fromEntries(Object.entries(given).filter(([, each]) => each !== undefined));
}

const part = (from: Json, name: string): Json => (typeof from[name] === "object" && from[name] !== null ? (from[name] as Json) : {});

const isTrue = (text: string) => (text === "true" ? true : undefined);

function layerOf(layer: Layer): Json {
  const given = Object.entries(layer.values).map(([name, text]) => [name, text === "true" || text === "" ? isTrue(text) : value(text)]);
  return filled({ type: layer.type, ...Object.fromEntries(given) });
}

export const readBy = (draft: Draft) => JSON.stringify([draft.reading, draft.source]);
export const isSent = (draft: Draft) =>
  draft.sent !== null && draft.sent.by === readBy(draft) && draft.sent.name === (draft.source === "catalogue" ? draft.dataset : draft.file);

// A value with a dot or a slash is a file; anything else would be a name of the catalogue.
export const fileName = (name: string) => (/[./]/.test(name) ? name : `./${name}`);

function dataOf(draft: Draft): Json {
  if (draft.source === "catalogue") return { data: draft.dataset };
  const { reading, sent } = draft;
  const file = draft.file ? fileName(draft.file) : undefined;
  const read = filled({
    missing: reading.missing === "refuse" ? undefined : reading.missing,
    categories: reading.categories === "refuse" ? undefined : reading.categories,
  });
  return {
    data: draft.source === "peer" ? `peer://${draft.peer.trim()}` : file,
    test: draft.source === "peer" ? file : undefined,
    label: words(reading.label),
    predict: reading.predict,
    read: Object.keys(read).length ? { ...part(part(draft.rest, "train"), "read"), ...read } : undefined,
    ...(isSent(draft) ? sent!.train : {}),
  };
}

function trainOf(draft: Draft): Json {
  const rest = part(draft.rest, "train");
  return filled({
    ...rest,
    ...(draft.kind === "model" ? { model: draft.model } : { layers: draft.layers.map(layerOf) }),
    ...dataOf(draft),
    loss: words(draft.loss),
    optimizer: filled({
      ...part(rest, "optimizer"),
      name: draft.optimizer,
      lr: value(draft.rate),
      momentum: draft.optimizer === "sgd" ? value(draft.momentum) : undefined,
      weight_decay: value(draft.decay),
    }),
    batch: value(draft.batch),
    epochs: value(draft.epochs),
    target: filled({ ...part(rest, "target"), accuracy: value(draft.accuracy) }),
  });
}

function envsOf(text: string): Json | undefined {
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  if (!lines.length) return undefined;
  return Object.fromEntries(lines.map((line) => {
    const at = line.indexOf("=");
    return at < 0 ? [line, ""] : [line.slice(0, at).trim(), line.slice(at + 1)];
  }));
}

function instant(local: string): string {
  const at = new Date(local);
  return Number.isNaN(at.getTime()) ? local : `${at.toISOString().slice(0, 16)}Z`;
}

function startOf({ start, before }: Draft): string {
  if (start === "now") return "now";
  return start === "by" ? `by ${instant(before)}` : `cheapest before ${instant(before)}`;
}

function inputsOf(draft: Draft): Input[] | undefined {
  if (draft.kind === "code") return draft.code?.inputs;
  return isSent(draft) ? draft.sent!.inputs : undefined;
}

// What the job is called when nobody says.
export function suggestedName(draft: Draft): string {
  if (draft.kind === "code") return "my-code";
  const what = draft.kind === "model" ? draft.model : "layers";
  const data = draft.source === "catalogue" ? draft.dataset : draft.source === "peer" ? draft.peer : draft.file;
  const name = `${what}-${data.replace(/\.[a-z.]+$/i, "").replace(/[^A-Za-z0-9._-]+/g, "-")}`;
  return name.replace(/-+$/, "").slice(0, 64);
}

export function jobFile(draft: Draft): Json {
  const isCode = draft.kind === "code";
  const most = value(draft.workersMost);
  const resources = filled({
    ...part(draft.rest, "resources"),
    cpus: orMore(draft.cpus, draft.canHaveMoreCpus),
    memory: orMore(draft.memory, draft.canHaveMoreMemory),
    disk_size: words(draft.disk),
    accelerators: words(draft.gpus),
    network: isCode ? draft.network : undefined,
  });
  const market = filled({
    ...part(draft.rest, "market"),
    max_run_time: words(draft.longest),
    expected_run_time: words(draft.expected),
    max_total_cost: value(draft.cost),
    start: startOf(draft),
  });
  return filled({
    name: words(draft.name) ?? suggestedName(draft),
    num_nodes: value(draft.workers),
    num_nodes_max: most,
    resources,
    runtime: isCode ? "command" : "native",
    ...(isCode
      ? { envs: envsOf(draft.envs), setup: words(draft.setup), run: words(draft.run) }
      : {
          train: trainOf(draft),
          sync: filled({ ...part(draft.rest, "sync"), policy: draft.policy, servers: value(draft.servers), replica: draft.hasReplica || undefined }),
        }),
    market,
    inputs: inputsOf(draft),
  });
}

// ---- What is wrong, by step ----

const fieldsOf: Record<Exclude<Step, "check">, readonly string[]> = {
  what: ["name", "runtime", "run", "setup", "envs", "workdir", "train.model", "train.layers", "train.loss", "train.optimizer",
    "train.batch", "train.epochs", "train.target", "train.seed", "resources.network"],
  data: ["train", "inputs"],
  machines: ["num_nodes", "num_nodes_max", "resources", "sync", "market"],
};

export const isWithin = (field: string, whole: string) =>
  field === whole || (field.startsWith(whole) && ".[".includes(field.charAt(whole.length)));

export function stepOf(field: string): Step {
  const found = (Object.keys(fieldsOf) as Exclude<Step, "check">[]).find((step) => fieldsOf[step].some((whole) => isWithin(field, whole)));
  return found ?? "check";
}
