// Writes src/api/schema.ts from the market's OpenAPI file: its types, which POSTs may be repeated under a key, and within
// what the operator's settings are.
import { readFileSync, writeFileSync } from "node:fs";
import openapiTypescript, { astToString } from "openapi-typescript";

const source = new URL("../../docs/openapi/openapi.json", import.meta.url);
const target = new URL("../src/api/schema.ts", import.meta.url);

const api = JSON.parse(readFileSync(source, "utf8"));
const types = astToString(await openapiTypescript(source, { defaultNonNullable: false }));
const isRepeatable = (operation) =>
  operation?.parameters?.some((parameter) => parameter.name === "Idempotency-Key") ?? false;
const repeatable = Object.keys(api.paths).filter((path) => isRepeatable(api.paths[path].post));
const settings = Object.entries(api.components.schemas.Settings.properties);
const limits = Object.fromEntries(settings.map(([name, { minimum, maximum }]) => [name, [minimum, Math.min(maximum, Number.MAX_SAFE_INTEGER)]]));

const text = `// Generated from docs/openapi/openapi.json by scripts/generate.mjs.
${types}
export const repeatable: ReadonlySet<string> = new Set(${JSON.stringify(repeatable)});
// The least and the most; of what is more than the page counts exactly, that.
export const settingLimits: Record<keyof components["schemas"]["Settings"], readonly [number, number]> = ${JSON.stringify(limits)};
`;
writeFileSync(target, text);
