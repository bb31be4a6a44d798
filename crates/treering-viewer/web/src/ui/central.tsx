// The central line: callers above the function, callees below, in columns that add up.

import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { grouped } from "../model/numbers.ts";
import type { Analysis } from "../model/analysis.ts";
import type { Measure } from "../model/interval.ts";
import { NONE } from "../model/tree.ts";
import { PORTS, type Port, type Ports, type SplitParts } from "../profile.ts";
import { baseFactor, measureOf, runCost } from "../measures.ts";
import { go, route, select, shownMetric, sideName } from "../route.ts";
import { analysis, generation, theProfile } from "../state.ts";
import { callsText, costColumn, delta, percentWords, text, type Column } from "./cost.ts";
import { Bar, DeltaBar, Empty, FunctionName, font, PaneHead, rowId, textWidth, useSize, widest } from "./parts.tsx";
import { fitting } from "./columns.ts";
import { ofFunction } from "./menu.tsx";
import { Owners } from "./owners.tsx";
import { changeBetween, changeOf, type Change } from "./functions.tsx";

const MOST = 200;

/** A row of the central line. */
export interface LineRow {
  /** The other function; 0 where the caller is unknown, -1 for what is left out, -2 for the function's own code. */
  fn: number;
  self: number;
  total: number;
  baseSelf: number;
  baseTotal: number;
  calls: number;
  /** The total in both runs. */
  now: Measure;
  base: Measure;
  /** Its calls are counted already, further out. */
  recursive: boolean;
  /** How many functions a row of what is left out stands for. */
  left: number;
}

/** The central line of a function, with its sums. */
export interface Line {
  callers: LineRow[];
  callees: LineRow[];
  self: number;
  total: number;
  baseSelf: number;
  baseTotal: number;
  calls: number | null;
  /** Whether callers add up to the function's total, and own code and callees too, in both runs. */
  callersAdd: boolean;
  calleesAdd: boolean;
}

/** The arcs of one side of the line; `sorted` holds arcs by `key`. */
function arcsOf(sorted: Uint32Array, key: Uint32Array, fn: number): number[] {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (key[sorted[middle]] < fn) low = middle + 1;
    else high = middle;
  }
  const arcs: number[] = [];
  for (let at = low; at < sorted.length && key[sorted[at]] === fn; at++) arcs.push(sorted[at]);
  return arcs;
}

/** Whether the calls of an arc were made further in, so that their cost is counted already; costs do not tell, they may be 0. */
function isRecursive(found: Analysis, arc: number, above: boolean): boolean {
  return found.caller[arc] === found.callee[arc] || ((above || theProfile().head.shape === "arcs") && found.nested[arc] === 1);
}

/** Works out the central line of a function. */
export function centralLine(found: Analysis, fn: number): Line {
  const { now, base } = found;
  const row = (arc: number, other: number, self: "fromSelf" | "toSelf", total: "fromTotal" | "toTotal"): LineRow => ({
    fn: other, self: now[self][arc], total: now[total][arc], baseSelf: base ? base[self][arc] : 0, baseTotal: base ? base[total][arc] : 0,
    calls: found.arcCalls ? found.arcCalls[arc] : 0, recursive: isRecursive(found, arc, total === "fromTotal"), left: 1,
    now: measureOf(now, total, arc), base: base ? measureOf(base, total, arc) : NOTHING,
  });
  const bySize = (a: LineRow, b: LineRow) =>
    Math.max(b.total, b.baseTotal) - Math.max(a.total, a.baseTotal) || b.calls - a.calls || a.fn - b.fn;
  // Functions that were counted by themselves have nodes without callers, which no thread entered.
  const byItself = (row: LineRow) => theProfile().head.countsApart && row.fn === 0 && row.calls === 0 && row.total === 0;
  const callers = arcsOf(found.arcsByCallee, found.callee, fn)
    .map((arc) => row(arc, found.caller[arc] === NONE ? 0 : found.caller[arc], "fromSelf", "fromTotal")).filter((row) => !byItself(row)).sort(bySize);
  const callees = fn === 0 && theProfile().head.shape === "tree" ? [] : arcsOf(found.arcsByCaller, found.caller, fn)
    .map((arc) => row(arc, found.callee[arc], "toSelf", "toTotal")).sort(bySize);
  const sum = (rows: LineRow[], key: "total" | "baseTotal") => rows.reduce((all, one) => all + one[key], 0);
  const close = (a: number, b: number) => Math.abs(a - b) <= 1e-9 * Math.max(Math.abs(a), Math.abs(b));
  const own = { self: now.self[fn], total: now.total[fn], baseSelf: base ? base.self[fn] : 0, baseTotal: base ? base.total[fn] : 0 };
  return {
    callers: shorten(callers), callees: shorten(callees), ...own, calls: found.calls ? found.calls[fn] : null,
    callersAdd: close(sum(callers, "total"), own.total) && close(sum(callers, "baseTotal"), own.baseTotal),
    calleesAdd: close(sum(callees, "total") + own.self, own.total) && close(sum(callees, "baseTotal") + own.baseSelf, own.baseTotal),
  };
}

const NOTHING: Measure = { cost: 0, samples: 0, squares: 0, unseen: 0 };

function plus(a: Measure, b: Measure): Measure {
  return { cost: a.cost + b.cost, samples: a.samples + b.samples, squares: a.squares + b.squares, unseen: a.unseen + b.unseen };
}

/** The first rows, and one for all others. */
function shorten(rows: LineRow[], most = MOST): LineRow[] {
  if (rows.length <= most) return rows;
  const rest = rows.slice(most);
  const all = (key: "self" | "total" | "baseSelf" | "baseTotal" | "calls") => rest.reduce((sum, row) => sum + row[key], 0);
  return [...rows.slice(0, most), {
    fn: -1, self: all("self"), total: all("total"), baseSelf: all("baseSelf"), baseTotal: all("baseTotal"), calls: all("calls"),
    recursive: false, left: rest.reduce((sum, row) => sum + row.left, 0), now: rest.map((row) => row.now).reduce(plus), base: rest.map((row) => row.base).reduce(plus),
  }];
}

export function Central() {
  const [ref, size] = useSize<HTMLElement>();
  const found = analysis.value;
  void generation.value;
  const { fn, lineUnit } = route.value;
  const metric = shownMetric();
  const profile = theProfile();
  const known = profile.head.metrics[metric];
  const unitName = { nanoseconds: "seconds", bytes: "bytes", count: known.name }[known.unit];
  return (
    <section class="pane central" ref={ref} aria-label="central line">
      <PaneHead title="Central line" note="callers above, callees below; the columns add up">
        <label class="small">in{" "}
          <select value={lineUnit} onChange={(event) => go({ lineUnit: event.currentTarget.value as "run" }, true)}>
            <option value="natural">{unitName}</option><option value="run">{profile.head.baseRuns ? percentWords() : "% of run"}</option>
          </select>
        </label>
      </PaneHead>
      {found && fn >= 0 ? <Table found={found} fn={fn} width={size.width} height={size.height} /> : <p class="wait">reading</p>}
    </section>
  );
}

/** Of which function all rows are shown, however many there are. */
const opened = signal(-1);

/** How many callers are shown, so that the function and its callees have their place: half of it, or what callees leave. */
function roomForCallers(line: Line, height: number): number {
  const rows = Math.floor((height - 32 - 24 - 2 * 28 - 32 - 2 * 22) / (innerWidth <= 760 ? 34 : 22));
  return Math.max(2, Math.ceil(rows / 2), rows - line.callees.length);
}

function Table({ found, fn, width, height }: { found: Analysis; fn: number; width: number; height: number }) {
  const whole = centralLine(found, fn);
  const most = roomForCallers(whole, height);
  const line = opened.value === fn || whole.callers.length <= most + 1 ? whole : { ...whole, callers: shorten(whole.callers, most) };
  if (theProfile().head.shape === "flat") {
    return <Empty what="No calls between functions" why="This profile is flat: it has each function's own numbers, and nothing is known of who called it." />;
  }
  return found.base ? <DifferenceTable found={found} fn={fn} line={line} width={width} /> : <PlainTable found={found} fn={fn} line={line} width={width} />;
}

function More({ left }: { left: number }) {
  return <button type="button" class="link" onClick={() => (opened.value = route.peek().fn)}>{grouped(left)} more</button>;
}

/** A cursor that arrow keys move over the functions of a table; Enter makes the one under it current. */
function useCursor(rows: LineRow[], of: number) {
  const [cursor, setCursor] = useState({ of, at: -1 });
  const at = cursor.of === of ? cursor.at : -1;
  const id = (at: number) => rowId("central", at);
  return {
    grid: {
      "aria-activedescendant": at >= 0 && at < rows.length ? id(at) : undefined,
      onKeyDown: (event: KeyboardEvent) => {
        const by = { ArrowDown: 1, ArrowUp: -1, Home: -1e9, End: 1e9 }[event.key];
        if (event.altKey || event.ctrlKey || event.metaKey) return;
        if (by !== undefined && rows.length) {
          const next = Math.max(0, Math.min(rows.length - 1, at < 0 && by > 0 ? 0 : at + by));
          setCursor({ of, at: next });
          document.getElementById(id(next))?.scrollIntoView({ block: "nearest" });
        } else if (event.key === "Enter" && rows[at]) {
          if (rows[at].fn > 0) select(rows[at].fn);
          else if (rows[at].fn === -1) opened.value = of;
        } else return;
        event.preventDefault();
        event.stopPropagation();
      },
    },
    row: (row: LineRow) => ({ id: id(rows.indexOf(row)), "data-cursor": rows[at] === row ? "" : undefined }),
  };
}

function rowsOf(role: string, rows: LineRow[], render: (row: LineRow) => preact.JSX.Element) {
  return <div role="rowgroup" aria-label={role}>{rows.map(render)}</div>;
}

function PlainTable({ found, fn, line, width }: { found: Analysis; fn: number; line: Line; width: number }) {
  const unit = route.value.lineUnit;
  const whole = runCost(found.metric, "now") || 1;
  const column = costColumn(unit, line.total);
  const share = costColumn("run", line.total);
  // On a phone calls can be seen in the strip.
  const narrow = width < 480;
  const profile = theProfile();
  // Columns of counts are as wide as their largest number.
  const wide = (largest: number, least: number) => Math.max(least, Math.ceil(textWidth(grouped(largest), font(13, 700))) + 4);
  const rows = [...line.callers, ...line.callees];
  const portWidth = (port: Port) => wide(rows.reduce((most, row) => Math.max(most, profile.ports(Math.max(row.fn, 0))?.[port] ?? 0), profile.ports(fn)?.[port] ?? 0), 38);
  const costWidth = narrow ? 62 : Math.max(56, ...[line.self, line.total - line.self].map((cost) => Math.ceil(textWidth(`~${text(column, column.value(cost))}`, font(13, 700))) + 4), Math.ceil(textWidth(`■ children ${column.head}`, font(11))) + 6);
  const callsWidth = wide(Math.max(line.calls ?? 0, ...line.callers.map((row) => row.calls), line.callees.reduce((sum, row) => sum + row.calls, 0)), 44);
  const gap = narrow ? 7 : 8;
  // Ports were counted in the whole program: with a part left out they would not belong to the other numbers.
  const allPorts = route.value.steps.length ? [] : profile.portColumns;
  const kept = fitting([
    { key: "self", width: costWidth + gap, rank: null }, { key: "children", width: costWidth + gap, rank: null }, { key: "share", width: 48 + gap, rank: null },
    ...(found.arcCalls ? [{ key: "calls", width: callsWidth + gap, rank: 4 }] : []),
    ...allPorts.map((port, at) => ({ key: port as string, width: portWidth(port) + gap, rank: 3 - at / 10 })),
    // The bar says nothing that the numbers do not.
    { key: "bar", width: 62 + gap, rank: 1 },
  ], width - 26, 170);
  const has = (key: string) => kept.some((one) => one.key === key);
  const [counts, ports, bar] = [has("calls") ? found.arcCalls : null, allPorts.filter(has), has("bar")];
  const template = `${kept.map((one) => `${one.width - gap}px`).join(" ")} minmax(0,1fr)`;
  const used = kept.reduce((sum, one) => sum + one.width, 26);
  const cursor = useCursor(rows, fn);
  const portCells = (of: Ports | null) => ports.map((port) => <span class={of?.[port] ? "r" : "r dim"} role="gridcell">{of ? grouped(of[port]) : ""}</span>);
  const portsOf = (rows: LineRow[], above: boolean) => {
    const sum: Ports = { exits: 0, redos: 0, fails: 0, exceptions: 0 };
    for (const row of rows) {
      const of = row.fn < 0 ? null : above ? profile.ports(fn, row.fn) : profile.ports(row.fn, fn);
      if (of) for (const port of PORTS) sum[port] += of[port];
    }
    return sum;
  };
  const mark = found.estimated ? "~" : "";
  // Without stacks each cycle counts as one function, as gprof does it.
  const inCycle = theProfile().head.shape === "arcs" ? found.cycle[fn] : 0;
  const show = (cost: number) => (cost ? mark : "") + text(column, column.value(cost));
  const children = (row: { self: number; total: number }) => row.total - row.self;
  const name = (row: LineRow) => row.fn === -1 ? <More left={row.left} /> : row.fn === 0 ? <i>spontaneous</i> : (
    <span class="with-tag"><FunctionName fn={row.fn} width={width - used - (row.recursive ? 64 : 0)} />{row.recursive && <span class="tag">recursive</span>}</span>
  );
  const rowOf = (row: LineRow, above: boolean) => (
    <div class="row" role="row" {...cursor.row(row)} {...ofFunction(row.fn)} key={row.fn} onClick={() => row.fn > 0 && select(row.fn)}>
      <span class="r" role="gridcell">{show(row.self)}</span>
      <span class="r" role="gridcell">{show(children(row))}</span>
      <span class={row.total ? "r" : "r dim"} role="gridcell">{row.total ? mark : ""}{text(share, share.value(row.total))}</span>
      {counts && <span class="r" role="gridcell">{callsText(row.calls)}</span>}
      {ports.length > 0 && portCells(row.fn < 0 ? null : above ? profile.ports(fn, row.fn) : profile.ports(row.fn, fn))}
      {bar && <Bar self={row.self} total={row.total} whole={line.total} />}
      <span role="gridcell">{name(row)}</span>
    </div>
  );
  const sum = (rows: LineRow[]) => rows.reduce((all, row) => ({ self: all.self + row.self, total: all.total + row.total, calls: all.calls + row.calls }), { self: 0, total: 0, calls: 0 });
  const [above, below] = [sum(line.callers), sum(line.callees)];
  // Owners can be clicked, which in a grid only its cells may.
  return (
    <>
    <Owners fn={fn} />
    <div class="table central-table scroll" role="grid" {...cursor.grid} aria-label={`central line of ${theProfile().fullName(fn)}`} tabIndex={0}
      style={{ "--columns": template }}>
      <div class="row head" role="row">
        <span class="r" role="columnheader"><i class="box self" /> self {column.head}</span>
        <span class="r" role="columnheader"><i class="box child" /> children{narrow ? "" : ` ${unit === "run" ? "%" : column.head}`}</span>
        <span class="r" role="columnheader">total %</span>
        {counts && <span class="r" role="columnheader">calls</span>}
        {ports.map((port) => <span class="r" role="columnheader">{port === "exceptions" ? "except." : port}</span>)}
        {bar && <span aria-hidden="true" />}<span role="columnheader">function</span>
      </div>
      <p class="group">{line.callers.length === 1 ? "1 caller" : `${grouped(line.callers.reduce((sum, row) => sum + row.left, 0))} callers`}: who asked for it{mark && " (divided by calls, as gprof does)"}</p>
      {rowsOf("callers", line.callers, (row) => rowOf(row, true))}
      <div class="row sum" role="row">
        <span role="gridcell" class="r">{show(above.self)}</span><span role="gridcell" class="r">{show(above.total - above.self)}</span>
        <span role="gridcell" class="r">{above.total ? mark : ""}{text(share, share.value(above.total))}</span>{counts && <span role="gridcell" class="r">{callsText(above.calls)}</span>}{ports.length > 0 && portCells(portsOf(line.callers, true))}{bar && <span aria-hidden="true" />}
        <span role="gridcell" class={line.callersAdd || inCycle ? "ok" : "wrong"}>
          {line.callersAdd ? "✓ adds up to the function" : inCycle ? `asked for cycle ${inCycle} as a whole` : `✗ the function has ${show(line.total)}`}
        </span>
      </div>
      <div class="row this" role="row" {...ofFunction(fn)} aria-selected="true">
        <span role="gridcell" class="r">{text(column, column.value(line.self))}</span><span role="gridcell" class="r">{show(children(line))}</span>
        <span role="gridcell" class="r">{mark}{text(share, line.total / whole)}</span>{counts && <span role="gridcell" class="r">{callsText(line.calls ?? 0)}</span>}
        {ports.length > 0 && portCells(profile.ports(fn))}
        {bar && <Bar self={line.self} total={line.total} whole={line.total} />}
        <span role="gridcell"><FunctionName fn={fn} width={width - used} heading /></span>
      </div>
      <p class="group">{line.callees.length === 1 ? "1 callee" : `${line.callees.length} callees`}: what it asked for</p>
      {rowsOf("callees", line.callees, (row) => rowOf(row, false))}
      <div class="row sum last" role="row">
        <span role="gridcell" class="r">{show(below.self)}</span><span role="gridcell" class="r">{show(below.total - below.self)}</span>
        <span role="gridcell" class="r">{below.total ? mark : ""}{text(share, share.value(below.total))}</span>{counts && <span role="gridcell" class="r">{callsText(below.calls)}</span>}{ports.length > 0 && portCells(portsOf(line.callees, false))}{bar && <span aria-hidden="true" />}
        <span role="gridcell" class={line.calleesAdd || inCycle ? "ok" : "wrong"}>
          {inCycle && !line.calleesAdd ? `calls within cycle ${inCycle} cost nothing here` : line.calleesAdd ? `✓ ${show(below.self)} + ${show(below.total - below.self)} = ${show(children(line))}${width > 640 ? " children" : ""}` : `✗ children are ${show(children(line))}`}
        </span>
      </div>
    </div>
    </>
  );
}

function DifferenceTable({ found, fn, line, width }: { found: Analysis; fn: number; line: Line; width: number }) {
  const unit = route.value.lineUnit;
  const largest = Math.max(line.total, line.baseTotal);
  const column: Column = costColumn(unit, largest);
  const baseColumn: Column = costColumn(unit, largest, "base");
  const rows = [...line.callers, ...line.callees];
  const cursor = useCursor(rows, fn);
  const changes = rows.map((row) => changeBetween(found.metric, row.base, row.now));
  const own = changeOf(found, "total", fn);
  const from = Math.min(0, own.by - own.half, ...changes.map((change) => change.by - change.half));
  const to = Math.max(0, own.by + own.half, ...changes.map((change) => change.by + change.half));
  // On a phone the name needs the place of the bar; the mark says whether a change is more than chance.
  const narrow = width < 480;
  // The row of the function itself is the widest.
  const costWidth = Math.max(narrow ? 56 : 66, widest([text(baseColumn, baseColumn.value(line.baseTotal)), text(column, column.value(line.total))], 13, 700));
  const changeWidth = Math.max(narrow ? 66 : 76, widest([delta(column, column.value(own.by), own.sure)], 13, 700));
  const { normalised } = route.value;
  const profile = theProfile();
  const partsOf = (row: LineRow, above: boolean) =>
    row.fn < 0 || normalised ? null : profile.arcParts(found.metric, above ? row.fn : fn, above ? fn : row.fn, row.total - row.baseTotal);
  const selfParts = normalised ? null : profile.split(found.metric, fn, line.self - line.baseSelf);
  const all = (parts: (SplitParts | null)[]) => parts.reduce((sum, one) => sum && one && { moreCalls: sum.moreCalls + one.moreCalls, costPerCall: sum.costPerCall + one.costPerCall }, { moreCalls: 0, costPerCall: 0 });
  const [above, below] = [line.callers.map((row) => partsOf(row, true)), line.callees.map((row) => partsOf(row, false))];
  const [ofCallers, ofCallees] = [line.callersAdd ? all(above) : null, line.calleesAdd ? all([selfParts, ...below]) : null];
  const known = [...above, ...below, selfParts, ofCallers, ofCallees].filter((one) => one !== null);
  const isSplit = known.some((one) => one.moreCalls !== 0 || one.costPerCall !== 0);
  const part = (value: number | undefined) => (value === undefined ? "" : delta(column, column.value(value)));
  const partWidth = (label: string, read: (parts: SplitParts) => number) => Math.max(widest([label]), widest(known.map((one) => part(read(one))), 13, 700));
  const gap = narrow ? 7 : 8;
  // The bar says nothing that the numbers do not; the base is the difference of two others.
  const kept = fitting([
    { key: "base", width: costWidth + gap, rank: isSplit && !narrow ? 2 : null }, { key: "new", width: costWidth + gap, rank: null }, { key: "change", width: changeWidth + gap, rank: null },
    ...(isSplit && !narrow ? [
      { key: "more", width: partWidth("more calls", (one) => one.moreCalls) + gap, rank: null }, { key: "cost", width: partWidth("cost/call", (one) => one.costPerCall) + gap, rank: null },
    ] : []),
    ...(narrow ? [] : [{ key: "bar", width: 74 + gap, rank: 1 }]),
  ], width - 24, 72);
  const has = (key: string) => kept.some((one) => one.key === key);
  const used = kept.reduce((sum, one) => sum + one.width, 32);
  const partCells = (parts: SplitParts | null) => (["more", "cost"] as const).filter(has).map((key) => {
    const value = key === "more" ? parts?.moreCalls : parts?.costPerCall;
    return <span role="gridcell" class={value ? "r" : "r dim"}>{part(value)}</span>;
  });
  const cells = (base: number, now: number, change: Change, parts: SplitParts | null) => {
    return (
      <>
        {has("base") && <span role="gridcell" class="r dim">{text(baseColumn, baseColumn.value(base))}</span>}
        <span role="gridcell" class="r">{text(column, column.value(now))}</span>
        <span role="gridcell" class={`r ${change.sure ? (change.by > 0 ? "more-t" : "less-t") : "dim"}`}>{delta(column, column.value(change.by), change.sure)}</span>
        {partCells(parts)}
        {has("bar") && <DeltaBar value={change.by} half={change.half} from={from} to={to} sure={change.sure} />}
      </>
    );
  };
  const rowOf = (row: LineRow, isAbove: boolean) => (
    <div class="row" role="row" {...cursor.row(row)} {...ofFunction(row.fn)} key={row.fn} onClick={() => row.fn > 0 && select(row.fn)}>
      {cells(row.baseTotal, row.total, changeBetween(found.metric, row.base, row.now), partsOf(row, isAbove))}
      <span role="gridcell">{row.fn === -1 ? <More left={row.left} /> : row.fn === 0 ? <i>spontaneous</i> : <FunctionName fn={row.fn} width={width - used} />}</span>
    </div>
  );
  const sumRow = (base: number, now: number, parts: SplitParts | null, right: boolean, words: string) => (
    <div class="row sum" role="row">
      {has("base") && <span role="gridcell" class="r">{text(baseColumn, baseColumn.value(base))}</span>}<span role="gridcell" class="r">{text(column, column.value(now))}</span>
      <span role="gridcell" class="r">{delta(column, column.value(now - base * baseFactor(found.metric)))}</span>{partCells(parts)}{has("bar") && <span aria-hidden="true" />}
      <span role="gridcell" class={right ? "ok" : "wrong"}>{right ? `✓ ${words}` : "✗ does not add up"}</span>
    </div>
  );
  const sum = (list: LineRow[], key: "total" | "baseTotal") => list.reduce((all, row) => all + row[key], 0);
  return (
    <div class="table central-table scroll" role="grid" {...cursor.grid} aria-label={`central line of ${theProfile().fullName(fn)}`} tabIndex={0}
      style={{ "--columns": `${kept.map((one) => `${one.width - gap}px`).join(" ")} minmax(0,1fr)` }}>
      <div class="row head" role="row">
        {has("base") && <span class="r" role="columnheader">{sideName("base")} {column.head}</span>}<span class="r" role="columnheader">{sideName("now")} {column.head}</span>
        <span class="r" role="columnheader">Δ total</span>
        {has("more") && <span class="r" role="columnheader">more calls</span>}{has("cost") && <span class="r" role="columnheader">cost/call</span>}{has("bar") && <span aria-hidden="true">95 %</span>}<span role="columnheader">function</span>
      </div>
      <p class="group">{line.callers.length === 1 ? "1 caller" : `${line.callers.length} callers`}</p>
      {rowsOf("callers", line.callers, (row) => rowOf(row, true))}
      {sumRow(sum(line.callers, "baseTotal"), sum(line.callers, "total"), ofCallers, line.callersAdd, "callers add up to the function’s total, in both runs")}
      <div class="row this" role="row" {...ofFunction(fn)} aria-selected="true">{cells(line.baseTotal, line.total, own, ofCallers)}<span role="gridcell"><FunctionName fn={fn} width={width - used} heading /></span></div>
      <p class="group">{line.callees.length === 1 ? "1 callee" : `${line.callees.length} callees`} and its own code</p>
      <div class="row" role="row">{cells(line.baseSelf, line.self, changeOf(found, "self", fn), selfParts)}<span role="gridcell"><i>self</i></span></div>
      {rowsOf("callees", line.callees, (row) => rowOf(row, false))}
      {sumRow(sum(line.callees, "baseTotal") + line.baseSelf, sum(line.callees, "total") + line.self, ofCallees, line.calleesAdd, "self and callees add up to the total")}
    </div>
  );
}
