// Costs as the reader wants to see them.

import { analysis, runCost, shownMetric, theProfile, type CostUnit } from "../state.ts";
import { format, grouped, PERCENT, scaleFor, signed, type Scale } from "../model/numbers.ts";

/** How a column of costs is written: the unit chosen, and the scale that suits its largest number. */
export interface Column {
  head: string;
  /** The number that is shown for a cost; null where it cannot be known. */
  value(cost: number, parent?: number, calls?: number, samples?: number): number | null;
  scale: Scale;
}

/** The column for costs of the present metric in a unit. */
export function costColumn(unit: CostUnit, largest: number, side: "now" | "base" = "now", metric = shownMetric()): Column {
  const known = theProfile().head.metrics[metric];
  const whole = runCost(metric, side);
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
      return { head: scale.suffix, scale, value: (cost) => cost };
    }
  }
}

/** A number of a column; empty where it is unknown. */
export function text(column: Column, value: number | null): string {
  return value === null ? "" : format(value, column.scale);
}

/** A difference of a column, with its sign. */
export function delta(column: Column, value: number | null): string {
  return value === null ? "" : signed(value, column.scale);
}

/** Calls, and nothing where nobody counted them. */
export function callsText(calls: number | null): string {
  return calls === null || (calls === 0 && theProfile().head.countsApart) ? "" : grouped(calls);
}

/** The units that the present metric can be shown in. */
export function unitsOf(metric: number): [CostUnit, string][] {
  const known = theProfile().head.metrics[metric];
  const natural = { nanoseconds: "time", bytes: "bytes", count: known.name }[known.unit];
  const units: [CostUnit, string][] = [["run", "% of run"], ["parent", "% of parent"], ["natural", natural]];
  if (analysis.value?.calls) units.push(["call", "per call"]);
  if (known.samples !== null) units.push(["samples", "samples"]);
  return units;
}
