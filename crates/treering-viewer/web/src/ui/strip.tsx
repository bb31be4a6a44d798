// The strip: what is hovered or focused, else the current function, in full.

import { grouped, percent, plural } from "../model/numbers.ts";
import type { MergedOf } from "../model/merged.ts";
import { functionInterval, interval, nodeMeasure, runCost } from "../measures.ts";
import { route } from "../route.ts";
import { analysis, hovered, theProfile } from "../state.ts";
import { callsText, costColumn, delta, text } from "./cost.ts";
import { changeOf } from "./functions.tsx";

/** `total 39.6 % [38.0, 41.3] · self 1.2 % [0.8, 1.6]` of a node. */
export function costSentence(tree: MergedOf, node: number): string {
  const { metric } = tree;
  const whole = runCost(metric, "now");
  if (tree.total.length > tree.stride) {
    const before = tree.total[tree.stride][node];
    return bothTexts(before, tree.total[0][node]);
  }
  const part = (word: "total" | "self") => {
    const cost = tree[word][0][node];
    const bounds = interval(metric, "now", nodeMeasure(tree, word, node));
    const between = bounds ? ` [${grouped(bounds[0] * 100, 1)}, ${grouped(bounds[1] * 100, 1)}]` : "";
    return `${word} ${whole ? percent(cost / whole) : "0"}${between}`;
  };
  const here = route.value.fold && tree.folded[node] ? "here " : "";
  const calls = tree.calls ? ` · ${plural(tree.calls[node], "call")}` : "";
  return `${here}${part("total")} · ${part("self")}${calls}`;
}

/** `total 1.200 → 1.500 ms`. */
function bothTexts(base: number, now: number): string {
  const [ofBase, ofNow] = (["base", "now"] as const).map((side) => costColumn("natural", Math.max(base, now), side));
  return `total ${text(ofBase, ofBase.value(base))} → ${text(ofNow, now)} ${ofNow.scale.suffix}`.trimEnd();
}

/** The same of a function. */
export function functionSentence(fn: number): string {
  const found = analysis.value;
  if (!found) return "";
  const whole = runCost(found.metric, "now");
  if (found.base) {
    const column = costColumn("natural", Math.max(found.now.total[fn], found.base.total[fn]));
    const change = changeOf(found, "total", fn);
    return `${bothTexts(found.base.total[fn], found.now.total[fn])}, ${delta(column, column.value(change.by))}${change.sure || change.half === 0 ? "" : " within the error"}`;
  }
  const { totals } = theProfile().head.metrics[found.metric];
  const part = (word: "total" | "self") => {
    if (word === "total" && (totals === "estimated" || totals === "unknown")) return "total not measured";
    const bounds = functionInterval(found, word, fn);
    const between = bounds ? ` [${grouped(bounds[0] * 100, 1)}, ${grouped(bounds[1] * 100, 1)}]` : "";
    return `${word} ${whole ? percent(found.now[word][fn] / whole) : "0"}${between}`;
  };
  const counted = found.calls ? callsText(found.calls[fn]) : "";
  const calls = counted && ` · ${counted} ${counted === "1" ? "call" : "calls"}`;
  return `${part("total")} · ${part("self")}${calls}`;
}

export function Strip() {
  const profile = theProfile();
  const over = hovered.value;
  const fn = over?.fn ?? route.value.fn;
  if (fn < 0) return <div class="strip" />;
  return (
    <div class="strip">
      <b title={profile.fullName(fn)}>{fn === 0 ? "whole program" : profile.fullName(fn)}</b>
      <span>{over ? over.text : functionSentence(fn)}</span>
      <span class="note">{profile.place(fn)}</span>
    </div>
  );
}
