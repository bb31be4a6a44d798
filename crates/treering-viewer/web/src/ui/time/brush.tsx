// The pointer over the strip of time: a drag selects, a click clears, the wheel magnifies and pans. Edges are sliders.

import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { moment } from "../../model/moment.ts";
import type { Span } from "../../model/timeline.ts";
import { route } from "../../route.ts";
import { course } from "../../state.ts";
import { AXIS, axisHeight, flagsOf, OVERVIEW } from "./draw.ts";
import { clock, compareWith, draw, drop, magnify, move, see, seen, selected, selectSpan, snapped, time, toggleZoom } from "./selection.ts";

/** A pointer that moved less, in pixels, has clicked. */
const STILL = 4;

/** The moment at a place in the plot; the overview shows the whole run. */
function momentAt(box: HTMLElement, clientX: number, inOverview: boolean): number {
  const rect = box.getBoundingClientRect();
  const [from, to] = inOverview ? [0, time().lengthNs] : seen();
  const part = Math.max(0, Math.min(1, (clientX - rect.left) / rect.width));
  return from + part * (to - from);
}

export function useBrush(box: RefObject<HTMLDivElement | null>) {
  const drag = useRef<{ x: number; at: number; overview: boolean; moved: boolean; other: boolean } | null>(null);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    // A listener that may hinder the page from scrolling is not passive.
    const wheel = (event: WheelEvent) => {
      const [from, to] = seen();
      if (event.ctrlKey) magnify(Math.exp(event.deltaY * 0.005), momentAt(element, event.clientX, false));
      else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        const by = ((event.deltaX || event.deltaY) / element.clientWidth) * (to - from);
        see([from + by, to + by]);
      } else return;
      event.preventDefault();
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  }, []);
  /** A click on a mark selects up to the next one of its kind; elsewhere it clears. */
  const clicked = (event: PointerEvent) => {
    const element = box.current!;
    const rect = element.getBoundingClientRect();
    const [x, y] = [event.clientX - rect.left, event.clientY - rect.top];
    const flags = flagsOf(course.peek(), seen(), rect.width);
    const flag = y >= OVERVIEW + AXIS && y < OVERVIEW + axisHeight(flags) ? flags.findLast((one) => x >= one.x && x <= one.x + one.width) : undefined;
    selectSpan(flag ? snapped(untilNext(flag.time)) : null);
  };
  return {
    onPointerDown: (event: PointerEvent) => {
      const element = box.current;
      if (!element || event.button !== 0) return;
      const overview = event.clientY - element.getBoundingClientRect().top < OVERVIEW;
      drag.current = { x: event.clientX, at: momentAt(element, event.clientX, overview), overview, moved: false, other: event.altKey && selected() !== null };
      element.setPointerCapture(event.pointerId);
    },
    onPointerMove: (event: PointerEvent) => {
      const begun = drag.current;
      if (!begun) return;
      begun.moved ||= Math.abs(event.clientX - begun.x) >= STILL;
      // With Alt the other side of a comparison is drawn, which is asked for at its end.
      if (!begun.moved || begun.other) return;
      const at = momentAt(box.current!, event.clientX, begun.overview);
      draw({ from: Math.min(begun.at, at), to: Math.max(begun.at, at), period: null });
    },
    onPointerUp: (event: PointerEvent) => {
      const begun = drag.current;
      drag.current = null;
      if (begun?.moved && begun.other) {
        const at = momentAt(box.current!, event.clientX, begun.overview);
        compareWith(snapped({ from: Math.min(begun.at, at), to: Math.max(begun.at, at), period: null }));
      } else if (begun?.moved) drop();
      else if (begun) clicked(event);
    },
    onPointerCancel: () => {
      drag.current = null;
      drop();
    },
    onKeyDown: onStripKey,
  };
}

/** From a mark to its end, or to the next one of its kind. */
function untilNext(from: number): Span {
  const marks = course.peek()?.marks ?? [];
  const mark = marks.find((one) => one.time === from);
  const next = marks.find((one) => one.time > from && one.kind === mark?.kind);
  return { from, to: mark?.end ?? next?.time ?? time().lengthNs, period: null };
}

/** The keys of the strip. */
function onStripKey(event: KeyboardEvent) {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const [from, to] = seen();
  const step: Record<string, () => void> = {
    ArrowLeft: () => (selected() ? move(-1, event.shiftKey ? "to" : "both") : start(-1)),
    ArrowRight: () => (selected() ? move(1, event.shiftKey ? "to" : "both") : start(1)),
    "+": () => magnify(0.7, (from + to) / 2), "=": () => magnify(0.7, (from + to) / 2), "-": () => magnify(1 / 0.7, (from + to) / 2),
    "0": () => see(null, false),
    Enter: toggleZoom,
  };
  const act = step[event.key];
  if (!act) return;
  act();
  event.preventDefault();
  event.stopPropagation();
}

/** Begins a selection in the middle of what is seen. */
function start(by: number) {
  const [from, to] = seen();
  const middle = (from + to) / 2;
  const wide = (to - from) / 20;
  selectSpan(snapped({ from: by < 0 ? middle - wide : middle, to: by < 0 ? middle : middle + wide, period: null }));
}

/** An edge of the selection, which can be dragged and moved by keys. */
export function Grip({ edge, span, width }: { edge: "from" | "to"; span: Span; width: number }) {
  const held = useRef(false);
  const [from, to] = seen();
  const x = ((span[edge] - from) / (to - from)) * width;
  if (x < -1 || x > width + 1) return null;
  const isZoomed = route.value.window !== null;
  const keys = (event: KeyboardEvent) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10 }[event.key];
    if (by === undefined || event.ctrlKey || event.altKey) return;
    move(by, edge);
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="grip" style={{ left: `${x}px`, top: `${isZoomed ? OVERVIEW : 0}px` }} role="slider" tabIndex={0} aria-label={edge === "from" ? "start of the selection" : "end of the selection"}
      aria-valuemin={0} aria-valuemax={Math.round(time().lengthNs / 1e6)} aria-valuenow={Math.round(span[edge] / 1e6)}
      aria-valuetext={`${moment(span[edge], clock())}${clock().unit === "min" ? "" : ` ${clock().unit}`}`} onKeyDown={keys}
      onPointerDown={(event) => {
        held.current = true;
        (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
        event.stopPropagation();
      }}
      onPointerMove={(event) => {
        if (!held.current) return;
        const at = momentAt((event.currentTarget as HTMLElement).parentElement!, event.clientX, false);
        const now = selected() ?? span;
        // Neither edge goes past the other.
        if (edge === "from") draw({ ...now, from: Math.min(at, now.to - time().slotNs) });
        else draw({ ...now, to: Math.max(at, now.from + time().slotNs) });
        event.stopPropagation();
      }}
      onPointerUp={(event) => {
        held.current = false;
        drop();
        event.stopPropagation();
      }}><i /></div>
  );
}
