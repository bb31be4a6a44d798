// The tab of waits: where threads waited in the shown part of the run, how often, how long, and for what.

import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { amount, grouped } from "../../model/numbers.ts";
import type { End, Place } from "../../model/waits.ts";
import { READY } from "../../model/timeline.ts";
import { askWaitPlaces } from "../../asking.ts";
import { route, select, spanOf } from "../../route.ts";
import { course, failure, generation, theProfile } from "../../state.ts";
import { Empty, FunctionName, useSize } from "../parts.tsx";
import { ofFunction } from "../menu.tsx";
import { threadLabel, threadName } from "./rows.ts";
import { arc, see } from "./selection.ts";

/** The groups of kinds, as they stand in the table. */
const GROUPS: [title: string, kinds: number[]][] = [
  ["stopped by others: locks, I/O", [0, 1]], ["nothing to do: sleep, poll, queue, child", [3]], ["of a kind that its stack does not tell", [4]], ["ready, no processor free", [READY]],
];
/** By kind: what a thread waited for. */
const FOR = [" for a lock", " for input or output", " for a processor", " with nothing to do", ""];
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
function zoomTo(place: Place) {
  const { fn, longest } = place;
  if (fn > 0) select(fn);
  told.value = longest && { place, run: generation.peek() };
  arc.value = longest && { from: longest.from, to: longest.to, thread: longest.thread, woken: longest.end?.woken ?? longest.to, waker: longest.end?.thread ?? -1 };
  if (!longest) return;
  const margin = (longest.to - longest.from) * 0.5;
  see([longest.from - margin, longest.to + margin], false);
}

/** The place whose longest wait is told, and the version of the profile that it is of. */
const told = signal<{ place: Place; run: number } | null>(null);

function nameOf(fn: number): string {
  const { qualifier, last } = theProfile().name(fn);
  return `${qualifier}${last}`;
}

/** Who ended a wait, in words. */
function wakerText({ kind, fn, thread }: Omit<End, "woken">): string {
  const plain = fn > 0 ? nameOf(fn).replace(/^\[|\]$/g, "") : "";
  if (kind >= 3) return plain || ["a thread of the kernel", "another program"][kind - 3];
  if (kind === 2) return "an interrupt";
  const who = thread >= 0 ? threadLabel(thread) : "";
  if (/^end of /.test(plain)) return `the ${plain}${who && plain === "end of the thread" ? ` ${who}` : ""}`;
  const what = kind === 1 ? "a soft interrupt" : plain;
  return [who, what].filter(Boolean).join(" in ") || "a thread whose stack is not known";
}

/** The longest wait of a place as a sentence. */
function sentence({ fn, kind, longest }: Place): string {
  if (!longest) return "";
  const ns = (time: number) => amount("nanoseconds", time);
  const waited = `${threadLabel(longest.thread)} waited ${ns(longest.to - longest.from)}${FOR[kind]}${fn > 0 ? ` in ${nameOf(fn)}` : ""}`;
  if (kind === READY) return `${waited}.`;
  const { end } = longest;
  return end ? `${waited}, ended by ${wakerText(end)}, ran ${ns(longest.to - end.woken)} later.` : `${waited}; who ended it is not known.`;
}

/** The one who ended most of the waits of a place. */
function EndedBy({ place, width }: { place: Place; width: number }) {
  const [first, ...others] = place.wakers;
  const share = first && (100 * first.ns) / place.ns;
  const text = first ? `ended by ${wakerText({ ...first, thread: -1 })} ${grouped(share, 1)} %${others.length ? `, and ${others.length} other${others.length > 1 ? "s" : ""}` : ""}` : "ended by: not known";
  return <p class="waker note" title={text} style={{ maxWidth: `${width}px` }}>{text}</p>;
}

/** Below this width of the pane, in px, its bars are short. */
const NARROW = 420;

export function Waits() {
  const [ref, size] = useSize<HTMLDivElement>();
  const places = usePlaces();
  useEffect(() => () => void (arc.value = told.value = null), []);
  if (!places) return <div class="fill" ref={ref}><p class="wait">reading</p></div>;
  if (!places.length) return <Empty what="No waits" why={`No thread waited in the shown part of the run${spanOf(route.value.steps) ? "" : ", as far as it was recorded"}.`} />;
  const most = places[0].ns;
  const all = places.reduce((sum, place) => sum + place.ns, 0);
  // In a narrow pane names need the room of the bars.
  const narrow = size.width < NARROW;
  const isKnown = places.some((place) => place.wakers.length > 0);
  const shown = told.value?.run === generation.value ? told.value.place : null;
  const seconds = (ns: number) => grouped(ns / 1e9, 3);
  return (
    <div class="fill waits" ref={ref}>
      <div class="code-head"><span class="note" aria-live="polite">{shown ? sentence(shown) : `A wait counts where the program asked for it. Times of several threads add up.${isKnown ? "" : " Who ended a wait is not recorded."}`}</span></div>
      <div class="table scroll" role="grid" aria-label="waits" tabIndex={0} style={{ "--columns": narrow ? "40px 52px 20px 48px minmax(0,1fr)" : "52px 60px 60px 56px minmax(0,1fr)" }}>
        <div class="row head" role="row"><span class="r" role="columnheader">waits</span><span class="r" role="columnheader">s</span><span aria-hidden="true" /><span class="r" role="columnheader">longest</span><span role="columnheader">where</span></div>
        {GROUPS.map(([title, kinds]) => {
          const rows = places.filter((place) => kinds.includes(place.kind));
          return rows.length > 0 && (
            <>
              {kinds[0] !== READY && <p class="group">{title}</p>}
              {rows.map((place) => (
                <>
                <div class="row" role="row" {...ofFunction(place.fn)} aria-selected={place.fn > 0 && place.fn === route.value.fn} onClick={() => zoomTo(place)}
                  title={place.longest ? `a click shows the longest: ${threadName(place.longest.thread)}, ${amount("nanoseconds", place.longest.to - place.longest.from)}` : undefined}>
                  <span class="r" role="gridcell">{grouped(place.count)}</span>
                  <span class="r" role="gridcell">{seconds(place.ns)}</span>
                  <span aria-hidden="true"><i class={`wait-bar ${TEXTURES[place.kind]}`} style={{ width: `${Math.max(2, (100 * place.ns) / most)}%` }} /></span>
                  <span class="r dim" role="gridcell">{place.longest ? seconds(place.longest.to - place.longest.from) : ""}</span>
                  <span role="gridcell">{place.fn > 0 ? <FunctionName fn={place.fn} width={size.width - (narrow ? 214 : 282)} /> : title}</span>
                </div>
                {isKnown && place.kind !== READY && <EndedBy place={place} width={size.width} />}
                </>
              ))}
            </>
          );
        })}
        <div class="row" role="row"><span /><span class="r" role="gridcell"><b>{seconds(all)}</b></span><span /><span /><span class="dim" role="gridcell">✓ all of them</span></div>
      </div>
    </div>
  );
}
