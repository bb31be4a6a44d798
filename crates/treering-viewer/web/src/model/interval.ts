// The 95 % interval of a share of samples: Wilson 1927, as in `treering report`.

const Z = 1.959963984540054;

/** Bounds of a share of the run, 0 to 1; null without samples. */
export function wilson(share: number, samples: number): [number, number] | null {
  if (!(samples > 0)) return null;
  const z2 = Z * Z;
  const centre = share + z2 / (2 * samples);
  const half = Z * Math.sqrt((share * (1 - share)) / samples + z2 / (4 * samples * samples));
  const scale = 1 + z2 / samples;
  return [clamp((centre - half) / scale, 0, share), clamp((centre + half) / scale, share, 1)];
}

/** The 95 % half width of the difference of two independent costs, from their intervals. */
export function halfWidthOfDifference(a: [number, number] | null, b: [number, number] | null): number {
  const half = (bounds: [number, number] | null) => (bounds ? (bounds[1] - bounds[0]) / 2 : 0);
  return Math.hypot(half(a), half(b));
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}

/** The numbers of a cost that an interval needs. */
export interface Measure {
  cost: number;
  samples: number;
  /** Sum of the squared weights of its samples, and what of it no sample could fall into. */
  squares: number;
  unseen: number;
}

/** How samples of a metric weigh. */
export interface Weights {
  per: number;
  hidden: number;
  knownCost: boolean;
}

/** The 95 % interval of a cost as shares of the run, as in `treering report`; null without samples. */
export function intervalOf(measure: Measure, run: Measure, weights: Weights | null): [number, number] | null {
  if (!(run.cost > 0) || !(run.samples > 0)) return null;
  const share = measure.cost / run.cost;
  if (!weights) return wilson(share, run.samples);
  const inShares = (squares: number) => (squares * weights.per) / (run.cost * run.cost);
  const [squares, all] = [inShares(measure.squares), inShares(run.squares)];
  const binomial = share * (1 - share);
  const variance = weights.knownCost
    ? squares - (share * share) / run.samples
    : (1 - share) ** 2 * squares + share * share * (all - squares);
  const equal = binomial > 0 && variance > 0 ? Math.min(binomial / variance, run.samples) : run.samples;
  const chance = wilson(share, equal);
  if (!chance) return null;
  const others = Math.max(0, run.unseen - measure.unseen) / run.cost;
  const above = Math.hypot(chance[1] - share, weights.hidden / run.cost);
  return [clamp(chance[0] - measure.unseen / run.cost, 0, share), clamp(share + above + others, share, 1)];
}
