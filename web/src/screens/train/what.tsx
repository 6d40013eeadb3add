// The first step: a built-in model, a network layer by layer, or code of one's own; and how it is trained.
import { get, type Schemas } from "../../api/client";
import { bytes, number } from "../../core/format";
import { resource, useResource } from "../../core/resource";
import { train } from "../../text/en";
import { Button } from "../../ui/button";
import { Field, Select } from "../../ui/field";
import { Card, Note, ProblemNote, Skeleton } from "../../ui/parts";
import { suggestedName, type Draft, type Json, type Layer } from "./draft";
import { Drop } from "./drop";
import { Layers } from "./layers";
import { Sending, useSending } from "./sending";
import type { StepProps } from "./index";
import { sendCode } from "./upload";
import { Ways } from "./ways";

type Model = Schemas["ModelInfo"];
export const models = resource(() => get("/v1/models"), []);
const words = train.what;
const kinds = ["model", "layers", "code"] as const;
const optimizers = ["sgd", "adam", "adamw"].map((value) => ({ value, label: value }));

const layersOf = (model: Model): Layer[] =>
  ((model.spec as { layers?: Json[] }).layers ?? []).map(({ type, ...values }) => ({
    type: String(type), values: Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value)])),
  }));

const layerWords = ({ type, values }: Layer) => [type, values.outputs].filter(Boolean).join(" ");

function Models({ draft, change, wrong }: StepProps) {
  const { data, problem } = useResource(models);
  const chosen = data?.items.find((model) => model.name === draft.model);
  const edit = () => change({ kind: "layers", layers: layersOf(chosen!), loss: chosen!.loss });
  if (!data) return problem ? <ProblemNote problem={problem} /> : <Skeleton lines={5} />;
  return (
    <Card>
      <Ways label={words.models} name="model" isNarrow value={draft.model} onValue={(model) => change({ model, loss: "" })}
        ways={data.items.map((model) => ({
          value: model.name, label: model.name,
          hint: <>{words.takes[model.takes] ?? model.takes}<br />{words.parameters(number(model.parameters))}</>,
        }))} />
      {wrong("train.model") && <Note tone="bad">{wrong("train.model")}</Note>}
      {chosen && (
        <p class="faint its-layers">
          {words.itsLayers}: {layersOf(chosen).map(layerWords).join(" → ")}{" "}
          <Button kind="link" onClick={edit}>{words.asLayers}</Button>
        </p>
      )}
    </Card>
  );
}

function Training({ draft, change, wrong }: StepProps) {
  const losses = Object.entries(words.losses).map(([value, label]) => ({ value, label }));
  const typed = (name: "rate" | "momentum" | "decay" | "batch" | "epochs" | "accuracy", field: string, label: string, hint?: string) => (
    <Field label={label} hint={hint} value={draft[name]} error={wrong(field)} native={{ name, inputMode: "decimal" }}
      onValue={(value) => change({ [name]: value } as Partial<Draft>)} />
  );
  return (
    <Card title={words.training}>
      <div class="grid">
        {typed("epochs", "train.epochs", words.epochs, words.epochsHint)}
        {typed("accuracy", "train.target.accuracy", words.accuracy, words.accuracyHint)}
        {typed("batch", "train.batch", words.batch, words.batchHint)}
        {typed("rate", "train.optimizer.lr", words.rate)}
        {draft.optimizer === "sgd" && typed("momentum", "train.optimizer.momentum", words.momentum)}
        {typed("decay", "train.optimizer.weight_decay", words.decay)}
        <Select label={words.optimizer} value={draft.optimizer} choices={optimizers} name="optimizer"
          error={wrong("train.optimizer.name")} onValue={(optimizer) => change({ optimizer })} />
        <Select label={words.loss} hint={words.lossHint} value={draft.loss} choices={losses} name="loss"
          error={wrong("train.loss")} onValue={(loss) => change({ loss })} />
      </div>
    </Card>
  );
}

function Code({ draft, change, wrong }: StepProps) {
  const sending = useSending();
  const send = (files: File[]) =>
    void sending.send(async (signal, onSent) => change({ code: await sendCode(files, signal, onSent) }));
  const networks = Object.entries(train.code.networks).map(([value, label]) => ({ value, label }));
  return (
    <Card title={train.code.title}>
      <Drop label={train.code.files} words={train.code.drop} choose={train.code.choose} hint={train.code.filesHint} isMany
        isDisabled={sending.isBusy} error={sending.problem?.message ?? ""} onFiles={send} />
      <Sending state={sending} />
      {draft.code && !sending.isBusy && (
        <p class="row sent">
          <span>{train.code.sent(draft.code.name || train.code.sentBefore, bytes(draft.code.bytes))}</span>
          <Button kind="link" onClick={() => change({ code: null })}>{train.code.forget}</Button>
        </p>
      )}
      <Field label={train.code.run} hint={train.code.runHint} rows={4} value={draft.run} error={wrong("run")}
        native={{ name: "run" }} onValue={(run) => change({ run })} />
      <Field label={train.code.setup} hint={train.code.setupHint} rows={2} value={draft.setup} error={wrong("setup")}
        native={{ name: "setup" }} onValue={(setup) => change({ setup })} />
      <Field label={train.code.envs} hint={train.code.envsHint} rows={2} value={draft.envs} error={wrong("envs")}
        native={{ name: "envs" }} onValue={(envs) => change({ envs })} />
      <Select label={train.code.network} value={draft.network} choices={networks} name="network"
        error={wrong("resources.network")} onValue={(network) => change({ network })} />
    </Card>
  );
}

export function What(props: StepProps) {
  const { draft, change, wrong } = props;
  return (
    <>
      <Card>
        <Ways label={words.way} name="kind" value={draft.kind} onValue={(kind) => change({ kind })}
          ways={kinds.map((value) => ({ value, label: words.ways[value], hint: words.wayHints[value] }))} />
        <Field label={words.name} hint={words.nameHint(suggestedName(draft))} value={draft.name} error={wrong("name")}
          native={{ name: "name", autocomplete: "off" }} onValue={(name) => change({ name })} />
      </Card>
      {draft.kind === "model" && <Models {...props} />}
      {draft.kind === "layers" && <Layers layers={draft.layers} wrong={wrong} onLayers={(update) => change((now) => ({ layers: update(now.layers) }))} />}
      {draft.kind === "code" ? <Code {...props} /> : <Training {...props} />}
    </>
  );
}
