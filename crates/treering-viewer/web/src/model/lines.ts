// The calls that the lines of a function made.

import { type LineCosts, NONE, type Tree } from "./tree.ts";
import type { Transformed } from "./transform.ts";

/** Calls of one function from one line of another. */
export interface LineCall {
  /** 1 + the line; 0 where it is not known. */
  site: number;
  callee: number;
  calls: number;
  total: number;
}

/**
 * The calls that `fn` made, by line. As in the central line, what is below a further activation of `fn`
 * counts for the line there, so that they add up to its children cost. `sums` are those of subtrees.
 */
export function lineCalls(tree: Tree, sums: ArrayLike<number>, fn: number): LineCall[] {
  const known = new Map<string, LineCall>();
  // By node: the closest activation of `fn` above it, and the child of that on the way to the node.
  const inside = new Uint32Array(tree.length).fill(NONE);
  const row = (node: number): LineCall => {
    const key = `${tree.site[node]} ${tree.fn[node]}`;
    let found = known.get(key);
    if (!found) known.set(key, (found = { site: tree.site[node], callee: tree.fn[node], calls: 0, total: 0 }));
    return found;
  };
  for (let node = 0; node < tree.length; node++) {
    const parent = tree.parent[node];
    if (parent === NONE) continue;
    if (tree.fn[parent] === fn) {
      inside[node] = node;
      const found = row(node);
      found.total += sums[node];
      if (tree.calls) found.calls += tree.calls[node] - (tree.recursive ? tree.recursive[node] : 0);
    } else {
      inside[node] = inside[parent];
    }
    if (tree.fn[node] === fn && inside[node] !== NONE) row(inside[node]).total -= sums[node];
  }
  return [...known.values()].sort((a, b) => b.total - a.total || a.callee - b.callee);
}

/** The cost that a line of a function passed itself, in the new runs and in those of the base. */
export interface OwnLine {
  line: number;
  now: number;
  base: number;
}

/**
 * The lines of `fn` with their self costs under transforms. What hidden functions cost is the cost of the line
 * that called them. Null where it is not known. `isBase` says of nodes whether they are of a base run.
 */
export function ownLines(recorded: Tree, rows: LineCosts | null, state: Transformed, metric: number, fn: number, isBase: (node: number) => boolean): OwnLine[] | null {
  const costs = rows?.costs[metric];
  if (!rows || !costs) return null;
  const found = new Map<number, OwnLine>();
  // The lines of counted code are known of functions, not of nodes.
  let known = false;
  for (let at = 0; at < costs.length; at++) {
    if (costs[at] === 0) continue;
    let node = rows.node[at];
    known ||= recorded.fn[node] === fn;
    const now = state.place ? state.place[node] : node;
    if (now === NONE || state.tree.fn[now] !== fn) continue;
    let line = rows.line[at];
    if (recorded.fn[node] !== fn) {
      const base = node;
      while (recorded.parent[node] !== NONE && recorded.fn[recorded.parent[node]] !== fn) node = recorded.parent[node];
      // Without a known line it stands with what is known of none.
      if (recorded.site[node] === 0) continue;
      line = recorded.site[node] - 1;
      node = base;
    }
    let row = found.get(line);
    if (!row) found.set(line, (row = { line, now: 0, base: 0 }));
    row[isBase(node) ? "base" : "now"] += costs[at];
  }
  return known || found.size ? [...found.values()] : null;
}
