// Clusters by what they would take and cost: a small chart, and the same as a table.
import { useMemo } from "preact/hooks";
import type { Schemas } from "../../api/client";
import { creditsShort, duration, percent } from "../../core/format";
import { unit } from "../../core/store";
import { train } from "../../text/en";
import { Button } from "../../ui/button";
import { State } from "../../ui/parts";
import { isPhone } from "../../ui/phone";
import { Table, type Column } from "../../ui/table";

const words = train.choose;
export type Cluster = Schemas["RecommendedCluster"];
export type Recommendation = Schemas["Recommendation"];

export const machinesOf = ({ workers }: Cluster) => workers.map(({ count, type, kind }) => words.machines(count, type, kind)).join(" + ");
// Of a target that no run has reached only the most is known.
const isBound = ({ time_s }: Cluster) => time_s.low === 0;
export const timeOf = (cluster: Cluster) =>
  isBound(cluster) ? words.atMost(duration(1000 * cluster.time_s.high)) : duration(1000 * cluster.time_s.expected);
const between = (low: string, high: string) => (low === high ? "" : words.between(low, high));
export const timeRange = (cluster: Cluster) =>
  isBound(cluster) ? "" : between(duration(1000 * cluster.time_s.low), duration(1000 * cluster.time_s.high));
export const costRange = (cluster: Cluster) =>
  isBound(cluster) ? words.atMost(creditsShort(cluster.cost_micro.high)) : between(creditsShort(cluster.cost_micro.low), creditsShort(cluster.cost_micro.high));

const HEIGHT = 230, LEFT = 66, RIGHT = 18, TOP = 20, BOTTOM = 44, TICKS = 3;
const WIDE = 680, NARROW = 330; // its text is as large on a phone as on a laptop

// Both by their size: a cluster that is twice as fast lies as far from another wherever the two are.
interface Scale {
  low: number;
  high: number;
  at: (value: number) => number;
}

function scaleOf(values: number[], from: number, to: number): Scale {
  const known = values.filter((value) => value > 0);
  const low = Math.min(...known) / 1.08, high = Math.max(...known) * 1.08;
  const span = Math.log(high / low) || 1;
  return { low, high, at: (value) => from + ((to - from) * Math.log(Math.max(value, low) / low)) / span };
}

const ticksOf = ({ low, high }: Scale) => Array.from({ length: TICKS }, (_none, at) => low * (high / low) ** ((at + 0.5) / TICKS));

interface ChartProps {
  told: Recommendation;
  shown: number;
  onShow: (at: number) => void;
}

// Points with the range that eight of ten runs are meant to lie within.
export function FrontierChart({ told: { frontier, chosen_index }, shown, onShow }: ChartProps) {
  const width = isPhone.value ? NARROW : WIDE;
  const [x, y] = useMemo(() => [
    scaleOf(frontier.flatMap(({ time_s }) => [time_s.low, time_s.high]), LEFT, width - RIGHT),
    scaleOf(frontier.flatMap(({ cost_micro }) => [cost_micro.low, cost_micro.high]), HEIGHT - BOTTOM, TOP),
  ], [frontier, width]);
  const isFree = frontier.every(({ cost_micro }) => cost_micro.high <= 0);
  if (frontier.length < 2 || isFree) return null;
  const order = frontier.map((_each, at) => at).sort((a, b) => Number(b === shown) - Number(a === shown)); // the shown one covers none
  const kind = (at: number) => `${at === chosen_index ? "best" : ""}${at === shown ? " shown" : ""}`;
  return (
    <svg class="frontier" viewBox={`0 0 ${width} ${HEIGHT}`} role="img" aria-label={words.chart(frontier.length, machinesOf(frontier[chosen_index]!))}>
      {ticksOf(x).map((value) => (
        <g key={value}>
          <line class="grid" x1={x.at(value)} x2={x.at(value)} y1={TOP} y2={HEIGHT - BOTTOM} />
          <text x={x.at(value)} y={HEIGHT - BOTTOM + 17} text-anchor="middle">{duration(1000 * value)}</text>
        </g>
      ))}
      {ticksOf(y).map((value) => (
        <g key={value}>
          <line class="grid" x1={LEFT} x2={width - RIGHT} y1={y.at(value)} y2={y.at(value)} />
          <text x={LEFT - 8} y={y.at(value) + 4} text-anchor="end">{creditsShort(value)}</text>
        </g>
      ))}
      <text x={(LEFT + width - RIGHT) / 2} y={HEIGHT - 6} text-anchor="middle">{words.time}</text>
      <text x={LEFT - 8} y={TOP - 4} text-anchor="end">{unit.value}</text>
      {order.map((at) => {
        const { time_s, cost_micro } = frontier[at]!;
        const [left, up] = [x.at(time_s.expected), y.at(cost_micro.expected)];
        return (
          <g key={at} class={kind(at)}>
            <line x1={x.at(time_s.low)} x2={x.at(time_s.high)} y1={up} y2={up} />
            <line x1={left} x2={left} y1={y.at(cost_micro.low)} y2={y.at(cost_micro.high)} />
          </g>
        );
      })}
      {order.map((at) => (
        <g key={at} class={kind(at)}>
          <circle cx={x.at(frontier[at]!.time_s.expected)} cy={y.at(frontier[at]!.cost_micro.expected)} r={at === shown ? 7 : 5} onClick={() => onShow(at)} />
        </g>
      ))}
    </svg>
  );
}

interface TableProps {
  told: Recommendation;
  shown: number;
  onUse: (cluster: Cluster) => void;
}

interface Row {
  cluster: Cluster;
  at: number;
}

export function FrontierTable({ told: { frontier, chosen_index }, shown, onUse }: TableProps) {
  const rows = frontier.map((cluster, at) => ({ cluster, at }));
  const columns: readonly Column<Row>[] = [
    { name: "machines", head: words.columns.machines, isRowHead: true,
      cell: ({ cluster, at }) => <>{machinesOf(cluster)} {at === chosen_index && <State state="succeeded" label={words.best} />}</> },
    { name: "time", head: words.columns.time, sort: ({ cluster }) => cluster.time_s.expected,
      cell: ({ cluster }) => <>{timeOf(cluster)} <small class="faint">{timeRange(cluster)}</small></> },
    { name: "cost", head: words.columns.cost(unit.value), sort: ({ cluster }) => cluster.cost_micro.expected,
      cell: ({ cluster }) => <>{creditsShort(cluster.cost_micro.expected)} <small class="faint">{costRange(cluster)}</small></> },
    { name: "hourly", head: words.columns.hourly, isRight: true, isWideOnly: true, sort: ({ cluster }) => cluster.cost_micro_per_hour,
      cell: ({ cluster }) => creditsShort(cluster.cost_micro_per_hour) },
    { name: "policy", head: words.columns.policy, isWideOnly: true, cell: ({ cluster }) => cluster.policy },
    { name: "risk", head: words.columns.risk, isRight: true, isWideOnly: true, sort: ({ cluster }) => cluster.risk_milli,
      cell: ({ cluster }) => percent(cluster.risk_milli / 1000, 0) },
    { name: "use", head: words.columns.use, cell: ({ cluster }) => cluster.job
      ? <Button kind="link" onClick={() => onUse(cluster)}>{words.use}</Button> : <span class="faint">{words.elsewhere}</span> },
  ];
  return <Table label={words.frontier} columns={columns} rows={rows} isStacked rowKey={({ at }) => String(at)} isSelected={({ at }) => at === shown} />;
}
