// The data of one's own program: files that every machine finds at a place in its working folder, or each its part of them;
// from this computer, or from an address that the market fetches.
import { signal } from "@preact/signals";
import { forgetToo } from "../../core/form";
import { bytes, number } from "../../core/format";
import { train } from "../../text/en";
import { Button } from "../../ui/button";
import { Field, Toggle } from "../../ui/field";
import { Card, Note } from "../../ui/parts";
import { credentialsOf, Credentials, isAddress } from "./address";
import { store } from "./chunks";
import { Drop, type Picked } from "./drop";
import { mountSentNow, type Mount, type MountSent } from "./draft";
import { importData } from "./imports";
import type { StepProps } from "./index";
import { mountOf, MOUNT_TYPE } from "./mount";
import { mountSender, Sending } from "./sending";
import { identity } from "./upload";
import { Ways } from "./ways";

const words = train.mounts;
const MOUNTS_MAX = 8;

const under = signal(0); // the mount that is on its way, or was last
const credentials = signal<Record<number, Record<string, string>>>({});
export const forgetMounts = () => { credentials.value = {}; };
forgetToo(forgetMounts);

const emptyMount = (id: number): Mount => ({ id, target: "", isShared: false, way: "upload", url: "", sent: null });

interface OneProps extends StepProps {
  mount: Mount;
  at: number;
}

function useMount({ mount: { id }, change }: Pick<OneProps, "mount" | "change">) {
  return (part: Partial<Mount>) => change((now) => ({ mounts: now.mounts.map((each) => (each.id === id ? { ...each, ...part } : each)) }));
}

function Upload({ mount, set }: { mount: Mount; set: (part: Partial<Mount>) => void }) {
  const isMine = under.value === mount.id;
  const send = (picked: Picked[], folder: string) => {
    under.value = mount.id;
    void mountSender.send(async (signal, onProgress) => {
      const name = folder || picked.map(({ path }) => path).join(", ").slice(0, 200);
      const packed = await mountOf(picked, folder !== "");
      const { manifest, records } = await store({ mediaType: MOUNT_TYPE, ...packed, of: `mount ${identity(picked)}` }, signal, onProgress);
      const size = picked.reduce((sum, { file }) => sum + file.size, 0);
      const sent: MountSent = { name, url: "", manifest, records, bytes: size, files: packed.files, parts: packed.parts };
      set({ sent, ...(mount.target.trim() ? {} : { target: folder || (picked.length === 1 ? picked[0]!.path : "") }) });
    });
  };
  return (
    <>
      <Drop label={words.files} words={train.own.drop} choose={train.own.choose} chooseFolder={train.own.chooseFolder} hint={words.filesHint}
        isDisabled={mountSender.isBusy.value} error={(isMine && mountSender.problem.value?.message) || ""} onPicked={send}
        onFailure={(failure) => { under.value = mount.id; mountSender.problem.value = failure; }} />
      {isMine && <Sending of={mountSender} />}
    </>
  );
}

function Address({ mount, set }: { mount: Mount; set: (part: Partial<Mount>) => void }) {
  const isMine = under.value === mount.id;
  const url = mount.url.trim();
  const given = credentials.value[mount.id] ?? {};
  const fetch = () => {
    under.value = mount.id;
    return mountSender.send(async (signal, onProgress) => {
      const wish = { url, mount: true, ...credentialsOf(url, given) };
      const { inputs = [], mount: told, name, total_bytes } = await importData({ wish, known: null, onId: () => undefined }, signal, onProgress);
      const { manifest, records } = inputs[0]!;
      set({ sent: { name, url, manifest, records, bytes: total_bytes, files: told?.files ?? 1, parts: told?.parts ?? 0 },
        ...(mount.target.trim() ? {} : { target: name }) });
    });
  };
  return (
    <>
      <Field label={train.own.url} hint={words.urlHint} value={mount.url} native={{ name: `mount-${mount.id}-url`, autocomplete: "off", inputMode: "url" }}
        error={(isMine && mountSender.problem.value?.message) || (url && !isAddress(url) ? train.own.noScheme : "")}
        onValue={(next) => set({ url: next })} />
      <Credentials url={url} given={given} onGiven={(next) => { credentials.value = { ...credentials.value, [mount.id]: next }; }} />
      {isMine && <Sending of={mountSender} />}
      {isAddress(url) && !mountSentNow(mount) && (
        <Button kind="primary" isDisabled={mountSender.isBusy.value} isBusy={isMine && mountSender.isBusy.value} onClick={fetch}>{words.fetch}</Button>
      )}
    </>
  );
}

function One(props: OneProps) {
  const { mount, at, change, wrong } = props;
  const set = useMount(props);
  const sent = mountSentNow(mount);
  const remove = () => {
    if (under.value === mount.id) mountSender.stop();
    credentials.value = { ...credentials.value, [mount.id]: {} };
    change((now) => ({ mounts: now.mounts.filter((each) => each.id !== mount.id) }));
  };
  return (
    <Card title={words.one(at + 1)} class="mount" action={<Button kind="link" onClick={remove}>{words.remove}</Button>}>
      <Field label={words.target} hint={words.targetHint} value={mount.target} error={wrong(`file_mounts[${at}].target`)}
        native={{ name: `mount-${mount.id}-target`, autocomplete: "off", spellcheck: false, placeholder: "data" }} onValue={(target) => set({ target })} />
      <Ways label={words.way} name={`mount-${mount.id}-way`} value={mount.way} onValue={(way) => set({ way })}
        ways={(["upload", "address"] as const).map((value) => ({ value, label: words.ways[value], hint: words.wayHints[value] }))} />
      {mount.way === "upload" ? <Upload mount={mount} set={set} /> : <Address mount={mount} set={set} />}
      {sent && (
        <p class="sent" role="status">
          {sent.files ? words.sent(sent.name.slice(0, 100), number(sent.files), bytes(sent.bytes)) : words.sentBefore(bytes(sent.bytes))}
        </p>
      )}
      {!sent && !(under.value === mount.id && mountSender.isBusy.value) && wrong(`file_mounts[${at}].source`) && (
        <small class="error" role="alert">{wrong(`file_mounts[${at}].source`)}</small>
      )}
      <div class="field">
        <Toggle label={words.shared} isOn={mount.isShared} onValue={(isShared) => set({ isShared })} />
        <small>{words.sharedHint}</small>
        {wrong(`file_mounts[${at}].shard`) && <small class="error" role="alert">{wrong(`file_mounts[${at}].shard`)}</small>}
      </div>
    </Card>
  );
}

export function Mounts(props: StepProps) {
  const { draft: { mounts }, change, checking } = props;
  const whole = checking.mistakes.find(({ field }) => field === "file_mounts")?.text;
  const add = () => change((now) => ({ mounts: [...now.mounts, emptyMount(1 + Math.max(0, ...now.mounts.map(({ id }) => id)))] }));
  return (
    <>
      <Card title={words.title}>
        <p class="faint">{words.hint}</p>
        {whole && <Note tone="bad">{whole}</Note>}
        {mounts.length === 0 && <Button icon="plus" onClick={add}>{words.add}</Button>}
      </Card>
      {mounts.map((mount, at) => <One key={mount.id} {...props} mount={mount} at={at} />)}
      {mounts.length > 0 && mounts.length < MOUNTS_MAX && <p><Button icon="plus" onClick={add}>{words.another}</Button></p>}
    </>
  );
}
