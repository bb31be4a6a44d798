// The state of the page. All of it is in the URL's hash, so that a link reproduces the picture.

import { batch, computed, effect, signal, untracked } from "@preact/signals";
import type { Analysis, Side, ThreadCost } from "./model/analysis.ts";
import { analysisOf } from "./model/fixed.ts";
import type { LineCall, OwnLine } from "./model/lines.ts";
import type { Merged, MergedOf, Request } from "./model/merged.ts";
import type { Transform } from "./model/transform.ts";
import { parseQuery, type Searchable } from "./model/search.ts";
import { allVisible, visible } from "./model/visible.ts";
import { readSpan } from "./model/moment.ts";
import type { Course, Courses, Grid, Span } from "./model/timeline.ts";
import type { Order, OrderGrid } from "./model/order.ts";
import type { Place } from "./model/waits.ts";
import { findMatches, knownMatches } from "./matcher.ts";
import { intervalOf, type Measure } from "./model/interval.ts";
import { Client } from "./client.ts";
import type { Part } from "./worker.ts";
import { basename, CATEGORIES, type Fixed, type Head, type Profile } from "./profile.ts";
import { callees } from "./requests.ts";

export const VIEWS = ["overview", "flame", "sandwich", "graph", "tree", "callers"] as const;
export type View = (typeof VIEWS)[number];
export const TABS = ["source", "lines", "blocks", "charts", "waits"] as const;
export type Tab = (typeof TABS)[number];
export const UNITS = ["run", "parent", "natural", "call", "samples"] as const;
export type CostUnit = (typeof UNITS)[number];
export const SORTS = ["self", "total", "calls", "name", "delta"] as const;
export type Sort = (typeof SORTS)[number];
export const PANES = ["functions", "flame", "line", "time", "source", "more"] as const;

/** A transform as it is named in the hash and in the breadcrumbs. */
export interface Step {
  kind: "focus" | "ignore" | "hide" | "threads" | "time" | "against";
  /** `f:` a function, `m:` a module, `q:` a search, `t:` thread numbers; of time a span, and against `rest` or a span. */
  target: string;
}

export interface Route {
  fn: number;
  view: View;
  tab: Tab;
  metric: number;
  second: number | null;
  unit: CostUnit;
  lineUnit: "natural" | "run";
  sort: Sort;
  ascending: boolean;
  fold: boolean;
  direction: "callees" | "callers";
  colour: "kind" | "module" | "self";
  side: "now" | "base";
  normalised: boolean;
  change: string;
  category: number | null;
  q: string;
  theme: "light" | "dark" | "auto";
  open: boolean;
  steps: Step[];
  /** The functions from the root to the node that the flame graph is zoomed to. */
  zoom: number[];
  pane: (typeof PANES)[number];
  sizes: number[];
  least: number;
  /** How many calls away from the current function the graph goes; 0 for as far as there is room. */
  hops: number;
  /** The part of the run that the strip of time shows, in ns; all of it where there is none. */
  window: [from: number, to: number] | null;
  /** Whether the strip of time is folded to its head. */
  folded: boolean;
  /** Below the overview of time: tracks of threads, or the heatmap; the length of its columns in ns, 0 for the one that suits. */
  mode: "tracks" | "heat";
  column: number;
  /** The stacks of the flame graph: added up, or in the order of time. */
  order: "sum" | "time";
  /** How many tracks the strip has room for; 0 for as many as suit the window. */
  tracks: number;
}

/** The tabs beside the functions: waits where they were recorded. */
export function tabs(): readonly Tab[] {
  return TABS.filter((tab) => tab !== "waits" || profile.head.time?.hasWaits);
}

/** The names of the two sides of a difference. */
export function sideName(side: "base" | "now"): string {
  if (isCompared()) return side === "base" ? "A" : "B";
  return side === "base" ? "base" : "new";
}

let profile: Profile;
let client: Client;

export const loaded = signal(false);
export const failure = signal<string | null>(null);
export const route = signal<Route>(undefined as unknown as Route);
export const analysis = signal<Analysis | null>(null);
export const secondAnalysis = signal<Analysis | null>(null);
export const busy = signal(0);
/** Grows whenever the worker's tree changes; merged trees of older ones are stale. */
export const generation = signal(0);
/** The subject of the strip: hovered or focused. */
export const hovered = signal<{ fn: number; text: string } | null>(null);
/** A request that failed. */
export const notice = signal<string | null>(null);
export const helpOpen = signal(false);
export const threadsOpen = signal(false);
/** The moments of the run; null until they are read, and where they are not known. */
export const course = signal<Course | null>(null);
/** The function that a menu is open for, and where; `back` has the focus again when it closes. */
export const menu = signal<{ fn: number; x: number; y: number; back: HTMLElement | null } | null>(null);

export function theProfile(): Profile {
  return profile;
}

function defaults(): Route {
  const metric = profile.head.metric;
  return {
    fn: -1, view: "overview", tab: profile.head.tab,
    metric, second: null, unit: profile.head.baseRuns ? "natural" : "run", lineUnit: "natural", sort: profile.head.baseRuns ? "delta" : "self",
    ascending: false, fold: false, direction: "callees", colour: "kind", side: "now", normalised: false,
    change: "all", category: null, q: "", theme: "auto", open: false, steps: [], zoom: [], pane: "functions", sizes: [],
    least: 0.005, hops: 0, window: null, folded: false, mode: "tracks", column: 0, order: "sum", tracks: 0,
  };
}

// ---- the hash

function encode(state: Route): string {
  const plain = defaults();
  const parts: string[] = [];
  const put = (key: string, value: string) => parts.push(`${key}=${encodeURIComponent(value).replace(/%20/g, "+")}`);
  if (state.fn >= 0) put("fn", functionKey(state.fn));
  for (const key of ["view", "tab", "unit", "lineUnit", "sort", "direction", "colour", "side", "change", "q", "theme", "pane", "mode", "order"] as const) {
    if (state[key] !== plain[key]) put(key, state[key]);
  }
  for (const key of ["ascending", "fold", "open", "normalised", "folded"] as const) if (state[key] !== plain[key]) put(key, state[key] ? "1" : "0");
  if (state.metric !== plain.metric) put("metric", profile.head.metrics[state.metric].name);
  if (state.second !== null) put("second", profile.head.metrics[state.second].name);
  if (state.category !== null) put("kind", String(state.category));
  if (state.least !== plain.least) put("least", String(state.least));
  if (state.hops !== plain.hops) put("hops", String(state.hops));
  for (const step of state.steps) put("x", `${step.kind}:${step.target}`);
  if (state.tracks) put("tracks", String(state.tracks));
  if (state.column) put("column", String(Math.round(state.column / 1e3)));
  if (state.window) put("window", state.window.map((ns) => Math.round(ns / 1e3)).join("-"));
  if (state.zoom.length) put("zoom", state.zoom.map(functionKey).join("\n"));
  if (state.sizes.length) put("sizes", state.sizes.map((size) => Math.round(size)).join(","));
  return parts.join("&");
}

function decode(hash: string): Route {
  const state = defaults();
  const text = hash.replace(/^#/, "");
  for (const part of text.split("&")) {
    const at = part.indexOf("=");
    if (at < 0) continue;
    const key = part.slice(0, at);
    let value: string;
    try {
      value = decodeURIComponent(part.slice(at + 1).replace(/\+/g, " "));
    } catch {
      continue;
    }
    read(state, key, value);
  }
  return { ...state, ...timed(state) };
}

/** A metric whose times are known, where a part of the run is shown. */
function timed({ steps, metric, second }: Route): Partial<Route> {
  const { time, metrics, metric: first } = profile.head;
  if (!time || time.timed[metric] || !spanOf(steps)) return {};
  const known = [first, ...metrics.keys()].find((one) => time.timed[one] && !metrics[one].level);
  if (known === undefined) return { steps: steps.filter((step) => step.kind !== "time") };
  notice.value = `${metrics[metric].name} was kept without its times; a part of the run is shown in ${metrics[known].name}`;
  return { metric: known, second: second !== null && time.timed[second] ? second : null };
}

/** The selected part of the run; null where all of it is shown. */
export function spanOf(steps: Step[]): Span | null {
  const step = steps.find((one) => one.kind === "time");
  return step ? readSpan(step.target) : null;
}

/** The part of the run that the selected one is compared with; null where it is shown alone. */
export function againstOf(steps: Step[]): Span | "rest" | null {
  const step = steps.find((one) => one.kind === "against");
  if (!step || !spanOf(steps)) return null;
  return step.target === "rest" ? "rest" : readSpan(step.target);
}

/** Whether two sides are shown: two profiles, or two parts of a run. */
export function isDifference(): boolean {
  return profile.head.baseRuns !== null || isCompared();
}

/** Whether two parts of the run are compared, whose costs are those of a second. */
export function isCompared(): boolean {
  return (analysis.value?.basePart ?? null) !== null;
}

function read(state: Route, key: string, value: string) {
  const oneOf = <T extends string>(known: readonly T[]): T | undefined => known.find((item) => item === value);
  const metric = () => profile.head.metrics.findIndex((metric) => metric.name === value && !metric.level);
  switch (key) {
    case "fn": state.fn = findFunction(value) ?? -1; break;
    case "view": state.view = oneOf(VIEWS) ?? state.view; break;
    case "tab": state.tab = oneOf(tabs()) ?? state.tab; break;
    case "unit": state.unit = oneOf(UNITS) ?? state.unit; break;
    case "lineUnit": state.lineUnit = value === "run" ? "run" : "natural"; break;
    case "sort": state.sort = oneOf(SORTS) ?? state.sort; break;
    case "direction": state.direction = value === "callers" ? "callers" : "callees"; break;
    case "colour": state.colour = oneOf(["kind", "module", "self"] as const) ?? state.colour; break;
    case "side": state.side = value === "base" ? "base" : "now"; break;
    case "change": state.change = value; break;
    case "q": state.q = value; break;
    case "theme": state.theme = oneOf(["light", "dark", "auto"] as const) ?? state.theme; break;
    case "pane": state.pane = oneOf(PANES) ?? state.pane; break;
    case "mode": state.mode = value === "heat" ? "heat" : "tracks"; break;
    case "order": state.order = value === "time" && profile.head.time ? "time" : "sum"; break;
    case "tracks": state.tracks = Number(value) >= 1 && Number(value) <= 60 ? Math.round(Number(value)) : 0; break;
    case "column": state.column = Number(value) > 0 && Number(value) < 1e15 ? Number(value) * 1e3 : 0; break;
    case "ascending": case "fold": case "open": case "normalised": case "folded": state[key] = value === "1"; break;
    case "metric": state.metric = metric() >= 0 ? metric() : state.metric; break;
    case "second": state.second = metric() >= 0 ? metric() : null; break;
    case "kind": state.category = /^[0-4]$/.test(value) ? Number(value) : null; break;
    case "least": state.least = Number(value) >= 0 && Number(value) < 1 ? Number(value) : state.least; break;
    case "zoom": state.zoom = value.split("\n").map((name) => findFunction(name) ?? 0); break;
    case "hops": state.hops = /^[0-4]$/.test(value) ? Number(value) : state.hops; break;
    case "sizes": state.sizes = value.split(",").map(Number).filter(Number.isFinite); break;
    case "x": {
      const [kind, ...rest] = value.split(":");
      const step = { kind: kind as Step["kind"], target: rest.join(":") };
      const isSpan = kind === "time" && profile.head.time !== null && readSpan(step.target) !== null && !spanOf(state.steps);
      const isAgainst = kind === "against" && spanOf(state.steps) !== null && !againstOf(state.steps) && (step.target === "rest" || readSpan(step.target) !== null);
      if (isSpan || isAgainst || ["focus", "ignore", "hide", "threads"].includes(kind)) state.steps.push(step);
      break;
    }
    case "window": {
      const span = profile.head.time && readSpan(value);
      state.window = span && span.period === null && span.from < profile.head.time!.lengthNs ? [span.from, Math.min(span.to, profile.head.time!.lengthNs)] : null;
    }
  }
}

/** A function's name for the hash, with its module where several share the name. */
export function functionKey(fn: number): string {
  const name = profile.fullName(fn);
  return profile.find(name) === fn ? name : `${name}\t${basename(profile.module(fn))}`;
}

function findFunction(key: string): number | null {
  const [name, module] = key.split("\t");
  return profile.find(name, module);
}

/** Changes what is shown. `keep` replaces the history entry: for typing, sizes, and hovering. */
export function go(change: Partial<Route>, keep = false) {
  const asked = { ...route.peek(), ...change };
  const next = { ...asked, ...timed(asked) };
  const hash = `#${encode(next)}`;
  route.value = next;
  if (hash === location.hash || (hash === "#" && !location.hash)) return;
  try {
    if (keep) history.replaceState(null, "", hash);
    else history.pushState(null, "", hash);
  } catch {
    // Some browsers allow no history for files; the page works without.
  }
}

/** The metric of the numbers that are shown: until another one is worked out, those of the one before stay. */
export function shownMetric(): number {
  return analysis.value?.metric ?? route.value.metric;
}

/** Makes a function the current one. */
export function select(fn: number) {
  if (fn > 0 || profile.functions === 1) go({ fn });
}

// ---- asking the worker

/** The worker that has a profile's tree, and what it is asked before anything else is known. */
function opened(source: string, head: Head): Client {
  const made = new Client(source);
  const metrics = head.metrics.map((metric) => ({
    samples: metric.samples, squares: metric.weights && metric.weights.squares, unseen: metric.weights && metric.weights.unseen,
  }));
  made.ask({ op: "open", metrics, functions: head.functions, baseRuns: head.baseRuns }).catch(failed);
  return made;
}

function failed(error: Error) {
  failure.value = `the profile cannot be worked out: ${error.message}`;
  loaded.value = true;
}

/** Requests made while the page was still being read. */
let early: { metric: number; found: Promise<Analysis> } | null = null;

/** Starts the worker and asks it what the first picture will need; it answers as soon as it has read enough. */
export function startWorker(head: Head, source: string) {
  if (head.shape !== "tree") return;
  client = opened(source, head);
  const hash = new URLSearchParams(location.hash.slice(1));
  // Transforms name functions, which are not read yet.
  if (hash.has("x")) return;
  const named = head.metrics.findIndex((metric) => metric.name === hash.get("metric") && !metric.level);
  const metric = named >= 0 ? named : head.metric;
  if (!hash.has("direction") && ["overview", "flame"].includes(hash.get("view") ?? "overview")) {
    foresee(callees(null, hash.get("fold") === "1"), metric, "[]");
  }
  const found = client.ask<Analysis>({ op: "analyse", metric });
  found.catch(() => {});
  early = { metric, found };
}

/** Hands a piece of the tree to the worker. */
export function giveWorker(part: Part, text: string, last: boolean) {
  client?.give(part, text, last);
}

/** Shows a profile; what needs its tree waits for the worker. */
export function start(given: Profile) {
  profile = given;
  route.value = decode(location.hash);
  window.addEventListener("popstate", () => (route.value = decode(location.hash)));
  window.addEventListener("hashchange", () => (route.value = decode(location.hash)));
  const metric = computed(() => route.value.metric);
  const second = computed(() => route.value.second);
  const steps = computed(() => JSON.stringify(route.value.steps));
  effect(() => {
    const wanted = { metric: metric.value, second: second.value, steps: steps.value };
    // The analysis reads the numbers shown before, whose change must not ask for it again.
    untracked(() => {
      busy.value++;
      void analyse(wanted).finally(() => busy.value--);
    });
  });
  if (client && profile.head.time) client.ask<Course>({ op: "timeline" }).then((found) => (course.value = allVisible(found)), failed).then(prepareSoon);
}

/** How long the page rests before it prepares for parts of the run, in ms. */
const REST = 500;

/** Has the worker prepare for the selection of any part, when the first picture is there and nothing else is asked. */
function prepareSoon() {
  setTimeout(() => (busy.peek() > 0 ? prepareSoon() : client.ask({ op: "prepare" }).catch(failed)), REST);
}

/** The transforms that the worker was told last, and the part of the run. */
let told = { transforms: "[]", span: "null" };

/** The transforms of the tree, which selecting a part of the run is none of. */
function structural(steps: Step[]): Step[] {
  return steps.filter((step) => step.kind !== "time" && step.kind !== "against");
}

/** Tells the worker what it does not know yet. */
function tell(steps: Step[]) {
  const others = structural(steps);
  const [span, against] = [spanOf(steps), againstOf(steps)];
  const wanted = { transforms: JSON.stringify(others), span: JSON.stringify(span && [span, against]) };
  if (wanted.transforms !== told.transforms) client.ask({ op: "transform", transforms: transforms(others) }).catch(failed);
  if (wanted.span !== told.span) client.ask({ op: "part", span, against }).catch(failed);
  told = wanted;
}

async function analyse(wanted: { metric: number; second: number | null; steps: string }) {
  try {
    if (!client) {
      show(fixedAnalysis(wanted.metric), wanted.second === null ? null : fixedAnalysis(wanted.second));
      return;
    }
    // The worker answers in the order in which it is asked.
    const steps: Step[] = JSON.parse(wanted.steps);
    if (steps.length || told.transforms !== "[]" || told.span !== "null") {
      // A regular expression is looked up before anything is asked, so that no answer overtakes another.
      if (regexesOf(steps).some((regex) => knownMatches(profile, regex) === undefined)) await lookedUp(profile, steps);
      if (JSON.stringify(route.peek().steps) !== wanted.steps) return;
      const slow = steps.find((step) => regexesOf([step]).some((regex) => knownMatches(profile, regex) === "slow"));
      if (slow) return leaveOut(slow, steps);
      tell(steps);
    }
    const known = early?.metric === wanted.metric && wanted.steps === "[]" ? early.found : null;
    early = null;
    // A flame graph takes less time than the numbers of all functions, so it comes first.
    const { view, direction, fold } = route.peek();
    if (!known && direction === "callees" && (view === "overview" || view === "flame")) foresee(callees(null, fold), wanted.metric, wanted.steps);
    const found = await (known ?? client.ask<Analysis>({ op: "analyse", metric: wanted.metric }));
    const second = wanted.second === null ? null : await client.ask<Analysis>({ op: "analyse", metric: wanted.second });
    const now = route.peek();
    // A later request makes this one stale.
    if (now.metric !== wanted.metric || JSON.stringify(now.steps) !== wanted.steps) return;
    show(found, second);
  } catch (error) {
    failed(error as Error);
  }
}

/** The regular expressions that transforms search with. */
function regexesOf(steps: Step[]): string[] {
  return steps.filter((step) => step.target.startsWith("q:")).flatMap((step) => parseQuery(step.target.slice(2)).regexes);
}

async function lookedUp(of: Profile, steps: Step[]) {
  await Promise.all(regexesOf(steps).map((regex) => findMatches(of, regex)));
}

/** A transform that is not possible is not done, and said. */
function leaveOut(slow: Step, steps: Step[]) {
  notice.value = `“${visible(slow.target.slice(2))}” takes too long on the names of this profile, so nothing is left out by it; write it without nested repetition`;
  go({ steps: steps.filter((step) => step !== slow) }, true);
}

function show(found: Analysis, second: Analysis | null) {
  batch(() => {
    analysis.value = found;
    secondAnalysis.value = second;
    generation.value = generation.peek() + 1;
    loaded.value = true;
    failure.value = null;
    if (route.peek().fn < 0) route.value = { ...route.peek(), fn: profile.head.verdict?.function ?? hottest(found) };
  });
}

/** The function with the largest self cost: where one starts to look. */
function hottest(found: Analysis): number {
  let best = profile.functions > 1 ? 1 : 0;
  for (let fn = 1; fn < profile.functions; fn++) if (found.now.self[fn] > found.now.self[best]) best = fn;
  return best;
}

function transforms(steps: Step[]): Transform[] {
  return steps.map((step) => {
    if (step.kind === "threads") {
      const wanted = new Set(step.target.replace(/^t:/, "").split(",").map(Number));
      return { kind: "threads", keep: Uint8Array.from({ length: profile.head.threads }, (_, at) => (wanted.has(at) ? 1 : 0)) };
    }
    return { kind: step.kind as "focus", mask: maskOf(step.target) };
  });
}

/** By function: 1 where a transform's target means it. */
export function maskOf(target: string): Uint8Array {
  const mask = new Uint8Array(profile.functions);
  const [kind, text] = [target.slice(0, 2), target.slice(2)];
  if (kind === "f:") {
    const fn = findFunction(text);
    if (fn !== null) mask[fn] = 1;
    return mask;
  }
  const query = parseQuery(text);
  for (let fn = 1; fn < profile.functions; fn++) {
    if (kind === "m:") mask[fn] = profile.module(fn) === text ? 1 : 0;
    else mask[fn] = query.matches(searchable(fn), () => shares(fn)) ? 1 : 0;
  }
  return mask;
}

function searchable(fn: number): Searchable {
  const name = profile.name(fn);
  const regex = (written: string) => {
    const found = knownMatches(profile, written);
    return found instanceof Uint8Array && found[fn] === 1;
  };
  return { short: name.qualifier + name.last, full: name.full, module: basename(profile.module(fn)), file: profile.file(fn), regex };
}

/** Why a search cannot be used; null where it can. */
export function searchProblem(text: string): string | null {
  const { problem, regexes } = parseQuery(text);
  return problem ?? (regexes.some((regex) => knownMatches(profile, regex) === "slow") ? "takes too long on these names: write it without nested repetition" : null);
}

function shares(fn: number): { self: number; total: number } {
  const found = analysis.peek();
  const whole = found ? runCost(found.metric, "now") : 0;
  if (!found || whole === 0) return { self: 0, total: 0 };
  return { self: (100 * found.now.self[fn]) / whole, total: (100 * found.now.total[fn]) / whole };
}

/** By function: 1 where the search means it; null without a search. */
export const matches = computed<Uint8Array | null>(() => {
  const text = route.value?.q ?? "";
  if (!text.trim() || !analysis.value) return null;
  const unknown = parseQuery(text).regexes.filter((regex) => knownMatches(profile, regex) === undefined);
  unknown.forEach((regex) => void findMatches(profile, regex).catch(failed));
  return unknown.length ? before : (before = maskOf(`q:${text}`));
});
/** The last matches: they stay until a regular expression is looked up. */
let before: Uint8Array | null = null;

/** The cost that percents are of: that of the run, or of its selected part. */
export function runCost(metric: number, side: "now" | "base"): number {
  return partMeasure(metric, side)?.cost ?? wholeCost(metric, side);
}

/** The cost of the whole run, whatever is selected. */
export function wholeCost(metric: number, side: "now" | "base"): number {
  const known = profile.head.metrics[metric];
  return side === "base" ? known.baseCost : known.runCost;
}

/** The costs of the selected part of the run; null where it is shown as a whole. */
export function partMeasure(metric: number, side: "now" | "base" = "now"): Measure | null {
  const of = (found: Analysis) => (side === "base" ? found.basePart : found.part);
  for (const found of [analysis.value, secondAnalysis.value]) {
    const part = found && of(found);
    if (part && found.metric === metric) return part;
    // Lines may be known of the samples only.
    if (part && profile.head.metrics[found.metric].samples === metric) return { ...part, cost: part.samples };
  }
  return null;
}

/** The costs of the run or of its selected part, before anything else was left out. */
function runMeasure(metric: number, side: "now" | "base"): Measure {
  const part = partMeasure(metric, side);
  if (part) return part;
  const known = profile.head.metrics[metric];
  return side === "base"
    ? { cost: known.baseCost, samples: known.baseSamples, squares: known.baseSquares, unseen: known.baseUnseen }
    : { cost: known.runCost, samples: known.runSamples, squares: known.runSquares, unseen: known.runUnseen };
}

/** The 95 % interval of a cost as shares of the run; null for exact metrics. */
export function interval(metric: number, side: "now" | "base", measure: Measure): [number, number] | null {
  const known = profile.head.metrics[metric];
  return known.samples === null ? null : intervalOf(measure, runMeasure(metric, side), known.weights);
}

/** The costs of a node of a merged tree. */
export function nodeMeasure(tree: Merged, which: "self" | "total", node: number, side: "now" | "base" = "now"): Measure {
  const from = side === "base" ? tree.stride : 0;
  const column = (at: number) => (at < tree.stride ? tree[which][from + at][node] : 0);
  return { cost: column(0), samples: column(1), squares: column(2), unseen: column(3) };
}

/** The keys of what an analysis holds of functions and arcs. */
export type Key = "self" | "total" | "arcTotal" | "fromSelf" | "fromTotal" | "toSelf" | "toTotal";

/** The costs of a function or an arc. */
export function measureOf(side: Side, key: Key, at: number): Measure {
  return {
    cost: side[key][at], samples: side.samples?.[key][at] ?? 0, squares: side.squares?.[key][at] ?? 0, unseen: side.unseen?.[key][at] ?? 0,
  };
}

/** The interval of a function's cost: as Treering found it from several runs, else by its samples. */
export function functionInterval(found: Analysis, which: "self" | "total", fn: number): [number, number] | null {
  const known = profile.data.intervals[found.metric];
  if (known && !route.peek().steps.length && !found.base) {
    const [low, high] = which === "self" ? [known.selfLow[fn], known.selfHigh[fn]] : [known.totalLow[fn], known.totalHigh[fn]];
    return low >= 0 ? [low, high] : null;
  }
  return interval(found.metric, "now", measureOf(found.now, which, fn));
}

/** Functions and arcs of a profile that has no tree. */
function fixedAnalysis(metric: number): Analysis {
  const shown = { now: runCost(metric, "now"), base: runCost(metric, "base") };
  return analysisOf(profile.data.fixed[metric] as Fixed, metric, profile.functions, shown, profile.head.metrics[metric].totals === "estimated");
}

let foreseen: { key: string; tree: Promise<MergedOf> } | null = null;

function keyOf(request: Request, metric: number, steps: string): string {
  return JSON.stringify([request, metric, steps]);
}

/** Asks for a tree that a pane will ask for. */
function foresee(request: Request, metric: number, steps: string) {
  const key = keyOf(request, metric, steps);
  if (foreseen?.key === key) return;
  const tree = client.ask<MergedOf>({ op: "merged", metric, request });
  // The caller learns of a failure; where there is none, nothing is lost.
  tree.catch(() => {});
  foreseen = { key, tree };
}

/** A merged tree of the present metric and transforms. */
export function askMerged(request: Request): Promise<MergedOf> {
  const known = foreseen;
  const { metric, steps } = route.peek();
  if (known?.key === keyOf(request, metric, JSON.stringify(steps))) {
    foreseen = null;
    return known.tree;
  }
  return client.ask<MergedOf>({ op: "merged", metric, request });
}

/** The cost of all stacks with a function of a mask, in the present metric. */
export function askMatched(mask: Uint8Array): Promise<number> {
  return client.ask<number>({ op: "matched", metric: route.peek().metric, mask });
}

export function askLines(fn: number, metric: number) {
  return client?.ask<{ now: LineCall[]; base: LineCall[]; own: OwnLine[] | null }>({ op: "lines", metric, fn });
}

/** The courses of rows of threads in the present metric. */
export function askCourses(grid: Grid): Promise<Courses> {
  return client.ask({ op: "courses", metric: shownMetric(), fn: route.peek().fn, grid });
}

/** The stacks of the shown threads in the order of time, in the present metric. */
export function askInOrder(grid: OrderGrid): Promise<Order> {
  return client.ask({ op: "inOrder", metric: shownMetric(), grid });
}

/** Where the shown threads waited in the shown part of the run. */
export function askWaitPlaces(): Promise<Place[]> {
  return client.ask({ op: "waitPlaces", own: ownFunctions() });
}

/** From the first to the last time that a function had a cost; null where it had none. */
export function askRanIn(fn: number): Promise<Span | null> {
  return client.ask({ op: "ranIn", metric: shownMetric(), fn });
}

/** By kind: how long the shown threads waited in the shown part of the run. */
export function askWaited(): Promise<number[] | null> {
  return client.ask({ op: "waited" });
}

/** The cost of every thread in the present metric, in the whole profile. */
export async function askThreads(): Promise<ThreadCost[]> {
  return allVisible(await client.ask<ThreadCost[]>({ op: "threads", metric: route.peek().metric }));
}

/** The functions of the program itself that led to a function, and its total in each. */
export function askOwners(fn: number): Promise<{ fn: number; cost: number }[]> {
  return client.ask({ op: "owners", metric: route.peek().metric, fn, own: ownFunctions() });
}

/** By function: 1 where it is the program's own. */
function ownFunctions(): Uint8Array {
  return Uint8Array.from({ length: profile.functions }, (_, at) => (at > 0 && isOwn(at) ? 1 : 0));
}

/** Whether a function is the program's own: its code, a script, or what is inlined from its own files. */
export function isOwn(fn: number): boolean {
  return ["own", "script"].includes(CATEGORIES[profile.data.functions.category[fn]]);
}

export function hasTree(): boolean {
  return profile.head.shape === "tree";
}

// ---- another version of the profile, while its program runs

/** A version that is worked out by a worker of its own and ready to be shown. */
export interface Version {
  profile: Profile;
  client: Client;
  course: Course | null;
  /** The parts of it that were worked out. */
  key: string;
  found: Analysis;
  second: Analysis | null;
}

/** Works out what is shown now of another version; null if one of both has no tree. */
export async function prepare(given: Profile, texts: { tree: string; rest: string; time: string }): Promise<Version | null> {
  if (given.head.shape !== "tree" || profile.head.shape !== "tree") return null;
  const { metric, second, steps } = routeIn(given);
  await lookedUp(given, steps);
  const transformed = inVersion(given, () => transforms(structural(steps)));
  const next = opened(client.source, given.head);
  next.give("tree", texts.tree, true);
  next.give("rest", texts.rest, true);
  next.give("time", texts.time, true);
  if (transformed.length) await next.ask({ op: "transform", transforms: transformed });
  if (spanOf(steps)) await next.ask({ op: "part", span: spanOf(steps), against: againstOf(steps) });
  const found = await next.ask<Analysis>({ op: "analyse", metric });
  const other = second === null ? null : await next.ask<Analysis>({ op: "analyse", metric: second });
  const moments = given.head.time && (await next.ask<Course>({ op: "timeline" }));
  return { profile: given, course: moments && allVisible(moments), client: next, key: JSON.stringify([metric, second, steps]), found, second: other };
}

/** Shows a version in the place of the one before, unless something else is shown by now; `also` is done in the same moment. */
export function put(version: Version, also: () => void): boolean {
  const next = routeIn(version.profile);
  if (busy.peek() > 0 || version.key !== JSON.stringify([next.metric, next.second, next.steps])) return false;
  batch(() => {
    client.end();
    ({ profile, client } = version);
    foreseen = null;
    course.value = version.course;
    route.value = { ...next, fn: next.fn >= 0 ? next.fn : hottest(version.found) };
    analysis.value = version.found;
    secondAnalysis.value = version.second;
    generation.value = generation.peek() + 1;
    also();
  });
  return true;
}

/** The shown state, in the numbers of another version: the hash has names. */
function routeIn(given: Profile): Route {
  const hash = encode(route.peek());
  return inVersion(given, () => decode(hash));
}

function inVersion<T>(given: Profile, make: () => T): T {
  const before = profile;
  profile = given;
  try {
    return make();
  } finally {
    profile = before;
  }
}
