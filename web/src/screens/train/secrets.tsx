// Variables of a program that are never shown: their names are part of the draft, their values live in memory alone and go
// with the job when it is submitted.
import { signal } from "@preact/signals";
import { forgetToo } from "../../core/form";
import { train } from "../../text/en";
import { Button } from "../../ui/button";
import { Field } from "../../ui/field";
import type { Draft, Mistake, SecretName } from "./draft";
import type { StepProps } from "./index";

const words = train.secrets;
const SECRETS_MAX = 64;
const VALUE_BYTES_MAX = 4096;
const ALL_BYTES_MAX = 32 << 10;

const values = signal<Record<number, string>>({});
const set = (id: number, value: string) => { values.value = { ...values.value, [id]: value }; };
const bytesOf = (text: string) => new TextEncoder().encode(text).length;

export const forgetSecrets = () => { values.value = {}; };
forgetToo(forgetSecrets); // another account in the same tab does not find them

// As POST /v1/jobs takes them; undefined: none.
export function secretsOf({ kind, secrets }: Draft): Record<string, string> | undefined {
  if (kind !== "code" || secrets.length === 0) return undefined;
  return Object.fromEntries(secrets.map(({ id, name }) => [name.trim(), values.value[id] ?? ""]));
}

function mistakeOf(name: string, value: string, all: SecretName[]): [part: "name" | "value", text: string] | null {
  if (!name) return ["name", words.noName];
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || name.length > 128) return ["name", words.oddName];
  if (name.startsWith("SOUK_")) return ["name", words.ownName];
  if (all.filter((each) => each.name.trim() === name).length > 1) return ["name", words.twice];
  if (!value) return ["value", words.noValue];
  return bytesOf(value) > VALUE_BYTES_MAX ? ["value", words.long] : null;
}

export function secretMistakes({ kind, secrets }: Draft): Mistake[] {
  if (kind !== "code") return [];
  const found = secrets.flatMap(({ id, name }, at): Mistake[] => {
    const mistake = mistakeOf(name.trim(), values.value[id] ?? "", secrets);
    return mistake ? [{ field: `secrets[${at}].${mistake[0]}`, text: mistake[1] }] : [];
  });
  const all = secrets.reduce((sum, { id, name }) => sum + bytesOf(name) + bytesOf(values.value[id] ?? ""), 0);
  return all > ALL_BYTES_MAX ? [...found, { field: "secrets", text: words.longAll }] : found;
}

interface RowProps {
  secret: SecretName;
  at: number;
  wrong: (field: string) => string;
  onName: (name: string) => void;
  onRemove: () => void;
}

function Row({ secret: { id, name }, at, wrong, onName, onRemove }: RowProps) {
  const value = values.value[id] ?? "";
  const lines = value.split("\n").length;
  // A field of one line would join the lines of a key.
  const onPaste = (event: ClipboardEvent) => {
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (!text.trimEnd().includes("\n")) return;
    event.preventDefault();
    set(id, text);
  };
  return (
    <li>
      <form class="secret" autocomplete="off" onSubmit={(event) => event.preventDefault()}>
        <Field label={words.name} value={name} error={wrong(`secrets[${at}].name`)} onValue={onName}
          native={{ name: `secret-${at}-name`, autocomplete: "off", spellcheck: false, placeholder: "HF_TOKEN" }} />
        <Field label={words.value} value={value} hint={lines > 1 ? words.lines(lines) : undefined} error={wrong(`secrets[${at}].value`)}
          onValue={(next) => set(id, next)} native={{ name: `secret-${at}-value`, type: "password", autocomplete: "new-password", onPaste }} />
        <Button icon="close" label={words.remove(name || String(at + 1))} onClick={onRemove} />
      </form>
    </li>
  );
}

export function Secrets({ draft, change, wrong }: StepProps) {
  const { secrets } = draft;
  const whole = secrets.some((_each, at) => wrong(`secrets[${at}]`)) ? "" : wrong("secrets");
  const add = () => change((now) => ({ secrets: [...now.secrets, { id: 1 + Math.max(0, ...now.secrets.map(({ id }) => id)), name: "" }] }));
  const rename = (id: number, name: string) =>
    change((now) => ({ secrets: now.secrets.map((each) => (each.id === id ? { id, name } : each)) }));
  const remove = (id: number) => {
    set(id, "");
    change((now) => ({ secrets: now.secrets.filter((each) => each.id !== id) }));
  };
  return (
    <section class="secrets-of" aria-label={words.title}>
      <h3>{words.title}</h3>
      <p class="faint">{words.hint}</p>
      {secrets.length > 0 && (
        <ul>
          {secrets.map((secret, at) => (
            <Row key={secret.id} secret={secret} at={at} wrong={wrong} onName={(name) => rename(secret.id, name)} onRemove={() => remove(secret.id)} />
          ))}
        </ul>
      )}
      {whole && <small class="error" role="alert">{whole}</small>}
      <Button icon="plus" isDisabled={secrets.length >= SECRETS_MAX} onClick={add}>{words.add}</Button>
    </section>
  );
}
