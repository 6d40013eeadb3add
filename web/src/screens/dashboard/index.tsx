// What one wants to know first: the balance, what machines earn and jobs cost now, what happened last.
import { cores, creditsShort, duration, number } from "../../core/format";
import { useResource } from "../../core/resource";
import { link } from "../../core/router";
import { account, hasEnded, jobs, myMachines, unit, type Job, type Machine } from "../../core/store";
import { common, dashboard as words } from "../../text/en";
import { MachineState } from "../../ui/machine_state";
import { Bar, Card, Empty, Figure, Figures, Head, ProblemNote, Skeleton, State } from "../../ui/parts";
import { training } from "..";
import { costs, earned, type Costs } from "./earning";
import { Events } from "./events";
import "./style.css";

const HOUR_MS = 3_600_000;
const SHOWN_MAX = 6;

function leasedWords(lent: readonly Machine[] | undefined): string {
  if (!lent?.length) return words.nothingLent;
  const leased_milli = lent.reduce((sum, machine) => sum + machine.leased_cores_milli, 0);
  return leased_milli > 0 ? words.earnedNote(cores(leased_milli)) : words.nothingLeased;
}

function Balance() {
  const { data: known } = useResource(account);
  const { data: income } = useResource(earned);
  const { data: lent } = useResource(myMachines);
  const { data: list } = useResource(jobs);
  const { data: paid } = useResource(costs);
  const running = list?.items.filter((job) => job.state === "running").length ?? 0;
  if (!known) return <Skeleton />;
  const span = !income || income.span_ms === HOUR_MS ? words.hour : duration(income.span_ms);
  return (
    <Figures isCard>
      <Figure label={words.available} value={creditsShort(known.available_microcredits)} unit={unit.value} />
      <Figure label={words.held} value={creditsShort(known.held_microcredits)} unit={unit.value} />
      <Figure label={words.earned(span)} value={income ? creditsShort(income.microcredits) : "–"} unit={unit.value} note={leasedWords(lent)} />
      <Figure label={words.costs} value={paid ? creditsShort(Math.round(paid.hourly_microcredits)) : "–"} unit={common.perHour(unit.value)}
        note={running > 0 && paid && !paid.isBilled ? words.notBilled : words.costsNote(running)} />
    </Figures>
  );
}

function MachineLine({ machine }: { machine: Machine }) {
  const offered = machine.offer.cores_milli;
  const told = words.leasedOf(number(machine.leased_cores_milli / 1000, 1), cores(offered));
  return (
    <li>
      <div class="row">
        <strong>{machine.name}</strong>
        <MachineState machine={machine} />
        <span class="grow" />
        <span class="faint">{told}</span>
      </div>
      <Bar share={offered ? machine.leased_cores_milli / offered : 0} label={told} />
    </li>
  );
}

function MyMachines() {
  const { data, problem } = useResource(myMachines);
  return (
    <Card title={words.machines} action={<a href={link("lend")}>{words.allMachines}</a>}>
      <ProblemNote problem={problem} />
      {!data && !problem && <Skeleton />}
      {data?.length === 0 && (
        <Empty icon="lend" title={words.noMachines}>
          <p class="faint">{words.noMachinesHint}</p>
          <a class="button primary" href={link("lend", "add")}>{words.lend}</a>
        </Empty>
      )}
      <ul class="lines">{data?.slice(0, SHOWN_MAX).map((machine) => <MachineLine key={machine.id} machine={machine} />)}</ul>
    </Card>
  );
}

function JobLine({ job, paid }: { job: Job; paid: Costs | undefined }) {
  const hourly = paid?.byJob.get(job.id);
  const amount = hourly && !hasEnded(job)
    ? `${creditsShort(Math.round(hourly))} ${common.perHour(unit.value)}`
    : `${creditsShort(job.spent_microcredits)} ${unit.value}`;
  return (
    <li>
      <div class="row">
        <a href={link("jobs", job.id)}><strong>{job.name}</strong></a>
        <State state={job.state} label={common.states[job.state]} />
        <span class="grow" />
        <span class="faint">{amount}</span>
      </div>
    </li>
  );
}

function MyJobs() {
  const { data, problem } = useResource(jobs);
  const { data: paid } = useResource(costs);
  const rows = [...(data?.items ?? [])].sort((a, b) => Number(hasEnded(a)) - Number(hasEnded(b)) || b.id - a.id);
  return (
    <Card title={words.jobs} action={<a href={link("jobs")}>{words.allJobs}</a>}>
      <ProblemNote problem={problem} />
      {!data && !problem && <Skeleton />}
      {data?.items.length === 0 && (
        <Empty icon="train" title={words.noJobs}>
          <p class="faint">{words.noJobsHint}</p>
          <a class="button primary" href={link(training)}>{words.train}</a>
        </Empty>
      )}
      <ul class="lines">{rows.slice(0, SHOWN_MAX).map((job) => <JobLine key={job.id} job={job} paid={paid} />)}</ul>
    </Card>
  );
}

export default function Dashboard() {
  return (
    <>
      <Head title={words.title} />
      <Balance />
      <div class="columns">
        <MyMachines />
        <MyJobs />
      </div>
      <Events />
    </>
  );
}
