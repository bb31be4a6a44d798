// The tab of waits: where threads waited in the shown part of the run, how often, how long, and for what.

import { useEffect, useState } from "preact/hooks";
import { amount, grouped } from "../../model/numbers.ts";
import type { Place } from "../../model/waits.ts";
import { READY } from "../../model/timeline.ts";
import { askWaitPlaces, course, failure, generation, route, select, spanOf } from "../../state.ts";
import { Empty, FunctionName, useSize } from "../parts.tsx";
import { ofFunction } from "../menu.tsx";
import { threadName } from "./rows.ts";
import { see } from "./selection.ts";

/** The groups of kinds, as they stand in the table. */
const GROUPS: [title: string, kinds: number[]][] = [
  ["stopped by others: locks, I/O", [0, 1]], ["nothing to do: sleep, poll, queue, child", [3]], ["of a kind that its stack does not tell", [4]], ["ready, no processor free", [READY]],
];
const TEXTURES = ["w-lock", "w-io", "w-ready", "w-idle", "w-idle"];

function usePlaces(): Place[] | null {
  const [places, setPlaces] = useState<Place[] | null>(null);
  const key = [JSON.stringify(route.value.steps), generation.value, course.value !== null].join();
  useEffect(() => {
    if (!course.peek()) return;
    let stale = false;
    askWaitPlaces().then((found) => stale || setPlaces(found), (error: Error) => stale || (failure.value = `waits cannot be listed: ${error.message}`));
    return () => void (stale = true);
  }, [key]);
  return places;
}

/** Shows the longest wait of a place in the strip, and makes its function the current one. */
function zoomTo({ fn, longest }: Place) {
  if (fn > 0) select(fn);
  if (!longest) return;
  const margin = (longest.to - longest.from) * 0.5;
  see([longest.from - margin, longest.to + margin], false);
}

/** Below this width of the pane, in px, its bars are short. */
const NARROW = 420;

export function Waits() {
  const [ref, size] = useSize<HTMLDivElement>();
  const places = usePlaces();
  if (!places) return <div class="fill" ref={ref}><p class="wait">reading</p></div>;
  if (!places.length) return <Empty what="No waits" why={`No thread waited in the shown part of the run${spanOf(route.value.steps) ? "" : ", as far as it was recorded"}.`} />;
  const most = places[0].ns;
  const all = places.reduce((sum, place) => sum + place.ns, 0);
  // In a narrow pane names need the room of the bars.
  const narrow = size.width < NARROW;
  const seconds = (ns: number) => grouped(ns / 1e9, 3);
  return (
    <div class="fill waits" ref={ref}>
      <div class="code-head"><span class="note">A wait counts where the program asked for it. Times of several threads add up. Who ended a wait is not recorded.</span></div>
      <div class="table scroll" role="grid" aria-label="waits" tabIndex={0} style={{ "--columns": narrow ? "40px 52px 20px 48px minmax(0,1fr)" : "52px 60px 60px 56px minmax(0,1fr)" }}>
        <div class="row head" role="row"><span class="r" role="columnheader">waits</span><span class="r" role="columnheader">s</span><span aria-hidden="true" /><span class="r" role="columnheader">longest</span><span role="columnheader">where</span></div>
        {GROUPS.map(([title, kinds]) => {
          const rows = places.filter((place) => kinds.includes(place.kind));
          return rows.length > 0 && (
            <>
              {kinds[0] !== READY && <p class="group">{title}</p>}
              {rows.map((place) => (
                <div class="row" role="row" {...ofFunction(place.fn)} aria-selected={place.fn > 0 && place.fn === route.value.fn} onClick={() => zoomTo(place)}
                  title={place.longest ? `a click shows the longest: ${threadName(place.longest.thread)}, ${amount("nanoseconds", place.longest.to - place.longest.from)}` : undefined}>
                  <span class="r" role="gridcell">{grouped(place.count)}</span>
                  <span class="r" role="gridcell">{seconds(place.ns)}</span>
                  <span aria-hidden="true"><i class={`wait-bar ${TEXTURES[place.kind]}`} style={{ width: `${Math.max(2, (100 * place.ns) / most)}%` }} /></span>
                  <span class="r dim" role="gridcell">{place.longest ? seconds(place.longest.to - place.longest.from) : ""}</span>
                  <span role="gridcell">{place.fn > 0 ? <FunctionName fn={place.fn} width={size.width - (narrow ? 214 : 282)} /> : title}</span>
                </div>
              ))}
            </>
          );
        })}
        <div class="row" role="row"><span /><span class="r" role="gridcell"><b>{seconds(all)}</b></span><span /><span /><span class="dim" role="gridcell">✓ all of them</span></div>
      </div>
    </div>
  );
}
