// The drawn part of the call graph: the current function, what is near it, and the way from the root.

import type { Analysis } from "./analysis.ts";

export interface Graph {
  /** In the order that the layout is given them: least depth first, then largest total. */
  nodes: number[];
  edges: { from: number; to: number; arc: number; cost: number; back: boolean }[];
  hiddenNodes: number;
  hiddenEdges: number;
}

/**
 * The neighbourhood of `fn`: at most `most` functions, none below `least` of the run and none that is more than
 * `hops` calls away from it, besides the way from the root.
 */
export function neighbourhood(found: Analysis, fn: number, run: number, least: number, most: number, hops = Infinity): Graph {
  const total = (at: number) => Math.max(found.now.total[at], found.base ? found.base.total[at] : 0);
  const cost = (arc: number) => Math.max(found.now.arcTotal[arc], found.base ? found.base.arcTotal[arc] : 0);
  const out = new Map<number, number[]>();
  const into = new Map<number, number[]>();
  for (let arc = 0; arc < found.caller.length; arc++) {
    if (found.caller[arc] === 0 || found.caller[arc] === found.callee[arc]) continue;
    (out.get(found.caller[arc]) ?? out.set(found.caller[arc], []).get(found.caller[arc])!).push(arc);
    (into.get(found.callee[arc]) ?? into.set(found.callee[arc], []).get(found.callee[arc])!).push(arc);
  }
  const kept = new Set<number>([fn]);
  // The way from the root: at every step the caller that asked for most.
  let at = fn;
  for (let step = 0; step < most / 3; step++) {
    const arcs = (into.get(at) ?? []).filter((arc) => !kept.has(found.caller[arc]));
    if (!arcs.length) break;
    const best = arcs.reduce((a, b) => (found.leastDepth[found.caller[b]] < found.leastDepth[found.caller[a]] || (found.leastDepth[found.caller[b]] === found.leastDepth[found.caller[a]] && cost(b) > cost(a)) ? b : a));
    at = found.caller[best];
    kept.add(at);
  }
  // Then outwards, the costliest arcs first.
  let hiddenNodes = 0;
  const seen = new Set(kept);
  let frontier = [...kept].map((node) => ({ node, weight: node === fn ? 2 : 1 }));
  const candidates: { node: number; score: number; away: number }[] = [];
  const reach = (node: number, weight: number, away: number) => {
    for (const [arcs, other] of [[out.get(node) ?? [], found.callee], [into.get(node) ?? [], found.caller]] as const) {
      for (const arc of arcs) {
        if (seen.has(other[arc])) continue;
        seen.add(other[arc]);
        candidates.push({ node: other[arc], score: cost(arc) * weight, away });
      }
    }
  };
  // Of the way from the root only the function itself counts, where the reader says how far to look.
  for (const { node, weight } of frontier) if (node === fn || hops === Infinity) reach(node, weight, 1);
  while (candidates.length && kept.size < most) {
    let best = 0;
    for (let other = 1; other < candidates.length; other++) if (candidates[other].score > candidates[best].score) best = other;
    const [next] = candidates.splice(best, 1);
    if (total(next.node) < least * run || next.away > hops) {
      hiddenNodes++;
      continue;
    }
    kept.add(next.node);
    reach(next.node, 0.5, next.away + 1);
  }
  hiddenNodes += candidates.length;
  const nodes = [...kept].sort((a, b) => found.leastDepth[a] - found.leastDepth[b] || total(b) - total(a) || a - b);
  const edges: Graph["edges"] = [];
  let hiddenEdges = 0;
  for (let arc = 0; arc < found.caller.length; arc++) {
    const [from, to] = [found.caller[arc], found.callee[arc]];
    if (from === 0 || !kept.has(from) || !kept.has(to)) {
      if (kept.has(from) || kept.has(to)) hiddenEdges++;
      continue;
    }
    const back = found.cycle[from] !== 0 && found.cycle[from] === found.cycle[to] && found.leastDepth[to] <= found.leastDepth[from];
    edges.push({ from, to, arc, cost: cost(arc), back });
  }
  edges.sort((a, b) => found.leastDepth[a.from] - found.leastDepth[b.from] || b.cost - a.cost);
  return { nodes, edges, hiddenNodes, hiddenEdges };
}
