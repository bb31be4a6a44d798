// The costs of the shown part, with their intervals.

import type { Analysis, Side } from "./model/analysis.ts";
import { intervalOf, type Measure } from "./model/interval.ts";
import type { Merged } from "./model/merged.ts";
import { isCompared, route } from "./route.ts";
import { analysis, secondAnalysis, theProfile } from "./state.ts";

/** The cost that percents are of: that of the run, or of its selected part. */
export function runCost(metric: number, side: "now" | "base"): number {
  return partMeasure(metric, side)?.cost ?? wholeCost(metric, side);
}

/** The cost of the whole run, whatever is selected. */
export function wholeCost(metric: number, side: "now" | "base"): number {
  const known = theProfile().head.metrics[metric];
  return side === "base" ? known.baseCost : known.runCost;
}

/** The cost that percents of a side are of: of two profiles as they were measured, that of the base's run, so that they differ by the change. */
export function percentCost(metric: number, side: "now" | "base"): number {
  const isMeasured = theProfile().head.baseRuns !== null && !route.value.normalised;
  return (isMeasured && runCost(metric, "base")) || runCost(metric, side);
}

/** The number by which costs of the base are multiplied where both runs are taken as equally long. */
export function baseFactor(metric: number): number {
  const [base, now] = [runCost(metric, "base"), runCost(metric, "now")];
  return route.value.normalised && !isCompared() && base > 0 ? now / base : 1;
}

/** The cost that changes are parts of. */
export function changeCost(metric: number): number {
  return percentCost(metric, isCompared() ? "base" : "now") || 1;
}

/** The costs of the selected part of the run; null where it is shown as a whole. */
export function partMeasure(metric: number, side: "now" | "base" = "now"): Measure | null {
  const of = (found: Analysis) => (side === "base" ? found.basePart : found.part);
  for (const found of [analysis.value, secondAnalysis.value]) {
    const part = found && of(found);
    if (part && found.metric === metric) return part;
    // Lines may be known of the samples only.
    if (part && theProfile().head.metrics[found.metric].samples === metric) return { ...part, cost: part.samples };
  }
  return null;
}

/** The costs of the run or of its selected part, before anything else was left out. */
function runMeasure(metric: number, side: "now" | "base"): Measure {
  const part = partMeasure(metric, side);
  if (part) return part;
  const known = theProfile().head.metrics[metric];
  return side === "base"
    ? { cost: known.baseCost, samples: known.baseSamples, squares: known.baseSquares, unseen: known.baseUnseen }
    : { cost: known.runCost, samples: known.runSamples, squares: known.runSquares, unseen: known.runUnseen };
}

/** The 95 % interval of a cost as shares of the run; null for exact metrics. */
export function interval(metric: number, side: "now" | "base", measure: Measure): [number, number] | null {
  const known = theProfile().head.metrics[metric];
  return known.samples === null ? null : intervalOf(measure, runMeasure(metric, side), known.weights);
}

/** The costs of a node of a merged tree. */
export function nodeMeasure(tree: Merged, which: "self" | "total", node: number, side: "now" | "base" = "now"): Measure {
  const from = side === "base" ? tree.stride : 0;
  const column = (at: number) => (at < tree.stride ? tree[which][from + at][node] : 0);
  return { cost: column(0), samples: column(1), squares: column(2), unseen: column(3) };
}

/** The keys of what an analysis holds of functions and arcs. */
export type Key = "self" | "total" | "arcTotal" | "fromSelf" | "fromTotal" | "toSelf" | "toTotal";

/** The costs of a function or an arc. */
export function measureOf(side: Side, key: Key, at: number): Measure {
  return {
    cost: side[key][at], samples: side.samples?.[key][at] ?? 0, squares: side.squares?.[key][at] ?? 0, unseen: side.unseen?.[key][at] ?? 0,
  };
}

/** The interval of a function's cost: as Treering found it from several runs, else by its samples. */
export function functionInterval(found: Analysis, which: "self" | "total", fn: number): [number, number] | null {
  const known = theProfile().data.intervals[found.metric];
  if (known && !route.peek().steps.length && !found.base) {
    const [low, high] = which === "self" ? [known.selfLow[fn], known.selfHigh[fn]] : [known.totalLow[fn], known.totalHigh[fn]];
    return low >= 0 ? [low, high] : null;
  }
  return interval(found.metric, "now", measureOf(found.now, which, fn));
}
