// Gives earned credits to another account: asked before, done once, for good.
import { useState } from "preact/hooks";
import { newKey, post } from "../../api/client";
import { fieldProblem } from "../../api/problem";
import { microcreditsOf } from "../../core/amount";
import { useDraft, useSubmit } from "../../core/form";
import { credits } from "../../core/format";
import { mark } from "../../core/live";
import { unit, type Account } from "../../core/store";
import { wallet as words } from "../../text/en";
import { Button } from "../../ui/button";
import { ask } from "../../ui/dialog";
import { Field } from "../../ui/field";
import { Card, ProblemNote } from "../../ui/parts";
import { tell } from "../../ui/toast";
import { wrongs, type Typed } from "./gift";

export function Transfer({ known }: { known: Account }) {
  const [typed, setTyped, clear] = useDraft<Typed>("transfer", { to: "", amount: "", memo: "", key: "" });
  const [isChecked, setChecked] = useState(false);
  const wrong = wrongs(typed, known, unit.value);
  const amount = microcreditsOf(typed.amount) ?? 0;
  const give = async () => {
    const named = words.amountOf(credits(amount), unit.value);
    if (!(await ask({ title: words.askTransfer(named, typed.to), body: words.forGood, action: words.give }))) return;
    const { to, memo, key } = typed;
    await post("/v1/transfers", { key, body: { to, amount_microcredits: amount, ...(memo ? { memo } : {}) } });
    clear();
    setChecked(false);
    tell(words.given(named, to));
    mark(["account", "entries"]);
  };
  const { isBusy, problem, submit } = useSubmit(give);
  const check = (event: Event) => {
    event.preventDefault();
    setChecked(true);
    if (!Object.values(wrong).some(Boolean)) void submit();
  };
  const type = (change: Partial<Typed>) => setTyped((before) => ({ ...before, ...change, key: newKey() }));
  const beside = (field: keyof typeof wrong) => (isChecked && wrong[field]) || fieldProblem(problem, field);
  const isBeside = (Object.keys(wrong) as (keyof typeof wrong)[]).some((field) => fieldProblem(problem, field));
  return (
    <Card title={words.transfer} class="transfer">
      <p class="faint">{words.transferHint(credits(known.transferable_microcredits), unit.value)}</p>
      <form onSubmit={check} noValidate>
        <div class="together">
          <Field label={words.to} error={beside("to")} value={typed.to} onValue={(to) => type({ to })} isDisabled={isBusy}
            native={{ name: "to", autocomplete: "off", autocapitalize: "none", spellcheck: false, required: true }} />
          <Field label={words.amount(unit.value)} error={beside("amount_microcredits")} value={typed.amount}
            onValue={(text) => type({ amount: text })} isDisabled={isBusy}
            native={{ name: "amount", inputMode: "decimal", autocomplete: "off", required: true }} />
          <Field label={words.memo} error={beside("memo")} value={typed.memo} onValue={(memo) => type({ memo })}
            isDisabled={isBusy} native={{ name: "memo", autocomplete: "off" }} />
        </div>
        {!isBeside && <ProblemNote problem={problem} />}
        <Button type="submit" kind="primary" isBusy={isBusy}>
          {words.give}
        </Button>
      </form>
    </Card>
  );
}
