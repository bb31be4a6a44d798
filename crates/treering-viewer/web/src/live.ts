// Follows a running program: asks the page's own server for what is new, and shows that in the place of what was.

import { signal } from "@preact/signals";
import type { MergedOf } from "./model/merged.ts";
import { Inflater, readSlabs } from "./model/slabs.ts";
import { Profile, type Head } from "./profile.ts";
import { prepare, put, type Version } from "./asking.ts";
import { route } from "./route.ts";
import { busy, theProfile } from "./state.ts";
import { forgetNames } from "./ui/parts.tsx";
import { forgetTrees, inOtherVersion } from "./ui/trees.ts";

/** The server's answer. The page is missing where nothing is new. */
interface Told {
  version: number;
  state: "running" | "ended" | "gone" | "failed";
  problem?: string;
  page?: { head: Head; data: string; tree: string; rest: string; time: string; code: string };
}

/** The fate of the program; null in a page that follows none. */
export const live = signal<{ state: Told["state"] | "lost"; problem: string | null } | null>(null);

let version = 0;

/** Starts to follow, if the page came from a server that does. */
export function followServer() {
  const block = document.getElementById("live");
  if (!block) return;
  const given: { version: number; interval: number } = JSON.parse(block.textContent!);
  version = given.version;
  live.value = { state: "running", problem: null };
  (window as any).treering.live = () => ({ ...live.peek(), version });
  void follow(given.interval);
}

async function follow(interval: number) {
  while (live.peek()!.state !== "ended" && live.peek()!.state !== "gone") {
    await passed(interval);
    await seen();
    let told: Told;
    try {
      const answer = await fetch(`data?after=${version}`, { cache: "no-store" });
      if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
      told = await answer.json();
    } catch (error) {
      live.value = { state: "lost", problem: (error as Error).message };
      continue;
    }
    try {
      if (told.page) await show(told.page);
      version = told.version;
      live.value = { state: told.state, problem: told.problem ?? null };
    } catch (error) {
      live.value = { state: "failed", problem: (error as Error).message };
    }
  }
}

function passed(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** Waits while nobody sees the page. */
function seen(): Promise<void> {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => document.addEventListener("visibilitychange", () => resolve(), { once: true }));
}

function inflated(text: string): Promise<ArrayBuffer> {
  const inflater = new Inflater();
  inflater.add(text, true);
  return inflater.whole;
}

async function show(page: NonNullable<Told["page"]>) {
  const [data, code] = await Promise.all([inflated(page.data), inflated(page.code)]);
  const profile = new Profile(page.head, readSlabs(data));
  profile.addCode(code);
  for (;;) {
    const next = await prepare(profile, page);
    // A version that cannot take the place of the other begins anew; the hash says what is shown.
    if (!next) return location.reload();
    const also = await trees(next);
    while (busy.peek() > 0) await passed(20);
    if (put(next, also)) return;
    // Something else is shown by now.
    next.client.end();
  }
}

/** The function that puts the trees of a version in their places. */
async function trees(next: Version): Promise<() => void> {
  if (!numbersAlike(theProfile(), next.profile)) {
    return () => {
      forgetNames();
      forgetTrees();
    };
  }
  const { metric } = route.peek();
  return inOtherVersion((request) => next.client.ask<MergedOf>({ op: "merged", metric, request }));
}

/** Whether all functions of one version have the same numbers in the next. */
function numbersAlike(one: Profile, next: Profile): boolean {
  const metrics = (profile: Profile) => profile.head.metrics.map((metric) => metric.name).join("\n");
  if (one.functions > next.functions || metrics(one) !== metrics(next)) return false;
  for (let fn = 0; fn < one.functions; fn++) {
    if (one.fullName(fn) !== next.fullName(fn) || one.module(fn) !== next.module(fn)) return false;
  }
  return true;
}
