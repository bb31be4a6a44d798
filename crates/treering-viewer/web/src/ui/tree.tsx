// The tree of calls and the callers tree, opened row by row.

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import type { Merged, MergedOf } from "../model/merged.ts";
import { NONE } from "../model/tree.ts";
import { grouped } from "../model/numbers.ts";
import { interval, nodeMeasure, runCost } from "../measures.ts";
import { route, select, sideName } from "../route.ts";
import { hasTree, hovered, theProfile } from "../state.ts";
import { between, costColumn, delta, text } from "./cost.ts";
import { Bar, DeltaBar, FunctionName, PaneHead, rowHeight, Rows, useSize, widest } from "./parts.tsx";
import { changeBetween } from "./functions.tsx";
import { ofFunction } from "./menu.tsx";
import { NoTree, NothingToDraw } from "./reasons.tsx";
import { costSentence } from "./strip.tsx";
import { callees, callers } from "../requests.ts";
import { loadedTree } from "./trees.ts";

/** Nodes that are open, by tree. A new tree opens its hottest path. */
const open = signal<{ tree: MergedOf | null; nodes: Set<number>; hottest: Set<number>; cursor: number }>({ tree: null, nodes: new Set(), hottest: new Set(), cursor: -1 });

/** The hottest path below a node: the costliest child of each, while it has half of what is above. */
function hottestPath(tree: Merged, from: number): number[] {
  const path = [from];
  let at = from;
  while (tree.children[at] < tree.children[at + 1]) {
    const child = tree.children[at];
    if (tree.total[0][child] < tree.total[0][at] * 0.5 && path.length > 3) break;
    path.push(child);
    at = child;
    if (path.length > 300) break;
  }
  return path;
}

function rowsOf(tree: Merged, nodes: Set<number>): number[] {
  const list: number[] = [];
  const pending: number[] = [];
  const push = (at: number) => {
    for (let child = tree.children[at + 1] - 1; child >= tree.children[at]; child--) pending.push(child);
  };
  push(0);
  while (pending.length) {
    const at = pending.pop()!;
    list.push(at);
    if (nodes.has(at)) push(at);
  }
  return list;
}

/** Opens the hottest path below the cursor. */
export function openHottest() {
  const now = open.value;
  if (!now.tree) return;
  const from = now.cursor >= 0 ? now.cursor : 0;
  const path = hottestPath(now.tree, from);
  open.value = { ...now, nodes: new Set([...now.nodes, ...path]), hottest: new Set(path) };
}

/** The head of a column. */
function Head({ right, on, children }: { right?: boolean; on?: boolean; children?: ComponentChildren }) {
  if (!children) return <span aria-hidden="true" />;
  return <span role="columnheader" class={`${right ? "r" : ""} ${on ? "on" : ""}`}>{children}</span>;
}

export function TreePane({ inverted }: { inverted: boolean }) {
  const [ref, size] = useSize<HTMLElement>();
  const title = inverted ? "Callers tree" : "Tree";
  const note = inverted ? "functions by their own cost; below each what called it" : "from the first function of each thread to what it called";
  if (!hasTree()) return <section class="pane" ref={ref} aria-label={title}><PaneHead title={title} /><NoTree /></section>;
  const tree = loadedTree(inverted ? callers(null) : callees(null, route.value.fold)).value;
  if (!tree) return <section class="pane" ref={ref} aria-label={title}><PaneHead title={title} note={note} /><p class="wait">reading</p></section>;
  if (tree.length <= 1) return <section class="pane" ref={ref} aria-label={title}><PaneHead title={title} note={note} /><NothingToDraw /></section>;
  if (open.value.tree !== tree) {
    const path = inverted ? [] : hottestPath(tree, 0);
    open.value = { tree, nodes: new Set(path), hottest: new Set(path), cursor: -1 };
  }
  const { nodes, hottest, cursor } = open.value;
  const list = rowsOf(tree, nodes);
  const { unit, fn } = route.value;
  const { metric } = tree;
  const difference = tree.total.length > tree.stride;
  const column = costColumn(difference && unit !== "natural" ? "run" : unit, tree.total[0][0]);
  const baseColumn = costColumn(difference && unit !== "natural" ? "run" : unit, tree.total[0][0], "base");
  const whole = runCost(metric, "now") || 1;
  const value = (node: number, which: "self" | "total", side = 0) => {
    const parent = tree.parent[node];
    const above = parent === NONE ? undefined : tree.total[side][parent];
    return (side ? baseColumn : column).value(tree[which][side][node], above, tree.calls?.[node], tree[which][side + 1][node]);
  };
  const toggle = (node: number) => {
    const changed = new Set(nodes);
    if (!changed.delete(node)) changed.add(node);
    open.value = { ...open.value, nodes: changed, cursor: node };
  };
  const at = list.indexOf(cursor);
  const onKey = (event: KeyboardEvent) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const move = (to: number) => {
      const node = list[Math.max(0, Math.min(list.length - 1, to))];
      open.value = { ...open.value, cursor: node };
      hovered.value = { fn: tree.fn[node], text: costSentence(tree, node) };
    };
    const has = cursor >= 0 && tree.children[cursor] < tree.children[cursor + 1];
    const act: Record<string, () => void> = {
      ArrowDown: () => move(at + 1), ArrowUp: () => move(Math.max(0, at - 1)), Home: () => move(0), End: () => move(list.length - 1),
      ArrowRight: () => { if (has && !nodes.has(cursor)) toggle(cursor); else if (has) move(at + 1); },
      ArrowLeft: () => { if (nodes.has(cursor)) toggle(cursor); else if (cursor >= 0 && tree.parent[cursor] > 0) move(list.indexOf(tree.parent[cursor])); },
      Enter: () => cursor >= 0 && select(tree.fn[cursor]),
    };
    if (!act[event.key]) return;
    act[event.key]();
    event.preventDefault();
    event.stopPropagation();
  };
  // On a phone the name needs the place; the strip has the other numbers.
  const narrow = size.width < 480 && !difference;
  const sampled = !narrow && theProfile().head.metrics[metric].samples !== null;
  const calls = !narrow && !sampled && tree.calls !== null;
  const intervalOf = (node: number) => between(column, interval(metric, "now", nodeMeasure(tree, "total", node)), tree.parent[node] === NONE ? undefined : tree.total[0][tree.parent[node]], tree.calls?.[node]);
  const intervalWidth = sampled ? Math.max(74, widest(list.slice(0, 100).map(intervalOf))) : 0;
  const template = narrow ? "44px 40px minmax(0,1fr)" : difference ? "60px 60px 74px 74px minmax(0,1fr)" : `60px 60px ${sampled ? `${intervalWidth}px ` : calls ? "82px " : ""}74px minmax(0,1fr)`;
  const used = narrow ? 84 + 24 + 7 * 2 : 120 + (difference ? 148 : (sampled ? intervalWidth : calls ? 82 : 0) + 74) + 24 + 8 * 5;
  return (
    <section class="pane tree" ref={ref} aria-label={title}>
      <PaneHead title={title} note={note}><span class="note wide"><kbd>E</kbd> opens the hottest path</span></PaneHead>
      <div class="table" style={{ "--columns": template }}>
        <Rows count={list.length} height={rowHeight()} current={at} onKey={onKey} label={title} role="treegrid"
          head={
            <div class="row head" role="row">
              {difference ? <><Head right>{sideName("base")} {column.head}</Head><Head right>{sideName("now")} {column.head}</Head><Head right>Δ</Head><Head /></>
                : <><Head right on>total {column.head}</Head>{!narrow && <Head right>self {column.head}</Head>}{sampled ? <Head>95 %</Head> : calls ? <Head right>calls</Head> : null}<Head /></>}
              <Head>function</Head>
            </div>
          }
          render={(index) => {
            const node = list[index];
            const depth = tree.depth[node] - 1;
            const has = tree.children[node] < tree.children[node + 1];
            // Deep rows keep room for their names: indentation stops at half of the pane.
            const indent = Math.min(depth * (narrow ? 8 : 16), Math.max(0, size.width - used) * (narrow ? 0.25 : 0.5));
            const change = difference ? changeBetween(metric, nodeMeasure(tree, "total", node, "base"), nodeMeasure(tree, "total", node)) : null;
            return (
              <div class={`row ${hottest.has(node) ? "hot" : ""}`} role="row" key={node} {...ofFunction(tree.fn[node])} aria-label={`${theProfile().fullName(tree.fn[node])}, ${costSentence(tree, node)}`} aria-level={depth + 1}
                aria-expanded={has ? nodes.has(node) : undefined} aria-selected={tree.fn[node] === fn} data-cursor={node === cursor ? "" : undefined}
                onClick={() => { open.value = { ...open.value, cursor: node }; select(tree.fn[node]); }}
                onMouseMove={() => (hovered.value = { fn: tree.fn[node], text: costSentence(tree, node) })} onMouseLeave={() => (hovered.value = null)}>
                {change ? (
                  <>
                    <span role="gridcell" class="r dim">{text(baseColumn, value(node, "total", tree.stride))}</span><span role="gridcell" class="r">{text(column, value(node, "total"))}</span>
                    <span role="gridcell" class={`r ${change.sure ? (change.by > 0 ? "more-t" : "less-t") : "dim"}`}>{delta(column, column.value(change.by), change.sure)}</span>
                    <DeltaBar value={change.by} half={change.half} from={-tree.total[0][0] / 4} to={tree.total[0][0] / 4} sure={change.sure} />
                  </>
                ) : (
                  <>
                    <span role="gridcell" class="r">{text(column, value(node, "total"))}</span>
                    {!narrow && <span role="gridcell" class="r dim">{text(column, value(node, "self"))}</span>}
                    {sampled ? <span role="gridcell" class="dim small">{intervalOf(node)}</span>
                      : calls ? <span role="gridcell" class="r dim small">{inverted ? "" : grouped(tree.calls![node])}</span> : null}
                    <Bar self={tree.self[0][node]} total={tree.total[0][node]} whole={tree.total[0][0] || whole} />
                  </>
                )}
                <span role="gridcell" class="indented" style={{ paddingLeft: `${indent}px` }}>
                  {has ? (
                    <button type="button" class="twist" tabIndex={-1} aria-label={nodes.has(node) ? "close" : "open"}
                      onClick={(event) => { event.stopPropagation(); toggle(node); }}>{nodes.has(node) ? "▾" : "▸"}</button>
                  ) : <span class="twist" />}
                  <FunctionName fn={tree.fn[node]} width={size.width - used - indent - 20} />
                  {tree.hidden[node] > 0 && nodes.has(node) && <span class="tag">{grouped(tree.hidden[node])} small</span>}
                </span>
              </div>
            );
          }} />
      </div>
    </section>
  );
}
