// The head of the strip: which part of the run is selected, and its numbers.

import { useEffect, useState } from "preact/hooks";
import { lengthText, spanText } from "../../model/moment.ts";
import { countOf, slotsOf } from "../../model/timeline.ts";
import { amount, grouped, percent, timeWord } from "../../model/numbers.ts";
import { askWaited } from "../../asking.ts";
import { partMeasure, wholeCost } from "../../measures.ts";
import { againstOf, go, isCompared, route, shownMetric, spanOf } from "../../route.ts";
import { analysis, course, failure, generation, theProfile } from "../../state.ts";
import type { Measure } from "../../model/interval.ts";
import { Choice } from "../parts.tsx";
import { HeatChoice } from "./heat.tsx";
import { clock, selected, selectSpan, time, toggleCompare, toggleZoom } from "./selection.ts";

/** Below so many samples a part of the run has too few. */
const FEW = 20;

/** By kind: what threads waited for. */
const WAITED_FOR = ["for locks", "for I/O", "for a processor"];

export function TimeHead({ compact }: { compact: boolean }) {
  const { folded, mode } = route.value;
  const span = selected();
  return (
    <div class={compact ? "time-head compact" : "time-head"}>
      {!compact && <button type="button" class="time-fold" aria-expanded={!folded} title="fold the strip (T)" onClick={() => go({ folded: !folded }, true)}><span aria-hidden="true">{folded ? "▸" : "▾"}</span> <b>Time</b></button>}
      {!compact && !folded && <Choice small label="below the overview" value={mode} options={[["tracks", "Tracks"], ["heat", "Heatmap"]] as const} onChoose={(mode) => go({ mode }, true)} />}
      <Numbers />
      <span class="space" />
      {mode === "heat" && !folded && !compact && <HeatChoice />}
      {!span && !folded && !compact && mode === "tracks" && <Legend />}
      {span && !compact && (
        <button type="button" class="time-button" onClick={toggleCompare}>{isCompared() ? "End comparison" : "Compare"} <kbd>A</kbd></button>
      )}
      {!compact && (span !== null && span.period === null || route.value.window !== null) && (
        <button type="button" class="time-button" onClick={toggleZoom}>{route.value.window ? "Whole run" : "Zoom in"} <kbd>Z</kbd></button>
      )}
      {span && <button type="button" class="time-button" aria-label="show the whole run" onClick={() => selectSpan(null)}>× <kbd>Esc</kbd></button>}
    </div>
  );
}

/** How the sum of samples may differ by chance, in the cost's unit. */
function halfWidth(cost: number, measure: Measure): number {
  const { weights } = theProfile().head.metrics[shownMetric()];
  if (measure.samples === 0) return 0;
  return 1.96 * (weights ? Math.sqrt(measure.squares * weights.per) : cost / Math.sqrt(measure.samples));
}

function useWaited(): number[] | null {
  const [waited, setWaited] = useState<number[] | null>(null);
  const key = [JSON.stringify(route.value.steps), generation.value, course.value !== null].join();
  useEffect(() => {
    if (!time().hasWaits || !course.peek()) return;
    let stale = false;
    askWaited().then((found) => stale || setWaited(found), (error: Error) => stale || (failure.value = `waits cannot be added up: ${error.message}`));
    return () => void (stale = true);
  }, [key]);
  return waited;
}

function Numbers() {
  const waited = useWaited();
  const { lengthNs, slotNs, slots } = time();
  const metric = shownMetric();
  const known = theProfile().head.metrics[metric];
  const span = spanOf(route.value.steps);
  const drawing = selected();
  if (!analysis.value) return <span class="time-numbers" />;
  if (isCompared()) return <Compared />;
  const part = partMeasure(metric);
  const cost = part ? part.cost : wholeCost(metric, "now");
  const samples = part ? part.samples : known.runSamples;
  const wall = span && part ? Math.min(lengthNs, countOf(slotsOf(span, slotNs, slots)) * slotNs) : lengthNs;
  const [length, unit] = lengthText(wall, clock());
  const half = known.samples !== null && part ? halfWidth(cost, part) : 0;
  const isTime = known.unit === "nanoseconds";
  const [number, costUnit] = isTime ? lengthText(cost, clock()) : [amount(known.unit, cost), known.unit === "count" ? known.name : ""];
  const waits = WAITED_FOR.map((what, kind) => ({ what, ns: waited?.[kind] ?? 0 })).filter(({ ns }) => ns > 0);
  const inShare = span && part ? `, ${percent(wall / lengthNs)} of the run` : " of wall";
  const lost = span ? (course.value?.losses ?? []).filter(({ time }) => slotsOf(span, slotNs, slots).some(([from, to]) => time >= from * slotNs && time < to * slotNs)).reduce((sum, { samples }) => sum + samples, 0) : 0;
  return (
    <span class="time-numbers" aria-live="polite">
      {drawing && <span class="time-span"><b>{spanText(drawing, clock())}</b>{drawing.period !== null && `, ${slotsOf(drawing, slotNs, slots).length} times`}</span>}
      <span><b>{length}</b> {unit}{inShare}</span>
      <span>{isTime ? `${timeWord(known.name)} ` : ""}{lost > 0 && "~"}<b>{number}</b>{half > 0 && ` ± ${isTime ? lengthText(half, clock(), cost)[0] : amount(known.unit, half)}`} {costUnit}{isTime && timeWord(known.name) === "CPU" && wall > 0 && ` (${grouped(cost / wall, 2)} processors)`}</span>
      {waits.length > 0 && <span>waited {waits.map(({ what, ns }, at) => <>{at > 0 && ", "}{what} <b>{lengthText(ns, clock(), waits[0].ns)[0]}</b></>)} {lengthText(waits[0].ns, clock())[1]}</span>}
      {known.samples !== null && <span>{grouped(samples)} {samples === 1 ? "sample" : "samples"}{part && samples < FEW && <b class="wrong"> too few</b>}</span>}
      {lost > 0 && <span class="wrong">{grouped(lost)} lost here</span>}
    </span>
  );
}

/** The numbers of two parts that are compared: each per second. */
function Compared() {
  const metric = shownMetric();
  const { unit, name, samples } = theProfile().head.metrics[metric];
  const { steps } = route.value;
  const [span, against] = [selected(), againstOf(steps)];
  const [now, base] = [partMeasure(metric, "now"), partMeasure(metric, "base")];
  if (!span || !now || !base) return <span class="time-numbers" />;
  const by = now.cost - base.cost;
  const half = samples === null ? 0 : Math.hypot(halfWidth(now.cost, now), halfWidth(base.cost, base));
  const text = (value: number) => (unit === "nanoseconds" ? grouped(value / 1e9, 3) : amount(unit, value));
  return (
    <span class="time-numbers" aria-live="polite">
      <span><i class="side-a">A</i> <b>{against === "rest" || !against ? "the rest of the run" : spanText(against, clock())}</b></span>
      <span><i class="side-b">B</i> <b>{spanText(span, clock())}</b></span>
      <span>{unit === "nanoseconds" ? timeWord(name) : unit === "count" ? name : "bytes"} per second <b>{text(base.cost)}</b> → <b>{text(now.cost)}</b></span>
      <span class={half > 0 && Math.abs(by) <= half ? "dim" : by < 0 ? "less-t" : "more-t"}>{by < 0 ? "▼" : "▲"} {text(Math.abs(by))}{half > 0 && ` ± ${text(half)}`}</span>
      {samples !== null && <span>{grouped(base.samples)} and {grouped(now.samples)} samples{now.samples < FEW && <b class="wrong"> too few</b>}</span>}
    </span>
  );
}

function Legend() {
  const { fn } = route.value;
  const profile = theProfile();
  const { unit, name } = profile.head.metrics[shownMetric()];
  return (
    <span class="time-legend" aria-hidden="true">
      {fn > 0 && <span><i style={{ background: "var(--cur)" }} />{profile.name(fn).last.slice(0, 24)}</span>}
      <span><i style={{ background: "var(--cpu)" }} />other {unit === "nanoseconds" ? timeWord(name) : "cost"}</span>
      {time().hasWaits && (
        <>
          <span><i class="w-lock" />lock</span><span><i class="w-io" />I/O</span><span><i class="w-ready" />no processor free</span>
        </>
      )}
    </span>
  );
}
