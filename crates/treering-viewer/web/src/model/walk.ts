// Walks over the tree that measure functions and arcs: the same rules, and to the unit the same
// numbers, as `treering report --callgraph`.

import { type Groups, grouped } from "./groups.ts";
import { NONE, type Tree } from "./tree.ts";
import { totals } from "./tree.ts";

/** Caller and callee of every arc, and the arc of every node. */
export interface Arcs {
  caller: Uint32Array;
  callee: Uint32Array;
  calls: Float64Array;
  /** By node: the arc it was called through, `NONE` for roots. */
  ofNode: Uint32Array;
}

/**
 * Finds the arcs, sorted by caller. Folded recursive calls are calls of the arc from the function to itself.
 *
 * Nodes are put in order of their callers first, so that arcs of one caller are told apart by a mark
 * for each callee: looking pairs up in a hash table takes five times as long.
 */
export function findArcs(tree: Tree, functions: number): Arcs {
  const { calls, recursive } = tree;
  const starts = new Uint32Array(functions + 1);
  for (let node = 0; node < tree.length; node++) {
    if (tree.parent[node] !== NONE) starts[tree.fn[tree.parent[node]] + 1]++;
  }
  for (let fn = 0; fn < functions; fn++) starts[fn + 1] += starts[fn];
  const called = new Uint32Array(starts[functions]);
  const next = starts.slice();
  for (let node = 0; node < tree.length; node++) {
    if (tree.parent[node] !== NONE) called[next[tree.fn[tree.parent[node]]]++] = node;
  }
  const folded = calls && recursive ? foldedCalls(tree, functions) : null;
  const ofNode = new Uint32Array(tree.length).fill(NONE);
  const arcOf = new Uint32Array(functions).fill(NONE);
  const callers: number[] = [];
  const callees: number[] = [];
  const counted: number[] = [];
  for (let fn = 0; fn < functions; fn++) {
    const firstArc = callers.length;
    const arcTo = (callee: number): number => {
      const known = arcOf[callee];
      // Marks of callers before this one are below its first arc.
      if (known !== NONE && known >= firstArc) return known;
      callers.push(fn);
      callees.push(callee);
      counted.push(0);
      return (arcOf[callee] = callers.length - 1);
    };
    for (let at = starts[fn]; at < starts[fn + 1]; at++) {
      const node = called[at];
      const arc = arcTo(tree.fn[node]);
      ofNode[node] = arc;
      if (calls) counted[arc] += calls[node] - (recursive ? Math.min(recursive[node], calls[node]) : 0);
    }
    if (folded && folded[fn] > 0) counted[arcTo(fn)] += folded[fn];
  }
  return { caller: new Uint32Array(callers), callee: new Uint32Array(callees), calls: new Float64Array(counted), ofNode };
}

/** By function: calls of itself that the recursion rule folded. */
function foldedCalls(tree: Tree, functions: number): Float64Array {
  const folded = new Float64Array(functions);
  for (let node = 0; node < tree.length; node++) folded[tree.fn[node]] += Math.min(tree.recursive![node], tree.calls![node]);
  return folded;
}

/** The costs of functions and arcs in one column. */
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

/**
 * Where nodes stand among the activations of their functions and arcs. It is the same for all metrics,
 * so it is found once.
 */
export interface Places {
  /** By node: marks, see below. */
  marks: Uint8Array;
  /** By node: the arc by which the outermost activation of its function on the path was called; `NONE` for roots. */
  outermostArc: Uint32Array;
  /** By node: the arc below the innermost activation around it of its function, on the way to it; `NONE` where there is none. */
  around: Uint32Array;
  /** By arc: 1 where all of its calls were made below other activations of the callee. */
  nested: Uint8Array;
}

/** It is the outermost activation of its function; the outermost one of its arc. */
const OUTERMOST = 1;
const OUTERMOST_OF_ARC = 2;
/** Its own cost was asked for directly by the caller of the outermost activation; by its own caller. */
const ASKED_OUTERMOST = 4;
const ASKED = 8;

/** Finds the places in one walk. */
export function places(tree: Tree, arcs: Arcs, functions: number): Places {
  const marks = new Uint8Array(tree.length);
  const outermostArc = new Uint32Array(tree.length);
  const aroundArc = new Uint32Array(tree.length).fill(NONE);
  const active = new Uint32Array(arcs.caller.length);
  const nested = new Uint8Array(arcs.caller.length);
  const entered = new Uint8Array(arcs.caller.length);
  // By function: the depth of its innermost and outermost activation on the path; innermost is NONE
  // while there is none.
  const innermost = new Uint32Array(functions).fill(NONE);
  const outermost = new Uint32Array(functions);
  let path = new Uint32Array(256);
  let enclosing = new Uint32Array(256);
  let depth = 0;

  for (let node = 0; node < tree.length; node++) {
    const parent = tree.parent[node];
    while (depth > 0 && (parent === NONE || path[depth - 1] !== parent)) {
      depth--;
      const left = path[depth];
      innermost[tree.fn[left]] = enclosing[depth];
      if (arcs.ofNode[left] !== NONE) active[arcs.ofNode[left]]--;
    }
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
    let mark = 0;
    if (around === NONE) {
      outermost[fn] = depth;
      mark |= OUTERMOST;
    } else {
      aroundArc[node] = arcs.ofNode[path[around + 1]];
    }
    if (arc !== NONE && active[arc]++ === 0) mark |= OUTERMOST_OF_ARC;
    if (arc !== NONE) {
      entered[arc] |= mark & OUTERMOST;
      nested[arc] = 1 - entered[arc];
    }
    const first = outermost[fn];
    const firstArc = arcs.ofNode[path[first]];
    if (firstArc !== NONE && innermost[tree.fn[path[first - 1]]] === first - 1) mark |= ASKED_OUTERMOST;
    if (arc !== firstArc && depth > 0 && tree.fn[path[depth - 1]] !== fn) mark |= ASKED;
    outermostArc[node] = firstArc;
    marks[node] = mark;
    depth++;
  }
  return { marks, outermostArc, around: aroundArc, nested };
}

function emptyTally(arcs: Arcs, functions: number): Tally {
  const ofArcs = () => new Float64Array(arcs.caller.length);
  return {
    self: new Float64Array(functions), total: new Float64Array(functions),
    arcTotal: ofArcs(), fromSelf: ofArcs(), fromTotal: ofArcs(), toSelf: ofArcs(), toTotal: ofArcs(),
  };
}

/** Measures functions and arcs in one pass over the nodes. `sums` are those of subtrees. */
export function tally(tree: Tree, arcs: Arcs, places: Places, own: ArrayLike<number>, sums: ArrayLike<number>, functions: number): Tally {
  const found = emptyTally(arcs, functions);
  const { self, total, arcTotal, fromSelf, fromTotal, toSelf, toTotal } = found;
  const { marks, outermostArc, around } = places;
  const { ofNode } = arcs;
  for (let node = 0; node < tree.length; node++) {
    const sum = sums[node];
    // Without any cost below it, a node adds nothing.
    if (sum === 0) continue;
    const mark = marks[node];
    const arc = ofNode[node];
    const outer = (mark & OUTERMOST) !== 0;
    if (outer) total[tree.fn[node]] += sum;
    if (arc !== NONE) {
      if (mark & OUTERMOST_OF_ARC) arcTotal[arc] += sum;
      toTotal[arc] += sum;
      if (outer) fromTotal[arc] += sum;
    }
    // The nodes below are now below an activation further in, no longer below the one around it.
    if (!outer) toTotal[around[node]] -= sum;
    const cost = own[node];
    if (cost === 0) continue;
    self[tree.fn[node]] += cost;
    const first = outermostArc[node];
    if (first !== NONE) {
      fromSelf[first] += cost;
      if (mark & ASKED_OUTERMOST) toSelf[first] += cost;
    }
    if (mark & ASKED) toSelf[arc] += cost;
  }
  return found;
}

/** The nodes of a tree by the arc that they were called through, with their places in the same order. */
export interface ByArc extends Groups {
  marks: Uint8Array;
  outermostArc: Uint32Array;
  around: Uint32Array;
}

export function byArc(arcs: Arcs, { marks, outermostArc, around }: Places): ByArc {
  const groups = grouped(arcs.ofNode, arcs.caller.length);
  const of = <T extends Uint8Array | Uint32Array>(column: T): T => column.map((_, at) => column[groups.items[at]]) as T;
  return { ...groups, marks: of(marks), outermostArc: of(outermostArc), around: of(around) };
}

/**
 * Measures functions and arcs as `tally` does, one arc after the other. What an arc's nodes cost is added up in one place,
 * which takes less time than adding each node to its arcs. It pays for many columns of one tree.
 */
export function tallyByArc(tree: Tree, arcs: Arcs, byArc: ByArc, own: Float64Array, sums: Float64Array, functions: number): Tally {
  const found = emptyTally(arcs, functions);
  const { self, total, arcTotal, fromSelf, fromTotal, toSelf, toTotal } = found;
  const { starts, items, marks, outermostArc, around } = byArc;
  const count = arcs.caller.length;
  for (let arc = 0; arc < count; arc++) {
    let [all, outer, ofArc, spent, mine, asked] = [0, 0, 0, 0, 0, 0];
    for (let at = starts[arc]; at < starts[arc + 1]; at++) {
      const node = items[at];
      const sum = sums[node];
      // Without any cost below it, a node adds nothing.
      if (sum === 0) continue;
      const mark = marks[at];
      const cost = own[node];
      const first = outermostArc[at];
      all += sum;
      spent += cost;
      if (mark & OUTERMOST_OF_ARC) ofArc += sum;
      if (mark & OUTERMOST) outer += sum;
      // The nodes below are now below an activation further in, no longer below the one around it.
      else toTotal[around[at]] -= sum;
      if (mark & ASKED) asked += cost;
      if (first === arc) {
        mine += cost;
        if (mark & ASKED_OUTERMOST) asked += cost;
      } else if (first !== NONE) {
        fromSelf[first] += cost;
        if (mark & ASKED_OUTERMOST) toSelf[first] += cost;
      }
    }
    const callee = arcs.callee[arc];
    arcTotal[arc] = ofArc;
    fromSelf[arc] += mine;
    fromTotal[arc] = outer;
    toSelf[arc] += asked;
    toTotal[arc] += all;
    self[callee] += spent;
    total[callee] += outer;
  }
  for (const root of tree.roots) {
    self[tree.fn[root]] += own[root];
    total[tree.fn[root]] += sums[root];
  }
  return found;
}

/** Measures functions and arcs of a tree. */
export function walk(tree: Tree, arcs: Arcs, own: ArrayLike<number>, functions: number): Tally {
  return tally(tree, arcs, places(tree, arcs, functions), own, totals(tree, own), functions);
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
