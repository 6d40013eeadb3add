// The fields of the job file that few need, by its schema: what a later version knows stands here by itself.
import { useState } from "preact/hooks";
import { train } from "../../text/en";
import { Field, Select, Toggle, withSubject } from "../../ui/field";
import { isOffered, type Group } from "./draft";
import type { StepProps } from "./index";
import { isPlain, isSwitch, useSchema, type Node } from "./schema";

const words = train.more;

function labelOf(path: string): string {
  const name = path.slice(path.lastIndexOf(".") + 1).replaceAll("_", " ");
  return words.labels[path] ?? name.charAt(0).toUpperCase() + name.slice(1);
}

function One({ path, node, draft, change, wrong }: StepProps & { path: string; node: Node }) {
  const typed = draft.more[path] ?? "";
  const usual = node.default === undefined ? "" : String(node.default);
  const set = (text: string) =>
    change((now) => {
      const { [path]: _before, ...others } = now.more;
      return { more: text === "" ? others : { ...others, [path]: text } };
    });
  const shared = { label: labelOf(path), hint: node.description, error: wrong(path) };
  if (isSwitch(node))
    return (
      <div class="field">
        <Toggle label={shared.label} isOn={(typed || usual) === "true"} onValue={(isOn) => set(String(isOn) === (usual || "false") ? "" : String(isOn))} />
        <small>{shared.hint}</small>
        {shared.error && <small class="error" role="alert">{withSubject(shared.label, shared.error)}</small>}
      </div>
    );
  if (node.enum)
    return (
      <Select {...shared} name={path} value={typed} onValue={set}
        choices={[{ value: "", label: words.usual(usual) }, ...node.enum.map((value) => ({ value, label: value }))]} />
    );
  return <Field {...shared} value={typed} onValue={set} native={{ name: path, autocomplete: "off", placeholder: usual }} />;
}

export function More(props: StepProps & { title: string; groups: readonly Group[] }) {
  const { title, groups, draft, wrong } = props;
  const schema = useSchema();
  const [isOpen] = useState(() => Object.keys(draft.more).some((path) => groups.some((group) => isOffered(group, path))));
  const fields = groups.flatMap((group) =>
    Object.entries(schema(group.at)?.properties ?? {})
      .map(([name, node]) => ({ path: `${group.at}.${name}`, node }))
      .filter(({ path, node }) => isPlain(node) && isOffered(group, path)));
  if (fields.length === 0) return null;
  return (
    <details class="more" open={isOpen || fields.some(({ path }) => wrong(path) !== "")}>
      <summary>{title}</summary>
      <div class="grid">{fields.map((field) => <One key={field.path} {...props} {...field} />)}</div>
    </details>
  );
}
