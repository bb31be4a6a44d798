// What the page knows of functions and arcs under the present transforms.

import type { Column } from "./slabs.ts";
import { type Arcs, type Tally, countCalls, findArcs, walk } from "./walk.ts";
import { NONE, type Recorded, threadOfNodes, type Tree } from "./tree.ts";
import { carry, type Transform, type Transformed, transform } from "./transform.ts";
import { findCycles } from "./cycles.ts";
import { callees, callers, type Merged, type Request } from "./merged.ts";
import { type LineCall, lineCalls } from "./lines.ts";
import { totals } from "./tree.ts";

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
  /** What the shown part costs together. */
  shown: number;
}

/** Functions and arcs under the present transforms. */
export interface Analysis {
  metric: number;
  /** The costs; in a difference those of the new runs. */
  now: Side;
  /** In a difference, the costs of the base runs. */
  base: Side | null;
  /** By arc; the caller is 0 where it is unknown. */
  caller: Uint32Array;
  callee: Uint32Array;
  arcCalls: Float64Array | null;
  arcsByCallee: Uint32Array;
  arcsByCaller: Uint32Array;
  /** By function. */
  calls: Float64Array | null;
  recursiveCalls: Float64Array | null;
  cycle: Uint32Array;
  /** The least number of callers above it on any path; NONE where it does not occur. */
  leastDepth: Uint32Array;
  /** Whether totals and arcs are estimates. */
  estimated: boolean;
}

/** A metric as the worker needs to know it. */
export interface MetricInfo {
  /** The metric that counts its samples; null for exact ones. */
  samples: number | null;
  /** The metrics of squared weights and of what was not seen; null where all samples weigh the same. */
  squares: number | null;
  unseen: number | null;
}

/** Answers questions about one profile; lives in the worker. */
export class Model {
  #recorded: Recorded;
  #metrics: MetricInfo[];
  #functions: number;
  /** By thread: whether it is of a base run. */
  #isBase: Uint8Array | null;
  #state: Transformed;
  #arcs: Arcs | null = null;

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
    this.#arcs = null;
  }

  get tree(): Tree {
    return this.#state.tree;
  }

  #costs(metric: number, side: "now" | "base"): Column | Float64Array {
    const recorded = this.#recorded.costs[metric];
    if (!recorded) return new Float64Array(this.tree.length);
    if (!this.#isBase) return carry(this.#state, recorded);
    const thread = threadOfNodes(this.#recorded.tree);
    const wanted = side === "base" ? 1 : 0;
    const part = Float64Array.from(recorded, (cost, node) => (this.#isBase![thread[node]] === wanted ? cost : 0));
    return carry(this.#state, part);
  }

  /** The columns of merged trees: cost, samples, and what intervals need besides; of both sides in a difference. */
  #columns(metric: number): { columns: ArrayLike<number>[]; stride: number } {
    const { samples, squares, unseen } = this.#metrics[metric];
    const wanted = squares === null || unseen === null ? [metric, samples ?? metric] : [metric, samples ?? metric, squares, unseen];
    const columns = wanted.map((column) => this.#costs(column, "now"));
    if (this.#isBase) columns.push(...wanted.map((column) => this.#costs(column, "base")));
    return { columns, stride: wanted.length };
  }

  analyse(metric: number): Analysis {
    this.#arcs ??= findArcs(this.tree, this.#functions);
    const arcs = this.#arcs;
    const counted = countCalls(this.tree, this.#functions);
    return {
      metric,
      now: this.#side(metric, "now", arcs),
      base: this.#isBase ? this.#side(metric, "base", arcs) : null,
      caller: arcs.caller,
      callee: arcs.callee,
      arcCalls: this.tree.calls ? arcs.calls : null,
      arcsByCallee: sortedBy(arcs.callee),
      arcsByCaller: sortedBy(arcs.caller),
      calls: counted && counted.calls,
      recursiveCalls: counted && counted.recursive,
      cycle: findCycles(this.#functions, arcs.caller, arcs.callee, 0),
      leastDepth: leastDepth(this.tree, this.#functions),
      estimated: false,
    };
  }

  #side(metric: number, side: "now" | "base", arcs: Arcs): Side {
    const own = this.#costs(metric, side);
    const tally: Tally = walk(this.tree, arcs, own, this.#functions);
    // The total of what was passed outside of every function is that itself.
    tally.total[0] = tally.self[0];
    const { samples, squares, unseen } = this.#metrics[metric];
    const of = (column: number | null) => {
      if (column === null) return null;
      const counts = walk(this.tree, arcs, this.#costs(column, side), this.#functions);
      counts.total[0] = counts.self[0];
      return counts;
    };
    let shown = 0;
    for (let node = 0; node < own.length; node++) shown += own[node];
    return {
      ...tally,
      samples: of(samples),
      squares: of(squares),
      unseen: of(unseen),
      shown,
    };
  }

  merged(metric: number, request: Request): Merged {
    const { columns, stride } = this.#columns(metric);
    if (request.direction === "callees") return callees(this.tree, columns, stride, this.#functions, request);
    const sums = request.focus === null ? columns : columns.map((column) => totals(this.tree, column));
    return callers(this.tree, columns, sums, stride, request);
  }

  /** The calls that the lines of a function made, of the new runs and of those of the base. */
  lineCalls(metric: number, fn: number): { now: LineCall[]; base: LineCall[] } {
    const of = (side: "now" | "base") => lineCalls(this.tree, this.#costs(metric, side), fn);
    return { now: of("now"), base: this.#isBase ? of("base") : [] };
  }
}

function sortedBy(keys: Uint32Array): Uint32Array {
  return Uint32Array.from(keys.keys()).sort((a, b) => keys[a] - keys[b] || a - b);
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
