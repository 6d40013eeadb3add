// What one wants to know first: the balance, what machines earn and jobs cost now, what happened last.
import { cores, creditsShort, duration, percent, thousandths } from "../../core/format";
import { useResource } from "../../core/resource";
import { link } from "../../core/router";
import { account, hasEnded, jobs, unit, type Account, type Job, type Machine } from "../../core/store";
import { common, dashboard as words } from "../../text/en";
import { MachineState } from "../../ui/machine_state";
import { Bar, Card, Empty, Figure, Figures, Head, ProblemNote, Skeleton, State } from "../../ui/parts";
import { training } from "..";
import { costs, earned, lending, type Costs, type Lending, type Running } from "./earning";
import { Events } from "./events";
import { Start } from "./start";
import "./style.css";

const HOUR_MS = 3_600_000;
const SHOWN_MAX = 6;

const perHour = (microcredits: number) => creditsShort(Math.round(microcredits));

// Of what all of them earn or cost; of very many only some are looked at.
function allPerHour(known: Lending | Costs | undefined): string {
  if (!known) return "–";
  return known.isWhole ? perHour(known.hourly_microcredits) : words.atLeast(perHour(known.hourly_microcredits));
}

function useEarnedWords(machineCount: number | undefined): string {
  const { data: income } = useResource(earned);
  if (machineCount === 0 && !income?.microcredits) return words.nothingLent;
  if (!income) return "";
  const span = income.span_ms === HOUR_MS ? words.hour : duration(income.span_ms);
  return words.earned(creditsShort(income.microcredits), span);
}

function Balance({ known }: { known: Account }) {
  const { data: lent } = useResource(lending);
  const { data: list } = useResource(jobs);
  const { data: paid } = useResource(costs);
  const note = useEarnedWords(lent?.machines.length);
  const running = list?.items.filter((job) => job.state === "running").length ?? 0;
  return (
    <Figures isCard>
      <Figure label={words.available} value={creditsShort(known.available_microcredits)} unit={unit.value} note={words.availableNote} />
      <Figure label={words.held} value={creditsShort(known.held_microcredits)} unit={unit.value} note={words.heldNote} />
      <Figure label={words.earns} value={allPerHour(lent)} unit={words.perHour(unit.value)} note={note} />
      <Figure label={words.costs} value={allPerHour(paid)} unit={words.perHour(unit.value)}
        note={running > 0 && paid && !paid.isBilled ? words.notBilled : words.costsNote(running)} />
    </Figures>
  );
}

function MachineLine({ machine, rate }: { machine: Machine; rate: number | undefined }) {
  const offered = machine.offer.cores_milli;
  const told = words.leasedOf(thousandths(machine.leased_cores_milli), cores(offered));
  return (
    <li>
      <div class="row">
        <a href={link("lend", machine.id)}><strong>{machine.name}</strong></a>
        <MachineState machine={machine} />
        <span class="grow" />
        <span class="faint">{rate ? `${perHour(rate)} ${words.perHour(unit.value)}` : told}</span>
      </div>
      <Bar share={offered ? machine.leased_cores_milli / offered : 0} label={told} />
    </li>
  );
}

function MyMachines() {
  const { data, problem } = useResource(lending);
  const busyFirst = [...(data?.machines ?? [])].sort((a, b) => b.lease_count - a.lease_count || b.id - a.id);
  return (
    <Card title={words.machines} action={<a href={link("lend")}>{words.allMachines}</a>}>
      <ProblemNote problem={problem} />
      {!data && !problem && <Skeleton />}
      {data?.machines.length === 0 && (
        <Empty icon="lend" title={words.noMachines}>
          <p class="faint">{words.noMachinesHint}</p>
          <a class="button" href={link("lend", "add")}>{words.lend}</a>
        </Empty>
      )}
      <ul class="lines">
        {busyFirst.slice(0, SHOWN_MAX).map((machine) => <MachineLine key={machine.id} machine={machine} rate={data?.byMachine.get(machine.id)} />)}
      </ul>
    </Card>
  );
}

function JobLine({ job, running }: { job: Job; running: Running | undefined }) {
  const amount = running?.hourly_microcredits && !hasEnded(job)
    ? `${perHour(running.hourly_microcredits)} ${words.perHour(unit.value)}`
    : `${creditsShort(job.spent_microcredits)} ${unit.value}`;
  const share = hasEnded(job) ? null : (running?.share ?? null);
  return (
    <li>
      <div class="row">
        <a href={link("jobs", job.id)}><strong>{job.name}</strong></a>
        <State state={job.state} label={common.states[job.state]} />
        <span class="grow" />
        <span class="faint">{amount}</span>
      </div>
      {share !== null && <Bar share={share} label={words.progress(percent(share, 0))} />}
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
          <a class="button" href={link(training)}>{words.train}</a>
        </Empty>
      )}
      <ul class="lines">{rows.slice(0, SHOWN_MAX).map((job) => <JobLine key={job.id} job={job} running={paid?.byJob.get(job.id)} />)}</ul>
    </Card>
  );
}

export default function Dashboard() {
  const { data: known, problem } = useResource(account);
  const { data: lent } = useResource(lending);
  const { data: list } = useResource(jobs);
  const isNew = known?.spent_microcredits === 0 && known.earned_microcredits === 0 && lent?.machines.length === 0 && list?.items.length === 0;
  return (
    <>
      <Head title={words.title} />
      <ProblemNote problem={problem} />
      {known && !isNew && <Balance known={known} />}
      {known && isNew ? (
        <Start known={known} />
      ) : (
        <div class="columns">
          <MyMachines />
          <MyJobs />
        </div>
      )}
      <Events />
    </>
  );
}
