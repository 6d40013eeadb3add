// What the machine earned, by the hour or the day.
import { useState } from "preact/hooks";
import { creditsShort, date, duration, timeShort } from "../../core/format";
import { useResource } from "../../core/resource";
import { unit, type Machine } from "../../core/store";
import { lend as words } from "../../text/en";
import { Chart } from "../../ui/chart";
import { Card, Note, ProblemNote, Skeleton } from "../../ui/parts";
import { Tabs } from "../../ui/tabs";
import { earningsOf, type Bucket } from "./data";

const tabs = [
  { name: "hour" as const, label: words.earnings.hours },
  { name: "day" as const, label: words.earnings.days },
];

function Curve({ machine, bucket }: { machine: Machine; bucket: Bucket }) {
  const { data, problem } = useResource(earningsOf(`${machine.id} ${bucket}`));
  if (!data) return problem ? <ProblemNote problem={problem} /> : <Skeleton />;
  const { items } = data;
  const last = items.at(-1);
  const times = [...items.map((item) => item.start_ms / 1000), (last?.end_ms ?? 0) / 1000];
  const amounts = items.map((item) => item.earned_microcredits / 1e6);
  const busy_ms = items.reduce((sum, item) => sum + item.busy_ms, 0);
  const total = `${creditsShort(data.earned_microcredits)} ${unit.value}`;
  return (
    <>
      <p class="faint">{words.earnings.total(total, duration(busy_ms))}</p>
      <Chart
        label={words.earnings.chart(total, items.length, bucket)}
        x={{ label: words.earnings.when, isTime: true, values: (s) => (bucket === "day" ? date(s * 1000) : timeShort(s * 1000)) }}
        series={[{ label: unit.value, token: "--accent", fill: true, isStepped: true, value: (value) => creditsShort(Math.round(value * 1e6)) }]}
        axes={[{ scale: "y", values: (value) => creditsShort(Math.round(value * 1e6)), range: (_low, high) => [0, high > 0 ? high * 1.1 : 1] }]}
        data={[times, [...amounts, amounts.at(-1) ?? 0]]}
        height={220}
      />
      {!data.is_whole && <Note>{words.earnings.cut}</Note>}
    </>
  );
}

export function Earnings({ machine }: { machine: Machine }) {
  const [bucket, setBucket] = useState<Bucket>("hour");
  return (
    <Card title={words.earnings.title} class="earnings">
      <Tabs label={words.earnings.title} tabs={tabs} selected={bucket} onSelect={setBucket}>
        <Curve key={bucket} machine={machine} bucket={bucket} />
      </Tabs>
    </Card>
  );
}
