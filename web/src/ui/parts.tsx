// Small parts that only show: cards, figures, states, notes, skeletons.
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import { Icon, type IconName } from "./icon";

interface CardProps {
  title?: ComponentChildren;
  action?: ComponentChildren; // at the right of the title
  children?: ComponentChildren;
  class?: string;
}

export function Card({ title, action, children, class: extra = "" }: CardProps) {
  const id = useId();
  return (
    <section class={`card ${extra}`} aria-labelledby={title ? id : undefined}>
      {(title || action) && (
        <header class="row">
          <h2 id={id}>{title}</h2>
          <span class="grow" />
          {action}
        </header>
      )}
      {children}
    </section>
  );
}

// The head of a screen: its one h1.
export function Head({ title, children }: { title: ComponentChildren; children?: ComponentChildren }) {
  return (
    <header class="head row">
      <h1>{title}</h1>
      <span class="grow" />
      {children}
    </header>
  );
}

interface FigureProps {
  label: string;
  value: ComponentChildren;
  unit?: ComponentChildren;
  note?: ComponentChildren;
}

export function Figure({ label, value, unit, note }: FigureProps) {
  return (
    <div class="figure">
      <dt>{label}</dt>
      <dd>
        <strong>{value}</strong> {unit && <span class="unit">{unit}</span>}
        {note && <small>{note}</small>}
      </dd>
    </div>
  );
}

export function Figures({ children, isCard = false }: { children: ComponentChildren; isCard?: boolean }) {
  return <dl class={`figures${isCard ? " card" : ""}`}>{children}</dl>;
}

// The tones of states: one word, one colour, everywhere.
const tones: Record<string, string> = {
  running: "good", succeeded: "good", free: "good", online: "good", open: "good",
  busy: "busy", starting: "busy", stopping: "busy",
  pending: "warn", paused: "warn", closed: "warn", frozen: "warn", draining: "warn", unreachable: "warn", low: "warn",
  failed: "bad", lost: "bad", faulty: "bad",
};

export function State({ state, label }: { state: string; label?: string }) {
  return <span class={`state ${tones[state] ?? ""} ${state}`}>{label ?? state}</span>;
}

interface NoteProps {
  children: ComponentChildren;
  tone?: "plain" | "warn" | "bad";
}

export function Note({ children, tone = "plain" }: NoteProps) {
  return (
    <p class={`note ${tone}${tone === "bad" ? " problem" : ""}`} role={tone === "bad" ? "alert" : undefined}>
      <Icon name={tone === "plain" ? "info" : "warn"} size={18} />
      <span>{children}</span>
    </p>
  );
}

// A failed read or submit in the server's words; nothing when all is well.
export function ProblemNote({ problem }: { problem: Error | null | undefined }) {
  return problem ? <Note tone="bad">{problem.message}</Note> : null;
}

interface EmptyProps {
  icon: IconName;
  title: string;
  children?: ComponentChildren;
}

export function Empty({ icon, title, children }: EmptyProps) {
  return (
    <div class="empty">
      <Icon name={icon} size={32} />
      <p>
        <strong>{title}</strong>
      </p>
      {children}
    </div>
  );
}

// Where something will stand as soon as it has been read.
export function Skeleton({ lines = 3 }: { lines?: number }) {
  return (
    <div class="skeleton" aria-hidden="true">
      {Array.from({ length: lines }, (_none, line) => (
        <span key={line} />
      ))}
    </div>
  );
}

// A share as a bar; `label` says it in words.
export function Bar({ share, label }: { share: number; label: string }) {
  return (
    <div class="lane" role="img" aria-label={label}>
      <span class="done" style={{ width: `${Math.min(100, Math.max(0, share * 100))}%` }} />
    </div>
  );
}
