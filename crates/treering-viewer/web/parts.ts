// Measures in node what the worker does when a part of the run is selected, by the processor time of its process;
// `bench.mjs time` runs it.

import { Model } from "./src/model/analysis.ts";
import { readTimeline } from "./src/model/timeline.ts";
import { readTree } from "./src/model/tree.ts";
import { callees } from "./src/requests.ts";
// @ts-expect-error: plain JavaScript
import { largeColumns } from "./timed.mjs";

/** Median and least of measured times by what was measured, in ms. */
export type Rows = Record<string, { numbers: [median: number, least: number]; flame: [median: number, least: number] }>;

/** Processor time of this process, in ms. */
function processor(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e3;
}

/** Selects each share of the run at several places, from anew; `weighted` samples have squares of weights, as those of `record`. */
export function partsOf(shares: number[], times: number, weighted: boolean): Rows {
  const { parent, fn, counts, roots, perSlot, node, amounts } = largeColumns();
  const slotNs = 4e6;
  const lengthNs = perSlot.length * slotNs;
  const thread = { name: "", tid: 0, process: "", pid: 0, run: 0 };
  const cost = counts.map((count: number) => count * 1e6);
  const recorded = readTree({ parent, fn, roots, costs: weighted ? [cost, counts, cost, counts] : [cost, counts], threads: roots.map(() => thread) });
  const none = { samples: null, squares: null, unseen: null };
  const metrics = weighted ? [{ samples: 1, squares: 2, unseen: 3 }, none, none, none] : [{ ...none, samples: 1 }, none];
  const model = new Model(recorded, metrics, 10_000, null);
  model.setTimeline(readTimeline({ slotNs, lengthNs, perSlot, node, costs: metrics.map((_, at) => (at === 1 ? amounts : null)), waits: null }));
  model.prepare(0);
  const spent = shares.map(() => ({ numbers: [] as number[], flame: [] as number[] }));
  for (let at = 0; at < times; at++) {
    shares.forEach((share, row) => {
      const from = ((lengthNs * (1 - share)) / times) * ((at * 7) % times);
      const start = processor();
      model.setPart({ from, to: from + share * lengthNs, period: null });
      model.analyse(0);
      const middle = processor();
      model.merged(0, callees(null, false));
      spent[row].numbers.push(middle - start);
      spent[row].flame.push(processor() - middle);
    });
  }
  const few = (values: number[]): [number, number] => {
    const sorted = values.sort((a, b) => a - b);
    return [sorted[sorted.length >> 1], sorted[0]].map((ms) => Math.round(ms * 10) / 10) as [number, number];
  };
  return Object.fromEntries(shares.map((share, row) => [share, { numbers: few(spent[row].numbers), flame: few(spent[row].flame) }]));
}
