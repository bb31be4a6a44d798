// The state that the page shows: the profile, and the numbers that were worked out of it.

import { signal } from "@preact/signals";
import type { Analysis } from "./model/analysis.ts";
import type { Course } from "./model/timeline.ts";
import { CATEGORIES, type Profile } from "./profile.ts";

let profile: Profile;

export const loaded = signal(false);
export const failure = signal<string | null>(null);
export const analysis = signal<Analysis | null>(null);
export const secondAnalysis = signal<Analysis | null>(null);
export const busy = signal(0);
/** Grows whenever the worker's tree changes; merged trees of older ones are stale. */
export const generation = signal(0);
/** The subject of the strip: hovered or focused. */
export const hovered = signal<{ fn: number; text: string } | null>(null);
/** A request that failed. */
export const notice = signal<string | null>(null);
export const helpOpen = signal(false);
export const threadsOpen = signal(false);
/** The moments of the run; null until they are read, and where they are not known. */
export const course = signal<Course | null>(null);
/** The function that a menu is open for, and where; `back` has the focus again when it closes. */
export const menu = signal<{ fn: number; x: number; y: number; back: HTMLElement | null } | null>(null);

export function theProfile(): Profile {
  return profile;
}

/** Puts a profile in the place of the one before. */
export function setProfile(given: Profile) {
  profile = given;
}

export function failed(error: Error) {
  failure.value = `the profile cannot be worked out: ${error.message}`;
  loaded.value = true;
}

/** Whether a function is the program's own: its code, a script, or what is inlined from its own files. */
export function isOwn(fn: number): boolean {
  return ["own", "script"].includes(CATEGORIES[theProfile().data.functions.category[fn]]);
}

export function hasTree(): boolean {
  return theProfile().head.shape === "tree";
}
