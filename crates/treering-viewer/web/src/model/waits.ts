// Waits by place: how often and how long threads waited there, and for what.

import { NONE, type Tree } from "./tree.ts";
import { READY, type Slots, type Sums } from "./timeline.ts";

/** The waits of one kind in one place. */
export interface Place {
  /** The innermost of the program's own functions, or of all where none is its own; 0 for those without a processor. */
  fn: number;
  /** An index of `WAITS`. */
  kind: number;
  count: number;
  ns: number;
  /** The longest of them; null where only their sum is known. */
  longest: { from: number; to: number; thread: number } | null;
}

/** The places of the waits in slots, the longest sums first; `own` says of functions whether they are the program's. */
export function waitPlaces(sums: Sums, tree: Tree, threadOf: Uint32Array, own: Uint8Array, parts: readonly Slots[], shows: (node: number) => boolean): Place[] {
  const { waits, costs, first, node } = sums.timeline;
  const found = new Map<string, Place>();
  if (!waits) return [];
  const placeOf = (of: number, kind: number): Place => {
    const fn = kind === READY ? 0 : functionAt(tree, of, own);
    const key = `${kind} ${fn}`;
    let place = found.get(key);
    if (!place) found.set(key, (place = { fn, kind, count: 0, ns: 0, longest: null }));
    return place;
  };
  for (let wait = 0; wait < waits.start.length; wait++) {
    const at = waits.node[wait];
    if (!shows(at)) continue;
    const [from, to] = [waits.start[wait], waits.end[wait]];
    const ns = sums.overlap(from, to, parts);
    if (ns === 0) continue;
    const place = placeOf(at, waits.kind[wait]);
    place.count++;
    place.ns += ns;
    if (!place.longest || to - from > place.longest.to - place.longest.from) place.longest = { from, to, thread: threadOf[at] };
  }
  const [times, counts] = [costs[waits.time], costs[waits.count]];
  for (const [from, to] of parts) {
    for (let entry = first[from]; entry < first[to]; entry++) {
      const at = node[entry];
      if ((!times?.[entry] && !counts?.[entry]) || !shows(at)) continue;
      const place = placeOf(at, waits.kindOf[at]);
      place.ns += times?.[entry] ?? 0;
      place.count += counts?.[entry] ?? 0;
    }
  }
  return [...found.values()].sort((a, b) => b.ns - a.ns || a.fn - b.fn);
}

function functionAt(tree: Tree, node: number, own: Uint8Array): number {
  for (let at = node; at !== NONE && tree.parent[at] !== NONE; at = tree.parent[at]) if (own[tree.fn[at]] === 1) return tree.fn[at];
  return tree.fn[node];
}
