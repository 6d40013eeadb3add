// Data of one's own: files and folders from this computer, or what lies at an address. The market reads them.
import { signal } from "@preact/signals";
import { postPlain } from "../../api/client";
import { Problem } from "../../api/problem";
import { forgetToo } from "../../core/form";
import { bytes, number } from "../../core/format";
import { server } from "../../core/store";
import { train } from "../../text/en";
import { Button } from "../../ui/button";
import { Field } from "../../ui/field";
import { Card } from "../../ui/parts";
import { Credentials, credentialsOf, isAddress } from "./address";
import type { OnProgress } from "./chunks";
import { Drop, type Picked } from "./drop";
import { isSent, readBy, trainToRead, type Draft, type Input, type Look, type Sent } from "./draft";
import { importData, type ImportWish } from "./imports";
import type { StepProps } from "./index";
import { Preview, ReadingFields, SHOWN_COLUMNS } from "./reading";
import { dataSender, Sending } from "./sending";
import { pack, sendPacked, type Packed } from "./upload";

const words = train.own;
const LOOK_BYTES = 256 << 10;
const CLASSES_SHOWN = 30;

// What was chosen last: its bytes cannot be kept over a reload, and what opens a store must not be.
const chosen = signal<Packed | null>(null);
const secrets = signal<Record<string, string>>({});

// What the market reads at most, once it has said so.
const bytesMax = () => server.data.value?.import_bytes_max ?? Infinity;
const mostWords = () => (server.data.value ? words.most(bytes(bytesMax())) : "");

export function forgetData(): void {
  dataSender.stop();
  chosen.value = null;
  secrets.value = {};
}
forgetToo(forgetData); // another account in the same tab does not find them

async function lookAt({ name, bytes: all }: Packed, signal: AbortSignal): Promise<Look> {
  const plain = { body: all.slice(0, LOOK_BYTES), type: "application/octet-stream", query: { name } };
  const look = await postPlain("/v1/imports/look", plain, signal);
  return { ...look, rows: look.rows.map((row) => row.slice(0, SHOWN_COLUMNS + 1)) }; // one more says that there are more
}

function wishOf(draft: Draft): ImportWish {
  const wanted = { train: trainToRead(draft), ...(draft.source === "peer" ? { peer: draft.peer.trim() } : {}) };
  if (draft.source !== "url") return { files: draft.raw!.manifest, name: draft.raw!.name, ...wanted };
  const url = draft.url.trim(), sha256 = draft.sha256.trim();
  return { url, ...(sha256 ? { sha256 } : {}), ...credentialsOf(url, secrets.value), ...wanted };
}

type Changing = Pick<StepProps, "now" | "change">;

const nameOf = ({ source, url, file }: Draft) => (source === "url" ? url.trim() : file);

// Has the market read what `now` says, or follows the import `known`.
async function ask({ now, change }: Changing, known: number | null, signal: AbortSignal, onProgress: OnProgress): Promise<void> {
  const asked = now();
  const by = readBy(asked);
  const { inputs, train: shape, classes, records, test_records } = await importData(
    { wish: wishOf(asked), known, onId: (id) => change({ importing: { id, by } }) }, signal, onProgress,
  ).finally(() => change({ importing: null }));
  const rows = Number(records ?? 0) + Number(test_records ?? 0);
  change({ sent: { name: nameOf(asked), by, inputs: (inputs ?? []) as Input[], train: shape ?? {}, rows, classes, bytes: asked.raw?.bytes ?? 0 } });
}

// Sends what is not at the market, or not any more, and has it read.
function read(props: Changing, known: number | null): Promise<void> {
  const { now, change } = props;
  return dataSender.send(async (signal, onProgress) => {
    const isOwn = now().source !== "url";
    const send = async () => {
      if (!chosen.value) throw new Error(words.stale);
      change({ raw: await sendPacked(chosen.value, signal, onProgress) });
    };
    if (isOwn && !now().raw) await send();
    try {
      await ask(props, known, signal, onProgress);
    } catch (failure) {
      if (!(isOwn && failure instanceof Problem && failure.status === 404)) throw failure;
      change({ raw: null });
      await send();
      await ask(props, null, signal, onProgress);
    }
  });
}

// What was being read when the page was loaded again is followed further, whichever step is shown.
export function goOn(props: Changing): void {
  const draft = props.now();
  if (draft.importing && draft.importing.by === readBy(draft)) void read(props, draft.importing.id);
}

function Told({ draft, isHere }: { draft: Draft; isHere: boolean }) {
  const { sent } = draft;
  if (dataSender.isBusy.value) return null;
  const isOfNow = isSent(draft);
  const told = isOfNow
    ? sent!.rows ? words.ready(sent!.name.slice(0, 100), number(sent!.rows)) : words.readyBefore(sent!.name.slice(0, 100))
    : !isHere && draft.file ? words.stale : sent?.name === nameOf(draft) ? words.changed : "";
  if (!told) return null;
  return (
    <>
      <p class="sent" role="status">{told}</p>
      {isOfNow && <Classes sent={sent!} />}
    </>
  );
}

// Which there are and how many of each: a folder that was not meant shows.
function Classes({ sent: { classes = [], train: shape } }: { sent: Sent }) {
  const all = Number(shape.classes ?? classes.length);
  if (classes.length === 0) return null;
  return (
    <div class="classes">
      <p class="faint">{words.classes(number(all))}</p>
      <ul aria-label={words.classes(number(all))}>
        {classes.slice(0, CLASSES_SHOWN).map(({ name, records }) => (
          <li key={name}><span>{name}</span> <span class="number">{number(records)}</span></li>
        ))}
        {all > CLASSES_SHOWN && <li class="faint">{words.moreClasses(number(all - Math.min(classes.length, CLASSES_SHOWN)))}</li>}
      </ul>
    </div>
  );
}

export function OwnFiles(props: StepProps) {
  const { draft, change, wrong } = props;
  const isPeer = draft.source === "peer";
  const known = chosen.value?.name === draft.file ? chosen.value : null;
  const isHere = known !== null || draft.raw !== null;
  const size = known?.bytes.size ?? draft.raw?.bytes ?? 0;
  const choose = (picked: Picked[], folder: string) => void dataSender.send(async (signal) => {
    const packed = pack(picked, folder);
    const most = bytesMax();
    if (packed.bytes.size > most) throw new Error(words.tooLarge(bytes(packed.bytes.size), bytes(most)));
    const look = await lookAt(packed, signal);
    chosen.value = packed;
    const { "train.label": label = "", ...more } = props.now().more;
    change({ file: packed.name, look, raw: null, sent: null, more: look.columns.includes(label) ? { ...more, "train.label": label } : more });
  });
  const problem = dataSender.problem.value?.message;
  const lacking = wrong("train.data") || wrong("train.test");
  return (
    <Card>
      {isPeer && <p class="faint">{words.testHint}</p>}
      <Drop label={isPeer ? words.test : words.file} words={words.drop} choose={words.choose} chooseFolder={words.chooseFolder} hint={`${words.fileHint} ${mostWords()}`}
        isDisabled={dataSender.isBusy.value} onPicked={choose} onFailure={(failure) => { dataSender.problem.value = failure; }}
        error={problem || (isHere || isSent(draft) ? "" : lacking === "is missing" ? words.noFile : lacking)} />
      {isHere && <p><strong>{words.chosen(draft.file.slice(0, 100), bytes(size))}</strong></p>}
      {isHere && draft.look && <Preview look={draft.look} />}
      {(isHere || draft.sent) && <ReadingFields {...props} look={isHere ? draft.look : null} />}
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
  const problem = dataSender.problem.value?.message;
  const url = draft.url.trim();
  const isKnown = isAddress(url);
  return (
    <Card>
      <Field label={words.url} hint={`${words.urlHint} ${mostWords()}`} value={draft.url} native={{ name: "url", autocomplete: "off", inputMode: "url" }}
        error={problem || (url && !isKnown ? words.noScheme : isSent(draft) ? "" : wrong("train.data"))} onValue={(next) => change({ url: next })} />
      <Credentials url={url} given={secrets.value} onGiven={(given) => { secrets.value = given; }} />
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
