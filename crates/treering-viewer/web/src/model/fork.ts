// Where the change between two runs divides.

import type { Merged } from "./merged.ts";

/** The part of a change that one callee must have for the change to be said to go on there. */
const NEARLY_ALL = 0.9;

/**
 * The node of a difference at which its change divides first: each one above it has a single callee with nearly all of the
 * change, whatever cancels. A function that calls nobody is shown below its caller.
 */
export function firstFork(tree: Merged): number {
  const by = (costs: Float64Array[], node: number) => Math.abs(costs[0][node] - costs[tree.stride][node]);
  let at = 0;
  for (;;) {
    let [largest, changed] = [-1, by(tree.self, at)];
    for (let child = tree.children[at]; child < tree.children[at + 1]; child++) {
      changed += by(tree.total, child);
      if (largest < 0 || by(tree.total, child) > by(tree.total, largest)) largest = child;
    }
    const isLeaf = largest >= 0 && tree.children[largest] === tree.children[largest + 1];
    if (largest < 0 || isLeaf || changed === 0 || by(tree.total, largest) < NEARLY_ALL * changed) return at;
    at = largest;
  }
}
