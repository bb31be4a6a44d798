// The call graph around the current function, laid out by Graphviz.

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { fit } from "../model/names.ts";
import { percent, plural } from "../model/numbers.ts";
import { neighbourhood, type Graph } from "../model/neighbourhood.ts";
import { fromBase64, gunzip } from "../model/slabs.ts";
import { takeBlock } from "../profile.ts";
import { changeCost, percentCost, runCost } from "../measures.ts";
import { go, route, select, shownMetric } from "../route.ts";
import { analysis, generation, theProfile } from "../state.ts";
import { changeFill, inkOn, palette, rampStep } from "./colours.ts";
import { changeOf } from "./functions.tsx";
import { ofFunction } from "./menu.tsx";
import { Empty, font, PaneHead, textWidth } from "./parts.tsx";

const MOST = 60;

interface Layout {
  key: string;
  width: number;
  height: number;
  nodes: { fn: number; x: number; y: number; width: number; height: number }[];
  edges: { at: number; path: string; head: string; label: { x: number; y: number } | null }[];
  graph: Graph;
}

const layout = signal<Layout | null>(null);
const problem = signal<string | null>(null);
let worker: Promise<Worker> | null = null;
let wanted = 0;

async function startWorker(): Promise<Worker> {
  const packed = takeBlock("graphviz");
  if (!packed) throw new Error("this page was made without the graph layout");
  const source = new TextDecoder().decode(await gunzip(fromBase64(packed)));
  return new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
}

function labelOf(fn: number): [string, string] {
  const name = fit(theProfile().name(fn), 210, (text) => textWidth(text, font(12)));
  const text = name.qualifier + name.last + name.tail;
  const found = analysis.peek()!;
  const whole = runCost(found.metric, "now") || 1;
  const numbers = found.base
    ? `${percent(found.base.total[fn] / (percentCost(found.metric, "base") || 1))} → ${percent(found.now.total[fn] / (percentCost(found.metric, "now") || 1))}`
    : `${percent(found.now.total[fn] / whole)}, self ${percent(found.now.self[fn] / whole)}`;
  return [text, numbers];
}

function sizeOf(fn: number): number {
  const found = analysis.peek()!;
  return 11 + 3 * Math.sqrt(found.now.total[fn] / (runCost(found.metric, "now") || 1));
}

/** The cost of an arc's calls; in a difference the functions say what changed. */
function arcLabel(cost: number): string {
  const found = analysis.peek()!;
  return found.base ? "" : percent(cost / (runCost(found.metric, "now") || 1));
}

/** With room at both sides, where the line passes. */
function padded(label: string): string {
  return label && `   ${label}   `;
}

async function lay(graph: Graph, key: string) {
  const id = ++wanted;
  const lines = ["digraph {", 'graph [rankdir=TB nodesep=0.18 ranksep=0.42 splines=true]', "node [shape=box fixedsize=true]"];
  for (const fn of graph.nodes) {
    const [name, numbers] = labelOf(fn);
    const size = sizeOf(fn);
    const width = Math.max(textWidth(name, font(size, 650)), textWidth(numbers, font(11))) + 18;
    lines.push(`n${fn} [width=${(width / 72).toFixed(3)} height=${((size + 28) / 72).toFixed(3)}]`);
  }
  graph.edges.forEach((edge, at) => lines.push(`n${edge.from} -> n${edge.to} [id=e${at} label="${padded(arcLabel(edge.cost))}" fontsize=11${edge.back ? " constraint=false" : ""}]`));
  lines.push("}");
  try {
    worker ??= startWorker();
    const running = await worker;
    const answer = await new Promise<string>((resolve, reject) => {
      const listen = (event: MessageEvent) => {
        if (event.data.id !== id) return;
        running.removeEventListener("message", listen);
        if (event.data.problem) reject(new Error(event.data.problem));
        else resolve(event.data.layout);
      };
      running.addEventListener("message", listen);
      running.onerror = (event) => reject(new Error(event.message || "the layout did not start"));
      running.postMessage({ id, dot: lines.join("\n") });
    });
    if (id === wanted) layout.value = readLayout(JSON.parse(answer), graph, key);
    problem.value = null;
  } catch (error) {
    problem.value = (error as Error).message;
  }
}

function readLayout(json: any, graph: Graph, key: string): Layout {
  const [, , width, height] = json.bb.split(",").map(Number);
  const flip = (y: number) => height - y;
  const nodes = (json.objects ?? []).filter((one: any) => one.pos).map((one: any) => {
    const [x, y] = one.pos.split(",").map(Number);
    return { fn: Number(one.name.slice(1)), x, y: flip(y), width: Number(one.width) * 72, height: Number(one.height) * 72 };
  });
  const edges = (json.edges ?? []).map((one: any) => {
    const parts: string[] = one.pos.split(" ");
    let end: number[] | null = null;
    const points: number[][] = [];
    for (const part of parts) {
      if (part.startsWith("e,")) end = part.slice(2).split(",").map(Number);
      else if (!part.startsWith("s,")) points.push(part.split(",").map(Number));
    }
    const at = (point: number[]) => `${point[0].toFixed(1)},${flip(point[1]).toFixed(1)}`;
    const path = `M${at(points[0])} C${points.slice(1).map(at).join(" ")}`;
    const last = points[points.length - 1];
    const tip = end ?? last;
    const angle = Math.atan2(flip(tip[1]) - flip(last[1]), tip[0] - last[0]);
    const corner = (turn: number) => `${(tip[0] - 7 * Math.cos(angle + turn)).toFixed(1)},${(flip(tip[1]) - 7 * Math.sin(angle + turn)).toFixed(1)}`;
    const place = one.lp ? one.lp.split(",").map(Number) : null;
    return { at: Number(one.id.slice(1)), path, head: `${tip[0].toFixed(1)},${flip(tip[1]).toFixed(1)} ${corner(0.4)} ${corner(-0.4)}`, label: place && { x: place[0], y: flip(place[1]) } };
  });
  return { key, width, height, nodes, edges, graph };
}

export function GraphPane() {
  const found = analysis.value;
  const { fn, least, hops, theme } = route.value;
  const metric = shownMetric();
  const run = found ? runCost(metric, "now") : 0;
  const key = `${fn} ${metric} ${least} ${hops} ${generation.value}`;
  useEffect(() => {
    if (!found || fn <= 0) return;
    void lay(neighbourhood(found, fn, run, least, MOST, hops || Infinity), key);
  }, [key]);
  void theme;
  const now = layout.value;
  return (
    <section class="pane graph" aria-label="call graph">
      <PaneHead title="Graph" note="around the current function; line width by the cost of the calls">
        <label class="small">calls away{" "}
          <select value={String(hops)} onChange={(event) => go({ hops: Number(event.currentTarget.value) }, true)}>
            {[1, 2, 3, 4].map((far) => <option value={String(far)}>{far}</option>)}<option value="0">any</option>
          </select>
        </label>
        <label class="small">leave out below{" "}
          <select value={String(least)} onChange={(event) => go({ least: Number(event.currentTarget.value) }, true)}>
            {[0, 0.001, 0.005, 0.01, 0.02, 0.05].map((part) => <option value={String(part)}>{part === 0 ? "nothing" : percent(part)}</option>)}
          </select>
        </label>
      </PaneHead>
      {found && fn <= 0 ? <Empty what="No graph" why="No function is chosen: the graph shows what is around one." /> : problem.value ? <Empty what="No graph" why={problem.value} /> : !now || !found ? <p class="wait">laying out</p> : <Drawing now={now} />}
      {now && fn > 0 && (
        <p class="foot">
          <Legend difference={found?.base !== null} back={now.graph.edges.some((edge) => edge.back)} />
          {plural(now.graph.nodes.length, "function")} shown; hidden: {plural(now.graph.hiddenNodes, "neighbour")} and {plural(now.graph.hiddenEdges, "call")} to functions that are not shown
        </p>
      )}
    </section>
  );
}

/** The meaning of fills and lines. */
function Legend({ difference, back }: { difference: boolean; back: boolean }) {
  const colours = palette();
  const steps = ["0", "0.5", "1.5", "3", "6", "10"];
  return (
    <span class="legend graph-legend">
      {difference ? <><span>less</span><i class="ramp" /><span>more self cost; grey: within the error</span></> : (
        <><span>self % from</span>{colours.ramp.map((colour, at) => <span class="step" style={{ background: colour, color: inkOn(colour).ink }}>{steps[at]}</span>)}</>
      )}
      <span>line width: what the calls cost</span>
      {back && <span>dashed: back up, within a cycle</span>}
    </span>
  );
}

function Drawing({ now }: { now: Layout }) {
  const found = analysis.value!;
  const colours = palette();
  const whole = runCost(found.metric, "now") || 1;
  const margin = 10;
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const current = now.nodes.find((node) => node.fn === route.peek().fn);
    if (current) box.current?.scrollTo(current.x + margin - box.current.clientWidth / 2, current.y + margin - box.current.clientHeight / 2);
  }, [now]);
  return (
    <div class="scroll graph-scroll" tabIndex={0} ref={box}>
      <svg width={now.width + 2 * margin} height={now.height + 2 * margin} viewBox={`${-margin} ${-margin} ${now.width + 2 * margin} ${now.height + 2 * margin}`} role="img" aria-label="call graph">
        {now.edges.map((edge) => {
          const one = now.graph.edges[edge.at];
          const width = 0.6 + 6.4 * (one.cost / whole);
          return (
            <g class="edge">
              <path d={edge.path} fill="none" stroke={colours.ink} stroke-opacity="0.45" stroke-width={width} stroke-dasharray={one.back ? "4 3" : undefined} />
              <polygon points={edge.head} fill={colours.ink} fill-opacity="0.6" />
              {edge.label && <text class="arc-label" x={edge.label.x} y={edge.label.y + 4} text-anchor="middle">{arcLabel(one.cost)}</text>}
              <title>{`${theProfile().fullName(one.from)} → ${theProfile().fullName(one.to)}: ${percent(one.cost / whole)}`}</title>
            </g>
          );
        })}
        {now.nodes.map((node) => {
          const [name, numbers] = labelOf(node.fn);
          const share = found.now.self[node.fn] / whole;
          const change = found.base ? changeOf(found, "self", node.fn) : null;
          const fill = change ? changeFill(change.by / changeCost(found.metric), change.sure) : colours.ramp[rampStep(share)];
          const ink = inkOn(fill).ink;
          const current = node.fn === route.value.fn;
          const size = sizeOf(node.fn);
          return (
            <g class="graph-node" {...ofFunction(node.fn)} role="button" tabIndex={0} aria-label={`${name}, ${numbers}`} onClick={() => select(node.fn)}
              onKeyDown={(event) => event.key === "Enter" && select(node.fn)}>
              <rect x={node.x - node.width / 2} y={node.y - node.height / 2} width={node.width} height={node.height} rx="2" fill={fill}
                stroke={current ? colours.accent : colours.ink} stroke-opacity={current ? 1 : 0.35} stroke-width={current ? 2.5 : 1} />
              <text x={node.x} y={node.y - 2} text-anchor="middle" fill={ink} font-weight="650" font-size={size}>{name}</text>
              <text x={node.x} y={node.y + 14} text-anchor="middle" fill={ink} font-size="11">{numbers}</text>
              <title>{theProfile().fullName(node.fn)}</title>
            </g>
          );
        })}
      </svg>
    </div>
  );
}
