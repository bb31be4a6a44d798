// The lines that cost most in the whole program, whatever function they are in.

import { format, grouped, PERCENT, plural } from "../model/numbers.ts";
import { basename } from "../profile.ts";
import { wholeCost } from "../measures.ts";
import { go, route, shownMetric } from "../route.ts";
import { analysis, theProfile } from "../state.ts";
import { lineMetric } from "./code.tsx";
import { Empty, FunctionName, useSize } from "./parts.tsx";
import { ofFunction } from "./menu.tsx";

/** How many are listed. */
const MOST = 200;

interface HotLine {
  line: number;
  cost: number;
  /** The function of which it costs most. */
  fn: number;
  most: number;
}

let known: { of: unknown; metric: number; lines: HotLine[] } | null = null;

/** Lines by self cost, all functions of each added up. */
function hotLines(metric: number): HotLine[] {
  const { lineCosts, functions } = theProfile().data;
  if (known?.of === functions && known.metric === metric) return known.lines;
  const costs = lineCosts.costs[metric];
  const found = new Map<number, HotLine>();
  for (let at = 0; costs && at < costs.length; at++) {
    if (costs[at] === 0) continue;
    const line = lineCosts.line[at];
    let row = found.get(line);
    if (!row) found.set(line, (row = { line, cost: 0, fn: lineCosts.fn[at], most: 0 }));
    row.cost += costs[at];
    if (costs[at] > row.most) [row.fn, row.most] = [lineCosts.fn[at], costs[at]];
  }
  const lines = [...found.values()].sort((a, b) => b.cost - a.cost || a.line - b.line);
  known = { of: functions, metric, lines };
  return lines;
}

export function HotLines() {
  const [ref, size] = useSize<HTMLDivElement>();
  const profile = theProfile();
  const metric = lineMetric();
  if (!analysis.value) return <p class="wait">reading</p>;
  const lines = hotLines(metric);
  if (!lines.length) return <Empty what="No lines" why={`No line of this profile has a cost in ${profile.head.metrics[shownMetric()].name}.`} />;
  const shown = lines.slice(0, MOST);
  const whole = wholeCost(metric, "now") || 1;
  const textOf = ({ line }: HotLine) => {
    const number = profile.data.lines.line[line];
    const stretch = profile.sources(profile.data.lines.file[line]).find((one) => number >= one.first && number < one.first + one.lines.length);
    return stretch?.lines[number - stretch.first].trim() ?? "";
  };
  const rest = lines.slice(MOST).reduce((sum, one) => sum + one.cost, 0);
  return (
    <div class="fill" ref={ref}>
      <div class="code-head">
        <span class="note">{plural(lines.length, "line")} of the whole program by what they cost themselves{metric !== shownMetric() ? `, in ${profile.head.metrics[metric].name}` : ""}{route.value.steps.length ? "; transforms leave nothing out here" : ""}</span>
      </div>
      <div class="scroll hot-lines" tabIndex={0} role="list" aria-label="hottest lines">
        {shown.map((one) => (
          <div role="listitem" class="hot-line" {...ofFunction(one.fn)}>
            <button type="button" onClick={() => go({ fn: one.fn, tab: "source" })}>
              <span class="r">{format(one.cost / whole, PERCENT)}</span>
              <span class="bar" aria-hidden="true"><i style={{ width: `${(100 * one.cost) / lines[0].cost}%` }} /></span>
              <span class="place">{basename(profile.data.strings[profile.data.lines.file[one.line]])}:{profile.data.lines.line[one.line]}</span>
              <FunctionName fn={one.fn} width={Math.max(60, size.width - 260)} mark={false} />
              <code class="text">{textOf(one)}</code>
            </button>
          </div>
        ))}
        {rest > 0 && <p class="group">{grouped(lines.length - MOST)} more with {grouped((100 * rest) / whole, 1)} % together</p>}
      </div>
    </div>
  );
}
