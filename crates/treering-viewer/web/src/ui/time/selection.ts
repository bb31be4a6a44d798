// The selected part of the run and the part that is seen: how they change, and how edges fit to slots.

import { signal } from "@preact/signals";
import { type Clock, clockFor, writeSpan } from "../../model/moment.ts";
import { peaks } from "../../model/peaks.ts";
import type { Span } from "../../model/timeline.ts";
import { askCourses } from "../../asking.ts";
import { go, route, type Route, spanOf } from "../../route.ts";
import { busy, course, failure, notice, theProfile } from "../../state.ts";
import { treesAreThere } from "../trees.ts";
import type { Time } from "../../profile.ts";

/** The span that a pointer is drawing, which is selected as soon as the worker has time for it. */
export const draft = signal<Span | null>(null);

/** A wait that is shown with the one who ended it. */
export const arc = signal<{ from: number; to: number; thread: number; woken: number; waker: number } | null>(null);

/** The time of the profile, where it has any. */
export function time(): Time {
  return theProfile().head.time!;
}

/** The selected span, as far as it is asked for already. */
export function selected(): Span | null {
  const span = draft.value ?? spanOf(route.value.steps);
  // An address may name a part that lies outside of the run, or less than a slot: the nearest one is shown.
  return span && span.period === null ? snapped(span) : span;
}

/** The seen part of the run, in ns. */
export function seen(): [from: number, to: number] {
  return route.value.window ?? [0, time().lengthNs];
}

export function clock(): Clock {
  const [from, to] = seen();
  return clockFor(time().lengthNs, to - from);
}

/** A span whose edges lie where slots begin; at least one slot long. */
export function snapped({ from, to, period }: Span): Span {
  const { slotNs, lengthNs } = time();
  const last = Math.max(0, Math.ceil(lengthNs / slotNs) - 1);
  const start = Math.max(0, Math.min(last, Math.round(Math.min(from, to) / slotNs)));
  const end = Math.max(start + 1, Math.min(last + 1, Math.round(Math.max(from, to) / slotNs)));
  return { from: start * slotNs, to: Math.min(end * slotNs, Math.max(lengthNs, start * slotNs + 1)), period };
}

/** Selects a span, or the whole run; `keep` replaces the entry of the history. */
export function selectSpan(span: Span | null, keep = false) {
  const { steps } = route.peek();
  const at = steps.findIndex((step) => step.kind === "time");
  if (!span && at < 0) return;
  const step = span && ({ kind: "time", target: writeSpan(span) } as const);
  if (step && at >= 0 && steps[at].target === step.target) return;
  const next = !step ? steps.filter(({ kind }) => kind !== "time" && kind !== "against") : at < 0 ? [...steps, step] : steps.with(at, step);
  go({ steps: next, zoom: [], ...(step ? {} : alone()) }, keep);
}

/** The settings of panes for one side, where they are those of a difference. */
export function alone(): Partial<Route> {
  const { sort, change, steps } = route.peek();
  return steps.some((step) => step.kind === "against") ? { sort: sort === "delta" ? "self" : sort, change: change === "all" ? change : "all", side: "now" } : {};
}

/** Compares the selection with the rest of the run, or ends that. */
export function toggleCompare() {
  const { steps } = route.peek();
  if (!spanOf(steps)) return;
  const others = steps.filter((step) => step.kind !== "against");
  if (others.length < steps.length) go({ steps: others, ...alone() });
  else compareWith("rest");
}

/** Compares the selection with another part of the run, or with the rest of it. */
export function compareWith(against: Span | "rest") {
  const { steps } = route.peek();
  if (!spanOf(steps)) return;
  const step = { kind: "against", target: against === "rest" ? against : writeSpan(against) } as const;
  go({ steps: [...steps.filter((one) => one.kind !== "against"), step], sort: "delta", ascending: false, change: "all", zoom: [], side: "now" });
}

let drawn: { begun: boolean; timer: number } = { begun: false, timer: 0 };

/** Takes a span that is being drawn. The newest one is selected whenever the worker has answered for the one before. */
export function draw(span: Span) {
  draft.value = snapped(span);
  if (!drawn.timer) drawn.timer = requestAnimationFrame(follow);
}

function follow() {
  drawn.timer = 0;
  if (!draft.peek()) return;
  if (busy.peek() === 0 && treesAreThere()) {
    selectSpan(draft.peek(), drawn.begun);
    drawn.begun = true;
  } else {
    drawn.timer = requestAnimationFrame(follow);
  }
}

/** Ends drawing: the last span stays selected. */
export function drop() {
  cancelAnimationFrame(drawn.timer);
  const last = draft.peek();
  if (last) selectSpan(last, drawn.begun);
  draft.value = null;
  drawn = { begun: false, timer: 0 };
}

/** Shows a part of the run in the strip; all of it where there is none. */
export function see(window: [number, number] | null, keep = true) {
  const { lengthNs, slotNs } = time();
  if (!window) return go({ window: null }, keep);
  const width = Math.max(Math.min(10 * slotNs, lengthNs), Math.min(lengthNs, window[1] - window[0]));
  const from = Math.max(0, Math.min(lengthNs - width, window[0]));
  go({ window: width >= lengthNs ? null : [Math.round(from), Math.round(from + width)] }, keep);
}

/** Magnifies the strip around a moment. */
export function magnify(factor: number, around: number) {
  const [from, to] = seen();
  see([around - (around - from) * factor, around + (to - around) * factor]);
}

/** Zooms to the selection, or back to the whole run. */
export function toggleZoom() {
  const span = spanOf(route.peek().steps);
  if (route.peek().window || !span || span.period !== null) return see(null, false);
  const margin = (span.to - span.from) * 0.1;
  see([span.from - margin, span.to + margin], false);
}

/** Moves the selection, or its end alone, by steps of a 200th of what is seen. */
export function move(steps: number, which: "both" | "from" | "to") {
  const span = spanOf(route.peek().steps);
  if (!span) return;
  const [from, to] = seen();
  const { slotNs, lengthNs } = time();
  const by = steps * Math.max(slotNs, Math.round((to - from) / 200 / slotNs) * slotNs);
  const limit = Math.ceil(lengthNs / slotNs) * slotNs;
  const held = which === "both" ? Math.max(-span.from, Math.min(limit - span.to, by)) : by;
  const next = { ...span, from: which === "to" ? span.from : span.from + held, to: which === "from" ? span.to : span.to + held };
  if (next.to - next.from >= slotNs) selectSpan(snapped(next), true);
}

/** How many bins a run is divided into for its peaks, at most. */
const PEAK_BINS = 1000;

/** Selects the next or the previous peak of the current function, or of all costs where it has none, around the run. */
export async function toPeak(by: 1 | -1, leastBin: number) {
  if (!course.peek()) return;
  const { slots, slotNs } = time();
  const per = Math.max(leastBin, Math.ceil(slots / PEAK_BINS));
  const grid = { from: 0, to: slots, per, rowOf: new Uint16Array(theProfile().head.threads), rows: 0 };
  const found = await askCourses(grid).catch((error: Error) => void (failure.value = `peaks cannot be found: ${error.message}`));
  if (!found) return;
  const ofFunction = peaks(found.current);
  const all = ofFunction.length ? ofFunction : peaks(found.cost);
  if (!all.length) return void (notice.value = "no part of the run is higher than its mean by two standard deviations");
  const now = spanOf(route.peek().steps)?.from ?? (by > 0 ? -1 : Number.POSITIVE_INFINITY);
  const spans = all.map(([from, to]): Span => snapped({ from: from * per * slotNs, to: to * per * slotNs, period: null }));
  const next = by > 0 ? (spans.find(({ from }) => from > now) ?? spans[0]) : (spans.findLast(({ from }) => from < now) ?? spans[spans.length - 1]);
  selectSpan(next);
}
