// Code of one's own: its files, which of them is run and how.
import { useId } from "preact/hooks";
import { bytes } from "../../core/format";
import { train } from "../../text/en";
import { Button } from "../../ui/button";
import { Field, Select } from "../../ui/field";
import { Copy } from "../../ui/copy";
import { Card, Note } from "../../ui/parts";
import { commandOf, ofRuntime, type Draft } from "./draft";
import { Drop, type Picked } from "./drop";
import type { StepProps } from "./index";
import { More } from "./more";
import { choicesOf, useSchema } from "./schema";
import { Secrets } from "./secrets";
import { codeSender, Sending } from "./sending";
import { sendCode } from "./upload";
import { Ways } from "./ways";

const words = train.code;
const texts = train.wheels;
const WHEELS_SHOWN = 8;

// The one that is most likely meant: so called, or the only script there is.
function likelyMain(files: string[]): string {
  const scripts = files.filter((path) => /\.(py|sh)$/i.test(path));
  return scripts.find((path) => /^(main|train|run)\.(py|sh)$/i.test(path)) ?? (scripts.length === 1 ? scripts[0]! : "");
}

function Runtimes({ draft, change, wrong }: StepProps) {
  const schema = useSchema();
  const ways = choicesOf(schema("runtime"), { command: words.runtimes.command! }).filter(({ value }) => value !== "native");
  if (ways.length < 2 && !wrong("runtime")) return null;
  return (
    <>
      <Ways label={words.runtime} name="runtime" isFour={ways.length === 4} value={draft.runtime} onValue={(runtime) => change({ runtime })}
        ways={ways.map(({ value }) => ({ value, label: words.runtimes[value] ?? value, hint: words.runtimeHints[value] }))} />
      {wrong("runtime") && <small class="error" role="alert">{wrong("runtime")}</small>}
    </>
  );
}

function Files({ draft, change }: StepProps) {
  const send = (picked: Picked[]) =>
    void codeSender.send(async (signal, onProgress) => {
      const sent = await sendCode(picked, signal, onProgress);
      change((now: Draft) => ({ ...sent, main: now.main || now.run ? now.main : likelyMain(sent.code?.files ?? []) }));
    });
  return (
    <>
      <Drop label={words.files} words={words.drop} choose={words.choose} chooseFolder={words.chooseFolder} hint={words.filesHint}
        isDisabled={codeSender.isBusy.value} error={codeSender.problem.value?.message ?? ""} onPicked={send} onFailure={(failure) => { codeSender.problem.value = failure; }} />
      <Sending of={codeSender} />
      {draft.code && !codeSender.isBusy.value && (
        <p class="row sent">
          <span>{draft.code.name ? words.sent(draft.code.name, bytes(draft.code.bytes)) : words.sentBefore(bytes(draft.code.bytes))}</span>
          <Button kind="link" onClick={() => change({ code: null })}>{words.forget}</Button>
        </p>
      )}
      <Packages draft={draft} change={change} />
    </>
  );
}

// A browser cannot run pip: who names packages is told how to bring them.
function Packages({ draft: { code, wheels }, change }: Pick<StepProps, "draft" | "change">) {
  if (codeSender.isBusy.value) return null;
  const names = wheels?.files?.slice(0, WHEELS_SHOWN) ?? [];
  const more = (wheels?.files?.length ?? 0) - names.length;
  return (
    <>
      {wheels && (
        <div class="wheels" role="status">
          <p class="row sent">
            <span>{wheels.name ? texts.sent(wheels.rows, bytes(wheels.bytes)) : wheels.install ? texts.listBefore : texts.sentBefore(bytes(wheels.bytes))}</span>
            <Button kind="link" onClick={() => change({ wheels: null })}>{texts.forget}</Button>
          </p>
          {names.length > 0 && <ul>{names.map((name) => <li key={name}><code>{name}</code></li>)}{more > 0 && <li>{texts.more(more)}</li>}</ul>}
        </div>
      )}
      {code?.hasRequirements && (wheels ? <p class="faint">{texts.notRead}</p> : (
        <div class="needs">
          <Note tone="warn">{texts.requirements}</Note>
          <Copy text={texts.command} label={texts.commandLabel} />
        </div>
      ))}
    </>
  );
}

function Main({ draft, change, wrong }: StepProps) {
  const list = useId();
  return (
    <>
      <Field label={words.main} hint={words.mainHint} value={draft.main} error={wrong("main")}
        native={{ name: "main", autocomplete: "off", list }} onValue={(next) => change({ main: next })} />
      <datalist id={list}>{draft.code?.files?.map((path) => <option key={path} value={path} />)}</datalist>
    </>
  );
}

export function Code(props: StepProps) {
  const { draft, change, wrong } = props;
  const schema = useSchema();
  const usual = commandOf(draft);
  return (
    <Card title={words.title}>
      <Runtimes {...props} />
      <Files {...props} />
      <Main {...props} />
      <Field label={words.run} hint={usual && !draft.run.trim() ? words.runUsual(usual.slice(0, 200)) : words.runHint} rows={4}
        value={draft.run} error={wrong("run")} native={{ name: "run" }} onValue={(run) => change({ run })} />
      <Field label={words.setup} hint={words.setupHint} rows={2} value={draft.setup} error={wrong("setup")}
        native={{ name: "setup" }} onValue={(setup) => change({ setup })} />
      <Field label={words.envs} hint={words.envsHint} rows={2} value={draft.envs} error={wrong("envs")}
        native={{ name: "envs" }} onValue={(envs) => change({ envs })} />
      <Secrets {...props} />
      <Select label={words.network} value={draft.network} name="network"
        choices={[{ value: "", label: words.networkUsual }, ...choicesOf(schema("resources.network"), words.networks)]}
        error={wrong("resources.network")} onValue={(network) => change({ network })} />
      <More {...props} title={words.more(words.runtimes[draft.runtime] ?? draft.runtime)} groups={ofRuntime(draft.runtime)} />
    </Card>
  );
}
