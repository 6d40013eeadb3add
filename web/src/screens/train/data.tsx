// The second step: a built-in data set, data of one's own, data at an address, or data that stay at lenders.
import { useId } from "preact/hooks";
import { get, type Schemas } from "../../api/client";
import { bytes, number } from "../../core/format";
import { resource, useResource } from "../../core/resource";
import { machines } from "../../core/store";
import { train } from "../../text/en";
import { Field } from "../../ui/field";
import { Card, Note, ProblemNote, Skeleton } from "../../ui/parts";
import type { Draft } from "./draft";
import type { StepProps } from "./index";
import { Mounts } from "./mounts";
import { AtAddress, OwnFiles } from "./own";
import { dataSender } from "./sending";
import { Ways } from "./ways";

type Dataset = Schemas["DatasetInfo"];
export const datasets = resource(() => get("/v1/datasets"), []);
const words = train.data;
const LABELS_SHOWN = 20;

function setHint(set: Dataset) {
  const size = (set.train_records + set.test_records) * (set.record_bytes + 1);
  return (
    <>
      {set.about}
      <br />
      {words.records(number(set.train_records), number(set.test_records))}
      <br />
      {words.size(bytes(size), set.licence)}
      {!set.is_here && <><br /><em>{words.notHere}</em></>}
    </>
  );
}

function Catalogue({ draft, change, wrong }: StepProps) {
  const { data, problem } = useResource(datasets);
  const chosen = data?.items.find((set) => set.name === draft.dataset);
  if (!data) return problem ? <ProblemNote problem={problem} /> : <Skeleton lines={5} />;
  return (
    <Card>
      <Ways label={words.sets} name="dataset" value={draft.dataset} onValue={(dataset) => change({ dataset })}
        ways={data.items.map((set) => ({ value: set.name, label: set.name, hint: setHint(set), isDisabled: !set.is_here && set.name !== draft.dataset }))} />
      {wrong("train.data") && <Note tone="bad">{wrong("train.data")}</Note>}
      {chosen && chosen.parts.length > 0 && (
        <details>
          <summary>{words.hashes}</summary>
          <dl class="hashes">
            {chosen.parts.map((part) => (
              <div key={part.name}><dt>{part.name}</dt><dd><code>{part.manifest}</code></dd></div>
            ))}
            <div><dt>{words.origin}</dt><dd>{chosen.origin}</dd></div>
          </dl>
        </details>
      )}
    </Card>
  );
}

// Which labels are offered, by how many machines each: a job asks for one machine per worker.
function useLabels(): [string, number][] {
  const { data } = useResource(machines);
  const counts = new Map<string, number>();
  for (const machine of data ?? []) {
    const labels = new Set(`${machine.offer_labels},${machine.probe.labels}`.split(",").map((label) => label.trim()));
    for (const label of labels)
      if (label.startsWith("peer-")) counts.set(label.slice("peer-".length), (counts.get(label.slice("peer-".length)) ?? 0) + 1);
  }
  return [...counts].sort();
}

function Peer({ draft, change, wrong }: StepProps) {
  const list = useId();
  const labels = useLabels();
  const told = labels.slice(0, LABELS_SHOWN).map(([label, count]) => words.peerLabel(label, count)).join(", ");
  return (
    <Card>
      <Field label={words.peer} hint={words.peerHint(told)} value={draft.peer} error={wrong("train.data")}
        native={{ name: "peer", autocomplete: "off", list }} onValue={(peer) => change({ peer })} />
      <datalist id={list}>{labels.map(([label]) => <option key={label} value={label} />)}</datalist>
    </Card>
  );
}

const sources = ["catalogue", "upload", "url", "peer"] as const;

export function Data(props: StepProps) {
  const { draft, change } = props;
  const choose = (source: Draft["source"]) => {
    if (!dataSender.isBusy.value) dataSender.problem.value = null; // it was about the other
    change({ source });
  };
  if (draft.kind === "code") return <Mounts {...props} />;
  return (
    <>
      <Card>
        <Ways label={words.way} name="source" isFour value={draft.source} onValue={choose}
          ways={sources.map((value) => ({ value, label: words.ways[value], hint: words.wayHints[value] }))} />
      </Card>
      {draft.source === "catalogue" && <Catalogue {...props} />}
      {draft.source === "peer" && <Peer {...props} />}
      {draft.source === "url" && <AtAddress {...props} />}
      {(draft.source === "upload" || draft.source === "peer") && <OwnFiles {...props} />}
    </>
  );
}
