// Costs as the reader wants to see them.

import { baseFactor, partMeasure, percentCost, runCost } from "../measures.ts";
import { isCompared, route, shownMetric, type CostUnit } from "../route.ts";
import { analysis, theProfile } from "../state.ts";
import { format, grouped, PERCENT, scaleFor, signed, type Scale } from "../model/numbers.ts";

/** How a column of costs is written: the unit chosen, and the scale that suits its largest number. */
export interface Column {
  head: string;
  /** The number that is shown for a cost; null where it cannot be known. */
  value(cost: number, parent?: number, calls?: number, samples?: number): number | null;
  /** The same of a cost that is known as a share of the run, as the bounds of intervals are. */
  ofShare(share: number, parent?: number, calls?: number): number | null;
  scale: Scale;
}

/** The column for costs of the present metric in a unit. */
export function costColumn(unit: CostUnit, largest: number, side: "now" | "base" = "now", metric = shownMetric()): Column {
  const known = theProfile().head.metrics[metric];
  const whole = runCost(metric, side);
  const column = unitColumn(isCompared() ? "natural" : unit, largest, metric, percentCost(metric, side), side === "base" ? baseFactor(metric) : 1);
  // Where samples weigh differently, a share of the cost is no share of their number.
  const samples = known.weights ? null : side === "base" ? known.baseSamples : known.runSamples;
  return { ...column, ofShare: (share, parent, calls) => column.value(share * whole, parent, calls, samples === null ? undefined : share * samples) };
}

function unitColumn(unit: CostUnit, largest: number, metric: number, whole: number, factor: number): Omit<Column, "ofShare"> {
  const known = theProfile().head.metrics[metric];
  switch (unit) {
    case "run":
      return { head: "%", scale: PERCENT, value: (cost) => (whole ? cost / whole : null) };
    case "parent":
      return { head: "% of parent", scale: PERCENT, value: (cost, parent) => (parent ? cost / parent : null) };
    case "samples":
      return { head: "samples", scale: { divisor: 1, digits: 0, suffix: "" }, value: (_c, _p, _n, samples) => samples ?? null };
    case "call": {
      const scale = scaleFor(known.unit, largest);
      return { head: `${scale.suffix} a call`, scale, value: (cost, _p, calls) => (calls ? cost / calls : null) };
    }
    default: {
      const scale = scaleFor(known.unit, largest, true);
      return { head: scale.suffix, scale, value: (cost) => cost * factor };
    }
  }
}

/** A number of a column; empty where it is unknown. */
export function text(column: Column, value: number | null): string {
  return value === null ? "" : format(value, column.scale);
}

/** An interval of a column, `8.5–10.5`; empty where it is unknown. */
export function between(column: Column, bounds: [number, number] | null, parent?: number, calls?: number): string {
  const [low, high] = bounds ? bounds.map((share) => column.ofShare(share, parent, calls)) : [null, null];
  return low === null || high === null ? "" : `${format(low, column.scale)}–${format(high, column.scale)}`;
}

/** A difference of a column, with its sign; an arrow says that it is more than chance. */
export function delta(column: Column, value: number | null, sure = false): string {
  if (value === null) return "";
  return sure ? `${value > 0 ? "▲" : "▼"} ${format(Math.abs(value), column.scale)}` : signed(value, column.scale);
}

/** Calls, and nothing where nobody counted them. */
export function callsText(calls: number | null): string {
  return calls === null || (calls === 0 && theProfile().head.countsApart) ? "" : grouped(calls);
}

/** The base of percents in a difference. */
export function percentWords(): string {
  return route.value.normalised ? "% of each run" : "% of the base’s run";
}

/** The units that the present metric can be shown in. */
export function unitsOf(metric: number): [CostUnit, string][] {
  const known = theProfile().head.metrics[metric];
  const natural = { nanoseconds: "time", bytes: "bytes", count: known.name }[known.unit];
  if (isCompared()) return [["natural", `${natural} per second`]];
  // Rows of a difference have a change, which no parent and no call has.
  if (theProfile().head.baseRuns) return [["run", percentWords()], ["natural", natural]];
  const units: [CostUnit, string][] = [["run", partMeasure(metric) ? "% of selection" : "% of run"], ["parent", "% of parent"], ["natural", natural]];
  // Costs and calls of different profiles that were merged make no average.
  const apart = theProfile().head.parameters["metrics without averages"]?.split(" | ") ?? [];
  if (analysis.value?.calls && !apart.includes(known.name)) units.push(["call", "per call"]);
  if (known.samples !== null) units.push(["samples", "samples"]);
  return units;
}
