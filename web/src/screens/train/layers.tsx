// A network, layer by layer: add, remove, move, and what each has to say.
import { useRef, useState } from "preact/hooks";
import { train } from "../../text/en";
import { Button } from "../../ui/button";
import { Field, Select } from "../../ui/field";
import { Card } from "../../ui/parts";
import type { Layer } from "./draft";

const words = train.layers;

// Which fields a layer has, and what they are when nobody says (docs/models.md). "no" is for yes or no.
const kinds: Record<string, Record<string, string>> = {
  dense: { outputs: "" },
  conv: { outputs: "", kernel: "", stride: "1", pad: "0" },
  max_pool: { kernel: "", stride: "", partial: "no" },
  average_pool: { kernel: "", stride: "", partial: "no" },
  relu: {}, tanh: {}, sigmoid: {}, gelu: {},
  batch_norm: {}, layer_norm: {},
  local_norm: { kernel: "9", alpha: "0.001", beta: "0.75" },
  dropout: { rate: "0.5" },
  embedding: { outputs: "" },
  lstm: { outputs: "", steps: "no" },
  gru: { outputs: "", steps: "no" },
  residual: { back: "" },
  flatten: {},
};
const LAYERS_MAX = 128;
const choices = Object.keys(kinds).map((type) => ({ value: type, label: type }));

interface RowProps {
  layer: Layer;
  at: number;
  count: number;
  wrong: (field: string) => string;
  onLayer: (update: (now: Layer) => Layer) => void;
  onMove: (by: number) => void;
  onRemove: () => void;
}

function Row({ layer, at, count, wrong, onLayer, onMove, onRemove }: RowProps) {
  const usual = kinds[layer.type] ?? {};
  const path = `train.layers[${at}]`;
  const set = (name: string, value: string) => onLayer((now) => ({ ...now, values: { ...now.values, [name]: value } }));
  const beside = Object.keys(usual).map((name) => wrong(`${path}.${name}`)).find(Boolean);
  const whole = beside ? "" : wrong(path);
  return (
    <li class="layer">
      <span class="number" aria-hidden="true">{at + 1}</span>
      <Select label={words.type} value={layer.type} choices={choices} name={`layer-${at}`}
        onValue={(type) => onLayer(() => ({ type, values: {} }))} error={whole} />
      {Object.entries(usual).map(([name, value]) =>
        value === "no" ? (
          <Select key={name} label={words.fields[name]!} value={layer.values[name] === "true" ? "true" : ""}
            choices={[{ value: "", label: words.no }, { value: "true", label: words.yes }]} onValue={(next) => set(name, next)} />
        ) : (
          <Field key={name} label={words.fields[name]!} value={layer.values[name] ?? ""} onValue={(next) => set(name, next)}
            error={wrong(`${path}.${name}`)} native={{ inputMode: "decimal", placeholder: value, name: `layer-${at}-${name}` }} />
        ))}
      <span class="grow" />
      <span class="moves">
        <Button icon="up" label={words.up(at + 1)} isDisabled={at === 0} onClick={() => onMove(-1)} />
        <Button icon="down" label={words.down(at + 1)} isDisabled={at === count - 1} onClick={() => onMove(1)} />
        <Button icon="close" label={words.remove(at + 1)} isDisabled={count === 1} onClick={onRemove} />
      </span>
    </li>
  );
}

interface LayersProps {
  layers: Layer[];
  wrong: (field: string) => string;
  onLayers: (update: (now: Layer[]) => Layer[]) => void; // two changes may come before the next frame
}

export function Layers({ layers, wrong, onLayers }: LayersProps) {
  const [added, setAdded] = useState("dense");
  const wanted = useRef(added); // also before the next frame
  const choose = (type: string) => setAdded((wanted.current = type));
  const move = (at: number, by: number) =>
    onLayers((now) => {
      const next = [...now];
      [next[at], next[at + by]] = [next[at + by]!, next[at]!];
      return next;
    });
  return (
    <Card title={words.title}>
      <p class="faint">{words.hint}</p>
      <ol class="layers">
        {layers.map((layer, at) => (
          <Row key={at} layer={layer} at={at} count={layers.length} wrong={wrong}
            onLayer={(update) => onLayers((now) => now.map((each, other) => (other === at ? update(each) : each)))}
            onMove={(by) => move(at, by)}
            onRemove={() => onLayers((now) => now.filter((_each, other) => other !== at))} />
        ))}
      </ol>
      <div class="row add">
        <Select label={words.addType} value={added} choices={choices} onValue={choose} name="add-layer" />
        <Button icon="plus" isDisabled={layers.length >= LAYERS_MAX}
          onClick={() => onLayers((now) => [...now, { type: wanted.current, values: {} }])}>{words.add}</Button>
      </div>
    </Card>
  );
}
