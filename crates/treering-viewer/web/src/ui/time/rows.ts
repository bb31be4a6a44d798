// The tracks of the strip of time: threads, or processes where there are many, and one for all that have no room.

import { computed, signal } from "@preact/signals";
import type { ThreadCost } from "../../model/analysis.ts";
import { askThreads } from "../../asking.ts";
import { route } from "../../route.ts";
import { failure, theProfile } from "../../state.ts";

/** Up to so many threads each have a track; of more, processes have one. */
const SINGLE = 12;

/** The most tracks, however many are asked for. */
export const MOST = 60;

/** A track. */
export interface Track {
  /** The key of what it is of, which stays when the order changes. */
  key: string;
  label: string;
  threads: number[];
  cost: number;
  kind: "thread" | "process" | "rest";
  /** Of a process: whether its threads have tracks below it. */
  open: boolean;
}

const threads = signal<ThreadCost[]>([]);
/** The processes whose threads have tracks of their own. */
export const opened = signal<Set<string>>(new Set());
/** Whether all tracks are shown. */
export const all = signal(false);
/** How many tracks there is room for. */
export const room = signal(6);

let asked = "";

/** Asks for the threads and their costs, once for each metric and profile. */
export function followThreads() {
  const key = `${route.value.metric} ${theProfile().head.threads} ${theProfile().head.nodes}`;
  if (key === asked) return;
  asked = key;
  askThreads().then((found) => (threads.value = found), (error: Error) => (failure.value = `threads cannot be listed: ${error.message}`));
}

/** How many threads and processes have any cost. */
export const counts = computed(() => ({ threads: threads.value.length, processes: new Set(threads.value.map(processOf)).size }));

function processOf(thread: ThreadCost): string {
  return `${thread.pid} ${thread.process}`;
}

/** The threads whose own name, or whose process's, has one of these texts in it. */
export function threadsNamed(texts: string[]): number[] {
  const has = ({ name, process }: ThreadCost) => texts.some((text) => name.toLowerCase().includes(text) || process.toLowerCase().includes(text));
  return [...threads.value.keys()].filter((at) => has(threads.value[at]));
}

/** The name of a thread, as labels and sentences show it. */
export function threadName(at: number): string {
  const one = threads.value[at];
  return one ? one.name || one.process || `thread ${one.tid || at + 1}` : "";
}

/** The name of a thread, with its number where others have the same name. */
export function threadLabel(at: number): string {
  const one = threads.peek()[at];
  const alike = threads.peek().filter((other) => other.name === one?.name).length > 1;
  return `${threadName(at)}${alike && one?.tid ? ` ${one.tid}` : ""}`;
}

function ofThread(at: number): Track {
  const one = threads.peek()[at];
  return { key: `t${at}`, label: threadLabel(at), threads: [at], cost: one.cost, kind: "thread", open: false };
}

/** All tracks that could be shown, the costliest first. */
const possible = computed<Track[]>(() => {
  const known = threads.value;
  const byCost = (a: Track, b: Track) => b.cost - a.cost;
  if (known.length <= SINGLE) return known.map((_, at) => ofThread(at)).sort(byCost);
  const processes = new Map<string, number[]>();
  known.forEach((one, at) => processes.set(processOf(one), [...(processes.get(processOf(one)) ?? []), at]));
  const tracks = [...processes].map(([key, of]): Track => {
    const { process, pid, name } = known[of[0]];
    const cost = of.reduce((sum, at) => sum + known[at].cost, 0);
    return { key, label: `${process || name || "process"}${pid ? ` ${pid}` : ""}`, threads: of, cost, kind: of.length > 1 ? "process" : "thread", open: opened.value.has(key) };
  }).sort(byCost);
  return tracks.flatMap((track) => (track.open ? [track, ...track.threads.map(ofThread).sort(byCost)] : [track]));
});

/** The tracks that are shown. The last one is of all threads that have none. */
export const tracks = computed<Track[]>(() => {
  const list = possible.value;
  const most = all.value ? MOST : room.value;
  if (list.length <= most) return list;
  const shown = list.slice(0, most - 1);
  const rest = list.slice(most - 1);
  const seen = new Set(shown.flatMap((track) => track.threads));
  const left = [...new Set(rest.flatMap((track) => track.threads))].filter((at) => !seen.has(at));
  const cost = left.reduce((sum, at) => sum + threads.value[at].cost, 0);
  const noun = rest.some((track) => track.kind === "process") ? "process" : threads.value.length > SINGLE ? "process" : "thread";
  const words = `${rest.length} more ${rest.length === 1 ? noun : noun === "process" ? "processes" : "threads"}`;
  return left.length ? [...shown, { key: "rest", label: words, threads: left, cost, kind: "rest", open: false }] : shown;
});

/** By thread: the number of its track, from 1 on; 0 where it has none. A thread below its process counts for itself, and the process adds up. */
export function rowOf(list: Track[], count: number): Uint16Array {
  const of = new Uint16Array(count);
  // The later track is the finer one.
  list.forEach((track, at) => track.threads.forEach((thread) => (of[thread] = at + 1)));
  return of;
}
