// Form fields: a label, a hint, and what is wrong beside the field, tied to it for screen readers.
import type { ComponentChildren, JSX } from "preact";
import { useId, useState } from "preact/hooks";

interface Shared {
  label: string;
  hint?: ComponentChildren;
  error?: string | null | undefined;
  isDisabled?: boolean;
}

interface Tied {
  id: string;
  "aria-describedby": string | undefined;
  "aria-invalid": true | undefined;
}

// The market says of a field what is wrong without naming it ("is missing"): its label does.
export const withSubject = (label: string, error: string) =>
  /^(is|are|has|needs|must|goes)\b/.test(error) ? `${label} ${error}` : error;

function Frame({ label, hint, error, children }: Shared & { children: (tied: Tied) => ComponentChildren }) {
  const id = useId();
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ") || undefined;
  return (
    <div class={`field${error ? " wrong" : ""}`}>
      <label for={id}>{label}</label>
      {children({ id, "aria-describedby": described, "aria-invalid": error ? true : undefined })}
      {hint && <small id={`${id}-hint`}>{hint}</small>}
      {error && (
        <small id={`${id}-error`} class="error" role="alert">
          {withSubject(label, error)}
        </small>
      )}
    </div>
  );
}

type Native = Omit<JSX.InputHTMLAttributes<HTMLInputElement>, "value" | "onInput" | "label" | "disabled" | "onChange">;

interface FieldProps extends Shared {
  value: string;
  onValue: (value: string) => void;
  rows?: number; // more than one: a text area
  native?: Native; // name, type, autocomplete, required …
}

export function Field({ value, onValue, rows = 1, native = {}, isDisabled, ...shared }: FieldProps) {
  return (
    <Frame {...shared}>
      {(tied) =>
        rows > 1 ? (
          <textarea {...tied} name={native.name} rows={rows} spellcheck={false} disabled={isDisabled} value={value}
            onInput={(event) => onValue(event.currentTarget.value)} />
        ) : (
          <input {...native} {...tied} disabled={isDisabled} value={value}
            onInput={(event) => onValue(event.currentTarget.value)} />
        )
      }
    </Frame>
  );
}

export interface Choice<Value extends string> {
  value: Value;
  label: string;
}

interface SelectProps<Value extends string> extends Shared {
  value: Value;
  choices: readonly Choice<Value>[];
  onValue: (value: Value) => void;
  name?: string;
}

export function Select<Value extends string>({ value, choices, onValue, name, isDisabled, ...shared }: SelectProps<Value>) {
  return (
    <Frame {...shared}>
      {(tied) => (
        <select {...tied} name={name} value={value} disabled={isDisabled}
          onChange={(event) => onValue(event.currentTarget.value as Value)}>
          {choices.map((choice) => (
            <option key={choice.value} value={choice.value}>
              {choice.label}
            </option>
          ))}
        </select>
      )}
    </Frame>
  );
}

interface SliderProps extends Shared {
  value: number;
  min: number;
  max: number;
  step?: number;
  unit?: string;
  onValue: (value: number) => void;
}

// A slider for the hand and a number for those who know it.
export function Slider({ value, min, max, step = 1, unit, onValue, isDisabled, ...shared }: SliderProps) {
  const [typed, setTyped] = useState<string | null>(null); // so far: what is shown anew meanwhile does not undo it
  const take = (text: string) => {
    const asked = Number(text);
    if (text !== "" && Number.isFinite(asked)) onValue(Math.min(max, Math.max(min, asked)));
  };
  return (
    <Frame {...shared}>
      {(tied) => (
        <div class="slider">
          <input {...tied} type="range" min={min} max={max} step={step} value={value} disabled={isDisabled}
            onInput={(event) => take(event.currentTarget.value)} />
          <input type="number" aria-label={shared.label} min={min} max={max} step={step} value={typed ?? value} disabled={isDisabled}
            onInput={(event) => setTyped(event.currentTarget.value)}
            onChange={(event) => { take(event.currentTarget.value); setTyped(null); }} />
          {unit && <span class="faint">{unit}</span>}
        </div>
      )}
    </Frame>
  );
}

interface ToggleProps {
  label: ComponentChildren;
  isOn: boolean;
  onValue: (isOn: boolean) => void;
  isDisabled?: boolean;
}

export function Toggle({ label, isOn, onValue, isDisabled }: ToggleProps) {
  return (
    <label class="toggle">
      <input type="checkbox" role="switch" checked={isOn} disabled={isDisabled}
        onChange={(event) => onValue(event.currentTarget.checked)} />
      <span>{label}</span>
    </label>
  );
}
