// The trust header: what ran, how it was measured, what is missing.

import { amount, duration, grouped, percent, plural } from "../model/numbers.ts";
import { go, route, select, shownMetric } from "../route.ts";
import { analysis, helpOpen, theProfile } from "../state.ts";
import type { Head } from "../profile.ts";
import { live } from "../live.ts";

export function Logo() {
  return (
    <svg width="18" height="18" viewBox="0 0 18 18" aria-hidden="true">
      <g fill="none" stroke="currentColor" stroke-width="1.5">
        <circle cx="9" cy="9" r="7.8" /><circle cx="9.4" cy="9.2" r="4.9" /><circle cx="9.6" cy="9.3" r="2.1" />
      </g>
      <circle cx="9.6" cy="9.3" r="0.9" fill="currentColor" />
    </svg>
  );
}

function sum(head: Head, read: (run: Head["runs"][number]) => number | null): number | null {
  let all = 0;
  for (const run of head.runs) {
    const value = read(run);
    if (value === null) return null;
    all += value;
  }
  return head.runs.length ? all : null;
}

/** The names of losses, the worst first: in the header, and where it is opened. */
const LOSSES: Record<string, [words: string, label: string]> = {
  lost_samples: ["samples lost", "Lost samples"], truncated_stacks: ["stacks cut short", "Cut stacks"],
  unresolved_samples: ["samples unresolved", "Unresolved samples"], dropped_events: ["events dropped", "Dropped events"],
  unsampled_threads: ["threads without a sample", "Threads without a sample"], unknown_threads: ["threads of unknown cost", "Threads of unknown cost"],
  throttled: ["times throttled", "Throttled"], unbalanced_leaves: ["leaves without an enter", "Leaves without an enter"],
  branched_leaves: ["calls not timed", "Calls not timed, with calls of their own"], clock_steps_back: ["steps back of the clock", "Clock steps back"],
  open_activations: ["calls not ended", "Calls not ended"], unwound_activations: ["", "Left by an exception"],
};
const SAMPLING = new Set(["lost_samples", "truncated_stacks", "unresolved_samples"]);

/** The losses, as words, and whether there are any; `short` leaves out all but the worst. */
function losses(head: Head, short: boolean): { text: string; any: boolean } {
  const { losses } = head;
  const share = (key: string) => {
    const of = losses.samples + (key === "lost_samples" ? losses.lost_samples : 0);
    return SAMPLING.has(key) && of > 0 ? ` (${percent(losses[key] / of)})` : "";
  };
  const told = Object.keys(LOSSES).filter((key) => losses[key] > 0 && LOSSES[key][0]).map((key) => `${counted(losses[key], LOSSES[key][0])}${share(key)}`);
  if (head.unfinished) told.unshift("the recording did not end properly");
  if (!told.length) return { text: head.lossesUnknown ? "losses unknown" : "nothing lost", any: false };
  return { text: short && told.length > 2 ? `${told.slice(0, 2).join(", ")}, ${told.length - 2} more` : told.join(", "), any: true };
}

/** `1 sample lost`, `2 samples lost`: the first word has an s. */
function counted(count: number, words: string): string {
  return `${grouped(count)} ${count === 1 ? words.replace(/s\b/, "") : words}`;
}

function badge(head: Head): [string, boolean] {
  const metric = head.metrics[shownMetric()];
  const sampled = metric.samples !== null;
  if (head.baseRuns) return [sampled ? "difference, 95 % intervals" : "difference", false];
  if (sampled && metric.runSamples < 20) return ["too few samples", true];
  if (metric.totals === "estimated") return [`${sampled ? "sampled" : "exact"}, totals estimated by calls`, true];
  if (metric.totals === "at least") return [`${sampled ? "sampled" : "exact"}, some contexts folded`, true];
  if (sampled) return [head.countsApart ? "exact calls, sampled costs" : "sampled, 95 % intervals", false];
  if (metric.rawCost !== null) return ["exact calls, corrected times", false];
  // Files of other tools may hold samples that they do not call so.
  if (!head.hasCalls && !head.collector.startsWith("treering")) return ["costs as stated, by a file that tells no calls", false];
  return ["exact", false];
}

export function Header() {
  const { head } = theProfile();
  const [label, warns] = badge(head);
  const metric = head.metrics[shownMetric()];
  const wall = sum(head, (run) => run.wall_ns) ?? 0;
  const cpu = sum(head, (run) => run.cpu_ns);
  const noted = notes(head).length;
  const theme = () => {
    const dark = document.documentElement.dataset.theme === "dark";
    go({ theme: dark ? "light" : "dark" }, true);
  };
  return (
    <header class={route.value.open ? "open" : ""}>
      <div class="trust">
        <span class="logo"><Logo /><b>Treering</b></span>
        <code class="command" title={head.title}>{head.title}</code>
        <span class={warns ? "badge warn" : "badge"}>{label.split(",")[0]}<span class="more-words">{label.slice(label.split(",")[0].length)}</span></span>
        <LiveBadge />
        <Lost head={head} />
        <span class="facts">
          {head.baseRuns ? <DifferenceFacts head={head} /> : (
            <>
              {cpu !== null && cpu > 0 && <span>CPU <b>{duration(cpu)}</b>{wall > 0 && <> of {duration(wall)}<span class="more-words"> wall ({percent(cpu / wall)})</span></>}</span>}
              {(cpu === null || cpu === 0) && wall > 0 && <span><b>{duration(wall)}</b> wall</span>}
              {metric.samples !== null ? (
                <span><b>{grouped(metric.runSamples)}</b> {metric.runSamples === 1 ? "sample" : "samples"}{cpu ? `, ${grouped(Math.round((metric.runSamples * 1e9) / cpu))} a second of CPU` : ""}</span>
              ) : (
                <span><b>{amount(metric.unit, metric.runCost)}</b>{metric.unit === "count" ? ` ${metric.name}` : ` of ${metric.name}`}</span>
              )}
            </>
          )}
        </span>
        <button type="button" class="link" aria-expanded={route.value.open} onClick={() => go({ open: !route.value.open }, true)}>
          <span class="more-words">how it was measured</span>{noted > 0 && ` ${plural(noted, "note")}`} <span aria-hidden="true">{route.value.open ? "▴" : "▾"}</span>
        </button>
        <button type="button" class="icon print-button" onClick={() => window.print()}>Print</button>
        <button type="button" class="icon" aria-label="dark or light" title="dark or light (D)" onClick={theme}>◐</button>
        <button type="button" class="icon" aria-label="keys" title="keys (?)" onClick={() => (helpOpen.value = true)}>?</button>
      </div>
      <Verdict head={head} />
      {route.value.open && <Details head={head} />}
    </header>
  );
}

/** How much the run changed and why: the first sentence of a difference. A click leads to the function at which to look. */
function Verdict({ head }: { head: Head }) {
  const { verdict } = head;
  // Of the whole run in the metric that was compared, as measured.
  if (!verdict || shownMetric() !== verdict.metric || route.value.normalised) return null;
  const { text, function: cause } = verdict;
  return (
    <p class="verdict">
      {cause === null ? text : <button type="button" class="link" title="show the function at which to look first" onClick={() => select(cause)}>{text}</button>}
    </p>
  );
}

/** Losses stand before all numbers, whatever the width: they are never cut. */
function Lost({ head }: { head: Head }) {
  const { text, any } = losses(head, true);
  return <span class={any ? "lost badge warn" : "lost"} title={losses(head, false).text}>{text}</span>;
}

/** The notes besides losses; the report words more of it than the profile holds. */
function notes(head: Head): string[] {
  return [...new Set([...head.facts.filter(([label]) => label === "note").map(([, text]) => text), ...head.notes])];
}

const LIVE = {
  running: ["live", "the program runs; this page follows it"],
  ended: ["the program has ended", "this is the profile that it left"],
  gone: ["the program has ended: seen last", "it left no profile; this is what was seen last"],
  lost: ["no longer followed: seen last", "treering has ended; this is what was seen last"],
  failed: ["not followed: seen last", "what the program writes cannot be read"],
} as const;

/** Whether the page follows a program, and what has become of that. */
function LiveBadge() {
  if (!live.value) return null;
  const { state, problem } = live.value;
  const [label, title] = LIVE[state];
  return <span role="status" class={state === "running" || state === "ended" ? "badge" : "badge warn"} title={problem ?? title}>{label}</span>;
}

function DifferenceFacts({ head }: { head: Head }) {
  const metric = head.metrics[shownMetric()];
  const difference = metric.runCost - metric.baseCost;
  // By how much several runs differ, the verdict knows.
  const error = metric.samples === null || head.runs.length > 2 ? 0 : 1.96 * Math.hypot(
    metric.runCost / Math.sqrt(Math.max(1, metric.runSamples)), metric.baseCost / Math.sqrt(Math.max(1, metric.baseSamples)));
  return (
    <>
      <span><b>{difference < 0 ? "−" : "+"}{amount(metric.unit, Math.abs(difference))}</b>{error > 0 && ` ± ${amount(metric.unit, error)}`} of {amount(metric.unit, metric.baseCost)}</span>
      {metric.samples !== null && <span><b>{grouped(metric.baseSamples)}</b> and <b>{grouped(metric.runSamples)}</b> samples</span>}
      <span>{route.value.normalised ? "normalised by run cost" : "costs as measured, not normalised"}</span>
    </>
  );
}

function Details({ head }: { head: Head }) {
  const started = head.runs.find((run) => run.start_unix_ns > 0);
  const cycles = analysis.value ? analysis.value.cycle.reduce((a, b) => Math.max(a, b), 0) : 0;
  const missing = Object.entries(LOSSES).filter(([key]) => key in head.losses && (head.losses[key] > 0 || (SAMPLING.has(key) && !head.lossesUnknown)));
  const { totals } = head.metrics[shownMetric()];
  const within = head.shape === "tree" ? "totals are measured: the profile has a tree"
    : totals === "estimated" ? "totals within them are estimates" : "calls within a cycle have no cost of their own: the calls from outside have it";
  const sampled = head.metrics.some((metric) => metric.samples !== null);
  const facts = head.facts.filter(([label]) => !["command", "note", "losses"].includes(label));
  return (
    <div class="details" role="region" aria-label="details of the profile" tabIndex={0}>
      <section>
        <h3>What ran</h3>
        <dl>
          {[...new Set(head.runs.map((run) => run.command.join(" ")))].filter(Boolean).map((command) => <><dt>Command</dt><dd><code>{command}</code></dd></>)}
          {head.runs.length > 1 && <><dt>Runs</dt><dd>{head.runs.length}</dd></>}
          {started && <><dt>Started</dt><dd>{new Date(started.start_unix_ns / 1e6).toLocaleString()}</dd></>}
          {head.runs.some((run) => run.end) && <><dt>Ended</dt><dd>{[...new Set(head.runs.map((run) => run.end).filter(Boolean))].join(", ")}</dd></>}
          {Object.entries(head.machine).map(([key, value]) => <><dt>{key}</dt><dd>{value}</dd></>)}
          <dt>Threads</dt><dd>{plural(head.threads, "thread")}</dd>
          {head.benchmark && <><dt>Benchmark</dt><dd>{head.benchmark.name}: {head.benchmark.description}</dd></>}
          {head.benchmark?.parameters.concat(head.benchmark.results).map(([key, value]) => <><dt>{key}</dt><dd>{value}</dd></>)}
        </dl>
      </section>
      <section>
        <h3>How it was measured</h3>
        <dl>
          <dt>Collector</dt><dd>{head.collector || "unknown"}</dd>
          {facts.map(([label, text]) => <><dt>{label}</dt><dd>{text}</dd></>)}
          {sampled && <><dt>Intervals</dt><dd>95 %; they cover chance only</dd></>}
          {Object.entries(head.parameters).map(([key, value]) => <><dt>{key}</dt><dd>{value}</dd></>)}
        </dl>
      </section>
      <section>
        <h3>What is missing</h3>
        <dl>
          {head.lossesUnknown && <><dt>Losses</dt><dd>the file does not say</dd></>}
          {missing.filter(([key]) => sampled || !SAMPLING.has(key)).map(([key, [, label]]) => <><dt>{label}</dt><dd>{grouped(head.losses[key])}</dd></>)}
          <dt>Cycles</dt>
          <dd>{cycles === 0 ? "none" : `${cycles}; ${within}`}</dd>
          {head.shape === "arcs" && <><dt>Contexts</dt><dd>the profile holds calls between functions but no stacks</dd></>}
          {notes(head).map((note) => <><dt>Note</dt><dd>{note}</dd></>)}
          {head.unfinished && <><dt>Note</dt><dd>the recording did not end properly; its last part may be missing</dd></>}
        </dl>
      </section>
    </div>
  );
}
