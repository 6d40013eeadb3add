// Tokens: made with what they may do, shown once, revoked at once.
import { useRef, useState } from "preact/hooks";
import { post, remove, type Schemas } from "../../api/client";
import { fieldProblem } from "../../api/problem";
import { marketNow, now } from "../../core/clock";
import { useDraft, useSubmit } from "../../core/form";
import { date, relative } from "../../core/format";
import { useResource } from "../../core/resource";
import { settings as words } from "../../text/en";
import { Button } from "../../ui/button";
import { Copy } from "../../ui/copy";
import { ask } from "../../ui/dialog";
import { Field, Select, Toggle } from "../../ui/field";
import { Card, Empty, Note, ProblemNote, Skeleton } from "../../ui/parts";
import { Table, type Column } from "../../ui/table";
import { tell } from "../../ui/toast";
import { tokens, type Token } from "./read";

type Scope = Schemas["Scope"];
const scopes: readonly Scope[] = ["read", "borrow", "lend", "operate"];
const DAY_MS = 86_400_000;
const spans = { never: 0, month: 30 * DAY_MS, quarter: 90 * DAY_MS, year: 365 * DAY_MS };
type Span = keyof typeof spans;
const NAME_BYTES_MAX = 64;

interface Typed {
  name: string;
  scopes: Scope[];
  span: Span;
}

async function revoke(token: Token): Promise<void> {
  if (!(await ask({ title: words.askRevoke(token.name), body: words.revokeBody, action: words.revoke, isDanger: true }))) return;
  await remove("/v1/tokens/{id}", { path: { id: token.id } });
  tell(words.revoked);
  await tokens.refresh();
}

const ends = (token: Token) =>
  !token.expires_ms ? words.never : token.expires_ms <= now.value ? words.ended : relative(token.expires_ms, now.value);

const columns = (): readonly Column<Token>[] => [
  { name: "name", head: words.columns.name, isRowHead: true, cell: (token) => <span class="named">{token.name}</span> },
  { name: "scopes", head: words.columns.scopes, cell: (token) => token.scopes.join(", ") },
  { name: "created", head: words.columns.created, cell: (token) => date(token.created_ms) },
  { name: "used", head: words.columns.used,
    cell: (token) => (token.last_used_ms ? relative(token.last_used_ms, Math.max(now.value, token.last_used_ms)) : words.never) },
  { name: "expires", head: words.columns.expires, cell: ends },
  { name: "act", head: words.columns.act, isRight: true,
    cell: (token) => <Button kind="danger" onClick={() => revoke(token)}>{words.revoke}</Button> },
];

function wrongs(typed: Typed) {
  const size = new TextEncoder().encode(typed.name).length;
  return {
    name: !typed.name.trim() ? words.tokenNameMissing : size > NAME_BYTES_MAX ? words.tokenNameLong(NAME_BYTES_MAX) : "",
    scopes: typed.scopes.length ? "" : words.scopesMissing,
  };
}

function Scopes({ chosen, error, onValue }: { chosen: readonly Scope[]; error: string; onValue: (scopes: Scope[]) => void }) {
  const turn = (scope: Scope, isOn: boolean) => onValue(scopes.filter((each) => (each === scope ? isOn : chosen.includes(each))));
  return (
    <fieldset class={error ? "wrong" : undefined}>
      <legend>{words.scopes}</legend>
      {scopes.map((scope) => (
        <Toggle key={scope} label={words.scopeNames[scope]} isOn={chosen.includes(scope)} onValue={(isOn) => turn(scope, isOn)} />
      ))}
      {error && <small class="error" role="alert">{error}</small>}
    </fieldset>
  );
}

function Make({ onMade }: { onMade: (made: Schemas["TokenCreated"]) => void }) {
  const [typed, setTyped, clear] = useDraft<Typed>("token", { name: "", scopes: ["read"], span: "never" });
  const [isChecked, setChecked] = useState(false);
  const wrong = wrongs(typed);
  const asked = useRef({ key: "", at_ms: 0 }); // tried again it is the same token, with the same end
  const make = async (key: string) => {
    const { name, scopes: chosen, span } = typed;
    if (asked.current.key !== key) asked.current = { key, at_ms: marketNow() };
    const expires = spans[span] ? { expires_ms: asked.current.at_ms + spans[span] } : {};
    onMade(await post("/v1/tokens", { key, body: { name: name.trim(), scopes: chosen, ...expires } }));
    clear();
    setChecked(false);
    await tokens.refresh();
  };
  const { isBusy, problem, submit } = useSubmit(make, JSON.stringify(typed));
  const check = (event: Event) => {
    event.preventDefault();
    setChecked(true);
    if (!wrong.name && !wrong.scopes) void submit();
  };
  const refused = fieldProblem(problem, "name");
  const choices = (Object.keys(spans) as Span[]).map((value) => ({ value, label: words.lastsChoices[value] }));
  return (
    <form onSubmit={check} noValidate>
      <div class="together">
        <Field label={words.tokenName} error={(isChecked && wrong.name) || refused} value={typed.name}
          onValue={(name) => setTyped((before) => ({ ...before, name }))} native={{ name: "token", autocomplete: "off", required: true }} />
        <Select label={words.lasts} name="span" value={typed.span} choices={choices}
          onValue={(span) => setTyped((before) => ({ ...before, span }))} />
      </div>
      <Scopes chosen={typed.scopes} error={isChecked ? wrong.scopes : ""}
        onValue={(chosen) => setTyped((before) => ({ ...before, scopes: chosen }))} />
      {!refused && <ProblemNote problem={problem} />}
      <Button type="submit" kind="primary" isBusy={isBusy}>
        {words.make}
      </Button>
    </form>
  );
}

export function Tokens() {
  const { data, problem } = useResource(tokens);
  const [made, setMade] = useState<Schemas["TokenCreated"] | null>(null);
  return (
    <Card title={words.tokens} class="tokens">
      <p class="faint">{words.tokensHint}</p>
      <ProblemNote problem={problem} />
      {!data && !problem && <Skeleton />}
      {data?.length === 0 && <Empty icon="settings" title={words.noTokens} />}
      {data && data.length > 0 && (
        <Table label={words.tokens} columns={columns()} rows={data} rowKey={(token) => token.id} isStacked />
      )}
      {made ? (
        <div class="made" role="status">
          <Note tone="warn">{words.made(made.name)}</Note>
          <Copy text={made.token} label={words.madeLabel} />
          <Button kind="primary" onClick={() => setMade(null)}>{words.madeDone}</Button>
        </div>
      ) : (
        <Make onMade={setMade} />
      )}
    </Card>
  );
}
