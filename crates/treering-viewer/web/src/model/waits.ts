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
  longest: { from: number; to: number; thread: number; end: End | null } | null;
  /** Those who ended them, the longest sums first. Together they have at most `count` and `ns`. */
  wakers: Waker[];
}

/** The end of a wait. */
export interface End {
  /** When the thread was made ready, in ns. */
  woken: number;
  /** An index of `WAKERS`. */
  kind: number;
  /** The function of a thread of the program, as of a place, or one that says what else it was; 0 where the stack is not known. */
  fn: number;
  /** The thread of the program; -1 for others. */
  thread: number;
}

/** Those of one kind who ended waits of a place in one function. */
export interface Waker {
  kind: number;
  fn: number;
  count: number;
  ns: number;
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
    if (!place) found.set(key, (place = { fn, kind, count: 0, ns: 0, longest: null, wakers: [] }));
    return place;
  };
  const endOf = (wait: number): End | null => {
    const kind = waits.wakerKind?.[wait];
    if (!kind || !waits.waker || !waits.woken) return null;
    const at = waits.waker[wait] - 1;
    const ofThread = kind <= 2;
    const fn = at < 0 || tree.parent[at] === NONE ? 0 : ofThread ? functionAt(tree, at, own) : kind === 3 ? 0 : outermost(tree, at);
    return { woken: waits.woken[wait], kind: kind - 1, fn, thread: ofThread && at >= 0 ? threadOf[at] : -1 };
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
    const end = endOf(wait);
    if (end) {
      let waker = place.wakers.find(({ kind, fn }) => kind === end.kind && fn === end.fn);
      if (!waker) place.wakers.push((waker = { kind: end.kind, fn: end.fn, count: 0, ns: 0 }));
      waker.count++;
      waker.ns += ns;
    }
    if (!place.longest || to - from > place.longest.to - place.longest.from) place.longest = { from, to, thread: threadOf[at], end };
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
  for (const { wakers } of found.values()) wakers.sort((a, b) => b.ns - a.ns || a.fn - b.fn);
  return [...found.values()].sort((a, b) => b.ns - a.ns || a.fn - b.fn);
}

function functionAt(tree: Tree, node: number, own: Uint8Array): number {
  for (let at = node; at !== NONE && tree.parent[at] !== NONE; at = tree.parent[at]) if (own[tree.fn[at]] === 1) return tree.fn[at];
  return tree.fn[node];
}

/** The function directly below the root. */
function outermost(tree: Tree, node: number): number {
  let at = node;
  while (tree.parent[at] !== NONE && tree.parent[tree.parent[at]] !== NONE) at = tree.parent[at];
  return tree.fn[at];
}
