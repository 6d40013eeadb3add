// Data of one's own: files and folders from this computer, or what lies at an address. The market reads them.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { postPlain } from "../../api/client";
import { bytes, number } from "../../core/format";
import { train } from "../../text/en";
import { Button } from "../../ui/button";
import { Field } from "../../ui/field";
import { Card } from "../../ui/parts";
import { Drop, type Picked } from "./drop";
import { isSent, readBy, trainToRead, type Draft, type Input } from "./draft";
import { importData, type ImportWish } from "./imports";
import type { StepProps } from "./index";
import { Preview, ReadingFields, type Look } from "./reading";
import { dataSender, Sending } from "./sending";
import { pack, sendPacked, type Packed } from "./upload";

const words = train.own;
const LOOK_BYTES = 256 << 10;

// What was chosen last: its bytes cannot be kept over a reload, and what opens a store must not be.
const chosen = signal<{ packed: Packed; look: Look } | null>(null);
const secrets = signal<Record<string, string>>({});

export function forgetData(): void {
  dataSender.stop();
  chosen.value = null;
  secrets.value = {};
}

const lookAt = ({ name, bytes: all }: Packed, signal: AbortSignal) =>
  postPlain("/v1/imports/look", { body: all.slice(0, LOOK_BYTES), type: "application/octet-stream", query: { name } }, signal);

function wishOf(draft: Draft): ImportWish {
  const wanted = { train: trainToRead(draft), ...(draft.source === "peer" ? { peer: draft.peer.trim() } : {}) };
  if (draft.source !== "url") return { files: draft.raw!.manifest, name: draft.raw!.name, ...wanted };
  const sha256 = draft.sha256.trim();
  const given = Object.fromEntries(Object.entries(secrets.value).filter(([, value]) => value));
  return { url: draft.url.trim(), ...(sha256 ? { sha256 } : {}), ...(Object.keys(given).length ? { secrets: given } : {}), ...wanted };
}

// Sends what is not at the market yet, and has it read. `known`: an import that is under way.
function read({ now, change }: StepProps, known: number | null): Promise<void> {
  return dataSender.send(async (signal, onProgress) => {
    const { packed } = chosen.value ?? {};
    if (now().source !== "url" && !now().raw && packed) {
      const raw = await sendPacked(packed, signal, onProgress);
      change({ raw });
    }
    const asked = now();
    const by = readBy(asked);
    const { inputs, train: shape, records, test_records } = await importData(
      { wish: wishOf(asked), known, onId: (id) => change({ importing: { id, by } }) }, signal, onProgress,
    ).finally(() => change({ importing: null }));
    const rows = Number(records ?? 0) + Number(test_records ?? 0);
    const name = asked.source === "url" ? asked.url.trim() : asked.file;
    change({ sent: { name, by, inputs: (inputs ?? []) as Input[], train: shape ?? {}, rows, bytes: asked.raw?.bytes ?? 0 } });
  });
}

// What was being read when the page was loaded again is followed further.
function useUnderWay(props: StepProps): void {
  const { draft } = props;
  useEffect(() => {
    if (draft.importing && draft.importing.by === readBy(draft) && !dataSender.isBusy.value) void read(props, draft.importing.id);
  }, []);
}

function Told({ draft, isHere }: { draft: Draft; isHere: boolean }) {
  const { sent } = draft;
  if (dataSender.isBusy.value) return null;
  const isOfNow = isSent(draft);
  const told = isOfNow
    ? sent!.rows && sent!.bytes ? words.ready(sent!.name.slice(0, 100), number(sent!.rows)) : words.readyBefore(sent!.name.slice(0, 100))
    : !isHere && draft.file ? words.stale : sent ? words.changed : "";
  return told ? <p class="sent" role="status">{told}</p> : null;
}

export function OwnFiles(props: StepProps) {
  const { draft, change, wrong } = props;
  const isPeer = draft.source === "peer";
  const known = chosen.value?.packed.name === draft.file ? chosen.value : null;
  const isHere = known !== null || draft.raw !== null;
  useUnderWay(props);
  const choose = (picked: Picked[], folder: string) => void dataSender.send(async (signal) => {
    const packed = pack(picked, folder);
    const look = await lookAt(packed, signal);
    chosen.value = { packed, look };
    const { "train.label": label = "", ...more } = props.now().more;
    change({ file: packed.name, raw: null, sent: null, more: look.columns.includes(label) ? { ...more, "train.label": label } : more });
  });
  const problem = dataSender.problem.value?.message;
  return (
    <Card>
      {isPeer && <p class="faint">{words.testHint}</p>}
      <Drop label={isPeer ? words.test : words.file} words={words.drop} choose={words.choose} chooseFolder={words.chooseFolder} hint={words.fileHint}
        isDisabled={dataSender.isBusy.value} onPicked={choose} onFailure={(failure) => { dataSender.problem.value = failure; }}
        error={problem || (isHere || isSent(draft) ? "" : wrong("train.data") || wrong("train.test"))} />
      {known && <p><strong>{words.chosen(known.packed.name.slice(0, 100), bytes(known.packed.bytes.size))}</strong></p>}
      {known && <Preview look={known.look} />}
      {(isHere || draft.sent) && <ReadingFields {...props} look={known?.look ?? null} />}
      <Sending of={dataSender} />
      <Told draft={draft} isHere={isHere} />
      {isHere && !isSent(draft) && (
        <Button kind="primary" isBusy={dataSender.isBusy.value} onClick={() => read(props, null)}>{draft.raw ? words.readAgain : words.send}</Button>
      )}
    </Card>
  );
}

export function AtAddress(props: StepProps) {
  const { draft, change, wrong } = props;
  useUnderWay(props);
  const secret = (name: string, label: string) => (
    <Field label={label} value={secrets.value[name] ?? ""} native={{ name, type: "password", autocomplete: "off" }}
      onValue={(value) => { secrets.value = { ...secrets.value, [name]: value }; }} />
  );
  const problem = dataSender.problem.value?.message;
  const url = draft.url.trim();
  const isKnown = /^(https?|s3|hdfs):\/\/./.test(url);
  return (
    <Card>
      <Field label={words.url} hint={words.urlHint} value={draft.url} native={{ name: "url", autocomplete: "off", inputMode: "url" }}
        error={problem || (url && !isKnown ? words.noScheme : isSent(draft) ? "" : wrong("train.data"))} onValue={(next) => change({ url: next })} />
      {url.startsWith("s3://") && (
        <>
          <p class="faint">{words.secretsHint}</p>
          <div class="grid">{Object.entries(words.secrets).map(([name, label]) => <div key={name}>{secret(name, label)}</div>)}</div>
        </>
      )}
      <Field label={words.sha256} hint={words.sha256Hint} value={draft.sha256} native={{ name: "sha256", autocomplete: "off", spellcheck: false }}
        error={/^([0-9a-f]{64})?$/.test(draft.sha256.trim()) ? "" : words.noHash} onValue={(sha256) => change({ sha256 })} />
      <ReadingFields {...props} look={null} />
      <Sending of={dataSender} />
      <Told draft={draft} isHere />
      {isKnown && !isSent(draft) && (
        <Button kind="primary" isBusy={dataSender.isBusy.value} onClick={() => read(props, null)}>{words.fetch}</Button>
      )}
    </Card>
  );
}
