// Functions and arcs under the present transforms.

import type { Column } from "./slabs.ts";
import { type Arcs, type Places, type Tally, countCalls, findArcs, places, tally } from "./walk.ts";
import { NONE, type Recorded, type Thread, threadOfNodes, type Tree } from "./tree.ts";
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
const KEPT = 4;

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
    this.#columns.clear();
    this.#sums.clear();
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
    const apart = counted && this.#isWhole ? withCounts(found, counted, functions) : null;
    const arcs = apart?.arcs ?? found;
    return (this.#structure = {
      arcs,
      places: places(this.tree, found, functions),
      links: links(this.tree),
      byCaller: sortedBy(arcs.caller, functions),
      byCallee: sortedBy(arcs.callee, functions),
      counted: apart ?? countCalls(this.tree, functions),
      cycle: findCycles(functions, arcs.caller, arcs.callee, 0),
      leastDepth: leastDepth(this.tree, functions),
    });
  }

  #costs(metric: number, side: "now" | "base"): Column | Float64Array {
    return this.#columns.get(`${metric} ${side}`, () => {
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

  #sumsOf(metric: number, side: "now" | "base"): Float64Array {
    return this.#sums.get(`${metric} ${side}`, () => totals(this.tree, this.#costs(metric, side)));
  }

  /** The columns of merged trees, each a metric and a side: cost, samples, and what intervals need besides; of both sides in a difference. */
  #wanted(metric: number): { columns: [number, "now" | "base"][]; stride: number } {
    const { samples, squares, unseen } = this.#metrics[metric];
    const wanted = squares === null || unseen === null ? [metric, samples ?? metric] : [metric, samples ?? metric, squares, unseen];
    const of = (side: "now" | "base") => wanted.map((column): [number, "now" | "base"] => [column, side]);
    return { columns: this.#isBase ? [...of("now"), ...of("base")] : of("now"), stride: wanted.length };
  }

  analyse(metric: number): Analysis {
    const { arcs, places, byCaller, byCallee, counted, cycle, leastDepth } = this.#known();
    const now = this.#side(metric, "now");
    return {
      metric,
      now,
      base: this.#isBase ? this.#side(metric, "base") : null,
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
    const of = (column: number | null): Tally | null => {
      if (column === null) return null;
      const found = tally(this.tree, arcs, places, this.#costs(column, side), this.#sumsOf(column, side), this.#functions);
      // The total of what was passed outside of every function is that itself.
      found.total[0] = found.self[0];
      return found;
    };
    const { samples, squares, unseen } = this.#metrics[metric];
    const own = of(metric)!;
    let shown = 0;
    for (const cost of own.self) shown += cost;
    return { ...own, samples: of(samples), squares: of(squares), unseen: of(unseen), shown };
  }

  /** A merged tree, with the metric that it is of. */
  merged(metric: number, request: Request): MergedOf {
    return { ...this.#merged(metric, request), metric };
  }

  #merged(metric: number, request: Request): Merged {
    const { columns, stride } = this.#wanted(metric);
    const own = columns.map(([column, side]) => this.#costs(column, side));
    const needsSums = request.direction === "callees" ? !request.fold : request.focus !== null;
    const sums = needsSums ? columns.map(([column, side]) => this.#sumsOf(column, side)) : [];
    if (request.direction === "callers") return callers(this.tree, own, sums, stride, this.#functions, request);
    return callees(this.tree, own, stride, this.#functions, request, sums, request.fold ? undefined : this.#known().links);
  }

  /** The cost of a mask's outermost functions with all below them: every stack that one is on, once. */
  matched(metric: number, mask: Uint8Array): number {
    const { tree } = this;
    const sums = this.#sumsOf(metric, "now");
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
    const { tree } = this;
    const sums = this.#sumsOf(metric, "now");
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
    const own = ownLines(this.#recorded.tree, this.#recorded.lineCosts, this.#state, metric, fn, isBase);
    return { now: of("now"), base: this.#isBase ? of("base") : [], own };
  }
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

/** Arcs in order of their keys, which are functions; those of equal keys in their own order. */
function sortedBy(keys: Uint32Array, functions: number): Uint32Array {
  const starts = new Uint32Array(functions + 1);
  for (let arc = 0; arc < keys.length; arc++) starts[keys[arc] + 1]++;
  for (let fn = 0; fn < functions; fn++) starts[fn + 1] += starts[fn];
  const sorted = new Uint32Array(keys.length);
  for (let arc = 0; arc < keys.length; arc++) sorted[starts[keys[arc]]++] = arc;
  return sorted;
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
