// Writes src/api/schema.ts from the market's OpenAPI file: its types, and which POSTs may be repeated under a key.
import { readFileSync, writeFileSync } from "node:fs";
import openapiTypescript, { astToString } from "openapi-typescript";

const source = new URL("../../docs/openapi/openapi.json", import.meta.url);
const target = new URL("../src/api/schema.ts", import.meta.url);

const api = JSON.parse(readFileSync(source, "utf8"));
const types = astToString(await openapiTypescript(source, { defaultNonNullable: false }));
const isRepeatable = (operation) =>
  operation?.parameters?.some((parameter) => parameter.name === "Idempotency-Key") ?? false;
const repeatable = Object.keys(api.paths).filter((path) => isRepeatable(api.paths[path].post));

const text = `// Generated from docs/openapi/openapi.json by scripts/generate.mjs.
${types}
export const repeatable: ReadonlySet<string> = new Set(${JSON.stringify(repeatable)});
`;
writeFileSync(target, text);
