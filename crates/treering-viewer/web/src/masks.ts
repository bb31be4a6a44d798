// The functions that a search or a transform means.

import { computed } from "@preact/signals";
import { findMatches, knownMatches } from "./matcher.ts";
import { runCost } from "./measures.ts";
import { parseQuery, type Searchable } from "./model/search.ts";
import { basename } from "./profile.ts";
import { route } from "./route.ts";
import { analysis, failed, theProfile } from "./state.ts";

/** By function: 1 where a transform's target means it. */
export function maskOf(target: string): Uint8Array {
  const mask = new Uint8Array(theProfile().functions);
  const [kind, text] = [target.slice(0, 2), target.slice(2)];
  if (kind === "f:") {
    const fn = theProfile().find(text);
    if (fn !== null) mask[fn] = 1;
    return mask;
  }
  const query = parseQuery(text);
  for (let fn = 1; fn < theProfile().functions; fn++) {
    if (kind === "m:") mask[fn] = theProfile().module(fn) === text ? 1 : 0;
    else mask[fn] = query.matches(searchable(fn), () => shares(fn)) ? 1 : 0;
  }
  return mask;
}

function searchable(fn: number): Searchable {
  const name = theProfile().name(fn);
  const regex = (written: string) => {
    const found = knownMatches(theProfile(), written);
    return found instanceof Uint8Array && found[fn] === 1;
  };
  return { short: name.qualifier + name.last, full: name.full, module: basename(theProfile().module(fn)), file: theProfile().file(fn), regex };
}

/** Why a search cannot be used; null where it can. */
export function searchProblem(text: string): string | null {
  const { problem, regexes } = parseQuery(text);
  return problem ?? (regexes.some((regex) => knownMatches(theProfile(), regex) === "slow") ? "takes too long on these names: write it without nested repetition" : null);
}

function shares(fn: number): { self: number; total: number } {
  const found = analysis.peek();
  const whole = found ? runCost(found.metric, "now") : 0;
  if (!found || whole === 0) return { self: 0, total: 0 };
  return { self: (100 * found.now.self[fn]) / whole, total: (100 * found.now.total[fn]) / whole };
}

/** By function: 1 where the search means it; null without a search. */
export const matches = computed<Uint8Array | null>(() => {
  const text = route.value?.q ?? "";
  if (!text.trim() || !analysis.value) return null;
  const unknown = parseQuery(text).regexes.filter((regex) => knownMatches(theProfile(), regex) === undefined);
  unknown.forEach((regex) => void findMatches(theProfile(), regex).catch(failed));
  return unknown.length ? before : (before = maskOf(`q:${text}`));
});
/** The last matches: they stay until a regular expression is looked up. */
let before: Uint8Array | null = null;
