// The table of all functions.

import { computed } from "@preact/signals";
import type { JSX } from "preact";
import { grouped, percent, plural, timeWord } from "../model/numbers.ts";
import { binomialTest, falseDiscoveryLimit } from "../model/binomial.ts";
import { halfWidthOfDifference, type Measure } from "../model/interval.ts";
import { otherSlots, type Slots, slotsOf } from "../model/timeline.ts";
import type { Analysis } from "../model/analysis.ts";
import { CATEGORIES, type Split } from "../profile.ts";
import { matches } from "../masks.ts";
import { baseFactor, functionInterval, interval, measureOf, runCost } from "../measures.ts";
import { againstOf, go, isCompared, route, select, shownMetric, spanOf, type Route, type Sort } from "../route.ts";
import { analysis, generation, secondAnalysis, theProfile } from "../state.ts";
import { between, callsText, costColumn, delta, percentWords, text } from "./cost.ts";
import { Bar, DeltaBar, FunctionName, Kind, PaneHead, rowFont, rowHeight, Rows, useSize, widest } from "./parts.tsx";
import { fitting, type Yielding } from "./columns.ts";
import { ofFunction } from "./menu.tsx";
import { NoFunctions } from "./reasons.tsx";
import { functionSentence } from "./strip.tsx";

/** How a function changed, and whether that is more than chance. */
export interface Change {
  by: number;
  half: number;
  sure: boolean;
}

type Kinds = "less" | "more" | "new" | "gone" | "within";

/** The change of a function's cost between base and new; `which` is self or total. */
export function changeOf(found: Analysis, which: "self" | "total", fn: number): Change {
  return changeBetween(found.metric, measureOf(found.base!, which, fn), measureOf(found.now, which, fn), which);
}

/** Below so many samples in both parts together nothing is found. */
const LEAST_SAMPLES = 5;

/** The part of all findings that may be false. */
const FALSE_FINDINGS = 0.05;

/** The time that the new part has of both. */
function partOfTime(): number {
  const { slotNs, slots, lengthNs } = theProfile().head.time!;
  const lengthOf = (parts: readonly Slots[]) => parts.reduce((sum, [from, to]) => sum + Math.min(lengthNs, to * slotNs) - from * slotNs, 0);
  const [span, against] = [spanOf(route.value.steps), againstOf(route.value.steps)];
  if (!span || !against) return 0;
  const parts = slotsOf(span, slotNs, slots);
  const [now, base] = [lengthOf(parts), lengthOf(against === "rest" ? otherSlots(parts, slots) : slotsOf(against, slotNs, slots))];
  return now / (now + base);
}

function probability(base: Measure, now: Measure, part: number): number {
  return base.samples + now.samples < LEAST_SAMPLES ? 1 : binomialTest(Math.round(now.samples), Math.round(base.samples), part);
}

/** By self and total: how improbable a change must be, so that of all functions that seem to have changed few have not. */
const limits = computed(() => {
  const found = analysis.value;
  const part = partOfTime();
  const of = (which: "self" | "total") => {
    const probabilities: number[] = [];
    for (let fn = 1; found?.base && fn < theProfile().functions; fn++) {
      const [base, now] = [measureOf(found.base, which, fn), measureOf(found.now, which, fn)];
      if (base.samples + now.samples >= LEAST_SAMPLES) probabilities.push(probability(base, now, part));
    }
    return falseDiscoveryLimit(probabilities, FALSE_FINDINGS);
  };
  return { self: of("self"), total: of("total"), part };
});

/** Whether two parts of a run differ in a cost by more than chance. Of exact costs every change is one. */
function isFinding(metric: number, which: "self" | "total", base: Measure, now: Measure): boolean {
  if (theProfile().head.metrics[metric].samples === null) return true;
  const { part, ...limit } = limits.value;
  return probability(base, now, part) <= limit[which];
}

/** `CPU per second`: the unit of two parts that are compared. */
function perSecond(): string {
  const { unit, name } = theProfile().head.metrics[shownMetric()];
  return unit === "nanoseconds" ? `${timeWord(name)} per second` : `${unit === "count" ? name : "bytes"} per second`;
}

/** The change from one cost to another. */
export function changeBetween(metric: number, base: Measure, now: Measure, which: "self" | "total" = "total"): Change {
  const scaled = (side: "base" | "now", measure: Measure): [number, number] | null => {
    const bounds = interval(metric, side, measure);
    const whole = runCost(metric, side);
    return bounds && [bounds[0] * whole, bounds[1] * whole];
  };
  const by = now.cost - base.cost * baseFactor(metric);
  const half = halfWidthOfDifference(scaled("base", base), scaled("now", now));
  const sure = by !== 0 && (isCompared() ? isFinding(metric, which, base, now) : Math.abs(by) > half);
  return { by, half, sure };
}

/** In which way a function changed. A function that one of both runs alone ran is new or gone, whatever it cost itself. */
function kindOf(found: Analysis, fn: number): Kinds {
  const [base, now] = [found.base!.total[fn], found.now.total[fn]];
  // A part of a run without a function has not lost it.
  if (!isCompared() && (base === 0) !== (now === 0) && changeOf(found, "total", fn).sure) return base === 0 ? "new" : "gone";
  const { sure, by } = changeOf(found, "self", fn);
  return !sure ? "within" : by > 0 ? "more" : "less";
}

/** By function: whether it occurs in the shown part. */
const occurs = computed<Uint8Array>(() => {
  const found = analysis.value;
  const marks = new Uint8Array(theProfile().functions);
  if (!found) return marks;
  const { now, base, calls } = found;
  for (let fn = 0; fn < marks.length; fn++) {
    const costs = now.total[fn] !== 0 || now.self[fn] !== 0 || (base !== null && (base.total[fn] !== 0 || base.self[fn] !== 0));
    if (costs || (calls !== null && calls[fn] > 0)) marks[fn] = 1;
  }
  return marks;
});

/** How many functions occur in the shown part. */
const occurring = computed<number>(() => occurs.value.reduce((sum, one) => sum + one, 0));

/** In a difference, how many functions changed in which way. */
const changed = computed<Record<string, number>>(() => {
  const counts: Record<string, number> = { all: 0, less: 0, more: 0, new: 0, gone: 0, within: 0 };
  const found = analysis.value;
  if (!found?.base) return counts;
  const marks = occurs.value;
  for (let fn = 0; fn < marks.length; fn++) {
    if (!marks[fn]) continue;
    counts[kindOf(found, fn)]++;
    counts.all++;
  }
  return counts;
});

/** By category: the self cost of its functions. */
const categoryCosts = computed<number[]>(() => {
  const costs = [0, 0, 0, 0, 0];
  const found = analysis.value;
  if (!found) return costs;
  const profile = theProfile();
  const { self } = found.now;
  for (let fn = 0; fn < self.length; fn++) if (self[fn] > 0) costs[profile.category(fn)] += self[fn];
  return costs;
});

/** The part of the state that the table needs; it stays the same while others change. */
const wanted = computed(() => {
  const { sort, ascending, category, change, normalised } = route.value;
  return JSON.stringify({ sort, ascending, category, change, normalised });
});

/** The rows: found, filtered, sorted. */
export const rows = computed<number[]>(() => {
  const found = analysis.value;
  const { sort, ascending, category, change } = JSON.parse(wanted.value) as Route;
  const mask = matches.value;
  if (!found) return [];
  const profile = theProfile();
  const marks = occurs.value;
  const list: number[] = [];
  // The worker has sorted by costs; other orders are made when they are asked for.
  for (const fn of sort === "total" ? found.byTotal : found.bySelf) {
    if (marks[fn] && (!mask || mask[fn]) && (category === null || profile.category(fn) === category)
      && (!found.base || change === "all" || kindOf(found, fn) === change)) list.push(fn);
  }
  if (sort === "name") {
    list.sort((a, b) => profile.name(a).last.localeCompare(profile.name(b).last));
  } else if (sort === "calls" || (sort === "delta" && found.base)) {
    const key = new Float64Array(profile.functions);
    for (const fn of list) key[fn] = sort === "calls" ? (found.calls?.[fn] ?? 0) : Math.abs(changeOf(found, "self", fn).by);
    list.sort((a, b) => key[b] - key[a] || found.now.total[b] - found.now.total[a] || a - b);
  }
  return ascending ? list.reverse() : list;
});

function Head({ columns }: { columns: [Sort | null, string, boolean][] }) {
  const { sort, ascending } = route.value;
  return (
    <div class="row head" role="row">
      {columns.map(([key, label, right]) => label === "" ? <span aria-hidden="true" /> : key === null ? <span role="columnheader" class={right ? "r" : ""}>{label}</span> : (
        <span role="columnheader" class={right ? "r" : ""} aria-sort={sort === key ? (ascending ? "ascending" : "descending") : "none"}>
          <button type="button" class={sort === key ? "on" : ""} onClick={() => go({ sort: key, ascending: sort === key ? !ascending : false }, true)}>
            {label}{sort === key ? (ascending ? " ▴" : " ▾") : ""}
          </button>
        </span>
      ))}
    </div>
  );
}

function Chips({ found }: { found: Analysis }) {
  const { category, change } = route.value;
  if (found.base) {
    const counts = changed.value;
    const words: Record<string, string> = { all: "all", less: "▼ less", more: "▲ more", new: "new", gone: "gone", within: "± within" };
    return (
      <div class="chips">
        {Object.keys(counts).filter((key) => !(isCompared() && (key === "new" || key === "gone"))).map((key) => (
          <button type="button" class="chip" aria-pressed={change === key} onClick={() => go({ change: key }, true)}>{words[key]} <b>{grouped(counts[key])}</b></button>
        ))}
      </div>
    );
  }
  const costs = categoryCosts.value;
  const whole = runCost(found.metric, "now") || 1;
  return (
    <div class="chips">
      {CATEGORIES.map((name, at) => costs[at] > 0 && (
        <button type="button" class="chip" aria-pressed={category === at} onClick={() => go({ category: category === at ? null : at }, true)}>
          <Kind category={at} /> {name} <b>{percent(costs[at] / whole)}</b>
        </button>
      ))}
    </div>
  );
}

/** A column of the table, before the names. */
interface FunctionColumn extends Yielding {
  sort: Sort | null;
  label: string;
  left?: boolean;
  cell(fn: number): JSX.Element;
}

/** Between columns, and beside a row, in pixels. */
const GAP = 7;
const PADDING = 26;

/** The text of a function's row for screen readers. */
function rowLabel(fn: number): string {
  return `${theProfile().fullName(fn) || "outside of every function"}, ${functionSentence(fn)}`;
}

export function Functions() {
  const [ref, size] = useSize<HTMLElement>();
  const found = analysis.value;
  void generation.value;
  const list = rows.value;
  const { fn, unit } = route.value;
  const profile = theProfile();
  const sampled = profile.head.metrics[shownMetric()].samples !== null;
  const current = list.indexOf(fn);
  const move = (event: KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -1e9, End: 1e9 }[event.key];
    if (by === undefined || event.altKey || !list.length) return;
    select(list[Math.max(0, Math.min(list.length - 1, current + by))]);
    event.preventDefault();
  };
  let body;
  if (!found) body = <p class="wait">reading {plural(profile.head.nodes, "node")}</p>;
  else if (!list.length) body = <NoFunctions occurring={occurring.value} />;
  else if (found.base) body = <Differences found={found} list={list} width={size.width} current={current} onKey={move} />;
  else {
    const largest = found.bySelf.length ? found.now.self[found.bySelf[0]] : 0;
    const column = costColumn(unit, largest);
    const second = secondAnalysis.value;
    const { totals } = profile.head.metrics[found.metric];
    const secondColumn = second && costColumn(unit === "run" ? "run" : "natural", second.now.self[second.bySelf[0]] ?? 0, "now", second.metric);
    const whole = runCost(found.metric, "now") || 1;
    const counts = found.calls;
    const percents = unit === "run";
    const value = (which: "self" | "total", one: number) => column.value(found.now[which][one], found.now.total[one], counts?.[one], found.now.samples?.[which][one]);
    const bounds = (one: number) => functionInterval(found, "self", one);
    const intervalText = (one: number) => between(column, bounds(one), found.now.total[one], counts?.[one]);
    // Ports were counted in the whole program; the second metric has their place.
    const ports = route.value.steps.length || second ? [] : profile.portColumns;
    const uncertain = profile.data.uncertainty;
    const isTotal = totals !== "estimated" && totals !== "unknown";
    const costWidth = (which: "self" | "total") => Math.max(percents ? 40 : 48, widest(list.slice(0, 200).map((one) => text(column, value(which, one))).concat(which === "self" ? `self ${column.head} ▾` : "total ▾"), rowFont()));
    const columns: FunctionColumn[] = [
      { sort: "self", label: `self${percents ? "" : ` ${column.head}`}`, width: costWidth("self"), rank: null, cell: (one) => (
        <span class="r" role="gridcell" title={uncertain?.[one] ? `± ${text(costColumn("natural", uncertain[one]), uncertain[one])}` : undefined}>{text(column, value("self", one))}</span>) },
      // As wide as its widest text: bounds have the unit of the costs. The whisker says the same.
      ...(sampled ? [{ sort: null, label: "95 %", left: true, width: percents ? 62 : widest(list.slice(0, 200).map(intervalText)), rank: 5, cell: (one: number) => (
        <span class="dim small" role="gridcell">{intervalText(one)}</span>) }] : []),
      ...(counts ? [{ sort: "calls" as Sort, label: "calls", width: widest(list.slice(0, 200).map((one) => callsText(counts[one])).concat("calls ▾")), rank: sampled ? 4 : 6, cell: (one: number) => (
        <span class="r dim small" role="gridcell">{callsText(counts[one])}</span>) }] : []),
      ...ports.map((port, at) => ({ sort: null, label: port === "exceptions" ? "exc." : port, width: 50, rank: 3 - at / 10, cell: (one: number) => (
        <span class="r dim small" role="gridcell">{grouped(profile.ports(one)?.[port] ?? 0)}</span>) })),
      { sort: null, label: "", width: 40, rank: 7, cell: (one) => {
        const [low, high] = bounds(one) ?? [];
        return <Bar self={found.now.self[one]} whole={largest * 1.08} low={low === undefined ? undefined : low * whole} high={high === undefined ? undefined : high * whole} />;
      } },
      { sort: "total", label: "total", width: costWidth("total"), rank: null, cell: (one) => (
        <span class="r" role="gridcell" title={TOTALS[totals]}>{isTotal ? `${totals === "at least" ? "≥" : ""}${text(column, value("total", one))}` : ""}</span>) },
      ...(second ? [{ sort: null, label: profile.head.metrics[second.metric].name, width: 66, rank: 8, cell: (one: number) => (
        <span class="r dim" role="gridcell">{text(secondColumn!, secondColumn!.value(second.now.self[one], second.now.total[one], counts?.[one], second.now.samples?.self[one]))}</span>) }] : []),
    ];
    const kept = fitting(columns.map((one) => ({ ...one, width: one.width + GAP })), size.width - PADDING, innerWidth <= 760 ? 190 : 180);
    const used = kept.reduce((sum, one) => sum + one.width, PADDING);
    body = (
      <div class="table" style={{ "--columns": `${kept.map((one) => `${one.width - GAP}px`).join(" ")} minmax(0,1fr)` }}>
        <Rows count={list.length} height={rowHeight()} current={current} onKey={move} label="functions"
          head={<Head columns={[...kept.map((one): [Sort | null, string, boolean] => [one.sort, one.label, !one.left]), ["name", "function", false]]} />}
          render={(at) => {
            const one = list[at];
            return (
              <div class="row" role="row" key={one} {...ofFunction(one)} aria-label={rowLabel(one)} aria-selected={one === fn} onClick={() => select(one)}>
                {kept.map((column) => column.cell(one))}
                <span role="gridcell"><FunctionName fn={one} width={size.width - used} /></span>
              </div>
            );
          }} />
      </div>
    );
  }
  const unitName = unit === "run" ? (found?.part ? "% of the selection" : "% of run") : "";
  const noted = list.length === occurring.value ? grouped(list.length) : `${grouped(list.length)} of ${grouped(occurring.value)}${route.value.q ? " match" : ""}`;
  return (
    <section class="pane functions" ref={ref} aria-label="functions">
      <PaneHead title="Functions" note={found ? `${noted}${found.basePart ? `, ${perSecond()}, by change` : found.base ? `, by change of self${unit === "run" ? `, ${percentWords()}` : ""}` : unitName ? `, ${unitName}` : ""}` : ""} />
      {found && <Chips found={found} />}
      {body}
    </section>
  );
}

/** `8 → 32,019`, or one number where both are equal. */
function callsOfBoth([base, now]: [number, number]): string {
  return base === now ? grouped(now) : `${grouped(base)} → ${grouped(now)}`;
}

function Differences({ found, list, width, current, onKey }: { found: Analysis; list: number[]; width: number; current: number; onKey: (event: KeyboardEvent) => void }) {
  const { fn, unit, normalised } = route.value;
  const profile = theProfile();
  const first = list.slice(0, 5000);
  const largest = Math.max(...first.map((one) => Math.max(found.now.self[one], found.base!.self[one])), 1);
  const column = costColumn(unit === "run" || unit === "parent" ? "run" : "natural", largest);
  const baseColumn = costColumn(unit === "run" || unit === "parent" ? "run" : "natural", largest, "base");
  const changes = first.map((one) => changeOf(found, "self", one));
  const from = Math.min(0, ...changes.map((change) => change.by - change.half));
  const to = Math.max(0, ...changes.map((change) => change.by + change.half));
  const splitOf = (one: number, change: Change) => (normalised ? null : profile.split(found.metric, one, change.by));
  const splits = first.slice(0, 200).map((one, at) => splitOf(one, changes[at]));
  const isSplit = splits.some((split) => split !== null && split.moreCalls + split.costPerCall !== 0);
  const part = (value: number | undefined) => (value === undefined ? "" : delta(column, column.value(value)));
  const changeWidth = Math.max(52, widest(changes.slice(0, 200).map((change) => delta(column, column.value(change.by), change.sure)).concat(`Δ self ${column.head} ▾`), rowFont()));
  const partWidth = (label: string, read: (split: Split) => number) => Math.max(40, widest(splits.map((split) => part(split ? read(split) : undefined)).concat(label), rowFont()));
  const partColumn = (label: string, rank: number, read: (split: Split) => number) => ({
    sort: null, label, width: partWidth(label, read), rank, cell: (one: number, change: Change) => {
      const split = splitOf(one, change);
      return <span class={`r ${split && read(split) ? "" : "dim"}`} role="gridcell">{part(split ? read(split) : undefined)}</span>;
    },
  });
  const callsWidth = Math.min(150, widest(splits.map((split) => (split ? callsOfBoth(split.calls) : "")).concat("calls")));
  // Column by column; those of the lowest rank give way to names.
  const columns: (Yielding & { sort: Sort | null; label: string; cell(one: number, change: Change): JSX.Element })[] = [
    { sort: null, label: isCompared() ? "A" : `base ${column.head}`, width: 52, rank: 2, cell: (one) => {
      const base = found.base!.self[one];
      return <span class="r dim" role="gridcell">{base === 0 && found.base!.total[one] === 0 ? "–" : text(baseColumn, baseColumn.value(base))}</span>;
    } },
    { sort: "self", label: isCompared() ? "B" : `new ${column.head}`, width: 52, rank: 3, cell: (one) => {
      const now = found.now.self[one];
      return <span class="r" role="gridcell">{now === 0 && found.now.total[one] === 0 ? "–" : text(column, column.value(now))}</span>;
    } },
    { sort: "delta", label: `Δ self ${column.head}`, width: changeWidth, rank: null, cell: (_one, change) => (
      <span class={`r ${change.sure ? (change.by > 0 ? "more-t" : "less-t") : "dim"}`} role="gridcell">{delta(column, column.value(change.by), change.sure)}</span>) },
    ...(isSplit ? [
      partColumn("more calls", 5, (split) => split.moreCalls),
      partColumn("cost/call", 6, (split) => split.costPerCall),
      { sort: null, label: "calls", width: callsWidth, rank: 1, cell: (one: number, change: Change) => {
        const split = splitOf(one, change);
        return <span class="r dim small" role="gridcell">{split ? callsOfBoth(split.calls) : ""}</span>;
      } },
    ] : []),
    { sort: null, label: "", width: 60, rank: 0, cell: (_one, change) => <DeltaBar value={change.by} half={change.half} from={from} to={to} sure={change.sure} /> },
  ];
  const kept = fitting(columns.map((one) => ({ ...one, width: one.width + GAP })), width - PADDING, innerWidth <= 760 || !isSplit ? 110 : 150);
  const used = kept.reduce((sum, one) => sum + one.width, PADDING);
  return (
    <div class="table" style={{ "--columns": `${kept.map((one) => `${one.width - GAP}px`).join(" ")} minmax(0,1fr)` }}>
      <Rows count={list.length} height={rowHeight()} current={current} onKey={onKey} label="functions"
        head={<Head columns={[...kept.map((one): [Sort | null, string, boolean] => [one.sort, one.label, true]), ["name", "function", false]]} />}
        render={(at) => {
          const one = list[at];
          const change = changeOf(found, "self", one);
          const kind = kindOf(found, one);
          const tag = kind === "new" || kind === "gone" ? kind : null;
          return (
            <div class="row" role="row" key={one} {...ofFunction(one)} aria-label={rowLabel(one)} aria-selected={one === fn} onClick={() => select(one)}>
              {kept.map((column) => column.cell(one, change))}
              <span role="gridcell" class="with-tag">
                <FunctionName fn={one} width={width - used - (tag ? 40 : 0)} />
                {tag && <span class="tag">{tag}</span>}
              </span>
            </div>
          );
        }} />
    </div>
  );
}

/** Why a total is not there, or is not all of it. */
const TOTALS: Record<string, string | undefined> = {
  estimated: "total costs were not measured: the profile has calls but no stacks",
  unknown: "total costs were measured in another metric",
  "at least": "the tree grew too large and was folded: the total is at least this",
};
