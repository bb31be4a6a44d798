// The state of the page that its address holds: all of it is in the hash, so that a link reproduces the picture.

import { signal } from "@preact/signals";
import { readSpan } from "./model/moment.ts";
import type { Span } from "./model/timeline.ts";
import { analysis, notice, theProfile } from "./state.ts";

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
  return TABS.filter((tab) => tab !== "waits" || theProfile().head.time?.hasWaits);
}

/** The names of the two sides of a difference. */
export function sideName(side: "base" | "now"): string {
  if (isCompared()) return side === "base" ? "A" : "B";
  return side === "base" ? "base" : "new";
}

export const route = signal<Route>(undefined as unknown as Route);

function defaults(): Route {
  const metric = theProfile().head.metric;
  return {
    fn: -1, view: "overview", tab: theProfile().head.tab,
    metric, second: null, unit: theProfile().head.baseRuns ? "natural" : "run", lineUnit: "natural", sort: theProfile().head.baseRuns ? "delta" : "self",
    ascending: false, fold: false, direction: "callees", colour: "kind", side: "now", normalised: false,
    change: "all", category: null, q: "", theme: "auto", open: false, steps: [], zoom: [], pane: "functions", sizes: [],
    least: 0.005, hops: 0, window: null, folded: false, mode: "tracks", column: 0, order: "sum", tracks: 0,
  };
}

// ---- the hash

export function encode(state: Route): string {
  const plain = defaults();
  const parts: string[] = [];
  const put = (key: string, value: string) => parts.push(`${key}=${encodeURIComponent(value).replace(/%20/g, "+")}`);
  if (state.fn >= 0) put("fn", theProfile().key(state.fn));
  for (const key of ["view", "tab", "unit", "lineUnit", "sort", "direction", "colour", "side", "change", "q", "theme", "pane", "mode", "order"] as const) {
    if (state[key] !== plain[key]) put(key, state[key]);
  }
  for (const key of ["ascending", "fold", "open", "normalised", "folded"] as const) if (state[key] !== plain[key]) put(key, state[key] ? "1" : "0");
  if (state.metric !== plain.metric) put("metric", theProfile().head.metrics[state.metric].name);
  if (state.second !== null) put("second", theProfile().head.metrics[state.second].name);
  if (state.category !== null) put("kind", String(state.category));
  if (state.least !== plain.least) put("least", String(state.least));
  if (state.hops !== plain.hops) put("hops", String(state.hops));
  for (const step of state.steps) put("x", `${step.kind}:${step.target}`);
  if (state.tracks) put("tracks", String(state.tracks));
  if (state.column) put("column", String(Math.round(state.column / 1e3)));
  if (state.window) put("window", state.window.map((ns) => Math.round(ns / 1e3)).join("-"));
  if (state.zoom.length) put("zoom", state.zoom.map((fn) => theProfile().key(fn)).join("\n"));
  if (state.sizes.length) put("sizes", state.sizes.map((size) => Math.round(size)).join(","));
  return parts.join("&");
}

export function decode(hash: string): Route {
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
  const { time, metrics, metric: first } = theProfile().head;
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
  return theProfile().head.baseRuns !== null || isCompared();
}

/** Whether two parts of the run are compared, whose costs are those of a second. */
export function isCompared(): boolean {
  return (analysis.value?.basePart ?? null) !== null;
}

function read(state: Route, key: string, value: string) {
  const oneOf = <T extends string>(known: readonly T[]): T | undefined => known.find((item) => item === value);
  const metric = () => theProfile().head.metrics.findIndex((metric) => metric.name === value && !metric.level);
  switch (key) {
    case "fn": state.fn = theProfile().find(value) ?? -1; break;
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
    case "order": state.order = value === "time" && theProfile().head.time ? "time" : "sum"; break;
    case "tracks": state.tracks = Number(value) >= 1 && Number(value) <= 60 ? Math.round(Number(value)) : 0; break;
    case "column": state.column = Number(value) > 0 && Number(value) < 1e15 ? Number(value) * 1e3 : 0; break;
    case "ascending": case "fold": case "open": case "normalised": case "folded": state[key] = value === "1"; break;
    case "metric": state.metric = metric() >= 0 ? metric() : state.metric; break;
    case "second": state.second = metric() >= 0 ? metric() : null; break;
    case "kind": state.category = /^[0-4]$/.test(value) ? Number(value) : null; break;
    case "least": state.least = Number(value) >= 0 && Number(value) < 1 ? Number(value) : state.least; break;
    case "zoom": state.zoom = value.split("\n").map((name) => theProfile().find(name) ?? 0); break;
    case "hops": state.hops = /^[0-4]$/.test(value) ? Number(value) : state.hops; break;
    case "sizes": state.sizes = value.split(",").map(Number).filter(Number.isFinite); break;
    case "x": {
      const [kind, ...rest] = value.split(":");
      const step = { kind: kind as Step["kind"], target: rest.join(":") };
      const isSpan = kind === "time" && theProfile().head.time !== null && readSpan(step.target) !== null && !spanOf(state.steps);
      const isAgainst = kind === "against" && spanOf(state.steps) !== null && !againstOf(state.steps) && (step.target === "rest" || readSpan(step.target) !== null);
      if (isSpan || isAgainst || ["focus", "ignore", "hide", "threads"].includes(kind)) state.steps.push(step);
      break;
    }
    case "window": {
      const span = theProfile().head.time && readSpan(value);
      state.window = span && span.period === null && span.from < theProfile().head.time!.lengthNs ? [span.from, Math.min(span.to, theProfile().head.time!.lengthNs)] : null;
    }
  }
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
  if (fn > 0 || theProfile().functions === 1) go({ fn });
}
