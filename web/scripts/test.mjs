// Runs the units' tests: every src/**/NAME.test.mjs, bundled as the page's own parts are, by Node's test runner.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";

const source = fileURLToPath(new URL("../src", import.meta.url));
const found = (folder) =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const name = path.join(folder, entry.name);
    return entry.isDirectory() ? found(name) : name.endsWith(".test.mjs") ? [name] : [];
  });
const tests = found(source);
if (tests.length === 0) throw new Error("no tests");
const folder = mkdtempSync(path.join(tmpdir(), "souk-units-"));
try {
  // Run all in one process: starting one for each file costs more than the tests.
  const built = path.join(folder, "units.mjs");
  const entry = { contents: [path.join(source, "../scripts/units.mjs"), ...tests].map((name) => `import ${JSON.stringify(name)};`).join("\n"), resolveDir: source };
  buildSync({ stdin: entry, outfile: built, bundle: true, ignoreAnnotations: true, platform: "node", format: "esm", logLevel: "error" });
  process.exitCode = spawnSync(process.execPath, ["--test-reporter=tap", built], { stdio: "inherit" }).status ?? 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
