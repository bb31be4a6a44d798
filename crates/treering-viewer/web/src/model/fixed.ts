// Functions and arcs of profiles that have no tree, as Treering worked them out.

import { type Analysis, largestFirst, type Side } from "./analysis.ts";
import type { Fixed } from "../profile.ts";

/** Functions and arcs that Treering worked out; `shown` is the cost of each side together. */
export function analysisOf(fixed: Fixed, metric: number, count: number, shown: Record<"now" | "base", number>, estimated: boolean): Analysis {
  const spread = (column: ArrayLike<number>) => {
    const wide = new Float64Array(count);
    fixed.functions.fn.forEach((fn, at) => (wide[fn] = column[at]));
    return wide;
  };
  const { caller, callee } = fixed.arcs;
  const cycle = Uint32Array.from(spread(fixed.functions.cycle));
  // Without stacks, calls within a cycle are those that its cost was counted for already.
  const within = (arc: number) => cycle[caller[arc]] > 0 && cycle[caller[arc]] === cycle[callee[arc]] && fixed.arcs.now.fromTotal[arc] === 0;
  const sorted = (keys: ArrayLike<number>) =>
    Uint32Array.from({ length: keys.length }, (_, at) => at).sort((a, b) => keys[a] - keys[b] || a - b);
  const floats = (column: ArrayLike<number>) => Float64Array.from(column);
  const sideOf = (side: "now" | "base"): Side | null => {
    const [functions, arcs] = [fixed.functions[side], fixed.arcs[side]];
    return functions && arcs ? {
      self: spread(functions.self), total: spread(functions.total), samples: null, squares: null, unseen: null,
      arcTotal: floats(arcs.total), fromSelf: floats(arcs.fromSelf), fromTotal: floats(arcs.fromTotal),
      toSelf: floats(arcs.toSelf), toTotal: floats(arcs.toTotal), shown: shown[side],
    } : null;
  };
  const now = sideOf("now")!;
  return {
    metric, now, base: sideOf("base"), part: null, basePart: null, bySelf: largestFirst(now.self, now.total), byTotal: largestFirst(now.total, now.self), caller: Uint32Array.from(caller), callee: Uint32Array.from(callee),
    arcCalls: fixed.arcs.calls && floats(fixed.arcs.calls),
    arcsByCaller: sorted(caller), arcsByCallee: sorted(callee), nested: Uint8Array.from(caller, (_, arc) => (within(arc) ? 1 : 0)),
    calls: fixed.functions.calls && spread(fixed.functions.calls),
    recursiveCalls: fixed.functions.recursive && spread(fixed.functions.recursive),
    cycle,
    // Calls of a function by itself have no cost of their own, however the others are known.
    leastDepth: new Uint32Array(count), estimated,
  };
}
