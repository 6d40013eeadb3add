// How data of one's own are read: what the first rows look like, what is to be told, and how to deal with the rest.
import { train } from "../../text/en";
import { Field, Select } from "../../ui/field";
import { groups, type Look } from "./draft";
import type { StepProps } from "./index";
import { More } from "./more";
import { choicesOf, useSchema } from "./schema";

const words = train.reading;
export const SHOWN_COLUMNS = 8;
const SHOWN_LETTERS = 40;

export function Preview({ look: { format, columns, rows } }: { look: Look }) {
  const cut = <Value,>(list: readonly Value[]) => list.slice(0, SHOWN_COLUMNS);
  const isCut = Math.max(columns.length, rows[0]?.length ?? 0) > SHOWN_COLUMNS;
  return (
    <>
      <p class="faint looks">{words.looks(words.formats[format] ?? format)}</p>
      {rows.length > 0 && (
        <div class="scroll" tabIndex={0} role="group" aria-label={words.preview}>
          <table aria-label={words.preview}>
            {columns.length > 0 && (
              <thead>
                <tr>{cut(columns).map((name, at) => <th key={at} scope="col">{name.slice(0, SHOWN_LETTERS)}</th>)}{isCut && <th scope="col">…</th>}</tr>
              </thead>
            )}
            <tbody>
              {rows.map((row, line) => (
                <tr key={line}>{cut(row).map((field, at) => <td key={at}>{field.slice(0, SHOWN_LETTERS)}</td>)}{isCut && <td>…</td>}</tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

// The fields that most need, by what the data look like; all others below.
const ofTables = ["train.label", "train.read.missing", "train.read.categories"];
const main = [...ofTables, "train.predict"];
const others = groups.reading.map((group) => ({
  ...group, but: main.filter((path) => path.startsWith(`${group.at}.`)).map((path) => path.slice(group.at.length + 1)),
}));

export function ReadingFields(props: StepProps & { look: Look | null }) {
  const { draft, change, wrong, look } = props;
  const schema = useSchema();
  const isTable = !look || look.format === "csv";
  const typed = (path: string) => draft.more[path] ?? "";
  const set = (path: string) => (text: string) =>
    change((now) => {
      const { [path]: _before, ...rest } = now.more;
      return { more: text ? { ...rest, [path]: text } : rest };
    });
  const select = (path: string, label: string, usual: string, labels: Record<string, string>, hint?: string) => (
    <Select label={label} value={typed(path)} name={path} hint={hint} error={wrong(path)} onValue={set(path)}
      choices={[{ value: "", label: usual }, ...choicesOf(schema(path), labels).filter(({ value }) => value !== "refuse")]} />
  );
  const columns = [...new Set([...(look?.columns ?? []), typed("train.label")])].filter(Boolean);
  // A number may be typed for what is missing, so there is no list of ways in the schema.
  const missing = Object.entries(words.missings).map(([value, label]) => ({ value, label }));
  return (
    <>
      <div class="grid">
        {isTable && look && (
          <Select label={words.label} value={typed("train.label")} name="train.label" error={wrong("train.label")} onValue={set("train.label")}
            choices={[{ value: "", label: words.lastColumn(look.columns.at(-1)?.slice(0, 60) ?? "") },
              ...columns.map((name) => ({ value: name, label: name.slice(0, 60) }))]} />
        )}
        {isTable && !look && (
          <Field label={words.label} hint={words.labelHint} value={typed("train.label")} error={wrong("train.label")}
            native={{ name: "train.label", autocomplete: "off" }} onValue={set("train.label")} />
        )}
        {select("train.predict", words.predict, words.predictUsual, words.predicts, words.predictHint)}
        {isTable && (
          <Select label={words.missing} value={typed("train.read.missing")} name="train.read.missing" error={wrong("train.read.missing")}
            choices={[{ value: "", label: words.refuse }, ...missing]} onValue={set("train.read.missing")} />
        )}
        {isTable && select("train.read.categories", words.categories, words.refuse, words.categoriesWays)}
      </div>
      <More {...props} title={words.more} groups={others} />
    </>
  );
}
