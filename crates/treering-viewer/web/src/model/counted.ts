// Calls that were counted apart from the stacks, as `treering gprof` does.

import type { Arcs } from "./walk.ts";

/** Counted calls by caller and callee, each pair once; the caller is 0 where it is unknown. */
export interface Counted {
  caller: ArrayLike<number>;
  callee: ArrayLike<number>;
  /** 0 where the callee was called elsewhere as well, nobody knows how often. */
  calls: ArrayLike<number>;
}

/**
 * The arcs with the calls that were counted, and those that no sample was of behind the others; calls of
 * functions. A count of 0 means that nobody counted.
 */
export function withCounts(found: Arcs, counted: Counted, functions: number): { arcs: Arcs; calls: Float64Array; recursive: Float64Array } {
  const known = new Map<number, number>();
  const keyOf = (caller: number, callee: number) => caller * functions + callee;
  for (let arc = 0; arc < found.caller.length; arc++) known.set(keyOf(found.caller[arc], found.callee[arc]), arc);
  const caller = Array.from(found.caller);
  const callee = Array.from(found.callee);
  const arcCalls = caller.map(() => 0);
  const calls = new Float64Array(functions);
  const recursive = new Float64Array(functions);
  for (let at = 0; at < counted.calls.length; at++) {
    if (counted.calls[at] === 0) continue;
    const [from, to] = [counted.caller[at], counted.callee[at]];
    calls[to] += counted.calls[at];
    if (from === to) recursive[to] += counted.calls[at];
    const arc = known.get(keyOf(from, to));
    if (arc !== undefined) {
      arcCalls[arc] += counted.calls[at];
    } else {
      caller.push(from);
      callee.push(to);
      arcCalls.push(counted.calls[at]);
    }
  }
  for (let at = 0; at < counted.calls.length; at++) if (counted.calls[at] === 0) calls[counted.callee[at]] = recursive[counted.callee[at]] = 0;
  const arcs = { caller: new Uint32Array(caller), callee: new Uint32Array(callee), calls: new Float64Array(arcCalls), ofNode: found.ofNode };
  return { arcs, calls, recursive };
}
