// The parts of a profile besides its tree.

import { signal } from "@preact/signals";
import { type Column, Slabs } from "./model/slabs.ts";
import { bareHash, type Name, splitName } from "./model/names.ts";
import type { Unit } from "./model/numbers.ts";
import { allVisible, visible } from "./model/visible.ts";

export interface Metric {
  name: string;
  unit: Unit;
  /** The metric that counts its samples; null for exact ones. */
  samples: number | null;
  period: number | null;
  jittered: boolean | null;
  /** Whether there are no costs to show: levels, and what belongs to another metric's samples. */
  level: boolean;
  /** Where samples weigh differently: the metrics that tell how, and by how much. */
  weights: { squares: number; unseen: number; per: number; hidden: number; knownCost: boolean } | null;
  runCost: number;
  runSamples: number;
  runSquares: number;
  runUnseen: number;
  baseCost: number;
  baseSamples: number;
  baseSquares: number;
  baseUnseen: number;
  /** Whether total costs are known, estimated by calls, or at least what is shown. */
  totals: "known" | "estimated" | "at least" | "unknown";
  rawCost: number | null;
}

export interface Run {
  command: string[];
  start_unix_ns: number;
  wall_ns: number;
  cpu_ns: number | null;
  end: string | null;
}

/** The time of a run: the slots that it is divided into. All lengths are in ns. */
export interface Time {
  slotNs: number;
  slots: number;
  lengthNs: number;
  /** By metric: whether the costs of a part of the run are known. */
  timed: boolean[];
  hasWaits: boolean;
}

/** The part that stands in the page as plain JSON, so that the header is there at once. */
export interface Head {
  title: string;
  version: string;
  collector: string;
  machine: Record<string, string>;
  parameters: Record<string, string>;
  runs: Run[];
  baseRuns: boolean[] | null;
  /** In a difference: how much the run changed in a metric and why, and the function at which to look first. */
  verdict: { text: string; function: number | null; metric: number } | null;
  losses: Record<string, number>;
  lossesUnknown: boolean;
  notes: string[];
  unfinished: boolean;
  benchmark: { name: string; description: string; parameters: [string, string][]; results: [string, string][] } | null;
  callBias: { inside_ns: number; outside_ns: number; spread_ns: number } | null;
  facts: [string, string][];
  metrics: Metric[];
  metric: number;
  shape: "tree" | "arcs" | "flat";
  nodes: number;
  functions: number;
  threads: number;
  /** Null where the profile was kept without its times. */
  time: Time | null;
  hasCalls: boolean;
  /** Whether something else counted the calls than what measured the costs: 0 calls are not known then. */
  countsApart: boolean;
  noSource: boolean;
  /** In a difference: why there are no blocks. */
  noBlocks: string | null;
  /** In a difference: whether a part of what ran is shown, whose counted lines are not known. */
  isPart: boolean;
  /** The pane beside the functions at first: source, or blocks where there is no source. */
  tab: "source" | "blocks";
}

/** The costs of functions, and those of arcs, of one side. */
interface FixedFunctions {
  self: Column;
  total: Column;
}

interface FixedArcs {
  total: Column;
  fromSelf: Column;
  fromTotal: Column;
  toSelf: Column;
  toTotal: Column;
}

/** Functions and arcs that Treering worked out, of profiles that have no tree. Calls and cycles are those of the new runs. */
export interface Fixed {
  functions: { fn: Column; calls: Column | null; recursive: Column | null; cycle: Column; now: FixedFunctions; base?: FixedFunctions };
  arcs: { caller: Column; callee: Column; calls: Column | null; now: FixedArcs; base?: FixedArcs };
}

export interface Instruction {
  address: string;
  text: string | null;
  /** 1 + the line; 0 where unknown. */
  line: number;
}

export interface Block {
  address: string;
  executions: number;
  ways: [number, number] | null;
  signals: number;
  instructions: Instruction[];
  exits: { kind: string; target: string | null; fn: number | null; count: number }[];
}

export interface Detail {
  fn: number;
  caller: number | null;
  statistics: { timed: number; mean: number; calm: number; calm_mean: number; least: number; greatest: number; deviation: number | null } | null;
  ports: { exits: number; redos: number; fails: number; exceptions: number; cuts: number } | null;
  sizes: { least: number; greatest: number; calls: number; total: number }[];
  growth: { exponent: number; low: number; high: number } | null;
  live_bytes: number | null;
  peak_bytes: number | null;
}

export interface Point {
  run: number;
  time_ns: number;
  thread: string;
  fn: number;
  description: string;
  values: { metric: number; value: number }[];
}

export interface Data {
  strings: string[];
  functions: { name: Column; module: Column; file: Column; line: Column; kind: Column; category: Column; inlined: Column };
  lines: { file: Column; line: Column };
  lineCosts: { fn: Column; line: Column; costs: (Column | null)[]; baseCosts: (Column | null)[] | null };
  /** In a difference: lines that are not the same by file and number in both, by function in the order of the new version. */
  linePairs: { fn: Column; base: Column; now: Column; file: Column; after: Column; text: Column; byPlace: Column } | null;
  /** By metric: bounds of self and total of functions as shares of the run. */
  intervals: ({ selfLow: Column; selfHigh: Column; totalLow: Column; totalHigh: Column } | null)[];
  uncertainty: Column | null;
  unresolved: Column | null;
  fixed: (Fixed | null)[];
  /** By row: a function, or an arc where `caller` is 1 + the caller. */
  ports: { caller: Column; fn: Column; exits: Column; redos: Column; fails: Column; exceptions: Column } | null;
  /** In a difference, of one metric: why self costs changed. Parts have their sign in the lowest bit. */
  changes: { metric: number; baseCalls: Column; calls: Column; moreCalls: Column; costPerCall: Column; arcs: { caller: Column; callee: Column; moreCalls: Column; costPerCall: Column } } | null;
  details: Detail[];
  points: Point[];
}

/** A line that has another number in the base, or that one version alone has. Lines are indexes of the table of lines. */
export interface LinePair {
  base: number | null;
  now: number | null;
  /** The path of its file, a string; that of the new version where both have it. */
  file: number;
  /** The number of the line of the new version that it stands behind or at. */
  after: number;
  /** Its text where the base alone has it. */
  text: string;
}

/** By line of each version: what is its pair, where that is not the same by file and number. */
export interface LinePairs {
  ofBase: Map<number, LinePair>;
  ofNow: Map<number, LinePair>;
  /** Whether lines were paired by their distance from the head of the function. */
  byPlace: boolean;
}

/** A basic block of one version. */
export interface VersionBlock {
  address: string;
  size: number;
  executions: number;
  /** How many instructions its executions are. */
  instructions: number;
  /** `file:line` of its first instruction. */
  line: string | null;
}

/** A basic block in both versions; null where none is its pair. */
export interface BlockPair {
  base: VersionBlock | null;
  now: VersionBlock | null;
}

/** Calls in both runs, and the two parts of the change of a function's self cost. */
export interface Split extends SplitParts {
  calls: [base: number, now: number];
}

/** The two parts of a change, which add up to it. */
export interface SplitParts {
  moreCalls: number;
  costPerCall: number;
}

/** The number with its sign in the lowest bit: 0, −1, 1, −2, 2 … */
function fromZigzag(value: number): number {
  return value % 2 ? -(value + 1) / 2 : value / 2;
}

/** A stretch of a source file. */
export interface Source {
  file: number;
  first: number;
  lines: string[];
}

/** Source text and disassembled code: where each stands in the container that `slabs` reads. */
interface CodeIndex {
  slabs: Slabs;
  sources: Map<number, { file: number; first: number; count: number; slab: number }[]>;
  blocks: Map<number, { instructions: number; slab: number }>;
}

/** How often a predicate was left in which way. */
export type Ports = Record<Port, number>;
export const PORTS = ["redos", "exits", "fails", "exceptions"] as const;
export type Port = (typeof PORTS)[number];

/** The categories of functions, and how they are called in the page. */
export const CATEGORIES = ["own", "library", "kernel", "script", "inlined"] as const;

export class Profile {
  readonly head: Head;
  readonly data: Data;
  #names: (Name | undefined)[] = [];
  #alike: Set<string> | null = null;
  #kinds: string[];
  #code = signal<CodeIndex | null>(null);
  #sources = new Map<number, Source[]>();
  #blocks: { fn: number; blocks: Block[] } | null = null;
  #blockPairs: { fn: number; pairs: BlockPair[] } | null = null;
  #linePairs: Map<number, LinePairs> | null = null;
  #arcRows: Map<number, number> | null = null;
  #portRows: Map<string, number> | null = null;
  #byName: Map<string, number[]> | null = null;

  constructor(head: Head, data: Data) {
    this.head = allVisible(head);
    this.data = {
      ...data, strings: data.strings.map((text) => visible(text)),
      points: data.points.map((point) => ({ ...point, thread: visible(point.thread), description: visible(point.description) })),
    };
    this.#kinds = KINDS;
  }

  /** Takes source text and disassembled code, which the page reads last. */
  addCode(buffer: ArrayBuffer) {
    const slabs = new Slabs(buffer);
    const index: CodeIndex = { slabs, sources: new Map(), blocks: new Map() };
    const root = slabs.root() as { sources: { file: number; first: number; count: number; slab: number }[]; blocks: { fn: number; instructions: number; slab: number }[] };
    for (const one of root.sources) {
      const known = index.sources.get(one.file);
      if (known) known.push(one);
      else index.sources.set(one.file, [one]);
    }
    for (const one of root.blocks) index.blocks.set(one.fn, one);
    this.#code.value = index;
  }

  /** Whether source text and disassembled code are there. */
  get hasCode(): boolean {
    return this.#code.value !== null;
  }

  /** Whether any function has blocks; false as long as that is not known. */
  get hasBlocks(): boolean {
    return (this.#code.value?.blocks.size ?? 0) > 0;
  }

  /** The text of a file as far as the page has it, in the order of lines. */
  sources(file: number): Source[] {
    let known = this.#sources.get(file);
    const code = this.#code.value;
    if (known || !code) return known ?? [];
    known = (code.sources.get(file) ?? []).map((one) => ({ file, first: one.first, lines: (code.slabs.slab(one.slab) as string[]).map((line) => visible(line, "\t")) }));
    known.sort((a, b) => a.first - b.first);
    this.#sources.set(file, known);
    return known;
  }

  /** The blocks of a function; null where none are known. */
  blocks(fn: number): { instructions: number; blocks: Block[] } | null {
    const found = this.#code.value?.blocks.get(fn);
    if (!found) return null;
    if (this.#blocks?.fn !== fn) this.#blocks = { fn, blocks: this.#code.value!.slabs.slab(found.slab) };
    return { instructions: found.instructions, blocks: this.#blocks.blocks };
  }

  /** The blocks of a function in both versions; null where none are known. */
  blockPairs(fn: number): BlockPair[] | null {
    const found = this.head.baseRuns ? this.#code.value?.blocks.get(fn) : undefined;
    if (!found) return null;
    if (this.#blockPairs?.fn !== fn) this.#blockPairs = { fn, pairs: allVisible(this.#code.value!.slabs.slab(found.slab) as BlockPair[]) };
    return this.#blockPairs.pairs;
  }

  /** The lines of a function that are not the same by file and number in both versions. */
  linePairs(fn: number): LinePairs {
    if (!this.#linePairs) {
      const all = (this.#linePairs = new Map<number, LinePairs>());
      const table = this.data.linePairs;
      const get = (fn: number) => all.get(fn) ?? all.set(fn, { ofBase: new Map(), ofNow: new Map(), byPlace: false }).get(fn)!;
      for (let at = 0; table && at < table.fn.length; at++) {
        const line = (number: number) => (number > 0 ? number - 1 : null);
        const pair = { base: line(table.base[at]), now: line(table.now[at]), file: table.file[at], after: table.after[at], text: visible(this.data.strings[table.text[at]], "\t") };
        if (pair.base !== null) get(table.fn[at]).ofBase.set(pair.base, pair);
        if (pair.now !== null) get(table.fn[at]).ofNow.set(pair.now, pair);
      }
      table?.byPlace.forEach((fn: number) => (get(fn).byPlace = true));
    }
    return this.#linePairs.get(fn) ?? NO_PAIRS;
  }

  /** The ports of a function, or of its calls from a caller; null where none are known. */
  ports(fn: number, caller: number | null = null): Ports | null {
    const rows = this.data.ports;
    if (!rows) return null;
    this.#portRows ??= new Map(Array.from(rows.fn, (one, at) => [`${rows.caller[at]} ${one}`, at]));
    const at = this.#portRows.get(`${caller === null ? 0 : caller + 1} ${fn}`);
    return at === undefined ? null : { exits: rows.exits[at], redos: rows.redos[at], fails: rows.fails[at], exceptions: rows.exceptions[at] };
  }

  /** Why the self cost of a function changed by `by`; null where that is not known, as of a part of the run. */
  split(metric: number, fn: number, by: number): Split | null {
    const { changes } = this.data;
    if (changes?.metric !== metric) return null;
    const [moreCalls, costPerCall] = [fromZigzag(changes.moreCalls[fn]), fromZigzag(changes.costPerCall[fn])];
    return moreCalls + costPerCall === by ? { calls: [changes.baseCalls[fn], changes.calls[fn]], moreCalls, costPerCall } : null;
  }

  /** Why the cost of an arc changed by `by`; null where that is not known. The caller is 0 where it is unknown. */
  arcParts(metric: number, caller: number, callee: number, by: number): SplitParts | null {
    const arcs = this.data.changes?.metric === metric ? this.data.changes.arcs : null;
    if (!arcs) return null;
    const key = (caller: number, callee: number) => caller * this.functions + callee;
    this.#arcRows ??= new Map(Array.from(arcs.callee, (callee, at) => [key(arcs.caller[at], callee), at]));
    const at = this.#arcRows.get(key(caller, callee));
    if (at === undefined) return null;
    const [moreCalls, costPerCall] = [fromZigzag(arcs.moreCalls[at]), fromZigzag(arcs.costPerCall[at])];
    return moreCalls + costPerCall === by ? { moreCalls, costPerCall } : null;
  }

  /** The ports that the profile has columns for: exceptions only where there were any. */
  get portColumns(): readonly Port[] {
    const rows = this.data.ports;
    if (!rows) return [];
    return rows.exceptions.some((count) => count > 0) ? PORTS : PORTS.slice(0, 3);
  }

  /** How many functions there are; 0 is what lies outside of every function. */
  get functions(): number {
    return this.data.functions.name.length;
  }

  fullName(fn: number): string {
    return this.data.strings[this.data.functions.name[fn]];
  }

  /** The name in its parts. Arguments stay where two names would read alike, then the module is added. */
  name(fn: number): Name {
    return (this.#names[fn] ??= this.#split(fn));
  }

  #split(fn: number): Name {
    const name = splitName(this.fullName(fn));
    const text = name.qualifier + name.last + name.tail;
    this.#alike ??= this.#findAlike();
    if (!this.#alike.has(text)) return name;
    const full = splitName(this.fullName(fn), true);
    const fullText = full.qualifier + full.last + full.tail;
    if (!this.#alike.has(`${fullText}\0`)) return full;
    const module = basename(this.module(fn));
    const place = module && !this.#alike.has(`${fullText}\0${module}`) ? module : this.#source(fn) || module;
    return place ? { ...full, tail: `${full.tail} [${place}]` } : full;
  }

  #findAlike(): Set<string> {
    const seen = new Set<string>();
    const alike = new Set<string>();
    const note = (text: string) => void (seen.has(text) ? alike.add(text) : seen.add(text));
    // Most names share nothing: those are told by a number that costs little.
    const bare = new Uint32Array(this.functions);
    const counts = new Map<number, number>();
    for (let fn = 0; fn < this.functions; fn++) {
      bare[fn] = bareHash(this.fullName(fn));
      counts.set(bare[fn], (counts.get(bare[fn]) ?? 0) + 1);
    }
    for (let fn = 0; fn < this.functions; fn++) {
      if (counts.get(bare[fn]) === 1) continue;
      const short = splitName(this.fullName(fn));
      const full = splitName(this.fullName(fn), true);
      note(short.qualifier + short.last + short.tail);
      const fullText = full.qualifier + full.last + full.tail;
      note(`${fullText}\0`);
      note(`${fullText}\0${basename(this.module(fn))}`);
    }
    return alike;
  }

  module(fn: number): string {
    return this.data.strings[this.data.functions.module[fn]];
  }

  file(fn: number): string {
    return this.data.strings[this.data.functions.file[fn]];
  }

  line(fn: number): number {
    return this.data.functions.line[fn];
  }

  kind(fn: number): string {
    return this.#kinds[this.data.functions.kind[fn]] ?? "";
  }

  /** An index of `CATEGORIES`. */
  category(fn: number): number {
    return this.data.functions.inlined[fn] ? 4 : this.data.functions.category[fn];
  }

  /** `formula · formula.cpp:48`. */
  place(fn: number): string {
    return [basename(this.module(fn)), this.#source(fn)].filter(Boolean).join(" · ");
  }

  /** `formula.cpp:48`, as far as it is known. */
  #source(fn: number): string {
    const [file, line] = [basename(this.file(fn)), this.line(fn)];
    return file && line ? `${file}:${line}` : file;
  }

  /** The name by which an address finds a function: with as many of its module, its place and its number as tell it from others. */
  key(fn: number): string {
    const parts = [this.fullName(fn), basename(this.module(fn)), this.#source(fn)];
    for (let known = 1; known <= parts.length; known++) {
      const key = parts.slice(0, known).join("\t");
      if (this.find(key) === fn) return key;
    }
    return [...parts, this.#like(parts).indexOf(fn)].join("\t");
  }

  /** The function of a key. Where the rest of it fits none, the first that its beginning fits. */
  find(key: string): number | null {
    const parts = key.split("\t");
    const number = Number(parts[3] ?? 0);
    for (let known = Math.min(3, parts.length); known > 0; known--) {
      const found = this.#like(parts.slice(0, known));
      if (found.length) return found[number] ?? found[0];
    }
    return null;
  }

  /** The functions of a name, and of a module and a place where these are given. */
  #like([name, module, source]: string[]): number[] {
    if (!this.#byName) {
      this.#byName = new Map();
      for (let fn = 0; fn < this.functions; fn++) {
        const known = this.#byName.get(this.fullName(fn));
        if (known) known.push(fn);
        else this.#byName.set(this.fullName(fn), [fn]);
      }
    }
    const all = this.#byName.get(name) ?? [];
    return module === undefined ? all : all.filter((fn) => basename(this.module(fn)) === module && (source === undefined || this.#source(fn) === source));
  }
}

const NO_PAIRS: LinePairs = { ofBase: new Map(), ofNow: new Map(), byPlace: false };

const KINDS = [
  "native", "inlined", "kernel", "root", "address", "unresolved", "jit", "interpreted", "task", "builtin",
  "operator", "script", "extension", "anonymous",
];

export function basename(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** Reads a block of the page and frees its text. */
export function takeBlock(id: string): string {
  const element = document.getElementById(id);
  const text = element?.textContent ?? "";
  element?.remove();
  return text.trim();
}
