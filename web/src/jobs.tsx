import { useContext, useState } from "preact/hooks";
import { api, type Job, type Machine, type Metrics, type Worker } from "./api";
import { Curve } from "./curve";
import { credits, duration, number, percent, time } from "./format";
import { Unit } from "./unit";

const ended = new Set(["succeeded", "failed", "cancelled"]);

function State({ state }: { state: string }) {
  return <span class={`state ${state}`}>{state}</span>;
}

/* "3 workers", "2–4 workers"; of one that runs with others than it asked for "2 of 2–4 workers". */
function workers(job: Job): string {
  const isElastic = job.num_nodes_max > job.num_nodes;
  const wanted = isElastic ? `${job.num_nodes}–${job.num_nodes_max}` : `${job.num_nodes}`;
  const isTold = job.state === "running" && job.worker_count > 0 && (isElastic || job.worker_count !== job.num_nodes);
  return `${isTold ? `${job.worker_count} of ` : ""}${wanted} ${wanted === "1" ? "worker" : "workers"}`;
}

/* Its measure is R², which is no share of anything and below 0 where the mean would tell better. */
function predictsNumbers(job: Job): boolean {
  return job.predict === "number";
}

function accuracy(job: Job): string {
  return predictsNumbers(job) ? number(job.test_accuracy, 4) : percent(job.test_accuracy);
}

/* By its name, what holds a machine up that its owner needs. */
type Held = Map<string, string>;

export function heldMachines(machines: Machine[]): Held {
  const held = machines.filter((machine) => ["frozen", "paused", "paused_remotely"].includes(machine.yield));
  return new Map(held.map((machine) => [machine.name, machine.yield === "frozen" ? "frozen" : "paused"]));
}

function Lane({ worker, held }: { worker: Worker; held: string | undefined }) {
  const share = worker.share ?? 0;
  return (
    <tr>
      <th scope="row">
        {worker.machine_name}
        {held && <span class="faint"> · {held} by its owner</span>}
      </th>
      <td class="wide">
        {worker.role === "server" ? (
          <span class="faint">parameter server{worker.rank > 0 ? ` ${worker.rank}` : ""}</span>
        ) : (
          <div class="lane" role="img" aria-label={`${percent(worker.share)} of the work`}>
            <span class="done" style={{ width: `${Math.min(100, share * 100)}%` }} />
          </div>
        )}
      </td>
      <td class="right">{worker.role === "server" ? "" : percent(worker.share)}</td>
      <td class="right">{worker.role === "server" ? "" : `${number(worker.steps_per_second, 0)} steps/s`}</td>
      <td class="right">{worker.role === "server" ? "" : `${worker.commits} commits`}</td>
      <td class="right faint">{worker.codec}</td>
    </tr>
  );
}

function Figure({ label, value }: { label: string; value: string }) {
  return (
    <div class="figure">
      <span class="faint">{label}</span>
      <strong>{value}</strong>
    </div>
  );
}

interface DetailProps {
  job: Job;
  metrics: Metrics | null;
  held: Held;
  refresh: () => void;
}

function Detail({ job, metrics, held, refresh }: DetailProps) {
  const unit = useContext(Unit);
  const [problem, setProblem] = useState("");
  const cancel = async () => {
    if (!confirm(`Cancel "${job.name}"? What was used is paid, the rest is given back.`)) return;
    try {
      await api.cancel(job.id);
      refresh();
    } catch (failure) {
      setProblem((failure as Error).message);
    }
  };
  const span = job.started_ms ? (job.ended_ms || Date.now()) - job.started_ms : 0;
  return (
    <article class="card" aria-label={`Job ${job.name}`}>
      <header class="row">
        <h3>
          {job.name} <State state={job.state} />
        </h3>
        <span class="faint">
          {job.model} · {job.policy} · {workers(job)}
        </span>
        <span class="grow" />
        {job.state === "succeeded" && (
          <a class="button" href={`/v1/jobs/${job.id}/artifacts/model.safetensors`} download>
            Download model
          </a>
        )}
        {!ended.has(job.state) && <button onClick={cancel}>Cancel</button>}
      </header>
      {job.reason && <p class="note">{job.reason}</p>}
      {metrics?.policy_reason && <p class="faint">{metrics.policy_reason}</p>}
      {problem && <p class="problem">{problem}</p>}
      <div class="figures">
        <Figure label="loss" value={number(job.loss, 3)} />
        <Figure label={predictsNumbers(job) ? "test R²" : "test accuracy"} value={accuracy(job)} />
        <Figure label="time" value={duration(span)} />
        <Figure label="spent" value={`${credits(job.spent_microcredits)} ${unit}`} />
        <Figure label="held" value={`${credits(job.held_microcredits)} ${unit}`} />
      </div>
      <Curve key={job.id} curve={metrics?.curve ?? []} isOfNumbers={predictsNumbers(job)} />
      <div class="scroll">
      <table class="lanes">
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

interface JobsProps {
  jobs: Job[];
  selected: number | null;
  select: (job: number) => void;
  metrics: Metrics | null;
  held: Held;
  refresh: () => void;
}

export function Jobs({ jobs, selected, select, metrics, held, refresh }: JobsProps) {
  const job = jobs.find((candidate) => candidate.id === selected) ?? jobs[0];
  return (
    <section aria-labelledby="jobs">
      <h2 id="jobs">Your jobs</h2>
      {!job && (
        <p class="card faint">
          Nothing yet. Write a job file and run <code>souk job submit job.yaml</code>.
        </p>
      )}
      {job && <Detail job={job} metrics={metrics?.job === job.id ? metrics : null} held={held} refresh={refresh} />}
      {jobs.length > 1 && (
        <div class="card scroll">
          <table>
            <thead>
              <tr>
                <th>job</th>
                <th>state</th>
                <th>submitted</th>
                <th class="right">accuracy</th>
                <th class="right">spent</th>
              </tr>
            </thead>
            <tbody>
              {jobs.map((row) => (
                <tr key={row.id} class={row.id === job?.id ? "selected" : ""}>
                  <td>
                    <button class="link" onClick={() => select(row.id)}>
                      {row.name}
                    </button>
                  </td>
                  <td>
                    <State state={row.state} />
                  </td>
                  <td>{time(row.created_ms)}</td>
                  <td class="right">
                    {predictsNumbers(row) && row.test_accuracy !== null && "R² "}
                    {accuracy(row)}
                  </td>
                  <td class="right">{credits(row.spent_microcredits)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
