// Trees made for looking at: nodes of all threads that are reached along equal chains of functions are
// one, and children are sorted by cost. Flame graphs, sandwiches, trees and callers trees draw these.

import { NONE, type Tree } from "./tree.ts";
import { PairTable } from "./pairs.ts";

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

/** What to build. */
export interface Request {
  /** Only what is below (or above) this function; null for the whole program. */
  focus: number | null;
  direction: "callees" | "callers";
  /** Whether inner activations join the outermost activation of their function. */
  fold: boolean;
  /** Nodes below this part of the root are left out. */
  least: number;
}

/** Nodes in the making: as they were found, not sorted yet. */
class Growing {
  parent: number[] = [];
  fn: number[] = [];
  depth: number[] = [];
  plain: number[] = [];
  folded: number[] = [];

  add(parent: number, fn: number): number {
    this.parent.push(parent);
    this.fn.push(fn);
    this.depth.push(parent < 0 ? 0 : this.depth[parent] + 1);
    this.plain.push(0);
    this.folded.push(0);
    return this.parent.length - 1;
  }
}

/** The tree from callers to callees. */
export function callees(tree: Tree, columns: Columns, stride: number, functions: number, request: Request): Merged {
  const growing = new Growing();
  growing.add(-1, request.focus ?? ROOT);
  const table = new PairTable();
  const merged = new Int32Array(tree.length).fill(-1);
  const self = columns.map(() => [0]);
  const calls: number[] | null = tree.calls ? [0] : null;
  // By function: the merged node of its outermost activation on the path, when folding; and the
  // number of activations of the focus on the path.
  const active = request.fold ? new Int32Array(functions).fill(-1) : null;
  const path: number[] = [];
  const owner: boolean[] = [];
  for (let node = 0; node < tree.length; node++) {
    const parent = tree.parent[node];
    while (path.length && path[path.length - 1] !== parent) {
      const left = path.pop()!;
      if (owner.pop() && active) active[tree.fn[left]] = -1;
    }
    const fn = tree.fn[node];
    let into: number;
    let owns = false;
    if (parent === NONE) {
      into = request.focus === null ? 0 : -1;
      if (request.focus === fn) into = 0;
    } else if (merged[parent] < 0) {
      into = fn === request.focus ? 0 : -1;
    } else if (active && active[fn] >= 0) {
      into = active[fn];
      growing.folded[into] = 1;
    } else {
      const known = table.length;
      const at = table.add(merged[parent], fn);
      into = at + 1;
      if (at === known) {
        growing.add(merged[parent], fn);
        for (const column of self) column.push(0);
        calls?.push(0);
      }
    }
    if (into >= 0) {
      if (active && active[fn] < 0 && parent !== NONE) {
        active[fn] = into;
        owns = true;
      }
      for (let column = 0; column < columns.length; column++) self[column][into] += columns[column][node];
      if (calls) calls[into] += tree.calls![node];
      if (!tree.inlined[node]) growing.plain[into] = 1;
    }
    merged[node] = into;
    path.push(node);
    owner.push(owns);
  }
  const own = self.map((column) => Float64Array.from(column));
  const total = own.map((column) => column.slice());
  for (let at = growing.parent.length - 1; at > 0; at--) {
    for (const column of total) column[growing.parent[at]] += column[at];
  }
  return arrange(growing, own, total, stride, calls && Float64Array.from(calls), request.least);
}

/** Members of a node of a callers tree: where the chain so far ends, and the cost that came by it. */
interface Group {
  into: number;
  nodes: Uint32Array;
  /** By column and member. */
  costs: Float64Array[];
}

/**
 * The tree from callees to callers: of one function, from its outermost activations, else of every
 * function from where its cost was passed. Only what is at least `least` of the whole is made.
 */
export function callers(tree: Tree, columns: Columns, sums: Columns, stride: number, request: Request): Merged {
  const growing = new Growing();
  growing.add(-1, request.focus ?? ROOT);
  const total: number[][] = columns.map(() => [0]);
  const hidden = [0];
  const hiddenCost = [0];
  const start = request.focus === null ? passing(tree, columns) : outermost(tree, sums, request.focus);
  let whole = 0;
  for (let column = 0; column < columns.length; column++) {
    for (const cost of start.costs[column]) total[column][0] += cost;
  }
  whole = total[0][0];
  const limit = whole * request.least;
  const pending: Group[] = [];

  const push = (parent: number, groups: Map<number, number[]>, from: Group) => {
    for (const [fn, members] of groups) {
      const costs = from.costs.map((column) => Float64Array.from(members, (member) => column[member]));
      const sum = costs.map((column) => column.reduce((a, b) => a + b, 0));
      if (Math.max(sum[0], sum[stride] ?? 0) < limit || growing.depth[parent] >= 500) {
        if (sum[0] > 0) {
          hidden[parent]++;
          hiddenCost[parent] += sum[0];
        }
        continue;
      }
      const into = growing.add(parent, fn);
      sum.forEach((cost, column) => total[column].push(cost));
      hidden.push(0);
      hiddenCost.push(0);
      const nodes = Uint32Array.from(members, (member) => from.nodes[member]);
      for (const node of nodes) if (!tree.inlined[node]) growing.plain[into] = 1;
      pending.push({ into, nodes, costs });
    }
  };
  if (request.focus === null) push(0, grouped(tree, start.nodes), start);
  else pending.push(start);
  while (pending.length) {
    const group = pending.pop()!;
    const above: Group = { into: group.into, nodes: new Uint32Array(group.nodes.length), costs: group.costs };
    let kept = 0;
    for (let member = 0; member < group.nodes.length; member++) {
      const parent = tree.parent[group.nodes[member]];
      if (parent === NONE || tree.parent[parent] === NONE) continue;
      above.nodes[kept] = parent;
      for (const column of above.costs) column[kept] = column[member];
      kept++;
    }
    above.nodes = above.nodes.subarray(0, kept);
    push(group.into, grouped(tree, above.nodes), above);
  }
  const totals = total.map((column) => Float64Array.from(column));
  return arrange(growing, totals, totals, stride, null, 0, { hidden, hiddenCost });
}

function grouped(tree: Tree, nodes: Uint32Array): Map<number, number[]> {
  const groups = new Map<number, number[]>();
  for (let member = 0; member < nodes.length; member++) {
    const fn = tree.fn[nodes[member]];
    const known = groups.get(fn);
    if (known) known.push(member);
    else groups.set(fn, [member]);
  }
  return groups;
}

/** Every node that something was passed in. */
function passing(tree: Tree, columns: Columns): Group {
  const nodes: number[] = [];
  for (let node = 0; node < tree.length; node++) {
    if (columns.some((column) => column[node] !== 0)) nodes.push(node);
  }
  const costs = columns.map((column) => Float64Array.from(nodes, (node) => column[node]));
  return { into: 0, nodes: Uint32Array.from(nodes), costs };
}

/** The outermost activations of a function, with what they and all below them cost. */
function outermost(tree: Tree, sums: Columns, focus: number): Group {
  const nodes: number[] = [];
  const inside = new Uint8Array(tree.length);
  for (let node = 0; node < tree.length; node++) {
    const parent = tree.parent[node];
    if (parent !== NONE && inside[parent]) {
      inside[node] = 1;
    } else if (tree.fn[node] === focus) {
      inside[node] = 1;
      nodes.push(node);
    }
  }
  const costs = sums.map((column) => Float64Array.from(nodes, (node) => column[node]));
  return { into: 0, nodes: Uint32Array.from(nodes), costs };
}

/** Sorts siblings by the first column, or the base's where that is larger, and leaves small ones out. */
function arrange(
  growing: Growing,
  self: Float64Array[],
  total: Float64Array[],
  stride: number,
  calls: Float64Array | null,
  least: number,
  known?: { hidden: number[]; hiddenCost: number[] },
): Merged {
  const count = growing.parent.length;
  const size = (at: number) => (total.length > stride ? Math.max(total[0][at], total[stride][at]) : total[0][at]);
  const limit = size(0) * least;
  const first = new Int32Array(count).fill(-1);
  const next = new Int32Array(count).fill(-1);
  for (let at = count - 1; at > 0; at--) {
    next[at] = first[growing.parent[at]];
    first[growing.parent[at]] = at;
  }
  const order: number[] = [0];
  const children: number[] = [];
  const hidden: number[] = [];
  const hiddenCost: number[] = [];
  let deepest = 0;
  for (let done = 0; done < order.length; done++) {
    const at = order[done];
    children.push(order.length);
    let left = known ? known.hidden[at] : 0;
    let leftCost = known ? known.hiddenCost[at] : 0;
    const below: number[] = [];
    for (let child = first[at]; child >= 0; child = next[child]) {
      if (size(child) > 0 && size(child) >= limit) below.push(child);
      else if (size(child) > 0) {
        left++;
        leftCost += total[0][child];
      }
    }
    below.sort((a, b) => size(b) - size(a) || growing.fn[a] - growing.fn[b]);
    for (const child of below) order.push(child);
    hidden.push(left);
    hiddenCost.push(leftCost);
    deepest = Math.max(deepest, growing.depth[at]);
  }
  children.push(order.length);
  const place = new Uint32Array(count);
  order.forEach((at, now) => (place[at] = now));
  const pick = (column: ArrayLike<number>) => Float64Array.from(order, (at) => column[at]);
  return {
    length: order.length,
    stride,
    parent: Uint32Array.from(order, (at) => (growing.parent[at] < 0 ? NONE : place[growing.parent[at]])),
    fn: Uint32Array.from(order, (at) => growing.fn[at]),
    depth: Uint32Array.from(order, (at) => growing.depth[at]),
    children: Uint32Array.from(children),
    self: self.map(pick),
    total: total.map(pick),
    calls: calls && pick(calls),
    inlined: Uint8Array.from(order, (at) => (growing.plain[at] ? 0 : 1)),
    folded: Uint8Array.from(order, (at) => growing.folded[at]),
    hidden: Uint32Array.from(hidden),
    hiddenCost: Float64Array.from(hiddenCost),
    deepest,
  };
}
