// One walk over the tree that measures functions and arcs: the same rules, and to the unit the same
// numbers, as `treering report --callgraph`.

import { NONE, type Tree } from "./tree.ts";
import { totals } from "./tree.ts";
import { PairTable } from "./pairs.ts";

/** Caller and callee of every arc, and the arc of every node. */
export interface Arcs {
  caller: Uint32Array;
  callee: Uint32Array;
  calls: Float64Array;
  /** By node: the arc it was called through, `NONE` for roots. */
  ofNode: Uint32Array;
}

/** Finds the arcs. Folded recursive calls are calls of the arc from the function to itself. */
export function findArcs(tree: Tree, functions: number): Arcs {
  const table = new PairTable();
  const ofNode = new Uint32Array(tree.length).fill(NONE);
  for (let node = 0; node < tree.length; node++) {
    const parent = tree.parent[node];
    if (parent !== NONE) ofNode[node] = table.add(tree.fn[parent], tree.fn[node]);
  }
  const { calls, recursive } = tree;
  let counted = new Float64Array(table.length);
  if (calls) {
    for (let node = 0; node < tree.length; node++) {
      const folded = recursive ? Math.min(recursive[node], calls[node]) : 0;
      if (folded > 0) table.add(tree.fn[node], tree.fn[node]);
    }
    counted = new Float64Array(table.length);
    for (let node = 0; node < tree.length; node++) {
      const folded = recursive ? Math.min(recursive[node], calls[node]) : 0;
      if (ofNode[node] !== NONE) counted[ofNode[node]] += calls[node] - folded;
      if (folded > 0) counted[table.add(tree.fn[node], tree.fn[node])] += folded;
    }
  }
  void functions;
  return { caller: table.first(), callee: table.second(), calls: counted, ofNode };
}

/** What functions and arcs cost in one column. */
export interface Tally {
  /** By function. */
  self: Float64Array;
  total: Float64Array;
  /** By arc: what its activations cost, nested ones counted once. */
  arcTotal: Float64Array;
  /** By arc: the part of the callee's total that this caller asked for; sums to the callee's total. */
  fromSelf: Float64Array;
  fromTotal: Float64Array;
  /** By arc: the part of the caller's children cost that this callee took; sums to it. */
  toSelf: Float64Array;
  toTotal: Float64Array;
}

/** Measures functions and arcs in one pass over the nodes. */
export function walk(tree: Tree, arcs: Arcs, own: ArrayLike<number>, functions: number): Tally {
  const count = arcs.caller.length;
  const tally: Tally = {
    self: new Float64Array(functions),
    total: new Float64Array(functions),
    arcTotal: new Float64Array(count),
    fromSelf: new Float64Array(count),
    fromTotal: new Float64Array(count),
    toSelf: new Float64Array(count),
    toTotal: new Float64Array(count),
  };
  const sums = totals(tree, own);
  const active = new Uint32Array(count);
  // By function: the depth of its innermost and outermost activation on the path; innermost is NONE
  // while there is none.
  const innermost = new Uint32Array(functions).fill(NONE);
  const outermost = new Uint32Array(functions);
  let path = new Uint32Array(256);
  let enclosing = new Uint32Array(256);
  let depth = 0;

  const leave = () => {
    depth--;
    const node = path[depth];
    innermost[tree.fn[node]] = enclosing[depth];
    const arc = arcs.ofNode[node];
    if (arc !== NONE) active[arc]--;
  };

  for (let node = 0; node < tree.length; node++) {
    const parent = tree.parent[node];
    while (depth > 0 && (parent === NONE || path[depth - 1] !== parent)) leave();
    if (depth === path.length) {
      path = grown(path);
      enclosing = grown(enclosing);
    }
    const fn = tree.fn[node];
    const arc = arcs.ofNode[node];
    const around = innermost[fn];
    innermost[fn] = depth;
    path[depth] = node;
    enclosing[depth] = around;

    const total = sums[node];
    if (around === NONE) {
      outermost[fn] = depth;
      tally.total[fn] += total;
    }
    if (arc !== NONE) {
      if (active[arc] === 0) tally.arcTotal[arc] += total;
      active[arc]++;
      tally.toTotal[arc] += total;
      if (around === NONE) tally.fromTotal[arc] += total;
    }
    // What lies below is now below an activation further in, no longer below the one around it.
    if (around !== NONE) tally.toTotal[arcs.ofNode[path[around + 1]]] -= total;

    const cost = own[node];
    if (cost !== 0) {
      tally.self[fn] += cost;
      const first = outermost[fn];
      const firstArc = arcs.ofNode[path[first]];
      if (firstArc !== NONE) {
        tally.fromSelf[firstArc] += cost;
        if (innermost[tree.fn[path[first - 1]]] === first - 1) tally.toSelf[firstArc] += cost;
      }
      if (arc !== firstArc && depth > 0 && tree.fn[path[depth - 1]] !== fn) tally.toSelf[arc] += cost;
    }
    depth++;
  }
  return tally;
}

function grown(array: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  const larger = new Uint32Array(array.length * 2);
  larger.set(array);
  return larger;
}

/** Calls of functions: all of them, and those that a function made to itself directly. */
export function countCalls(tree: Tree, functions: number): { calls: Float64Array; recursive: Float64Array } | null {
  if (!tree.calls) return null;
  const calls = new Float64Array(functions);
  const recursive = new Float64Array(functions);
  for (let node = 0; node < tree.length; node++) {
    const count = tree.calls[node];
    if (count === 0) continue;
    const fn = tree.fn[node];
    const parent = tree.parent[node];
    const direct = parent !== NONE && tree.fn[parent] === fn;
    calls[fn] += count;
    recursive[fn] += direct ? count : Math.min(tree.recursive ? tree.recursive[node] : 0, count);
  }
  return { calls, recursive };
}
