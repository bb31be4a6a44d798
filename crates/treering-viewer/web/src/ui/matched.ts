// The share of the run that a search matches: outermost matches, each stack once.

import { effect, signal } from "@preact/signals";
import { askMatched } from "../asking.ts";
import { matches } from "../masks.ts";
import { runCost } from "../measures.ts";
import { route } from "../route.ts";
import { generation, hasTree } from "../state.ts";

const share = signal<{ mask: Uint8Array; value: number } | null>(null);

effect(() => {
  const mask = matches.value;
  if (!mask || generation.value === 0 || !hasTree()) return;
  const whole = runCost(route.peek().metric, "now");
  // Without an answer there is no share, which the reader sees.
  askMatched(mask).then((cost) => (share.value = whole ? { mask, value: cost / whole } : null), () => {});
});

/** Null until it is known. */
export function matchedShare(): number | null {
  return share.value !== null && share.value.mask === matches.value ? share.value.value : null;
}
