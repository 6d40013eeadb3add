// What the job's run showed, worker by worker, and how that compares with what was foretold of it. The recommender learns
// from the same figures.
import { get, type Schemas } from "../../api/client";
import { Problem } from "../../api/problem";
import { bytes, creditsShort, duration, number, percent, short } from "../../core/format";
import { resourceOf, useResource } from "../../core/resource";
import { unit } from "../../core/store";
import { jobs } from "../../text/en";
import { Card, Figure, Figures, ProblemNote, Skeleton } from "../../ui/parts";
import { Table, type Column } from "../../ui/table";
import { byRole, roleName } from "./names";
import { sharesOf } from "./watch";

type Profile = Schemas["Profile"];
type Worker = Profile["workers"][number];
type Outcome = NonNullable<Profile["prediction"]>;

const words = jobs.profile;
const profileOf = resourceOf((id: number) => get("/v1/jobs/{id}/profile", { path: { id } }), ["job"], { every_ms: 5000 });

const perSecond = (rate: number | null) => (rate === null ? "–" : words.perSecond(bytes(rate)));
const shareOf = (worker: Worker, kind: "compute" | "transfer" | "wait") => sharesOf(worker)?.[kind];
const shareColumn = (kind: "compute" | "transfer" | "wait"): Column<Worker> => ({
  name: kind, head: words[kind], isRight: true, isWideOnly: kind !== "compute", sort: (worker) => shareOf(worker, kind) ?? -1,
  cell: (worker) => (worker.role === "server" ? "" : percent(shareOf(worker, kind), 0)),
});

const columns: readonly Column<Worker>[] = [
  { name: "machine", head: words.machine, isRowHead: true, sort: (worker) => worker.machine_name,
    cell: (worker) => <>{worker.machine_name} <small class="faint">{roleName(worker)}</small></> },
  { name: "hardware", head: words.hardware, isWideOnly: true,
    cell: ({ cpu_model, gpu_model, speed_weight_milli }) => <small>{[gpu_model, cpu_model, words.speed(number(speed_weight_milli / 1000, 2))].filter(Boolean).join(", ")}</small> },
  { name: "step", head: words.step, isRight: true, sort: (worker) => worker.step_ms ?? Infinity,
    cell: ({ step_ms }) => (step_ms === null ? "–" : words.ms(short(step_ms))) },
  shareColumn("compute"), shareColumn("transfer"), shareColumn("wait"),
  { name: "link", head: words.link, isRight: true, isWideOnly: true, sort: (worker) => worker.sent_bytes_per_s ?? -1,
    cell: (worker) => `${perSecond(worker.sent_bytes_per_s)} / ${perSecond(worker.received_bytes_per_s)}` },
  { name: "cores", head: words.cores, isRight: true, sort: (worker) => worker.cores_used ?? -1, cell: (worker) => number(worker.cores_used, 2) },
  { name: "memory", head: words.memory, isRight: true, isWideOnly: true, sort: (worker) => worker.memory_peak_bytes,
    cell: ({ memory_peak_bytes }) => (memory_peak_bytes ? bytes(memory_peak_bytes) : "–") },
];

const off = (error: number | null) => (error === null ? "" : words.off(percent(Math.abs(error), 0), error < 0));

function Foretold({ told }: { told: Outcome }) {
  const range = (low: string, high: string) => words.between(low, high);
  const { time_ms, cost_micro } = told;
  return (
    <>
      <h3>{words.foretold(told.rule)}</h3>
      <Figures>
        <Figure label={words.timeTold} value={duration(time_ms.expected)} note={range(duration(time_ms.low), duration(time_ms.high))} />
        {told.is_over && <Figure label={words.timeWas} value={duration(told.actual_time_ms)} note={off(told.time_error)} />}
        <Figure label={words.costTold} value={creditsShort(cost_micro.expected)} unit={unit.value} note={range(creditsShort(cost_micro.low), creditsShort(cost_micro.high))} />
        {told.is_over && <Figure label={words.costWas} value={creditsShort(told.actual_cost_micro)} unit={unit.value} note={off(told.cost_error)} />}
      </Figures>
    </>
  );
}

export function JobProfile({ id }: { id: number }) {
  const { data: profile, problem } = useResource(profileOf(id));
  const isMissing = problem instanceof Problem && problem.status === 404;
  return (
    <Card title={words.title} class="profile">
      {isMissing ? <p class="faint">{words.none}</p> : <ProblemNote problem={problem} />}
      {!profile && !problem && <Skeleton lines={4} />}
      {profile && (
        <>
          <p class="faint">{words.hint}</p>
          <Figures>
            <Figure label={words.steps} value={number(profile.steps)} />
            <Figure label={words.samples} value={number(profile.samples)} />
            <Figure label={words.pushes} value={number(profile.pushes)} />
            <Figure label={words.parameters} value={number(profile.parameter_count)} />
            {!!profile.loss_per_second && <Figure label={words.lossPerMinute} value={short(60 * profile.loss_per_second)} />}
          </Figures>
          {profile.prediction && <Foretold told={profile.prediction} />}
          <Table label={words.workers} columns={columns} rows={[...profile.workers].sort(byRole)} rowKey={(worker) => worker.lease} isStacked />
        </>
      )}
    </Card>
  );
}
