// The strip of time: the course of the run by thread, of which a part can be selected. Every pane follows the selection.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { slotsOf, type Courses, type Grid } from "../../model/timeline.ts";
import { moment } from "../../model/moment.ts";
import { amount, grouped, timeWord } from "../../model/numbers.ts";
import { askCourses } from "../../asking.ts";
import { go, route, shownMetric } from "../../route.ts";
import { analysis, course, failure, generation, theProfile } from "../../state.ts";
import { font, textWidth, titleOf, useSize } from "../parts.tsx";
import { axisHeight, type Drawn, flagsOf, heightOf, OVERVIEW, paint, type Picture } from "./draw.ts";
import { Grip, useBrush } from "./brush.tsx";
import { TimeHead } from "./head.tsx";
import { HeatPlot } from "./heat.tsx";
import { all, counts, followThreads, MOST, opened, room, rowOf, type Track, tracks } from "./rows.ts";
import { arc, clock, seen, selected, time } from "./selection.ts";

/** The height of a track: a finger needs more of it, and a large screen has room. */
function trackHeight(): number {
  return innerWidth <= 760 ? 34 : innerWidth >= 2400 ? 28 : 22;
}

/** The width of labels; on a phone they stand on their tracks. */
function labelWidth(): number {
  return innerWidth <= 760 ? 0 : innerWidth <= 1300 ? 128 : innerWidth >= 2400 ? 240 : 168;
}

export function TimeStrip({ compact = false }: { compact?: boolean }) {
  if (!theProfile().head.time) return compact ? null : <p class="time-none">{withoutTime()}</p>;
  return (
    <section class="time" aria-label="time">
      <TimeHead compact={compact} />
      {!route.value.folded && <Body compact={compact || route.value.mode === "heat"} />}
      {!route.value.folded && !compact && route.value.mode === "heat" && <HeatPlot labels={labelWidth()} />}
    </section>
  );
}

/** The reason why there is no strip, and what has one. */
function withoutTime(): string {
  const { baseRuns, runs, shape, collector } = theProfile().head;
  if (baseRuns) return "No strip of time: two profiles are compared, and each has its own time. --from and --to compare the same part of both.";
  if (runs.length > 1) return "No strip of time: the profile is of several runs, and each has its own time.";
  const known = "Time is kept by record, unless --no-time is given, and by imports of perf, Firefox, .cpuprofile, speedscope and calls of trace events.";
  const why = shape !== "tree" ? ": it has no stacks" : collector ? `, which is of ${collector}` : "";
  return `No time in this profile${why}. ${known}`;
}

/** The least length of a bin, in slots: about two samples fall into one where a thread runs all the time. */
export function leastBin(): number {
  const { period, unit } = theProfile().head.metrics[shownMetric()];
  return unit === "nanoseconds" && period ? Math.max(1, Math.ceil((2.2 * period) / time().slotNs)) : 1;
}

/** The courses in the present state; the last ones stay until the worker has made those of the next. */
function useCourses(list: Track[], width: number): { whole: Drawn; part: Drawn; tracks: Track[] } | null {
  const [found, setFound] = useState<{ whole: Drawn; part: Drawn; tracks: Track[] } | null>(null);
  const { steps, fn } = route.value;
  const [from, to] = seen();
  const { slotNs, slots } = time();
  const others = JSON.stringify(steps.filter((step) => step.kind !== "time"));
  const key = [shownMetric(), fn, others, from, to, list.map((track) => track.key + track.threads.length), width, generation.value > 0, course.value !== null].join();
  useEffect(() => {
    if (width < 10 || !course.peek() || !analysis.peek()) return;
    let stale = false;
    const { threads } = theProfile().head;
    const gridOf = (first: number, last: number, rows: number, of: Uint16Array): Grid => {
      const per = Math.max(leastBin(), Math.ceil((last - first) / (width / 1.5)));
      return { from: first, to: last, per, rowOf: of, rows };
    };
    const drawn = (grid: Grid) => (courses: Courses): Drawn => ({ courses, from: grid.from * slotNs, bin: grid.per * slotNs });
    const whole = gridOf(0, slots, 0, new Uint16Array(threads));
    // Bins begin at whole multiples, so that moving about does not change what they hold.
    const wide = gridOf(Math.floor(from / slotNs), Math.min(slots, Math.ceil(to / slotNs)), list.length, rowOf(list, threads));
    const part = { ...wide, from: Math.floor(wide.from / wide.per) * wide.per };
    const ofPart = askCourses(part).then(drawn(part));
    // Where the whole run is seen, its row is among those of the tracks.
    const ofWhole = route.peek().window ? askCourses(whole).then(drawn(whole)) : ofPart;
    Promise.all([ofWhole, ofPart]).then(
      ([whole, part]) => stale || setFound({ whole, part, tracks: list }),
      (error: Error) => stale || (failure.value = `the course of the run cannot be drawn: ${error.message}`),
    );
    return () => void (stale = true);
  }, [key]);
  return found;
}

/** The greatest of rows of courses, in cost for each ns. */
function greatest({ courses, bin }: Drawn, from: number, to: number): number {
  let most = 0;
  for (let at = from * courses.bins; at < to * courses.bins && at < courses.cost.length; at++) most = Math.max(most, courses.cost[at]);
  return most / bin;
}

/** The next step of a scale: 0.1, 0.25, 0.5, 1, 2, 5 and so on. */
export function scaleStep(most: number): number {
  const known = [0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
  return known.find((step) => most <= step * 1.001) ?? most;
}

/** A scale as its text: processors in use, or the amount in a second. */
function scaleText(most: number): string {
  const { unit, name } = theProfile().head.metrics[shownMetric()];
  if (unit === "nanoseconds") return `${Number(most.toPrecision(3))} ${most === 1 ? "processor" : "processors"}`;
  return `${amount(unit, most * 1e9)}${unit === "count" ? ` ${name}` : ""} a second`;
}

function Body({ compact }: { compact: boolean }) {
  followThreads();
  const [box, size] = useSize<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  room.value = route.value.tracks || (innerHeight >= 1500 ? 10 : 6);
  const list = compact ? [] : tracks.value;
  const found = useCourses(list, size.width);
  const brush = useBrush(box);
  const span = selected();
  const { slotNs, slots, lengthNs } = time();
  const flags = compact ? [] : flagsOf(course.value, seen(), size.width);
  const axis = axisHeight(flags);
  const height = heightOf(list.length, trackHeight(), axis);
  const isTime = theProfile().head.metrics[shownMetric()].unit === "nanoseconds";
  // A thread has one processor at most: more than that in a short bin is by the chance of sampling.
  const rounded = (most: number, threads: number) => (isTime ? Math.min(scaleStep(most), scaleStep(Math.max(1, threads))) : most || 1);
  const all = new Set(tracks.value.flatMap((track) => track.threads)).size;
  const widest = Math.max(1, ...tracks.value.map((track) => track.threads.length));
  const most: [number, number] = found ? [rounded(greatest(found.whole, 0, 1), all), rounded(greatest(found.part, 1, found.tracks.length + 1), widest)] : [1, 1];
  const picture: Picture | null = found && {
    width: size.width, track: trackHeight(), lengthNs, seen: seen(), ...found, tracks: compact ? [] : found.tracks, greatest: most, scale: scaleText(most[0]),
    selected: span ? slotsOf(span, slotNs, slots).map(([from, to]) => [from * slotNs, to * slotNs] as const) : [],
    hasBand: span !== null && span.period !== null, course: course.value, clock: clock(), flags, labels: true, arc: arcIn(compact ? [] : found.tracks),
  };
  useLayoutEffect(() => {
    if (picture && canvas.current) paint(canvas.current, picture);
  });
  const { theme } = route.value;
  void theme;
  return (
    <>
    <div class="time-body" style={{ gridTemplateColumns: `${labelWidth()}px minmax(0, 1fr)`, height: `${height}px` }}>
      <Labels list={list} axis={axis} scale={most[1]} />
      <div class="time-plot" ref={box} id="time-plot" tabIndex={0} role="group" aria-label={`course of the run: ${described(list)}`} {...brush}>
        <canvas ref={canvas} style={{ width: `${size.width}px`, height: `${height}px` }} aria-hidden="true" />
        {!found && <p class="wait">reading the course of the run</p>}
        {span && span.period === null && found && (
          <>
            <Grip edge="from" span={span} width={size.width} />
            <Grip edge="to" span={span} width={size.width} />
          </>
        )}
        {compact ? null : <PhoneLabels list={list} axis={axis} />}
      </div>
    </div>
    {!compact && (list.length > 1 || route.value.tracks > 0) && <Edge shown={list.length} />}
    </>
  );
}

/** The shown wait, with the tracks of both threads. */
function arcIn(list: Track[]): Picture["arc"] {
  const shown = arc.value;
  if (!shown) return null;
  // The later track is the finer one.
  const rowOf = (thread: number) => list.findLastIndex((track) => track.threads.includes(thread));
  return { ...shown, row: rowOf(shown.thread), wakerRow: shown.waker < 0 ? -1 : rowOf(shown.waker) };
}

/** The lower edge of the strip: dragged or moved by arrow keys it has room for more or fewer tracks; a double click restores. */
function Edge({ shown }: { shown: number }) {
  const set = (tracks: number) => go({ tracks: Math.max(1, Math.min(MOST, Math.round(tracks))) }, true);
  return (
    <div class="time-edge" role="separator" aria-orientation="horizontal" aria-valuemin={1} aria-valuemax={MOST} aria-valuenow={shown} aria-label="tracks of the strip" tabIndex={0}
      onKeyDown={(event) => {
        const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        if (by === undefined) return;
        set(shown + by);
        event.preventDefault();
        event.stopPropagation();
      }}
      onDblClick={() => go({ tracks: 0 }, true)}
      onPointerDown={(event) => {
        const from = event.clientY;
        const target = event.currentTarget;
        target.setPointerCapture(event.pointerId);
        const move = (moved: PointerEvent) => set(shown + (moved.clientY - from) / trackHeight());
        target.addEventListener("pointermove", move);
        target.addEventListener("pointerup", () => target.removeEventListener("pointermove", move), { once: true });
      }} />
  );
}

/** The run in words, for those who do not see the picture. */
function described(list: Track[]): string {
  const span = selected();
  const of = (from: number, to: number) => `${moment(from, clock())} to ${moment(to, clock())}`;
  const hottest = list.slice(0, 6).map((track) => `${track.label} ${amount(theProfile().head.metrics[shownMetric()].unit, track.cost)}`);
  return `${of(0, time().lengthNs)}${span ? `, selected ${of(span.from, span.to)}` : ""}; ${hottest.join(", ")}`;
}

/** The threads that are shown; null where all are. */
export function shownThreads(): Set<number> | null {
  const step = route.value.steps.find((one) => one.kind === "threads");
  return step ? new Set(step.target.replace(/^t:/, "").split(",").map(Number)) : null;
}

/** Shows only a track; with `also`, beside those that are shown. Again shows all. */
function choose(track: Track, also: boolean) {
  const shown = shownThreads();
  const steps = route.peek().steps;
  const at = steps.findIndex((step) => step.kind === "threads");
  const wanted = new Set(also && shown ? shown : []);
  const isShown = shown !== null && track.threads.every((thread) => shown.has(thread));
  for (const thread of track.threads) isShown && also ? wanted.delete(thread) : wanted.add(thread);
  const isOnly = isShown && shown.size === track.threads.length;
  const step = isOnly && !also || wanted.size === 0 ? null : ({ kind: "threads", target: `t:${[...wanted].sort((a, b) => a - b).join(",")}` } as const);
  const next = !step ? steps.filter((_, other) => other !== at) : at < 0 ? [...steps, step] : steps.with(at, step);
  go({ steps: next, zoom: [] });
}

function toggle(track: Track) {
  if (track.kind === "rest" || all.value && track.key === "rest") {
    all.value = !all.value;
  } else if (track.kind === "process") {
    const next = new Set(opened.value);
    if (!next.delete(track.key)) next.add(track.key);
    opened.value = next;
  }
}

/** The cost of a track in the unit of all. */
function costText(cost: number): string {
  const { unit } = theProfile().head.metrics[shownMetric()];
  if (unit !== "nanoseconds") return cost >= 1e6 ? `${grouped(cost / 1e6, 1)} M` : grouped(cost);
  return grouped(cost / { ms: 1e6, s: 1e9, min: 60e9 }[clock().unit], clock().unit === "min" ? 1 : 3);
}

function Labels({ list, axis, scale }: { list: Track[]; axis: number; scale: number }) {
  const [cursor, setCursor] = useState(0);
  const shown = shownThreads();
  const { threads, processes } = counts.value;
  if (innerWidth <= 760) return <span />;
  const { unit, name } = theProfile().head.metrics[shownMetric()];
  const onKey = (event: KeyboardEvent) => {
    const track = list[cursor];
    if (event.key === "ArrowDown") setCursor(Math.min(list.length - 1, cursor + 1));
    else if (event.key === "ArrowUp") setCursor(Math.max(0, cursor - 1));
    else if (event.key === "Enter" && track) choose(track, event.ctrlKey);
    else if (event.key === " " && track) toggle(track);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const cost = tracks.value.reduce((sum, track) => sum + (track.open ? 0 : track.cost), 0);
  return (
    <div class="time-labels">
      <div class="time-all" style={{ height: `${OVERVIEW}px` }}>
        <span title={`${grouped(threads)} ${threads === 1 ? "thread" : "threads"}`}><b>{threads === 1 ? "All of it" : `All ${grouped(threads)} threads`}</b><br /><span class="note">{grouped(processes)} {processes === 1 ? "process" : "processes"}</span></span>
        <span class="r">{costText(cost)}</span>
      </div>
      <div class="time-scale note" style={{ height: `${axis}px` }}>
        {list.length > 0 ? <span title={`0–${scaleText(scale)}`}>0–{scaleText(scale)}</span> : <span>start of column</span>}
        <span>{unit === "nanoseconds" ? `${timeWord(name)} ${clock().unit}` : ""}</span>
      </div>
      <div role="listbox" aria-label="threads" aria-multiselectable="true" tabIndex={0} onKeyDown={onKey} aria-activedescendant={`track-${cursor}`}>
        {list.map((track, at) => {
          const chosen = shown !== null && track.threads.every((thread) => shown.has(thread));
          return (
            <div id={`track-${at}`} role="option" aria-selected={chosen} class={`time-label${shown && !chosen ? " away" : ""}`} style={{ height: `${trackHeight()}px` }} data-cursor={at === cursor ? "" : undefined}
              title={`${titleOf(track.label)}: a click shows only this, with Ctrl this too, again all`} onClick={(event) => {
                setCursor(at);
                if ((event.target as HTMLElement).closest(".twist")) toggle(track);
                else if (track.kind === "rest") toggle(track);
                else choose(track, event.ctrlKey || event.metaKey);
              }}>
              {track.kind === "thread" ? <span class="twist" /> : <span class="twist" aria-hidden="true">{track.open ? "▾" : "▸"}</span>}
              <span class="time-name">{track.label}{track.kind === "process" && <span class="note"> {track.threads.length}</span>}</span>
              <span class="r">{costText(track.cost)}</span>
            </div>
          );
        })}
      </div>
    </div>
  );
}

/** On a phone, labels stand on the tracks. */
function PhoneLabels({ list, axis }: { list: Track[]; axis: number }) {
  if (innerWidth > 760) return null;
  const shown = shownThreads();
  return (
    <>
      {list.map((track, at) => (
        <button type="button" class="time-phone" aria-pressed={shown !== null && track.threads.every((thread) => shown.has(thread))}
          style={{ top: `${OVERVIEW + axis + at * trackHeight()}px`, maxWidth: `${textWidth(track.label, font(12)) + 140}px` }}
          onPointerDown={(event) => event.stopPropagation()} onClick={() => (track.kind === "rest" ? toggle(track) : choose(track, false))}>
          <b>{track.label}</b> {costText(track.cost)} {clock().unit}
        </button>
      ))}
    </>
  );
}
