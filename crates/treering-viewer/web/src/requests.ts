// The merged trees that the panes ask for.

import type { Request } from "./model/merged.ts";

/** Nodes below this part of a tree's root are not asked for: no screen shows them. */
const LEAST = 1e-4;

/** Less than that for each level of detail, which a reader asks for by magnifying. */
const MORE = 16;

export function callees(focus: number | null, fold: boolean, path: number[] = [], detail = 0): Request {
  return { focus, direction: "callees", fold, path, least: LEAST / MORE ** detail };
}

export function callers(focus: number | null, path: number[] = [], detail = 0): Request {
  return { focus, direction: "callers", fold: false, path, least: (focus === null ? 5e-4 : LEAST) / MORE ** detail };
}

/** The detail that a picture needs of which this part is magnified to the whole width. */
export function detailOf(part: number): number {
  return part > 0.25 ? 0 : Math.min(5, Math.ceil(Math.log(0.25 / part) / Math.log(MORE)));
}
