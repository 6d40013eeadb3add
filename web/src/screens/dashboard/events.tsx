// The last things that happened to this account's jobs, machines and credits, newest first.
import { now } from "../../core/clock";
import { entryWords, isMatched } from "../../core/entry";
import { credits, relative, time } from "../../core/format";
import { useResource } from "../../core/resource";
import { link } from "../../core/router";
import { jobs, news, unit, type Entry, type Job, type Machine } from "../../core/store";
import { dashboard as words } from "../../text/en";
import { Icon, type IconName } from "../../ui/icon";
import { Card, Empty } from "../../ui/parts";
import { lending } from "./earning";

interface Happening {
  key: string;
  at_ms: number;
  icon: IconName;
  what: string;
  words: string;
  address?: string;
}

const SHOWN_MAX = 10;

function ofJob(job: Job): Happening[] {
  const made = (at_ms: number, said: string): Happening => ({
    key: `job ${job.id} ${said}`, at_ms, icon: "jobs", what: job.name, words: said, address: link("jobs", job.id),
  });
  const ended = words.jobEnded[job.state];
  return [
    made(job.created_ms, words.jobSubmitted),
    ...(job.started_ms ? [made(job.started_ms, words.jobStarted)] : []),
    ...(job.ended_ms && ended ? [made(job.ended_ms, ended)] : []),
  ];
}

function ofMachine(machine: Machine): Happening {
  const said = words.machineStates[machine.state]!;
  return { key: `machine ${machine.id}`, at_ms: machine.state_changed_ms, icon: "lend", what: machine.name, words: said, address: link("lend", machine.id) };
}

// Pay by the tick, what is matched to it and what jobs set aside are sums above, not news.
function ofEntry(entry: Entry): Happening[] {
  if (["post", "fee", "hold", "void"].includes(entry.kind) || isMatched(entry)) return [];
  const amount = `${credits(Math.abs(entry.amount_microcredits))} ${unit.value}`;
  return [{ key: `entry ${entry.id}`, at_ms: entry.at_ms, icon: "wallet", what: amount, words: entryWords(entry), address: link("wallet") }];
}

export function Events() {
  const { data: list } = useResource(jobs);
  const { data: lent } = useResource(lending);
  const { data: statement } = useResource(news);
  const happenings = [...(list?.items ?? []).flatMap(ofJob), ...(lent?.machines ?? []).map(ofMachine), ...(statement?.items ?? []).flatMap(ofEntry)]
    .filter((each) => each.at_ms > 0)
    .sort((a, b) => b.at_ms - a.at_ms)
    .slice(0, SHOWN_MAX);
  return (
    <Card title={words.events} class="events">
      {happenings.length === 0 && <Empty icon="info" title={words.noEvents} />}
      <ul>
        {happenings.map((each) => (
          <li key={each.key}>
            <Icon name={each.icon} size={18} />
            <span>
              <a href={each.address}>{each.what}</a> {each.words}
            </span>
            <time dateTime={new Date(each.at_ms).toISOString()} title={time(each.at_ms)}>
              {relative(each.at_ms, Math.max(now.value, each.at_ms))}
            </time>
          </li>
        ))}
      </ul>
    </Card>
  );
}
