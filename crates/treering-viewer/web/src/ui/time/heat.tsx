// The heatmap of a run: a column for each second or period, in which what repeats is a line.

import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { amount, grouped } from "../../model/numbers.ts";
import { heat, heatStep, rhythm, type Rhythm } from "../../model/rhythm.ts";
import type { Span } from "../../model/timeline.ts";
import { askCourses } from "../../asking.ts";
import { go, route, shownMetric } from "../../route.ts";
import { course, failure, generation, theProfile } from "../../state.ts";
import { palette } from "../colours.ts";
import { font, useSize } from "../parts.tsx";
import { colours } from "./draw.ts";
import { draft, draw, drop, seen, selected, selectSpan, time } from "./selection.ts";

const ROWS = 50;
const ROW = 4;

/** The course of the whole run, as finely as it is known, and the period in it. */
interface Whole {
  before: Float64Array;
  binNs: number;
  rhythm: Rhythm | null;
}

/** The most columns of a map. */
const MOST_COLUMNS = 20_000;

/** The most bins of a course that is drawn. */
const MOST = 1 << 20;

const whole = signal<Whole | null>(null);
let asked = "";

/** Asks for the course of the run where the heatmap is shown. */
function useWhole(): Whole | null {
  const key = [shownMetric(), JSON.stringify(route.value.steps.filter(({ kind }) => kind !== "time" && kind !== "against")), generation.value > 0, course.value !== null].join();
  useEffect(() => {
    if (key === asked || !course.peek()) return;
    asked = key;
    const { slots, slotNs } = time();
    const per = Math.max(1, Math.ceil(slots / MOST));
    askCourses({ from: 0, to: slots, per, rowOf: new Uint16Array(theProfile().head.threads), rows: 0 }).then(
      ({ cost }) => {
        if (asked !== key) return;
        const before = new Float64Array(cost.length + 1);
        cost.forEach((one, at) => (before[at + 1] = before[at] + one));
        whole.value = { before, binNs: per * slotNs, rhythm: rhythm(cost) };
      },
      (error: Error) => (failure.value = `the heatmap cannot be drawn: ${error.message}`),
    );
  }, [key]);
  return whole.value;
}

/** The lengths of columns that can be chosen, in ns: the period first, where one was found. */
function lengths(of: Whole | null): number[] {
  const { lengthNs, slotNs } = time();
  const known = [0.1e9, 1e9, 2e9, 5e9, 60e9].filter((one) => one >= 10 * slotNs && one <= lengthNs);
  const found = of?.rhythm ? [periodNs(of.rhythm, of.binNs)] : [];
  const all = [...new Set([...found, ...known])];
  return all.length ? all : [lengthNs];
}

/** A period as roundly as it is known. */
function periodNs({ period, error }: Rhythm, binNs: number): number {
  for (let digits = 1; digits < 12; digits++) {
    const round = Number((period * binNs).toPrecision(digits));
    if (Math.abs(round - period * binNs) <= error * binNs) return round;
  }
  return period * binNs;
}

/** The length of a column: the chosen one, else the period, else the first that gives at most some hundred columns. */
function columnNs(of: Whole | null): number {
  const { column } = route.value;
  const { lengthNs } = time();
  // An address may ask for any.
  if (column > 0) return Math.min(lengthNs, Math.max(column, lengthNs / MOST_COLUMNS, time().slotNs));
  return of?.rhythm ? lengths(of)[0] : (lengths(of).find((one) => one >= 1e9 && lengthNs / one <= 200) ?? lengths(of)[0]);
}

function seconds(ns: number): string {
  return ns >= 1e9 ? `${Number((ns / 1e9).toFixed(3))} s` : `${Number((ns / 1e6).toFixed(3))} ms`;
}

/** The choice of the column's length, and the sentence about what repeats. */
export function HeatChoice() {
  const of = useWhole();
  const known = lengths(of);
  const now = columnNs(of);
  return (
    <>
      {of?.rhythm && <span class="note" title="the strongest autocorrelation of the course">repeats every {seconds(known[0])} (r = {of.rhythm.strength.toFixed(2)})</span>}
      <label class="small">column{" "}
        <select value={String(now)} onChange={(event) => go({ column: Number(event.currentTarget.value) }, true)}>
          {[...new Set([...known, now])].map((one) => <option value={String(one)}>{seconds(one)}</option>)}
        </select>
      </label>
    </>
  );
}

export function HeatPlot({ labels }: { labels: number }) {
  const [box, size] = useSize<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const of = useWhole();
  const [from, to] = seen();
  const { lengthNs, slotNs } = time();
  const column = columnNs(of);
  const rows = Math.max(1, Math.min(ROWS, Math.floor(column / slotNs)));
  const height = ROWS * ROW;
  const map = of && heat(of.before, of.binNs, lengthNs, [from, to], column, rows);
  const span = selected();
  const { theme } = route.value;
  void theme;
  useLayoutEffect(() => {
    if (!map || !canvas.current || !size.width) return;
    paint(canvas.current, map, { width: size.width, height, column, seen: [from, to], span });
  });
  /** The moment of a cell, and the place in its column. */
  const cellAt = (event: PointerEvent) => {
    const rect = box.current!.getBoundingClientRect();
    const ns = from + Math.max(0, Math.min(1, (event.clientX - rect.left) / rect.width)) * (to - from);
    const row = Math.max(0, Math.min(rows - 1, Math.floor(((event.clientY - rect.top) / height) * rows)));
    const start = Math.floor(ns / column) * column;
    return { row, cell: [start + (row * column) / rows, start + ((row + 1) * column) / rows] as const };
  };
  const [begun, setBegun] = useState<{ x: number; y: number; band: boolean; at: ReturnType<typeof cellAt>; moved: boolean } | null>(null);
  const spanTo = (event: PointerEvent): Span => {
    const now = cellAt(event);
    const first = begun!.at;
    if (begun!.band) {
      const [low, high] = [Math.min(first.row, now.row), Math.max(first.row, now.row) + 1];
      const edge = (row: number) => Math.round((row * column) / rows / slotNs) * slotNs;
      return { from: edge(low), to: Math.max(edge(low) + slotNs, edge(high)), period: column };
    }
    return { from: Math.min(first.cell[0], now.cell[0]), to: Math.max(first.cell[1], now.cell[1]), period: null };
  };
  const labelled = [0, 0.25, 0.5, 0.75, 1];
  const { unit } = theProfile().head.metrics[shownMetric()];
  const limit = (value: number) => (unit === "nanoseconds" ? grouped(value, 2) : amount(unit, value * 1e9));
  return (
    <div class="time-body heat-body" style={{ gridTemplateColumns: `${labels}px minmax(0, 1fr)`, height: `${height + 2}px` }}>
      <div class="time-labels heat-labels">
        {labels > 0 && labelled.map((part) => <span style={{ top: `${Math.min(height - 14, part * height)}px` }}>{Math.round((part * column) / 1e6)} ms</span>)}
        {labels > 0 && map && <em title="the limits of the ramp: the 8th and the 99.8th of 100 cells">{limit(map.limits[0])}–{limit(map.limits[1])} {unit === "nanoseconds" ? "processors" : "a second"}</em>}
      </div>
      <div class="time-plot" ref={box} role="img" aria-label={`heatmap: a column is ${seconds(column)}; a drag selects from cell to cell, with Shift the same part of every column`}
        onPointerDown={(event) => {
          if (event.button !== 0 || !map) return;
          box.current!.setPointerCapture(event.pointerId);
          setBegun({ x: event.clientX, y: event.clientY, band: event.shiftKey, at: cellAt(event), moved: false });
        }}
        onPointerMove={(event) => {
          if (!begun) return;
          const moved = begun.moved || Math.hypot(event.clientX - begun.x, event.clientY - begun.y) >= 4;
          if (moved !== begun.moved) setBegun({ ...begun, moved });
          if (!moved) return;
          const span = spanTo(event);
          if (span.period === null) draw(span);
          else draft.value = span;
        }}
        onPointerUp={(event) => {
          if (begun?.moved) {
            const span = spanTo(event);
            if (span.period === null) drop();
            else {
              draft.value = null;
              selectSpan(span);
            }
          } else if (begun) selectSpan(null);
          setBegun(null);
        }}
        onPointerCancel={() => {
          setBegun(null);
          drop();
        }}>
        <canvas ref={canvas} style={{ width: `${size.width}px`, height: `${height}px` }} aria-hidden="true" />
      </div>
    </div>
  );
}

/** Draws the cells, and the selection around them. */
function paint(canvas: HTMLCanvasElement, map: ReturnType<typeof heat>, look: { width: number; height: number; column: number; seen: [number, number]; span: Span | null }) {
  const { width, height, column, seen: [from, to], span } = look;
  const ratio = devicePixelRatio || 1;
  [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  const context = canvas.getContext("2d")!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const { ramp } = palette();
  const { bg, accent } = colours();
  context.fillStyle = bg;
  context.fillRect(0, 0, width, height);
  const first = Math.floor(from / column);
  const x = (ns: number) => ((ns - from) / (to - from)) * width;
  const tall = height / map.rows;
  for (let at = 0; at < map.columns; at++) {
    const left = Math.max(0, x((first + at) * column));
    const wide = Math.min(width, x((first + at + 1) * column)) - left;
    const gap = wide > 6 ? 1 : 0;
    for (let row = 0; row < map.rows; row++) {
      const value = map.cells[at * map.rows + row];
      if (value < 0) continue;
      const start = (first + at) * column + (row * column) / map.rows;
      const middle = start + column / map.rows / 2;
      const inside = span === null || span.period !== null || (middle >= span.from && middle < span.to);
      context.globalAlpha = inside ? 1 : 0.28;
      context.fillStyle = ramp[heatStep(value, map.limits)];
      context.fillRect(left, row * tall, wide - gap, tall);
    }
  }
  context.globalAlpha = 1;
  context.font = font(10);
  if (span?.period !== column || span === null) return;
  context.strokeStyle = accent;
  context.lineWidth = 2;
  context.strokeRect(1, (span.from / column) * height + 1, width - 2, ((span.to - span.from) / column) * height - 2);
}
