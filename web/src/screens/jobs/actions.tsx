// What one does with a job: give it more time, stop it, train again.
import { useState } from "preact/hooks";
import { post, type Schemas } from "../../api/client";
import { useDraft, useSubmit } from "../../core/form";
import { duration, timeShort } from "../../core/format";
import { link } from "../../core/router";
import { hasEnded, jobOf, jobs } from "../../core/store";
import { common, jobs as words } from "../../text/en";
import { Button } from "../../ui/button";
import { ask, Dialog } from "../../ui/dialog";
import { Field } from "../../ui/field";
import { ProblemNote } from "../../ui/parts";
import { tell } from "../../ui/toast";
import { training } from "..";
import { ModelLink } from "./results";

type Detail = Schemas["JobDetail"];

const MINUTE_MS = 60_000;
const MINUTES_MAX = 100_000;

function untilMs(job: Detail): number {
  return Math.max(0, ...job.leases.filter((lease) => lease.state !== "ended").map((lease) => lease.expires_ms));
}

function ExtendDialog({ job, onClose }: { job: Detail; onClose: () => void }) {
  const [minutes, setMinutes, clear] = useDraft(`extend ${job.id}`, "30");
  const asked = Number(minutes);
  const isGood = /^\d+$/.test(minutes.trim()) && asked >= 1 && asked <= MINUTES_MAX;
  const { isBusy, problem, submit } = useSubmit(async (key) => {
    await post("/v1/jobs/{id}/extend", { path: { id: job.id }, body: { by_ms: asked * MINUTE_MS }, key });
    clear();
    tell(words.extended(duration(asked * MINUTE_MS)));
    onClose();
    await jobOf(job.id).refresh();
  }, `${job.id} ${minutes}`);
  const until_ms = untilMs(job);
  return (
    <Dialog title={words.extendTitle(job.name)} onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{common.cancel}</Button>
          <Button kind="primary" isBusy={isBusy} isDisabled={!isGood} onClick={() => submit()}>{words.extend}</Button>
        </>
      }>
      {until_ms > 0 && <p>{words.extendUntil(timeShort(until_ms))}</p>}
      <form onSubmit={(event) => void (isGood ? submit(event) : event.preventDefault())}>
        <Field label={`${words.extendLabel}, ${words.extendUnit}`} value={minutes} onValue={setMinutes} hint={words.extendHint}
          error={isGood ? null : words.extendBad} native={{ inputMode: "numeric", name: "minutes", autocomplete: "off" }} />
      </form>
      <ProblemNote problem={problem} />
    </Dialog>
  );
}

export function Actions({ job }: { job: Detail }) {
  const [isExtending, setExtending] = useState(false);
  const cancel = async () => {
    const isSure = await ask({ title: words.cancelAsk(job.name), body: words.cancelBody, action: words.cancel, keep: words.keep, isDanger: true });
    if (!isSure) return;
    await post("/v1/jobs/{id}/cancel", { path: { id: job.id } });
    tell(words.cancelled);
    await Promise.all([jobs.refresh(), jobOf(job.id).refresh()]);
  };
  return (
    <div class="row actions" role="group" aria-label={words.actions}>
      {job.state === "succeeded" && job.runtime === "native" && <ModelLink id={job.id} />}
      <a class="button plain" href={`${link(training)}?from=${job.id}`}>{words.again}</a>
      {job.state === "running" && <Button onClick={() => setExtending(true)}>{words.extend}</Button>}
      {!hasEnded(job) && job.state !== "stopping" && <Button kind="danger" onClick={cancel}>{words.cancel}</Button>}
      {isExtending && <ExtendDialog job={job} onClose={() => setExtending(false)} />}
    </div>
  );
}
