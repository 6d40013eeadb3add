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
const folder = mkdtempSync(path.join(tmpdir(), "souk-units-"));
try {
  buildSync({ entryPoints: tests, outdir: folder, outExtension: { ".js": ".mjs" }, bundle: true, platform: "node", format: "esm", logLevel: "error" });
  const built = found(folder);
  if (built.length === 0 || built.length !== tests.length) throw new Error(`${tests.length} tests, ${built.length} built`);
  process.exitCode = spawnSync(process.execPath, ["--test", ...built], { stdio: "inherit" }).status ?? 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
