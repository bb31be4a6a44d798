// Flame graphs on a canvas: the whole program, its callers tree, and both halves of a sandwich.

import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Name } from "../model/names.ts";
import { grouped, percent, plural, scaleFor, signed } from "../model/numbers.ts";
import { NONE } from "../model/tree.ts";
import { firstFork } from "../model/fork.ts";
import type { Merged, MergedOf, Request } from "../model/merged.ts";
import { matches } from "../masks.ts";
import { changeCost, nodeMeasure, runCost } from "../measures.ts";
import { go, isCompared, isDifference, route, select } from "../route.ts";
import { analysis, hasTree, hovered, theProfile } from "../state.ts";
import { changeFill, fill, inkOn, moduleHues, palette } from "./colours.ts";
import { Choice, fitted, font, PaneHead, textWidth, useSize } from "./parts.tsx";
import { changeBetween } from "./functions.tsx";
import { callees, callers, detailOf } from "../requests.ts";
import { loadedTree } from "./trees.ts";
import { costSentence } from "./strip.tsx";
import { openMenu } from "./menu.tsx";
import { saveFlame } from "./picture.ts";
import { NoTree, NothingToDraw } from "./reasons.tsx";
import { TimeOrder } from "./time/order.tsx";

const ROW = 20;

/** The part of a tree that a canvas shows: `zoom` fills the width, from `left` to `right` of it when magnified. */
interface Window {
  left: number;
  right: number;
}

interface Drawn {
  node: number;
  x: number;
  y: number;
  width: number;
}

/** The column of a tree that widths are of. */
function widthColumn(tree: Merged): Float64Array {
  return route.value.side === "base" && tree.total.length > tree.stride ? tree.total[tree.stride] : tree.total[0];
}

/** Lays out and draws a tree; gives the rectangles for finding what is under the pointer. */
function draw(canvas: HTMLCanvasElement, tree: MergedOf, options: {
  width: number; height: number; zoom: number; window: Window; upward: boolean; cursor: number; scroll: number; numbers: "run"; skipRoot: boolean;
}): { drawn: Drawn[]; small: number } {
  const { width, height, zoom, window, upward, skipRoot } = options;
  const ratio = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d")!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.textBaseline = "middle";
  context.font = font(12);
  const column = widthColumn(tree);
  const whole = runCost(tree.metric, "now");
  const hues = route.value.colour === "module" && analysis.value ? moduleHues(analysis.value.now.self) : null;
  const mask = matches.value;
  const colours = palette();
  const drawn: Drawn[] = [];
  let small = 0;
  const scale = width / (window.right - window.left || 1);

  const rectangle = (node: number, x: number, wide: number, depth: number) => {
    const y = upward ? height - (depth + 1) * ROW + options.scroll : depth * ROW - options.scroll;
    if (y + ROW < 0 || y > height) return;
    drawn.push({ node, x, y, width: wide });
    paint(context, tree, node, { x, y, width: wide, columnWidth: width }, { whole, hues, mask, colours, cursor: options.cursor });
  };

  // The callers of the node that is zoomed to stand above it, as wide as it.
  const above: number[] = [];
  for (let at = tree.parent[zoom]; at !== NONE; at = tree.parent[at]) above.unshift(at);
  const shownAbove = above.filter((at) => !(skipRoot && at === 0));
  shownAbove.forEach((at, depth) => rectangle(at, 0, width, depth));
  const base = column[zoom] || 1;
  const from = skipRoot && zoom === 0 ? -1 : shownAbove.length;
  const pending: [number, number, number][] = [[zoom, 0, from]];
  while (pending.length) {
    const [node, start, depth] = pending.pop()!;
    const x = (start / base - window.left) * scale;
    const wide = (column[node] / base) * scale;
    if (x + wide < 0 || x > width) continue;
    if (depth >= 0) rectangle(node, x, wide, depth);
    let offset = start;
    // In a callers tree the part that ends here has no width above it; in a callees tree self comes last.
    for (let child = tree.children[node]; child < tree.children[node + 1]; child++) {
      const part = column[child];
      if ((part / base) * scale < 0.6) small++;
      else pending.push([child, offset, depth + 1]);
      offset += part;
    }
    small += tree.hidden[node];
  }
  return { drawn, small };
}

function paint(context: CanvasRenderingContext2D, tree: MergedOf, node: number,
  at: { x: number; y: number; width: number; columnWidth: number },
  look: { whole: number; hues: Map<string, number> | null; mask: Uint8Array | null; colours: ReturnType<typeof palette>; cursor: number }) {
  const profile = theProfile();
  const fn = tree.fn[node];
  const { whole, colours } = look;
  const left = Math.max(0, at.x);
  const gap = at.width >= 3 ? 1 : 0.25;
  const right = Math.min(at.columnWidth, at.x + at.width) - gap;
  const wide = Math.max(0.4, right - left);
  const inlined = tree.inlined[node] === 1 && node !== 0;
  let colour: string;
  if (tree.total.length > tree.stride) {
    const change = changeBetween(tree.metric, nodeMeasure(tree, "total", node, "base"), nodeMeasure(tree, "total", node));
    colour = changeFill(change.by / changeCost(tree.metric), change.sure || change.half === 0);
  } else {
    colour = fill(fn, inlined, tree.self[0][node], whole, look.hues);
  }
  const matched = !look.mask || look.mask[fn] === 1;
  context.globalAlpha = matched ? 1 : 0.22;
  context.fillStyle = colour;
  context.fillRect(left, at.y, wide, ROW - 1);
  if (inlined && wide >= 34) {
    context.strokeStyle = colours.ink;
    context.globalAlpha = matched ? 0.55 : 0.15;
    context.setLineDash([3, 2]);
    context.beginPath();
    context.moveTo(left, at.y + ROW - 1.5);
    context.lineTo(left + wide, at.y + ROW - 1.5);
    context.stroke();
    context.setLineDash([]);
  }
  context.globalAlpha = matched ? 1 : 0.4;
  if (wide >= 26) label(context, tree, node, left, at.y, wide, colour, whole);
  context.globalAlpha = 1;
  if (look.mask && matched) outline(context, left, at.y, wide, colours.ink, 1.25);
  if (fn === route.value.fn && fn !== 0) outline(context, left, at.y, wide, colours.accent, 2);
  if (node === look.cursor) outline(context, left - 2, at.y - 2, wide + 4, colours.ink, 2, ROW + 3);
  void profile;
}

function outline(context: CanvasRenderingContext2D, x: number, y: number, width: number, colour: string, line: number, height = ROW - 1) {
  context.strokeStyle = colour;
  context.lineWidth = line;
  if (width > 2 * line) context.strokeRect(x + line / 2, y + line / 2, width - line, height - line);
  else {
    context.fillStyle = colour;
    context.fillRect(x, y, Math.max(1, width), height);
  }
  context.lineWidth = 1;
}

const WHOLE: Name = { qualifier: "", last: "whole program", tail: "", full: "" };

function label(context: CanvasRenderingContext2D, tree: MergedOf, node: number, x: number, y: number, width: number, colour: string, whole: number) {
  const profile = theProfile();
  const fn = tree.fn[node];
  const ink = inkOn(colour);
  const plain = font(12);
  let room = width - 10;
  const middle = y + ROW / 2;
  if (width >= 150 && whole > 0) {
    const change = tree.total.length > tree.stride;
    const share = change ? changeBetween(tree.metric, nodeMeasure(tree, "total", node, "base"), nodeMeasure(tree, "total", node)).by / changeCost(tree.metric) : tree.total[0][node] / whole;
    const number = change && isCompared() ? changeText(tree, node) : change ? `${share < 0 ? "−" : "+"}${grouped(Math.abs(share) * 100, 1)}` : grouped(share * 100, 1);
    const wide = textWidth(number, plain);
    context.fillStyle = ink.ink;
    context.fillText(number, x + width - 5 - wide, middle);
    room -= wide + 8;
  }
  const recursive = tree.folded[node] === 1;
  if (recursive) room -= 16;
  const name = fitted(fn, fn === 0 && node === 0 ? WHOLE : profile.name(fn), room, "flame ", (text) => textWidth(text, plain));
  let at = x + 5;
  const put = (text: string, pale: boolean) => {
    if (!text) return;
    const before = context.globalAlpha;
    if (pale && ink.clear) context.globalAlpha = before * 0.82;
    context.fillStyle = ink.ink;
    context.fillText(text, at, middle);
    at += textWidth(text, plain);
    context.globalAlpha = before;
  };
  put(name.qualifier, true);
  put(name.last, false);
  put(name.tail, true);
  if (recursive && name.last) put(" ↻", true);
}

/** How the cost of a node per second differs between two parts of the run, in ms for times. */
function changeText(tree: MergedOf, node: number): string {
  const by = tree.total[0][node] - tree.total[tree.stride][node];
  const { unit } = theProfile().head.metrics[tree.metric];
  return unit === "nanoseconds" ? signed(by, { divisor: 1e6, digits: 0, suffix: "ms" }) : signed(by, scaleFor(unit, by, true));
}

/** The flame graph of the whole program as a still picture, for paper. */
export function StillFlame({ width, most }: { width: number; most: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const tree = hasTree() ? loadedTree(callees(null, route.value.fold)).value : null;
  const height = tree ? Math.min(most, tree.deepest) * ROW : 0;
  useLayoutEffect(() => {
    if (!canvas.current || !tree) return;
    draw(canvas.current, tree, { width, height, zoom: 0, window: { left: 0, right: 1 }, upward: false, cursor: -1, scroll: 0, numbers: "run", skipRoot: true });
  }, [tree]);
  return tree && tree.length > 1 ? <canvas ref={canvas} role="img" aria-label="flame graph" style={{ width: `${width}px`, height: `${height}px` }} /> : null;
}

/** One flame graph with its pointer, wheel and keys. */
export function Flame({ request, upward = false, skipRoot = true, zoomable = true, label: aria }: {
  /** The tree for a path from its root, and for a level of detail. */
  request: (path: number[], detail: number) => Request; upward?: boolean; skipRoot?: boolean; zoomable?: boolean; label: string;
}) {
  const [box, size] = useSize<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const drawn = useRef<Drawn[]>([]);
  const [view, setView] = useState<Window>({ left: 0, right: 1 });
  const [cursor, setCursor] = useState(-1);
  const [scroll, setScroll] = useState(0);
  const drag = useRef<{ x: number; y: number; view: Window; scroll: number; moved: boolean } | null>(null);
  const path = zoomable ? route.value.zoom : [];
  // Until what was zoomed to is there in detail, what is known of it is shown.
  const whole = loadedTree(request([], 0)).value;
  const detail = detailOf(view.right - view.left);
  const exact = path.length || detail ? loadedTree(request(path, detail)).value : whole;
  const now = exact ?? whole;
  const zoom = now ? follow(now, path) : 0;
  void matches.value;
  const key = [size.width, size.height, zoom, view.left, view.right, cursor, scroll, route.value.fn, route.value.theme,
    route.value.colour, route.value.side, route.value.q].join();
  useEffect(() => {
    if (!now || !canvas.current || !size.width) return;
    const frame = requestAnimationFrame(() => {
      if (!canvas.current) return;
      const begin = performance.now();
      const result = draw(canvas.current, now, { ...size, zoom, window: view, upward, cursor, scroll, numbers: "run", skipRoot });
      drawn.current = result.drawn;
      tellSmall(aria, result.small);
      const at = performance.now();
      frames.push({ at, took: at - begin });
      if (frames.length > 10_000) frames.splice(0, 5_000);
    });
    return () => cancelAnimationFrame(frame);
  }, [now, key]);
  // Another version of the profile, while its program runs, stays magnified.
  const { metric, steps } = route.value;
  useEffect(() => setView({ left: 0, right: 1 }), [JSON.stringify(request([], 0)), path.join(), metric, JSON.stringify(steps)]);
  // The cursor stays on its node when a tree with more detail comes.
  const shown = useRef<Merged | null>(null);
  useEffect(() => {
    const before = shown.current;
    shown.current = now;
    if (before && now && before !== now && cursor >= 0) setCursor(sameNode(before, cursor, now));
  }, [now]);

  const find = (event: MouseEvent) => {
    const rect = canvas.current!.getBoundingClientRect();
    const [x, y] = [event.clientX - rect.left, event.clientY - rect.top];
    for (let at = drawn.current.length - 1; at >= 0; at--) {
      const one = drawn.current[at];
      if (x >= one.x && x < one.x + Math.max(1, one.width) && y >= one.y && y < one.y + ROW) return one.node;
    }
    return -1;
  };
  const tell = (node: number) => {
    if (!now || node < 0) hovered.value = null;
    else hovered.value = { fn: now.fn[node], text: costSentence(now, node) };
  };
  const magnify = (factor: number, centre: number) => {
    const width = (view.right - view.left) * factor;
    if (width >= 1) return setView({ left: 0, right: 1 });
    const at = view.left + (view.right - view.left) * centre;
    let left = at - width * centre;
    left = Math.max(0, Math.min(1 - width, left));
    setView({ left, right: left + Math.max(width, 1e-9) });
  };
  const pan = (by: number) => {
    const width = view.right - view.left;
    const left = Math.max(0, Math.min(1 - width, view.left + by * width));
    setView({ left, right: left + width });
  };
  const deepest = now ? (now.deepest + 1) * ROW : 0;
  const scrollTo = (to: number) => setScroll(Math.max(0, Math.min(Math.max(0, deepest - size.height + ROW), to)));
  const choose = (node: number) => {
    setCursor(node);
    tell(node);
  };
  const onKey = (event: KeyboardEvent) => {
    if (!now || event.ctrlKey || event.altKey || event.metaKey) return;
    const at = cursor >= 0 && cursor < now.length ? cursor : zoom;
    const step: Record<string, () => void> = {
      ArrowDown: () => { const to = upward ? now.parent[at] : now.children[at]; if (upward ? to !== NONE && to !== 0 : to < now.children[at + 1]) choose(to); },
      ArrowUp: () => { const to = upward ? now.children[at] : now.parent[at]; if (upward ? to < now.children[at + 1] : to !== NONE && (to !== 0 || !skipRoot)) choose(to); },
      ArrowLeft: () => { if (event.shiftKey) pan(-0.2); else if (at > 0 && now.parent[at - 1] === now.parent[at]) choose(at - 1); },
      ArrowRight: () => { if (event.shiftKey) pan(0.2); else if (at + 1 < now.length && now.parent[at + 1] === now.parent[at]) choose(at + 1); },
      Enter: () => { select(now.fn[at]); if (zoomable) go({ zoom: pathOf(now, at) }); },
      "+": () => magnify(0.7, 0.5), "=": () => magnify(0.7, 0.5), "-": () => magnify(1 / 0.7, 0.5),
      "0": () => { setView({ left: 0, right: 1 }); if (zoomable) go({ zoom: [] }); },
    };
    if (!step[event.key]) return;
    step[event.key]();
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="flame" ref={box}>
      <canvas ref={canvas} tabIndex={0} role="img" aria-label={`${aria}; arrow keys move, Enter zooms`}
        style={{ width: `${size.width}px`, height: `${size.height}px` }}
        onClick={(event) => { const node = find(event); if (node > 0 || (node === 0 && !skipRoot)) { if (!drag.current?.moved && now) { choose(node); select(now.fn[node]); } } }}
        onContextMenu={(event) => {
          const node = event.clientX || event.clientY ? find(event) : cursor;
          if (!now || node < 0 || now.fn[node] <= 0) return;
          const box = canvas.current!.getBoundingClientRect();
          openMenu(now.fn[node], event.clientX || box.left + 20, event.clientY || box.top + 20);
          event.preventDefault();
        }}
        onDblClick={(event) => { const node = find(event); if (now && zoomable && node >= 0) go({ zoom: pathOf(now, node) }); }}
        onMouseMove={(event) => {
          const held = drag.current;
          if (held && event.buttons) {
            const dx = event.clientX - held.x;
            const dy = event.clientY - held.y;
            if (Math.abs(dx) + Math.abs(dy) > 3) held.moved = true;
            if (held.moved) {
              const width = held.view.right - held.view.left;
              const left = Math.max(0, Math.min(1 - width, held.view.left - (dx / size.width) * width));
              setView({ left, right: left + width });
              scrollTo(held.scroll - (upward ? -dy : dy));
            }
          } else tell(find(event));
        }}
        onMouseDown={(event) => (drag.current = { x: event.clientX, y: event.clientY, view, scroll, moved: false })}
        onMouseLeave={() => (hovered.value = null)}
        onWheel={(event) => {
          const rect = canvas.current!.getBoundingClientRect();
          if (event.ctrlKey) magnify(Math.exp(event.deltaY / 300), (event.clientX - rect.left) / size.width);
          else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX / size.width);
          else scrollTo(scroll + (upward ? -event.deltaY : event.deltaY));
          event.preventDefault();
        }}
        onKeyDown={onKey}
        onBlur={() => setCursor(-1)} />
      <span class="mirror" aria-live="polite">{cursor >= 0 && now ? `${theProfile().fullName(now.fn[cursor])}, ${costSentence(now, cursor)}, depth ${now.depth[cursor]}` : ""}</span>
      {!now && <p class="wait">{hasTree() ? `reading ${plural(theProfile().head.nodes, "node")}` : ""}</p>}
    </div>
  );
}

/** When each picture was drawn and how long that took, in ms, for the benchmark. */
export const frames: { at: number; took: number }[] = [];
const pieces = new Map<string, number>();
const bumps = signal(0);
function tellSmall(aria: string, small: number) {
  if (pieces.get(aria) === small) return;
  pieces.set(aria, small);
  bumps.value = bumps.peek() + 1;
}

/** Says how many pieces are too small; by itself, since that changes with every frame of a movement. */
function SmallPieces({ of }: { of: string }) {
  const small = smallPieces(of);
  return small > 0 ? <span class="note wide">{plural(small, "piece")} below 1 px</span> : null;
}

/** How many pieces of a flame graph are too small to be drawn. */
export function smallPieces(aria: string): number {
  void bumps.value;
  return pieces.get(aria) ?? 0;
}

/** The node that a path of functions leads to, as far as it goes. */
function follow(tree: Merged, path: number[]): number {
  let at = 0;
  for (const fn of path) {
    let found = -1;
    for (let child = tree.children[at]; child < tree.children[at + 1]; child++) if (tree.fn[child] === fn) found = child;
    if (found < 0) break;
    at = found;
  }
  return at;
}

/** The node of another tree that is reached as `node` is; -1 where there is none. */
function sameNode(tree: Merged, node: number, other: Merged): number {
  const path = pathOf(tree, node);
  const at = follow(other, path);
  return other.depth[at] === path.length ? at : -1;
}

/** The functions on the way from the root to a node. */
function pathOf(tree: Merged, node: number): number[] {
  const path: number[] = [];
  for (let at = node; at > 0; at = tree.parent[at]) path.unshift(tree.fn[at]);
  return path;
}

/** The colours that can be chosen; a difference has its own. */
export function ColourChoice() {
  if (isDifference()) {
    const names = isCompared() ? ([["base", "A"], ["now", "B"]] as const) : ([["base", "base"], ["now", "new"]] as const);
    return (
      <>
        <Choice small label="widths of" value={route.value.side} options={names} onChoose={(side) => go({ side })} />
        <span class="legend" aria-label="colours: less, within the error, more"><span>less</span><i class="ramp" /><span>more</span></span>
      </>
    );
  }
  return (
    <label class="small">colour{" "}
      <select value={route.value.colour} onChange={(event) => go({ colour: event.currentTarget.value as "kind" })}>
        <option value="kind">kind</option><option value="module">module</option><option value="self">self cost</option>
      </select>
    </label>
  );
}

/** Stacks added up, or in the order of time where that is known. */
function OrderChoice() {
  if (!theProfile().head.time) return null;
  return <Choice small label="order of stacks" value={route.value.order} options={[["sum", "Aggregated"], ["time", "In time order"]] as const} onChoose={(order) => go({ order })} />;
}

let opensAtFork = true;

/** Opens the flame graph of a difference where its change divides first, unless the link says another place. */
function AtFork({ tree }: { tree: Merged }) {
  useEffect(() => {
    if (!opensAtFork || theProfile().head.baseRuns === null) return;
    opensAtFork = false;
    const zoom = route.peek().zoom.length ? [] : pathOf(tree, firstFork(tree));
    if (zoom.length) go({ zoom }, true);
  }, [tree]);
  return null;
}

export function FlamePane() {
  if (!hasTree()) return <section class="pane" aria-label="flame graph"><PaneHead title="Flame graph" /><NoTree /></section>;
  const { direction, fold, order } = route.value;
  if (order === "time") {
    return (
      <section class="pane" aria-label="flame graph">
        <PaneHead title="Flame graph"><OrderChoice />{!isDifference() && <ColourChoice />}</PaneHead>
        <TimeOrder />
      </section>
    );
  }
  const request = (path: number[], detail: number) => (direction === "callees" ? callees(null, fold, path, detail) : callers(null, path, detail));
  const tree = loadedTree(request([], 0));
  return (
    <section class="pane" aria-label="flame graph">
      <PaneHead title="Flame graph">
        {tree.value && direction === "callees" && <AtFork tree={tree.value} />}
        <SmallPieces of="flame graph" />
        <OrderChoice />
        <Choice small label="direction" value={direction} options={[["callees", "Callees ↓"], ["callers", "Callers ↑"]] as const}
          onChoose={(direction) => go({ direction, zoom: [] })} />
        <ColourChoice />
        {tree.value && tree.value.length > 1 && <button type="button" class="link" title="save the picture" onClick={() => saveFlame(tree.value!, widthColumn(tree.value!), follow(tree.value!, route.value.zoom))}>SVG</button>}
        {route.value.zoom.length > 0 && <button type="button" class="link" onClick={() => go({ zoom: [] })}>whole <kbd>0</kbd></button>}
      </PaneHead>
      {tree.value && tree.value.length <= 1
        ? <NothingToDraw />
        : <Flame request={request} label="flame graph" />}
    </section>
  );
}

export function SandwichPane() {
  const [ref, size] = useSize<HTMLDivElement>();
  if (!hasTree()) return <section class="pane" aria-label="sandwich"><PaneHead title="Sandwich" /><NoTree /></section>;
  const { fn, fold } = route.value;
  if (fn < 0) return <section class="pane" aria-label="sandwich"><PaneHead title="Sandwich" /><p class="wait">reading</p></section>;
  const up = loadedTree(callers(fn));
  const down = loadedTree(callees(fn, fold));
  const profile = theProfile();
  const found = analysis.value;
  const whole = found ? runCost(found.metric, "now") : 0;
  const needed = (tree: Merged | null) => (tree ? Math.max(2, tree.deepest) * ROW : 8 * ROW) + 4;
  // Each half is as high as it needs, the callees have at least half of the pane if they need it.
  const room = Math.max(0, size.height - 32);
  const below = Math.min(needed(down.value), Math.max(room / 2, room - needed(up.value)));
  return (
    <section class="pane" aria-label="sandwich">
      <PaneHead title="Sandwich" note="what leads to the function above it, what it leads to below; widths are shares of the function, numbers of the run"><ColourChoice /></PaneHead>
      <div class="sandwich" ref={ref} style={{ gridTemplateRows: `minmax(0, 1fr) 32px ${Math.floor(below)}px` }}>
        <Flame request={(path, detail) => callers(fn, path, detail)} upward zoomable={false} label="callers of the current function" />
        <div class="centre-bar">
          <b title={profile.fullName(fn)}>{profile.name(fn).qualifier}{profile.name(fn).last}{profile.name(fn).tail}</b>
          {found && whole > 0 && <span>total <b>{percent(found.now.total[fn] / whole)}</b> self <b>{percent(found.now.self[fn] / whole)}</b></span>}
          <span class="note">{up.value ? `${up.value.deepest} callers deep` : ""}{down.value ? `, ${down.value.deepest} callees deep` : ""}</span>
        </div>
        <Flame request={(path, detail) => callees(fn, fold, path, detail)} zoomable={false} label="callees of the current function" />
      </div>
    </section>
  );
}
