// The calling context tree as columns, and the same after transforms.

import type { Counted } from "./counted.ts";
import type { Column } from "./slabs.ts";

/** No parent, or no call site. */
export const NONE = 0xffffffff;

/**
 * The calling context trees of all threads, in preorder: a node, then its whole subtree. So one pass
 * forward with a stack visits every path, and one pass backward sums subtrees.
 */
export interface Tree {
  length: number;
  /** By node: its parent, `NONE` for the root of a thread. */
  parent: Uint32Array;
  /** By node: its function. */
  fn: Column;
  /** By node: 1 + the line in the parent's function that it is called from; 0 where unknown. */
  site: Column;
  /** By node: 1 where the function is inlined into its caller. */
  inlined: Uint8Array;
  /** By node: calls, and how many of them the recursion rule folded into it; none for samples. */
  calls: Column | null;
  recursive: Column | null;
  /** By thread: its root. */
  roots: Uint32Array;
}

/** The process and run of a thread. */
export interface Thread {
  name: string;
  tid: number;
  process: string;
  pid: number;
  run: number;
}

/** The tree as the payload holds it, and its costs. */
export interface Recorded {
  tree: Tree;
  threads: Thread[];
  /** By metric: self costs of nodes; null for levels. */
  costs: (Column | null)[];
  /** Calls that were counted apart from the stacks. */
  counted: Counted | null;
  /** Self costs by node and line; null where there are too many of them for a page. */
  lineCosts: LineCosts | null;
}

/** Self costs by node and line, one row each. */
export interface LineCosts {
  node: Column;
  line: Column;
  /** By metric. */
  costs: (Column | null)[];
}

/** Reads the `tree` part of a payload; call sites and some costs come later. */
export function readTree(data: any): Recorded {
  const back = data.parent as Column;
  const length = back.length;
  const parent = new Uint32Array(length);
  for (let node = 0; node < length; node++) parent[node] = back[node] === 0 ? NONE : node - back[node];
  const tree: Tree = {
    length,
    parent,
    fn: data.fn,
    site: new Uint8Array(0),
    inlined: data.inlined ?? new Uint8Array(length),
    calls: data.calls ?? null,
    recursive: data.recursive ?? null,
    roots: Uint32Array.from(data.roots as number[]),
  };
  return { tree, threads: data.threads, costs: data.costs, lineCosts: null, counted: data.counted ?? null };
}

/** Adds the `rest` part of a payload. */
export function addRest(recorded: Recorded, data: any) {
  recorded.tree.site = data.site;
  recorded.lineCosts = data.lineCosts ?? null;
  (data.costs as (Column | null)[]).forEach((costs, metric) => {
    if (costs) recorded.costs[metric] = costs;
  });
}

/** The sums of subtrees. */
export function totals(tree: Tree, own: ArrayLike<number>): Float64Array {
  const sums = new Float64Array(own);
  for (let node = tree.length - 1; node > 0; node--) {
    const parent = tree.parent[node];
    if (parent !== NONE) sums[parent] += sums[node];
  }
  return sums;
}

/** By node: the index of its thread. */
export function threadOfNodes(tree: Tree): Uint32Array {
  const of = new Uint32Array(tree.length);
  for (let thread = 0; thread < tree.roots.length; thread++) {
    const end = thread + 1 < tree.roots.length ? tree.roots[thread + 1] : tree.length;
    of.fill(thread, tree.roots[thread], end);
  }
  return of;
}
