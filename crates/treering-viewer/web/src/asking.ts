// Questions to the worker that has the tree.

import { batch, computed, effect, untracked } from "@preact/signals";
import { Client } from "./client.ts";
import { maskOf } from "./masks.ts";
import { findMatches, knownMatches } from "./matcher.ts";
import { runCost } from "./measures.ts";
import type { Analysis, ThreadCost } from "./model/analysis.ts";
import { analysisOf } from "./model/fixed.ts";
import type { LineCall, OwnLine } from "./model/lines.ts";
import type { MergedOf, Request } from "./model/merged.ts";
import type { Order, OrderGrid } from "./model/order.ts";
import { parseQuery } from "./model/search.ts";
import type { Course, Courses, Grid, Span } from "./model/timeline.ts";
import type { Transform } from "./model/transform.ts";
import { allVisible, visible } from "./model/visible.ts";
import type { Place } from "./model/waits.ts";
import type { Fixed, Head, Profile } from "./profile.ts";
import { callees } from "./requests.ts";
import { againstOf, decode, encode, go, type Route, route, shownMetric, spanOf, type Step } from "./route.ts";
import { analysis, busy, course, failed, failure, generation, isOwn, loaded, notice, secondAnalysis, setProfile, theProfile } from "./state.ts";
import type { Part } from "./worker.ts";

let client: Client;

/** The worker that has a profile's tree, and what it is asked before anything else is known. */
function opened(source: string, head: Head): Client {
  const made = new Client(source);
  const metrics = head.metrics.map((metric) => ({
    samples: metric.samples, squares: metric.weights && metric.weights.squares, unseen: metric.weights && metric.weights.unseen,
  }));
  made.ask({ op: "open", metrics, functions: head.functions, baseRuns: head.baseRuns }).catch(failed);
  return made;
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
  setProfile(given);
  route.value = decode(location.hash);
  for (const event of ["popstate", "hashchange"]) window.addEventListener(event, () => (route.value = withFunction(decode(location.hash))));
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
  if (client && theProfile().head.time) client.ask<Course>({ op: "timeline" }).then((found) => (course.value = allVisible(found)), failed).then(prepareSoon);
}

/** How long the page rests before it prepares for parts of the run, in ms. */
const REST = 500;

/** Has the worker prepare for the selection of any part, when the first picture is there and nothing else is asked. */
function prepareSoon() {
  setTimeout(() => (busy.peek() > 0 ? prepareSoon() : client.ask({ op: "prepare", metric: shownMetric() }).catch(failed)), REST);
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
      if (regexesOf(steps).some((regex) => knownMatches(theProfile(), regex) === undefined)) await lookedUp(theProfile(), steps);
      if (JSON.stringify(route.peek().steps) !== wanted.steps) return;
      const slow = steps.find((step) => regexesOf([step]).some((regex) => knownMatches(theProfile(), regex) === "slow"));
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
    route.value = withFunction(route.peek());
  });
}

/** The state with a current function: where an address names none, as the first one, that at which to look first. */
function withFunction(state: Route): Route {
  const found = analysis.peek();
  return state.fn >= 0 || !found ? state : { ...state, fn: theProfile().head.verdict?.function ?? hottest(found) };
}

/** The function with the largest self cost: where one starts to look. */
function hottest(found: Analysis): number {
  let best = theProfile().functions > 1 ? 1 : 0;
  for (let fn = 1; fn < theProfile().functions; fn++) if (found.now.self[fn] > found.now.self[best]) best = fn;
  return best;
}

function transforms(steps: Step[]): Transform[] {
  return steps.map((step) => {
    if (step.kind === "threads") {
      const wanted = new Set(step.target.replace(/^t:/, "").split(",").map(Number));
      return { kind: "threads", keep: Uint8Array.from({ length: theProfile().head.threads }, (_, at) => (wanted.has(at) ? 1 : 0)) };
    }
    return { kind: step.kind as "focus", mask: maskOf(step.target) };
  });
}

/** Functions and arcs of a profile that has no tree. */
function fixedAnalysis(metric: number): Analysis {
  const shown = { now: runCost(metric, "now"), base: runCost(metric, "base") };
  return analysisOf(theProfile().data.fixed[metric] as Fixed, metric, theProfile().functions, shown, theProfile().head.metrics[metric].totals === "estimated");
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
  return Uint8Array.from({ length: theProfile().functions }, (_, at) => (at > 0 && isOwn(at) ? 1 : 0));
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
  if (given.head.shape !== "tree" || theProfile().head.shape !== "tree") return null;
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
    setProfile(version.profile);
    client = version.client;
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
  const before = theProfile();
  setProfile(given);
  try {
    return make();
  } finally {
    setProfile(before);
  }
}
