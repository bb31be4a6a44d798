// Small parts that several panes are made of.

import { cloneElement, type ComponentChildren, type JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { fit, type Name } from "../model/names.ts";
import { CATEGORIES } from "../profile.ts";
import { select } from "../route.ts";
import { analysis, theProfile } from "../state.ts";

const canvas = document.createElement("canvas").getContext("2d")!;
const widths = new Map<string, number>();

/** The width of a text in pixels; measured once for each font. */
export function textWidth(text: string, font: string): number {
  const key = font + text;
  let known = widths.get(key);
  if (known === undefined) {
    if (widths.size > 50_000) widths.clear();
    canvas.font = font;
    widths.set(key, (known = canvas.measureText(text).width));
  }
  return known;
}

let sans = "sans-serif";
/** The page's fonts, as canvases need them. */
export function font(size: number, weight = 400): string {
  if (sans === "sans-serif") sans = getComputedStyle(document.body).fontFamily;
  return `${weight} ${size}px ${sans}`;
}

/** The widths of the columns of numbers beside source text or blocks, which have room for some words. */
export function columnsOf(columns: string[][]): Record<string, string> {
  const widths = columns.map((texts) => widest(texts, 12, 600));
  return { "--columns": widths.map((width) => `${width}px`).join(" "), "--least": `${widths.reduce((sum, width) => sum + width + 8, 15 + 190)}px` };
}

/** The width of a column of numbers: that of its widest text. */
export function widest(texts: string[], size = 11, weight = 400): number {
  const face = font(size, weight);
  return Math.ceil(texts.reduce((most, text) => Math.max(most, textWidth(text, face)), 0)) + 4;
}

/** A text for a title: what is longer than a screen is cut. */
export function titleOf(text: string): string {
  return text.length > 4000 ? `${text.slice(0, 4000)}…` : text;
}

/** The width and height of an element, followed as they change. */
export function useSize<T extends HTMLElement>() {
  const ref = useRef<T>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const element = ref.current;
    if (!element) return;
    const measure = () => setSize({ width: element.clientWidth, height: element.clientHeight });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [ref, size] as const;
}

/** The mark of a function's kind: a shape as well as a colour. */
export function Kind({ fn, category }: { fn?: number; category?: number }) {
  const of = category ?? theProfile().category(fn!);
  return <i class={`kind k-${CATEGORIES[of]}`} title={CATEGORIES[of]} aria-hidden="true" />;
}

const cuts = new Map<string, Name>();
const whole = new Map<string, number>();

/** Forgets how names of functions were cut, whose numbers are others from now on. */
export function forgetNames() {
  cuts.clear();
  whole.clear();
}

/** The name of a function as it fits into `room`; each is cut once for each step of some pixels. `style` names the measure. */
export function fitted(fn: number, name: Name, room: number, style: string, measure: (text: string) => number): Name {
  let width = whole.get(style + fn);
  if (width === undefined) {
    const text = name.qualifier + name.last + name.tail;
    whole.set(style + fn, (width = text.length > 2000 ? Infinity : measure(text)));
  }
  if (width <= room) return name;
  const step = Math.floor(room / 6);
  const key = `${style}${fn} ${step}`;
  let known = cuts.get(key);
  if (!known) {
    if (cuts.size > 20_000) cuts.clear();
    cuts.set(key, (known = fit(name, step * 6, measure)));
  }
  return known;
}

/** A function's name, cut to what fits; the whole of it is its title. `heading` is for the one that a central line is of. */
export function FunctionName({ fn, width, heading = false, mark = true }: { fn: number; width: number; heading?: boolean; mark?: boolean }) {
  const profile = theProfile();
  const cycle = analysis.value?.cycle[fn] ?? 0;
  const size = heading ? 13 : rowFont();
  const weight = heading ? 700 : 400;
  const [plain, heavy] = [font(size, weight), font(size, heading ? 700 : 550)];
  // The mark of a cycle has a border, and a gap before it.
  const room = width - (mark ? 14 : 0) - (cycle ? Math.ceil(textWidth(`↻${cycle}`, font(10, weight))) + 14 : 0);
  const name = profile.name(fn);
  const cut = fitted(fn, name, room, `${size} `, (text) => {
    // The last component is bold and a little wider.
    const at = text.indexOf(name.last);
    if (at < 0) return textWidth(text, heavy);
    return textWidth(text.slice(0, at), plain) + textWidth(name.last, heavy) + textWidth(text.slice(at + name.last.length), plain);
  });
  return (
    <span class="name" title={titleOf(name.full)}>
      {mark && <Kind fn={fn} />}
      <span class="text">
        <span class="q">{cut.qualifier}</span>
        <span class="l">{cut.last}</span>
        <span class="q">{cut.tail}</span>
      </span>
      {cycle > 0 && <span class="cycle" title={`in cycle ${cycle}: these functions call each other`}>↻{cycle}</span>}
    </span>
  );
}

/** A bar of cost: dark self on light total, with a whisker for the interval. All are parts of `whole`. */
export function Bar({ self, total, low, high, whole }: { self: number; total?: number; low?: number; high?: number; whole: number }) {
  const part = (value: number) => `${Math.max(0, Math.min(100, whole > 0 ? (100 * value) / whole : 0))}%`;
  return (
    <span class="bar" aria-hidden="true">
      {total !== undefined && <i class="child" style={{ width: part(total) }} />}
      {self > 0 && <i style={{ width: part(self) }} />}
      {low !== undefined && high !== undefined && <s style={{ left: part(low), width: part(high - low) }} />}
    </span>
  );
}

/** A bar of a difference around its zero line; `from` and `to` are the least and greatest of the scale. */
export function DeltaBar({ value, half, from, to, sure }: { value: number; half: number; from: number; to: number; sure: boolean }) {
  const span = to - from || 1;
  const at = (number: number) => Math.max(0, Math.min(100, (100 * (number - from)) / span));
  const zero = at(0);
  const end = at(value);
  const kind = !sure ? "same" : value > 0 ? "more" : "less";
  return (
    <span class="bar" aria-hidden="true">
      <u style={{ left: `${zero}%` }} />
      <i class={kind} style={{ left: `${Math.min(zero, end)}%`, width: `${Math.abs(end - zero)}%` }} />
      {half > 0 && <s style={{ left: `${at(value - half)}%`, width: `${at(value + half) - at(value - half)}%` }} />}
    </span>
  );
}

/** The head of a pane. */
export function PaneHead({ title, note, children }: { title: string; note?: ComponentChildren; children?: ComponentChildren }) {
  return (
    <div class="pane-head">
      <h2>{title}</h2>
      {note !== undefined && <span class="note">{note}</span>}
      <span class="space" />
      {children}
    </div>
  );
}

/** Buttons of which one is chosen. */
export function Choice<T extends string>({ value, options, onChoose, small, label }: {
  value: T; options: readonly (readonly [T, string])[]; onChoose: (value: T) => void; small?: boolean; label: string;
}) {
  return (
    <span class={small ? "choice small" : "choice"} role="group" aria-label={label}>
      {options.map(([key, text]) => (
        <button type="button" aria-pressed={key === value} onClick={() => onChoose(key)}>{text}</button>
      ))}
    </span>
  );
}

/** The text of a pane that has nothing to show: the missing part, the reason, and the command that gets it. */
export function Empty({ what, why, command, children }: { what: string; why?: ComponentChildren; command?: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <div>
        <b>{what}</b>
        {why && <p>{why}</p>}
        {command && <code>{command}</code>}
        {children}
      </div>
    </div>
  );
}

/** The height of a row: on a phone a finger needs more of it. */
export function rowHeight(): number {
  return innerWidth <= 760 ? 40 : 22;
}

/** The size of a row's text, which `widest` needs to know. */
export function rowFont(): number {
  return innerWidth <= 760 ? 14 : 12;
}

/** The element of a row, which its table says to be the active one. */
export function rowId(label: string, at: number): string {
  return `${label.replace(/\W+/g, "-")}-${at}`;
}

/** A list of rows of equal height of which only those in sight are made. Screen readers are told which one is current. */
export function Rows({ count, height, current, render, onKey, label, head, role = "grid" }: {
  count: number; height: number; current: number; render: (at: number) => JSX.Element;
  onKey?: (event: KeyboardEvent) => void; label: string; head?: JSX.Element; role?: "grid" | "treegrid";
}) {
  const [ref, size] = useSize<HTMLDivElement>();
  const [top, setTop] = useState(0);
  // Browsers cap the height of an element: beyond that the scroll bar's way is scaled.
  const whole = count * height;
  const capped = Math.min(whole, 8_000_000);
  const headHeight = head ? 24 : 0;
  const way = Math.max(1, capped + headHeight - size.height);
  const position = whole === capped ? top : (top / way) * (whole - size.height);
  const first = Math.max(0, Math.floor(position / height) - 4);
  const last = Math.min(count, first + Math.ceil(size.height / height) + 10);
  const offset = whole === capped ? first * height : Math.max(0, top - (position - first * height));
  const follow = useRef(-1);
  useEffect(() => {
    const element = ref.current;
    if (!element || current < 0 || follow.current === current) return;
    follow.current = current;
    if (whole !== capped) return;
    const at = current * height;
    const inSight = at >= element.scrollTop && at + height + headHeight <= element.scrollTop + element.clientHeight;
    if (!inSight) element.scrollTop = Math.max(0, at - element.clientHeight / 2);
  }, [current, count, size.height]);
  return (
    <div class="scroll" ref={ref} role={role} aria-label={label} aria-rowcount={count + (head ? 1 : 0)} tabIndex={0}
      aria-activedescendant={current >= first && current < last ? rowId(label, current) : undefined}
      onScroll={(event) => setTop((event.target as HTMLElement).scrollTop)} onKeyDown={onKey}>
      {head}
      <div style={{ height: `${capped}px`, position: "relative" }} role="presentation">
        <div style={{ transform: `translateY(${offset}px)` }} role="presentation">
          {Array.from({ length: Math.max(0, last - first) }, (_, at) =>
            cloneElement(render(first + at), { id: rowId(label, first + at), "aria-rowindex": first + at + (head ? 2 : 1) }))}
        </div>
      </div>
    </div>
  );
}

/** The action of a click or Enter on a function, everywhere. */
export function selecting(fn: number) {
  return { onClick: () => select(fn) };
}
