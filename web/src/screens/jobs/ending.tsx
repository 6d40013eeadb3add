// How a job went wrong: the market's reason, which of its processes failed, with their logs, and what was paid.
import type { Schemas } from "../../api/client";
import { credits } from "../../core/format";
import { link } from "../../core/router";
import { unit } from "../../core/store";
import { jobs as words } from "../../text/en";
import { Card } from "../../ui/parts";
import { logName, roleName, whyEnded } from "./names";

type Detail = Schemas["JobDetail"];

const WRONG = ["failed", "lost", "faulty"];
const TOLD_MAX = 5;

// What the job's reason does not say yet.
function whyOf(job: Detail, lease: Detail["leases"][number]): string {
  const why = whyEnded(lease);
  return job.reason.includes(why) ? "" : why;
}

export function Ending({ job }: { job: Detail }) {
  const wrong = job.leases.filter((lease) => WRONG.includes(lease.outcome)).sort((a, b) => a.ended_ms - b.ended_ms || a.id - b.id);
  return (
    <Card title={words.ending.title} class="ending">
      <p class="sentences">{job.reason || words.ending.noReason}</p>
      {wrong.length > 0 && (
        <ul>
          {wrong.slice(0, TOLD_MAX).map((lease) => (
            <li key={lease.id}>
              {words.ending.lease(roleName(lease), lease.machine_name, words.leases.outcomes[lease.outcome] ?? lease.outcome, whyOf(job, lease))}{" "}
              <a href={`${link("jobs", job.id, "logs")}?${new URLSearchParams({ rank: logName(job.leases, lease) })}`}>{words.ending.log}</a>
            </li>
          ))}
          {wrong.length > TOLD_MAX && <li>{words.ending.others(wrong.length - TOLD_MAX)}</li>}
        </ul>
      )}
      <p>
        {words.ending.paid(credits(job.spent_microcredits), unit.value)} <a href={link("jobs", job.id, "bill")}>{words.ending.bill}</a>
      </p>
    </Card>
  );
}
