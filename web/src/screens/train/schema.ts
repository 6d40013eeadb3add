// The job file's own schema, as the market has it: which values a field may have and what it means is not written twice.
import { get } from "../../api/client";
import { resource, useResource } from "../../core/resource";

export interface Node {
  description?: string;
  enum?: string[];
  type?: string | string[];
  default?: unknown;
  properties?: Record<string, Node>;
  anyOf?: Node[];
  not?: object; // named in the format, and refused by this version
}

export type Schema = (path: string) => Node | undefined;

// Its media type is not plain JSON, so the client has no type for it.
const schema = resource(async () => (await get("/v1/schemas/job")) as unknown as Node, []);

const nodeAt = (root: Node | undefined, path: string) =>
  path.split(".").reduce<Node | undefined>((node, name) => node?.properties?.[name], root);

export function useSchema(): Schema {
  const { data } = useResource(schema);
  return (path) => nodeAt(data, path);
}

// What a field may be: the market's list once it is here, and until then what the page has words for.
export function choicesOf(node: Node | undefined, labels: Record<string, string>): { value: string; label: string }[] {
  return (node?.enum ?? Object.keys(labels)).map((value) => ({ value, label: labels[value] ?? value }));
}

export const isSwitch = (node: Node) => node.type === "boolean";

// A field for one value typed as text, or a list of words: what can be asked for in a form.
export const isPlain = (node: Node) => !node.not && !node.properties && node.type !== "array";
