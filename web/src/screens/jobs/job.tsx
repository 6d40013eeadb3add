// One job: its figures, its curve, its workers.
import { post, type Schemas } from "../../api/client";
import { credits, duration, number, percent } from "../../core/format";
import { heldMachines } from "../../core/machine";
import { useResource } from "../../core/resource";
import { hasEnded, jobOf, jobs, machines, metricsOf, unit, type Job } from "../../core/store";
import { common, jobs as words } from "../../text/en";
import { Button } from "../../ui/button";
import { ask } from "../../ui/dialog";
import { Icon } from "../../ui/icon";
import { Bar, Figure, Figures, Note, ProblemNote, Skeleton, State } from "../../ui/parts";
import { tell } from "../../ui/toast";
import { Curve } from "./curve";

type Worker = Schemas["WorkerMetric"];

// "3 workers", "2–4 workers"; of one that runs with others than it asked for "2 of 2–4 workers".
function workers(job: Job): string {
  const isElastic = job.num_nodes_max > job.num_nodes;
  const wanted = isElastic ? `${job.num_nodes}–${job.num_nodes_max}` : `${job.num_nodes}`;
  const isTold = job.state === "running" && job.worker_count > 0 && (isElastic || job.worker_count !== job.num_nodes);
  return words.workers(isTold ? words.of(job.worker_count, wanted) : wanted, wanted === "1");
}

// Its measure is R², which is no share of anything and below 0 where the mean would tell better.
export const predictsNumbers = (job: Job) => job.predict === "number";
export const accuracy = (job: Job) => (predictsNumbers(job) ? number(job.test_accuracy, 4) : percent(job.test_accuracy));

function Lane({ worker, held }: { worker: Worker; held: string | undefined }) {
  const isServer = worker.role === "server";
  return (
    <tr>
      <th scope="row">
        {worker.machine_name}
        {held && <span class="faint"> · {words.heldBy[held]}</span>}
      </th>
      <td class="wide">
        {isServer ? (
          <span class="faint">{words.server(worker.rank)}</span>
        ) : (
          <Bar share={worker.share ?? 0} label={words.share(percent(worker.share))} />
        )}
      </td>
      <td class="right">{isServer ? "" : percent(worker.share)}</td>
      <td class="right wide-only">{isServer ? "" : words.speed(number(worker.steps_per_second, 0))}</td>
      <td class="right wide-only">{isServer ? "" : words.commits(number(worker.commits))}</td>
      <td class="right faint wide-only">{worker.codec}</td>
    </tr>
  );
}

function Actions({ job }: { job: Job }) {
  const cancel = async () => {
    const isSure = await ask({ title: words.cancelAsk(job.name), body: words.cancelBody, action: words.cancel, isDanger: true });
    if (!isSure) return;
    await post("/v1/jobs/{id}/cancel", { path: { id: job.id } });
    tell(words.cancelled);
    await Promise.all([jobs.refresh(), jobOf(job.id).refresh()]);
  };
  if (!hasEnded(job)) return <Button onClick={cancel}>{words.cancel}</Button>;
  if (job.state !== "succeeded") return null;
  return (
    <a class="button plain" href={`/v1/jobs/${job.id}/artifacts/model.safetensors`} download>
      <Icon name="download" size={18} /> {words.downloadModel}
    </a>
  );
}

export function JobDetail({ id }: { id: number }) {
  const { data: job, problem } = useResource(jobOf(id));
  const { data: metrics } = useResource(metricsOf(id));
  const held = heldMachines(useResource(machines).data ?? []);
  if (!job) return problem ? <ProblemNote problem={problem} /> : <Skeleton lines={6} />;
  const span = job.started_ms ? (job.ended_ms || Date.now()) - job.started_ms : 0;
  return (
    <article class="card job" aria-label={words.job(job.name)}>
      <header class="row">
        <h2>
          {job.name} <State state={job.state} label={common.states[job.state]} />
        </h2>
        <span class="faint">
          {job.model} · {job.policy} · {workers(job)}
        </span>
        <span class="grow" />
        <Actions job={job} />
      </header>
      {job.reason && <Note>{job.reason}</Note>}
      {metrics?.policy_reason && <p class="faint">{metrics.policy_reason}</p>}
      <ProblemNote problem={problem} />
      <Figures>
        <Figure label={words.figures.loss} value={number(job.loss, 3)} />
        <Figure label={predictsNumbers(job) ? words.figures.r2 : words.figures.accuracy} value={accuracy(job)} />
        <Figure label={words.figures.time} value={duration(span)} />
        <Figure label={words.figures.spent} value={credits(job.spent_microcredits)} unit={unit.value} />
        <Figure label={words.figures.held} value={credits(job.held_microcredits)} unit={unit.value} />
      </Figures>
      <Curve key={id} curve={metrics?.curve ?? []} isOfNumbers={predictsNumbers(job)} />
      <div class="scroll" tabIndex={0} role="group" aria-label={words.workersTable}>
        <table class="lanes" aria-label={words.workersTable}>
          <tbody>
            {metrics?.workers.map((worker) => (
              <Lane key={worker.lease} worker={worker} held={held.get(worker.machine_name)} />
            ))}
          </tbody>
        </table>
      </div>
    </article>
  );
}
