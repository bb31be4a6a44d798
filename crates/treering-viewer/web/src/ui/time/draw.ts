// Draws the strip of time on a canvas: overview, axis, tracks, and the selection above all of them.

import type { Course, Courses } from "../../model/timeline.ts";
import { type Clock, tickStep, tickText } from "../../model/moment.ts";
import { font, textWidth } from "../parts.tsx";
import type { Track } from "./rows.ts";

export const OVERVIEW = 40;
export const AXIS = 18;
const FLAG = 15;
/** Ticks are so many pixels apart, or more. */
const APART = 110;

/** The colours of the strip. */
export interface Colours {
  bg: string; ink: string; ink2: string; ink3: string; line: string; line2: string; accent: string;
  cpu: string; cur: string; lock: string; rbl: string; rblBg: string; idle: string; warn: string; raise: string;
}

let known: { theme: string; colours: Colours } | null = null;

export function colours(): Colours {
  const theme = document.documentElement.dataset.theme ?? "";
  if (known?.theme === theme) return known.colours;
  const style = getComputedStyle(document.documentElement);
  const token = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const of = {
    bg: token("bg"), ink: token("ink"), ink2: token("ink2"), ink3: token("ink3"), line: token("line"), line2: token("line2"), accent: token("accent"),
    cpu: token("cpu"), cur: token("cur"), lock: token("lock"), rbl: token("rbl"), rblBg: token("rbl-bg"), idle: token("idle"), warn: token("warn"), raise: token("raise"),
  };
  known = { theme, colours: of };
  return of;
}

/** What is drawn. */
export interface Picture {
  width: number;
  /** The height of one track. */
  track: number;
  lengthNs: number;
  seen: [from: number, to: number];
  whole: Drawn;
  part: Drawn;
  tracks: Track[];
  /** The greatest of the overview's scale and of that of tracks, in cost for each ns. */
  greatest: [overview: number, tracks: number];
  /** The text of the overview's scale. */
  scale: string;
  selected: readonly (readonly [number, number])[];
  hasBand: boolean;
  course: Course | null;
  clock: Clock;
  flags: Flag[];
  labels: boolean;
  /** The wait that is shown with its waker, and the rows of both threads, from 0 on; -1 for one without a row. */
  arc: { from: number; to: number; woken: number; row: number; wakerRow: number } | null;
}

/** Courses, and the times that they begin and have their bins at. */
export interface Drawn {
  courses: Courses;
  from: number;
  /** The length of a bin in ns. */
  bin: number;
}

/** A mark on the axis. */
export interface Flag {
  time: number;
  name: string;
  x: number;
  width: number;
}

/** The flags that lie in sight, with room for their names as far as there is any. */
export function flagsOf(course: Course | null, [from, to]: [number, number], width: number): Flag[] {
  const flags: Flag[] = [];
  for (const { time, name } of course?.marks ?? []) {
    if (time < from || time > to) continue;
    const x = ((time - from) / (to - from)) * width;
    const last = flags[flags.length - 1];
    // Flags in one place are one.
    if (last && x - last.x < 2) continue;
    flags.push({ time, name, x, width: 0 });
  }
  flags.forEach((flag, at) => {
    const wide = textWidth(flag.name, font(10)) + 10;
    const end = Math.min(width, flags[at + 1]?.x ?? width) - flag.x - 2;
    flag.width = wide <= end ? wide : 6;
  });
  return flags;
}

export function axisHeight(flags: Flag[]): number {
  return flags.length ? 2 * AXIS : AXIS;
}

export function heightOf(tracks: number, track: number, axis: number): number {
  return OVERVIEW + axis + tracks * track;
}

export function paint(canvas: HTMLCanvasElement, picture: Picture) {
  const { width, tracks, flags } = picture;
  const axis = axisHeight(flags);
  const height = heightOf(tracks.length, picture.track, axis);
  const ground = groundOf(picture, axis, height);
  if (canvas.width !== ground.width || canvas.height !== ground.height) [canvas.width, canvas.height] = [ground.width, ground.height];
  const context = canvas.getContext("2d")!;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.drawImage(ground, 0, 0);
  const ratio = devicePixelRatio || 1;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  drawSelection(context, picture, height);
  drawArc(context, picture, OVERVIEW + axis);
  if (picture.scale && !picture.labels) return;
  context.font = font(10);
  context.fillStyle = colours().ink3;
  context.textBaseline = "top";
  context.fillText(picture.scale, width - textWidth(picture.scale, font(10)) - 4, 0);
}

/** The picture without its selection, as it was drawn last, and what it was drawn from. */
let last: { from: unknown[]; canvas: HTMLCanvasElement } | null = null;

/** The picture without its selection, which is drawn anew where anything else has changed. */
function groundOf(picture: Picture, axis: number, height: number): HTMLCanvasElement {
  const { width, track, tracks, seen, lengthNs } = picture;
  const ratio = devicePixelRatio || 1;
  const look = colours();
  const from = [look, ratio, width, height, track, axis, tracks, ...seen, picture.whole, picture.part, ...picture.greatest, picture.course, picture.clock.unit];
  if (last && from.every((one, at) => one === last!.from[at])) return last.canvas;
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  const context = canvas.getContext("2d")!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = look.bg;
  context.fillRect(0, 0, width, height);
  const top = OVERVIEW + axis;
  const all: [number, number] = [0, lengthNs];
  drawRow(context, picture, picture.whole, [0], { top: 4, height: OVERVIEW - 5, greatest: picture.greatest[0], threads: 0 }, all);
  drawAxis(context, picture, axis, height);
  tracks.forEach((one, at) => {
    const rows = one.open ? [at + 1, ...tracks.flatMap((other, row) => (other !== one && other.threads.every((thread) => one.threads.includes(thread)) ? [row + 1] : []))] : [at + 1];
    drawLives(context, picture, one, top + at * track, track);
    drawRow(context, picture, picture.part, rows, { top: top + at * track + 1, height: track - 2, greatest: picture.greatest[1], threads: one.threads.length }, seen);
    context.fillStyle = look.line;
    context.fillRect(0, top + (at + 1) * track - 1, width, 1);
  });
  drawLosses(context, picture, top, height);
  drawFlags(context, picture, OVERVIEW + AXIS, height);
  last = { from, canvas };
  return canvas;
}

interface Place {
  top: number;
  height: number;
  greatest: number;
  /** How many threads a track has, of whose time waits are parts; 0 draws none. */
  threads: number;
}

/** Bars of cost from below, and waits behind them from above. */
function drawRow(context: CanvasRenderingContext2D, picture: Picture, { courses, from, bin }: Drawn, rows: number[], place: Place, [left, right]: [number, number]) {
  const { width } = picture;
  const { bins } = courses;
  const look = colours();
  const ratio = devicePixelRatio || 1;
  const x = (ns: number) => ((ns - left) / (right - left)) * width;
  const at = (of: Float64Array, index: number) => rows.reduce((sum, row) => sum + of[row * bins + index], 0);
  const bottom = place.top + place.height;
  for (let index = 0; index < bins; index++) {
    // Edges lie between pixels, so that bins touch.
    const start = Math.round(x(from + index * bin) * ratio) / ratio;
    const end = Math.min(width, Math.round(x(from + (index + 1) * bin) * ratio) / ratio);
    if (end <= 0 || start >= width) continue;
    const wide = Math.max(1 / ratio, end - start);
    if (place.threads && courses.waited) drawWaits(context, courses, (kind) => at(courses.waited![kind], index) / (bin * place.threads), start, wide, place);
    const cost = at(courses.cost, index);
    if (cost <= 0) continue;
    const tall = Math.min(place.height, Math.max(1, (cost / bin / place.greatest) * place.height));
    context.fillStyle = look.cpu;
    context.fillRect(start, bottom - tall, wide, tall);
    const current = at(courses.current, index);
    if (current <= 0) continue;
    const dark = (current / cost) * tall;
    context.fillStyle = look.cur;
    context.fillRect(start, bottom - dark, wide, dark);
  }
}

/** The kinds of waits that are drawn, from above: lock, input and output, no processor free. */
const DRAWN = [0, 1, 2];

function drawWaits(context: CanvasRenderingContext2D, _courses: Courses, part: (kind: number) => number, x: number, width: number, place: Place) {
  let top = place.top;
  for (const kind of DRAWN) {
    const tall = Math.min(1, part(kind)) * place.height;
    if (tall < 0.3) continue;
    context.fillStyle = texture(context, kind);
    context.fillRect(x, top, width, Math.min(tall, place.top + place.height - top));
    top += tall;
  }
}

const textures = new Map<string, CanvasPattern | string>();

/** The texture of a kind of wait: slanted lines, dots, upright lines. */
export function texture(context: CanvasRenderingContext2D, kind: number): CanvasPattern | string {
  const look = colours();
  const ratio = devicePixelRatio || 1;
  const key = `${kind} ${look.bg} ${ratio}`;
  const found = textures.get(key);
  if (found) return found;
  const size = [5, 5, 4][kind];
  const tile = document.createElement("canvas");
  tile.width = tile.height = size * ratio;
  const brush = tile.getContext("2d")!;
  brush.scale(ratio, ratio);
  if (kind === 0) {
    brush.strokeStyle = look.lock;
    brush.lineWidth = 1;
    for (const by of [-size, 0, size]) {
      brush.beginPath();
      brush.moveTo(by - 1, size + 1);
      brush.lineTo(by + size + 1, -1);
      brush.stroke();
    }
  } else if (kind === 1) {
    brush.fillStyle = look.ink3;
    brush.fillRect(0.5, 0.5, 1.2, 1.2);
    brush.fillRect(3, 3, 1.2, 1.2);
  } else {
    brush.fillStyle = look.rblBg;
    brush.fillRect(0, 0, size, size);
    brush.fillStyle = look.rbl;
    brush.fillRect(0, 0, 1.2, size);
  }
  const made = context.createPattern(tile, "repeat");
  if (!made) return look.idle;
  made.setTransform(new DOMMatrix().scale(1 / ratio));
  textures.set(key, made);
  return made;
}

/** The ground of a track where its threads live. */
function drawLives(context: CanvasRenderingContext2D, { course, seen, width }: Picture, track: Track, top: number, height: number) {
  context.fillStyle = colours().idle;
  const [from, to] = seen;
  const x = (ns: number) => Math.max(0, Math.min(width, ((ns - from) / (to - from)) * width));
  const of = new Set(track.threads);
  const lives = (course?.lives ?? []).filter((life) => of.has(life.thread));
  if (!lives.length || track.threads.length > 1) return context.fillRect(0, top, width, height);
  for (const { start, end } of lives) context.fillRect(x(start ?? 0), top, x(end ?? to) - x(start ?? 0), height);
}

function drawAxis(context: CanvasRenderingContext2D, { width, seen, clock }: Picture, axis: number, height: number) {
  const look = colours();
  const [from, to] = seen;
  context.fillStyle = look.raise;
  context.fillRect(0, OVERVIEW, width, axis);
  context.font = font(11);
  context.textBaseline = "middle";
  const step = tickStep(((to - from) * APART) / width, clock);
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
    const x = Math.round(((at - from) / (to - from)) * width);
    context.fillStyle = look.line;
    context.fillRect(x, OVERVIEW, 1, height - OVERVIEW);
    context.fillStyle = look.ink2;
    const unit = clock.unit === "min" ? "" : ` ${clock.unit}`;
    const text = `${tickText(at, step, clock)}${at - step < from ? unit : ""}`;
    if (x + 4 + textWidth(text, font(11)) <= width) context.fillText(text, x + 4, OVERVIEW + AXIS / 2 + 0.5);
  }
}

/** Losses are 2 px wide in the overview, and dotted through the tracks. */
function drawLosses(context: CanvasRenderingContext2D, { course, width, seen, lengthNs }: Picture, top: number, height: number) {
  context.fillStyle = colours().warn;
  for (const { time } of course?.losses ?? []) {
    context.fillRect((time / lengthNs) * width - 1, 0, 2, OVERVIEW);
    const x = ((time - seen[0]) / (seen[1] - seen[0])) * width;
    if (x < 0 || x > width) continue;
    for (let y = top; y < height; y += 4) context.fillRect(x - 1, y, 2, 2);
  }
}

/** Flags have their names where there is room, and are pennants where there is none. */
function drawFlags(context: CanvasRenderingContext2D, { flags }: Picture, top: number, height: number) {
  const look = colours();
  for (const { x, width, name } of flags) {
    context.fillStyle = look.ink2;
    context.fillRect(x, top, 1, height - top);
    context.beginPath();
    context.moveTo(x, top);
    context.lineTo(x + width - 4, top);
    context.lineTo(x + width, top + FLAG / 2);
    context.lineTo(x + width - 4, top + FLAG);
    context.lineTo(x, top + FLAG);
    context.fill();
    if (width <= 6) continue;
    context.font = font(10);
    context.textBaseline = "middle";
    context.fillStyle = look.bg;
    context.fillText(name, x + 4, top + FLAG / 2 + 0.5);
  }
}

/** The shown wait: its track from start to end, and an arc from the waker, a dot, to the woken, an arrow. */
function drawArc(context: CanvasRenderingContext2D, { arc, width, seen, track }: Picture, top: number) {
  if (!arc || arc.row < 0) return;
  const x = (ns: number) => Math.max(-2, Math.min(width + 2, ((ns - seen[0]) / (seen[1] - seen[0])) * width));
  const y = (row: number) => top + (row + 0.5) * track;
  context.strokeStyle = context.fillStyle = colours().ink;
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(x(arc.from), y(arc.row));
  context.lineTo(x(arc.to), y(arc.row));
  context.stroke();
  for (const edge of [x(arc.from), x(arc.to)]) context.fillRect(edge - 0.75, y(arc.row) - 4, 1.5, 8);
  if (arc.wakerRow < 0 || arc.wakerRow === arc.row) return;
  const [at, from, to] = [x(arc.woken), y(arc.wakerRow), y(arc.row)];
  const side = at > width / 2 ? -1 : 1;
  context.beginPath();
  context.moveTo(at, from);
  context.quadraticCurveTo(at + side * 14, (from + to) / 2, at, to);
  context.stroke();
  context.beginPath();
  context.arc(at, from, 3, 0, 2 * Math.PI);
  context.fill();
  const down = Math.sign(to - from);
  context.beginPath();
  context.moveTo(at, to);
  context.lineTo(at + side * 1.5 - 4, to - down * 7);
  context.lineTo(at + side * 1.5 + 4, to - down * 7);
  context.fill();
}

/** The rest of the run is veiled. In the overview a zoom is a frame. */
function drawSelection(context: CanvasRenderingContext2D, picture: Picture, height: number) {
  const { width, seen, lengthNs, selected } = picture;
  const look = colours();
  const isZoomed = seen[0] > 0 || seen[1] < lengthNs;
  const areas: [number, number, [number, number]][] = isZoomed
    ? [[0, OVERVIEW, [0, lengthNs]], [OVERVIEW, height, seen]] : [[0, height, seen]];
  for (const [top, bottom, [from, to]] of areas) {
    const x = (ns: number) => Math.max(-2, Math.min(width + 2, ((ns - from) / (to - from)) * width));
    if (selected.length) {
      context.globalAlpha = 0.72;
      context.fillStyle = look.bg;
      let left = 0;
      for (const [start, end] of selected) {
        if (x(start) > left) context.fillRect(left, top, x(start) - left, bottom - top);
        left = Math.max(left, x(end));
      }
      if (left < width) context.fillRect(left, top, width - left, bottom - top);
      context.globalAlpha = 1;
      context.fillStyle = look.accent;
      for (const [start, end] of selected) {
        if (isZoomed && top === 0) {
          context.fillRect(x(start), OVERVIEW - 3, Math.max(1.5, x(end) - x(start)), 3);
        } else if (!picture.hasBand) {
          for (const edge of [x(start), x(end)]) context.fillRect(edge - 0.75, top, 1.5, bottom - top);
        } else {
          context.fillRect(x(start), bottom - 2, Math.max(1, x(end) - x(start)), 2);
        }
      }
    }
  }
  context.strokeStyle = look.ink3;
  context.lineWidth = 1;
  if (isZoomed) context.strokeRect((seen[0] / lengthNs) * width + 0.5, 0.5, Math.max(2, ((seen[1] - seen[0]) / lengthNs) * width - 1), OVERVIEW - 1);
}
