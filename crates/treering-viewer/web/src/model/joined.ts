// The trees of all threads as one, for parts of a run: equal chains of callers are one node, whatever its thread and
// its line. Nodes stand level by level, so that one pass backward sums subtrees and measures functions and arcs.

import { links as linksOf, type Links } from "./merged.ts";
import { type Arcs, type ByArc, byArc, type Places } from "./walk.ts";
import { NONE, type Tree } from "./tree.ts";

/** The joined tree. Its nodes are behind their parents, and children of one node are consecutive. */
export interface Joined {
  tree: Tree;
  links: Links;
  /** By node of the trees that were joined: its node. */
  place: Uint32Array;
  arcs: Arcs;
  places: Places;
  byArc: ByArc;
}

/** Joins trees. Where a node stands among activations depends on its callers only, so it is that of any of the joined ones. */
export function join(tree: Tree, known: { arcs: Arcs; places: Places; links: Links }, functions: number): Joined {
  const { first, next } = known.links;
  const place = new Uint32Array(tree.length);
  // By joined node: its nodes, which stand together, begin here.
  const from = new Uint32Array(tree.length + 1);
  const nodes = new Uint32Array(tree.length);
  const parent = new Uint32Array(tree.length);
  nodes.set(tree.roots);
  parent[0] = NONE;
  from[1] = tree.roots.length;
  let length = tree.roots.length > 0 ? 1 : 0;
  // By function: the child that has it now, and whose child that is.
  const child = new Uint32Array(functions);
  const childOf = new Uint32Array(functions).fill(NONE);
  const sizes = new Uint32Array(functions);
  for (let at = 0; at < length; at++) {
    const before = length;
    for (let member = from[at]; member < from[at + 1]; member++) {
      place[nodes[member]] = at;
      for (let node = first[nodes[member]]; node !== NONE; node = next[node]) {
        const fn = tree.fn[node];
        if (childOf[fn] !== at) {
          childOf[fn] = at;
          child[fn] = length;
          sizes[length - before] = 0;
          parent[length++] = at;
        }
        sizes[child[fn] - before]++;
      }
    }
    for (let added = before; added < length; added++) from[added + 1] = from[added] + sizes[added - before];
    // Each child's nodes go where its room begins; `sizes` says where the next one goes.
    for (let added = before; added < length; added++) sizes[added - before] = from[added];
    for (let member = from[at]; member < from[at + 1]; member++) {
      for (let node = first[nodes[member]]; node !== NONE; node = next[node]) nodes[sizes[child[tree.fn[node]] - before]++] = node;
    }
  }
  const one = Uint32Array.from({ length }, (_, at) => nodes[from[at]]);
  const of = <T extends Uint32Array | Uint8Array>(column: ArrayLike<number>, into: T): T => {
    for (let at = 0; at < length; at++) into[at] = column[one[at]];
    return into;
  };
  const inlined = new Uint8Array(length).fill(1);
  for (let node = 0; node < tree.length; node++) inlined[place[node]] &= tree.inlined[node];
  const joined: Tree = {
    length, parent: parent.slice(0, length), fn: of(tree.fn, new Uint32Array(length)), site: new Uint8Array(length), inlined,
    // How often a part of a run called anything is not known.
    calls: null, recursive: null, roots: Uint32Array.from(length > 0 ? [0] : []),
  };
  const { marks, outermostArc, around, nested } = known.places;
  const arcs: Arcs = { ...known.arcs, ofNode: of(known.arcs.ofNode, new Uint32Array(length)) };
  const places: Places = { marks: of(marks, new Uint8Array(length)), outermostArc: of(outermostArc, new Uint32Array(length)), around: of(around, new Uint32Array(length)), nested };
  return { tree: joined, links: linksOf(joined), place, arcs, places, byArc: byArc(arcs, places) };
}
