// The share of the run that a search matches: outermost matches, each stack once.

import { signal } from "@preact/signals";
import { callees, loadedTree } from "./trees.ts";
import { matches, route, runCost } from "../state.ts";

const share = signal<number | null>(null);
let lastKey = "";

/** Null until it is known. */
export function matchedShare(): number | null {
  const mask = matches.value;
  const tree = loadedTree(callees(null, false)).value;
  if (!mask || !tree) return null;
  const key = `${route.value.q}\n${route.value.metric}\n${tree.length}`;
  if (key !== lastKey) {
    lastKey = key;
    const inside = new Uint8Array(tree.length);
    let sum = 0;
    for (let node = 1; node < tree.length; node++) {
      const parent = tree.parent[node];
      if (inside[parent]) inside[node] = 1;
      else if (mask[tree.fn[node]]) {
        inside[node] = 1;
        sum += tree.total[0][node];
      }
    }
    const whole = runCost(route.value.metric, "now");
    share.value = whole ? sum / whole : null;
  }
  return share.value;
}
