// The basic blocks of a function in both versions of a difference.

import { grouped } from "../model/numbers.ts";
import type { BlockPair } from "../profile.ts";
import { route, sideName } from "../route.ts";
import { columnsOf } from "./parts.tsx";

/** One text where both versions have the same. */
function both(base: string | undefined, now: string | undefined): string {
  if (base === undefined || now === undefined || base === now) return now ?? base ?? "";
  return `${base} → ${now}`;
}

function place({ base, now }: BlockPair): string {
  const address = both(base?.address, now?.address);
  const only = !base ? ` (only ${sideName("now")})` : !now ? ` (only ${sideName("base")})` : "";
  const line = both(base?.line ?? undefined, now?.line ?? undefined);
  return `${address}${only}${line && `  ${line}`}`;
}

function signed(by: number): string {
  return by === 0 ? "0" : `${by > 0 ? "+" : "−"}${grouped(Math.abs(by))}`;
}

export function BlockPairs({ pairs }: { pairs: BlockPair[] }) {
  const rows = pairs.map((pair) => {
    const { base, now } = pair;
    return {
      pair, base: base?.instructions ?? 0, now: now?.instructions ?? 0,
      executions: both(grouped(base?.executions ?? 0), grouped(now?.executions ?? 0)),
      size: both(base ? grouped(base.size) : undefined, now ? grouped(now.size) : undefined),
    };
  });
  const sum = (side: "base" | "now") => rows.reduce((all, row) => all + row[side], 0);
  const [base, now] = [sum("base"), sum("now")];
  const changed = rows.filter((row) => row.base !== row.now).length;
  const ofOneSize = pairs.every(({ base, now }) => base?.size === now?.size);
  const most = rows.reduce((most, row) => Math.max(most, Math.abs(row.now - row.base)), 1);
  const columns = columnsOf([
    rows.map((row) => signed(row.now - row.base)).concat(signed(now - base)), rows.map((row) => row.executions).concat("executions"), rows.map((row) => row.size).concat("each"),
  ]);
  const change = (by: number) => <span class={`r ${by > 0 ? "more-t" : by < 0 ? "less-t" : "dim"}`} role="cell">{signed(by)}</span>;
  return (
    <div class="fill">
      <div class="code-head">
        <span class="note">
          {grouped(changed)} of {grouped(rows.length)} executed {rows.length === 1 ? "block" : "blocks"} changed{route.value.steps.length ? "; transforms leave nothing out here" : ""}
        </span>
      </div>
      <div class="scroll source block-pairs" tabIndex={0} role="table" aria-label="blocks" style={columns}>
        <div class="source-row head" role="row">
          <span class="r" role="columnheader" title="instructions, which add up to the self cost">Δ</span><span class="r" role="columnheader">executions</span><span class="r" role="columnheader" title="instructions that an execution has">each</span><span role="columnheader">block</span>
        </div>
        {!ofOneSize && <p class="group">blocks are paired in the order of their addresses, by the lengths of their instructions</p>}
        {rows.map((row) => (
          <div class={`source-row ${Math.abs(row.now - row.base) === most ? "hot1" : row.base === row.now ? "cold" : ""}`} role="row">
            {change(row.now - row.base)}<span class="r" role="cell">{row.executions}</span><span class="r" role="cell">{row.size}</span><code class="text" role="cell">{place(row.pair)}</code>
          </div>
        ))}
        <div class="source-row sum" role="row">
          {change(now - base)}<span class="r" role="cell" /><span class="r" role="cell" /><span role="cell">in all: {grouped(base)} → {grouped(now)}</span>
        </div>
      </div>
    </div>
  );
}
