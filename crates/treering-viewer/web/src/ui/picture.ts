// The flame graph as a picture in a file: SVG without a script.

import type { MergedOf } from "../model/merged.ts";
import { grouped, percent } from "../model/numbers.ts";
import { changeCost, nodeMeasure, runCost } from "../measures.ts";
import { route } from "../route.ts";
import { analysis, theProfile } from "../state.ts";
import { changeFill, fill, inkOn, moduleHues } from "./colours.ts";
import { changeBetween } from "./functions.tsx";
import { fitted, font, textWidth } from "./parts.tsx";
import { costSentence } from "./strip.tsx";

const WIDTH = 1200;
const ROW = 20;
/** Narrower pieces, in pixels, are left out and counted. */
const LEAST = 0.5;

function escaped(text: string): string {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
}

/** The picture of a tree from a node on; widths are of `column`. */
export function flameSvg(tree: MergedOf, column: Float64Array, zoom: number): string {
  const profile = theProfile();
  const whole = runCost(tree.metric, "now");
  const hues = route.value.colour === "module" && analysis.value ? moduleHues(analysis.value.now.self) : null;
  const base = column[zoom] || 1;
  const pieces: string[] = [];
  let [small, deepest] = [0, 0];
  const pending: [number, number, number][] = [[zoom, 0, 0]];
  while (pending.length) {
    const [node, start, depth] = pending.pop()!;
    const [x, width, y] = [(start / base) * WIDTH, (column[node] / base) * WIDTH, 40 + depth * ROW];
    deepest = Math.max(deepest, depth);
    const fn = tree.fn[node];
    const change = tree.total.length > tree.stride ? changeBetween(tree.metric, nodeMeasure(tree, "total", node, "base"), nodeMeasure(tree, "total", node)) : null;
    const colour = change ? changeFill(change.by / changeCost(tree.metric), change.sure || change.half === 0) : fill(fn, tree.inlined[node] === 1 && node !== 0, tree.self[0][node], whole, hues);
    const name = fn > 0 ? profile.fullName(fn) : "whole program";
    const short = fn > 0 ? fitted(fn, profile.name(fn), width - 10, "svg ", (text) => textWidth(text, font(12))) : { qualifier: "", last: name, tail: "" };
    const label = width < 26 ? "" : `<text x="${(x + 5).toFixed(2)}" y="${y + 14}" fill="${inkOn(colour).ink}">${escaped(short.qualifier + short.last + short.tail)}</text>`;
    pieces.push(`<g><title>${escaped(`${name}: ${costSentence(tree, node)}`)}</title><rect x="${x.toFixed(2)}" y="${y}" width="${Math.max(0.3, width - (width >= 3 ? 1 : 0.1)).toFixed(2)}" height="${ROW - 1}" fill="${colour}"/>${label}</g>`);
    let offset = start;
    for (let child = tree.children[node]; child < tree.children[node + 1]; child++) {
      if ((column[child] / base) * WIDTH < LEAST) small++;
      else pending.push([child, offset, depth + 1]);
      offset += column[child];
    }
    small += tree.hidden[node];
  }
  const { head } = profile;
  const height = 40 + (deepest + 1) * ROW + 24;
  const facts = [head.metrics[tree.metric].name, `${percent(column[zoom] / (runCost(tree.metric, column === tree.total[0] ? "now" : "base") || 1))} of the run`, ...(small ? [`${grouped(small)} pieces are too small to be seen`] : []), ...route.value.steps.map((step) => `${step.kind} ${step.target.slice(2)}`)];
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="#ffffff"/>`
    + `<text x="5" y="24" font-size="15" fill="#1d1b18">${escaped(head.title)}</text>\n${pieces.join("\n")}\n<text x="5" y="${height - 8}" fill="#57524a">${escaped(facts.join("; "))}</text></svg>\n`;
}

/** Saves the picture where the browser puts what is saved. */
export function saveFlame(tree: MergedOf, column: Float64Array, zoom: number) {
  const url = URL.createObjectURL(new Blob([flameSvg(tree, column, zoom)], { type: "image/svg+xml" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = "flame-graph.svg";
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
