// The last step: what is wrong and where, what it costs, the job file; and the submission, once.
import { newKey, post, put, type Schemas } from "../../api/client";
import { Problem } from "../../api/problem";
import { now } from "../../core/clock";
import { useSubmit } from "../../core/form";
import { creditsShort, duration, relative, timeShort } from "../../core/format";
import { go, link } from "../../core/router";
import { account, jobs, unit } from "../../core/store";
import { train } from "../../text/en";
import { Button } from "../../ui/button";
import { Copy } from "../../ui/copy";
import { Card, Figure, Figures, Note, ProblemNote, Skeleton } from "../../ui/parts";
import { complain, tell } from "../../ui/toast";
import type { Check } from "./checking";
import { machinesOf } from "./chosen";
import { stepOf, type Draft, type Json, type Mistake } from "./draft";
import type { StepProps } from "./index";
import { secretsOf } from "./secrets";
import { placedApart, waitedFor } from "./slots";

const words = train.check;

function Mistakes({ mistakes }: { mistakes: Mistake[] }) {
  if (mistakes.length === 0) return null;
  return (
    <Card title={words.mistakes}>
      <ul class="mistakes">
        {mistakes.map((mistake, at) => {
          const step = stepOf(mistake.field);
          return (
            <li key={at}>
              <span>
                {mistake.field && <code>{mistake.field}</code>} {mistake.text}
              </span>
              {step !== "check" && <a href={link("train", step)}>{words.toStep(train.steps[step])}</a>}
            </li>
          );
        })}
      </ul>
    </Card>
  );
}

function Quote({ check, draft }: { check: Check; draft: Draft }) {
  const { quote, held_microcredits } = check;
  if (!quote) return null;
  const waited = waitedFor(check, draft);
  const isSaid = quote.expected_run_ms < quote.max_run_ms; // a job of which no likely run is said may take all of its longest
  const isDear = held_microcredits > quote.available_microcredits;
  return (
    <Card title={words.quote}>
      <Figures>
        <Figure label={words.held} value={creditsShort(held_microcredits)} unit={unit.value} note={words.heldNote(duration(quote.max_run_ms))} />
        <Figure label={words.expected} value={isSaid ? creditsShort(quote.expected_microcredits) : "–"} unit={isSaid ? unit.value : undefined}
          note={isSaid ? words.expectedNote(duration(quote.expected_run_ms)) : words.noExpected} />
        <Figure label={words.hourly} unit={unit.value} note={quote.can_start ? words.hourlyPlaced : words.hourlyWish}
          value={creditsShort(quote.can_start ? quote.placed_hourly_microcredits : quote.wish_hourly_microcredits)} />
        <Figure label={words.available} value={creditsShort(quote.available_microcredits)} unit={unit.value} />
      </Figures>
      <p class="faint after">
        {words.run} {placedApart(check) && words.placed(creditsShort(quote.wish_microcredits), creditsShort(held_microcredits), unit.value)}{" "}
        {quote.credits_micro_per_usd > 0 && words.rate(creditsShort(quote.credits_micro_per_usd), unit.value)}
      </p>
      {isDear && <Note tone="warn">{words.tooDear(unit.value)}</Note>}
      {waited && <Note>{words.cheapest(timeShort(waited.start_ms), creditsShort(waited.wish_microcredits), unit.value)}</Note>}
      {quote.warning && <Note tone="warn">{words.warning(quote.warning)}</Note>}
      {waited && !quote.is_lacking ? null : quote.can_start ? (
        <Note>{words.canStart}</Note>
      ) : (
        <Note tone={quote.is_lacking ? "warn" : "plain"}>
          {words.cannotStart(quote.reason)} {quote.nearest && words.nearest(quote.nearest)}{" "}
          {quote.expected_start_ms > 0 && words.expectedStart(relative(quote.expected_start_ms, now.value))}
        </Note>
      )}
    </Card>
  );
}

// What the market refused when the job was submitted; about a field, with the way to it.
function Refusal({ problem }: { problem: Error | null }) {
  if (!problem) return null;
  const field = /^([a-z][\w.[\]]*): /.exec(problem.message)?.[1] ?? "";
  const step = stepOf(field);
  return (
    <Note tone="bad">
      {problem.message} {step !== "check" && <a href={link("train", step)}>{words.toStep(train.steps[step])}</a>}
    </Note>
  );
}

const paths = (rest: Json, before = ""): string[] =>
  Object.entries(rest).flatMap(([name, value]) =>
    value && typeof value === "object" && !Array.isArray(value) ? paths(value as Json, `${before}${name}.`) : [`${before}${name}`]);

function Rest({ draft, change }: StepProps) {
  const names = paths(draft.rest);
  if (names.length === 0) return null;
  return (
    <p class="faint">
      {words.rest}: {names.map((name, at) => <span key={name}>{at > 0 && ", "}<code>{name}</code></span>)}.{" "}
      <Button kind="link" onClick={() => change({ rest: {} })}>{words.forgetRest}</Button>
    </p>
  );
}

function needWords(check: Check, isCatalogue: boolean): string {
  if (check.needs.length === 0) return "";
  if (!check.needs.includes("data")) return check.needs.includes("file_mounts") ? words.needsMounts : words.needsFiles;
  return isCatalogue ? words.needsSet : words.needsData;
}

export function Review(props: StepProps) {
  const { draft, change, checking, text, done } = props;
  const { check, isFresh, mistakes, problem } = checking;
  const act = async () => {
    // Kept with the draft: after a reload the same job is still submitted once.
    const key = draft.keyOf === text && draft.key ? draft.key : newKey();
    change({ key, keyOf: text });
    const { secret_names: _names, ...spec } = check!.spec as Schemas["JobSpec"];
    const secrets = secretsOf(draft);
    const job = await post("/v1/jobs", { key, body: { ...spec, ...(secrets ? { secrets } : {}) } }).catch((failure: Error) => {
      // What was refused may be taken later, with more credits say: that is another try.
      if (failure instanceof Problem && failure.status < 500) change({ key: "", keyOf: "" });
      throw failure;
    });
    // What was foretold is compared with its end; the job runs without that, too.
    const { of, ...foretold } = draft.foretold ?? { of: "" };
    if (draft.kind !== "code" && of && of === machinesOf(draft))
      await put("/v1/jobs/{id}/prediction", { path: { id: job.id }, body: foretold as Schemas["Prediction"] }).catch(complain);
    tell(words.submitted(job.name));
    void jobs.refresh();
    void account.refresh();
    done();
    go(link("jobs", job.id));
  };
  const submission = useSubmit(act, text);
  if (!check) return problem ? <ProblemNote problem={problem} /> : <Skeleton lines={6} />;
  const needed = needWords(check, draft.source === "catalogue");
  const canSubmit = isFresh && mistakes.length === 0 && !needed;
  return (
    <>
      <ProblemNote problem={problem} />
      <Mistakes mistakes={mistakes} />
      {needed && (
        <Note tone="warn">
          {needed} {(check.needs.includes("data") || check.needs.includes("file_mounts")) && <a href={link("train", "data")}>{words.toStep(train.steps.data)}</a>}
        </Note>
      )}
      <Quote check={check} draft={draft} />
      {check.yaml && (
        <Card title={words.file}>
          <p class="faint">{words.fileHint}</p>
          {draft.kind === "code" && draft.secrets.length > 0 && <p class="faint">{words.secrets}</p>}
          <Rest {...props} />
          <Copy text={check.yaml} label={words.file} />
        </Card>
      )}
      <Refusal problem={submission.problem} />
      <footer class="row wizard-foot">
        <a class="button" href={link("train", "machines")}>{train.back}</a>
        <span class="faint" role="status">{check.is_valid && !isFresh ? words.notYet : ""}</span>
        <span class="grow" />
        <Button kind="primary" isDisabled={!canSubmit} isBusy={submission.isBusy} onClick={() => submission.submit()}>{words.submit}</Button>
      </footer>
    </>
  );
}
