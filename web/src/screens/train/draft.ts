// What is typed in the wizard, and the job file it makes. Everything typed stays text: the market says what is wrong with it.
import { marketNow } from "../../core/clock";
import type { Schemas } from "../../api/client";
import { train as texts } from "../../text/en";
import { byBytes } from "./mount";

export type Json = Record<string, unknown>;

export const steps = ["what", "data", "machines", "check"] as const;
export type Step = (typeof steps)[number];

export interface Layer {
  type: string;
  values: Record<string, string>;
}

export interface Input {
  name: string;
  split: "train" | "test" | "files" | "image" | "wheels" | "mount" | "all";
  manifest: string;
  records: number;
}

// A file that the market has: what it is called, where it lies, and what reading it found out.
export interface Sent {
  name: string;
  by: string; // what was read, and how: another way has it read again
  inputs: Input[];
  train: Json; // features, classes …
  rows: number; // 0: it is an earlier job's
  classes?: Schemas["ImportClass"][]; // the first of them, of data that were read
  bytes: number;
  files?: string[]; // the first of them, of code
  hasRequirements?: boolean; // a requirements file of pip is among them
  install?: string; // "index": of packages just a list, which machines install from indexes of their own
}

// A file or an archive that the market has as it was sent.
export interface Raw {
  name: string;
  manifest: string;
  bytes: number;
}

// Files of file_mounts that the market has.
export interface MountSent {
  name: string;
  url: string; // where the market fetched them; empty: they are from this computer
  manifest: string;
  records: number;
  bytes: number;
  files: number; // 0: an earlier job's, of which this is not known
  parts: number; // how many ranks can share them
}

export interface Mount {
  id: number;
  target: string; // the place in the working folder
  isShared: boolean; // each rank has its part
  way: "upload" | "address";
  url: string;
  sent: MountSent | null;
}

// Of a secret the draft has the name alone.
export interface SecretName {
  id: number;
  name: string;
}

// What the machines are to be chosen by.
export interface Wish {
  rule: "auto" | "cost-opt" | "time-opt" | "scala-opt" | "scala-opt-m";
  kind: "cheapest" | "fastest" | "safest"; // of auto
  perHour: string;
  whole: string;
  deadline: string;
  workersMost: string;
  serverType: string;
  workerType: string;
}

export type Look = Schemas["FileLook"];

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
  runtime: string; // of one's own code
  main: string; // the script that is run where no command is given
  run: string;
  setup: string;
  envs: string; // a line NAME=value each
  network: string;
  code: Sent | null;
  wheels: Sent | null; // packages that are installed for it
  secrets: SecretName[];
  mounts: Mount[];
  source: "catalogue" | "upload" | "url" | "peer";
  dataset: string;
  file: string; // that was chosen here
  look: Look | null; // its first rows
  raw: Raw | null; // what the market has of it
  url: string;
  sha256: string;
  sent: Sent | null;
  importing: { id: number; by: string } | null; // what the market reads just now
  peer: string;
  wish: Wish;
  foretold: (Schemas["Prediction"] & { of: string }) | null; // of the machines that were chosen
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
  more: Record<string, string>; // further fields of the job file, by path
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
    runtime: "command", main: "", run: "", setup: "", envs: "", network: "", code: null, wheels: null, secrets: [], mounts: [],
    source: "catalogue", dataset: "fashion-mnist", file: "", look: null, raw: null, url: "", sha256: "", sent: null, importing: null, peer: "",
    wish: { rule: "auto", kind: "cheapest", perHour: "", whole: "", deadline: "", workersMost: "", serverType: "", workerType: "" }, foretold: null,
    workers: "1", workersMost: "", cpus: "0.25", canHaveMoreCpus: true, memory: "0.25", canHaveMoreMemory: true,
    disk: "1", gpus: "", policy: "auto", servers: "1", hasReplica: false,
    longest: "1h", expected: "", cost: "",
    start: "now", before: localMinute(marketNow() + DAY_MS), more: {}, rest: {}, key: "", keyOf: "",
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

const isRecord = (given: unknown): given is Json => typeof given === "object" && given !== null && !Array.isArray(given);

// `over` counts more than `under`, field by field.
function joined(under: Json, over: Json): Json {
  const all = { ...under };
  for (const [name, given] of Object.entries(over)) {
    const before = all[name];
    if (given !== undefined) all[name] = isRecord(given) && isRecord(before) ? joined(before, given) : given;
  }
  return all;
}

const isTrue = (text: string) => (text === "true" ? true : undefined);

function layerOf(layer: Layer): Json {
  const given = Object.entries(layer.values).map(([name, text]) => [name, text === "true" || text === "" ? isTrue(text) : value(text)]);
  return filled({ type: layer.type, ...Object.fromEntries(given) });
}

// ---- Data ----

const isReading = (path: string) => groups.reading.some((group) => isOffered(group, path));
const readingOf = (draft: Draft) => Object.entries(draft.more).filter(([path]) => isReading(path)).sort();

// What is told where nobody says: docs/data.md, "What is told". Another model of the same kind needs nothing read again.
const numberModels = ["linear", "lstm-forecast", "gru-forecast"];
function toldOf({ more, kind, model, loss }: Draft): string {
  if (more["train.predict"]) return more["train.predict"];
  if (kind === "model" && model === "char-lstm") return "next";
  const isNumber = loss ? loss === "mse" : kind === "model" && numberModels.includes(model);
  return isNumber ? "number" : "class";
}

// What is read and how, as far as the result depends on it.
export function readBy(draft: Draft): string {
  if (draft.source === "catalogue") return JSON.stringify(["catalogue", draft.dataset]);
  const what = draft.source === "url" ? [draft.url.trim(), draft.sha256.trim()] : [draft.raw?.manifest ?? "", draft.file];
  const reading = readingOf(draft).filter(([path]) => path !== "train.predict");
  return JSON.stringify([draft.source === "peer", what, reading, toldOf(draft), draft.more["train.seed"] ?? ""]);
}

export const isSent = (draft: Draft) => draft.sent !== null && draft.sent.by === readBy(draft);

// A value with a dot or a slash is a file; anything else would be a name of the catalogue.
const fileName = (name: string) => (/[./]/.test(name) ? name : `./${name}`);

export function dataName({ source, dataset, file, peer, url }: Draft): string {
  if (source === "catalogue") return dataset;
  if (source === "peer") return peer.trim();
  return source === "url" ? (/([^/?#]+)\/?([?#].*)?$/.exec(url.trim())?.[1] ?? "") : file;
}

function dataOf(draft: Draft): Json {
  if (draft.source === "catalogue") return { data: draft.dataset };
  const name = dataName(draft);
  const named = draft.source === "peer"
    ? { data: `peer://${name}`, test: draft.file ? fileName(draft.file) : undefined }
    : { data: name ? fileName(name) : undefined };
  return { ...(isSent(draft) ? draft.sent!.train : {}), ...named };
}

const networkOf = (draft: Draft): Json => (draft.kind === "model" ? { model: draft.model } : { layers: draft.layers.map(layerOf) });

// What the market has to know to read the data for this job.
export function trainToRead(draft: Draft): Json {
  const seed = draft.more["train.seed"];
  const more = moreOf(Object.fromEntries([...readingOf(draft), ...(seed ? [["train.seed", seed] as const] : [])]));
  return filled({ ...networkOf(draft), loss: words(draft.loss), ...(more.train as Json | undefined) });
}

function trainOf(draft: Draft): Json {
  return filled({
    ...networkOf(draft),
    ...dataOf(draft),
    loss: words(draft.loss),
    optimizer: filled({
      name: draft.optimizer,
      lr: value(draft.rate),
      momentum: draft.optimizer === "sgd" ? value(draft.momentum) : undefined,
      weight_decay: value(draft.decay),
    }),
    batch: value(draft.batch),
    epochs: value(draft.epochs),
    target: filled({ accuracy: value(draft.accuracy) }),
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

// ---- Files of a program ----

export const mountSentNow = ({ way, url, sent }: Mount) => (sent && sent.url === (way === "address" ? url.trim() : "") ? sent : null);

// "~/data/" and "./data" are "data".
export const placeOf = ({ target }: Mount) => target.trim().replace(/^[~.]\//, "").replace(/\/+$/, "");

// In the order of their places, by which their inputs are named.
const mountsOf = ({ mounts }: Draft) =>
  mounts.filter((mount) => placeOf(mount)).sort((a, b) => byBytes(placeOf(a), placeOf(b)));

const mountInputs = (draft: Draft): Input[] => mountsOf(draft).flatMap((mount, at): Input[] => {
  const sent = mountSentNow(mount);
  return sent ? [{ name: `mount-${at}`, split: "mount", manifest: sent.manifest, records: sent.records }] : [];
});

function mountMistakes({ mounts, workers }: Draft): Mistake[] {
  return mounts.flatMap((mount, at): Mistake[] => {
    const place = placeOf(mount);
    const of = (part: string, text: string) => ({ field: `file_mounts[${at}].${part}`, text });
    const sent = mountSentNow(mount);
    const isTwice = mounts.some((other, before) => before < at && placeOf(other) === place);
    return [
      ...(!place ? [of("target", texts.mounts.noTarget)] : isTwice ? [of("target", texts.mounts.twice(place.slice(0, 60)))] : []),
      ...(!sent ? [of("source", mount.way === "address" ? texts.mounts.notFetched : texts.mounts.notSent)] : []),
      ...(sent?.files && mount.isShared && sent.parts < Number(workers) ? [of("shard", texts.mounts.few(sent.parts, workers.trim()))] : []),
    ];
  });
}

function inputsOf(draft: Draft): Input[] | undefined {
  if (draft.kind === "code") {
    const inputs = [...(draft.code?.inputs ?? []), ...(draft.wheels?.inputs ?? []), ...mountInputs(draft)];
    return inputs.length ? inputs : undefined;
  }
  return isSent(draft) ? draft.sent!.inputs : undefined;
}

// What the job is called when nobody says.
export function suggestedName(draft: Draft): string {
  if (draft.kind === "code") return "my-code";
  const what = draft.kind === "model" ? draft.model : "layers";
  const name = `${what}-${dataName(draft).replace(/\.[a-z.]+$/i, "").replace(/[^A-Za-z0-9._-]+/g, "-")}`;
  return name.replace(/-+$/, "").slice(0, 64);
}

const quoted = (name: string) => (/^[\w./-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`);

// How a script is started, by what its name ends with; with MPI on all ranks by the first.
export function commandOf({ main, runtime }: Pick<Draft, "main" | "runtime">): string {
  const name = main.trim();
  if (!name) return "";
  const started = /\.py$/i.test(name) ? `python3 ${quoted(name)}` : /\.sh$/i.test(name) ? `sh ${quoted(name)}` : quoted(name.includes("/") ? name : `./${name}`);
  return runtime === "mpi" ? `mpirun ${started}` : started;
}

const someOf = <Value,>(list: Value[]) => (list.length ? list : undefined);

const codeOf = (draft: Draft): Json => ({
  runtime: draft.runtime, envs: envsOf(draft.envs), setup: words(draft.setup), run: words(draft.run) ?? words(commandOf(draft)),
  secret_names: someOf(draft.secrets.map(({ name }) => name.trim()).filter(Boolean)),
  file_mounts: draft.mounts.some(placeOf)
    ? Object.fromEntries(mountsOf(draft).map((mount) => [placeOf(mount), mount.isShared ? { shard: true } : {}])) : undefined,
});

const modelOf = (draft: Draft): Json => ({
  runtime: "native",
  train: trainOf(draft),
  sync: filled({ policy: draft.policy, servers: value(draft.servers), replica: draft.hasReplica || undefined }),
});

// Paths of lists: words with commas or blanks between.
const lists = ["resources.labels", "sync.taus"];

function moreOf(more: Draft["more"]): Json {
  let all: Json = {};
  for (const [path, text] of Object.entries(more)) {
    const one = lists.includes(path) ? text.split(/[\s,]+/).filter(Boolean) : text === "true" ? true : text === "false" ? false : value(text);
    all = joined(all, path.split(".").reduceRight<unknown>((inner, name) => ({ [name]: inner }), one) as Json);
  }
  return all;
}

export function jobFile(draft: Draft): Json {
  const isCode = draft.kind === "code";
  const own = filled({
    name: words(draft.name) ?? suggestedName(draft),
    num_nodes: value(draft.workers),
    num_nodes_max: value(draft.workersMost),
    resources: filled({
      cpus: orMore(draft.cpus, draft.canHaveMoreCpus),
      memory: orMore(draft.memory, draft.canHaveMoreMemory),
      disk_size: words(draft.disk),
      accelerators: isCode ? words(draft.gpus) : undefined,
      network: isCode ? words(draft.network) : undefined,
      install: isCode ? draft.wheels?.install : undefined,
    }),
    ...(isCode ? codeOf(draft) : modelOf(draft)),
    market: filled({
      max_run_time: words(draft.longest),
      expected_run_time: words(draft.expected),
      max_total_cost: value(draft.cost),
      start: startOf(draft),
    }),
    inputs: inputsOf(draft),
  });
  // What belongs to another kind of job stays in the draft, for who changes back.
  const fits = (name: string) => ["resources", "market", ...(isCode ? [draft.runtime, "workdir"] : ["train", "sync"])].includes(name);
  const more = Object.fromEntries(Object.entries(draft.more).filter(([path]) => draft.source !== "catalogue" || !isReading(path)));
  const fitting = (given: Json) => Object.fromEntries(Object.entries(given).filter(([name]) => fits(name)));
  return joined(joined(fitting(draft.rest), fitting(moreOf(more))), own);
}

// ---- Fields that few need ----

// Those of an object of the job file, but the ones that have a place of their own (or `only` these).
export interface Group {
  at: string;
  but?: readonly string[];
  only?: readonly string[];
}

export const groups = {
  reading: [{ at: "train", only: ["label", "predict"] }, { at: "train.read" }],
  training: [
    { at: "train.optimizer", but: ["name", "lr", "momentum", "weight_decay"] },
    { at: "train.optimizer.schedule" },
    { at: "train.target", but: ["accuracy"] },
    { at: "train.augment" },
    { at: "train", only: ["shards", "seed"] },
  ],
  machines: [
    { at: "resources", but: ["cpus", "memory", "disk_size", "accelerators", "network", "install", "image_id"] },
    { at: "market", only: ["min_speed", "min_reliability", "max_rtt", "replace_lost"] },
  ],
  sync: [{ at: "sync", but: ["policy", "servers", "replica"] }],
  limits: [
    { at: "market", but: ["max_run_time", "expected_run_time", "max_total_cost", "start", "min_speed", "min_reliability", "max_rtt", "replace_lost"] },
  ],
} satisfies Record<string, Group[]>;

// What a runtime asks for by itself stands under its name.
export const ofRuntime = (runtime: string): Group[] => [{ at: runtime }];

export function isOffered({ at, but, only }: Group, path: string): boolean {
  const name = path.startsWith(`${at}.`) ? path.slice(at.length + 1) : "";
  return name !== "" && !name.includes(".") && !but?.includes(name) && (!only || only.includes(name));
}

// ---- What is wrong, by step ----

const fieldsOf: Record<Exclude<Step, "check">, readonly string[]> = {
  what: ["name", "runtime", "main", "run", "setup", "envs", "secrets", "secret_names", "workdir", "train.model", "train.layers", "train.loss", "train.optimizer",
    "train.batch", "train.epochs", "train.target", "train.seed", "train.shards", "train.augment", "resources.network"],
  data: ["train", "inputs", "file_mounts"],
  machines: ["num_nodes", "num_nodes_max", "resources", "sync", "market"],
};

export const isWithin = (field: string, whole: string) =>
  field === whole || (field.startsWith(whole) && ".[".includes(field.charAt(whole.length)));

export function stepOf(field: string): Step {
  const found = (Object.keys(fieldsOf) as Exclude<Step, "check">[]).find((step) => fieldsOf[step].some((whole) => isWithin(field, whole)));
  return found ?? "check";
}

export interface Mistake {
  field: string;
  text: string;
}

// What the market cannot know: the files of an archive are not its business before the job runs.
export function ownMistakes(draft: Draft): Mistake[] {
  const main = draft.main.trim().replace(/^\.\//, "");
  const files = draft.code?.files;
  if (draft.kind !== "code") return [];
  const isMissing = main && !draft.run.trim() && files && !files.includes(main);
  return [...(isMissing ? [{ field: "main", text: texts.code.noMain(main.slice(0, 100)) }] : []), ...mountMistakes(draft)];
}
