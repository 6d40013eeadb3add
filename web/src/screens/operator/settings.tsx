// The market's settings in the units people think in. Only what was changed is sent, after a question that names it.
import { useState } from "preact/hooks";
import { get, put, type Schemas } from "../../api/client";
import { settingLimits } from "../../api/schema";
import { fieldProblem, Problem } from "../../api/problem";
import { scaledOf } from "../../core/amount";
import { useDraft, useSubmit } from "../../core/form";
import { resource, useResource } from "../../core/resource";
import { server, unit } from "../../core/store";
import { operator as words } from "../../text/en";
import { Button } from "../../ui/button";
import { ask } from "../../ui/dialog";
import { Field } from "../../ui/field";
import { Card, ProblemNote, Skeleton } from "../../ui/parts";
import { tell } from "../../ui/toast";

type Settings = Schemas["Settings"];
type Name = keyof Settings & keyof typeof words.fields;
type Unit = keyof typeof words.units;
type Typed = Partial<Record<Name, string>>;

const scales: Record<Unit, number> = { credits: 1_000_000, percent: 100, days: 86_400_000, seconds: 1000, hours: 3_600_000 };
const groups: Record<keyof typeof words.groups, Partial<Record<Name, Unit>>> = {
  money: { fee_basis_points: "percent", grant_microcredits: "credits", grant_earned_microcredits: "credits", grant_daily_microcredits: "credits" },
  trust: { proving_microcredits: "credits", withheld_basis_points: "percent", karma_guarantee_basis_points: "percent" },
  dormant: { dormant_ms: "days", dormant_step_ms: "days", dormant_basis_points: "percent" },
  times: { silence_ms: "seconds", lost_ms: "seconds", start_ms: "seconds", grace_ms: "seconds", slot_offset_ms: "hours" },
};
const groupNames = Object.keys(groups) as (keyof typeof groups)[];
const fieldsOf = (group: keyof typeof groups) => Object.entries(groups[group]) as [Name, Unit][];
const units = Object.fromEntries(groupNames.flatMap(fieldsOf)) as Record<Name, Unit>;
const names = Object.keys(units) as Name[];

const settings = resource(() => get("/v1/settings"), []);
const shown = (known: Settings, name: Name) => String((known[name] ?? 0) / scales[units[name]]);
const labelOf = (name: Name) =>
  words.labelled(words.fields[name], units[name] === "credits" ? unit.value : words.units[units[name]]);

// A market without money has one setting more.
const isHere = (name: Name) => name !== "karma_guarantee_basis_points" || unit.value === "karma";

function changesOf(known: Settings, typed: Typed): Name[] {
  return names.filter((name) => typed[name] !== undefined && typed[name].trim() !== shown(known, name));
}

function rangeOf(name: Name): string {
  const [least, most] = settingLimits[name].map((limit) => Math.trunc((limit / scales[units[name]]) * 100) / 100);
  return units[name] === "credits" ? words.atLeast(String(least)) : words.outside(String(least), String(most));
}

function wrongOf(name: Name, typed: string): string {
  const value = scaledOf(typed, scales[units[name]]);
  if (value === null) return words.numberWrong;
  const [least, most] = settingLimits[name];
  return value < least || value > most ? rangeOf(name) : "";
}

// The market's words begin with the setting's name, in a sentence or before a colon.
function refusalOf(problem: Error | null, name: Name): string {
  const isSentence = problem instanceof Problem && problem.detail.startsWith(`${name} `);
  return isSentence ? problem.detail.slice(name.length + 1) : fieldProblem(problem, name);
}

function Form({ known }: { known: Settings }) {
  const [typed, setTyped, clear] = useDraft<Typed>("operator-settings", {});
  const [isChecked, setChecked] = useState(false);
  const changed = changesOf(known, typed);
  const wrong = (name: Name) => (changed.includes(name) ? wrongOf(name, typed[name]!) : "");
  const change = async () => {
    const lines = changed.map((name) => words.changeLine(labelOf(name), shown(known, name), typed[name]!.trim()));
    if (!(await ask({ title: words.askChange, body: lines.map((line) => <span key={line} class="line">{line}</span>), action: words.change }))) return;
    await put("/v1/settings", {
      body: Object.fromEntries(changed.map((name) => [name, scaledOf(typed[name]!, scales[units[name]])!])),
    });
    await Promise.all([settings.refresh(), server.refresh()]);
    clear();
    setChecked(false);
    tell(words.changed);
  };
  const { isBusy, problem, submit, forget } = useSubmit(change);
  const check = (event: Event) => {
    event.preventDefault();
    setChecked(true);
    if (changed.length && !changed.some(wrong)) void submit();
  };
  const undo = () => {
    clear();
    setChecked(false);
    forget();
  };
  const isBeside = names.some((name) => refusalOf(problem, name));
  return (
    <form onSubmit={check} noValidate>
      {groupNames.map((group) => (
        <div key={group}>
          <h3>{words.groups[group]}</h3>
          <div class="together">
            {fieldsOf(group).map(([name]) => (isHere(name) && (
              <Field key={name} label={labelOf(name)} hint={[words.hints[name], rangeOf(name)].filter(Boolean).join(". ")} error={(isChecked && wrong(name)) || refusalOf(problem, name)}
                value={typed[name] ?? shown(known, name)} onValue={(text) => setTyped((before) => ({ ...before, [name]: text }))}
                native={{ name, inputMode: "decimal", autocomplete: "off" }} />
            )))}
          </div>
        </div>
      ))}
      {!isBeside && <ProblemNote problem={problem} />}
      <div class="row">
        <Button type="submit" kind="primary" isBusy={isBusy} isDisabled={changed.length === 0}>
          {words.change}
        </Button>
        {changed.length > 0 ? <Button onClick={undo}>{words.unchange}</Button> : <span class="faint">{words.nothingChanged}</span>}
      </div>
    </form>
  );
}

export function MarketSettings() {
  const { data, problem } = useResource(settings);
  return (
    <Card title={words.settings} class="market-settings">
      <ProblemNote problem={problem} />
      {!data && !problem && <Skeleton lines={6} />}
      {data && <Form known={data} />}
    </Card>
  );
}
