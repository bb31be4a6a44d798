// Threads and processes: what each cost, and which of them are shown.

import { useEffect, useState } from "preact/hooks";
import type { ThreadCost } from "../model/analysis.ts";
import { amount, grouped, percent, plural } from "../model/numbers.ts";
import { askThreads } from "../asking.ts";
import { wholeCost } from "../measures.ts";
import { go, route } from "../route.ts";
import { failure, theProfile, threadsOpen } from "../state.ts";

/** How many threads are listed; the costliest come first. */
const MOST = 300;

/** The threads that a transform keeps; null where all are shown. */
function kept(): Set<number> | null {
  const step = route.value.steps.find((one) => one.kind === "threads");
  return step ? new Set(step.target.replace(/^t:/, "").split(",").map(Number)) : null;
}

/** Shows these threads only; all of them where none are named. */
function keep(threads: number[] | null) {
  const steps = route.peek().steps.filter((one) => one.kind !== "threads");
  go({ steps: threads ? [...steps, { kind: "threads", target: `t:${threads.join(",")}` }] : steps, zoom: [] });
  threadsOpen.value = false;
}

export function Threads() {
  const { metric } = route.value;
  const [threads, setThreads] = useState<ThreadCost[] | null>(null);
  const [chosen, setChosen] = useState<Set<number>>(kept() ?? new Set());
  useEffect(() => void askThreads().then(setThreads, (error: Error) => (failure.value = `threads cannot be listed: ${error.message}`)), [metric]);
  useEffect(() => document.querySelector<HTMLElement>(".threads input, .threads button")?.focus(), [threads]);
  const toggle = (of: number[], on: boolean) => {
    const next = new Set(chosen);
    for (const one of of) on ? next.add(one) : next.delete(one);
    setChosen(next);
  };
  return (
    <div class="veil" onClick={() => (threadsOpen.value = false)}>
      <div class="help threads" role="dialog" aria-modal="true" aria-label="threads and processes" onClick={(event) => event.stopPropagation()}>
        <h2>Threads and processes</h2>
        <button type="button" class="icon close" aria-label="close" onClick={() => (threadsOpen.value = false)}>×</button>
        {threads ? <List threads={threads} chosen={chosen} toggle={toggle} /> : <p class="wait">reading</p>}
        <div class="buttons">
          <button type="button" disabled={chosen.size === 0} onClick={() => keep([...chosen].sort((a, b) => a - b))}>Show only {plural(chosen.size, "chosen thread")}</button>
          <button type="button" onClick={() => keep(null)}>Show all</button>
        </div>
      </div>
    </div>
  );
}

function List({ threads, chosen, toggle }: { threads: ThreadCost[]; chosen: Set<number>; toggle: (of: number[], on: boolean) => void }) {
  const { metric } = route.value;
  const { baseRuns, metrics, runs: { length: runCount } } = theProfile().head;
  const { unit } = metrics[metric];
  // Of two profiles, each thread is a part of its own one.
  const sideOf = (run: number) => (baseRuns?.[run] ? "base" : "now");
  const whole = (run: number) => wholeCost(metric, sideOf(run)) || 1;
  const processes = new Map<string, number[]>();
  threads.forEach((one, at) => {
    const key = `${one.run} ${one.pid} ${one.process}`;
    processes.set(key, [...(processes.get(key) ?? []), at]);
  });
  const cost = (of: number[]) => of.reduce((sum, at) => sum + threads[at].cost, 0);
  const severalRuns = baseRuns ? runCount > 2 : new Set(threads.map((one) => one.run)).size > 1;
  const runName = (run: number) => {
    const before = baseRuns ? baseRuns.slice(0, run).filter((isBase) => isBase === baseRuns[run]).length : run;
    return `${baseRuns ? `, ${baseRuns[run] ? "base" : "new"}` : ""}${severalRuns ? `, run ${before + 1}` : ""}`;
  };
  const groups = [...processes.values()].sort((a, b) => cost(b) - cost(a));
  let room = MOST;
  return (
    <ul>
      {groups.map((of) => {
        const first = threads[of[0]];
        const all = of.every((at) => chosen.has(at));
        const listed = [...of].sort((a, b) => threads[b].cost - threads[a].cost).slice(0, room);
        room -= listed.length;
        const left = of.filter((at) => !listed.includes(at));
        return (
          <li>
            <label><input type="checkbox" checked={all} ref={(box) => { if (box) box.indeterminate = !all && of.some((at) => chosen.has(at)); }} onChange={() => toggle(of, !all)} />
              <b>{first.process || "process"}{first.pid ? ` ${first.pid}` : ""}{runName(first.run)}</b> <span class="note">{plural(of.length, "thread")}, {amount(unit, cost(of))}, {percent(cost(of) / whole(first.run))}</span></label>
            <ul>
              {listed.map((at) => (
                <li><label><input type="checkbox" checked={chosen.has(at)} onChange={() => toggle([at], !chosen.has(at))} />
                  {threads[at].name || "thread"}{threads[at].tid ? ` ${threads[at].tid}` : ""} <span class="note">{amount(unit, threads[at].cost)}, {percent(threads[at].cost / whole(first.run))}</span></label></li>
              ))}
              {left.length > 0 && <li class="note">{grouped(left.length)} more that cost less: {amount(unit, cost(left))}</li>}
            </ul>
          </li>
        );
      })}
    </ul>
  );
}
