// The course of a run: what every node cost in every slot of time, and the sums of any part of it.

import type { Column } from "./slabs.ts";

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

/** How many slots these are. */
export function countOf(parts: readonly Slots[]): number {
  return parts.reduce((sum, [from, to]) => sum + to - from, 0);
}

/** Sums by node: of 32 bits where a node cannot have more, which take a third of the time. */
export type NodeSums = Float64Array | Uint32Array;

/** The sums of all slots up to each of so many places are kept: a part is the difference of two, and the entries about its edges. */
const PLACES = 8;

/**
 * Adds up parts of a timeline. Costs and samples are whole numbers, so that any way to add them up gives the same.
 */
export class Sums {
  readonly timeline: Timeline;
  /** By metric: the metric that counts its samples, whose times are its times; null for others. */
  #countedBy: (number | null)[];
  /** By metric: the self costs of nodes in the whole run. */
  #recorded: (Column | null)[];
  #nodes: number;
  /** Of the metric that was asked for last: the sums of its entries up to each place. */
  #running: { metric: number; upTo: NodeSums[] } | null = null;
  #passing: { metric: number; sums: NodeSums } | null = null;
  /** By metric: whether no node cost 2³² or more in the whole run. */
  #isSmall: boolean[] = [];
  /** By metric whose times are those of samples: by node, the cost that one of them stands for. */
  #worth: Float64Array[] = [];

  /** The recorded nodes in the order that these sums have; null for their own. */
  #order: Uint32Array | null;

  constructor(timeline: Timeline, recorded: (Column | null)[], countedBy: (number | null)[], nodes: number, order: Uint32Array | null = null) {
    this.timeline = timeline;
    this.#recorded = recorded;
    this.#countedBy = countedBy;
    this.#nodes = nodes;
    this.#order = order;
  }

  /** By node: its self cost in these slots. */
  of(metric: number, parts: readonly Slots[]): NodeSums {
    const counter = this.counter(metric);
    return counter === null ? this.#filled(metric, parts, this.#empty(metric)) : this.apportioned(metric, this.of(counter, parts));
  }

  /** The same of a metric with times of its own, in memory that the next call uses again: fresh memory takes longer than the sums. */
  passing(metric: number, parts: readonly Slots[]): NodeSums {
    if (this.#passing?.metric !== metric) this.#passing = { metric, sums: this.#empty(metric) };
    return this.#filled(metric, parts, this.#passing.sums.fill(0));
  }

  #filled(metric: number, parts: readonly Slots[], sums: NodeSums): NodeSums {
    const { costs, waits } = this.timeline;
    if (costs[metric]) this.#addParts(metric, parts, sums);
    if (waits && (waits.time === metric || waits.count === metric)) this.#addWaits(waits, metric === waits.time, parts, sums);
    return sums;
  }

  /** Makes what adding up parts of a metric needs, before it is asked. */
  prepare(metric: number) {
    const counter = this.counter(metric);
    if (counter !== null) this.worth(metric);
    if (this.timeline.costs[counter ?? metric]) this.#upTo(counter ?? metric);
  }

  /** The same course with its nodes in another order. */
  inOrder(nodes: Uint32Array): Sums {
    const rank = new Uint32Array(nodes.length);
    for (let at = 0; at < nodes.length; at++) rank[nodes[at]] = at;
    const { timeline } = this;
    const { waits } = timeline;
    const ordered = { ...timeline, node: looked(timeline.node, rank), waits: waits && { ...waits, node: looked(waits.node, rank) } };
    return new Sums(ordered, this.#recorded, this.#countedBy, this.#nodes, nodes);
  }

  /** Adds the entries of parts: those between places by running sums, and those from the edges to the nearest place one by one. */
  #addParts(metric: number, parts: readonly Slots[], sums: NodeSums) {
    const { first, node, costs, slots } = this.timeline;
    const of = costs[metric]!;
    const between = new Int32Array(PLACES + 1);
    for (const [from, to] of parts) {
      const [start, end] = [from, to].map((slot) => Math.round((slot * PLACES) / slots));
      if (start === end) {
        addEntries(sums, node, of, first[from], first[to], 1);
        continue;
      }
      between[start]--;
      between[end]++;
      for (const [edge, place, sign] of [[from, slotOf(start, slots), 1], [to, slotOf(end, slots), -1]] as const) {
        const [low, high] = [first[Math.min(edge, place)], first[Math.max(edge, place)]];
        addEntries(sums, node, of, low, high, edge < place ? sign : (-sign as 1 | -1));
      }
    }
    if (between.some((times) => times !== 0)) {
      const upTo = this.#upTo(metric);
      for (let place = 1; place <= PLACES; place++) if (between[place] !== 0) addAll(sums, upTo[place], between[place]);
    }
  }

  /** By place: the sums of all entries before it. */
  #upTo(metric: number): NodeSums[] {
    if (this.#running?.metric !== metric) {
      const { first, node, costs, slots } = this.timeline;
      const upTo = [this.#empty(metric)];
      for (let place = 1; place <= PLACES; place++) {
        upTo.push(upTo[place - 1].slice());
        addEntries(upTo[place], node, costs[metric]!, first[slotOf(place - 1, slots)], first[slotOf(place, slots)], 1);
      }
      this.#running = { metric, upTo };
    }
    return this.#running!.upTo;
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

  /** By node: the cost that one of its samples stands for. */
  worth(metric: number): Float64Array {
    const known = this.#worth[metric];
    if (known) return known;
    const found = new Float64Array(this.#nodes);
    const [costs, counts] = [this.#recorded[metric], this.#recorded[this.counter(metric)!]];
    for (let at = 0; costs && counts && at < found.length; at++) {
      const node = this.#order ? this.#order[at] : at;
      if (counts[node] !== 0) found[at] = costs[node] / counts[node];
    }
    return (this.#worth[metric] = found);
  }

  #empty(metric: number): NodeSums {
    const recorded = this.#recorded[metric];
    this.#isSmall[metric] ??= recorded !== null && largest(recorded) < 2 ** 32;
    return this.#isSmall[metric] ? new Uint32Array(this.#nodes) : new Float64Array(this.#nodes);
  }

  /** Adds waits: their time as far as it lies in the parts, or their number where they begin. */
  #addWaits(waits: Waits, isTime: boolean, parts: readonly Slots[], sums: NodeSums) {
    const { start, end, node, kind } = waits;
    for (let wait = 0; wait < start.length; wait++) {
      if (kind[wait] === READY) continue;
      const amount = isTime ? this.overlap(start[wait], end[wait], parts) : this.#begins(start[wait], parts);
      sums[node[wait]] += amount;
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

/** The values at places. */
function looked(places: Column, values: Uint32Array): Uint32Array {
  const found = new Uint32Array(places.length);
  for (let at = 0; at < places.length; at++) found[at] = values[places[at]];
  return found;
}

/** Adds sums so many times to others. */
function addAll(sums: NodeSums, others: NodeSums, times: number) {
  if (sums instanceof Uint32Array) for (let node = 0; node < sums.length; node++) sums[node] += Math.imul(times, others[node]);
  else for (let node = 0; node < sums.length; node++) sums[node] += times * others[node];
}

/** The slot that a place stands before. */
function slotOf(place: number, slots: number): number {
  return Math.round((place * slots) / PLACES);
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
