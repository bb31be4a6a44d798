// Stacks in the order of time: a lane for each thread, with pieces that last as long as their functions were on its stack.

import { NONE, type Tree } from "./tree.ts";
import { type Slots, type Timeline } from "./timeline.ts";

/** The most lanes; of more threads those that cost least have none. */
const MOST = 40;

/** The part of a run that is shown in the order of time. */
export interface OrderGrid {
  /** Slots; the second one is not part of it. */
  from: number;
  to: number;
  /** How many slots make a cell, in which the order is unknown. */
  per: number;
  /** Pieces that are shorter, in ns, are too small for the picture. */
  least: number;
  /** Whether costs are times, so that a cell need not be full. */
  isTime: boolean;
}

/** A thread, its pieces by their ends, and its waits. */
export interface Lane {
  thread: number;
  /** What it cost in the shown part. */
  cost: number;
  /** The innermost function that all of its stacks have in common and that has no row; 0 where there is none. */
  below: number;
  /** How many rows it has. */
  deepest: number;
  /** By piece: its start and end in ns, its row, its function, and whether that is inlined. */
  start: Float64Array;
  end: Float64Array;
  row: Uint32Array;
  fn: Uint32Array;
  inlined: Uint8Array;
  waitStart: Float64Array;
  waitEnd: Float64Array;
  waitKind: Uint8Array;
}

/** The lanes, those that cost most first. */
export interface Order {
  lanes: Lane[];
  /** How many threads have no lane although they cost something. */
  others: number;
  /** How many pieces are too small. */
  small: number;
  /** The length of a cell in ns. */
  cell: number;
}

/** What is shown of a run. */
export interface Shown {
  timeline: Timeline;
  /** By entry: its cost, or the number of its samples where `worth` says what one of them stands for. */
  costs: ArrayLike<number>;
  /** By recorded node: the cost that one of its samples stands for. */
  worth: Float64Array | null;
  tree: Tree;
  /** By recorded node: its node in the tree, `NONE` where it is not shown. */
  place: Uint32Array | null;
  /** By recorded node. */
  threadOf: Uint32Array;
  /** The selected slots. */
  parts: readonly Slots[];
}

/** Lays out the stacks of the shown part. */
export function inOrder(shown: Shown, grid: OrderGrid): Order {
  const { timeline, costs, worth, tree, place, threadOf } = shown;
  const { slotNs, lengthNs, first, node } = timeline;
  const inside = selectedSlots(shown.parts, grid);
  const placeOf = (entry: number) => (place ? place[node[entry]] : node[entry]);
  const amount = (entry: number) => (worth ? costs[entry] * worth[node[entry]] : costs[entry]);

  const sums = new Float64Array(tree.roots.length);
  for (let slot = grid.from; slot < grid.to; slot++) {
    if (!inside[slot - grid.from]) continue;
    for (let entry = first[slot]; entry < first[slot + 1]; entry++) if (placeOf(entry) !== NONE) sums[threadOf[node[entry]]] += amount(entry);
  }
  const all = [...sums.keys()].filter((thread) => sums[thread] > 0).sort((a, b) => sums[b] - sums[a] || a - b);
  const lanes = all.slice(0, MOST).map((thread) => new Pieces(thread, sums[thread], tree, grid.least));
  const laneOf: (Pieces | undefined)[] = Array(tree.roots.length);
  for (const lane of lanes) laneOf[lane.thread] = lane;
  // By node, what it cost in the present cell.
  const cell = new Float64Array(tree.length);

  for (let from = grid.from; from < grid.to; from += grid.per) {
    const to = Math.min(grid.to, from + grid.per);
    for (let slot = from; slot < to; slot++) {
      if (!inside[slot - grid.from]) continue;
      for (let entry = first[slot]; entry < first[slot + 1]; entry++) {
        const at = placeOf(entry);
        const lane = laneOf[threadOf[node[entry]]];
        if (at === NONE || !lane || !(costs[entry] > 0)) continue;
        if (cell[at] === 0) lane.nodes.push(at);
        cell[at] += amount(entry);
        if (worth) lane.samples += costs[entry];
      }
    }
    const [start, end] = [from * slotNs, Math.min(lengthNs, to * slotNs)];
    for (const lane of lanes) lane.endCell(start, end, grid.isTime, cell);
  }
  addWaits(shown, grid, laneOf);
  const done = lanes.map((lane) => lane.done());
  return { lanes: done, others: all.length - lanes.length, small: lanes.reduce((sum, lane) => sum + lane.small, 0), cell: grid.per * slotNs };
}

/** By slot of a grid: 1 where it is selected. */
function selectedSlots(parts: readonly Slots[], { from, to }: OrderGrid): Uint8Array {
  const inside = new Uint8Array(Math.max(0, to - from));
  for (const [start, end] of parts) if (end > from && start < to) inside.fill(1, Math.max(0, start - from), Math.min(to, end) - from);
  return inside;
}

function addWaits({ timeline, place, threadOf, parts }: Shown, grid: OrderGrid, laneOf: (Pieces | undefined)[]) {
  const { waits, slotNs } = timeline;
  if (!waits) return;
  for (const [from, to] of parts) {
    const [begin, end] = [Math.max(from, grid.from) * slotNs, Math.min(to, grid.to) * slotNs];
    for (let wait = 0; wait < waits.start.length && waits.start[wait] < end; wait++) {
      const [start, until] = [Math.max(begin, waits.start[wait]), Math.min(end, waits.end[wait])];
      const at = waits.node[wait];
      if (until - start < grid.least || (place && place[at] === NONE)) continue;
      laneOf[threadOf[at]]?.waits.push([start, until, waits.kind[wait]]);
    }
  }
}

interface Open {
  fn: number;
  inlined: number;
  start: number;
}

/** The pieces of a lane, as they grow. */
class Pieces {
  readonly thread: number;
  readonly waits: [start: number, end: number, kind: number][] = [];
  /** The nodes that have a cost in the present cell, and how many samples it has. */
  nodes: number[] = [];
  samples = 0;
  small = 0;
  #cost: number;
  #tree: Tree;
  #least: number;
  #open: Open[] = [];
  /** Until when what is open lasts. */
  #end = Number.NEGATIVE_INFINITY;
  /** The functions that all stacks begin with. */
  #common: number[] | null = null;
  #pieces: { start: number; end: number; row: number; fn: number; inlined: number }[] = [];

  constructor(thread: number, cost: number, tree: Tree, least: number) {
    this.thread = thread;
    this.#cost = cost;
    this.#tree = tree;
    this.#least = least;
  }

  /** Places the stacks of a cell: each as wide as its share, in the order of the tree, as that in time is unknown. */
  endCell(start: number, end: number, isTime: boolean, costs: Float64Array) {
    if (this.nodes.length === 0) return;
    let [total, largest] = [0, this.nodes[0]];
    for (const node of this.nodes) {
      total += costs[node];
      if (costs[node] > costs[largest]) largest = node;
    }
    const long = end - start;
    // A thread that ran for less than a pixel is seen all the same.
    const width = Math.max(long * (isTime ? filled(total / long, this.samples) : 1), Math.min(long, 2 * this.#least));
    const least = (this.#least / width) * total;
    // Where all are too small, the largest one stands for the cell.
    const seen = costs[largest] < least ? [largest] : this.nodes.filter((node) => costs[node] >= least);
    this.small += this.nodes.length - seen.length;
    // Those that are too small come last, as nothing. Nodes are numbered in the order of the tree.
    seen.sort((a, b) => a - b);
    const scale = costs[largest] < least ? width / costs[largest] : width / total;
    let at = start;
    for (const node of seen) {
      this.#place(node, at, at + costs[node] * scale);
      at += costs[node] * scale;
    }
    for (const node of this.nodes) costs[node] = 0;
    this.nodes.length = 0;
    this.samples = 0;
  }

  #place(node: number, start: number, end: number) {
    const { parent, fn, inlined } = this.#tree;
    const path: number[] = [];
    for (let at = node; parent[at] !== NONE; at = parent[at]) path.push(at);
    path.reverse();
    // Costs outside of every function have a row of their own.
    if (path.length === 0) path.push(node);
    const touches = start - this.#end <= this.#least;
    let same = 0;
    while (touches && same < path.length && same < this.#open.length && this.#open[same].fn === fn[path[same]]) same++;
    this.#close(same);
    for (const at of path.slice(same)) this.#open.push({ fn: fn[at], inlined: inlined[at], start });
    this.#end = end;
    const functions = path.map((at) => fn[at]);
    if (!this.#common) this.#common = functions.slice(0, -1);
    else {
      let both = 0;
      while (both < this.#common.length && both < functions.length - 1 && this.#common[both] === functions[both]) both++;
      this.#common.length = both;
    }
  }

  #close(depth: number) {
    while (this.#open.length > depth) {
      const { fn, inlined, start } = this.#open.pop()!;
      if (this.#end - start < this.#least) this.small++;
      else this.#pieces.push({ start, end: this.#end, row: this.#open.length, fn, inlined });
    }
  }

  done(): Lane {
    this.#close(0);
    const common = this.#common ?? [];
    const pieces = this.#pieces.filter((piece) => piece.row >= common.length);
    const column = (of: (piece: (typeof pieces)[number]) => number) => Float64Array.from(pieces, of);
    return {
      thread: this.thread, cost: this.#cost, below: common[common.length - 1] ?? 0,
      deepest: pieces.reduce((most, { row }) => Math.max(most, row - common.length + 1), 1),
      start: column((piece) => piece.start), end: column((piece) => piece.end),
      row: Uint32Array.from(pieces, (piece) => piece.row - common.length), fn: Uint32Array.from(pieces, (piece) => piece.fn),
      inlined: Uint8Array.from(pieces, (piece) => piece.inlined),
      waitStart: Float64Array.from(this.waits, ([start]) => start), waitEnd: Float64Array.from(this.waits, ([, end]) => end),
      waitKind: Uint8Array.from(this.waits, ([, , kind]) => kind),
    };
  }
}

/**
 * The part of a cell that a thread ran in, by the part that its costs say. Of samples, a part that differs from all of it by
 * no more than chance does is all of it.
 */
function filled(part: number, samples: number): number {
  if (part >= 1 || samples === 0) return Math.min(1, part);
  const expected = samples / part;
  return samples >= expected - 2 * Math.sqrt(expected) ? 1 : part;
}
