// For whoever is not signed in: what this is in three lines, two ways in, and the form.
import { useEffect, useRef, useState } from "preact/hooks";
import { post } from "../../api/client";
import { fieldProblem, Problem } from "../../api/problem";
import { useDraft, useSubmit } from "../../core/form";
import { credits } from "../../core/format";
import { useResource } from "../../core/resource";
import { go, link } from "../../core/router";
import { enter, hasExpired, refusal } from "../../core/session";
import { server, unit } from "../../core/store";
import { common, welcome as words } from "../../text/en";
import { ThemeButton } from "../../ui/theme_button";
import { Button } from "../../ui/button";
import { Field } from "../../ui/field";
import { Icon } from "../../ui/icon";
import { Note, ProblemNote } from "../../ui/parts";
import { training } from "..";

type Way = "sign-in" | "sign-up";
type Intent = "" | "lend" | "train";

// What a browser can check before anyone is asked; the market has the last word.
const NAME = /^[a-z0-9-]{1,40}$/;
const PASSWORD_LENGTH_MIN = 10;

interface Typed {
  way: Way;
  intent: Intent;
  name: string;
  invite: string;
}

interface FormProps {
  typed: Typed;
  setTyped: (change: (before: Typed) => Typed) => void;
  clear: () => void;
}

function wrongs(typed: Typed, password: string) {
  const isNew = typed.way === "sign-up";
  return {
    name: NAME.test(typed.name) ? "" : words.nameWrong,
    password: isNew
      ? password.length < PASSWORD_LENGTH_MIN ? words.passwordShort(PASSWORD_LENGTH_MIN) : ""
      : password ? "" : words.passwordMissing,
    invite: "",
  };
}

interface Refusals {
  name: string;
  password: string;
  invite: string;
}

// Of opening an account: a conflict is a name that somebody has.
function refusals(problem: Error | null): Refusals {
  const isTaken = problem instanceof Problem && problem.code === "conflict";
  return {
    name: isTaken ? problem.detail : fieldProblem(problem, "name"),
    password: fieldProblem(problem, "password"),
    invite: fieldProblem(problem, "invite"),
  };
}

function SignIn({ typed, setTyped, clear }: FormProps) {
  const [password, setPassword] = useState("");
  const [isChecked, setChecked] = useState(false);
  const isNew = typed.way === "sign-up";
  const wrong = wrongs(typed, password);
  const sign = async (key: string) => {
    const { name, invite } = typed;
    if (isNew)
      await post("/v1/accounts", { key, body: { name, password, session: true, ...(invite.trim() ? { invite: invite.trim() } : {}) } });
    else await post("/v1/sessions", { body: { name, password } });
    if (typed.intent) go(typed.intent === "lend" ? link("lend", "add") : link(training));
    await enter();
    clear();
  };
  const { isBusy, problem, submit, forget } = useSubmit(sign, JSON.stringify([typed, password]));
  const check = (event: Event) => {
    event.preventDefault();
    setChecked(true);
    if (!wrong.name && !wrong.password) void submit();
  };
  const turn = () => {
    setTyped((before) => ({ ...before, way: isNew ? "sign-in" : "sign-up" }));
    setChecked(false);
    forget();
  };
  const refused = isNew ? refusals(problem) : null;
  const beside = (field: keyof Refusals) => (isChecked && wrong[field]) || refused?.[field] || "";
  const isBeside = refused !== null && Object.values(refused).some(Boolean);
  return (
    <form class="card sign-in" onSubmit={check} aria-labelledby="way" noValidate>
      <h2 id="way">{isNew ? words.signUp : words.signIn}</h2>
      {typed.intent && <p class="faint">{words.intents[typed.intent]}</p>}
      <Field label={words.accountName} hint={isNew && words.nameHint} error={beside("name")} value={typed.name}
        onValue={(name) => setTyped((before) => ({ ...before, name }))}
        native={{ name: "name", autocomplete: "username", autocapitalize: "none", spellcheck: false, required: true }} />
      <Field label={words.password} hint={isNew && words.passwordHint(PASSWORD_LENGTH_MIN)} error={beside("password")}
        value={password} onValue={setPassword}
        native={{ name: "password", type: "password", required: true, autocomplete: isNew ? "new-password" : "current-password" }} />
      {isNew && (
        <Field label={words.invite} value={typed.invite} error={beside("invite")} onValue={(invite) => setTyped((before) => ({ ...before, invite }))}
          native={{ name: "invite", autocomplete: "off" }} />
      )}
      {!isBeside && <ProblemNote problem={problem} />}
      <div class="row">
        <Button type="submit" kind="primary" isBusy={isBusy}>
          {isNew ? words.signUp : words.signIn}
        </Button>
        <Button kind="link" onClick={turn}>
          {isNew ? words.haveAccount : words.newHere}
        </Button>
      </div>
    </form>
  );
}

export function Welcome() {
  const [typed, setTyped, clear] = useDraft<Typed>("welcome", { way: "sign-in", intent: "", name: "", invite: "" });
  const { data: market } = useResource(server);
  const form = useRef<HTMLDivElement>(null);
  const want = (intent: Intent) => {
    refusal.value = null;
    setTyped((before) => ({ ...before, way: "sign-up", intent }));
  };
  useEffect(() => {
    if (typed.intent) form.current?.querySelector<HTMLInputElement>("input[name=name]")?.focus();
  }, [typed.intent]);
  return (
    <main class="welcome">
      <div class="theme">
        <ThemeButton />
      </div>
      <div>
        <h1>
          <img src="/icon.svg" alt="" width="48" height="48" /> {common.name}
        </h1>
        <ul class="lines">
          <li><Icon name="lend" /> {words.lines.lend(unit.value)}</li>
          <li><Icon name="train" /> {words.lines.train(unit.value)}</li>
          <li><Icon name="wallet" /> {words.lines.wallet}</li>
        </ul>
        <div class="ways">
          <button type="button" aria-pressed={typed.intent === "lend"} onClick={() => want("lend")}>
            <Icon name="lend" size={28} /> <strong>{words.lend}</strong>
          </button>
          <button type="button" aria-pressed={typed.intent === "train"} onClick={() => want("train")}>
            <Icon name="train" size={28} /> <strong>{words.train}</strong>
          </button>
        </div>
        {market && market.grant_microcredits > 0 && (
          <p class="faint">{words.grant(credits(market.grant_microcredits), market.economy)}</p>
        )}
      </div>
      <div ref={form}>
        {hasExpired.value && <Note tone="warn">{words.ended}</Note>}
        <ProblemNote problem={refusal.value} />
        <SignIn typed={typed} setTyped={setTyped} clear={clear} />
        <p class="faint">
          {words.byLink} <code>souk account open</code>
        </p>
      </div>
    </main>
  );
}
