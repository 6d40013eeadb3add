// The first step: a built-in model, a network layer by layer, or code of one's own; and how it is trained.
import { get, type Schemas } from "../../api/client";
import { number } from "../../core/format";
import { resource, useResource } from "../../core/resource";
import { train } from "../../text/en";
import { Button } from "../../ui/button";
import { Field, Select } from "../../ui/field";
import { Card, Note, ProblemNote, Skeleton } from "../../ui/parts";
import { Code } from "./code";
import { groups, suggestedName, type Draft, type Json, type Layer } from "./draft";
import { Layers } from "./layers";
import type { StepProps } from "./index";
import { More } from "./more";
import { choicesOf, useSchema } from "./schema";
import { Ways } from "./ways";

type Model = Schemas["ModelInfo"];
export const models = resource(() => get("/v1/models"), []);
const words = train.what;
const kinds = ["model", "layers", "code"] as const;

const layersOf = (model: Model): Layer[] =>
  ((model.spec as { layers?: Json[] }).layers ?? []).map(({ type, ...values }) => ({
    type: String(type), values: Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value)])),
  }));

const layerWords = ({ type, values }: Layer) => [type, values.outputs].filter(Boolean).join(" ");

// What begins with a dense layer takes numbers in any shape, whatever it is best known for.
const takesOf = (model: Model) =>
  model.takes === "images" && layersOf(model)[0]?.type === "dense" ? words.takesAny : words.takes[model.takes] ?? model.takes;

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
          hint: <>{takesOf(model)}<br />{words.parameters(number(model.parameters))}</>,
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

function Training(props: StepProps) {
  const { draft, change, wrong } = props;
  const schema = useSchema();
  const losses = [{ value: "", label: words.ownLoss }, ...choicesOf(schema("train.loss"), words.losses)];
  const optimizers = choicesOf(schema("train.optimizer.name"), words.optimizers);
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
      <More {...props} title={words.more} groups={groups.training} />
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
