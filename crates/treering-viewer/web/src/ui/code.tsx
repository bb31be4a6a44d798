// Source, blocks and charts of the current function.

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Side } from "../model/analysis.ts";
import type { LineCall, OwnLine } from "../model/lines.ts";
import { grouped } from "../model/numbers.ts";
import type { Column } from "../model/slabs.ts";
import { basename, type Block } from "../profile.ts";
import { askLines } from "../asking.ts";
import { go, isDifference, route, select, shownMetric, spanOf, tabs, type Tab, sideName } from "../route.ts";
import { analysis, failure, generation, hasTree, theProfile } from "../state.ts";
import { Waits } from "./time/waits.tsx";
import { costColumn, text } from "./cost.ts";
import { BlockPairs } from "./block_pairs.tsx";
import { columnsOf, FunctionName, useSize } from "./parts.tsx";
import { HotLines } from "./hot_lines.tsx";
import { ofFunction } from "./menu.tsx";
import { NoBlocks, NoLines } from "./reasons.tsx";
import { Charts } from "./charts.tsx";

const NAMES: Record<Tab, string> = { source: "Source", lines: "Lines", blocks: "Blocks", charts: "Charts", waits: "Waits" };

export function CodePane() {
  const { tab } = route.value;
  return (
    <section class="pane code" aria-label="source, blocks and charts">
      <div class="tabs" role="tablist">
        {tabs().map((one) => <button type="button" role="tab" aria-selected={one === tab} onClick={() => go({ tab: one }, true)}>{NAMES[one]}</button>)}
      </div>
      {tab === "source" ? <SourceTab /> : tab === "lines" ? <HotLines /> : tab === "blocks" ? <BlocksTab /> : tab === "waits" ? <Waits /> : <Charts />}
    </section>
  );
}

// ---- source

interface SourceLine {
  file: number;
  /** Its number: in the new version, or in the base where that alone has it. */
  line: number;
  /** Its number in both versions of a difference; null where a version has no such line. */
  numbers: [base: number | null, now: number | null];
  /** Where the base alone has it: its text, and the line of the new version that it stands behind. */
  only: { text: string; after: number } | null;
  self: number;
  total: number;
  /** In a difference, the total and the self cost of the base runs. */
  base: number;
  baseSelf: number;
  calls: { callee: number; calls: number; total: number; base: number }[];
}

const calls = signal<{ key: string; rows: { now: LineCall[]; base: LineCall[]; own: OwnLine[] | null } } | null>(null);
/** The line that the keys for the hottest lines went to, as an index of the lines by cost. */
export const hottestAt = signal(-1);

/** The rows of `lineCosts` that are of a function, which they are sorted by: from the first to before the last. */
function lineRows(fn: number): [number, number] {
  const of = theProfile().data.lineCosts.fn;
  const first = (wanted: number) => {
    let [low, high] = [0, of.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (of[middle] < wanted) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  return [first(fn), first(fn + 1)];
}

/**
 * The metric that lines are shown in: the present one, or that of its samples where only these are known by line, as in
 * V8's files.
 */
export function lineMetric(): number {
  const metric = shownMetric();
  const { data, head } = theProfile();
  const { samples } = head.metrics[metric];
  const has = (of: number) => [data.lineCosts.costs[of], data.lineCosts.baseCosts?.[of]].some((costs) => costs && anyCost(costs));
  return samples !== null && !has(metric) && has(samples) ? samples : metric;
}

const costly = new WeakMap<Column, boolean>();
/** Whether a column has any cost; looked for once. */
function anyCost(costs: Column): boolean {
  let any = costly.get(costs);
  if (any === undefined) costly.set(costs, (any = costs.some((cost) => cost > 0)));
  return any;
}

/** Whether the lines of a function have any cost, in any metric and without transforms. */
function anyLineCost(fn: number): boolean {
  const [from, to] = lineRows(fn);
  const { costs, baseCosts } = theProfile().data.lineCosts;
  return [...costs, ...(baseCosts ?? [])].some((column) => column?.subarray(from, to).some((cost) => cost > 0));
}

/** The lines of the current function that cost something, from largest to smallest total. */
function linesOf(fn: number): SourceLine[] {
  const { data } = theProfile();
  const metric = lineMetric();
  const costs = data.lineCosts.costs[metric];
  const lines = new Map<number, SourceLine>();
  const pairs = theProfile().linePairs(fn);
  /** The row of a line; of one that the base alone has under another key. */
  const get = (line: number, side: "now" | "base") => {
    const inBase = side === "base" ? pairs.ofBase.get(line) : undefined;
    const key = inBase ? inBase.now ?? -1 - line : line;
    let known = lines.get(key);
    if (known) return known;
    const only = inBase && inBase.now === null ? { text: inBase.text, after: inBase.after } : null;
    const at = only ? line : key;
    const pair = only ? inBase : pairs.ofNow.get(key);
    const number = (line: number | null) => (line === null ? null : data.lines.line[line]);
    const numbers: SourceLine["numbers"] = pair ? [number(pair.base), number(pair.now)] : [number(at), number(at)];
    lines.set(key, (known = { file: pair ? pair.file : data.lines.file[at], line: data.lines.line[at], numbers, only, self: 0, total: 0, base: 0, baseSelf: 0, calls: [] }));
    return known;
  };
  const add = (line: number, now: number, base: number) => {
    const row = get(line, "now");
    row.self += now;
    row.total += now;
    const of = base ? get(line, "base") : row;
    of.base += base;
    of.baseSelf += base;
  };
  // Under transforms the worker knows what is left of the lines' costs, where the page has them by node.
  const own = route.value.steps.length ? followed() : null;
  for (const one of own ?? []) add(one.line, one.now, one.base);
  const rows = data.lineCosts;
  const [from, to] = lineRows(fn);
  for (let at = from; !own && at < to; at++) {
    const base = rows.baseCosts?.[metric]?.[at] ?? 0;
    if (!costs || (!costs[at] && !base)) continue;
    add(rows.line[at], costs[at], base);
  }
  const called = calls.value?.rows;
  for (const [side, list] of [["total", called?.now ?? []], ["base", called?.base ?? []]] as const) {
    for (const call of list) {
      if (call.site === 0) continue;
      addCall(get(call.site - 1, side === "base" ? "base" : "now"), side, call);
    }
  }
  return [...lines.values()].filter((line) => line.total || line.base || line.calls.length);
}

/** The costs of lines under transforms; null where the page does not know it. */
function followed(): OwnLine[] | null {
  return calls.value?.rows.own ?? null;
}

/** Adds a call to the line that made it. */
function addCall(line: SourceLine, side: "total" | "base", call: LineCall) {
  if (call.total === 0 && call.calls === 0) return;
  line[side] += call.total;
  let row = line.calls.find((known) => known.callee === call.callee);
  if (!row) line.calls.push((row = { callee: call.callee, calls: 0, total: 0, base: 0 }));
  row[side] += call.total;
  if (side === "total") row.calls += call.calls;
}

/** Null until it is known which calls the lines made. */
function useLines(): SourceLine[] | null {
  const { fn, steps } = route.value;
  const metric = lineMetric();
  const key = `${fn} ${metric} ${JSON.stringify(steps)} ${generation.value}`;
  useEffect(() => {
    if (!hasTree() || fn < 0) return;
    if (calls.peek()?.key === key) return;
    const asked = generation.peek();
    askLines(fn, metric)?.then((rows) => { if (route.peek().fn === fn && generation.peek() === asked) calls.value = { key, rows }; }, (error: Error) => (failure.value = `the lines cannot be worked out: ${error.message}`));
    hottestAt.value = -1;
  }, [key]);
  return fn >= 0 && hasTree() && calls.value?.key !== key ? null : fn < 0 ? [] : linesOf(fn);
}

/** The lines of a function that cost most, in the order of the source, and how many others there are. */
export function costlyLines(fn: number, most: number): { lines: (SourceLine & { text: string })[]; left: number } {
  const profile = theProfile();
  const all = linesOf(fn).sort((a, b) => Math.max(b.total, b.base) - Math.max(a.total, a.base));
  const textOf = (line: SourceLine) => {
    if (line.only) return line.only.text.trim();
    const stretch = profile.sources(line.file).find((one) => line.line >= one.first && line.line < one.first + one.lines.length);
    return stretch ? stretch.lines[line.line - stretch.first].trim() : basename(profile.data.strings[line.file]);
  };
  const lines = all.slice(0, most).map((line) => ({ ...line, text: textOf(line) })).sort((a, b) => a.file - b.file || a.line - b.line);
  return { lines, left: all.length - lines.length };
}

function SourceTab() {
  const [ref, size] = useSize<HTMLDivElement>();
  const lines = useLines();
  const profile = theProfile();
  const { fn } = route.value;
  const metric = lineMetric();
  const { head, data } = profile;
  useEffect(() => {
    const mark = ref.current?.querySelector("[data-hot='now']") ?? ref.current?.querySelector("[data-hot='0']");
    mark?.scrollIntoView({ block: "center" });
  }, [fn, hottestAt.value, lines?.length]);
  if (!lines) return <div class="fill" ref={ref}><p class="wait">reading</p></div>;
  if (!lines.length) {
    return (
      <div class="fill" ref={ref}>
        <NoLines fn={fn} anyCost={fn > 0 && anyLineCost(fn)} />
      </div>
    );
  }
  const exact = head.metrics[metric].samples === null && head.metrics[metric].unit === "count";
  const difference = isDifference();
  const largest = lines.reduce((most, line) => Math.max(most, line.total, line.base), 0);
  // A phone has no room for counts in full.
  const column = costColumn((exact && innerWidth > 760) || difference ? "natural" : "run", largest, "now", metric);
  const weightOf = (line: SourceLine) => (difference ? Math.abs(line.total - line.base) : line.total);
  const byCost = [...lines].sort((a, b) => weightOf(b) - weightOf(a));
  const rank = (line: SourceLine) => byCost.indexOf(line);
  const home = data.lines ? fileOf(fn, lines) : 0;
  const files = [...new Set(lines.map((line) => line.file))].sort((a, b) => (a === home ? -1 : b === home ? 1 : 0));
  const show = (cost: number) => text(column, column.value(cost));
  const hasText = profile.sources(home).length > 0;
  const elsewhere = withoutLine(fn, lines);
  const shown = elsewhere ? [...lines, elsewhere] : lines;
  // In a difference costs and numbers are shown in full.
  const widths = difference ? columnsOf([
    [sideName("base"), ...shown.map((line) => show(line.base))], [sideName("now"), ...shown.map((line) => show(line.total))],
    shown.map((line) => `+${show(Math.abs(line.total - line.base))}`), ["line", ...shown.map(placeOf)],
  ]) : undefined;
  return (
    <div class="fill" ref={ref}>
      <div class="code-head">
        <code title={data.strings[home]}>{basename(data.strings[home])}{profile.file(fn) && profile.line(fn) ? `:${profile.line(fn)}` : ""}</code>
        <span class="note">{grouped(lines.length)} {lines.length === 1 ? "line" : "lines"} with cost{metric !== shownMetric() ? `, in ${head.metrics[metric].name}: what they cost in ${head.metrics[shownMetric()].name} was not measured` : ""}{hasText ? "" : !profile.hasCode ? "; reading their text" : head.noSource ? "; source text was left out" : "; the file was not there, or changed since the run"}{spanOf(route.value.steps) ? "; what lines cost themselves in a part of the run is not known" : route.value.steps.length && !followed() ? "; self costs of lines are those of the whole program" : ""}</span>
        <span class="space" />
        <button type="button" class="link" onClick={() => nextHottest(true)}>hottest <kbd>H</kbd></button>
        <button type="button" class="link" onClick={() => nextHottest(false)}>next <kbd>J</kbd></button>
      </div>
      <div class="scroll source" tabIndex={0} aria-label="source" style={widths}>
        <div class="source-row head">{difference ? <><span class="r">{sideName("base")} {column.head}</span><span class="r">{sideName("now")} {column.head}</span><span class="r">Δ</span></> : <><span class="r">self {column.head}</span><span class="r">total {column.head}</span><span /></>}<span class="r">line</span><span>source</span></div>
        {profile.linePairs(fn).byPlace && <p class="group">lines are paired by their distance from the head of the function, for one profile has no source text</p>}
        {files.map((file) => {
          const ofFile = lines.filter((line) => line.file === file).sort((a, b) => a.line - b.line);
          const source = profile.sources(file);
          return (
            <>
              {file !== home && <p class="group">inlined here from <code>{basename(data.strings[file])}</code></p>}
              {rowsOfFile(ofFile, source, file === home ? profile.line(fn) : 0).map((row) => row.kind === "gap" ? <p class="gap">…</p> : (
                <SourceRow line={row.line} at={row.at} text={row.text} rank={row.line ? rank(row.line) : -1} show={show} whole={largest} width={size.width} difference={difference} />
              ))}
            </>
          );
        })}
        {elsewhere && (
          <>
            <p class="group">without a known line</p>
            <SourceRow line={elsewhere} at={0} text="" rank={-1} show={show} whole={largest} width={size.width} difference={difference} />
          </>
        )}
      </div>
    </div>
  );
}

/** The cost that a function passed and called at lines that are not known, so that all rows add up to its total; nothing where there is none. */
function withoutLine(fn: number, lines: SourceLine[]): SourceLine | null {
  const found = analysis.value;
  if (!found || (route.value.steps.length && !followed())) return null;
  const inSamples = lineMetric() !== found.metric;
  const of = (side: Side) => (inSamples ? side.samples!.self[fn] : side.self[fn]);
  const [own, base] = [of(found.now), found.base ? of(found.base) : 0];
  const known = (key: "self" | "baseSelf") => lines.reduce((sum, line) => sum + line[key], 0);
  const [self, baseSelf] = [Math.max(0, own - known("self")), Math.max(0, base - known("baseSelf"))];
  const row: SourceLine = { file: 0, line: 0, numbers: [null, null], only: null, self, total: self, base: baseSelf, baseSelf, calls: [] };
  for (const [side, list] of [["total", calls.value?.rows.now ?? []], ["base", calls.value?.rows.base ?? []]] as const) {
    for (const call of list) if (call.site === 0) addCall(row, side, call);
  }
  return row.self > 0 || row.base > 0 || row.calls.length ? row : null;
}

function fileOf(fn: number, lines: SourceLine[]): number {
  const own = theProfile().data.functions.file[fn];
  return lines.some((line) => line.file === own) ? own : lines.reduce((a, b) => (b.total > a.total ? b : a)).file;
}

type Shown = { kind: "row"; at: number; line: SourceLine | null; text: string } | { kind: "gap" };

/** The rows of a file: the lines with cost, and the text around them where the page has it. */
function rowsOfFile(lines: SourceLine[], sources: { first: number; lines: string[] }[], start: number): Shown[] {
  const known = new Map(lines.filter((line) => !line.only).map((line) => [line.line, line]));
  const rows: Shown[] = [];
  const from = Math.min(start > 0 ? start : Infinity, ...known.keys()) - 3;
  const to = Math.max(...known.keys()) + 3;
  let last = -1;
  for (const source of sources) {
    for (let at = 0; at < source.lines.length; at++) {
      const number = source.first + at;
      if (number < from || number > to || number <= last) continue;
      if (last >= 0 && number > last + 1) rows.push({ kind: "gap" });
      rows.push({ kind: "row", at: number, line: known.get(number) ?? null, text: source.lines[at] });
      known.delete(number);
      last = number;
    }
  }
  // A line without text in the page is still a row with its numbers.
  const rest = [...known.values()].map((line): Shown => ({ kind: "row", at: line.line, line, text: "" }));
  const all = rest.length ? [...rows, ...rest].sort((a, b) => ("at" in a ? a.at : 0) - ("at" in b ? b.at : 0)) : rows;
  for (const line of lines) if (line.only) addBehind(all, line, line.only);
  return outdent(all);
}

/** Puts a line that the base alone has behind the one that stands before it, and other such lines there. */
function addBehind(rows: Shown[], line: SourceLine, { text, after }: { text: string; after: number }) {
  const isBefore = (row: Shown) => row.kind === "row" && row.at <= after;
  rows.splice(rows.findLastIndex(isBefore) + 1, 0, { kind: "row", at: after, line, text });
}

/** `12`, `12 → 14`, or a line of one version alone: `12 →` and `→ 14`. */
function placeOf({ numbers: [base, now] }: SourceLine): string {
  if (base === now) return now ? String(now) : "";
  return `${base ?? ""} → ${now ?? ""}`.trim();
}

/** Takes the indentation away that all lines share. */
function outdent(rows: Shown[]): Shown[] {
  const common = Math.min(...rows.map((row) => (row.kind === "row" && row.text.trim() ? /^\s*/.exec(row.text)![0].replace(/\t/g, "    ").length : Infinity)));
  if (!Number.isFinite(common) || common === 0) return rows;
  return rows.map((row) => (row.kind === "row" ? { ...row, text: row.text.replace(/\t/g, "    ").slice(common) } : row));
}

function SourceRow({ line, at, text: code, rank, show, whole, width, difference }: {
  line: SourceLine | null; at: number; text: string; rank: number; show: (cost: number) => string; whole: number; width: number; difference: boolean;
}) {
  const change = (by: number) => <span class={`r ${by > 0 ? "more-t" : by < 0 ? "less-t" : "dim"}`}>{by === 0 ? "0" : `${by > 0 ? "+" : "−"}${show(Math.abs(by))}`}</span>;
  const hot = rank === 0 ? "hot1" : rank > 0 && rank < 3 ? "hot2" : "";
  return (
    <>
      <div class={`source-row ${hot} ${line ? "" : "cold"}`} data-hot={rank >= 0 ? (hottestAt.value === rank ? "now" : String(rank)) : undefined}>
        <span class={difference ? "r dim" : "r"}>{line ? show(difference ? line.base : line.self) : ""}</span>
        <span class="r">{line ? show(line.total) : ""}</span>
        {difference ? (line ? change(line.total - line.base) : <span />) : <span class="bar" aria-hidden="true">{line && <><i class="child" style={{ width: `${(100 * line.total) / whole}%` }} /><i style={{ width: `${(100 * line.self) / whole}%` }} /></>}</span>}
        <span class="r dim">{line ? placeOf(line) : at || ""}</span>
        <code class="text" title={code}><Highlighted text={code} /></code>
      </div>
      {line?.calls.map((call) => (
        <div class="source-row call" {...ofFunction(call.callee)} onClick={() => select(call.callee)} role="button" tabIndex={-1}>
          <span class="r">{difference ? show(call.base) : ""}</span><span class="r">{show(call.total)}</span>
          <span class="r dim">{difference ? "" : call.calls ? `${grouped(call.calls)}×` : ""}</span><span class="r">→</span>
          <FunctionName fn={call.callee} width={width - 240} mark={false} />
        </div>
      ))}
    </>
  );
}

/** Goes to the hottest line, or to the next one. */
export function nextHottest(first: boolean) {
  if (route.peek().tab !== "source" && route.peek().tab !== "blocks") go({ tab: "source" }, true);
  hottestAt.value = first ? 0 : hottestAt.peek() + 1;
}

const WORDS = /(\/\/.*|%.*$|#.*$|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\b(alignas|auto|bool|break|case|catch|char|class|const|constexpr|continue|default|delete|do|double|elif|else|elseif|end|endfor|endfunction|endif|endwhile|enum|explicit|extern|false|float|fn|for|function|if|impl|inline|int|let|long|loop|match|mod|mut|namespace|new|operator|override|private|protected|pub|public|return|self|short|signed|sizeof|static|struct|switch|template|this|throw|trait|true|try|type|typedef|typename|union|unsafe|unsigned|until|use|using|virtual|void|volatile|where|while)\b|\b(\d[\w.]*)\b/g;

/** Colours keywords, texts, numbers and comments: enough to read by in any of the languages. */
function Highlighted({ text: code }: { text: string }) {
  if (code.length > 2000) return <>{code}</>;
  const parts: preact.ComponentChild[] = [];
  let last = 0;
  for (const match of code.matchAll(WORDS)) {
    const kind = match[1] ? (/^["']/.test(match[1]) ? "str" : /^(\/\/|%|# )/.test(match[1]) ? "com" : "") : match[2] ? "kw" : "num";
    if (!kind) continue;
    if (match.index > last) parts.push(code.slice(last, match.index));
    parts.push(<span class={kind}>{match[0]}</span>);
    last = match.index + match[0].length;
  }
  parts.push(code.slice(last));
  return <>{parts}</>;
}

// ---- blocks

function BlocksTab() {
  const profile = theProfile();
  const { fn } = route.value;
  const table = fn >= 0 && !profile.head.baseRuns ? profile.blocks(fn) : null;
  useEffect(() => {
    document.querySelector(".blocks [data-hot='now']")?.scrollIntoView({ block: "center" });
  }, [fn, hottestAt.value]);
  if (!profile.hasCode) return <p class="wait">reading</p>;
  const pairs = fn >= 0 ? profile.blockPairs(fn) : null;
  if (pairs) return <BlockPairs pairs={pairs} />;
  if (!table) return <NoBlocks fn={fn} any={profile.hasBlocks} />;
  const whole = profile.head.metrics.find((metric) => metric.name === "instructions")?.runCost ?? table.instructions;
  const byCost = [...table.blocks].sort((a, b) => b.executions * b.instructions.length - a.executions * a.instructions.length);
  const most = Math.max(...table.blocks.map((block) => block.executions), 1);
  return (
    <div class="fill">
      <div class="code-head">
        <b>{grouped(table.instructions)}</b>
        <span class="note">instructions in {grouped(table.blocks.length)} blocks, all of its self cost</span>
        <span class="space" />
        <button type="button" class="link" onClick={() => nextHottest(true)}>hottest <kbd>H</kbd></button>
        <button type="button" class="link" onClick={() => nextHottest(false)}>next <kbd>J</kbd></button>
      </div>
      <div class="scroll blocks" tabIndex={0} aria-label="blocks">
        <div class="blocks-body">
          <Arrows blocks={table.blocks} />
          {table.blocks.map((block) => {
            const rank = byCost.indexOf(block);
            return <BlockRow block={block} rank={rank} own={table.instructions} whole={whole} most={most} />;
          })}
        </div>
      </div>
    </div>
  );
}

/** The height of a row of a block, for the arrows: instruction rows and the others alike. */
const BLOCK_ROW = 18;

/** The rows of a block: source lines where they change, instructions, ways, exits. */
function rowsOfBlock(block: Block): ({ line: string } | { instruction: number } | { ways: [number, number] } | { exit: Block["exits"][number] })[] {
  const { data } = theProfile();
  const rows: ReturnType<typeof rowsOfBlock> = [];
  let last = 0;
  block.instructions.forEach((instruction, at) => {
    if (instruction.line !== last && instruction.line > 0) {
      const line = instruction.line - 1;
      const number = data.lines.line[line];
      const source = theProfile().sources(data.lines.file[line]).find((one) => number >= one.first && number < one.first + one.lines.length);
      rows.push({ line: source ? `${number}  ${source.lines[number - source.first].trim()}` : `${basename(data.strings[data.lines.file[line]])}:${number}` });
    }
    last = instruction.line;
    rows.push({ instruction: at });
  });
  if (block.ways) rows.push({ ways: block.ways });
  for (const exit of block.exits.slice(0, 6)) if (exit.kind !== "conditional") rows.push({ exit });
  return rows;
}

function BlockRow({ block, rank, own, whole, most }: { block: Block; rank: number; own: number; whole: number; most: number }) {
  const profile = theProfile();
  const cost = block.executions * block.instructions.length;
  void own;
  void most;
  return (
    <div class={`block ${rank === 0 ? "hot1" : ""}`} data-hot={hottestAt.value === rank ? "now" : String(rank)}>
      <div class="block-facts"><b>{grouped(block.executions)}</b><span class="note">{grouped((100 * cost) / (whole || 1), 1)} %</span></div>
      <div class="block-code">
        {rowsOfBlock(block).map((row) => {
          if ("line" in row) return <div class="b-line" title={row.line}>{row.line}</div>;
          if ("instruction" in row) {
            const one = block.instructions[row.instruction];
            const [word, ...rest] = (one.text ?? "").split(" ");
            return <div class="b-ins"><span class="dim">{one.address}</span> <span class="kw">{one.text === null ? "bytes unknown" : word}</span> {rest.join(" ")}</div>;
          }
          if ("ways" in row) {
            const [taken, not] = row.ways;
            const target = block.exits.find((exit) => exit.kind === "conditional")?.target;
            return (
              <div class="b-ways">
                <span class="ways-bar" aria-hidden="true"><i style={{ width: `${(100 * taken) / Math.max(1, taken + not)}%` }} /></span>
                taken <b>{grouped(taken)}</b>{target ? ` to ${target}` : ""}, not <b>{grouped(not)}</b>
              </div>
            );
          }
          return (
            <div class="b-exit">→ {row.exit.kind}{" "}
              {row.exit.fn !== null ? <button type="button" class="link" onClick={() => select(row.exit.fn!)}>{profile.name(row.exit.fn).qualifier}{profile.name(row.exit.fn).last}</button> : row.exit.target ?? ""},{" "}
              <b>{grouped(row.exit.count)}</b> times
            </div>
          );
        })}
      </div>
    </div>
  );
}

/** Arrows from branches to the blocks that they lead to, each in a lane of its own. */
function Arrows({ blocks }: { blocks: Block[] }) {
  const tops: number[] = [];
  const bottoms: number[] = [];
  let y = 0;
  for (const block of blocks) {
    tops.push(y + 10);
    y += rowsOfBlock(block).length * BLOCK_ROW + 9;
    bottoms.push(y - 14);
  }
  const index = new Map(blocks.map((block, at) => [block.address, at]));
  const arrows: { from: number; to: number; count: number }[] = [];
  blocks.forEach((block, from) => {
    for (const exit of block.exits) {
      const to = exit.target === null ? undefined : index.get(exit.target);
      if (to !== undefined && (exit.kind === "conditional" || exit.kind === "jump")) arrows.push({ from, to, count: exit.count });
    }
  });
  arrows.sort((a, b) => Math.abs(a.to - a.from) - Math.abs(b.to - b.from));
  const lanes: { low: number; high: number }[][] = [];
  const most = Math.max(...arrows.map((arrow) => arrow.count), 1);
  const placed = arrows.slice(0, 400).map((arrow) => {
    const [low, high] = [Math.min(arrow.from, arrow.to), Math.max(arrow.from, arrow.to)];
    let lane = lanes.findIndex((spans) => spans.every((span) => span.high < low || span.low > high));
    if (lane < 0) lane = lanes.push([]) - 1;
    lanes[lane].push({ low, high });
    return { ...arrow, lane };
  });
  const shown = placed.filter((arrow) => arrow.lane < 8);
  return (
    <svg class="arrows" width="64" height={y} aria-hidden="true">
      <defs>
        <marker id="head-forward" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="6" markerHeight="6" markerUnits="userSpaceOnUse" orient="auto"><path class="forward-fill" d="M0,0 L6,3 L0,6 z" /></marker>
        <marker id="head-backward" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="6" markerHeight="6" markerUnits="userSpaceOnUse" orient="auto"><path class="backward-fill" d="M0,0 L6,3 L0,6 z" /></marker>
      </defs>
      {shown.map((arrow) => {
        const x = 56 - arrow.lane * 7;
        const back = arrow.to <= arrow.from;
        return (
          <path class={back ? "backward" : "forward"} fill="none" stroke-width={0.8 + 1.8 * Math.sqrt(arrow.count / most)} marker-end={`url(#head-${back ? "backward" : "forward"})`}
            d={`M62,${bottoms[arrow.from]} H${x} V${tops[arrow.to]} H62`}><title>{grouped(arrow.count)} times</title></path>
        );
      })}
    </svg>
  );
}
