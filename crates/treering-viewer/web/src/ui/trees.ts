// Merged trees as signals, asked of the worker when a pane wants them.

import { signal, type Signal } from "@preact/signals";
import type { MergedOf, Request } from "../model/merged.ts";
import { askMerged } from "../asking.ts";
import { route } from "../route.ts";
import { failure, hasTree } from "../state.ts";

/** How many nodes all trees that are kept may have; those of magnified pictures are large. */
const MOST = 200_000;

/** For how long after it was wanted a tree is kept in any case, in ms: views show several at once. */
const LATELY = 2_000;

const known = new Map<string, { at: string; tree: Signal<MergedOf | null>; wanted: number }>();

/** Lets go of the trees that were wanted longest ago, as long as there are too many nodes. */
function letGo() {
  let nodes = 0;
  for (const { tree } of known.values()) nodes += tree.peek()?.length ?? 0;
  for (const [key, entry] of known) {
    if (nodes <= MOST || performance.now() - entry.wanted < LATELY) return;
    nodes -= entry.tree.peek()?.length ?? 0;
    known.delete(key);
  }
}

let waiting = 0;

/** Whether every tree that a pane wants is there. */
export function treesAreThere(): boolean {
  return waiting === 0;
}

/** The tree; null until the worker has made it. While a newer one is made, the old one stays. */
export function loadedTree(request: Request): Signal<MergedOf | null> {
  const key = JSON.stringify(request);
  const at = stamp();
  const entry = known.get(key) ?? { at: "", tree: signal(null), wanted: 0 };
  entry.wanted = performance.now();
  // The last one in the map is the one that was wanted last.
  known.delete(key);
  known.set(key, entry);
  letGo();
  if (entry.at !== at && hasTree()) {
    entry.at = at;
    const wanted = entry;
    waiting++;
    askMerged(request).then(
      (tree) => wanted.at === at && (wanted.tree.value = tree),
      (error: Error) => (failure.value = `a tree cannot be made: ${error.message}`),
    ).finally(() => waiting--);
  }
  return entry.tree;
}

/** The metric and transforms of a tree. */
function stamp(): string {
  return `${route.value.metric} ${JSON.stringify(route.value.steps)}`;
}

/** Asks another version for the trees of this one; gives what puts them in their place. */
export async function inOtherVersion(ask: (request: Request) => Promise<MergedOf>): Promise<() => void> {
  const now = stamp();
  const shown = [...known].filter(([, entry]) => entry.at === now);
  const trees = await Promise.all(shown.map(([key]) => ask(JSON.parse(key))));
  return () => {
    for (const entry of known.values()) entry.at = "";
    shown.forEach(([, entry], at) => {
      entry.tree.value = trees[at];
      entry.at = stamp();
    });
  };
}

/** Forgets the trees of a version that numbers functions otherwise. */
export function forgetTrees() {
  for (const entry of known.values()) {
    entry.at = "";
    entry.tree.value = null;
  }
}
