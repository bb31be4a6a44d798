// The actions of the keys. Letters act only outside of inputs and without Ctrl, Alt and Meta.

import { go, route, select, spanOf, VIEWS, type Step } from "./route.ts";
import { analysis, helpOpen, menu, theProfile, threadsOpen } from "./state.ts";
import { centralLine } from "./ui/central.tsx";
import { nextHottest } from "./ui/code.tsx";
import { rows } from "./ui/functions.tsx";
import { closeMenu } from "./ui/menu.tsx";
import { openHottest } from "./ui/tree.tsx";
import { unitsOf } from "./ui/cost.ts";
import { alone, selectSpan, toggleCompare, toggleZoom, toPeak } from "./ui/time/selection.ts";
import { leastBin } from "./ui/time/strip.tsx";

/** The keys, for the help. */
export const KEYS: [string, string][] = [
  ["↑ ↓", "row"], ["Enter", "make current; zoom in the flame graph"], ["[ ]", "first caller, first callee"],
  ["Alt ← Alt →", "back, forward"], ["F6 Shift F6", "next, previous pane"], ["E", "open the hottest path"],
  ["H J", "hottest line, next hottest"], ["← ↑ → ↓", "flame graph: sibling, caller, callee"], ["+ − 0", "flame graph: magnify, fit"],
  ["Shift ← →", "flame graph: pan"], ["1 – 6", "overview, flame, sandwich, graph, tree, callers tree"], ["S W B C", "source, waits (without waits, lines of the whole program), blocks, charts"],
  ["M V", "next metric, next unit (Shift: previous)"], ["R", "recursion folded or not"], ["I D ?", "how it was measured, dark or light, keys"],
  ["/ N Shift N", "search, next match, previous match"], ["#", "search the current name"], ["Shift Enter", "the search becomes a filter"],
  ["F X K L", "focus, ignore, hide, collapse the library"], ["T", "time: into the strip, and folds it; without time, threads and processes"], ["A", "time: compare the selection with the rest of the run, per second; Alt drag with another part"], ["G", "time: heatmap; Shift drag selects the same part of every column"], ["O", "time: flame graph in the order of time"], ["P Shift P", "time: next, previous peak of the current function, or of all costs"], ["Z", "time: zoom to the selection, whole run"], ["← → Shift ← →", "time: moves the selection, its end"], ["Menu", "of the function: right click, or a long press"], ["U Shift U", "undo the last transform, all of them"], ["Esc", "leave, clear, close"],
];

/** Adds a transform of a function: the current one, where no other is named. */
export function addStep(kind: Step["kind"], library = false, fn = route.peek().fn) {
  const { steps } = route.peek();
  if (fn <= 0 || theProfile().head.shape !== "tree") return;
  const module = theProfile().module(fn);
  if (library && !module) return;
  const target = library ? `m:${module}` : `f:${theProfile().key(fn)}`;
  go({ steps: [...steps, { kind, target }], zoom: [] });
}

/** The steps without the last one, and without a comparison that it was a side of. */
function withoutLast(steps: Step[]): Step[] {
  const left = steps.slice(0, -1);
  return steps[left.length].kind === "time" ? left.filter((step) => step.kind !== "against") : left;
}

/** Goes into the strip of time, and folds it from there. */
function toStrip() {
  const plot = document.getElementById("time-plot");
  if (route.peek().folded) go({ folded: false }, true);
  else if (plot?.parentElement?.contains(document.activeElement)) go({ folded: true }, true);
  if (plot && !route.peek().folded) plot.focus();
  else requestAnimationFrame(() => document.getElementById("time-plot")?.focus());
}

function cycleThrough<T>(list: readonly T[], now: T, by: number): T {
  return list[(list.indexOf(now) + by + list.length) % list.length];
}

function nextMatch(by: number) {
  const list = rows.peek();
  if (!list.length) return;
  const at = list.indexOf(route.peek().fn);
  select(list[(at + by + list.length) % list.length]);
}

function neighbour(above: boolean) {
  const found = analysis.peek();
  if (!found) return;
  const line = centralLine(found, route.peek().fn);
  const first = (above ? line.callers : line.callees).find((row) => row.fn > 0 && row.fn !== route.peek().fn);
  if (first) select(first.fn);
}

const PANE = "section.pane";

function nextPane(by: number) {
  const panes = [...document.querySelectorAll<HTMLElement>(PANE)].filter((pane) => pane.offsetParent);
  const at = panes.findIndex((pane) => pane.contains(document.activeElement));
  const next = panes[(at + by + panes.length) % panes.length];
  next?.querySelector<HTMLElement>("canvas, .scroll, [tabindex='0']")?.focus();
}

/** Every key of one letter or sign. */
const LETTERS: Record<string, (event: KeyboardEvent) => void> = {
  "/": () => document.getElementById("search")?.focus(),
  "?": () => (helpOpen.value = true),
  "#": () => go({ q: theProfile().name(route.peek().fn).last }),
  "[": () => neighbour(true),
  "]": () => neighbour(false),
  e: openHottest,
  h: () => nextHottest(true),
  j: () => nextHottest(false),
  s: () => go({ tab: "source" }, true),
  w: () => go({ tab: theProfile().head.time?.hasWaits ? "waits" : "lines" }, true),
  b: () => go({ tab: "blocks" }, true),
  c: () => go({ tab: "charts" }, true),
  m: (event) => {
    const metrics = theProfile().head.metrics.flatMap((metric, at) => (metric.level ? [] : [at]));
    go({ metric: cycleThrough(metrics, route.peek().metric, event.shiftKey ? -1 : 1) });
  },
  v: (event) => go({ unit: cycleThrough(unitsOf(route.peek().metric).map(([unit]) => unit), route.peek().unit, event.shiftKey ? -1 : 1) }),
  r: () => go({ fold: !route.peek().fold, zoom: [] }),
  i: () => go({ open: !route.peek().open }, true),
  d: () => go({ theme: document.documentElement.dataset.theme === "dark" ? "light" : "dark" }, true),
  n: (event) => nextMatch(event.shiftKey ? -1 : 1),
  t: () => {
    if (theProfile().head.time) toStrip();
    else threadsOpen.value = theProfile().head.threads > 1 && theProfile().head.shape === "tree";
  },
  a: () => void (theProfile().head.time && toggleCompare()),
  g: () => void (theProfile().head.time && go({ mode: route.peek().mode === "heat" ? "tracks" : "heat", folded: false }, true)),
  o: () => {
    const { order, view } = route.peek();
    if (theProfile().head.time) go({ order: order === "time" ? "sum" : "time", view: view === "overview" || view === "flame" ? view : "flame" });
  },
  p: (event) => void (theProfile().head.time && toPeak(event.shiftKey ? -1 : 1, leastBin())),
  z: () => void (theProfile().head.time && toggleZoom()),
  f: () => addStep("focus"),
  x: () => addStep("ignore"),
  k: () => addStep("hide"),
  l: () => addStep("hide", true),
  u: (event) => {
    const { steps, fold } = route.peek();
    if (event.shiftKey) go({ steps: [], fold: false, ...alone() });
    else if (steps.length) go({ steps: withoutLast(steps), ...alone() });
    else if (fold) go({ fold: false });
  },
};

export function onKey(event: KeyboardEvent) {
  if (event.key === "F6") {
    nextPane(event.shiftKey ? -1 : 1);
    event.preventDefault();
    return;
  }
  if (event.key === "Escape") {
    if (menu.peek()) closeMenu();
    else if (threadsOpen.peek()) threadsOpen.value = false;
    else if (helpOpen.peek()) helpOpen.value = false;
    else if (route.peek().q) go({ q: "" }, true);
    else if (route.peek().open) go({ open: false }, true);
    else if (spanOf(route.peek().steps)) selectSpan(null);
    return;
  }
  const target = event.target as HTMLElement;
  if (event.ctrlKey || event.altKey || event.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) return;
  if (/^[1-6]$/.test(event.key)) {
    go({ view: VIEWS[Number(event.key) - 1] });
    event.preventDefault();
    return;
  }
  const act = LETTERS[event.key] ?? LETTERS[event.key.toLowerCase()];
  if (!act) return;
  act(event);
  event.preventDefault();
}
