// One of some ways, each with a line that says what it is: radio buttons as cards.
import type { ComponentChildren } from "preact";

interface Way<Value extends string> {
  value: Value;
  label: ComponentChildren;
  hint?: ComponentChildren;
  isDisabled?: boolean;
}

interface WaysProps<Value extends string> {
  label: string;
  name: string;
  value: Value;
  ways: readonly Way<Value>[];
  onValue: (value: Value) => void;
  isNarrow?: boolean; // many of them, with few words each
  isFour?: boolean;
}

export function Ways<Value extends string>({ label, name, value, ways, onValue, isNarrow, isFour }: WaysProps<Value>) {
  return (
    <fieldset class={`ways-of${isNarrow ? " narrow" : ""}${isFour ? " four" : ""}`}>
      <legend>{label}</legend>
      {ways.map((way) => (
        <label key={way.value} class={`way${way.value === value ? " chosen" : ""}${way.isDisabled ? " disabled" : ""}`}>
          <input type="radio" name={name} value={way.value} checked={way.value === value} disabled={way.isDisabled}
            onChange={() => onValue(way.value)} />
          <span>
            <strong>{way.label}</strong>
            {way.hint && <small>{way.hint}</small>}
          </span>
        </label>
      ))}
    </fieldset>
  );
}
