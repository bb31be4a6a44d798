// Where in the program itself the cost of a function of the kernel or of a library comes from: waiting, above all.

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { grouped, percent } from "../model/numbers.ts";
import { askOwners } from "../asking.ts";
import { runCost } from "../measures.ts";
import { route, select, shownMetric } from "../route.ts";
import { failure, generation, hasTree, isOwn, theProfile } from "../state.ts";
import { ofFunction } from "./menu.tsx";

/** How many are named. */
const MOST = 4;

const owners = signal<{ key: string; rows: { fn: number; cost: number }[] } | null>(null);

/** The nearest own functions above one that is not the program's own, with what it costs in each. */
export function Owners({ fn }: { fn: number }) {
  const wanted = hasTree() && fn > 0 && !isOwn(fn) && theProfile().head.baseRuns === null;
  const key = `${fn} ${shownMetric()} ${generation.value} ${JSON.stringify(route.value.steps)}`;
  useEffect(() => {
    if (wanted) askOwners(fn).then((rows) => (owners.value = { key, rows }), (error: Error) => (failure.value = `the program’s own functions cannot be found: ${error.message}`));
  }, [wanted && key]);
  const rows = owners.value?.key === key ? owners.value.rows : null;
  if (!wanted || !rows?.length) return null;
  const whole = runCost(shownMetric(), "now") || 1;
  const profile = theProfile();
  const rest = rows.slice(MOST);
  return (
    <p class="group owners">from the program’s own{" "}
      {rows.slice(0, MOST).map((row) => (
        <>{row.fn > 0 ? <button type="button" class="link" {...ofFunction(row.fn)} title={profile.fullName(row.fn)} onClick={() => select(row.fn)}>{profile.name(row.fn).last}</button> : <i>none above it</i>} {percent(row.cost / whole)} </>
      ))}
      {rest.length > 0 && `${grouped(rest.length)} more ${percent(rest.reduce((sum, row) => sum + row.cost, 0) / whole)}`}
    </p>
  );
}
