// "Let Souk choose": which machines for this job, by a rule and its limits; what is chosen fills the fields below.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { post, type Schemas } from "../../api/client";
import { forgetToo } from "../../core/form";
import { creditsShort, duration, number, percent } from "../../core/format";
import { useResource } from "../../core/resource";
import { link } from "../../core/router";
import { hasEnded, jobOf, unit } from "../../core/store";
import { train } from "../../text/en";
import { Button } from "../../ui/button";
import { ask } from "../../ui/dialog";
import { Field, Select } from "../../ui/field";
import { Card, Figure, Figures, Note, ProblemNote } from "../../ui/parts";
import { tell } from "../../ui/toast";
import { chosenBy, durationMs, trialOf, wishOf } from "./chosen";
import type { Wish } from "./draft";
import { costRange, FrontierChart, FrontierTable, machinesOf, timeOf, timeRange, type Cluster, type Recommendation } from "./frontier";
import type { StepProps } from "./index";

const words = train.choose;
const rules = ["auto", "cost-opt", "time-opt", "scala-opt", "scala-opt-m"] as const;
const wishes = ["cheapest", "fastest", "safest"] as const;

// The last answer, and the job file and wish it is about.
const answer = signal<{ told: Recommendation; of: string; shown: number } | null>(null);
const problem = signal<Error | null>(null);
const trial = signal<{ id: number; isOver: boolean } | null>(null);
const known = signal<string[]>([]); // types that were on offer, to choose from
export function forgetChoice(): void {
  answer.value = problem.value = trial.value = null;
  known.value = [];
}
forgetToo(forgetChoice);

function typesOf({ frontier }: Recommendation): string[] {
  return [...new Set(frontier.flatMap(({ workers, server }) => [...workers.map(({ type }) => type), server.type]))].sort();
}

async function find({ draft, checking }: StepProps): Promise<void> {
  problem.value = null;
  try {
    const body = wishOf(draft.wish, checking.check!.spec as Schemas["JobSpec"]);
    const told = await post("/v1/recommendations", { body });
    answer.value = { told, of: ofNow(draft.wish, checking), shown: told.chosen_index };
    if (trial.value?.isOver) trial.value = null; // it is learnt from
    known.value = [...new Set([...known.value, ...typesOf(told)])].sort();
  } catch (failure) {
    problem.value = failure as Error;
  }
}

// What the machines are chosen for: the training, not the machines that stand there.
function ofNow(wish: Wish, { check }: StepProps["checking"]): string {
  const { train: trained, inputs } = (check?.spec ?? {}) as Schemas["JobSpec"];
  return JSON.stringify([wish, trained, inputs]);
}

function Wishes({ draft, change }: StepProps) {
  const { wish } = draft;
  const set = (part: Partial<Wish>) => change((now) => ({ wish: { ...now.wish, ...part } }));
  const typed = (name: "perHour" | "whole" | "deadline" | "workersMost" | "serverType" | "workerType", label: string, hint: string, error = "") => (
    <Field label={label} hint={hint} value={wish[name]} error={error} native={{ name: `wish-${name}`, autocomplete: "off", ...(/Type/.test(name) ? { list: "types" } : {}) }}
      onValue={(value) => set({ [name]: value })} />
  );
  const isAmount = (text: string) => text.trim() === "" || Number(text) > 0;
  return (
    <div class="grid">
      <Select label={words.rule} name="rule" value={wish.rule} hint={words.ruleHints[wish.rule]} onValue={(rule) => set({ rule })}
        choices={rules.map((value) => ({ value, label: words.rules[value] }))} />
      {wish.rule === "auto" && (
        <Select label={words.wish} name="wish" value={wish.kind} hint={words.wishHints[wish.kind]} onValue={(kind) => set({ kind })}
          choices={wishes.map((value) => ({ value, label: words.wishes[value] }))} />
      )}
      {typed("perHour", words.perHour(unit.value), words.perHourHint, isAmount(wish.perHour) ? "" : words.noAmount)}
      {wish.rule === "auto" && typed("whole", words.whole(unit.value), words.wholeHint, isAmount(wish.whole) ? "" : words.noAmount)}
      {wish.rule === "auto" && typed("deadline", words.deadline, words.deadlineHint, wish.deadline.trim() && !durationMs(wish.deadline) ? words.noDuration : "")}
      {typed("workersMost", words.workersMost, words.workersMostHint, isAmount(wish.workersMost) ? "" : words.noAmount)}
      {typed("serverType", words.serverType, words.serverTypeHint)}
      {typed("workerType", words.workerType, wish.rule === "scala-opt-m" ? words.workerTypeNeeded : words.workerTypeHint)}
      <datalist id="types">{known.value.map((type) => <option key={type} value={type} />)}</datalist>
    </div>
  );
}

// Reads the job's state: the event of its end may be lost while the market is away.
function TrialUnder({ id }: { id: number }) {
  const { data: job } = useResource(jobOf(id));
  const isOver = job !== undefined && hasEnded(job);
  useEffect(() => {
    if (isOver) trial.value = { id, isOver };
  }, [id, isOver]);
  return <Note>{isOver ? words.trialOver : words.trialRuns} <a href={link("jobs", id)}>{words.trialJob}</a></Note>;
}

// A short run of this very job tells more than any guess.
function Trial({ told, checking }: StepProps & { told: Recommendation }) {
  const under = trial.value;
  const short = trialOf(told.trial);
  if (under) return <TrialUnder id={under.id} />;
  if (!told.trial.needed || !told.trial.job) return null;
  const told_cost = creditsShort(short.cost_micro);
  const run = async () => {
    const body = words.trialAsk(duration(short.ms), told_cost, unit.value);
    if (!(await ask({ title: words.trialTitle, body, action: words.trialRun }))) return;
    const job = await post("/v1/jobs", { body: short.of(checking.check!.spec as Schemas["JobSpec"]) });
    trial.value = { id: job.id, isOver: false };
    tell(words.trialStarted);
  };
  const canRun = checking.isFresh && checking.mistakes.length === 0 && checking.check?.needs.length === 0;
  return (
    <Note tone="warn">
      {words.trial(duration(short.ms), told_cost, unit.value)}{" "}
      {canRun ? <Button kind="link" onClick={run}>{words.trialRun}</Button> : words.trialLater}
    </Note>
  );
}

function Answer({ told, shown, isOld, ...props }: StepProps & { told: Recommendation; shown: number; isOld: boolean }) {
  const cluster = told.frontier[shown]!;
  const use = (taken: Cluster) => {
    props.change((now) => chosenBy(now, taken, told.rule));
    tell(words.used(machinesOf(taken)));
  };
  const { error } = told;
  return (
    <div class="recommended">
      {isOld && <Note tone="warn">{words.old}</Note>}
      <h3>{shown === told.chosen_index ? words.bestTitle : words.otherTitle}</h3>
      <Figures>
        <Figure label={words.columns.machines} value={machinesOf(cluster)} note={words.policyNote(cluster.policy)} />
        <Figure label={words.columns.time} value={timeOf(cluster)} note={timeRange(cluster)} />
        <Figure label={words.costs} value={creditsShort(cluster.cost_micro.expected)} unit={unit.value} note={costRange(cluster)} />
        <Figure label={words.columns.hourly} value={creditsShort(cluster.cost_micro_per_hour)} unit={unit.value} />
      </Figures>
      {cluster.why && <p>{words.why(cluster.why)}</p>}
      <Trial {...props} told={told} />
      {told.advice.length > 0 && (
        <ul class="advice" aria-label={words.advice}>{told.advice.map(({ code, text }) => <li key={code}>{text}</li>)}</ul>
      )}
      {cluster.job ? <Button kind="primary" onClick={() => use(cluster)}>{words.useThese}</Button> : <p class="faint">{words.elsewhereHint}</p>}
      <FrontierChart told={told} shown={shown} onShow={(at) => { answer.value = { ...answer.value!, shown: at }; }} />
      <details>
        <summary>{words.all(told.frontier.length)}</summary>
        <FrontierTable told={told} shown={shown} onUse={use} />
      </details>
      <p class="faint">
        {words.learnt(number(told.observations), number(told.considered))} {words.range}{" "}
        {error.typical !== null && words.error(number(error.count), percent(error.typical, 0))}
      </p>
    </div>
  );
}

export function Choose(props: StepProps) {
  const { draft, checking } = props;
  if (draft.kind === "code") return null;
  const now = answer.value;
  const isReady = checking.check?.is_valid === true && checking.isFresh;
  return (
    <Card title={words.title} class="choose">
      <p class="faint">{words.hint}</p>
      <Wishes {...props} />
      <div class="row">
        <Button kind={now ? "plain" : "primary"} isDisabled={!isReady} onClick={() => find(props)}>{now ? words.again : words.find}</Button>
        {!isReady && <span class="faint">{checking.check && !checking.check.is_valid ? words.mistakes : train.checking}</span>}
      </div>
      <ProblemNote problem={problem.value} />
      {now && <Answer {...props} told={now.told} shown={now.shown} isOld={isReady && now.of !== ofNow(draft.wish, checking)} />}
    </Card>
  );
}
