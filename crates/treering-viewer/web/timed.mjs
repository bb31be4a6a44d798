// Makes pages with time whose course is known, without Treering: for tests and benchmarks of the page alone.
//
//   node timed.mjs NAME FILE        NAME is phases, stall, convoy, many or large

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const assets = fileURLToPath(new URL("../assets", import.meta.url));
const KINDS = new Map([[Uint8Array, 1], [Uint16Array, 3], [Uint32Array, 5], [Float64Array, 7]]);

/** A JsonSlabs container of a value whose typed arrays are slabs. */
function slabs(value) {
  const found = [];
  const skeleton = JSON.stringify(value, (_, one) => (ArrayBuffer.isView(one) ? { $s: found.push(one) - 1 } : one));
  const json = new TextEncoder().encode(skeleton);
  const all = [...found.map((one) => [KINDS.get(one.constructor), new Uint8Array(one.buffer, one.byteOffset, one.byteLength)]), [10, json]];
  let at = Math.ceil((20 + 12 * all.length) / 8) * 8;
  const places = all.map(([, bytes]) => {
    const place = at;
    at += Math.ceil(bytes.length / 8) * 8;
    return place;
  });
  const buffer = Buffer.alloc(at);
  buffer.writeUInt32LE(0x534adfdc, 0);
  buffer.writeUInt32LE(all.length, 12);
  buffer.writeUInt32LE(all.length - 1, 16);
  all.forEach(([kind, bytes], slab) => {
    buffer.writeUInt32LE(kind, 20 + 12 * slab);
    buffer.writeUInt32LE(places[slab], 24 + 12 * slab);
    buffer.writeUInt32LE(bytes.length, 28 + 12 * slab);
    buffer.set(bytes, places[slab]);
  });
  return buffer;
}

/** Numbers from 0 up to 1 that look drawn at random, and are the same in every run. */
function numbers(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** A run that is being made up: threads, the functions on their stacks, samples and waits at times. */
export class Run {
  constructor(title, lengthNs, periodNs, slotNs = 1e6) {
    Object.assign(this, { title, lengthNs, periodNs, slotNs });
    this.names = [""];
    this.threads = [];
    /** Every thread's tree, by its path. */
    this.nodes = [];
    this.samples = [];
    this.waits = [];
    this.marks = [];
    this.losses = [];
  }

  thread(name, process = this.title, pid = 100) {
    this.nodes.push([{ fn: 0, parent: -1, children: new Map() }]);
    return this.threads.push({ name, tid: pid + this.threads.length, process, pid, run: 0 }) - 1;
  }

  /** The node of a stack, `main;work`, as its thread numbers it. */
  node(thread, stack) {
    const nodes = this.nodes[thread];
    let at = 0;
    for (const name of stack.split(";")) {
      let fn = this.names.indexOf(name);
      if (fn < 0) fn = this.names.push(name) - 1;
      let next = nodes[at].children.get(fn);
      if (next === undefined) {
        next = nodes.push({ fn, parent: at, children: new Map() }) - 1;
        nodes[at].children.set(fn, next);
      }
      at = next;
    }
    return at;
  }

  sample(ns, thread, stack) {
    this.samples.push({ ns, thread, node: this.node(thread, stack) });
  }

  /** Kinds: 0 a lock, 1 input or output, 2 no processor free, 3 nothing to do. `by` is the thread that ended it, with its stack. */
  wait(from, to, thread, stack, kind, by = null) {
    const end = by && { woken: by.woken, thread: by.thread, node: this.node(by.thread, by.stack) };
    this.waits.push({ from, to, thread, node: this.node(thread, stack), kind, end });
  }

  /** The page's text. */
  html() {
    // The trees one behind the other, each in preorder.
    const [parent, fn, roots, place] = [[], [], [], []];
    this.nodes.forEach((nodes, thread) => {
      roots.push(parent.length);
      const pending = [[0, -1]];
      while (pending.length) {
        const [node, above] = pending.pop();
        (place[thread] ??= [])[node] = parent.length;
        const at = parent.push(above < 0 ? 0 : parent.length - above) - 1;
        fn.push(nodes[node].fn);
        for (const child of [...nodes[node].children.values()].reverse()) pending.push([child, at]);
      }
    });
    const rows = new Map();
    const slots = Math.ceil(this.lengthNs / this.slotNs);
    const counts = new Float64Array(parent.length);
    for (const { ns, thread, node } of this.samples) {
      const at = place[thread][node];
      const key = Math.min(slots - 1, Math.floor(ns / this.slotNs)) * parent.length + at;
      rows.set(key, (rows.get(key) ?? 0) + 1);
      counts[at]++;
    }
    const keys = Float64Array.from(rows.keys()).sort();
    const perSlot = new Uint32Array(slots);
    for (const key of keys) perSlot[Math.floor(key / parent.length)]++;
    const waited = new Float64Array(parent.length);
    const began = new Uint32Array(parent.length);
    const kindOf = new Uint8Array(parent.length);
    this.waits.sort((a, b) => a.from - b.from);
    for (const { from, to, thread, node, kind } of this.waits) {
      const at = place[thread][node];
      if (kind === 2) continue;
      waited[at] += to - from;
      began[at]++;
      kindOf[at] = kind;
    }
    const hasWaits = this.waits.length > 0;
    const waits = hasWaits ? {
      time: 2, count: 3, start: Float64Array.from(this.waits, (one) => one.from), end: Float64Array.from(this.waits, (one) => one.to),
      node: Uint32Array.from(this.waits, (one) => place[one.thread][one.node]), kind: Uint8Array.from(this.waits, (one) => one.kind), kindOf,
      woken: Float64Array.from(this.waits, ({ end }) => end?.woken ?? 0), wakerKind: Uint8Array.from(this.waits, ({ end }) => (end ? 1 : 0)),
      waker: Uint32Array.from(this.waits, ({ end }) => (end ? place[end.thread][end.node] + 1 : 0)),
    } : null;
    return page(this, {
      parent: Uint32Array.from(parent), fn: Uint32Array.from(fn), roots, perSlot, counts, hasWaits, waited, began,
      node: Uint32Array.from(keys, (key) => key % parent.length), amounts: Uint16Array.from(keys, (key) => rows.get(key)), waits,
    });
  }
}

/** The page of columns. */
export function page(run, columns) {
  const { title, lengthNs, periodNs, slotNs, names, threads, marks = [], losses = [], lives = [] } = run;
  const { parent, fn, roots, perSlot, counts, hasWaits, waited, began, node, amounts, waits } = columns;
  const functions = names.length;
  const zeros = () => new Uint8Array(functions);
  const cost = counts.map((count) => count * periodNs);
  const sum = (of) => of.reduce((all, one) => all + one, 0);
  const metric = (name, unit, samples, of, level = false) => ({
    name, unit, samples, period: samples === null ? null : periodNs, jittered: null, level, weights: null, runCost: sum(of), runSamples: samples === null ? 0 : sum(counts), runSquares: 0, runUnseen: 0,
    baseCost: 0, baseSamples: 0, baseSquares: 0, baseUnseen: 0, totals: "known", rawCost: null,
  });
  const metrics = [metric("cpu-clock", "nanoseconds", 1, cost), metric("samples", "count", null, counts, true),
    ...(hasWaits ? [metric("off-cpu", "nanoseconds", null, waited), metric("waits", "count", null, began)] : [])];
  const costs = [cost, counts, ...(hasWaits ? [waited, began] : [])];
  const none = metrics.map(() => null);
  const head = {
    title, version: "0", collector: "made up", machine: {}, parameters: {}, runs: [{ command: [title], start_unix_ns: 0, wall_ns: lengthNs, cpu_ns: sum(cost), end: null }], baseRuns: null, verdict: null,
    losses: { samples: sum(counts), lost_samples: sum(losses.map((one) => one.samples)) }, lossesUnknown: false, notes: [], unfinished: false, benchmark: null, callBias: null, facts: [], metrics, metric: 0, shape: "tree",
    nodes: parent.length, functions, threads: threads.length,
    time: { slotNs, slots: perSlot.length, lengthNs, timed: metrics.map(() => true), hasWaits }, hasCalls: false, countsApart: false, noSource: true, tab: "source",
  };
  const tree = { parent, fn, inlined: new Uint8Array(parent.length), calls: null, recursive: null, costs, roots, threads, counted: null };
  const strings = ["", ...names, "program", "libc.so"];
  // Functions are the program's own unless their names begin as those of libraries do.
  const isLibrary = (name) => name.startsWith("_");
  const data = {
    strings,
    functions: {
      name: Uint32Array.from(names, (_, at) => at + 1), module: Uint32Array.from(names, (name) => names.length + (isLibrary(name) ? 2 : 1)), file: zeros(), line: zeros(), kind: zeros(),
      category: Uint8Array.from(names, (name) => (isLibrary(name) ? 1 : 0)), inlined: zeros(),
    },
    lines: { file: new Uint8Array(0), line: new Uint8Array(0) }, lineCosts: { fn: new Uint8Array(0), line: new Uint8Array(0), costs: none, baseCosts: null },
    intervals: none, uncertainty: null, unresolved: null, fixed: none, ports: null, changes: null, details: [], points: [],
  };
  const rest = { site: new Uint8Array(parent.length), costs: none, lineCosts: null };
  const time = { slotNs, lengthNs, perSlot, node, costs: [null, amounts, ...(hasWaits ? [null, null] : [])], waits, lives, marks, losses, clockStepsBack: 0 };
  const packed = { tree, data, rest, time, code: { blocks: [], sources: [] } };
  const [script, worker, style] = ["viewer.js", "worker.js", "viewer.css"].map((name) => readFileSync(join(assets, name), "utf8"));
  const hand = "window.treeringPiece&&treeringPiece()";
  const hash = (text) => createHash("sha256").update(text).digest("base64");
  const policy = `default-src 'none'; script-src 'sha256-${hash(script)}' 'sha256-${hash(hand)}' 'wasm-unsafe-eval'; style-src 'sha256-${hash(style)}' 'unsafe-inline'; worker-src blob:; img-src data:`;
  const pieces = Object.entries(packed).map(([name, value]) => `<script type="text/plain" data-piece="${name}" data-last>${gzipSync(slabs(value), { level: 1 }).toString("base64")}</script><script>${hand}</script>\n`);
  return `<!doctype html>\n<html lang="en" data-theme="light">\n<head>\n<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="${policy}">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n`
    + `<title>${title}</title>\n<style>${style}</style>\n</head>\n<body><div id="page"></div>\n<script type="application/json" id="head">${JSON.stringify(head)}</script>\n`
    + `<script type="text/plain" id="worker">${worker}</script>\n<script>${script}</script>\n${pieces.join("")}<script type="text/plain" id="graphviz"></script>\n</body>\n</html>\n`;
}

/** Ten phases of 1 s on one thread, each in a function of its own, with a mark where it begins. */
export function phases() {
  const run = new Run("phases", 10e9, 1e6);
  const of = ["load", "parse", "index", "sort", "merge", "simulate", "reduce", "encode", "compress", "report"];
  const thread = run.thread("phases");
  for (let ns = 0.5e6; ns < 10e9; ns += 1e6) run.sample(ns, thread, `main;${of[Math.floor(ns / 1e9)]}`);
  run.marks = of.map((name, at) => ({ time: at * 1e9, end: null, thread, kind: "mark", name }));
  return run;
}

/** Frames that are drawn for 16 s on a third of a processor; from 1.36 to 1.50 s of each 2 s the cache is flushed, on all of it. */
export function stall() {
  const run = new Run("stall", 16e9, 1e6);
  const [frames, net] = [run.thread("frames"), run.thread("net")];
  const next = numbers(7);
  for (let ns = 0.5e6; ns < 16e9; ns += 1e6) {
    const within = ns % 2e9;
    if (within >= 1.36e9 && within < 1.5e9) run.sample(ns, frames, next() < 0.9 ? "main;frame;flush_cache;write_pages" : "main;frame;draw");
    else if (next() < 0.2) run.sample(ns, frames, ["main;frame;draw;blend", "main;frame;integrate", "main;frame;integrate;_sin", "main;frame;decode"][Math.floor(next() * 4)]);
    if (next() < 0.03) run.sample(ns, net, "start;serve;_recv");
  }
  return run;
}

/** Four workers for 8 s. From 2 to 5 s one of them always has the lock that the three others wait for. */
export function convoy() {
  const run = new Run("convoy", 8e9, 1e6);
  const workers = [0, 1, 2, 3].map((at) => run.thread(`worker ${at}`));
  const next = numbers(3);
  for (let ns = 0; ns < 8e9; ns += 20e6) {
    const locked = ns >= 2e9 && ns < 5e9;
    const holder = (ns / 20e6) % 4;
    for (const worker of workers) {
      if (locked && worker !== holder) {
        run.wait(ns, ns + 18e6, worker, "start;handle_request;update_table;_lock_wait", 0, { woken: ns + 17e6, thread: holder, stack: "start;handle_request;_unlock" });
        run.wait(ns + 18e6, ns + 20e6, worker, "start;handle_request;update_table", 2);
        continue;
      }
      for (let at = 0.5e6; at < (locked ? 20e6 : 8e6); at += 1e6) run.sample(ns + at, worker, locked ? "start;handle_request;update_table;rehash" : next() < 0.5 ? "start;handle_request;serialize" : "start;handle_request;_malloc");
      if (!locked) run.wait(ns + 8e6, ns + 20e6, worker, "start;wait_for_request", 3);
    }
  }
  return run;
}

/** 500 threads of 16 processes for 5 s. */
export function many() {
  const run = new Run("many", 5e9, 1e6);
  const threads = Array.from({ length: 500 }, (_, at) => run.thread(`thread ${at}`, `server ${at % 16}`, 1000 + (at % 16)));
  const next = numbers(5);
  for (let at = 0; at < 20_000; at++) run.sample(next() * 5e9, threads[Math.floor(next() ** 3 * 500)], next() < 0.5 ? "start;serve;answer" : "start;serve;read");
  return run;
}

/** The columns of a million nodes of 20 threads, 4,096 slots, and four million entries. */
export function largeColumns({ nodes = 1e6, slots = 4096, entries = 4e6, threads = 20 } = {}) {
  const next = numbers(11);
  const [parent, fn, depth] = [new Uint32Array(nodes), new Uint32Array(nodes), new Uint8Array(nodes)];
  const each = Math.ceil(nodes / threads);
  const roots = [];
  for (let node = 0; node < nodes; node++) {
    if (node % each === 0) {
      roots.push(node);
      continue;
    }
    // Each stands below one of those on the way to the node before it.
    let above = node - 1;
    for (let up = next() < 0.55 ? 0 : 1 + Math.floor(next() * 6); up > 0 && above > roots.at(-1); up--) above -= parent[above];
    while (depth[above] > 60) above -= parent[above];
    parent[node] = node - above;
    depth[node] = depth[above] + 1;
    // A function calls a few others, mostly the same ones.
    fn[node] = 1 + ((fn[above] * 7 + 131 * Math.floor(next() ** 2 * 8)) % 9_999);
  }
  const counts = new Float64Array(nodes);
  const perSlot = new Uint32Array(slots).fill(Math.floor(entries / slots));
  const all = perSlot[0] * slots;
  const [node, amounts] = [new Uint32Array(all), new Uint16Array(all)];
  for (let entry = 0; entry < all; entry++) node[entry] = Math.floor(next() * nodes);
  // The entries of a slot are in the order of nodes, as in every page.
  for (let slot = 0; slot < slots; slot++) node.subarray(slot * perSlot[0], (slot + 1) * perSlot[0]).sort();
  for (let entry = 0; entry < all; entry++) {
    amounts[entry] = 1 + Math.floor(next() * 3);
    counts[node[entry]] += amounts[entry];
  }
  return { parent, fn, roots, perSlot, counts, hasWaits: false, waited: null, began: null, node, amounts, waits: null };
}

/** A run of these columns. */
export function large() {
  const columns = largeColumns();
  const names = ["", ...Array.from({ length: 9_999 }, (_, at) => `function_${at + 1}`)];
  const run = { title: "large", lengthNs: columns.perSlot.length * 4e6, periodNs: 1e6, slotNs: 4e6, names, threads: columns.roots.map((_, at) => ({ name: `thread ${at}`, tid: at, process: "large", pid: 1, run: 0 })) };
  return { html: () => page(run, columns) };
}

export const RUNS = { phases, stall, convoy, many, large };

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [name, file] = process.argv.slice(2);
  writeFileSync(file, RUNS[name]().html());
}
