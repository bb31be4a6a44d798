// The functions that regular expressions match. A worker of its own finds out, which is ended where it does not: some
// expressions take for ever on some names.

import { signal } from "@preact/signals";
import { readRegex } from "./model/search.ts";
import type { Profile } from "./profile.ts";

/** How long a few names may take, in ms. */
const PATIENCE = 2000;

/** By function: 1 where its name matches; or that this takes too long. */
export type Matched = Uint8Array | "slow";

/** The worker. It is made of its text, so it may use nothing from outside. */
function work() {
  let names: string[] = [];
  self.onmessage = ({ data }: MessageEvent<string[] | { pattern: string; flags: string }>) => {
    if (Array.isArray(data)) return void (names = data);
    const regex = new RegExp(data.pattern, data.flags);
    const found = new Uint8Array(names.length);
    for (let at = 0; at < names.length; at++) {
      if (at % 64 === 0) self.postMessage(at);
      // In a merge of several builds, the build stands behind a name.
      if (regex.test(names[at]) || regex.test(names[at].replace(/ \(build [0-9a-f]+\)$/, ""))) found[at] = 1;
    }
    self.postMessage(found);
  };
}

const known = new WeakMap<Profile, Map<string, Matched>>();
/** How many answers have come, for those that wait for one. */
const answers = signal(0);
/** How many questions are open. */
export const matching = signal(0);
let running: { worker: Worker; profile: Profile } | null = null;
let last: Promise<unknown> = Promise.resolve();

function table(profile: Profile): Map<string, Matched> {
  let of = known.get(profile);
  if (!of) known.set(profile, (of = new Map()));
  return of;
}

/** The matches of a regular expression, as far as they are known. Readers are told when they are. */
export function knownMatches(profile: Profile, regex: string): Matched | undefined {
  const found = table(profile).get(regex);
  if (found === undefined) void answers.value;
  return found;
}

/** Finds what a regular expression matches, one after the other. */
export function findMatches(profile: Profile, regex: string): Promise<Matched> {
  const found = table(profile).get(regex);
  if (found !== undefined) return Promise.resolve(found);
  matching.value = matching.peek() + 1;
  const answer = last.then(async () => {
    try {
      const matched = table(profile).get(regex) ?? (await ask(profile, regex));
      table(profile).set(regex, matched);
      return matched;
    } finally {
      matching.value = matching.peek() - 1;
      answers.value = answers.peek() + 1;
    }
  });
  last = answer.catch(() => {});
  return answer;
}

function workerFor(profile: Profile): Worker {
  if (running?.profile === profile) return running.worker;
  running?.worker.terminate();
  const url = URL.createObjectURL(new Blob([`(${work})()`], { type: "text/javascript" }));
  const worker = new Worker(url);
  worker.postMessage(Array.from({ length: profile.functions }, (_, fn) => profile.fullName(fn)));
  running = { worker, profile };
  return worker;
}

function ask(profile: Profile, regex: string): Promise<Matched> {
  const worker = workerFor(profile);
  return new Promise((resolve, reject) => {
    let timer = 0;
    const end = () => {
      worker.terminate();
      running = null;
    };
    const wait = () => {
      clearTimeout(timer);
      timer = window.setTimeout(() => {
        end();
        resolve("slow");
      }, PATIENCE);
    };
    worker.onmessage = ({ data }: MessageEvent<number | Uint8Array>) => {
      // It goes on: names that match quickly may be many.
      if (typeof data === "number") return wait();
      clearTimeout(timer);
      resolve(data);
    };
    worker.onerror = (event) => {
      clearTimeout(timer);
      end();
      reject(new Error(event.message));
    };
    wait();
    worker.postMessage(readRegex(regex));
  });
}
