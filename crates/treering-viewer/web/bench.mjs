// Measures one page in Chromium and prints the numbers as JSON; `cargo xtask bench view` runs it.
//
//   node bench.mjs treering PAGE.html
//   node bench.mjs speedscope FOLDER PROFILE
//   node bench.mjs time
//
// FOLDER is `dist/release` of speedscope's npm package. Where a viewer shows no picture in time, or its page
// crashes, the numbers are `{"tool", "none"}`, which says so. Both are measured by the same means: what is drawn by hooks
// in the browser's own drawing functions, work by Chromium's counters of the main thread's tasks, memory by Chromium's
// account of each JavaScript heap and its typed arrays.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import { launch, settled } from "./chromium.mjs";
import { RUNS } from "./timed.mjs";

const [tool, ...rest] = process.argv.slice(2);
const scratch = mkdtempSync(join(tmpdir(), "treering-bench-"));
const STEPS = 40;

/** How long a viewer has for its first picture, in ms. */
const PATIENCE = 240_000;

/** In the page: selects parts of the run; how long until the numbers of all functions are there, until every pane is, and the longest wait of a frame. */
async function selectParts(parts) {
  const { treering } = window;
  const frame = () => new Promise((done) => requestAnimationFrame(() => done(performance.now())));
  const results = [];
  for (const target of parts) {
    const start = performance.now();
    let [last, longest, numbers] = [start, 0, null];
    treering.go({ steps: [{ kind: "time", target }] });
    for (;;) {
      const now = await frame();
      longest = Math.max(longest, now - last);
      last = now;
      if (numbers === null && treering.ready()) numbers = now - start;
      if (numbers !== null && treering.settled()) break;
    }
    results.push({ target, numbers_ms: numbers, all_ms: last - start, longest_frame_ms: longest });
    // The other questions of the panes are answered before the next part is selected.
    for (let rest = 0; rest < 12; rest++) await frame();
  }
  return results;
}

/** How often each length is selected, each time elsewhere, so that no part is made from the one before. */
const TIMES = 15;

/** The least, the median and the largest. */
function spread(values) {
  return [0, 0.5, 1].map((part) => Math.round(quantile(values, part) * 10) / 10);
}

/** The processor time of the worker's part of it, in node. */
async function worked(shares) {
  const outfile = join(scratch, "parts.mjs");
  // `timed.mjs` finds the assets beside itself, and is run as a program where it is the first file.
  await build({ bundle: true, platform: "node", format: "esm", logLevel: "error", outfile, entryPoints: [fileURLToPath(new URL("parts.ts", import.meta.url))] });
  const { partsOf } = await import(pathToFileURL(outfile));
  return { even: partsOf(shares, TIMES, false), weighted: partsOf(shares, TIMES, true) };
}

/** Parts of a run of a million nodes and 4,096 slots: 1, 10, 50, 51, 90 and 99 % of it. */
async function time() {
  const file = join(scratch, "large.html");
  writeFileSync(file, RUNS.large().html());
  const browser = await launch();
  try {
    const page = await browser.newPage();
    await page.setViewport({ width: 1440, height: 900 });
    await page.goto(`file://${file}`);
    await settled(page);
    const length = 4096 * 4e3;
    const [first] = await page.evaluate(selectParts, [`0-${length / 4}`]);
    const shares = [0.01, 0.1, 0.5, 0.51, 0.9, 0.99];
    const spanOf = (share, at) => {
      const from = ((length * (1 - share)) / TIMES) * ((at * 7) % TIMES);
      return `${Math.round(from)}-${Math.round(from + share * length)}`;
    };
    // Lengths take turns, as a machine drifts.
    const found = shares.map(() => []);
    for (let at = 0; at < TIMES; at++) {
      const parts = await page.evaluate(selectParts, shares.map((share) => spanOf(share, at)));
      parts.forEach((part, share) => found[share].push(part));
    }
    const rows = shares.map((share, at) => ({ share, ...Object.fromEntries(["numbers_ms", "all_ms", "longest_frame_ms"].map((key) => [key, spread(found[at].map((one) => one[key]))])) }));
    console.log(JSON.stringify({ tool, first, rows, worker: await worked(shares) }));
  } finally {
    await ended(browser);
    rmSync(scratch, { recursive: true, force: true });
  }
  process.exit(0);
}

/** Where the browser goes. Speedscope reads a script with the profile in it, as its own command does. */
function address() {
  if (tool === "treering") return `file://${rest[0]}`;
  const [folder, profile] = rest;
  const script = join(scratch, "profile.js");
  const text = readFileSync(profile).toString("base64");
  writeFileSync(script, `speedscope.loadFileFromBase64(${JSON.stringify(basename(profile))}, ${JSON.stringify(text)})`);
  return `file://${folder}/index.html#localProfilePath=${script}`;
}

/** In the page, before its scripts: notes when the first picture of a flame graph is painted. */
function watch() {
  window.bench = { first: null };
  const hooks = [];
  const note = (canvas) => {
    // Speedscope's bare frame has no wide canvas; small ones measure texts.
    if (!canvas.isConnected || canvas.width < 200 || window.bench.first !== null) return;
    window.bench.first = NaN;
    for (const [owner, name, original] of hooks) owner[name] = original;
    requestAnimationFrame(() => setTimeout(() => (window.bench.first = performance.now())));
  };
  const hook = (owner, name) => {
    const original = owner[name];
    hooks.push([owner, name, original]);
    owner[name] = function (...given) {
      note(this.canvas);
      return original.apply(this, given);
    };
  };
  hook(CanvasRenderingContext2D.prototype, "fillRect");
  for (const owner of [WebGLRenderingContext.prototype, window.WebGL2RenderingContext?.prototype]) {
    if (owner) for (const name of ["drawArrays", "drawElements"]) hook(owner, name);
  }
}

/** In the page: gives it a way to turn the wheel over the flame graph. */
function wheel() {
  const canvas = [...document.querySelectorAll("canvas")].sort((a, b) => b.width * b.height - a.width * a.height)[0];
  const box = canvas.getBoundingClientRect();
  const [clientX, clientY] = [box.left + box.width * 0.37, box.top + box.height * 0.4];
  window.bench.turn = (by) =>
    document.elementFromPoint(clientX, clientY).dispatchEvent(new WheelEvent("wheel", { ...by, clientX, clientY, bubbles: true, cancelable: true }));
}

/** In the page: one turn of the wheel, and two frames. */
async function step(by) {
  if (by) window.bench.turn(by);
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}

/** In the page: a turn in every frame, and how long the frames were apart. */
async function intervals(events) {
  const apart = [];
  let last = await new Promise(requestAnimationFrame);
  for (const by of events) {
    window.bench.turn(by);
    const now = await new Promise(requestAnimationFrame);
    apart.push(now - last);
    last = now;
  }
  return apart;
}

function quantile(values, part) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))];
}

/** Zooming in, moving about, and out again. */
function journey() {
  const zoom = (deltaY) => Array.from({ length: STEPS }, () => ({ deltaY, ctrlKey: true }));
  const pan = (deltaX) => Array.from({ length: STEPS / 2 }, () => ({ deltaX }));
  return [...zoom(-40), ...pan(30), ...pan(-60), ...zoom(40)];
}

/** What the main thread worked in each step, in ms; less what asking for it costs. */
async function work(page, client) {
  const busy = async () => (await client.send("Performance.getMetrics")).metrics.find((one) => one.name === "TaskDuration").value * 1000;
  const measure = async (by) => {
    const before = await busy();
    await page.evaluate(step, by);
    return (await busy()) - before;
  };
  const idle = [];
  for (let at = 0; at < 20; at++) idle.push(await measure(null));
  const steps = [];
  for (const by of journey()) steps.push(await measure(by));
  const asking = quantile(idle, 0.5);
  return { asking, steps: steps.map((one) => Math.max(0, one - asking)) };
}

/** Heaps of the page and of its workers after a collection, in bytes: objects and typed arrays. */
async function heaps(page, client) {
  const all = [];
  for (const session of [client, ...page.workers().map((worker) => worker.client)]) {
    await session.send("HeapProfiler.enable");
    await session.send("HeapProfiler.collectGarbage");
    // Typed arrays are given back a little later than the objects that held them.
    await new Promise((done) => setTimeout(done, 1500));
    await session.send("HeapProfiler.collectGarbage");
    const { usedSize, backingStorageSize = 0 } = await session.send("Runtime.getHeapUsage");
    all.push({ objects: usedSize, arrays: backingStorageSize });
  }
  return all;
}

/** The process of the page: the renderer that worked most. Its processor time in s, and the most memory that it had resident, in bytes. */
async function processOf(browser) {
  const client = await browser.target().createCDPSession();
  const { processInfo } = await client.send("SystemInfo.getProcessInfo");
  const renderers = processInfo.filter((one) => one.type === "renderer").sort((a, b) => b.cpuTime - a.cpuTime);
  const found = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${renderers[0].id}/status`, "utf8"));
  return { cpu_s: renderers[0].cpuTime, peak_bytes: Number(found[1]) * 1024 };
}

/** In the page: switches the metric and back; how long until the new picture, and the longest wait of a frame. */
async function switchMetric() {
  const { treering } = window;
  const metrics = [...document.querySelectorAll(".toolbar select")[0].options].map((option) => Number(option.value));
  if (metrics.length < 2) return [];
  const before = treering.state().metric;
  const results = [];
  for (const metric of [...metrics.filter((one) => one !== before), before]) {
    const drawn = treering.frames.length;
    const start = performance.now();
    let last = start;
    let longest = 0;
    treering.go({ metric });
    for (;;) {
      const now = await new Promise((done) => requestAnimationFrame(() => done(performance.now())));
      longest = Math.max(longest, now - last);
      last = now;
      if (treering.settled() && treering.frames.length > drawn) break;
      if (now - start > 60_000) throw new Error("the metric did not switch");
    }
    results.push({ until: treering.frames[treering.frames.length - 1].at - start, longest });
    await new Promise((done) => setTimeout(done, 200));
  }
  return results;
}

/** There are no numbers, and why. */
class None extends Error {}

/** What comes of waiting, unless it takes too long or the page crashes. */
function inTime(crash, waiting) {
  const late = waiting.catch((error) => {
    throw /timed? ?out|exceeded/i.test(error.message) ? new None(`no picture within ${PATIENCE / 1000} s`) : error;
  });
  return Promise.race([crash, late]);
}

/** Ends the browser, whose pages may not answer any more. */
async function ended(browser) {
  const process = browser.process();
  const closed = browser.close().then(() => true, () => false);
  if (!(await Promise.race([closed, new Promise((done) => setTimeout(done, 20_000, false))]))) process?.kill("SIGKILL");
}

if (tool === "time") await time();
const browser = await launch(["--enable-unsafe-swiftshader", "--allow-file-access-from-files"]);
const result = { tool };
try {
  const page = await browser.newPage();
  await page.setViewport({ width: 1440, height: 900 });
  const problems = [];
  page.on("pageerror", (error) => problems.push(error.message));
  const crash = new Promise((_, reject) => page.on("error", (error) => reject(new None(`the page crashed (${error.message})`))));
  crash.catch(() => {});
  await page.evaluateOnNewDocument(watch);
  const client = await page.createCDPSession();
  await client.send("Performance.enable");
  await inTime(crash, page.goto(address(), { waitUntil: "domcontentloaded", timeout: PATIENCE }));
  await inTime(crash, page.waitForFunction(() => window.bench.first > 0, { polling: 20, timeout: PATIENCE }));
  result.first_picture_ms = await page.evaluate(() => window.bench.first);
  result.first_picture_cpu_s = (await processOf(browser)).cpu_s;
  if (tool === "treering") await page.waitForFunction(() => window.treering.settled(), { timeout: 600_000 });
  else await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  result.all_panes_ms = await page.evaluate(() => performance.now());
  result.heaps = await heaps(page, client);
  await page.evaluate(wheel);
  const { asking, steps } = await work(page, client);
  result.asking_ms = asking;
  result.work_ms = { median: quantile(steps, 0.5), p95: quantile(steps, 0.95), greatest: Math.max(...steps) };
  const apart = await page.evaluate(intervals, journey());
  result.interval_ms = { median: quantile(apart, 0.5), p95: quantile(apart, 0.95), greatest: Math.max(...apart) };
  if (tool === "treering") {
    result.draw_ms = await page.evaluate(() => window.treering.frames.map((frame) => frame.took));
    result.draw_ms = { median: quantile(result.draw_ms, 0.5), p95: quantile(result.draw_ms, 0.95) };
    result.switches = await page.evaluate(switchMetric);
    result.heaps_after = await heaps(page, client);
  }
  result.peak_bytes = (await processOf(browser)).peak_bytes;
  result.problems = problems;
} catch (error) {
  if (!(error instanceof None)) throw error;
  result.none = error.message;
} finally {
  await ended(browser);
  rmSync(scratch, { recursive: true, force: true });
}
console.log(JSON.stringify(result));
process.exit(0);
