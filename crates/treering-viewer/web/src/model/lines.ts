// Which calls the lines of a function made.

import { NONE, type Tree } from "./tree.ts";

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
