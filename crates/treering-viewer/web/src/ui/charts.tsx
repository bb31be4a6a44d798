// Charts: points over time, cost against argument size, statistics of single calls.

import { amount, axisBytes, duration, grouped, plural, type Unit } from "../model/numbers.ts";
import type { Detail, Point } from "../profile.ts";
import { route, select, shownMetric } from "../route.ts";
import { theProfile } from "../state.ts";
import { Empty, FunctionName, useSize } from "./parts.tsx";

export function Charts() {
  const [ref, size] = useSize<HTMLDivElement>();
  const profile = theProfile();
  const { fn } = route.value;
  const { points, details } = profile.data;
  const own = details.filter((detail) => detail.fn === fn);
  const whole = own.find((detail) => detail.caller === null);
  const byCaller = own.filter((detail) => detail.caller !== null && detail.growth);
  const width = Math.max(220, size.width - 32);
  const levels = profile.head.metrics.map((metric, at) => [metric, at] as const).filter(([, at]) => points.some((point) => point.values.some((value) => value.metric === at)));
  const nothing = !levels.length && !whole;
  return (
    <div class="fill scroll charts" ref={ref} tabIndex={0}>
      {nothing && (
        <Empty what="No charts" why="The program took no points in time, and single calls and their arguments were not measured for this function."
          command="a program takes points itself, with treering_point or BENCH_MEMPLOT" />
      )}
      {levels.map(([metric, at]) => <PointChart name={metric.name} unit={metric.unit} metric={at} points={points} width={width} />)}
      {whole && whole.sizes.length > 1 && <GrowthChart detail={whole} fn={fn} width={width} />}
      {byCaller.length > 1 && (
        <>
          <h3>Growth by caller</h3>
          <table>
            <tr><th>caller</th><th class="r">exponent</th><th class="r">95 %</th></tr>
            {byCaller.map((detail) => (
              <tr onClick={() => detail.caller && select(detail.caller)}>
                <td>{detail.caller ? <FunctionName fn={detail.caller} width={width - 150} /> : "spontaneous"}</td>
                <td class="r">{detail.growth!.exponent.toFixed(2)}</td><td class="r dim">{detail.growth!.low.toFixed(2)}–{detail.growth!.high.toFixed(2)}</td>
              </tr>
            ))}
          </table>
        </>
      )}
      {whole?.statistics && <Statistics detail={whole} />}
      {whole?.ports && (
        <>
          <h3>Ports</h3>
          <table>{Object.entries(whole.ports).map(([port, count]) => <tr><td>{port}</td><td class="r">{grouped(count)}</td></tr>)}</table>
        </>
      )}
      {whole && whole.live_bytes !== null && (
        <>
          <h3>Memory that it holds</h3>
          <table><tr><td>at the end</td><td class="r">{grouped(whole.live_bytes)} B</td></tr><tr><td>at most</td><td class="r">{grouped(whole.peak_bytes ?? 0)} B</td></tr></table>
        </>
      )}
    </div>
  );
}

function Statistics({ detail }: { detail: Detail }) {
  const one = detail.statistics!;
  return (
    <>
      <h3>Single calls</h3>
      <table>
        <tr><td>timed</td><td class="r">{grouped(one.timed)}</td></tr>
        <tr><td>mean</td><td class="r">{duration(one.mean)}</td></tr>
        {one.calm > 0 && <tr><td>calm mean ({plural(one.calm, "call")} below twice the least)</td><td class="r">{duration(one.calm_mean)}</td></tr>}
        <tr><td>least</td><td class="r">{duration(one.least)}</td></tr>
        <tr><td>greatest</td><td class="r">{duration(one.greatest)}</td></tr>
        {one.deviation !== null && <tr><td>SD</td><td class="r">{duration(one.deviation)}</td></tr>}
      </table>
    </>
  );
}

/** Round steps of an axis up to `largest`. */
function ticks(largest: number, count: number): number[] {
  if (!(largest > 0)) return [0];
  const raw = largest / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= raw)!;
  return Array.from({ length: Math.floor(largest / step + 1e-9) + 1 }, (_, at) => at * step);
}

function axis(unit: Unit, value: number): string {
  if (unit === "bytes") return axisBytes(value);
  if (unit === "nanoseconds") return value === 0 ? "0" : duration(value).replace(/\.?0+ /, " ");
  return value >= 1e6 ? `${Number((value / 1e6).toPrecision(3))} M` : grouped(value);
}

function PointChart({ name, unit, metric, points, width }: { name: string; unit: Unit; metric: number; points: Point[]; width: number }) {
  const profile = theProfile();
  const series = points.flatMap((point) => point.values.filter((value) => value.metric === metric).map((value) => ({ ...point, value: value.value })));
  if (!series.length) return null;
  const peak = series.reduce((a, b) => (b.value > a.value ? b : a));
  const end = Math.max(...series.map((point) => point.time_ns), 1);
  const height = 190;
  const [left, right, top, bottom] = [62, width - 10, 22, height - 24];
  const x = (time: number) => left + ((right - left) * time) / end;
  const yTicks = ticks(peak.value * 1.15, 4);
  const high = Math.max(yTicks[yTicks.length - 1], peak.value * 1.1) || 1;
  const y = (value: number) => bottom - ((bottom - top) * value) / high;
  // Levels hold between points, so the line goes in steps.
  const line = series.map((point, at) => (at === 0 ? `M${x(point.time_ns)},${y(point.value)}` : `H${x(point.time_ns)}V${y(point.value)}`)).join("");
  const place = Math.min(Math.max(x(peak.time_ns), left + 60), right - 80);
  return (
    <>
      <h3>{name[0].toUpperCase() + name.slice(1)} over time</h3>
      <p class="note">at most {amount(unit, peak.value)} at {duration(peak.time_ns)}, {amount(unit, peak.value - series[0].value)} more than at the first point</p>
      <svg width={width} height={height} role="img" aria-label={`${name} over time`}>
        {yTicks.map((tick) => <><line class="grid" x1={left} x2={right} y1={y(tick)} y2={y(tick)} /><text class="axis" x={left - 6} y={y(tick) + 4} text-anchor="end">{axis(unit, tick)}</text></>)}
        {ticks(end, 4).map((tick) => <text class="axis" x={x(tick)} y={height - 6} text-anchor="middle">{axis("nanoseconds", tick)}</text>)}
        <path class="area" d={`${line}V${bottom}H${x(series[0].time_ns)}Z`} />
        <path class="series" fill="none" d={line} />
        {series.length <= 400 && series.map((point) => (
          <circle class="dot" cx={x(point.time_ns)} cy={y(point.value)} r="2.5" onClick={() => select(point.fn)}>
            <title>{`${amount(unit, point.value)} at ${duration(point.time_ns)} in ${profile.fullName(point.fn)}${point.description ? `: ${point.description}` : ""}`}</title>
          </circle>
        ))}
        <circle class="ring" cx={x(peak.time_ns)} cy={y(peak.value)} r="5" />
        <text class="axis strong" x={place} y={y(peak.value) - 9} text-anchor="middle">peak, in {profile.name(peak.fn).last}{peak.description ? `: ${peak.description}` : ""}</text>
      </svg>
      <details>
        <summary class="note">{plural(series.length, "point")}</summary>
        <table>
          <tr><th class="r">time</th><th class="r">{name}</th><th>task</th><th>description</th></tr>
          {series.slice(0, 500).map((point) => (
            <tr><td class="r">{duration(point.time_ns)}</td><td class="r">{amount(unit, point.value)}</td><td>{profile.name(point.fn).last}</td><td>{point.description}</td></tr>
          ))}
        </table>
      </details>
    </>
  );
}

function GrowthChart({ detail, fn, width }: { detail: Detail; fn: number; width: number }) {
  const rows = detail.sizes.map((one) => ({ ...one, size: Math.max(1, Math.sqrt(Math.max(1, one.least) * Math.max(1, one.greatest))), mean: one.total / Math.max(1, one.calls) })).filter((row) => row.mean > 0);
  if (rows.length < 2) return null;
  const height = 200;
  const [left, right, top, bottom] = [66, width - 12, 12, height - 26];
  const log = (value: number) => Math.log10(value);
  const bounds = (values: number[]) => [Math.floor(log(Math.min(...values))), Math.ceil(log(Math.max(...values)) + 1e-9)];
  const [x0, x1] = bounds(rows.map((row) => row.size));
  const [y0, y1] = bounds(rows.map((row) => row.mean));
  const x = (value: number) => left + ((right - left) * (log(value) - x0)) / Math.max(1, x1 - x0);
  const y = (value: number) => bottom - ((bottom - top) * (log(value) - y0)) / Math.max(1, y1 - y0);
  const growth = detail.growth;
  const unit = theProfile().head.metrics[shownMetric()].unit;
  // The fit goes through the middle of the points, weighted alike.
  const middle = [rows.reduce((sum, row) => sum + log(row.size), 0) / rows.length, rows.reduce((sum, row) => sum + log(row.mean), 0) / rows.length];
  const fitted = (exponent: number, size: number) => 10 ** (middle[1] + exponent * (log(size) - middle[0]));
  const [from, to] = [rows[0].size, rows[rows.length - 1].size];
  const shapes = growth && [[1, "linear"], [2, "quadratic"], [3, "cubic"]].map(([power, word]) => `${word} ${growth.low <= Number(power) && Number(power) <= growth.high ? "fits" : "does not"}`);
  const clamp = (value: number) => Math.max(top, Math.min(bottom, value));
  return (
    <>
      <h3>Cost of one call by size of its argument</h3>
      <p class="note">
        {theProfile().name(fn).last}: {growth ? <>grows as size<sup>{growth.exponent.toFixed(2)}</sup>, exponent in [{growth.low.toFixed(2)}, {growth.high.toFixed(2)}] with 95 %: {shapes!.slice(0, 2).join(", ")}</> : "too few sizes for a fit"}
      </p>
      <svg width={width} height={height} role="img" aria-label="cost against argument size, both axes logarithmic">
        {Array.from({ length: y1 - y0 + 1 }, (_, at) => 10 ** (y0 + at)).map((tick) => <><line class="grid" x1={left} x2={right} y1={y(tick)} y2={y(tick)} /><text class="axis" x={left - 6} y={y(tick) + 4} text-anchor="end">{axis(unit, tick)}</text></>)}
        {Array.from({ length: x1 - x0 + 1 }, (_, at) => 10 ** (x0 + at)).map((tick) => <text class="axis" x={x(tick)} y={height - 6} text-anchor="middle">{grouped(tick)}</text>)}
        {growth && (
          <>
            <polygon class="band" points={[[from, growth.low], [to, growth.high], [to, growth.low], [from, growth.high]].map(([size, power]) => `${x(size)},${clamp(y(fitted(power, size)))}`).join(" ")} />
            <line class="fit" x1={x(from)} x2={x(to)} y1={clamp(y(fitted(growth.exponent, from)))} y2={clamp(y(fitted(growth.exponent, to)))} />
          </>
        )}
        {rows.map((row) => <rect class="dot" x={x(row.size) - 3.5} y={y(row.mean) - 3.5} width="7" height="7"><title>{`${plural(row.calls, "call")}, ${amount(unit, row.mean)} each`}</title></rect>)}
      </svg>
      <table>
        <tr><th>size</th><th class="r">calls</th><th class="r">total</th><th class="r">a call</th></tr>
        {detail.sizes.map((row) => (
          <tr><td>{row.least === row.greatest ? grouped(row.least) : `${grouped(row.least)}–${grouped(row.greatest)}`}</td><td class="r">{grouped(row.calls)}</td><td class="r">{amount(unit, row.total)}</td><td class="r">{amount(unit, row.total / Math.max(1, row.calls))}</td></tr>
        ))}
      </table>
    </>
  );
}
