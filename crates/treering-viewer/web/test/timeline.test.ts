import assert from "node:assert/strict";
import test from "node:test";
import { Model } from "../src/model/analysis.ts";
import { binomialTest, falseDiscoveryLimit } from "../src/model/binomial.ts";
import { clockFor, lengthText, moment, readSpan, spanText, tickStep, tickText, writeSpan } from "../src/model/moment.ts";
import { inOrder, type Lane } from "../src/model/order.ts";
import { peaks } from "../src/model/peaks.ts";
import { parseQuery } from "../src/model/search.ts";
import { heat, rhythm } from "../src/model/rhythm.ts";
import { countOf, otherSlots, readTimeline, slotsOf, Sums, type Timeline } from "../src/model/timeline.ts";
import type { Transform } from "../src/model/transform.ts";
import type { Recorded } from "../src/model/tree.ts";
import { waitPlaces } from "../src/model/waits.ts";
import { sketch } from "./trees.ts";

/** Numbers below a limit that look drawn at random, and are the same in every run. */
function numbers(seed: number) {
  let state = seed * 2654435761;
  return (limit: number) => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

const TREE = `
@
  main
    work
      parse
      hash
    idle
@
  main
    work
      hash
`.replace(/^ {2}/gm, "");

/** Two threads over 100 slots of 1 ms: samples, and the cost of 3 ns and a few more that each of them stands for. */
function recorded(seed: number, slots = 100, text = TREE): { recorded: Recorded; timeline: Timeline; rows: [slot: number, node: number, count: number][]; names: string[] } {
  const next = numbers(seed);
  const { tree, names } = sketch(text);
  const rows: [number, number, number][] = [];
  for (let slot = 0; slot < slots; slot++) {
    for (let node = 0; node < tree.length; node++) if (next(3) === 0) rows.push([slot, node, 1 + next(5)]);
  }
  const perSlot = new Uint32Array(slots);
  rows.forEach(([slot]) => perSlot[slot]++);
  const samples = new Float64Array(tree.length);
  rows.forEach(([, node, count]) => (samples[node] += count));
  const costs = samples.map((count, node) => 3 * count + node);
  const threads = tree.roots.length;
  const timeline = readTimeline({
    slotNs: 1e6, lengthNs: slots * 1e6, perSlot, node: Uint16Array.from(rows, (row) => row[1]), costs: [null, Uint8Array.from(rows, (row) => row[2])], waits: null,
  });
  const thread = { name: "", tid: 0, process: "", pid: 0, run: 0 };
  return { recorded: { tree, threads: Array(threads).fill(thread), costs: [costs, samples], counted: null, lineCosts: null }, timeline, rows, names };
}

function modelOf(given: ReturnType<typeof recorded>): Model {
  const none = { samples: null, squares: null, unseen: null };
  const model = new Model(given.recorded, [{ ...none, samples: 1 }, none], given.names.length, null);
  model.setTimeline(given.timeline);
  return model;
}

const ms = (from: number, to: number, period: number | null = null) => ({ from: from * 1e6, to: to * 1e6, period: period && period * 1e6 });

test("any part of a run has the costs of its samples, however much of the run it is", () => {
  for (let seed = 1; seed < 20; seed++) {
    const given = recorded(seed);
    const sums = new Sums(given.timeline, given.recorded.costs as Float64Array[], [1, null], given.recorded.tree.length);
    const next = numbers(seed + 100);
    for (let round = 0; round < 30; round++) {
      const from = next(100);
      const parts = slotsOf(ms(from, from + 1 + next(100 - from)), 1e6, 100);
      const right = new Float64Array(given.recorded.tree.length);
      for (const [slot, node, count] of given.rows) if (parts.some(([a, b]) => slot >= a && slot < b)) right[node] += count;
      assert.deepEqual([...sums.of(1, parts)], [...right], `${parts}, seed ${seed}`);
    }
  }
});

test("two halves add up to the whole, in every function, arc and metric", () => {
  const given = recorded(7);
  const model = modelOf(given);
  const whole = [0, 1].map((metric) => model.analyse(metric));
  for (const middle of [1, 30, 50, 99]) {
    const halves = [ms(0, middle), ms(middle, 100)].map((span) => {
      model.setPart(span);
      return [0, 1].map((metric) => model.analyse(metric));
    });
    for (const metric of [0, 1]) {
      for (const key of ["self", "total", "arcTotal"] as const) {
        whole[metric].now[key].forEach((cost, at) => {
          const sum = halves[0][metric].now[key][at] + halves[1][metric].now[key][at];
          // Samples exactly, costs as far as numbers go.
          assert.ok(metric === 1 ? sum === cost : Math.abs(sum - cost) < 1e-6, `${key} ${at} of metric ${metric}: ${sum}, not ${cost}`);
        });
      }
      const part = halves.map((half) => half[metric].part!);
      assert.ok(Math.abs(part[0].cost + part[1].cost - whole[metric].now.shown) < 1e-6);
    }
  }
  model.setPart(null);
  assert.deepEqual(model.analyse(0).now.self, whole[0].now.self);
  assert.equal(model.analyse(0).part, null);
});

test("percents of a part are of all of it, whatever else is left out", () => {
  const given = recorded(3);
  const model = modelOf(given);
  model.setPart(ms(20, 40));
  const { part } = model.analyse(0);
  const mask = new Uint8Array(given.names.length);
  mask[given.names.indexOf("hash")] = 1;
  model.setTransforms([{ kind: "focus", mask }]);
  const found = model.analyse(0);
  // Costs are added up in another order.
  assert.ok(Math.abs(found.part!.cost - part!.cost) < 1e-9 * part!.cost);
  assert.deepEqual({ ...found.part, cost: 0 }, { ...part, cost: 0 });
  assert.ok(found.now.shown < part!.cost && found.now.shown > 0);
});

test("a band is the same milliseconds of every period, and its other slots are the rest", () => {
  const parts = slotsOf(ms(10, 15, 20), 1e6, 90);
  assert.deepEqual(parts, [[10, 15], [30, 35], [50, 55], [70, 75]]);
  assert.equal(countOf(parts) + countOf(otherSlots(parts, 90)), 90);
  // The last one is cut where the run ends; neighbours are one part.
  assert.deepEqual(slotsOf(ms(10, 15, 20), 1e6, 72).at(-1), [70, 72]);
  assert.deepEqual(slotsOf(ms(0, 20, 20), 1e6, 90), [[0, 90]]);
});

test("a band of a period too short to be seen is the whole run, and found at once", () => {
  assert.deepEqual(slotsOf({ from: 0, to: 1, period: 2 }, 1e6, 1 << 24), [[0, 1 << 24]]);
});

test("a part is never empty, nor outside of the run", () => {
  assert.deepEqual(slotsOf({ from: 40.2e6, to: 40.3e6, period: null }, 1e6, 100), [[40, 41]]);
  assert.deepEqual(slotsOf(ms(500, 600), 1e6, 100), [[99, 100]]);
});

test("waits have the part of their time that lies in a range, and are counted where they begin", () => {
  const { tree } = sketch("main\n  wait\n");
  const timeline = readTimeline({
    slotNs: 1e6, lengthNs: 10e6, perSlot: new Uint8Array(10), node: new Uint8Array(0), costs: [null, null],
    waits: { time: 0, count: 1, start: Float64Array.of(0.5e6, 2.5e6, 3e6), end: Float64Array.of(2e6, 7.25e6, 4e6), node: Uint8Array.of(2, 2, 2), kind: Uint8Array.of(0, 3, 2), kindOf: new Uint8Array(3) },
  });
  const sums = new Sums(timeline, [new Float64Array(3), new Float64Array(3)], [null, null], tree.length);
  // 6.75 ms of waits, of which the one without a processor is none.
  const of = (metric: number, from: number, to: number) => sums.of(metric, [[from, to]])[2];
  assert.equal(of(0, 0, 10), 1.5e6 + 4.75e6);
  assert.equal(of(0, 1, 3), 1e6 + 0.5e6);
  assert.equal(of(0, 7, 10), 0.25e6);
  assert.deepEqual([of(1, 0, 10), of(1, 0, 1), of(1, 2, 3), of(1, 3, 10)], [2, 1, 1, 0]);
});

test("the courses of threads add up to what their functions cost", () => {
  const given = recorded(11);
  const model = modelOf(given);
  const hash = given.names.indexOf("hash");
  for (const per of [1, 7, 100]) {
    const { bins, cost, current } = model.courses(0, hash, { from: 0, to: 100, per, rowOf: Uint16Array.of(1, 2), rows: 2 });
    const row = (of: Float64Array, at: number) => of.subarray(at * bins, (at + 1) * bins).reduce((a, b) => a + b, 0);
    const { now } = model.analyse(0);
    assert.equal(bins, Math.ceil(100 / per));
    assert.ok(Math.abs(row(cost, 0) - now.shown) < 1e-6);
    assert.ok(Math.abs(row(cost, 1) + row(cost, 2) - row(cost, 0)) < 1e-6);
    assert.ok(Math.abs(row(current, 0) - now.total[hash]) < 1e-6);
  }
});

test("moments are written in the unit that suits the run", () => {
  const of = (ns: number, length: number) => moment(ns, clockFor(length));
  assert.equal(of(2e9, 16e9), "2.000");
  assert.equal(of(3.6e6, 20e6), "3.60");
  assert.equal(of(5405e9, 4 * 3600e9), "1:30:05");
  assert.equal(spanText({ from: 2e9, to: 5e9, period: null }, clockFor(8e9)), "2.000–5.000 s");
  assert.equal(spanText({ from: 1.36e9, to: 1.5e9, period: 2e9 }, clockFor(16e9)), "1360–1500 ms of each 2 s");
  for (const text of ["2000000-5000000", "1360000-1500000/2000000"]) assert.equal(writeSpan(readSpan(text)!), text);
  for (const text of ["", "5-5", "9-3", "1-", "x", "1-9/3", "1-2/0"]) assert.equal(readSpan(text), null, text);
});

test("ticks are at 1, 2 and 5, and at whole parts of an hour", () => {
  const clock = clockFor(16e9);
  assert.deepEqual([0.3e9, 1e9, 1.1e9, 3e9, 6e6].map((least) => tickStep(least, clock)), [0.5e9, 1e9, 2e9, 5e9, 10e6]);
  assert.equal(tickText(2e9, 1e9, clock), "2");
  assert.equal(tickText(3.62e9, 10e6, clock), "3.62");
  const hours = clockFor(4 * 3600e9);
  assert.equal(tickStep(1300e9, hours), 1800e9);
  assert.equal(tickText(5400e9, 1800e9, hours), "1:30");
});

test("the exact test of two counts is the sum of the binomial terms", () => {
  const terms = (n: number, p: number) => {
    // Term by term: C(n, k) p^k (1 - p)^(n - k).
    const found = [(1 - p) ** n];
    for (let k = 1; k <= n; k++) found.push((found[k - 1] * (n - k + 1) * p) / (k * (1 - p)));
    return found;
  };
  for (const [n, p] of [[5, 0.5], [12, 0.01], [40, 0.3], [200, 0.07]]) {
    const all = terms(n, p);
    for (let a = 0; a <= n; a++) {
      const below = all.slice(0, a + 1).reduce((x, y) => x + y, 0);
      const above = all.slice(a).reduce((x, y) => x + y, 0);
      const right = Math.min(1, 2 * Math.min(below, above));
      assert.ok(Math.abs(binomialTest(a, n - a, p) - right) < 1e-9 + 1e-7 * right, `${a} of ${n}, ${p}: ${binomialTest(a, n - a, p)}, not ${right}`);
    }
  }
  // Large counts stay numbers: half a million of a million.
  assert.ok(binomialTest(500_000, 500_000, 0.5) > 0.99 && binomialTest(510_000, 490_000, 0.5) < 1e-80);
});

test("false discoveries are held as Benjamini and Hochberg's own example has them", () => {
  // Table 1 of the paper of 1995: four of fifteen are findings at 5 %.
  const paper = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.324, 0.4262, 0.5719, 0.6528, 0.759, 1];
  assert.equal(falseDiscoveryLimit(paper, 0.05), 0.0095);
  assert.equal(falseDiscoveryLimit([0.4, 0.9], 0.05), -1);
});

test("a part compared with the rest has costs per second of both", () => {
  const given = recorded(5);
  const model = modelOf(given);
  const whole = model.analyse(0).now.shown;
  model.setPart(ms(20, 40), "rest");
  const { now, base, part, basePart } = model.analyse(0);
  // 20 ms and 80 ms.
  assert.ok(Math.abs(now.shown * 0.02 + base!.shown * 0.08 - whole) < 1e-6);
  assert.ok(Math.abs(part!.cost - now.shown) < 1e-6 && Math.abs(basePart!.cost - base!.shown) < 1e-6);
  // Samples are numbers of samples, as tests need them.
  assert.equal(part!.samples + basePart!.samples, given.rows.reduce((sum, row) => sum + row[2], 0));
  const tree = model.merged(0, { focus: null, direction: "callees", fold: false, path: [], least: 0 });
  assert.equal(tree.stride, 2);
  assert.ok(Math.abs(tree.total[0][0] - now.shown) < 1e-6 && Math.abs(tree.total[2][0] - base!.shown) < 1e-6);
  assert.equal(tree.total[1][0], part!.samples);
});

test("a period is found where a course repeats, and none in noise", () => {
  const next = numbers(1);
  const stall = Float64Array.from({ length: 16_000 }, (_, ms) => (ms % 2000 >= 1360 && ms % 2000 < 1500 ? 1 : next(10) < 2 ? 1 : 0));
  const found = rhythm(stall)!;
  assert.ok(Math.abs(found.period - 2000) <= 8 && found.strength > 0.4, JSON.stringify(found));
  const noise = Float64Array.from({ length: 8000 }, () => next(10));
  assert.equal(rhythm(noise), null);
  assert.equal(rhythm(new Float64Array(100).fill(3)), null);
  assert.equal(rhythm([]), null);
});

test("the cells of a heatmap add up to the course", () => {
  const next = numbers(2);
  const before = new Float64Array(101);
  for (let at = 0; at < 100; at++) before[at + 1] = before[at] + next(9);
  const { columns, rows, cells, limits } = heat(before, 1e6, 100e6, [0, 100e6], 20e6, 10);
  assert.deepEqual([columns, rows], [5, 10]);
  assert.ok(Math.abs(cells.reduce((a, b) => a + b, 0) * 2e6 - before[100]) < 1e-6);
  assert.ok(limits[0] <= limits[1]);
  // Behind the end of the run there is nothing, nor in a cell of which less than half was run.
  assert.equal(heat(before, 1e6, 100e6, [0, 100e6], 30e6, 10).cells.filter((one) => one < 0).length, 7);
});

test("waits stand where the program asked for them, with the part of their time that is shown", () => {
  const { tree, names } = sketch("main\n  update\n    _mutex_lock\n  _poll\n");
  const timeline = readTimeline({
    slotNs: 1e6, lengthNs: 10e6, perSlot: new Uint8Array(10), node: new Uint8Array(0), costs: [null, null],
    waits: { time: 0, count: 1, start: Float64Array.of(0, 2e6, 3e6, 5e6), end: Float64Array.of(2e6, 5e6, 4e6, 6e6), node: Uint8Array.of(3, 3, 4, 2), kind: Uint8Array.of(0, 0, 3, 2), kindOf: new Uint8Array(5) },
  });
  const sums = new Sums(timeline, [null, null], [null, null], tree.length);
  const own = Uint8Array.from(names, (name) => (name && !name.startsWith("_") ? 1 : 0));
  const rows = (from: number, to: number) =>
    waitPlaces(sums, tree, new Uint32Array(tree.length), own, [[from, to]], () => true).map(({ fn, kind, count, ns, longest }) => `${names[fn]} ${kind} ${count} ${ns / 1e6} ${(longest!.to - longest!.from) / 1e6}`);
  assert.deepEqual(rows(0, 10), ["update 0 2 5 3", " 2 1 1 1", "main 3 1 1 1"]);
  assert.deepEqual(rows(1, 3), ["update 0 2 2 3"]);
});

test("waits have those who ended them, by kind and by the program's own function", () => {
  const { tree, names } = sketch("main\n  update\n    _mutex_lock\n    _mutex_unlock\n_kworker\n  _work\n");
  const [lock, unlock, work] = ["_mutex_lock", "_mutex_unlock", "_work"].map((name) => tree.fn.indexOf(names.indexOf(name)));
  const timeline = readTimeline({
    slotNs: 1e6, lengthNs: 10e6, perSlot: new Uint8Array(10), node: new Uint8Array(0), costs: [null, null],
    waits: {
      time: 0, count: 1, start: Float64Array.of(0, 1e6, 2e6, 3e6, 4e6), end: Float64Array.of(3e6, 2e6, 3e6, 4e6, 9e6), node: new Uint8Array(5).fill(lock),
      kind: new Uint8Array(5), kindOf: new Uint8Array(tree.length), woken: Float64Array.of(2.5e6, 1.5e6, 2.5e6, 3.5e6, 0),
      waker: Uint8Array.of(unlock + 1, unlock + 1, work + 1, work + 1, 0), wakerKind: Uint8Array.of(1, 1, 4, 3, 0),
    },
  });
  const sums = new Sums(timeline, [null, null], [null, null], tree.length);
  const own = Uint8Array.from(names, (name) => (name && !name.startsWith("_") ? 1 : 0));
  const places = waitPlaces(sums, tree, new Uint32Array(tree.length), own, [[0, 10]], () => true);
  assert.equal(places.length, 1);
  const { count, ns, wakers, longest } = places[0];
  assert.deepEqual([count, ns / 1e6, longest!.end], [5, 11, null]);
  const rows = wakers.map((waker) => `${waker.kind} ${names[waker.fn]} ${waker.count} ${waker.ns / 1e6}`);
  assert.deepEqual(rows, ["0 update 2 4", `2 ${names[0]} 1 1`, "3 _kworker 1 1"]);
  const first = waitPlaces(sums, tree, new Uint32Array(tree.length), own, [[0, 1]], () => true)[0];
  assert.deepEqual(first.longest!.end, { woken: 2.5e6, kind: 0, fn: tree.fn[tree.parent[unlock]], thread: 0 });
  assert.deepEqual(first.wakers.map((waker) => waker.ns / 1e6), [1]);
});

/** Two threads over slots of 1 ms; every entry is a slot, a node and its cost in ms. */
function laidOut(entries: [slot: number, node: number, cost: number][], { slots = 10, per = 1, isTime = true, worth = null as Float64Array | null, parts = [[0, 10]] as [number, number][], waits = null as any } = {}) {
  const { tree, names } = sketch(TREE);
  const perSlot = new Uint32Array(slots);
  entries.forEach(([slot]) => perSlot[slot]++);
  const timeline = readTimeline({ slotNs: 1e6, lengthNs: slots * 1e6, perSlot, node: Uint16Array.from(entries, (row) => row[1]), costs: [], waits });
  const threadOf = Uint32Array.from({ length: tree.length }, (_, node) => (node >= tree.roots[1] ? 1 : 0));
  const costs = Float64Array.from(entries, (row) => row[2] * (worth ? 1 : 1e6));
  const order = inOrder({ timeline, costs, worth, tree, place: null, threadOf, parts }, { from: 0, to: slots, per, least: 10, isTime });
  const pieces = (lane: Lane) => [...lane.fn.keys()].map((at) => `${lane.row[at]} ${names[lane.fn[at]]} ${lane.start[at] / 1e6}-${lane.end[at] / 1e6}`).sort();
  return { order, names, pieces: order.lanes.map(pieces) };
}

test("in the order of time neighbouring stacks share the pieces of the functions that both have", () => {
  // Nodes: 1 main, 2 work, 3 parse, 4 hash, 5 idle; of the second thread 7 main, 8 work, 9 hash.
  const { order, pieces, names } = laidOut([[0, 3, 1], [1, 4, 1], [2, 4, 1], [3, 5, 0.5], [7, 4, 1], [7, 9, 0.25]]);
  assert.deepEqual(pieces[0], ["0 idle 3-3.5", "0 work 0-3", "0 work 7-8", "1 hash 1-3", "1 hash 7-8", "1 parse 0-1"]);
  assert.deepEqual(pieces[1], ["0 hash 7-7.25"]);
  assert.deepEqual(order.lanes.map(({ thread, below, cost, deepest }) => [thread, names[below], cost / 1e6, deepest]), [[0, "main", 4.5, 2], [1, "work", 0.25, 1]]);
});

test("a cell of several stacks shows the shares that they have in it", () => {
  const { pieces } = laidOut([[0, 3, 0.5], [1, 4, 1], [1, 5, 0.5]], { per: 2 });
  assert.deepEqual(pieces[0], ["0 idle 1.5-2", "0 work 0-1.5", "1 hash 0.5-1.5", "1 parse 0-0.5"]);
});

test("pieces of all stacks last as long together as the cost, where that is exact", () => {
  const next = numbers(5);
  const entries: [number, number, number][] = [];
  for (let slot = 0; slot < 10; slot++) for (const node of [3, 4, 5, 9]) if (next(2)) entries.push([slot, node, (1 + next(9)) / 40]);
  for (const per of [1, 2, 3, 10]) {
    const { order } = laidOut(entries, { per });
    for (const { thread, row, start, end, cost } of order.lanes) {
      // The rows above a lane's first one are common, so what is in row 0 is everything.
      const shown = row.reduce((sum, at, piece) => sum + (at === 0 ? end[piece] - start[piece] : 0), 0);
      assert.ok(Math.abs(shown - cost) < 1, `thread ${thread}, ${per} slots a cell: ${shown} of ${cost}`);
    }
  }
});

test("samples fill a cell unless they are fewer than by chance", () => {
  const worth = new Float64Array(12).fill(1e6);
  // 64 slots a cell: 60 samples are as good as all, 30 are not.
  const slots = 128;
  const entries: [number, number, number][] = [...Array(60).keys()].map((slot): [number, number, number] => [slot, 5, 1]);
  entries.push(...[...Array(30).keys()].map((slot): [number, number, number] => [64 + slot, 5, 1]));
  const { pieces } = laidOut(entries, { slots, per: 64, worth, parts: [[0, slots]] });
  assert.deepEqual(pieces[0], ["0 idle 0-94"]);
});

test("only the selected slots have pieces, and waits stand in their gaps", () => {
  const waits = { time: 0, count: 1, start: Float64Array.of(1e6, 6e6), end: Float64Array.of(4e6, 9e6), node: Uint8Array.of(5, 5), kind: Uint8Array.of(0, 2), kindOf: new Uint8Array(12) };
  const { order, pieces } = laidOut([[0, 3, 1], [2, 4, 1], [8, 5, 1]], { parts: [[2, 8]], waits });
  assert.deepEqual(pieces, [["0 hash 2-3"]]);
  const [lane] = order.lanes;
  assert.deepEqual([...lane.waitStart, ...lane.waitEnd, ...lane.waitKind], [2e6, 6e6, 4e6, 8e6, 0, 2]);
});

test("peaks are what is higher than the mean by two standard deviations", () => {
  const course = new Float64Array(100).fill(1);
  course.set([9, 8], 20);
  course[60] = 10;
  assert.deepEqual(peaks(course), [[20, 22], [60, 61]]);
  assert.deepEqual(peaks(new Float64Array(100).fill(3)), []);
  assert.deepEqual(peaks([]), []);
});

test("a search for threads leaves the search for functions", () => {
  const fn = { short: "netlink", full: "netlink", module: "", file: "", regex: () => false };
  const none = () => ({ self: 0, total: 0 });
  const only = parseQuery("thread:Net");
  assert.deepEqual([only.threads, only.rest, only.matches(fn, none)], [["net"], "", false]);
  const both = parseQuery("link thread:net");
  assert.deepEqual([both.threads, both.rest, both.matches(fn, none)], [["net"], "link", true]);
  assert.equal(parseQuery("").matches(fn, none), false);
});

test("in the order of time a thread that ran for less than a pixel is seen", () => {
  const { tree } = sketch(TREE);
  const timeline = readTimeline({ slotNs: 1e6, lengthNs: 4e6, perSlot: Uint32Array.of(3, 0, 0, 0), node: Uint8Array.of(3, 4, 5), costs: [], waits: null });
  const shown = { timeline, costs: [290, 300, 280], worth: null, tree, place: null, threadOf: new Uint32Array(tree.length), parts: [[0, 4]] as [number, number][] };
  const { lanes, small } = inOrder(shown, { from: 0, to: 4, per: 2, least: 1e5, isTime: true });
  // One stack stands for all of the cell: the parts of a common caller are one piece.
  assert.deepEqual([[...lanes[0].start], [...lanes[0].end], [...lanes[0].fn], small], [[0], [2e5], [tree.fn[4]], 2]);
});

/** Threads of random stacks with recursion: each node calls up to three of six functions, down to a depth of 7. */
function randomTree(seed: number, threads: number): string {
  const next = numbers(seed);
  const lines: string[] = [];
  const below = (depth: number) => {
    if (depth > 7) return;
    const called = new Set(Array.from({ length: next(4) }, () => "abcdef"[next(6)]));
    for (const name of called) {
      lines.push(`${"  ".repeat(depth)}${name}`);
      below(depth + 1);
    }
  };
  for (let thread = 0; thread < threads; thread++) {
    lines.push("@", "  main");
    below(2);
  }
  return lines.join("\n").replace(/^ {2}/gm, "");
}

test("a part is measured in the joined trees as in the tree of each thread", () => {
  for (let seed = 1; seed < 30; seed++) {
    const given = recorded(seed, 60, randomTree(seed, 1 + (seed % 5)));
    const { tree } = given.recorded;
    const span = ms(seed, seed + 25);
    const samples = new Float64Array(tree.length);
    for (const [slot, node, count] of given.rows) if (slot >= seed && slot < seed + 25) samples[node] += count;
    const [costs, counts] = given.recorded.costs as Float64Array[];
    // Samples weigh differently, as those of a recording do.
    const [squares, unseen] = [costs.map((cost, node) => cost * (1 + (node % 3))), counts.map((count, node) => count * (node % 2))];
    const apportioned = (column: Float64Array) => samples.map((count, node) => (count ? (column[node] * count) / counts[node] : 0));
    const none = { samples: null, squares: null, unseen: null };
    const metrics = [{ samples: 1, squares: 2, unseen: 3 }, none, none, none];
    // The same costs as those of a whole run, which is measured without joining anything.
    const right = new Model({ ...given.recorded, costs: [apportioned(costs), samples, apportioned(squares), apportioned(unseen)] }, metrics, given.names.length, null);
    const model = new Model({ ...given.recorded, costs: [costs, counts, squares, unseen] }, metrics, given.names.length, null);
    model.setTimeline({ ...given.timeline, costs: [...given.timeline.costs, null, null] });
    const mask = (...names: string[]) => Uint8Array.from(given.names, (name) => (names.includes(name) ? 1 : 0));
    const near = (found: ArrayLike<number>, wanted: ArrayLike<number>, of: string) => {
      assert.equal(found.length, wanted.length, of);
      for (let at = 0; at < wanted.length; at++) assert.ok(Math.abs(found[at] - wanted[at]) < 1e-6, `${of} ${at}: ${found[at]}, not ${wanted[at]}, seed ${seed}`);
    };
    for (const transforms of [[], [{ kind: "hide", mask: mask("b") }], [{ kind: "focus", mask: mask("a", "c") }, { kind: "ignore", mask: mask("d") }]] as Transform[][]) {
      for (const one of [model, right]) one.setTransforms(transforms);
      model.setPart(span);
      for (const metric of [0, 1]) {
        // Twice, as what was given away is worked out again.
        for (const found of [model.analyse(metric), model.analyse(metric)]) {
          const wanted = right.analyse(metric);
          assert.deepEqual([...found.caller], [...wanted.caller]);
          for (const key of ["self", "total", "arcTotal", "fromSelf", "fromTotal", "toSelf", "toTotal"] as const) {
            near(found.now[key], wanted.now[key], key);
            for (const column of ["samples", "squares", "unseen"] as const) {
              if (metric === 0) near(found.now[column]![key], wanted.now[column]![key], `${column} ${key}`);
            }
          }
        }
        for (const request of [{ focus: null, direction: "callees" }, { focus: null, direction: "callers" }, { focus: 2, direction: "callees" }, { focus: 2, direction: "callers" }] as const) {
          const all = { ...request, fold: false, path: [], least: 0 };
          const [found, wanted] = [model.merged(metric, all), right.merged(metric, all)];
          assert.deepEqual([...found.fn], [...wanted.fn]);
          assert.deepEqual([...found.parent], [...wanted.parent]);
          for (let column = 0; column < found.self.length; column++) near(found.total[column], wanted.total[column], "total of a tree");
        }
        near([model.matched(metric, mask("a", "e"))], [right.matched(metric, mask("a", "e"))], "matched");
        assert.deepEqual(model.owners(metric, 3, mask("a", "main")).map(({ fn }) => fn).sort(), right.owners(metric, 3, mask("a", "main")).map(({ fn }) => fn).sort());
      }
    }
  }
});

/** 6 ms of a run of days were 0.0 min. */
test("a short length is in a unit in which it is more than nothing", () => {
  const days = clockFor(9e15);
  assert.deepEqual(lengthText(6e6, days), ["0.006", "s"]);
  assert.deepEqual(lengthText(3.06e12, days), ["51.0", "min"]);
  assert.deepEqual(lengthText(2e5, clockFor(10e9)), ["0.200", "ms"]);
  assert.deepEqual(lengthText(0, days), ["0.0", "min"]);
  // An error stands in the unit of what it is of.
  assert.deepEqual(lengthText(2e5, clockFor(10e9), 1e9), ["0.000", "s"]);
});
