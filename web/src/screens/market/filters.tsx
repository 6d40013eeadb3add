// The filters of the market's table; the address keeps them.
import type { ComponentChildren } from "preact";
import { setQuery } from "../../core/router";
import { common, market as words } from "../../text/en";
import { Button } from "../../ui/button";
import { Field, Select, type Choice } from "../../ui/field";
import { isPhone } from "../../ui/phone";
import { names, type Filters, type Name } from "./matching";

const any: Choice<string> = { value: "", label: words.filters.any };
const choices = (values: readonly (number | string)[], label: (value: string) => string): Choice<string>[] => [
  any,
  ...values.map((value) => ({ value: String(value), label: label(String(value)) })),
];
const text = words.filters;
const selects: { name: Name; label: string; choices: Choice<string>[] }[] = [
  { name: "state", label: text.state, choices: choices(["free", "busy", "paused", "closed", "unreachable", "offline"], (state) => common.states[state]!) },
  { name: "cores", label: text.cores, choices: choices([1, 2, 4, 8, 16, 32], text.atLeast) },
  { name: "memory", label: text.memory, choices: choices([2, 4, 8, 16, 32, 64], (gib) => text.gib(gib)) },
  { name: "gpus", label: text.gpus, choices: choices([1, 2, 4, 8], text.atLeast) },
  { name: "rtt", label: text.rtt, choices: choices([1, 10, 30, 100, 300], text.ms) },
  { name: "spare", label: text.spare, choices: choices(["yes"], () => text.givenAway) },
  { name: "reliability", label: text.reliability, choices: choices([0.5, 0.8, 0.9, 0.95], text.atLeast) },
];

interface FilterRowProps {
  filters: Filters;
  children: ComponentChildren; // beside them
}

export function ShowAll({ filters }: { filters: Filters }) {
  if (names.every((name) => !filters[name])) return null;
  return <Button kind="link" onClick={() => setQuery(Object.fromEntries(names.map((name) => [name, ""])))}>{text.clear}</Button>;
}

export function FilterRow({ filters, children }: FilterRowProps) {
  const choosing = selects.map(({ name, label, choices: values }) => (
    <Select key={name} label={label} name={name} value={filters[name]} choices={values} onValue={(value) => setQuery({ [name]: value })} />
  ));
  return (
    <div class="filters" role="search" aria-label={text.label}>
      <Field label={text.name} value={filters.name} native={{ type: "search", name: "name", maxLength: 80, autocomplete: "off" }}
        onValue={(name) => setQuery({ name })} />
      {children}
      {isPhone.value ? (
        <details open={selects.some(({ name }) => filters[name])}>
          <summary>{text.more}</summary>
          <div class="filters">{choosing}</div>
        </details>
      ) : choosing}
    </div>
  );
}
