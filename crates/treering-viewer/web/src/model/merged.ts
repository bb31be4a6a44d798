// Trees made for looking at: nodes of all threads that are reached along equal chains of functions are
// one, and children are sorted by cost. Flame graphs, sandwiches, trees and callers trees draw these.
//
// They grow from the root, node by node, and only where the cost is at least a part of the whole: of a
// million nodes no screen shows more than some thousands.

import { NONE, totals, type Tree } from "./tree.ts";

/** The function of a merged tree's root. */
export const ROOT = 0;

/** Costs that a merged tree is to have; the first decides order and pruning. */
export type Columns = ArrayLike<number>[];

/** A tree of functions, parents before children, siblings together and largest first. */
export interface Merged {
  length: number;
  parent: Uint32Array;
  fn: Uint32Array;
  depth: Uint32Array;
  /** By node: where its children start; one more at the end. Children are consecutive nodes. */
  children: Uint32Array;
  /** How many columns each side has: cost, samples, and maybe squares of weights and what was not seen. */
  stride: number;
  /** By column and node. In a callers tree, self is the part that came by this chain, as total is. */
  self: Float64Array[];
  total: Float64Array[];
  calls: Float64Array | null;
  /** By node: 1 where every activation is inlined. */
  inlined: Uint8Array;
  /** By node: 1 where inner activations of a recursion are folded into it. */
  folded: Uint8Array;
  /** By node: how many children were left out below the threshold, and what they cost together. */
  hidden: Uint32Array;
  hiddenCost: Float64Array;
  deepest: number;
}

/** A merged tree that knows the metric of its costs. */
export interface MergedOf extends Merged {
  metric: number;
}

/** The tree to build. */
export interface Request {
  /** Only what is below (or above) this function; null for the whole program. */
  focus: number | null;
  direction: "callees" | "callers";
  /** Whether inner activations join the outermost activation of their function. */
  fold: boolean;
  /** Functions from the root on: only what is below the node that they lead to, and the way there. */
  path: number[];
  /** Nodes below this part of the root are left out, or of the node that the path leads to. */
  least: number;
}

/** The children of every node as lists: the first of each, and the next sibling of each; `NONE` ends them. */
export interface Links {
  first: Uint32Array;
  next: Uint32Array;
}

/** The lists of children of a tree. */
export function links(tree: Tree): Links {
  const first = new Uint32Array(tree.length).fill(NONE);
  const next = new Uint32Array(tree.length).fill(NONE);
  for (let node = tree.length - 1; node >= 0; node--) {
    const parent = tree.parent[node];
    if (parent === NONE) continue;
    next[node] = first[parent];
    first[parent] = node;
  }
  return { first, next };
}

/** The columns of a merged tree: by node, its own costs and those of its subtree, its calls, and marks. */
interface Source {
  own: Columns;
  sums: Columns;
  calls: ArrayLike<number> | null;
  inlined: Uint8Array;
  folded: Uint8Array | null;
  links: Links;
}

/** The tree from callers to callees. `sums` and `known` are those of `columns` and of the tree, where they are at hand. */
export function callees(
  tree: Tree, columns: Columns, stride: number, functions: number, request: Request, sums?: Columns, known?: Links,
): Merged {
  const source = request.fold
    ? foldedSource(tree, columns, functions, request.focus)
    : { own: columns, sums: sums ?? sumsOf(tree, columns), calls: tree.calls, inlined: tree.inlined, folded: null, links: known ?? links(tree) };
  const { first, next } = source.links;
  const [cost, base] = sides(source.sums, stride);
  const starts = request.focus === null ? tree.roots : outermost(tree, request.focus);
  const growing = new Growing(request.focus ?? ROOT, columns.length, stride, source.calls !== null);
  const siblings = new Siblings(functions);
  // Every node is a member of one merged node at most.
  const pool = new Uint32Array(tree.length);
  pool.set(starts);
  let end = starts.length;
  const from = [0];
  const to = [end];
  const way = new Way(request);
  for (let at = 0; at < growing.length; at++) {
    for (let member = from[at]; member < to[at]; member++) growing.count(at, source, pool[member]);
    siblings.start(at);
    for (let member = from[at]; member < to[at]; member++) {
      for (let child = first[pool[member]]; child !== NONE; child = next[child]) siblings.add(tree.fn[child], cost[child], base === null ? 0 : base[child]);
    }
    growing.enterChildren();
    for (const sibling of way.chosen(siblings, growing, at)) {
      growing.add(at, siblings.fn[sibling]);
      siblings.place[sibling] = end;
      from.push(end);
      to.push((end += siblings.members[sibling]));
    }
    growing.leaveOut(siblings);
    for (let member = from[at]; member < to[at]; member++) {
      for (let child = first[pool[member]]; child !== NONE; child = next[child]) {
        const sibling = siblings.of(tree.fn[child]);
        if (siblings.place[sibling] !== NONE) pool[siblings.place[sibling]++] = child;
      }
    }
  }
  return growing.finish();
}

/**
 * The tree from callees to callers: of one function, from its outermost activations, else of every
 * function from where its cost was passed. `sums` are needed for one function only.
 */
export function callers(tree: Tree, columns: Columns, sums: Columns, stride: number, functions: number, request: Request): Merged {
  const costs = request.focus === null ? columns : sums;
  const [cost, base] = sides(costs, stride);
  const growing = new Growing(request.focus ?? ROOT, columns.length, stride, false);
  const siblings = new Siblings(functions);
  // Members: where the chain so far ends, and the node whose cost came by it. The members of a node are
  // divided among its children, so they stay in their place.
  const origins = request.focus === null ? passing(tree, columns) : outermost(tree, request.focus);
  const ends = origins.slice();
  const [newOrigins, newEnds] = [new Uint32Array(origins.length), new Uint32Array(origins.length)];
  const from = [0];
  const to = [origins.length];
  const way = new Way(request);
  for (let at = 0; at < growing.length; at++) {
    growing.countPassed(at, tree, costs, origins, ends, from[at], to[at]);
    siblings.start(at);
    // Below the root of the whole program stand the functions themselves.
    const steps = !(at === 0 && request.focus === null);
    for (let member = from[at]; member < to[at]; member++) {
      const end = steps ? callerOf(tree, ends[member]) : ends[member];
      ends[member] = end;
      if (end !== NONE) siblings.add(tree.fn[end], cost[origins[member]], base === null ? 0 : base[origins[member]]);
    }
    growing.enterChildren();
    let end = from[at];
    for (const sibling of growing.depthOf(at) < DEEPEST ? way.chosen(siblings, growing, at) : []) {
      growing.add(at, siblings.fn[sibling]);
      siblings.place[sibling] = end;
      from.push(end);
      to.push((end += siblings.members[sibling]));
    }
    growing.leaveOut(siblings);
    for (let member = from[at]; member < to[at]; member++) {
      if (ends[member] === NONE) continue;
      const sibling = siblings.of(tree.fn[ends[member]]);
      const place = siblings.place[sibling];
      if (place === NONE) continue;
      newOrigins[place] = origins[member];
      newEnds[place] = ends[member];
      siblings.place[sibling]++;
    }
    origins.set(newOrigins.subarray(from[at], end), from[at]);
    ends.set(newEnds.subarray(from[at], end), from[at]);
  }
  return growing.finish();
}

/** How many callers above each other a callers tree shows. */
const DEEPEST = 500;

/** The caller of a node that is a function; `NONE` for the first ones of threads. */
function callerOf(tree: Tree, node: number): number {
  const parent = tree.parent[node];
  return parent === NONE || tree.parent[parent] === NONE ? NONE : parent;
}

/** The column that widths are of, and that of the base in a difference. */
function sides(columns: Columns, stride: number): [ArrayLike<number>, ArrayLike<number> | null] {
  return [columns[0], columns.length > stride ? columns[stride] : null];
}

/** The sums of subtrees in each column; equal columns are summed once. */
function sumsOf(tree: Tree, columns: Columns): Columns {
  const known = new Map<ArrayLike<number>, Float64Array>();
  return columns.map((column) => {
    const sums = known.get(column) ?? totals(tree, column);
    known.set(column, sums);
    return sums;
  });
}

/** The children that get a node: along the path one each, below its end those that are large enough. */
class Way {
  #path: number[];
  #least: number;
  /** The least cost that is large enough; not known before the end of the path. */
  #limit: number | null = null;

  constructor(request: Request) {
    this.#path = request.path;
    this.#least = request.least;
  }

  chosen(siblings: Siblings, growing: Growing, at: number): number[] {
    if (this.#limit === null) {
      const next = siblings.find(this.#path[growing.depthOf(at)]);
      if (next !== null) return [next];
      this.#limit = growing.size(at) * this.#least;
    }
    return siblings.chosen(this.#limit);
  }
}

/** Nodes in the making. */
class Growing {
  length = 0;
  #stride: number;
  #parent: number[] = [];
  #fn: number[] = [];
  #depth: number[] = [];
  #plain: number[] = [];
  #folded: number[] = [];
  #children: number[] = [];
  #hidden: number[] = [];
  #hiddenCost: number[] = [];
  #self: number[][];
  #total: number[][];
  #calls: number[] | null;

  constructor(root: number, columns: number, stride: number, withCalls: boolean) {
    this.#stride = stride;
    this.#self = Array.from({ length: columns }, () => []);
    this.#total = Array.from({ length: columns }, () => []);
    this.#calls = withCalls ? [] : null;
    this.add(NONE, root);
  }

  add(parent: number, fn: number) {
    this.length++;
    this.#parent.push(parent);
    this.#fn.push(fn);
    this.#depth.push(parent === NONE ? 0 : this.#depth[parent] + 1);
    this.#plain.push(0);
    this.#folded.push(0);
    this.#calls?.push(0);
    for (const column of this.#self) column.push(0);
    for (const column of this.#total) column.push(0);
  }

  depthOf(at: number): number {
    return this.#depth[at];
  }

  /** The cost of a node: in a difference the larger of both sides. */
  size(at: number): number {
    const [cost, base] = sides(this.#total, this.#stride);
    return base === null ? cost[at] : Math.max(cost[at], base[at]);
  }

  /** Adds a member's costs to a node. */
  count(at: number, source: Source, member: number) {
    for (let column = 0; column < this.#self.length; column++) {
      this.#self[column][at] += source.own[column][member];
      this.#total[column][at] += source.sums[column][member];
    }
    if (this.#calls) this.#calls[at] += source.calls![member];
    if (source.inlined[member] === 0) this.#plain[at] = 1;
    if (source.folded !== null && source.folded[member] === 1) this.#folded[at] = 1;
  }

  /** Adds the costs of the members of a node of a callers tree. */
  countPassed(at: number, tree: Tree, costs: Columns, origins: Uint32Array, ends: Uint32Array, from: number, to: number) {
    for (let column = 0; column < costs.length; column++) {
      let sum = 0;
      for (let member = from; member < to; member++) sum += costs[column][origins[member]];
      this.#self[column][at] = this.#total[column][at] = sum;
    }
    for (let member = from; member < to && this.#plain[at] === 0; member++) if (tree.inlined[ends[member]] === 0) this.#plain[at] = 1;
  }

  /** The nodes that are added from here on are children of this one. */
  enterChildren() {
    this.#children.push(this.length);
  }

  /** Notes which siblings got no node. */
  leaveOut(siblings: Siblings) {
    let hidden = 0;
    let cost = 0;
    for (let sibling = 0; sibling < siblings.length; sibling++) {
      if (siblings.place[sibling] !== NONE || siblings.size(sibling) === 0) continue;
      hidden++;
      cost += siblings.cost[sibling];
    }
    this.#hidden.push(hidden);
    this.#hiddenCost.push(cost);
  }

  finish(): Merged {
    this.#children.push(this.length);
    return {
      length: this.length,
      stride: this.#stride,
      parent: new Uint32Array(this.#parent),
      fn: new Uint32Array(this.#fn),
      depth: new Uint32Array(this.#depth),
      children: new Uint32Array(this.#children),
      self: this.#self.map((column) => new Float64Array(column)),
      total: this.#total.map((column) => new Float64Array(column)),
      calls: this.#calls && new Float64Array(this.#calls),
      inlined: Uint8Array.from(this.#plain, (plain) => 1 - plain),
      folded: new Uint8Array(this.#folded),
      hidden: new Uint32Array(this.#hidden),
      hiddenCost: new Float64Array(this.#hiddenCost),
      deepest: this.#depth[this.#depth.length - 1],
    };
  }
}

/** The functions that a node's children are of, with their costs. */
class Siblings {
  length = 0;
  readonly fn: Uint32Array;
  readonly members: Uint32Array;
  readonly cost: Float64Array;
  readonly base: Float64Array;
  /** Where the members of a chosen one go; `NONE` for those that are left out. */
  readonly place: Uint32Array;
  /** By function: the node that it was last a child of, and its number there. */
  #parent: Int32Array;
  #at: Uint32Array;
  #now = -1;

  constructor(functions: number) {
    this.fn = new Uint32Array(functions);
    this.members = new Uint32Array(functions);
    this.cost = new Float64Array(functions);
    this.base = new Float64Array(functions);
    this.place = new Uint32Array(functions);
    this.#parent = new Int32Array(functions).fill(-1);
    this.#at = new Uint32Array(functions);
  }

  start(parent: number) {
    this.length = 0;
    this.#now = parent;
  }

  add(fn: number, cost: number, base: number) {
    if (this.#parent[fn] !== this.#now) {
      this.#parent[fn] = this.#now;
      const at = (this.#at[fn] = this.length++);
      this.fn[at] = fn;
      this.members[at] = this.cost[at] = this.base[at] = 0;
      this.place[at] = NONE;
    }
    const at = this.#at[fn];
    this.members[at]++;
    this.cost[at] += cost;
    this.base[at] += base;
  }

  /** The number of a function among the present ones. */
  of(fn: number): number {
    return this.#at[fn];
  }

  /** The number of a function among the present ones; null where it is none of them. */
  find(fn: number | undefined): number | null {
    return fn !== undefined && this.#parent[fn] === this.#now ? this.#at[fn] : null;
  }

  size(at: number): number {
    return Math.max(this.cost[at], this.base[at]);
  }

  /** Those that cost something and at least `limit`, the largest first. */
  chosen(limit: number): number[] {
    const chosen: number[] = [];
    for (let at = 0; at < this.length; at++) if (this.size(at) > 0 && this.size(at) >= limit) chosen.push(at);
    return chosen.length > 1 ? chosen.sort((a, b) => this.size(b) - this.size(a) || this.fn[a] - this.fn[b]) : chosen;
  }
}

/** The tree with inner activations of recursions in the outermost one of their function. */
function foldedSource(tree: Tree, columns: Columns, functions: number, focus: number | null): Source {
  const place = foldedPlaces(tree, functions, focus);
  const own = columns.map((column) => {
    const moved = new Float64Array(tree.length);
    for (let node = 0; node < tree.length; node++) moved[place[node]] += column[node];
    return moved;
  });
  const calls = tree.calls && new Float64Array(tree.length);
  const inlined = new Uint8Array(tree.length).fill(1);
  const folded = new Uint8Array(tree.length);
  const first = new Uint32Array(tree.length).fill(NONE);
  const next = new Uint32Array(tree.length).fill(NONE);
  const sums = own.map((column) => column.slice());
  for (let node = tree.length - 1; node >= 0; node--) {
    const into = place[node];
    if (calls) calls[into] += tree.calls![node];
    inlined[into] &= tree.inlined[node];
    if (into !== node) {
      folded[into] = 1;
      continue;
    }
    if (tree.parent[node] === NONE) continue;
    const parent = place[tree.parent[node]];
    next[node] = first[parent];
    first[parent] = node;
    for (const column of sums) column[parent] += column[node];
  }
  return { own, sums, calls, inlined, folded, links: { first, next } };
}

/** By node: the outermost activation of its function on its path, within what is looked at. */
function foldedPlaces(tree: Tree, functions: number, focus: number | null): Uint32Array {
  const place = new Uint32Array(tree.length);
  const outer = new Int32Array(functions).fill(-1);
  const inside = new Uint8Array(tree.length);
  let path = new Uint32Array(256);
  let depth = 0;
  for (let node = 0; node < tree.length; node++) {
    const parent = tree.parent[node];
    while (depth > 0 && path[depth - 1] !== parent) {
      const left = path[--depth];
      if (outer[tree.fn[left]] === left) outer[tree.fn[left]] = -1;
    }
    const fn = tree.fn[node];
    inside[node] = focus === null || fn === focus || (parent !== NONE && inside[parent]) ? 1 : 0;
    place[node] = node;
    if (inside[node] && parent !== NONE) {
      if (outer[fn] >= 0) place[node] = outer[fn];
      else outer[fn] = node;
    }
    if (depth === path.length) {
      const longer = new Uint32Array(path.length * 2);
      longer.set(path);
      path = longer;
    }
    path[depth++] = node;
  }
  return place;
}

/** Every node that something was passed in. */
function passing(tree: Tree, columns: Columns): Uint32Array {
  const passed = new Uint8Array(tree.length);
  let count = 0;
  for (const column of new Set(columns)) {
    for (let node = 0; node < tree.length; node++) {
      if (column[node] === 0 || passed[node] === 1) continue;
      passed[node] = 1;
      count++;
    }
  }
  return picked(passed, count);
}

/** The outermost activations of a function. */
function outermost(tree: Tree, focus: number): Uint32Array {
  const inside = new Uint8Array(tree.length);
  const found = new Uint8Array(tree.length);
  let count = 0;
  for (let node = 0; node < tree.length; node++) {
    const parent = tree.parent[node];
    if (parent !== NONE && inside[parent] === 1) {
      inside[node] = 1;
    } else if (tree.fn[node] === focus) {
      inside[node] = found[node] = 1;
      count++;
    }
  }
  return picked(found, count);
}

/** The indexes of ones. */
function picked(marks: Uint8Array, count: number): Uint32Array {
  const nodes = new Uint32Array(count);
  let at = 0;
  for (let node = 0; node < marks.length && at < count; node++) if (marks[node] === 1) nodes[at++] = node;
  return nodes;
}
