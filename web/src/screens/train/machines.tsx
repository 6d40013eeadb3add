// The third step: how many machines of what size, how they keep in step, what it may cost, and when it starts.
import type { ComponentChildren } from "preact";
import { unit } from "../../core/store";
import { train } from "../../text/en";
import { Field, Select, Toggle } from "../../ui/field";
import { Card } from "../../ui/parts";
import { Choose } from "./choose";
import { groups, type Draft } from "./draft";
import type { StepProps } from "./index";
import { More } from "./more";
import { choicesOf, useSchema } from "./schema";
import { Slots } from "./slots";
import { Ways } from "./ways";

const words = train.machines;
const starts = ["now", "cheapest", "by"] as const;
// What is said of synchronisation whatever the policy is; the rest belongs to the policy that was there before.
const OF_ALL_POLICIES = ["checkpoint_interval", "compress", "density", "compress_momentum", "gamma", "robust", "tick", "trim", "verify"];

type Typed = "workers" | "workersMost" | "cpus" | "memory" | "disk" | "gpus" | "servers" | "longest" | "expected" | "cost";

function useTyped({ draft, change, wrong }: StepProps) {
  return (name: Typed, field: string, label: string, hint?: ComponentChildren) => (
    <Field label={label} hint={hint} value={draft[name]} error={wrong(field)} native={{ name, autocomplete: "off" }}
      onValue={(value) => change({ [name]: value } as Partial<Draft>)} />
  );
}

function Size(props: StepProps) {
  const { draft, change } = props;
  const typed = useTyped(props);
  return (
    <Card title={draft.kind === "code" ? words.title : words.byHand}>
      <div class="grid">
        {typed("workers", "num_nodes", words.workers, words.workersHint)}
        {typed("workersMost", "num_nodes_max", words.workersMost, words.workersMostHint)}
        <div>
          {typed("cpus", "resources.cpus", words.cpus, words.cpusHint)}
          <Toggle label={words.more} isOn={draft.canHaveMoreCpus} onValue={(canHaveMoreCpus) => change({ canHaveMoreCpus })} />
        </div>
        <div>
          {typed("memory", "resources.memory", words.memory, words.memoryHint)}
          <Toggle label={words.more} isOn={draft.canHaveMoreMemory} onValue={(canHaveMoreMemory) => change({ canHaveMoreMemory })} />
        </div>
        {typed("disk", "resources.disk_size", words.disk, words.diskHint)}
        {draft.kind === "code" && typed("gpus", "resources.accelerators", words.gpus, words.gpusHint)}
      </div>
      <More {...props} title={words.moreMachines} groups={groups.machines} />
    </Card>
  );
}

function Sync(props: StepProps) {
  const { draft, change, wrong } = props;
  const typed = useTyped(props);
  const schema = useSchema();
  const named = Object.fromEntries(Object.keys(words.policies).map((name) => [name, name]));
  const choose = (policy: string) =>
    change((now) => ({
      policy,
      more: Object.fromEntries(Object.entries(now.more).filter(([path]) =>
        !path.startsWith("sync.") || OF_ALL_POLICIES.includes(path.slice("sync.".length)))),
    }));
  return (
    <Card title={words.sync}>
      <div class="grid">
        <Select label={words.policy} value={draft.policy} choices={choicesOf(schema("sync.policy"), named)} name="policy" hint={words.policies[draft.policy]}
          error={wrong("sync.policy")} onValue={choose} />
        {typed("servers", "sync.servers", words.servers, words.serversHint)}
      </div>
      <Toggle label={words.replica} isOn={draft.hasReplica} onValue={(hasReplica) => change({ hasReplica })} />
      <More {...props} title={words.moreSync} groups={groups.sync} />
    </Card>
  );
}

function Limits(props: StepProps) {
  const { draft, change, wrong } = props;
  const typed = useTyped(props);
  return (
    <Card title={words.limits}>
      <div class="grid">
        {typed("longest", "market.max_run_time", words.longest, words.longestHint)}
        {typed("expected", "market.expected_run_time", words.expected, words.expectedHint)}
        {typed("cost", "market.max_total_cost", words.cost(unit.value), words.costHint)}
      </div>
      <Ways label={words.start} name="start" value={draft.start} onValue={(start) => change({ start })}
        ways={starts.map((value) => ({ value, label: words.starts[value] }))} />
      {draft.start !== "now" && (
        <Field label={words.before} value={draft.before} error={wrong("market.start")} native={{ name: "before", type: "datetime-local" }}
          onValue={(before) => change({ before })} />
      )}
      <More {...props} title={words.moreLimits} groups={groups.limits} />
    </Card>
  );
}

export function Machines(props: StepProps) {
  return (
    <>
      <Choose {...props} />
      <Size {...props} />
      {props.draft.kind !== "code" && <Sync {...props} />}
      <Limits {...props} />
      <Slots check={props.checking.check} draft={props.draft} />
    </>
  );
}
