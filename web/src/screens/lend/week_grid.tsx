// A week to paint: drag over hours with mouse or finger, or walk with the arrow keys and press space.
import { useRef, useState } from "preact/hooks";
import { lend as words } from "../../text/en";
import { dayName, hourName } from "./clock";
import { DAYS, HOURS, isLent, paint, type Area, type Week } from "./week";

interface Cell {
  day: number;
  hour: number;
}

interface Stroke {
  from: Cell;
  to: Cell;
  isOn: boolean;
}

const areaOf = ({ from, to }: Stroke): Area => ({ days: [from.day, to.day], hours: [from.hour, to.hour] });
const isUpright = () => matchMedia("(max-width: 760px)").matches; // days are columns there, see style.css
const days = Array.from({ length: DAYS }, (_none, day) => day);
const hours = Array.from({ length: HOURS }, (_none, hour) => hour);

function cellAt(event: PointerEvent): Cell | null {
  const under = document.elementFromPoint(event.clientX, event.clientY)?.closest<HTMLElement>("[data-hour]");
  return under ? cellOf(under) : null;
}

const cellOf = (element: HTMLElement): Cell => ({ day: Number(element.dataset.day), hour: Number(element.dataset.hour) });

// A stroke is a rectangle from where it began to where the hand is; what it began on says whether it lends or takes back.
function useStroke(week: Week, onWeek: (week: Week) => void) {
  const stroke = useRef<Stroke | null>(null);
  const [, draw] = useState(0);
  const set = (next: Stroke | null) => {
    stroke.current = next;
    draw((count) => count + 1);
  };
  return {
    shown: stroke.current ? paint(week, areaOf(stroke.current), stroke.current.isOn) : week,
    begin: (event: PointerEvent) => {
      const cell = event.button === 0 ? cellAt(event) : null;
      if (!cell) return;
      (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
      set({ from: cell, to: cell, isOn: !isLent(week, cell.day, cell.hour) });
    },
    move: (event: PointerEvent) => {
      const cell = stroke.current && cellAt(event);
      if (cell && (cell.day !== stroke.current!.to.day || cell.hour !== stroke.current!.to.hour)) set({ ...stroke.current!, to: cell });
    },
    end: () => {
      const done = stroke.current;
      if (!done) return;
      set(null);
      onWeek(paint(week, areaOf(done), done.isOn));
    },
    drop: () => set(null),
  };
}

const steps: Record<string, [number, number]> = {
  ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
};

function moved({ day, hour }: Cell, key: string): Cell | null {
  const step = steps[key];
  if (!step) return null;
  const [byDay, byHour] = isUpright() ? [step[1], step[0]] : step;
  return { day: Math.min(DAYS - 1, Math.max(0, day + byDay)), hour: Math.min(HOURS - 1, Math.max(0, hour + byHour)) };
}

interface WeekGridProps {
  week: Week;
  onWeek: (week: Week) => void;
  describedBy?: string | undefined;
}

export function WeekGrid({ week, onWeek, describedBy }: WeekGridProps) {
  const holder = useRef<HTMLDivElement>(null);
  const [here, setHere] = useState<Cell>({ day: 0, hour: 0 });
  // Keys may come faster than frames: each goes on from the one before.
  const latest = useRef(week);
  latest.current = week;
  const { shown, begin, move, end, drop } = useStroke(week, onWeek);
  const put = (from: Cell, to: Cell, isOn: boolean) => {
    latest.current = paint(latest.current, areaOf({ from, to, isOn }), isOn);
    onWeek(latest.current);
  };
  const press = (event: KeyboardEvent) => {
    const from = cellOf(event.target as HTMLElement);
    const isOn = isLent(latest.current, from.day, from.hour);
    const isPressed = event.key === " " || event.key === "Enter";
    const next = moved(from, event.key);
    if (!isPressed && !next) return;
    event.preventDefault();
    if (isPressed) put(from, from, !isOn);
    if (!next) return;
    if (event.shiftKey) put(from, next, isOn);
    holder.current?.querySelector<HTMLElement>(`[data-day="${next.day}"][data-hour="${next.hour}"]`)?.focus();
  };
  return (
    <div ref={holder} class="week" role="grid" aria-label={words.week.label} aria-describedby={describedBy} aria-multiselectable="true"
      onPointerDown={begin} onPointerMove={move} onPointerUp={end} onPointerCancel={drop} onKeyDown={press}>
      <div role="row">
        <span role="columnheader" class="corner">{words.week.day}</span>
        {hours.map((hour) => (
          <span key={hour} role="columnheader" class={hour % 3 ? "hour unmarked" : "hour"}>
            {hourName(hour)}
          </span>
        ))}
      </div>
      {days.map((day) => (
        <div key={day} role="row">
          <span role="rowheader" class="day" aria-label={dayName(day, "long")}>{dayName(day, "short")}</span>
          {hours.map((hour) => (
            <span key={hour} role="gridcell" class={isLent(shown, day, hour) ? "lent" : undefined}
              data-day={day} data-hour={hour} tabIndex={day === here.day && hour === here.hour ? 0 : -1}
              aria-selected={isLent(shown, day, hour)} aria-label={words.week.cell(dayName(day, "long"), hourName(hour))}
              onFocus={() => setHere({ day, hour })} />
          ))}
        </div>
      ))}
    </div>
  );
}
