// The printed page: a static document, whatever was on screen.

import type { Analysis } from "../model/analysis.ts";
import { grouped, percent, plural } from "../model/numbers.ts";
import { functionInterval, runCost } from "../measures.ts";
import { route, sideName } from "../route.ts";
import { analysis, theProfile } from "../state.ts";
import { centralLine, type Line } from "./central.tsx";
import { costColumn, delta, text } from "./cost.ts";
import { StillFlame } from "./flame.tsx";
import { type Change, changeBetween, changeOf, rows } from "./functions.tsx";
import { costlyLines, lineMetric } from "./code.tsx";
import { stepName } from "./toolbar.tsx";

export function Print() {
  const profile = theProfile();
  const found = analysis.value;
  if (!found) return <p>the profile is not read yet</p>;
  const whole = runCost(found.metric, "now") || 1;
  const { fn } = route.value;
  const line = fn >= 0 ? centralLine(found, fn) : null;
  const column = costColumn("natural", Math.max(line?.total ?? 0, line?.baseTotal ?? 0));
  if (found.base) return <PrintedDifference found={found} line={line} />;
  const bounds = (which: "self" | "total", at: number) => {
    const known = functionInterval(found, which, at);
    return known ? ` [${grouped(known[0] * 100, 1)}, ${grouped(known[1] * 100, 1)}]` : "";
  };
  return (
    <div class="print">
      <h1>{profile.head.title}</h1>
      <Facts />
      <StillFlame width={700} most={24} />
      <h2>Functions by self cost</h2>
      <table>
        <tr><th class="r">self %</th><th class="r">total %</th><th>function</th></tr>
        {rows.value.slice(0, 22).map((one) => (
          <tr>
            <td class="r">{percent(found.now.self[one] / whole)}{bounds("self", one)}</td>
            <td class="r">{percent(found.now.total[one] / whole)}{bounds("total", one)}</td><td>{profile.fullName(one)}</td>
          </tr>
        ))}
      </table>
      {line && (
        <>
          <h2>{profile.fullName(fn)}</h2>
          <table>
            <tr><th class="r">self {column.head}</th><th class="r">children {column.head}</th><th class="r">total %</th><th>function</th></tr>
            {[...line.callers, { ...line, fn, own: true }, ...line.callees].map((row) => (
              <tr class={"own" in row ? "this" : ""}>
                <td class="r">{text(column, row.self)}</td><td class="r">{text(column, row.total - row.self)}</td><td class="r">{percent(row.total / whole)}</td>
                <td>{row.fn > 0 ? profile.fullName(row.fn) : row.fn === 0 ? "spontaneous" : "left" in row ? `${grouped(row.left)} more` : ""}</td>
              </tr>
            ))}
          </table>
          <PrintedLines fn={fn} />
        </>
      )}
    </div>
  );
}

/** How it was measured, and the part of it that is shown. */
function Facts() {
  const { steps, fold } = route.value;
  const shown = [...steps.map(stepName), ...(fold ? ["recursion folded"] : [])];
  return (
    <dl>
      {theProfile().head.facts.map(([label, words]) => <><dt>{label}</dt><dd>{words}</dd></>)}
      {shown.length > 0 && <><dt>shown</dt><dd>{shown.join(", ")}</dd></>}
    </dl>
  );
}

/** A difference on paper: the verdict, and both sides of the functions and of the central line. */
function PrintedDifference({ found, line }: { found: Analysis; line: Line | null }) {
  const profile = theProfile();
  const { fn } = route.value;
  const base = found.base!;
  const list = rows.value.slice(0, 22);
  const table = (largest: number, all: [base: number, now: number, change: Change, name: string][]) => {
    const [before, after] = (["base", "now"] as const).map((side) => costColumn("natural", largest, side));
    return (
      <table>
        <tr><th class="r">{sideName("base")} {after.head}</th><th class="r">{sideName("now")} {after.head}</th><th class="r">Δ</th><th>function</th></tr>
        {all.map(([was, is, change, name]) => (
          <tr><td class="r">{text(before, before.value(was))}</td><td class="r">{text(after, after.value(is))}</td><td class="r">{delta(after, after.value(change.by), change.sure)}</td><td>{name}</td></tr>
        ))}
      </table>
    );
  };
  const nameOf = (one: number) => (one > 0 ? profile.fullName(one) : "outside of every function");
  return (
    <div class="print">
      <h1>{profile.head.title}</h1>
      {profile.head.verdict && !route.value.normalised && <p>{profile.head.verdict.text}</p>}
      <Facts />
      <StillFlame width={700} most={24} />
      <h2>Functions{route.value.sort === "delta" ? " by change of self cost" : ""}</h2>
      {table(list.reduce((most, one) => Math.max(most, found.now.self[one], base.self[one]), 0), list.map((one) => [base.self[one], found.now.self[one], changeOf(found, "self", one), nameOf(one)]))}
      {line && (
        <>
          <h2>{profile.fullName(fn)}: total cost by callers, its own, and by callees</h2>
          {table(Math.max(line.total, line.baseTotal), [
            ...line.callers.map((row): [number, number, Change, string] => [row.baseTotal, row.total, changeBetween(found.metric, row.base, row.now), `← ${row.fn > 0 ? profile.fullName(row.fn) : "spontaneous"}`]),
            [line.baseTotal, line.total, changeOf(found, "total", fn), profile.fullName(fn)],
            [line.baseSelf, line.self, changeOf(found, "self", fn), "self"],
            ...line.callees.map((row): [number, number, Change, string] => [row.baseTotal, row.total, changeBetween(found.metric, row.base, row.now), `→ ${nameOf(row.fn)}`]),
          ])}
          <PrintedLines fn={fn} />
        </>
      )}
    </div>
  );
}

/** The most lines of a function that are printed. */
const MOST_LINES = 40;

/** The lines of a function that cost something, with their text. */
function PrintedLines({ fn }: { fn: number }) {
  const { lines, left } = costlyLines(fn, MOST_LINES);
  if (!lines.length) return null;
  const { head } = theProfile();
  const metric = lineMetric();
  const whole = runCost(metric, "now") || 1;
  const difference = head.baseRuns !== null;
  const column = costColumn("natural", lines.reduce((most, line) => Math.max(most, line.total, line.base), 0), "now", metric);
  const show = (cost: number) => (difference ? text(column, cost) : percent(cost / whole));
  return (
    <>
      <h2>Its lines with cost{metric === analysis.value!.metric ? "" : `, in ${head.metrics[metric].name}`}</h2>
      <table class="lines">
        <tr>{difference ? <><th class="r">{sideName("base")} {column.head}</th><th class="r">{sideName("now")} {column.head}</th></> : <><th class="r">self %</th><th class="r">total %</th></>}<th class="r">line</th><th>source</th></tr>
        {lines.map((line) => (
          <tr><td class="r">{show(difference ? line.base : line.self)}</td><td class="r">{show(line.total)}</td><td class="r">{line.line}</td><td><code>{line.text}</code></td></tr>
        ))}
      </table>
      {left > 0 && <p>Not printed: {plural(left, "line")} that cost less.</p>}
    </>
  );
}
