// The course of a run: what every node cost in every slot of time, and the sums of any part of it.

import type { Column } from "./slabs.ts";
import { NONE } from "./tree.ts";

/** Costs by slot and node, in the order of slots, and when threads waited. */
export interface Timeline {
  /** The length of a slot, how many there are, and the length of the run. */
  slotNs: number;
  slots: number;
  lengthNs: number;
  /** By slot: its first entry; behind the last one the number of entries. */
  first: Uint32Array;
  /** By entry: the recorded node. */
  node: Uint32Array;
  /** By entry, for each metric: the cost; null where a metric has no times of its own. */
  costs: (Column | null)[];
  waits: Waits | null;
}

/** Intervals in which threads were off the processor, by their start. */
export interface Waits {
  /** The metrics that their time and number are part of. */
  time: number;
  count: number;
  start: Column;
  end: Column;
  node: Column;
  /** An index of `WAITS`. */
  kind: Column;
  /** By recorded node: the kind of waits in it. */
  kindOf: Column;
  /** When the thread was made ready, in ns; null where it is known of no wait who ended it. */
  woken?: Column | null;
  /** The node of the waker plus 1; 0 where it is not known. */
  waker?: Column | null;
  /** An index of `WAKERS` plus 1; 0 where it is not known. */
  wakerKind?: Column | null;
}

/** The kinds of what ends waits; a soft interrupt where its stack does not tell whose it is. */
export const WAKERS = ["thread", "soft", "interrupt", "kernel", "program"] as const;

/** The kinds of waits. */
export const WAITS = ["lock", "io", "ready", "idle", "other"] as const;
export const READY = 2;

/** The moments of a run; all times are in ns since its start. */
export interface Course {
  lives: { thread: number; start: number | null; end: number | null }[];
  marks: { time: number; end: number | null; thread: number; kind: "exec" | "mark"; name: string }[];
  losses: { time: number; samples: number }[];
  clockStepsBack: number;
}

/** Slots from one up to another, which is not part of it. */
export type Slots = readonly [from: number, to: number];

/** A selected part of the run, in ns: once, or in every period. */
export interface Span {
  from: number;
  to: number;
  period: number | null;
}

/** Reads the `time` part of a payload. */
export function readTimeline(data: any): Timeline {
  const perSlot = data.perSlot as Column;
  const first = new Uint32Array(perSlot.length + 1);
  for (let slot = 0; slot < perSlot.length; slot++) first[slot + 1] = first[slot] + perSlot[slot];
  const { slotNs, lengthNs, costs, waits } = data;
  // Sums of parts read all entries: as numbers of one kind in every profile, they take half the time.
  const node = Uint32Array.from(data.node as Column);
  return { slotNs, slots: perSlot.length, lengthNs, first, node, costs, waits };
}

/** A band of more periods is the whole run. */
const MOST_PERIODS = 65_536;

/** The slots of a span, in order and apart from each other. Edges lie where the nearest slots begin; none is empty. */
export function slotsOf(span: Span, slotNs: number, slots: number): Slots[] {
  const found: Slots[] = [];
  const add = (from: number, to: number) => {
    const start = Math.max(0, Math.min(slots - 1, Math.round(from / slotNs)));
    const end = Math.min(slots, Math.max(start + 1, Math.round(to / slotNs)));
    const last = found[found.length - 1];
    if (last && start <= last[1]) found[found.length - 1] = [last[0], Math.max(last[1], end)];
    else found.push([start, end]);
  };
  // Of more periods than any screen has pixels nothing could be seen apart.
  if (span.period !== null && (slots * slotNs) / span.period > MOST_PERIODS) return [[0, slots]];
  if (span.period === null) add(span.from, span.to);
  else for (let at = 0; at + span.from < slots * slotNs; at += span.period) add(at + span.from, Math.min(at + span.to, slots * slotNs));
  return found;
}

/** The slots that are not among these. */
export function otherSlots(parts: readonly Slots[], slots: number): Slots[] {
  const found: Slots[] = [];
  let at = 0;
  for (const [from, to] of parts) {
    if (from > at) found.push([at, from]);
    at = to;
  }
  if (at < slots) found.push([at, slots]);
  return found;
}

/** The slots of these parts that others do not have. */
function without(parts: readonly Slots[], others: readonly Slots[]): Slots[] {
  const found: Slots[] = [];
  for (const [from, to] of parts) {
    let at = from;
    for (let other = firstAfter(others, from); other < others.length && others[other][0] < to; other++) {
      if (others[other][0] > at) found.push([at, others[other][0]]);
      at = Math.max(at, others[other][1]);
    }
    if (at < to) found.push([at, to]);
  }
  return found;
}

/** How many slots these are. */
export function countOf(parts: readonly Slots[]): number {
  return parts.reduce((sum, [from, to]) => sum + to - from, 0);
}

/** Sums by node: of 32 bits where a node cannot have more, which take a third of the time. */
export type NodeSums = Float64Array | Uint32Array;

/**
 * Adds up parts of a timeline. The whole and the last part are kept: another part is made from the one that it differs
 * least from, or from nothing. Costs and samples are whole numbers, so that all of these give the same.
 */
export class Sums {
  readonly timeline: Timeline;
  /** By metric: the metric that counts its samples, whose times are its times; null for others. */
  #countedBy: (number | null)[];
  /** By metric: the self costs of nodes in the whole run. */
  #recorded: (Column | null)[];
  #nodes: number;
  #whole: { metric: number; costs: NodeSums } | null = null;
  /** By metric: whether no node cost 2³² or more in the whole run. */
  #isSmall: boolean[] = [];
  #last: { metric: number; parts: readonly Slots[]; costs: NodeSums } | null = null;

  constructor(timeline: Timeline, recorded: (Column | null)[], countedBy: (number | null)[], nodes: number) {
    this.timeline = timeline;
    this.#recorded = recorded;
    this.#countedBy = countedBy;
    this.#nodes = nodes;
  }

  /** By node: its self cost in these slots. */
  of(metric: number, parts: readonly Slots[]): NodeSums {
    const counter = this.counter(metric);
    if (counter !== null) return this.apportioned(metric, this.of(counter, parts));
    const { slots } = this.timeline;
    const rest = otherSlots(parts, slots);
    const known = this.#last?.metric === metric ? this.#last : null;
    const [more, less] = known ? [without(parts, known.parts), without(known.parts, parts)] : [[], []];
    const [whole, none] = [this.#entries(rest), this.#entries(parts)];
    let costs: NodeSums;
    if (known && this.#entries(more) + this.#entries(less) < Math.min(whole, none)) {
      costs = this.#added(metric, less, this.#added(metric, more, known.costs.slice(), 1), -1);
    } else if (none <= whole) {
      costs = this.#added(metric, parts, this.#empty(metric), 1);
    } else {
      costs = this.#added(metric, rest, this.#all(metric).slice(), -1);
    }
    this.#last = { metric, parts, costs };
    return costs;
  }

  #entries(parts: readonly Slots[]): number {
    const { first } = this.timeline;
    return parts.reduce((sum, [from, to]) => sum + first[to] - first[from], 0);
  }

  /** The metric whose times are those of another, as it counts its samples; null for one with times of its own. */
  counter(metric: number): number | null {
    const { costs } = this.timeline;
    const counter = this.#countedBy[metric];
    return !costs[metric] && counter !== null && costs[counter] ? counter : null;
  }

  /** A cost that samples stand for: of each node as much as it has of the samples, which are given by node. */
  apportioned(metric: number, samples: NodeSums): Float64Array {
    const found = new Float64Array(samples.length);
    const [costs, counts] = [this.#recorded[metric], this.#recorded[this.counter(metric)!]];
    if (!costs || !counts) return found;
    for (let node = 0; node < found.length; node++) if (samples[node] !== 0) found[node] = (costs[node] * samples[node]) / counts[node];
    return found;
  }

  /**
   * Adds a part's samples, and as much of the cost that they stand for, to the nodes where recorded ones are now; the
   * sums are those of all, with those left out.
   */
  carryBoth(metric: number, samples: NodeSums, place: Uint32Array, intoCost: Float64Array, intoSamples: Float64Array): [cost: number, samples: number] {
    const [costs, counts] = [this.#recorded[metric], this.#recorded[this.counter(metric)!]];
    let [allCost, allSamples] = [0, 0];
    for (let node = 0; node < samples.length; node++) {
      const count = samples[node];
      if (count === 0) continue;
      const cost = costs && counts ? (costs[node] * count) / counts[node] : 0;
      allCost += cost;
      allSamples += count;
      const to = place[node];
      if (to === NONE) continue;
      intoCost[to] += cost;
      intoSamples[to] += count;
    }
    return [allCost, allSamples];
  }

  #empty(metric: number): NodeSums {
    const recorded = this.#recorded[metric];
    this.#isSmall[metric] ??= recorded !== null && largest(recorded) < 2 ** 32;
    return this.#isSmall[metric] ? new Uint32Array(this.#nodes) : new Float64Array(this.#nodes);
  }

  #all(metric: number): NodeSums {
    if (this.#whole?.metric !== metric) {
      const costs = this.#added(metric, [[0, this.timeline.slots]], this.#empty(metric), 1);
      this.#whole = { metric, costs };
    }
    return this.#whole!.costs;
  }

  #added(metric: number, parts: readonly Slots[], sums: NodeSums, sign: 1 | -1): NodeSums {
    const { first, node, costs, waits } = this.timeline;
    const of = costs[metric];
    for (const [from, to] of parts) if (of) addEntries(sums, node, of, first[from], first[to], sign);
    if (waits && (waits.time === metric || waits.count === metric)) this.#addWaits(waits, metric === waits.time, parts, sums, sign);
    return sums;
  }

  /** Adds waits: their time as far as it lies in the parts, or their number where they begin. */
  #addWaits(waits: Waits, isTime: boolean, parts: readonly Slots[], sums: NodeSums, sign: 1 | -1) {
    const { start, end, node, kind } = waits;
    for (let wait = 0; wait < start.length; wait++) {
      if (kind[wait] === READY) continue;
      const amount = isTime ? this.overlap(start[wait], end[wait], parts) : this.#begins(start[wait], parts);
      sums[node[wait]] += sign * amount;
    }
  }

  /** From the first to the last slot in which nodes have a cost; null where they have none. */
  extent(metric: number, has: (node: number) => boolean): Span | null {
    const { first, node, costs, slots, slotNs, lengthNs } = this.timeline;
    const of = costs[metric];
    let [start, end] = [-1, -1];
    for (let slot = 0; of && slot < slots; slot++) {
      for (let entry = first[slot]; entry < first[slot + 1]; entry++) {
        if (of[entry] === 0 || !has(node[entry])) continue;
        if (start < 0) start = slot;
        end = slot;
        break;
      }
    }
    return start < 0 ? null : { from: start * slotNs, to: Math.min(lengthNs, (end + 1) * slotNs), period: null };
  }

  /** By kind: how long threads waited in slots, in ns; null where waits are not known. */
  waited(parts: readonly Slots[], shows: (node: number) => boolean): number[] | null {
    const { waits, costs, first, node } = this.timeline;
    if (!waits) return null;
    const sums = WAITS.map(() => 0);
    for (let wait = 0; wait < waits.start.length; wait++) {
      if (shows(waits.node[wait])) sums[waits.kind[wait]] += this.overlap(waits.start[wait], waits.end[wait], parts);
    }
    // Of very many waits only the longest are intervals.
    const short = costs[waits.time];
    for (const [from, to] of parts) {
      for (let entry = first[from]; short && entry < first[to]; entry++) if (shows(node[entry])) sums[waits.kindOf[node[entry]]] += short[entry];
    }
    return sums;
  }

  /** How much of an interval lies in slots, in ns. */
  overlap(start: number, end: number, parts: readonly Slots[]): number {
    const { slotNs } = this.timeline;
    let sum = 0;
    for (let at = firstAfter(parts, start / slotNs); at < parts.length && parts[at][0] * slotNs < end; at++) {
      sum += Math.max(0, Math.min(end, parts[at][1] * slotNs) - Math.max(start, parts[at][0] * slotNs));
    }
    return sum;
  }

  #begins(start: number, parts: readonly Slots[]): number {
    // A life that begins at the very end belongs to the last slot.
    const slot = Math.min(Math.floor(start / this.timeline.slotNs), this.timeline.slots - 1);
    const at = firstAfter(parts, slot);
    return at < parts.length && parts[at][0] <= slot ? 1 : 0;
  }
}

/** Adds entries to the sums of their nodes. Each kind of sums has a loop, which is compiled for that kind alone. */
function addEntries(sums: NodeSums, node: Uint32Array, costs: Column, from: number, to: number, sign: 1 | -1) {
  if (sums instanceof Uint32Array) for (let entry = from; entry < to; entry++) sums[node[entry]] += sign * costs[entry];
  else for (let entry = from; entry < to; entry++) sums[node[entry]] += sign * costs[entry];
}

function largest(costs: Column): number {
  let most = 0;
  for (let node = 0; node < costs.length; node++) if (costs[node] > most) most = costs[node];
  return most;
}

/** The first part that ends behind a slot. */
function firstAfter(parts: readonly Slots[], slot: number): number {
  let [low, high] = [0, parts.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (parts[middle][1] > slot) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The way in which a timeline is divided for a picture. */
export interface Grid {
  from: number;
  to: number;
  /** How many slots make a bin. */
  per: number;
  /** By thread: its row, from 1 on; 0 where it has none. Row 0 is that of all threads. */
  rowOf: Uint16Array;
  rows: number;
}

/** By row and bin: the cost, and how much of it was passed in the current function or below it. */
export interface Courses {
  bins: number;
  cost: Float64Array;
  current: Float64Array;
  /** By kind of wait, row and bin: the time that threads waited, in ns; null where waits are not known. */
  waited: Float64Array[] | null;
}

/** By recorded node: twice its row, and one more where the current function is on its stack; `HIDDEN` where it is not shown. */
export type Places = Uint32Array;
export const HIDDEN = 0xffffffff;

/** The courses of rows of threads, in the metric that `costs` are of; `worth` says what one of each node stands for. */
export function courses(timeline: Timeline, costs: Column | null, worth: Float64Array | null, grid: Grid, places: Places): Courses {
  const { first, node } = timeline;
  const { from, to, per, rows } = grid;
  const bins = Math.max(1, Math.ceil((to - from) / per));
  const cost = new Float64Array((rows + 1) * bins);
  const current = new Float64Array((rows + 1) * bins);
  // Of one bin, by row.
  const sums = new Float64Array(2 * (rows + 1));
  for (let bin = 0; costs && bin < bins; bin++) {
    const end = first[Math.min(to, from + (bin + 1) * per)];
    sums.fill(0);
    for (let entry = first[from + bin * per]; entry < end; entry++) {
      const at = node[entry];
      const place = places[at];
      if (place !== HIDDEN) sums[place] += worth === null ? costs[entry] : costs[entry] * worth[at];
    }
    for (let row = 0; row <= rows; row++) {
      const [other, own] = [sums[2 * row], sums[2 * row + 1]];
      cost[bin] += other + own;
      current[bin] += own;
      if (row === 0) continue;
      cost[row * bins + bin] = other + own;
      current[row * bins + bin] = own;
    }
  }
  return { bins, cost, current, waited: timeline.waits && waitCourses(timeline, timeline.waits, grid, bins, places) };
}

function waitCourses(timeline: Timeline, waits: Waits, grid: Grid, bins: number, places: Places): Float64Array[] {
  const { slotNs, first, node, costs } = timeline;
  const { from, to, per, rows } = grid;
  const waited = WAITS.map(() => new Float64Array((rows + 1) * bins));
  const wide = per * slotNs;
  const begin = from * slotNs;
  const end = to * slotNs;
  const add = (kind: number, at: number, bin: number, amount: number) => {
    const row = (places[at] >> 1) * bins;
    waited[kind][bin] += amount;
    if (row > 0) waited[kind][row + bin] += amount;
  };
  for (let wait = 0; wait < waits.start.length && waits.start[wait] < end; wait++) {
    if (waits.end[wait] <= begin || places[waits.node[wait]] === HIDDEN) continue;
    let at = Math.max(begin, waits.start[wait]);
    const until = Math.min(end, waits.end[wait]);
    while (at < until) {
      const bin = Math.min(bins - 1, Math.floor((at - begin) / wide));
      const next = bin === bins - 1 ? until : Math.min(until, begin + (bin + 1) * wide);
      add(waits.kind[wait], waits.node[wait], bin, next - at);
      at = next > at ? next : until;
    }
  }
  const short = costs[waits.time];
  for (let slot = from; short && slot < to; slot++) {
    for (let entry = first[slot]; entry < first[slot + 1]; entry++) {
      if (short[entry] && places[node[entry]] !== HIDDEN) add(waits.kindOf[node[entry]], node[entry], Math.floor((slot - from) / per), short[entry]);
    }
  }
  return waited;
}
