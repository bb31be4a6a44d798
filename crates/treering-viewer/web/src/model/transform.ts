// Transforms: what a reader leaves out or joins. Each makes a new tree from the one before it.

import type { Column } from "./slabs.ts";
import { NONE, type Tree, threadOfNodes } from "./tree.ts";

/** A transform; `mask` has 1 for the functions that it is about. */
export type Transform =
  | { kind: "focus" | "ignore" | "hide"; mask: Uint8Array }
  | { kind: "threads"; keep: Uint8Array };

/** A tree after transforms, and where the costs of the recorded nodes went. */
export interface Transformed {
  tree: Tree;
  /** By recorded node: its node now, `NONE` where its cost was left out. */
  place: Uint32Array | null;
}

/** Applies transforms in order. */
export function transform(recorded: Tree, transforms: Transform[]): Transformed {
  let state: Transformed = { tree: recorded, place: null };
  for (const next of transforms) state = chain(state, step(state.tree, next));
  return state;
}

/** Self costs after transforms. */
export function carry(state: Transformed, costs: Column): Column | Float64Array {
  if (!state.place) return costs;
  const moved = new Float64Array(state.tree.length);
  for (let node = 0; node < costs.length; node++) {
    const to = state.place[node];
    if (to !== NONE) moved[to] += costs[node];
  }
  return moved;
}

function chain(first: Transformed, then: { tree: Tree; place: Uint32Array }): Transformed {
  if (!first.place) return then;
  const place = first.place.map((to) => (to === NONE ? NONE : then.place[to]));
  return { tree: then.tree, place };
}

function step(tree: Tree, transform: Transform): { tree: Tree; place: Uint32Array } {
  switch (transform.kind) {
    case "hide":
      return hide(tree, transform.mask);
    default:
      return keep(tree, kept(tree, transform));
  }
}

/** By node: whether what was passed in it stays. */
function kept(tree: Tree, transform: Exclude<Transform, { kind: "hide" }>): Uint8Array {
  const stays = new Uint8Array(tree.length);
  if (transform.kind === "threads") {
    const thread = threadOfNodes(tree);
    for (let node = 0; node < tree.length; node++) stays[node] = transform.keep[thread[node]];
    return stays;
  }
  const { mask } = transform;
  for (let node = 0; node < tree.length; node++) {
    const parent = tree.parent[node];
    const matches = mask[tree.fn[node]];
    if (transform.kind === "focus") stays[node] = matches || (parent !== NONE && stays[parent]) ? 1 : 0;
    else stays[node] = !matches && (parent === NONE || stays[parent]) ? 1 : 0;
  }
  return stays;
}

/** Keeps nodes with their callers. Roots stay, so that threads keep their numbers. */
function keep(tree: Tree, stays: Uint8Array): { tree: Tree; place: Uint32Array } {
  const needed = stays.slice();
  for (let node = tree.length - 1; node >= 0; node--) {
    const parent = tree.parent[node];
    if (parent === NONE) needed[node] = 1;
    else if (needed[node]) needed[parent] = 1;
  }
  const nodes: number[] = [];
  const now = new Uint32Array(tree.length).fill(NONE);
  for (let node = 0; node < tree.length; node++) {
    if (!needed[node]) continue;
    now[node] = nodes.length;
    nodes.push(node);
  }
  const parent = (node: number) => (tree.parent[node] === NONE ? NONE : now[tree.parent[node]]);
  const place = now.map((to, node) => (stays[node] ? to : NONE));
  return { tree: copy(tree, nodes, parent, (node) => tree.site[node], now, stays), place };
}

/** Leaves functions out; what they cost goes to their callers, which call what they called. */
function hide(tree: Tree, mask: Uint8Array): { tree: Tree; place: Uint32Array } {
  const nodes: number[] = [];
  const now = new Uint32Array(tree.length);
  const site = new Uint32Array(tree.length);
  for (let node = 0; node < tree.length; node++) {
    const parent = tree.parent[node];
    const hidden = parent !== NONE && mask[tree.fn[node]];
    const under = parent !== NONE && tree.parent[parent] !== NONE && mask[tree.fn[parent]];
    site[node] = under ? site[parent] : tree.site[node];
    if (hidden) {
      now[node] = now[parent];
    } else {
      now[node] = nodes.length;
      nodes.push(node);
    }
  }
  const parent = (node: number) => (tree.parent[node] === NONE ? NONE : now[tree.parent[node]]);
  return { tree: copy(tree, nodes, parent, (node) => site[node], now, null), place: now };
}

function copy(
  tree: Tree,
  nodes: number[],
  parent: (node: number) => number,
  site: (node: number) => number,
  now: Uint32Array,
  counted: Uint8Array | null,
): Tree {
  const count = (column: Column | null) =>
    column && Float64Array.from(nodes, (node) => (counted && !counted[node] ? 0 : column[node]));
  return {
    length: nodes.length,
    parent: Uint32Array.from(nodes, parent),
    fn: Uint32Array.from(nodes, (node) => tree.fn[node]),
    site: Uint32Array.from(nodes, site),
    inlined: Uint8Array.from(nodes, (node) => tree.inlined[node]),
    calls: count(tree.calls),
    recursive: count(tree.recursive),
    roots: tree.roots.map((root) => now[root]),
  };
}
