// The second step: a built-in data set, a table from this computer, or data that stay at lenders.
import { signal } from "@preact/signals";
import { get, type Schemas } from "../../api/client";
import { bytes, number } from "../../core/format";
import { resource, useResource } from "../../core/resource";
import { link } from "../../core/router";
import { machines } from "../../core/store";
import { train } from "../../text/en";
import { Button } from "../../ui/button";
import { Field, Select } from "../../ui/field";
import { Card, Note, ProblemNote, Skeleton } from "../../ui/parts";
import { csvHead, type CsvRow } from "./csv";
import { isSent, readBy, type Draft, type Reading } from "./draft";
import { Drop, type Picked } from "./drop";
import type { StepProps } from "./index";
import { partsOf } from "./parts";
import { Sending, useSending } from "./sending";
import { columnNames, hasHeading, readTable } from "./table";
import { sendParts, textOf } from "./upload";
import { Ways } from "./ways";

type Dataset = Schemas["DatasetInfo"];
export const datasets = resource(() => get("/v1/datasets"), []);
const words = train.data;
const FILE_BYTES_MAX = 128 << 20;
const SHOWN_ROWS = 5;
const SHOWN_COLUMNS = 8;

// The file that was chosen last: its bytes cannot be kept over a reload.
interface Opened {
  file: File;
  text: string;
  head: CsvRow[];
}
const opened = signal<Opened | null>(null);

export function forgetFile(): void {
  opened.value = null;
}

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

function Preview({ head, reading }: { head: CsvRow[]; reading: Reading }) {
  const names = columnNames(head[0]!, reading);
  const rows = hasHeading(head[0]!, reading) ? head.slice(1) : head;
  const cut = <Value,>(list: Value[]) => list.slice(0, SHOWN_COLUMNS);
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label={words.preview}>
      <table aria-label={words.preview}>
        <thead><tr>{cut(names).map((name, at) => <th key={at} scope="col">{name.slice(0, 40)}</th>)}{names.length > SHOWN_COLUMNS && <th scope="col">…</th>}</tr></thead>
        <tbody>
          {rows.slice(0, SHOWN_ROWS).map((row) => (
            <tr key={row.line}>{cut(row.fields).map((field, at) => <td key={at}>{field.slice(0, 40)}</td>)}{names.length > SHOWN_COLUMNS && <td>…</td>}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function ReadingFields({ draft, change, wrong, names }: StepProps & { names: string[] | null }) {
  const { reading } = draft;
  const set = (part: Partial<Reading>) => change((now) => ({ reading: { ...now.reading, ...part } }));
  const choices = <Value extends string>(labels: Record<Value, string>) =>
    (Object.keys(labels) as Value[]).map((value) => ({ value, label: labels[value] }));
  const columns = [...new Set([...(names ?? []), reading.label])].filter(Boolean);
  return (
    <div class="grid">
      <Select label={words.label} value={reading.label} name="label" error={wrong("train.label")} onValue={(label) => set({ label })}
        choices={[{ value: "", label: words.lastColumn(names?.at(-1)?.slice(0, 60) ?? "") }, ...columns.map((name) => ({ value: name, label: name.slice(0, 60) }))]} />
      <Select label={words.predict} value={reading.predict} name="predict" hint={words.predictHint} error={wrong("train.predict")}
        choices={choices(words.predicts)} onValue={(predict) => set({ predict })} />
      <Select label={words.missing} value={reading.missing} name="missing" error={wrong("train.read.missing")}
        choices={choices(words.missings)} onValue={(missing) => set({ missing })} />
      <Select label={words.categories} value={reading.categories} name="categories" error={wrong("train.read.categories")}
        choices={choices(words.categoriesWays)} onValue={(categories) => set({ categories })} />
    </div>
  );
}

const seedOf = (draft: Draft) => Number((draft.rest.train as { seed?: number } | undefined)?.seed ?? 1);

function whatIsSent(draft: Draft, known: Opened | null): string {
  const { sent } = draft;
  if (isSent(draft)) return sent!.bytes ? words.sent(sent!.name, number(sent!.rows)) : words.sentBefore(sent!.name);
  if (draft.file && !known) return words.stale;
  return sent && known ? words.changed : "";
}

function TableFile(props: StepProps) {
  const { draft, change, now, wrong } = props;
  const sending = useSending();
  const known = opened.value?.file.name === draft.file ? opened.value : null;
  const isPeer = draft.source === "peer";
  const choose = ([picked]: Picked[]) => void sending.send(async () => {
    const { file } = picked!;
    const text = await textOf(file, FILE_BYTES_MAX);
    const head = csvHead(text, SHOWN_ROWS + 1);
    if (head.length === 0) throw new Error(train.table.empty);
    const names = columnNames(head[0]!, draft.reading);
    opened.value = { file, text, head };
    change({ file: file.name, sent: null, reading: { ...draft.reading, label: names.includes(draft.reading.label) ? draft.reading.label : "" } });
  });
  const send = () => sending.send(async (signal, onProgress) => {
    const asked = now();
    const table = readTable(known!.text, asked.reading);
    const made = partsOf(table, seedOf(asked), isPeer);
    const inputs = await sendParts(made.parts, signal, onProgress);
    change({ sent: { name: asked.file, by: readBy(asked), inputs, train: made.train, rows: table.rows, bytes: known!.file.size } });
  });
  const told = whatIsSent(draft, known);
  return (
    <Card>
      {isPeer && <p class="faint">{words.testHint}</p>}
      <Drop label={isPeer ? words.test : words.file} words={words.drop} choose={words.choose} hint={words.fileHint(bytes(FILE_BYTES_MAX))}
        isDisabled={sending.isBusy} onPicked={choose} onFailure={sending.fail}
        error={sending.problem?.message || (known || isSent(draft) ? "" : wrong("train.data") || wrong("train.test"))} />
      {known && <p><strong>{words.chosen(known.file.name.slice(0, 100), bytes(known.file.size))}</strong></p>}
      {known && <Preview head={known.head} reading={draft.reading} />}
      {(known || draft.sent) && <ReadingFields {...props} names={known && columnNames(known.head[0]!, draft.reading)} />}
      <Sending state={sending} />
      {told && <p class="sent" role="status">{told}</p>}
      {known && !isSent(draft) && (
        <Button kind="primary" isBusy={sending.isBusy} onClick={send}>{draft.sent ? words.sendAgain : words.send}</Button>
      )}
    </Card>
  );
}

function Peer({ draft, change, wrong }: StepProps) {
  const { data } = useResource(machines);
  const labels = new Set((data ?? []).flatMap((machine) => `${machine.offer_labels},${machine.probe.labels}`.split(",").map((label) => label.trim()))
    .filter((label) => label.startsWith("peer-")).map((label) => label.slice("peer-".length)));
  return (
    <Card>
      <Field label={words.peer} hint={words.peerHint([...labels].sort().slice(0, 20).join(", "))} value={draft.peer} error={wrong("train.data")}
        native={{ name: "peer", autocomplete: "off" }} onValue={(peer) => change({ peer })} />
    </Card>
  );
}

const sources = ["catalogue", "upload", "peer"] as const;

export function Data(props: StepProps) {
  const { draft, change } = props;
  if (draft.kind === "code")
    return (
      <Card>
        <p>{words.codeNeedsNone}</p>
        <a href={link("train", "what")}>{words.toFiles}</a>
      </Card>
    );
  return (
    <>
      <Card>
        <Ways label={words.way} name="source" value={draft.source} onValue={(source) => change({ source })}
          ways={sources.map((value) => ({ value, label: words.ways[value], hint: words.wayHints[value] }))} />
      </Card>
      {draft.source === "catalogue" && <Catalogue {...props} />}
      {draft.source === "peer" && <Peer {...props} />}
      {draft.source !== "catalogue" && <TableFile {...props} />}
    </>
  );
}
