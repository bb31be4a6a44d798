// Functions and arcs under the present transforms.

import type { Column } from "./slabs.ts";
import { type Arcs, type Places, type Tally, countCalls, findArcs, places, tally, tallyByArc } from "./walk.ts";
import { type Groups, grouped } from "./groups.ts";
import { type Joined, join } from "./joined.ts";
import { NONE, type Recorded, type Thread, threadOfNodes, type Tree } from "./tree.ts";
import { type Courses, courses, type Grid, HIDDEN, type NodeSums, otherSlots, type Slots, type Span, slotsOf, Sums, type Timeline } from "./timeline.ts";
import type { Measure } from "./interval.ts";
import { type Order, type OrderGrid, inOrder } from "./order.ts";
import { type Place, waitPlaces } from "./waits.ts";
import { carry, type Transform, type Transformed, transform } from "./transform.ts";
import { findCycles } from "./cycles.ts";
import { callees, callers, links, type Links, type Merged, type MergedOf, type Request } from "./merged.ts";
import { type LineCall, lineCalls, type OwnLine, ownLines } from "./lines.ts";
import { totals } from "./tree.ts";
import { withCounts } from "./counted.ts";

/** Costs of functions and arcs in one column. */
export interface Side {
  self: Float64Array;
  total: Float64Array;
  /** The same of the samples that the costs were estimated from; null for exact metrics. */
  samples: Tally | null;
  /** Where samples weigh differently: the squares of their weights, and what no sample could fall into. */
  squares: Tally | null;
  unseen: Tally | null;
  arcTotal: Float64Array;
  fromSelf: Float64Array;
  fromTotal: Float64Array;
  toSelf: Float64Array;
  toTotal: Float64Array;
  /** The cost of the shown part together. */
  shown: number;
}

/** Functions and arcs under the present transforms. */
export interface Analysis {
  metric: number;
  /** The costs; in a difference those of the new runs. */
  now: Side;
  /** In a difference, the costs of the base runs. */
  base: Side | null;
  /** Of a selected part of the run: its costs before any other transform, of which percents are. */
  part: Measure | null;
  /** Of a part that is compared with another, both per second: the costs of that one. */
  basePart: Measure | null;
  /** By arc; the caller is 0 where it is unknown. Calls are 0 where nobody counted them. */
  caller: Uint32Array;
  callee: Uint32Array;
  arcCalls: Float64Array | null;
  arcsByCallee: Uint32Array;
  arcsByCaller: Uint32Array;
  /** By arc: 1 where all of its calls were made below other activations of the callee, whatever they cost. */
  nested: Uint8Array;
  /** Functions by self and by total cost, the largest first. */
  bySelf: Uint32Array;
  byTotal: Uint32Array;
  /** By function. */
  calls: Float64Array | null;
  recursiveCalls: Float64Array | null;
  cycle: Uint32Array;
  /** The least number of callers above it on any path; NONE where it does not occur. */
  leastDepth: Uint32Array;
  /** Whether totals and arcs are estimates. */
  estimated: boolean;
}

/** A thread, and what it cost. */
export interface ThreadCost extends Thread {
  cost: number;
}

/** A metric as the worker needs to know it. */
export interface MetricInfo {
  /** The metric that counts its samples; null for exact ones. */
  samples: number | null;
  /** The metrics of squared weights and of what was not seen; null where all samples weigh the same. */
  squares: number | null;
  unseen: number | null;
}

/** The values that are the same in every metric, until the transforms change. */
interface Structure {
  arcs: Arcs;
  places: Places;
  links: Links;
  byCaller: Uint32Array;
  byCallee: Uint32Array;
  counted: ReturnType<typeof countCalls>;
  cycle: Uint32Array;
  leastDepth: Uint32Array;
}

/** How many columns of sums are kept for the next question: cost and samples, of both sides in a difference. */
const KEPT = 8;

/** The costs of a part of the run in the joined tree, by column: of nodes, of their subtrees, of functions and arcs. */
interface Measured {
  /** Whatever the transforms leave out. */
  whole: number[];
  own: Float64Array[];
  sums: Float64Array[];
  tallies: (Tally | null)[];
}

/** The trees of all threads as one, which parts of the run are measured in, under the present transforms. */
interface Together extends Joined {
  of: Structure;
  /** The recorded nodes by their joined node; the last group are those that the transforms leave out. */
  members: Groups;
  /** The course of the run by member: what stands together here lies together there. */
  times: Sums;
}

/** The powers of cost that the columns of merged trees have: cost, samples, squares, what was not seen. */
const POWERS = [1, 0, 2, 1];

/** Answers questions about one profile; lives in the worker. */
export class Model {
  #recorded: Recorded;
  #metrics: MetricInfo[];
  #functions: number;
  /** By thread: whether it is of a base run. */
  #isBase: Uint8Array | null;
  #isWhole = true;
  #state: Transformed;
  #structure: Structure | null = null;
  #columns = new Recent<Column | Float64Array>(KEPT);
  #sums = new Recent<Float64Array>(KEPT);
  #times: Sums | null = null;
  /** The selected slots; null where the whole run is shown. */
  #part: Slots[] | null = null;
  /** The slots that they are compared with; null where they are shown alone. */
  #basePart: Slots[] | null = null;
  /** Costs of recorded nodes in the selected slots. */
  #partCosts = new Recent<NodeSums>(KEPT);
  #joined: Together | null = null;
  #measured = new Recent<Measured>(KEPT / 2);
  #threadOf: Uint32Array | null = null;

  constructor(recorded: Recorded, metrics: MetricInfo[], functions: number, baseRuns: boolean[] | null) {
    this.#recorded = recorded;
    this.#metrics = metrics;
    this.#functions = functions;
    this.#isBase = baseRuns && Uint8Array.from(recorded.threads, (thread) => (baseRuns[thread.run] ? 1 : 0));
    this.#state = { tree: recorded.tree, place: null };
  }

  /** Takes other transforms. */
  setTransforms(transforms: Transform[]) {
    this.#state = transform(this.#recorded.tree, transforms);
    this.#isWhole = transforms.length === 0;
    this.#structure = null;
    this.#forgetCosts();
  }

  /** Takes the course of the run, which comes after the first picture. */
  setTimeline(timeline: Timeline) {
    this.#times = new Sums(timeline, this.#recorded.costs, countedBy(this.#metrics), this.#recorded.tree.length);
  }

  /**
   * Shows a part of the run only; all of it where there is none. The tree stays as it is, with other costs. Compared
   * with another part or with the rest, the costs of both are those of a second.
   */
  setPart(span: Span | null, against: Span | "rest" | null = null) {
    const { timeline } = this.#times ?? {};
    const before = this.#part;
    this.#part = span && timeline && timeline.slots > 0 ? slotsOf(span, timeline.slotNs, timeline.slots) : null;
    const others = (parts: Slots[]) => (against === "rest" ? otherSlots(parts, timeline!.slots) : slotsOf(against!, timeline!.slotNs, timeline!.slots));
    this.#basePart = this.#part && against ? others(this.#part) : null;
    if (this.#basePart?.length === 0) this.#basePart = null;
    // Calls that were counted apart are those of the whole run.
    if (this.#recorded.counted && (before === null) !== (this.#part === null)) this.#structure = null;
    this.#forgetCosts();
  }

  /** By recorded node: its cost in the selected slots. */
  #partOf(metric: number, side: "now" | "base"): NodeSums {
    const counted = this.#times!.counter(metric);
    const parts = side === "base" ? this.#basePart! : this.#part!;
    const made = () => (counted === null ? this.#times!.of(metric, parts) : this.#times!.apportioned(metric, this.#partOf(counted, side)));
    return this.#partCosts.get(`${metric} ${side}`, made);
  }

  /** The number by which a cost of a part becomes that of a second; 1 where nothing is compared. */
  #perSecond(side: "now" | "base"): number {
    if (!this.#basePart) return 1;
    const { slotNs, lengthNs } = this.#times!.timeline;
    const lengthOf = (parts: Slots[]) => parts.reduce((sum, [from, to]) => sum + Math.min(lengthNs, to * slotNs) - from * slotNs, 0);
    return 1e9 / Math.max(1, lengthOf(side === "base" ? this.#basePart : this.#part!));
  }

  #forgetCosts() {
    this.#partCosts.clear();
    this.#columns.clear();
    this.#sums.clear();
    this.#measured.clear();
  }

  /** The joined tree of a part of the run. */
  #together(): Together {
    const of = this.#known();
    if (this.#joined?.of === of) return this.#joined;
    const joined = join(this.tree, of, this.#functions);
    const { place } = this.#state;
    const from = place ? place.map((to) => (to === NONE ? NONE : joined.place[to])) : joined.place;
    const members = grouped(from, joined.tree.length);
    this.#joined = { ...joined, of, members, times: this.#times!.inOrder(members.items) };
    return this.#joined;
  }

  /** Makes what selecting any part of the run needs, before one is selected. */
  prepare(metric: number) {
    if (this.#times) for (const column of this.#columnsOf(metric)) this.#together().times.prepare(column);
  }

  /** What the selected part cost, or the one that it is compared with; per second where two are compared. */
  #measuredOf(metric: number, side: "now" | "base"): Measured {
    return this.#measured.get(`${metric} ${side}`, () => {
      const together = this.#together();
      const { tree, members, times } = together;
      const perSecond = this.#perSecond(side);
      const columns = this.#columnsOf(metric);
      const parts = side === "base" ? this.#basePart! : this.#part!;
      const found: Measured = { whole: [], own: [], sums: [], tallies: [] };
      let costs: { metric: number; of: NodeSums } | null = null;
      columns.forEach((column, at) => {
        const counter = times.counter(column);
        const timed = counter ?? column;
        if (costs?.metric !== timed) costs = { metric: timed, of: times.passing(timed, parts) };
        const { own, all } = joinedCosts(members, tree.length, costs.of, counter === null ? null : times.worth(column), perSecond ** POWERS[at]);
        const sums = totals(tree, own);
        found.whole.push(all);
        found.own.push(own);
        found.sums.push(sums);
        found.tallies.push(this.#tallied(together, own, sums));
      });
      return found;
    });
  }

  #tallied({ tree, arcs, byArc }: Joined, own: Float64Array, sums: Float64Array): Tally {
    return tallyByArc(tree, arcs, byArc, own, sums, this.#functions);
  }

  /** A tally of the selected part, which is given away: it is worked out again where it is asked for once more. */
  #taken(metric: number, side: "now" | "base", column: number): Tally {
    const { own, sums, tallies } = this.#measuredOf(metric, side);
    const at = this.#columnsOf(metric).indexOf(column);
    const known = tallies[at];
    tallies[at] = null;
    if (known) return known;
    return this.#tallied(this.#together(), own[at], sums[at]);
  }

  /** The metrics of a cost, its samples, and what intervals need besides. */
  #columnsOf(metric: number): number[] {
    const { samples, squares, unseen } = this.#metrics[metric];
    if (samples === null) return [metric];
    return squares === null || unseen === null ? [metric, samples] : [metric, samples, squares, unseen];
  }

  /** The tree that sums and merged trees are of: of a part of the run the joined one. */
  #summed(metric: number): { tree: Tree; sums: Float64Array } {
    if (!this.#part) return { tree: this.tree, sums: this.#sumsOf(metric, "now") };
    return { tree: this.#together().tree, sums: this.#measuredOf(metric, "now").sums[0] };
  }

  /** Whether everything is there that a question about a metric needs. */
  has(metric: number): boolean {
    const { samples, squares, unseen } = this.#metrics[metric];
    return [metric, samples, squares, unseen].every((one) => one === null || this.#recorded.costs[one]);
  }

  get tree(): Tree {
    return this.#state.tree;
  }

  #known(): Structure {
    if (this.#structure) return this.#structure;
    const functions = this.#functions;
    const found = findArcs(this.tree, functions);
    // Of a part of the stacks nobody knows how often its functions were called.
    const { counted } = this.#recorded;
    const apart = counted && this.#isWhole && !this.#part ? withCounts(found, counted, functions) : null;
    const arcs = apart?.arcs ?? found;
    return (this.#structure = {
      arcs,
      places: places(this.tree, found, functions),
      links: links(this.tree),
      byCaller: grouped(arcs.caller, functions).items,
      byCallee: grouped(arcs.callee, functions).items,
      counted: apart ?? countCalls(this.tree, functions),
      cycle: findCycles(functions, arcs.caller, arcs.callee, 0),
      leastDepth: leastDepth(this.tree, functions),
    });
  }

  /** Costs of nodes, per second where parts are compared; `power` is 0 for numbers of samples, 2 for squares of costs. */
  #costs(metric: number, side: "now" | "base", power: number): Column | Float64Array {
    return this.#columns.get(`${metric} ${side} ${power}`, () => {
      if (this.#part) {
        const scale = this.#perSecond(side) ** power;
        const found = carry(this.#state, this.#partOf(metric, side));
        return scale === 1 ? found : Float64Array.from(found, (cost) => cost * scale);
      }
      const recorded = this.#recorded.costs[metric];
      if (!recorded) return new Float64Array(this.tree.length);
      if (!this.#isBase) return carry(this.#state, recorded);
      const thread = threadOfNodes(this.#recorded.tree);
      const wanted = side === "base" ? 1 : 0;
      const part = new Float64Array(recorded.length);
      for (let node = 0; node < part.length; node++) if (this.#isBase[thread[node]] === wanted) part[node] = recorded[node];
      return carry(this.#state, part);
    });
  }

  #sumsOf(metric: number, side: "now" | "base", power = 1): Float64Array {
    return this.#sums.get(`${metric} ${side} ${power}`, () => totals(this.tree, this.#costs(metric, side, power)));
  }

  /** The columns of merged trees, each a metric and a side: cost, samples, and what intervals need besides; of both sides in a difference. */
  #wanted(metric: number): { columns: [number, "now" | "base", number][]; stride: number } {
    const { samples, squares, unseen } = this.#metrics[metric];
    const wanted = squares === null || unseen === null ? [metric, samples ?? metric] : [metric, samples ?? metric, squares, unseen];
    const of = (side: "now" | "base") => wanted.map((column, at): [number, "now" | "base", number] => [column, side, POWERS[at]]);
    return { columns: this.#hasBase ? [...of("now"), ...of("base")] : of("now"), stride: wanted.length };
  }

  /** Whether two sides are compared: runs, or parts of one. */
  get #hasBase(): boolean {
    return this.#isBase !== null || this.#basePart !== null;
  }

  analyse(metric: number): Analysis {
    const { arcs, places, byCaller, byCallee, cycle, leastDepth, ...known } = this.#known();
    const counted = this.#part ? null : known.counted;
    const now = this.#side(metric, "now");
    return {
      metric,
      now,
      base: this.#hasBase ? this.#side(metric, "base") : null,
      part: this.#part && this.#measure(metric, "now"),
      basePart: this.#basePart && this.#measure(metric, "base"),
      bySelf: largestFirst(now.self, now.total),
      byTotal: largestFirst(now.total, now.self),
      caller: arcs.caller,
      callee: arcs.callee,
      arcCalls: counted ? arcs.calls : null,
      arcsByCallee: byCallee,
      arcsByCaller: byCaller,
      nested: places.nested,
      calls: counted && counted.calls,
      recursiveCalls: counted && counted.recursive,
      cycle,
      leastDepth,
      estimated: false,
    };
  }

  /** The parts of an analysis that are kept for the next one, and so must not be given away. */
  kept(found: Analysis): Set<unknown> {
    return new Set([
      found.caller, found.callee, found.arcCalls, found.arcsByCallee, found.arcsByCaller, found.nested, found.calls, found.recursiveCalls,
      found.cycle, found.leastDepth,
    ]);
  }

  #side(metric: number, side: "now" | "base"): Side {
    const { arcs, places } = this.#known();
    const of = (column: number | null, power: number): Tally | null => {
      if (column === null) return null;
      const found = this.#part
        ? this.#taken(metric, side, column)
        : tally(this.tree, arcs, places, this.#costs(column, side, power), this.#sumsOf(column, side, power), this.#functions);
      // The total of what was passed outside of every function is that itself.
      found.total[0] = found.self[0];
      return found;
    };
    const { samples, squares, unseen } = this.#metrics[metric];
    const own = of(metric, 1)!;
    let shown = 0;
    for (const cost of own.self) shown += cost;
    return { ...own, samples: of(samples, 0), squares: of(squares, 2), unseen: of(unseen, 1), shown };
  }

  /** The costs of the selected slots, whatever the transforms. */
  #measure(metric: number, side: "now" | "base"): Measure {
    const { whole } = this.#measuredOf(metric, side);
    const [cost, samples, squares, unseen] = whole;
    return { cost, samples: samples ?? 0, squares: squares ?? 0, unseen: unseen ?? 0 };
  }

  /** The courses of threads over time, with the part that the current function has. */
  courses(metric: number, fn: number, grid: Grid): Courses {
    const { timeline } = this.#times!;
    const { samples } = this.#metrics[metric];
    const apart = timeline.costs[metric] === null && samples !== null;
    return courses(timeline, timeline.costs[apart ? samples : metric], apart ? this.#times!.worth(metric) : null, grid, this.#placesIn(grid, fn));
  }

  /** The stacks of the shown threads in the order of time. */
  inOrder(metric: number, grid: OrderGrid): Order {
    const { timeline } = this.#times!;
    const { samples } = this.#metrics[metric];
    const apart = timeline.costs[metric] === null && samples !== null;
    const costs = timeline.costs[apart ? samples : metric];
    if (!costs) return { lanes: [], others: 0, small: 0, cell: grid.per * timeline.slotNs };
    this.#threadOf ??= threadOfNodes(this.#recorded.tree);
    return inOrder({
      timeline, costs, worth: apart ? this.#times!.worth(metric) : null, tree: this.tree, place: this.#state.place,
      threadOf: this.#threadOf, parts: this.#part ?? [[0, timeline.slots]],
    }, grid);
  }

  /** By recorded node: its row in a grid, and whether a function is on its stack. */
  #placesIn({ rowOf }: Grid, fn: number): Uint32Array {
    const { tree } = this.#recorded;
    this.#threadOf ??= threadOfNodes(tree);
    const thread = this.#threadOf;
    const { place } = this.#state;
    const places = new Uint32Array(tree.length);
    for (let node = 0; node < tree.length; node++) {
      const parent = tree.parent[node];
      const inside = fn > 0 && (tree.fn[node] === fn || (parent !== NONE && (places[parent] & 1) === 1)) ? 1 : 0;
      places[node] = 2 * rowOf[thread[node]] + inside;
    }
    // Only behind all others, as what is not shown may have the function on its stack as well.
    for (let node = 0; place && node < tree.length; node++) if (place[node] === NONE) places[node] = HIDDEN;
    return places;
  }

  /** Where the shown threads waited in the shown part of the run. */
  waitPlaces(own: Uint8Array): Place[] {
    const { timeline } = this.#times!;
    const { tree } = this.#recorded;
    this.#threadOf ??= threadOfNodes(tree);
    const { place } = this.#state;
    return waitPlaces(this.#times!, tree, this.#threadOf, own, this.#part ?? [[0, timeline.slots]], (node) => place === null || place[node] !== NONE);
  }

  /** From the first to the last slot in which a function has a cost, in ns; null where it has none in any. */
  ranIn(metric: number, fn: number): Span | null {
    const counter = this.#times!.counter(metric) ?? metric;
    const places = this.#placesIn({ rowOf: new Uint16Array(this.#recorded.tree.roots.length), from: 0, to: 0, per: 1, rows: 0 }, fn);
    return this.#times!.extent(counter, (node) => places[node] === 1);
  }

  /** By kind: how long the shown threads waited in the shown part of the run, in ns; null where waits are not known. */
  waited(): number[] | null {
    const { timeline } = this.#times!;
    const { place } = this.#state;
    return this.#times!.waited(this.#part ?? [[0, timeline.slots]], (node) => place === null || place[node] !== NONE);
  }

  /** A merged tree, with the metric that it is of. */
  merged(metric: number, request: Request): MergedOf {
    return { ...this.#merged(metric, request), metric };
  }

  #merged(metric: number, request: Request): Merged {
    // Folding follows paths, which stand together in the tree of each thread.
    if (this.#part && !request.fold) return this.#mergedPart(metric, request);
    const { columns, stride } = this.#wanted(metric);
    const own = columns.map(([column, side, power]) => this.#costs(column, side, power));
    const needsSums = request.direction === "callees" ? !request.fold : request.focus !== null;
    const sums = needsSums ? columns.map(([column, side, power]) => this.#sumsOf(column, side, power)) : [];
    if (request.direction === "callers") return callers(this.tree, own, sums, stride, this.#functions, request);
    return callees(this.tree, own, stride, this.#functions, request, sums, request.fold ? undefined : this.#known().links);
  }

  #mergedPart(metric: number, request: Request): Merged {
    const { tree, links } = this.#together();
    const sides = (this.#basePart ? (["now", "base"] as const) : (["now"] as const)).map((side) => this.#measuredOf(metric, side));
    // Exact costs stand for their samples, too.
    const twice = <T>(columns: T[]) => (columns.length === 1 ? [columns[0], columns[0]] : columns);
    const own = sides.flatMap((side) => twice(side.own));
    const sums = sides.flatMap((side) => twice(side.sums));
    const stride = own.length / sides.length;
    if (request.direction === "callers") return callers(tree, own, sums, stride, this.#functions, request);
    return callees(tree, own, stride, this.#functions, request, sums, links);
  }

  /** The cost of a mask's outermost functions with all below them: every stack that one is on, once. */
  matched(metric: number, mask: Uint8Array): number {
    const { tree, sums } = this.#summed(metric);
    const inside = new Uint8Array(tree.length);
    let sum = 0;
    for (let node = 0; node < tree.length; node++) {
      const parent = tree.parent[node];
      if (parent !== NONE && inside[parent] === 1) {
        inside[node] = 1;
      } else if (mask[tree.fn[node]] === 1) {
        inside[node] = 1;
        sum += sums[node];
      }
    }
    return sum;
  }

  /** The cost of every thread in the whole profile, in its order. */
  threadCosts(metric: number): ThreadCost[] {
    const { tree, threads, costs } = this.#recorded;
    const sums = new Float64Array(threads.length);
    const of = threadOfNodes(tree);
    const column = costs[metric];
    if (column) for (let node = 0; node < tree.length; node++) sums[of[node]] += column[node];
    return threads.map((thread, at) => ({ ...thread, cost: sums[at] }));
  }

  /**
   * Where a function's total came from in the program's own code: the nearest function above each of its outermost
   * activations that `own` has, and 0 where there is none. They add up to its total.
   */
  owners(metric: number, fn: number, own: Uint8Array): { fn: number; cost: number }[] {
    const { tree, sums } = this.#summed(metric);
    const nearest = new Uint32Array(tree.length);
    const inside = new Uint8Array(tree.length);
    const found = new Map<number, number>();
    for (let node = 0; node < tree.length; node++) {
      const parent = tree.parent[node];
      if (parent !== NONE) {
        nearest[node] = parent !== NONE && tree.parent[parent] !== NONE && own[tree.fn[parent]] === 1 ? tree.fn[parent] : nearest[parent];
        inside[node] = inside[parent];
      }
      if (tree.fn[node] !== fn || inside[node] === 1) continue;
      inside[node] = 1;
      if (sums[node] !== 0) found.set(nearest[node], (found.get(nearest[node]) ?? 0) + sums[node]);
    }
    return [...found].map(([fn, cost]) => ({ fn, cost })).sort((a, b) => b.cost - a.cost || a.fn - b.fn);
  }

  /** The calls that the lines of a function made, of the new runs and of those of the base; and what they passed themselves. */
  lineCalls(metric: number, fn: number): { now: LineCall[]; base: LineCall[]; own: OwnLine[] | null } {
    const of = (side: "now" | "base") => lineCalls(this.tree, this.#sumsOf(metric, side), fn);
    const thread = this.#isBase && threadOfNodes(this.#recorded.tree);
    const isBase = (node: number) => thread !== null && this.#isBase![thread[node]] === 1;
    // Lines were kept without their times: of a part of the run nothing is known of them.
    const own = this.#part ? [] : ownLines(this.#recorded.tree, this.#recorded.lineCosts, this.#state, metric, fn, isBase);
    return { now: of("now"), base: this.#hasBase ? of("base") : [], own };
  }
}

/** By metric: the one that counts its samples. */
export function countedBy(metrics: MetricInfo[]): (number | null)[] {
  const by: (number | null)[] = metrics.map(({ samples }) => samples);
  for (const { samples, squares, unseen } of metrics) {
    if (squares !== null) by[squares] = samples;
    if (unseen !== null) by[unseen] = samples;
  }
  return by;
}

/**
 * The costs of joined nodes, each `factor` times those of its members; `all` is the sum with what the transforms leave
 * out. Of samples `worth` says what one of each member stands for.
 */
function joinedCosts({ starts }: Groups, length: number, costs: NodeSums, worth: Float64Array | null, factor: number): { own: Float64Array; all: number } {
  const own = new Float64Array(length);
  let all = 0;
  for (let node = 0; node <= length; node++) {
    let sum = 0;
    if (worth) for (let at = starts[node]; at < starts[node + 1]; at++) sum += costs[at] * worth[at];
    else for (let at = starts[node]; at < starts[node + 1]; at++) sum += costs[at];
    all += factor * sum;
    if (node < length) own[node] = factor * sum;
  }
  return { own, all };
}

/** The values that were asked for last. */
class Recent<T> {
  #most: number;
  #values = new Map<string, T>();

  constructor(most: number) {
    this.#most = most;
  }

  get(key: string, make: () => T): T {
    let value = this.#values.get(key);
    if (value === undefined) value = make();
    this.#values.delete(key);
    this.#values.set(key, value);
    if (this.#values.size > this.#most) this.#values.delete(this.#values.keys().next().value!);
    return value;
  }

  clear() {
    this.#values.clear();
  }
}

/** Functions by a cost, the largest first; equal ones by another. */
export function largestFirst(cost: Float64Array, then: Float64Array): Uint32Array {
  return new Uint32Array(cost.keys()).sort((a, b) => cost[b] - cost[a] || then[b] - then[a] || a - b);
}

function leastDepth(tree: Tree, functions: number): Uint32Array {
  const least = new Uint32Array(functions).fill(NONE);
  const depth = new Uint32Array(tree.length);
  for (let node = 0; node < tree.length; node++) {
    const parent = tree.parent[node];
    if (parent !== NONE) depth[node] = depth[parent] + 1;
    const fn = tree.fn[node];
    if (depth[node] < least[fn]) least[fn] = depth[node];
  }
  return least;
}
