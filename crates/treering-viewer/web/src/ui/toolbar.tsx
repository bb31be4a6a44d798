// The toolbar and the breadcrumbs.

import { useRef } from "preact/hooks";
import { percent, plural } from "../model/numbers.ts";
import { visible } from "../model/visible.ts";
import { matches, searchProblem } from "../masks.ts";
import { partMeasure, wholeCost } from "../measures.ts";
import { go, isCompared, route, shownMetric, spanOf, VIEWS, type Step, type View } from "../route.ts";
import { analysis, generation, theProfile, threadsOpen } from "../state.ts";
import { readSpan, spanText } from "../model/moment.ts";
import { parseQuery } from "../model/search.ts";
import { followThreads, threadName, threadsNamed } from "./time/rows.ts";
import { alone, clock, snapped } from "./time/selection.ts";
import { Choice } from "./parts.tsx";
import { matchedShare } from "./matched.ts";
import { unitsOf } from "./cost.ts";

export const VIEW_NAMES: Record<View, string> = {
  overview: "Overview", flame: "Flame", sandwich: "Sandwich", graph: "Graph", tree: "Tree", callers: "Callers tree",
};

export function Toolbar() {
  const { head } = theProfile();
  const now = route.value;
  const metrics = head.metrics.map((metric, at) => [metric, at] as const).filter(([metric]) => !metric.level);
  return (
    <div class="toolbar">
      <button type="button" class="icon" aria-label="back" title="back (Alt ←)" onClick={() => history.back()}>‹</button>
      <button type="button" class="icon" aria-label="forward" title="forward (Alt →)" onClick={() => history.forward()}>›</button>
      <span class="wide"><Choice label="view" value={now.view} options={VIEWS.map((view) => [view, VIEW_NAMES[view]] as const)} onChoose={(view) => go({ view })} /></span>
      <span class="rule wide" />
      <label>metric{" "}
        <select value={String(now.metric)} onChange={(event) => go({ metric: Number(event.currentTarget.value) })}>
          {metrics.map(([metric, at]) => <option value={String(at)} disabled={!hasPart(at)}>{metric.name}</option>)}
        </select>
      </label>
      {metrics.length > 1 && (
        <label class="wide">and{" "}
          <select value={now.second === null ? "" : String(now.second)}
            onChange={(event) => go({ second: event.currentTarget.value === "" ? null : Number(event.currentTarget.value) })}>
            <option value="">–</option>
            {metrics.filter(([, at]) => at !== now.metric).map(([metric, at]) => <option value={String(at)} disabled={!hasPart(at)}>{metric.name}</option>)}
          </select>
        </label>
      )}
      <label>unit{" "}
        <select value={isCompared() ? "natural" : now.unit} onChange={(event) => go({ unit: event.currentTarget.value as typeof now.unit })}>
          {unitsOf(now.metric).map(([unit, name]) => <option value={unit}>{name}</option>)}
        </select>
      </label>
      {head.threads > 1 && head.shape === "tree" && (
        <button type="button" class="link wide" aria-haspopup="dialog" title={`threads and processes${head.time ? "" : " (T)"}`} onClick={() => (threadsOpen.value = true)}>{plural(head.threads, "thread")}</button>
      )}
      <span class="space" />
      <Search />
    </div>
  );
}

/** Whether a metric can be shown: of a part of the run only where its times are known. */
function hasPart(metric: number): boolean {
  const { time } = theProfile().head;
  return !time || time.timed[metric] || !spanOf(route.value.steps);
}

function Search() {
  const input = useRef<HTMLInputElement>(null);
  const now = route.value;
  const problem = now.q ? searchProblem(now.q) : null;
  const { threads, rest } = parseQuery(now.q);
  const asksThreads = threads.length > 0 && theProfile().head.shape === "tree";
  if (asksThreads) followThreads();
  const found = asksThreads ? threadsNamed(threads) : [];
  const share = now.q && !problem && !asksThreads ? matchedShare() : null;
  return (
    <div class={problem ? "search wrong" : "search"} role="search">
      <span aria-hidden="true">⌕</span>
      <input ref={input} id="search" type="search" value={now.q} placeholder="search functions" spellcheck={false} autocomplete="off"
        aria-label="search functions: text, /regex/, module:, file:, self>1; thread: for threads" aria-invalid={problem !== null}
        onInput={(event) => go({ q: event.currentTarget.value }, true)}
        onKeyDown={(event) => {
          if (event.key === "Escape") {
            if (now.q) go({ q: "" }, true);
            else input.current?.blur();
            event.stopPropagation();
          } else if (event.key === "Enter" && asksThreads) {
            // Threads are a filter at once, as by a click on a label.
            if (found.length) go({ steps: [...now.steps.filter((step) => step.kind !== "threads"), { kind: "threads", target: `t:${found.join(",")}` }], q: rest, zoom: [] });
          } else if (event.key === "Enter" && event.shiftKey && now.q && !problem) {
            go({ steps: [...now.steps, { kind: "focus", target: `q:${now.q}` }], q: "" });
          } else if (event.key === "Enter") {
            input.current?.blur();
          }
        }} />
      {problem ? <span class="hit">{problem}</span> : asksThreads ? <span class="hit">{found.length ? <><b>{plural(found.length, "thread")}</b> <kbd>Enter</kbd></> : "no such thread"}</span> : share !== null ? <span class="hit"><b>{percent(share)}</b> of the {partMeasure(now.metric) ? "selection" : "run"}</span> : <kbd>/</kbd>}
    </div>
  );
}

/** The name of a transform in its breadcrumb. */
export function stepName(step: Step): string {
  const span = step.kind === "time" ? spanOf([step]) : null;
  const { basePart } = analysis.value ?? {};
  if (span) return `${basePart ? "B " : ""}${spanText(span.period === null ? snapped(span) : span, clock())}`;
  if (step.kind === "against") return `A ${step.target === "rest" ? "the rest" : spanText(readSpan(step.target)!, clock())}`;
  if (step.kind === "threads") return threadsText(step.target.slice(2).split(",").map(Number));
  const text = visible(step.target.slice(2), "\t");
  const target = step.target.startsWith("m:") ? text.slice(text.lastIndexOf("/") + 1) : text.split("\t")[0];
  return `${step.kind} ${target.length > 60 ? `${target.slice(0, 60)}…` : target}`;
}

/** `worker 2`, `5 threads`. */
function threadsText(threads: number[]): string {
  const name = threads.length === 1 && theProfile().head.time ? threadName(threads[0]) : "";
  return name || `only ${plural(threads.length, "thread")}`;
}

/** The classes of crumbs in the colours of the strip of time. */
const CRUMBS: Partial<Record<Step["kind"], string>> = { time: "time-crumb", against: "against-crumb" };

/** The steps without one; what a part was compared with goes with it. */
function without(steps: Step[], at: number): Step[] {
  return steps.filter((step, other) => other !== at && !(steps[at].kind === "time" && step.kind === "against"));
}

export function Crumbs() {
  const now = route.value;
  void generation.value;
  if (!now.steps.length && !now.fold && !now.q) return null;
  // Of two parts that are compared, costs are those of a second.
  const shown = analysis.value && !analysis.value.basePart ? analysis.value.now.shown : 0;
  const whole = wholeCost(shownMetric(), "now");
  return (
    <nav class="crumbs" aria-label="transforms">
      <button type="button" class="link" onClick={() => go({ steps: [], fold: false, ...alone() })}>Whole program</button>
      {now.steps.map((step, at) => (
        <>
          <span class="sep" aria-hidden="true">›</span>
          <span class={`crumb ${CRUMBS[step.kind] ?? ""}`} title={visible(step.target.slice(2))}>
            {["time", "threads", "against"].includes(step.kind) ? <span>{stepName(step)}</span> : <span>{step.kind} <code>{stepName(step).slice(step.kind.length + 1)}</code></span>}
            <button type="button" aria-label={`undo ${stepName(step)}`} onClick={() => go({ steps: without(now.steps, at), ...(step.kind === "against" || step.kind === "time" ? alone() : {}) })}>×</button>
          </span>
        </>
      ))}
      {now.fold && (
        <>
          <span class="sep" aria-hidden="true">›</span>
          <span class="crumb"><span>recursion folded</span><button type="button" aria-label="unfold recursion" onClick={() => go({ fold: false })}>×</button></span>
        </>
      )}
      {now.q && matches.value && <span class="hint">search is not a filter; <kbd>Shift</kbd> <kbd>Enter</kbd> makes it one</span>}
      <span class="space" />
      {whole > 0 && <span class="hint">{analysis.value?.basePart ? "" : `${percent(shown / whole)} of the run shown `}<kbd>U</kbd> undoes the last</span>}
    </nav>
  );
}
