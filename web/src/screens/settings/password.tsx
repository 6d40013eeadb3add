// Sets or changes the password. What is typed here is never kept.
import { useState } from "preact/hooks";
import { put } from "../../api/client";
import { fieldProblem } from "../../api/problem";
import { useSubmit } from "../../core/form";
import { mark } from "../../core/live";
import type { Account } from "../../core/store";
import { settings as words } from "../../text/en";
import { Button } from "../../ui/button";
import { Field } from "../../ui/field";
import { Card, ProblemNote } from "../../ui/parts";
import { tell } from "../../ui/toast";
import { sessions } from "./read";

const LENGTH_MIN = 10;
const BYTES_MAX = 256;

interface Typed {
  old: string;
  fresh: string;
  again: string;
}
const nothing: Typed = { old: "", fresh: "", again: "" };

function wrongs(typed: Typed, known: Account) {
  const isLong = new TextEncoder().encode(typed.fresh).length > BYTES_MAX;
  return {
    old: known.has_password && !typed.old ? words.oldMissing : "",
    fresh: typed.fresh.length < LENGTH_MIN ? words.passwordShort(LENGTH_MIN) : isLong ? words.passwordLong(BYTES_MAX) : "",
    again: typed.again === typed.fresh ? "" : words.againWrong,
  };
}

export function Password({ known }: { known: Account }) {
  const [typed, setTyped] = useState<Typed>(nothing);
  const [isChecked, setChecked] = useState(false);
  const type = (change: Partial<Typed>) => setTyped((before) => ({ ...before, ...change }));
  const wrong = wrongs(typed, known);
  const set = async () => {
    await put("/v1/account/password", {
      body: { password: typed.fresh, ...(known.has_password ? { old_password: typed.old } : {}) },
    });
    setTyped(nothing);
    setChecked(false);
    tell(words.passwordSet);
    mark(["account"]);
    await sessions.refresh();
  };
  const { isBusy, problem, submit } = useSubmit(set);
  const check = (event: Event) => {
    event.preventDefault();
    setChecked(true);
    if (!wrong.old && !wrong.fresh && !wrong.again) void submit();
  };
  const refused = { old: fieldProblem(problem, "old_password"), fresh: fieldProblem(problem, "password"), again: "" };
  const beside = (field: keyof Typed) => (isChecked && wrong[field]) || refused[field];
  const native = (name: string, autocomplete: "current-password" | "new-password") =>
    ({ name, type: "password", autocomplete, required: true }) as const;
  return (
    <Card title={words.password} class="password">
      <p class="faint">{known.has_password ? words.passwordEnds : words.noPassword}</p>
      <form onSubmit={check} noValidate>
        <input type="text" name="username" autocomplete="username" value={known.name} readOnly hidden />
        <div class="together">
          {known.has_password && (
            <Field label={words.oldPassword} error={beside("old")} value={typed.old} onValue={(old) => type({ old })}
              native={native("old", "current-password")} />
          )}
          <Field label={words.newPassword} hint={words.passwordHint(LENGTH_MIN)} error={beside("fresh")} value={typed.fresh}
            onValue={(fresh) => type({ fresh })} native={native("fresh", "new-password")} />
          <Field label={words.again} error={beside("again")} value={typed.again} onValue={(again) => type({ again })}
            native={native("again", "new-password")} />
        </div>
        {!refused.old && !refused.fresh && <ProblemNote problem={problem} />}
        <Button type="submit" kind="primary" isBusy={isBusy}>
          {known.has_password ? words.changePassword : words.setPassword}
        </Button>
      </form>
    </Card>
  );
}
