// The flame graph in the order of time: a lane for each thread, in the selected part of the run.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { lengthText, moment, tickStep, tickText } from "../../model/moment.ts";
import type { Lane, Order, OrderGrid } from "../../model/order.ts";
import { amount, plural, timeWord } from "../../model/numbers.ts";
import { askInOrder } from "../../asking.ts";
import { matches } from "../../masks.ts";
import { runCost } from "../../measures.ts";
import { route, select, shownMetric } from "../../route.ts";
import { analysis, course, failure, generation, hovered, theProfile } from "../../state.ts";
import { fill, inkOn, moduleHues, palette } from "../colours.ts";
import { openMenu } from "../menu.tsx";
import { fitted, font, textWidth, useSize } from "../parts.tsx";
import { colours, texture } from "./draw.ts";
import { threadName } from "./rows.ts";
import { clock, seen, selected, time } from "./selection.ts";
import { leastBin } from "./strip.tsx";

const ROW = 18;
const AXIS = 20;
const HEAD = 20;
const APART = 110;

type View = [from: number, to: number];

/** A piece as it was drawn, for finding what is under the pointer. */
interface Drawn {
  lane: Lane;
  piece: number;
  x: number;
  y: number;
  width: number;
}

/** The part of the run that is shown: the selected one, else what the strip shows. */
function shownRange(): View {
  const span = selected();
  return span && span.period === null ? [span.from, span.to] : seen();
}

/** The layout of a part; the last one stays until the worker has made the next, and only the newest is asked for. */
function useOrder(view: View, width: number): Order | null {
  const [order, setOrder] = useState<Order | null>(null);
  const wanted = useRef<{ key: string; grid: OrderGrid } | null>(null);
  const running = useRef(false);
  const { slotNs, slots } = time();
  const from = Math.max(0, Math.floor(view[0] / slotNs));
  const to = Math.min(slots, Math.max(from + 1, Math.ceil(view[1] / slotNs)));
  const per = Math.max(leastBin(), Math.ceil((to - from) / Math.max(1, width / 2)));
  const isTime = theProfile().head.metrics[shownMetric()].unit === "nanoseconds";
  const grid: OrderGrid = { from: Math.floor(from / per) * per, to, per, least: (view[1] - view[0]) / Math.max(1, width) / 2, isTime };
  const key = JSON.stringify([shownMetric(), route.value.steps, grid, generation.value, course.value !== null]);
  useEffect(() => {
    if (width < 10 || !course.peek() || !analysis.peek()) return;
    wanted.current = { key, grid };
    const ask = () => {
      const asked = wanted.current;
      if (running.current || !asked) return;
      running.current = true;
      askInOrder(asked.grid).then(
        (found) => {
          running.current = false;
          setOrder(found);
          if (wanted.current?.key !== asked.key) ask();
        },
        (error: Error) => (failure.value = `stacks cannot be laid out in the order of time: ${error.message}`),
      );
    };
    ask();
  }, [key]);
  return order;
}

/** The height of everything below the axis. */
function heightOf(order: Order): number {
  return order.lanes.reduce((sum, lane) => sum + HEAD + lane.deepest * ROW + 6, HEAD + (order.others ? HEAD : 0));
}

function draw(canvas: HTMLCanvasElement, order: Order, [from, to]: View, { width, height, scroll }: { width: number; height: number; scroll: number }): Drawn[] {
  const ratio = devicePixelRatio || 1;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  const context = canvas.getContext("2d")!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.textBaseline = "middle";
  const look = colours();
  const x = (ns: number) => ((ns - from) / (to - from)) * width;
  const drawn: Drawn[] = [];
  const step = tickStep(((to - from) * APART) / width, clock());
  const ticks: number[] = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) ticks.push(at);
  for (const at of ticks) {
    context.fillStyle = look.line;
    context.fillRect(Math.round(x(at)), AXIS, 1, height);
  }
  let top = AXIS - scroll;
  for (const lane of order.lanes) {
    const tall = HEAD + lane.deepest * ROW + 6;
    if (top + tall > 0 && top < height) drawLane(context, lane, top, x, width, drawn);
    top += tall;
    context.fillStyle = look.line2;
    context.fillRect(0, top - 1, width, 1);
  }
  if (order.others) {
    context.font = font(11);
    context.fillStyle = look.ink3;
    context.fillText(`${plural(order.others, "thread")} that cost less: choose them in the strip`, 6, top + HEAD / 2);
  }
  context.fillStyle = look.raise;
  context.fillRect(0, 0, width, AXIS);
  context.font = font(11);
  for (const at of ticks) {
    context.fillStyle = look.line;
    context.fillRect(Math.round(x(at)), 0, 1, AXIS);
    context.fillStyle = look.ink2;
    const unit = clock().unit === "min" ? "" : ` ${clock().unit}`;
    const text = `${tickText(at, step, clock())}${at === ticks[0] ? unit : ""}`;
    if (x(at) + 4 + textWidth(text, font(11)) <= width) context.fillText(text, x(at) + 4, AXIS / 2);
  }
  return drawn;
}

/** The name of a lane, and what it cost in the shown part. */
function laneText({ thread, cost, below }: Lane): [name: string, rest: string] {
  const { unit, name } = theProfile().head.metrics[shownMetric()];
  const [number, of] = unit === "nanoseconds" ? lengthText(cost, clock()) : [amount(unit, cost), unit === "count" ? name : ""];
  const under = below > 0 ? `, below ${theProfile().name(below).last}` : "";
  return [threadName(thread), `${unit === "nanoseconds" ? `${timeWord(name)} ` : ""}${number} ${of} here${under}`];
}

function drawLane(context: CanvasRenderingContext2D, lane: Lane, top: number, x: (ns: number) => number, width: number, drawn: Drawn[]) {
  const look = colours();
  const { bg, accent, ink } = palette();
  const [name, rest] = laneText(lane);
  const first = top + HEAD;
  context.fillStyle = look.idle;
  context.fillRect(0, first, width, ROW - 1);
  for (let wait = 0; wait < lane.waitStart.length; wait++) {
    const [left, right] = [Math.max(0, x(lane.waitStart[wait])), Math.min(width, x(lane.waitEnd[wait]))];
    if (right <= left || lane.waitKind[wait] > 2) continue;
    context.fillStyle = texture(context, lane.waitKind[wait]);
    context.fillRect(left, first, Math.max(0.5, right - left), ROW - 1);
  }
  const self = analysis.value?.now.self;
  const whole = runCost(shownMetric(), "now");
  const hues = route.value.colour === "module" && self ? moduleHues(self) : null;
  const mask = matches.value;
  for (let piece = 0; piece < lane.fn.length; piece++) {
    const [begin, end] = [x(lane.start[piece]), x(lane.end[piece])];
    const y = first + lane.row[piece] * ROW;
    if (end < 0 || begin > width || y + ROW < 0) continue;
    const fn = lane.fn[piece];
    const [left, right] = [Math.max(0, begin), Math.min(width, end)];
    const wide = Math.max(0.5, right - left);
    const colour = fill(fn, lane.inlined[piece] === 1, self?.[fn] ?? 0, whole, hues);
    const matched = !mask || mask[fn] === 1;
    context.globalAlpha = matched ? 1 : 0.22;
    context.fillStyle = colour;
    context.fillRect(left, y, wide, ROW - 1);
    // A piece begins with an edge: two calls of one function are two pieces.
    if (begin >= 0 && wide >= 3) {
      context.fillStyle = bg;
      context.fillRect(left, y, 1, ROW - 1);
    }
    context.globalAlpha = matched ? 1 : 0.4;
    if (wide >= 26) {
      const of = fitted(fn, theProfile().name(fn), wide - 10, "order ", (text) => textWidth(text, font(12)));
      context.font = font(12);
      context.fillStyle = inkOn(colour).ink;
      context.fillText(fn === 0 ? "outside of all functions" : of.qualifier + of.last + of.tail, left + 5, y + ROW / 2);
    }
    context.globalAlpha = 1;
    if ((fn === route.value.fn && fn !== 0) || (mask && matched)) {
      context.strokeStyle = fn === route.value.fn ? accent : ink;
      context.lineWidth = fn === route.value.fn ? 2 : 1.25;
      if (wide > 4) context.strokeRect(left + 1, y + 1, wide - 2, ROW - 3);
    }
    drawn.push({ lane, piece, x: left, y, width: wide });
  }
  context.font = font(12, 600);
  context.fillStyle = look.ink;
  context.fillText(name, 6, top + HEAD / 2);
  const wide = textWidth(name, font(12, 600));
  context.font = font(11);
  context.fillStyle = look.ink2;
  context.fillText(rest, 14 + wide, top + HEAD / 2);
}

/** The flame graph in the order of time, with its pointer, wheel and keys; magnifying selects nothing. */
export function TimeOrder() {
  const [box, size] = useSize<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const drawn = useRef<Drawn[]>([]);
  const drag = useRef<{ x: number; y: number; view: View; scroll: number; moved: boolean } | null>(null);
  const range = shownRange();
  const [magnified, setMagnified] = useState<{ of: string; view: View } | null>(null);
  const [scrolled, setScroll] = useState(0);
  const view: View = magnified?.of === range.join() ? magnified.view : range;
  const order = useOrder(view, size.width);
  const most = order ? Math.max(0, heightOf(order) - (size.height - AXIS)) : 0;
  const scroll = Math.min(scrolled, most);
  useLayoutEffect(() => {
    if (order && canvas.current && size.width) drawn.current = draw(canvas.current, order, view, { ...size, scroll });
  });
  // The picture is drawn anew when one of these changes.
  void [matches.value, route.value.theme, route.value.colour, route.value.fn];
  const show = ([from, to]: View) => {
    const least = Math.min(range[1] - range[0], 10 * time().slotNs);
    const width = Math.max(least, Math.min(range[1] - range[0], to - from));
    const start = Math.max(range[0], Math.min(range[1] - width, from));
    setMagnified(width >= range[1] - range[0] ? null : { of: range.join(), view: [start, start + width] });
  };
  const magnify = (factor: number, part: number) => {
    const at = view[0] + (view[1] - view[0]) * part;
    show([at - (at - view[0]) * factor, at + (view[1] - at) * factor]);
  };
  const pan = (part: number) => show([view[0] + part * (view[1] - view[0]), view[1] + part * (view[1] - view[0])]);
  const scrollTo = (to: number) => setScroll(Math.max(0, Math.min(most, to)));
  const find = (event: MouseEvent) => {
    const rect = canvas.current!.getBoundingClientRect();
    const [x, y] = [event.clientX - rect.left, event.clientY - rect.top];
    if (y < AXIS) return undefined;
    return drawn.current.findLast((one) => x >= one.x && x < one.x + Math.max(1, one.width) && y >= one.y && y < one.y + ROW);
  };
  const tell = (one: Drawn | undefined) => {
    if (!one) return void (hovered.value = null);
    const [start, end] = [one.lane.start[one.piece], one.lane.end[one.piece]];
    const [length, unit] = lengthText(end - start, clock());
    const of = clock().unit === "min" ? "" : ` ${clock().unit}`;
    hovered.value = { fn: one.lane.fn[one.piece], text: `on the stack of ${threadName(one.lane.thread)} for ${length} ${unit}, from ${moment(start, clock())}${of}` };
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const step: Record<string, () => void> = {
      ArrowLeft: () => pan(-0.1), ArrowRight: () => pan(0.1), ArrowUp: () => scrollTo(scroll - 3 * ROW), ArrowDown: () => scrollTo(scroll + 3 * ROW),
      "+": () => magnify(0.7, 0.5), "=": () => magnify(0.7, 0.5), "-": () => magnify(1 / 0.7, 0.5), "0": () => setMagnified(null),
    };
    if (!step[event.key]) return;
    step[event.key]();
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="flame order" ref={box}>
      <canvas ref={canvas} tabIndex={0} role="img" aria-label={described(order, view)} style={{ width: `${size.width}px`, height: `${size.height}px` }}
        onClick={(event) => { const one = find(event); if (one && !drag.current?.moved) select(one.lane.fn[one.piece]); }}
        onDblClick={(event) => { const one = find(event); if (one) show([one.lane.start[one.piece], one.lane.end[one.piece]]); }}
        onContextMenu={(event) => {
          const one = find(event);
          if (!one) return;
          openMenu(one.lane.fn[one.piece], event.clientX, event.clientY);
          event.preventDefault();
        }}
        onMouseDown={(event) => (drag.current = { x: event.clientX, y: event.clientY, view, scroll, moved: false })}
        onMouseMove={(event) => {
          const held = drag.current;
          if (!held || !event.buttons) return tell(find(event));
          const [dx, dy] = [event.clientX - held.x, event.clientY - held.y];
          held.moved ||= Math.abs(dx) + Math.abs(dy) > 3;
          if (!held.moved) return;
          const by = (-dx / size.width) * (held.view[1] - held.view[0]);
          show([held.view[0] + by, held.view[1] + by]);
          scrollTo(held.scroll - dy);
        }}
        onMouseLeave={() => (hovered.value = null)}
        onWheel={(event) => {
          const rect = canvas.current!.getBoundingClientRect();
          if (event.ctrlKey) magnify(Math.exp(event.deltaY / 300), (event.clientX - rect.left) / size.width);
          else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan((event.deltaX || event.deltaY) / size.width);
          else scrollTo(scroll + event.deltaY);
          event.preventDefault();
        }}
        onKeyDown={onKey} />
      {!order && <p class="wait">reading the course of the run</p>}
      {order && order.lanes.length === 0 && <p class="wait">nothing was measured in this part of the run</p>}
      {order && order.lanes.length > 0 && <p class="order-note">{notes(order)}</p>}
    </div>
  );
}

/** The limits of the picture: inside a cell the order is unknown. */
function notes(order: Order): string {
  const cell = order.cell >= 1e9 ? `${Number((order.cell / 1e9).toPrecision(3))} s` : `${Number((order.cell / 1e6).toPrecision(3))} ms`;
  const small = order.small > 0 ? `; ${plural(order.small, "piece")} below 1 px` : "";
  return `within ${cell} the order is unknown: shares are shown${small}`;
}

/** The picture in words. */
function described(order: Order | null, [from, to]: View): string {
  const lanes = (order?.lanes ?? []).slice(0, 6).map((lane) => laneText(lane).join(", "));
  return `stacks in the order of time, ${moment(from, clock())} to ${moment(to, clock())}: ${lanes.join("; ")}; arrow keys pan, + and − magnify`;
}
