// Bundles the tests and runs them with node's own test runner.

import { build } from "esbuild";
import { readdirSync, rmSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { join } from "node:path";

const here = fileURLToPath(new URL(".", import.meta.url));
const out = join(here, "node_modules/.tests");
rmSync(out, { recursive: true, force: true });
const tests = readdirSync(join(here, "test")).filter((name) => name.endsWith(".test.ts"));
await build({
  bundle: true,
  platform: "node",
  format: "esm",
  outdir: out,
  outExtension: { ".js": ".mjs" },
  entryPoints: tests.map((name) => join(here, "test", name)),
});
const run = spawnSync(process.execPath, ["--test", ...tests.map((name) => join(out, name.replace(/\.ts$/, ".mjs")))], {
  stdio: "inherit",
});
process.exit(run.status ?? 1);
