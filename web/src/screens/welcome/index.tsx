// For whoever is not signed in: what this is in three lines, two ways in, and the form.
import { useEffect, useRef, useState } from "preact/hooks";
import { post } from "../../api/client";
import { fieldProblem } from "../../api/problem";
import { useDraft, useSubmit } from "../../core/form";
import { credits } from "../../core/format";
import { useResource } from "../../core/resource";
import { go, link } from "../../core/router";
import { enter, refusal } from "../../core/session";
import { server } from "../../core/store";
import { common, welcome as words } from "../../text/en";
import { ThemeButton } from "../../ui/theme_button";
import { Button } from "../../ui/button";
import { Field } from "../../ui/field";
import { Icon } from "../../ui/icon";
import { ProblemNote } from "../../ui/parts";
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
  setTyped: (typed: Typed) => void;
  clear: () => void;
}

function wrongs(typed: Typed, password: string) {
  const isNew = typed.way === "sign-up";
  return {
    name: NAME.test(typed.name) ? "" : words.nameWrong,
    password: isNew
      ? password.length < PASSWORD_LENGTH_MIN ? words.passwordShort(PASSWORD_LENGTH_MIN) : ""
      : password ? "" : words.passwordMissing,
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
    setTyped({ ...typed, way: isNew ? "sign-in" : "sign-up" });
    setChecked(false);
    forget();
  };
  const beside = (field: "name" | "password") => (isChecked && wrong[field]) || (isNew && fieldProblem(problem, field)) || "";
  const isBeside = isNew && (fieldProblem(problem, "name") || fieldProblem(problem, "password"));
  return (
    <form class="card sign-in" onSubmit={check} aria-labelledby="way" noValidate>
      <h2 id="way">{isNew ? words.signUp : words.signIn}</h2>
      {typed.intent && <p class="faint">{words.intents[typed.intent]}</p>}
      <Field label={words.accountName} hint={isNew && words.nameHint} error={beside("name")} value={typed.name}
        onValue={(name) => setTyped({ ...typed, name })}
        native={{ name: "name", autocomplete: "username", autocapitalize: "none", spellcheck: false, required: true }} />
      <Field label={words.password} hint={isNew && words.passwordHint(PASSWORD_LENGTH_MIN)} error={beside("password")}
        value={password} onValue={setPassword}
        native={{ name: "password", type: "password", required: true, autocomplete: isNew ? "new-password" : "current-password" }} />
      {isNew && (
        <Field label={words.invite} value={typed.invite} onValue={(invite) => setTyped({ ...typed, invite })}
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
  const want = (intent: Intent) => setTyped({ ...typed, way: "sign-up", intent });
  useEffect(() => {
    if (typed.intent) form.current?.querySelector<HTMLInputElement>("input[name=name]")?.focus();
  }, [typed.intent]);
  return (
    <main class="welcome">
      <div class="row">
        <h1>
          <img src="/icon.svg" alt="" width="40" height="40" /> {common.name}
        </h1>
        <span class="grow" />
        <ThemeButton />
      </div>
      <div class="lines">
        {words.lines.map((line) => (
          <p key={line}>{line}</p>
        ))}
        {market && market.grant_microcredits > 0 && (
          <p class="faint">{words.grant(credits(market.grant_microcredits), market.economy)}</p>
        )}
      </div>
      <div class="ways">
        <button type="button" aria-pressed={typed.intent === "lend"} onClick={() => want("lend")}>
          <Icon name="lend" size={26} /> {words.lend}
        </button>
        <button type="button" aria-pressed={typed.intent === "train"} onClick={() => want("train")}>
          <Icon name="train" size={26} /> {words.train}
        </button>
      </div>
      <ProblemNote problem={refusal.value} />
      <div ref={form}>
        <SignIn typed={typed} setTyped={setTyped} clear={clear} />
      </div>
      <p class="faint">
        {words.byLink} <code>souk account open</code>
      </p>
    </main>
  );
}
