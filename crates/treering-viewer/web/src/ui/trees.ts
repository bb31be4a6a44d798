// Merged trees as signals, asked of the worker when a pane wants them.

import { signal, type Signal } from "@preact/signals";
import type { Merged, Request } from "../model/merged.ts";
import { askMerged, failure, generation, hasTree, route } from "../state.ts";

/** Trees below this part of their root are not asked for: no screen shows them. */
const LEAST = 2e-5;

export function callees(focus: number | null, fold: boolean): Request {
  return { focus, direction: "callees", fold, least: LEAST };
}

export function callers(focus: number | null): Request {
  return { focus, direction: "callers", fold: false, least: focus === null ? 5e-4 : 1e-4 };
}

const known = new Map<string, { at: string; tree: Signal<Merged | null> }>();

/** The tree; null until the worker has made it. While a newer one is made, the old one stays. */
export function loadedTree(request: Request): Signal<Merged | null> {
  const key = JSON.stringify(request);
  const at = `${generation.value} ${route.value.metric} ${JSON.stringify(route.value.steps)}`;
  let entry = known.get(key);
  if (!entry) {
    if (known.size > 12) known.delete(known.keys().next().value!);
    known.set(key, (entry = { at: "", tree: signal(null) }));
  }
  if (entry.at !== at && hasTree() && generation.value > 0) {
    entry.at = at;
    const wanted = entry;
    askMerged(request).then(
      (tree) => wanted.at === at && (wanted.tree.value = tree),
      (error: Error) => (failure.value = `a tree cannot be made: ${error.message}`),
    );
  }
  return entry.tree;
}
