// The printed page: a static document, whatever was on screen.

import { grouped, percent, plural } from "../model/numbers.ts";
import { functionInterval, runCost } from "../measures.ts";
import { route, sideName } from "../route.ts";
import { analysis, theProfile } from "../state.ts";
import { centralLine } from "./central.tsx";
import { costColumn, text } from "./cost.ts";
import { StillFlame } from "./flame.tsx";
import { rows } from "./functions.tsx";
import { costlyLines, lineMetric } from "./code.tsx";

export function Print() {
  const profile = theProfile();
  const found = analysis.value;
  if (!found) return <p>the profile is not read yet</p>;
  const whole = runCost(found.metric, "now") || 1;
  const { fn } = route.value;
  const line = fn >= 0 ? centralLine(found, fn) : null;
  const column = costColumn("natural", line?.total ?? 0);
  const bounds = (which: "self" | "total", at: number) => {
    const known = functionInterval(found, which, at);
    return known ? ` [${grouped(known[0] * 100, 1)}, ${grouped(known[1] * 100, 1)}]` : "";
  };
  return (
    <div class="print">
      <h1>{profile.head.title}</h1>
      <dl>{profile.head.facts.map(([label, words]) => <><dt>{label}</dt><dd>{words}</dd></>)}</dl>
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
