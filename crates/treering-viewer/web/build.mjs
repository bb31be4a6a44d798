// Bundles the page's script, its worker, the graph's worker and the style into ../assets.
// `node build.mjs --check` compares instead of writing, and fails where they differ.

import { build } from "esbuild";
import { readFileSync, writeFileSync } from "node:fs";
import { gunzipSync, gzipSync } from "node:zlib";
import { fileURLToPath } from "node:url";
import { join } from "node:path";

const here = fileURLToPath(new URL(".", import.meta.url));
const assets = join(here, "../assets");
const common = {
  bundle: true,
  minify: true,
  write: false,
  legalComments: "none",
  target: ["chrome112", "firefox128", "safari16.4"],
  charset: "utf8",
  absWorkingDir: here,
};

async function bundle(entry, options = {}) {
  const result = await build({ ...common, entryPoints: [entry], ...options });
  return result.outputFiles[0].contents;
}

const script = { format: "iife", jsx: "automatic", jsxImportSource: "preact" };
const outputs = {
  "viewer.js": await bundle("src/main.tsx", script),
  "worker.js": await bundle("src/worker.ts", script),
  "viewer.css": await bundle("src/style.css"),
  "graph.js.gz": await bundle("src/graph_worker.ts", script),
};

const check = process.argv.includes("--check");
let stale = 0;
for (const [name, contents] of Object.entries(outputs)) {
  const path = join(assets, name);
  const packed = name.endsWith(".gz");
  if (check) {
    let known = Buffer.alloc(0);
    try {
      known = readFileSync(path);
      if (packed) known = gunzipSync(known);
    } catch {}
    if (!known.equals(Buffer.from(contents))) {
      stale++;
      console.error(`${name} is not what the sources make: run npm run build in crates/treering-viewer/web`);
    }
  } else {
    writeFileSync(path, packed ? gzipSync(contents, { level: 9 }) : contents);
  }
}
process.exit(stale ? 1 : 0);
