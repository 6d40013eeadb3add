// The live curve of a job: loss on the left axis, test accuracy on the right; of one that predicts numbers R².
import { useMemo } from "preact/hooks";
import type { Schemas } from "../../api/client";
import { number, percent, short } from "../../core/format";
import { jobs as words } from "../../text/en";
import { Chart } from "../../ui/chart";

interface CurveProps {
  curve: readonly Schemas["CurvePoint"][];
  isOfNumbers: boolean;
}

export function Curve({ curve, isOfNumbers }: CurveProps) {
  const data = useMemo(
    () => [
      curve.map((point) => point.elapsed_ms / 1000),
      curve.map((point) => point.loss),
      curve.map((point) => point.test_accuracy),
    ],
    [curve],
  );
  const last = curve[curve.length - 1];
  const label = last
    ? words.curve.label(last.loss?.toFixed(3) ?? words.curve.unknown, Math.round(last.elapsed_ms / 1000))
    : words.curve.empty;
  const least = isOfNumbers ? -Infinity : 0;
  return (
    <Chart
      label={label}
      x={{ label: words.curve.seconds, values: (value) => `${short(value)} s` }}
      series={[
        { label: words.figures.loss, token: "--accent", scale: "loss", value: (value) => number(value, 4) },
        {
          label: isOfNumbers ? words.figures.r2 : words.figures.accuracy, token: "--good", scale: "accuracy",
          value: (value) => (isOfNumbers ? number(value, 4) : percent(value, 2)),
        },
      ]}
      axes={[
        { scale: "loss", values: short },
        {
          scale: "accuracy", side: "right", values: (value) => (isOfNumbers ? short(value) : `${short(value * 100)} %`),
          range: (low, high) => [Math.max(least, low - 0.02), Math.min(1, high + 0.02)],
        },
      ]}
      data={data}
    />
  );
}
