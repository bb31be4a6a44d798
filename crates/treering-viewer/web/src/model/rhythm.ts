// Whether a course repeats itself, and its picture as columns of one period each.

/** A period that was found. */
export interface Rhythm {
  /** In bins of the course. */
  period: number;
  /** How much of the course a shift by the period explains: its autocorrelation, 1 for all of it. */
  strength: number;
  /** How exactly the period is known, in bins. */
  error: number;
}

/** Weaker ones are not told. */
const LEAST = 0.2;

/** The most bins that are compared with each other. */
const MOST = 4096;

/** The strongest period of a course, which repeats at least twice; null where there is none worth telling. */
export function rhythm(course: ArrayLike<number>): Rhythm | null {
  const step = Math.max(1, Math.ceil(course.length / MOST));
  const found = strongest(joined(course, step));
  return found && found.strength >= LEAST ? { period: found.period * step, strength: found.strength, error: step / 2 } : null;
}

function joined(course: ArrayLike<number>, step: number): Float64Array {
  const sums = new Float64Array(Math.floor(course.length / step));
  for (let at = 0; at < sums.length * step; at++) sums[Math.floor(at / step)] += course[at];
  return sums;
}

/** A course as it deviates from its mean. */
class Deviations {
  #of: Float64Array;
  #variance: number;

  constructor(course: ArrayLike<number>) {
    let sum = 0;
    for (let at = 0; at < course.length; at++) sum += course[at];
    const mean = sum / course.length;
    this.#of = Float64Array.from(course, (value) => value - mean);
    this.#variance = this.#of.reduce((all, one) => all + one * one, 0) / course.length;
  }

  correlation(lag: number): number {
    const of = this.#of;
    let sum = 0;
    for (let at = 0; at + lag < of.length; at++) sum += of[at] * of[at + lag];
    return this.#variance > 0 ? sum / (of.length - lag) / this.#variance : 0;
  }
}

function strongest(course: Float64Array): Rhythm | null {
  const to = Math.floor(course.length / 3);
  const deviations = new Deviations(course);
  const known = Float64Array.from({ length: to + 1 }, (_, lag) => (lag < 1 ? 1 : deviations.correlation(lag)));
  // Neighbours in time are alike: only behind the first valley does a peak tell of a repetition.
  let valley = 1;
  while (valley < to && known[valley] > 0) valley++;
  /** The lag of the greatest value between two. */
  const peak = (low: number, high: number) => {
    let best = low;
    for (let lag = low; lag <= Math.min(high, to); lag++) if (known[lag] > known[best]) best = lag;
    return best;
  };
  if (valley >= to) return null;
  let period = peak(valley, to);
  // A course that repeats after one period repeats after several: the shortest that is nearly as strong is meant.
  for (let parts = Math.min(20, Math.floor(period / valley)); parts > 1; parts--) {
    const about = period / parts;
    const shorter = peak(Math.max(valley, Math.floor(about * 0.97)), Math.ceil(about * 1.03));
    if (known[shorter] < 0.85 * known[period]) continue;
    period = shorter;
    break;
  }
  return { period, strength: known[period], error: 0.5 };
}

/** A course as columns, each a period long, of cells from above. All lengths are in ns. */
export interface Heat {
  columns: number;
  rows: number;
  /** By column and row: the cost for each ns; below 0 behind the end of the run. */
  cells: Float64Array;
  /** The least and the greatest value of the ramp. */
  limits: [number, number];
}

/** Cells of `rows` for each `column`; `before` is the cost before every bin. */
export function heat(before: Float64Array, binNs: number, lengthNs: number, [from, to]: [number, number], column: number, rows: number): Heat {
  const first = Math.floor(from / column);
  const columns = Math.max(1, Math.ceil(to / column) - first);
  const cells = new Float64Array(columns * rows).fill(-1);
  // Between the edges of bins, cost is taken to be passed evenly.
  const until = (ns: number) => {
    const at = Math.min(before.length - 1, ns / binNs);
    const bin = Math.min(before.length - 2, Math.floor(at));
    return before[bin] + (before[bin + 1] - before[bin]) * (at - bin);
  };
  for (let cell = 0; cell < cells.length; cell++) {
    const start = (first + Math.floor(cell / rows)) * column + ((cell % rows) * column) / rows;
    const end = Math.min(lengthNs, start + column / rows);
    if (end - start > (0.5 * column) / rows) cells[cell] = (until(end) - until(start)) / (end - start);
  }
  const known = cells.filter((one) => one >= 0).sort();
  const quantile = (part: number) => known[Math.min(known.length - 1, Math.floor(part * known.length))] ?? 0;
  return { columns, rows, cells, limits: [quantile(0.08), quantile(0.998)] };
}

/** The step of the ramp of a cell, from 0 to 5. */
export function heatStep(value: number, [least, most]: [number, number]): number {
  if (value <= least || most <= least) return value > 0 && most <= least ? 5 : 0;
  return Math.min(5, Math.floor(((value - least) / (most - least)) * 6));
}
