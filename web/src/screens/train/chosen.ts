// What is asked of the recommender, and what its answer makes of the draft.
import type { Schemas } from "../../api/client";
import { durationOf } from "../jobs/progress";
import type { Draft, Json, Wish } from "./draft";

type Spec = Schemas["JobSpec"];
type Told = Schemas["Recommendation"];

export const durationMs = durationOf;
const micro = (text: string) => (text.trim() ? Math.round(Number(text) * 1e6) : undefined);
const filled = <Fields extends object>(given: Fields) =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined && value !== "" && !Number.isNaN(value))) as Partial<Fields>;

export function wishOf({ rule, kind, perHour, whole, deadline, workersMost, serverType, workerType }: Wish, spec: Spec): Schemas["RecommendationWish"] {
  const isAuto = rule === "auto";
  return {
    job: spec as unknown as Schemas["RecommendationWish"]["job"],
    rule,
    ...filled({
      wish: isAuto ? kind : undefined,
      budget_micro_per_hour: micro(perHour),
      budget_micro: isAuto ? micro(whole) : undefined,
      deadline_s: isAuto && deadline.trim() ? durationOf(deadline) / 1000 : undefined,
      worker_max: workersMost.trim() ? Number(workersMost) : undefined,
      server_type: serverType.trim(),
      worker_type: workerType.trim(),
    }),
  };
}

const text = (value: unknown) => (value === undefined || value === null ? "" : String(value));

// Fields of the job file, into the fields of the wizard.
export function chosenBy(draft: Draft, { job, time_s, cost_micro }: Told["chosen"], rule: string): Partial<Draft> {
  const { num_nodes, resources, market, sync } = (job ?? {}) as Record<string, Json>;
  const cpus = text(resources?.cpus);
  const { "market.min_speed": _speed, "market.max_hourly_cost": _cost, ...more } = draft.more;
  const speed = Number(market?.min_speed ?? 0), hourly = text(market?.max_hourly_cost);
  const total = text(market?.max_total_cost), longest = text(market?.max_run_time);
  const part: Partial<Draft> = {
    workers: text(num_nodes), workersMost: "", cpus: cpus.replace(/\+$/, ""), canHaveMoreCpus: cpus.endsWith("+"),
    ...(total ? { cost: String(Number(total)) } : {}), ...(longest ? { longest } : {}),
    ...(longest && durationOf(draft.expected) > durationOf(longest) ? { expected: "" } : {}),
    ...(sync?.policy ? { policy: text(sync.policy) } : {}),
    more: { ...more, ...(speed > 0 ? { "market.min_speed": String(speed) } : {}), ...(hourly ? { "market.max_hourly_cost": String(Number(hourly)) } : {}) },
  };
  const ms = (seconds: number) => Math.round(1000 * seconds);
  const time_ms = { low: ms(time_s.low), expected: ms(time_s.expected), high: ms(time_s.high) };
  return { ...part, foretold: { rule, is_bound: time_s.low === 0, time_ms, cost_micro, of: machinesOf({ ...draft, ...part }) } };
}

// What a prediction is about: with other machines it says nothing.
export const machinesOf = ({ workers, workersMost, cpus, canHaveMoreCpus, policy, more }: Draft) =>
  JSON.stringify([workers, workersMost, cpus, canHaveMoreCpus, policy, more["market.min_speed"] ?? ""]);

const TRIAL_MS_MIN = 8000, TRIAL_MS_MAX = 120_000;

// As `souk recommend --trial`: without a target, for as long as it takes to see steps.
export function trialOf({ seconds, cost_micro, job }: Told["trial"]): { ms: number; cost_micro: number; of: (spec: Spec) => Spec } {
  const ms = Math.min(TRIAL_MS_MAX, Math.max(TRIAL_MS_MIN, Math.ceil(1000 * seconds)));
  const of = (spec: Spec): Spec => {
    const { num_nodes_max: _most, ...rest } = spec as Json;
    const { target: _target, ...trained } = (rest.train ?? {}) as Json;
    const { expected_run_time: _expected, start: _start, ...market } = (rest.market ?? {}) as Json;
    const fields = (job ?? {}) as Record<string, Json>;
    return {
      ...rest, ...fields,
      name: `${text(rest.name).slice(0, 50)}-trial`,
      resources: { ...(rest.resources as Json), ...fields.resources },
      sync: { ...(rest.sync as Json), ...fields.sync },
      train: trained,
      market: { ...market, ...fields.market, max_run_time: `${ms}ms` },
    } as unknown as Spec;
  };
  return { ms, cost_micro: seconds > 0 ? (cost_micro * ms) / (1000 * seconds) : cost_micro, of };
}
