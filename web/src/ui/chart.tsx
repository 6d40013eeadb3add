// A chart by uPlot in the page's colours. It follows its holder's size and the theme; `label` says in words what it shows.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { colour, isDark } from "../core/theme";
import { common } from "../text/en";

export interface Series {
  label: string;
  token: string; // its colour: "--accent"
  scale?: string; // "y" is the left axis
  value?: (value: number) => string; // in the legend
  fill?: boolean;
  isStepped?: boolean; // holds until the next point, as prices do
}

export interface Axis {
  scale: string;
  side?: "left" | "right";
  values: (value: number) => string;
  range?: (low: number, high: number) => [number, number];
}

interface X {
  label: string;
  isTime?: boolean;
  values?: (seconds: number) => string;
  tick?: (seconds: number) => string; // shorter, for the axis
  tick_px?: number; // of the longest
}

interface ChartProps {
  label: string;
  x: X;
  series: readonly Series[];
  axes: readonly Axis[];
  data: readonly (readonly (number | null)[])[]; // x first
  height?: number;
}

const AXIS_PX = 58; // at least
const TIME_PX = 110; // a date and a time, as a tick has them

// As wide as the longest label, once it is known.
function widthOf(plot: uPlot, labels: string[] | null, index: number): number {
  const { font, gap = 0 } = plot.axes[index]!;
  if (!labels?.length) return AXIS_PX;
  plot.ctx.font = (font as unknown as [string])[0]; // uPlot keeps it in the canvas's own pixels
  const longest = Math.max(...labels.map((label) => plot.ctx.measureText(label).width)) / devicePixelRatio;
  return Math.max(AXIS_PX, Math.ceil(longest + gap + 2));
}

function options({ x, series, axes, height = 260 }: ChartProps, width: number): uPlot.Options {
  const line = { stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
  const ranges = axes.filter((axis) => axis.range);
  const tick = x.tick ?? x.values, tick_px = x.tick_px ?? TIME_PX;
  return {
    width,
    height,
    legend: { show: true, live: true },
    ...(x.isTime ? { padding: [null, tick_px / 2, null, null] } : {}),
    cursor: { drag: { x: false, y: false } },
    scales: {
      x: { time: x.isTime ?? false },
      ...Object.fromEntries(ranges.map((axis) => [axis.scale,
        { range: (_plot: uPlot, low: number, high: number) => axis.range!(low, high) }])),
    },
    series: [
      { label: x.label, ...(x.values ? { value: (_plot: uPlot, value: number | null) => (value === null ? "–" : x.values!(value)) } : {}) },
      ...series.map((each) => ({
        label: each.label,
        scale: each.scale ?? "y",
        stroke: colour(each.token),
        width: 2,
        spanGaps: true,
        ...(each.fill ? { fill: colour(`${each.token}-soft`) } : {}),
        ...(each.isStepped ? { paths: uPlot.paths.stepped!({ align: 1 }), points: { show: false } } : {}),
        value: (_plot: uPlot, value: number | null) => (value === null ? "–" : each.value ? each.value(value) : String(value)),
      })),
    ],
    axes: [
      { ...line, size: 34, ...(x.isTime ? { space: tick_px + 20 } : {}), ...(tick ? { values: (_plot: uPlot, ticks: number[]) => ticks.map(tick) } : {}) },
      ...axes.map((axis) => ({
        ...line,
        scale: axis.scale,
        side: axis.side === "right" ? 1 : 3,
        size: widthOf,
        ...(axis.side === "right" ? { grid: { show: false } } : {}),
        values: (_plot: uPlot, ticks: number[]) => ticks.map(axis.values),
      })),
    ],
  };
}

function Plot(props: ChartProps) {
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const dark = isDark.value;
  const data = props.data as unknown as uPlot.AlignedData;
  useEffect(() => {
    const element = holder.current!;
    const made = new uPlot(options(props, element.clientWidth || 320), data, element);
    plot.current = made;
    const resize = new ResizeObserver(() => {
      if (element.clientWidth) made.setSize({ width: element.clientWidth, height: props.height ?? 260 });
    });
    resize.observe(element);
    return () => {
      resize.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [dark, props.series.map((each) => each.label).join("|")]);
  useEffect(() => plot.current?.setData(data), [props.data]);
  return <div ref={holder} class="chart" role="img" aria-label={props.label} />;
}

export function Chart(props: ChartProps) {
  const [places = [], ...lines] = props.data;
  const seen = places.filter((_place, at) => lines.some((line) => (line[at] ?? null) !== null));
  return seen.length < 2 ? <p class="faint">{common.shortCurve}</p> : <Plot {...props} />;
}
