// Moments and parts of a run: how they are written, read, and marked on an axis.

import type { Span } from "./timeline.ts";
import { grouped } from "./numbers.ts";

/** A way to write moments: its unit, and how many digits follow the point. */
export interface Clock {
  unit: "ms" | "s" | "min";
  digits: number;
}

/** The clock that suits a run of a length, and a picture in which so many ns are seen. */
export function clockFor(lengthNs: number, seenNs = lengthNs): Clock {
  const fine = Math.max(0, Math.min(6, Math.ceil(-Math.log10(seenNs / 1e9 / 1000))));
  if (lengthNs < 1e9) return { unit: "ms", digits: Math.max(0, fine - 3) };
  if (lengthNs < 600e9) return { unit: "s", digits: Math.max(3, fine) };
  return { unit: "min", digits: fine };
}

/** A moment without its unit: `2.000`, `1:30:05`. */
export function moment(ns: number, clock: Clock): string {
  if (clock.unit === "ms") return grouped(ns / 1e6, clock.digits);
  if (clock.unit === "s") return grouped(ns / 1e9, clock.digits);
  const units = Math.round((ns / 1e9) * 10 ** clock.digits);
  const seconds = units / 10 ** clock.digits;
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const rest = (seconds % 60).toFixed(clock.digits).padStart(clock.digits ? clock.digits + 3 : 2, "0");
  return `${hours}:${String(minutes).padStart(2, "0")}:${rest}`;
}

/** `2.000–5.000 s`, `1360–1500 ms of each 2 s`. */
export function spanText(span: Span, clock: Clock): string {
  const unit = clock.unit === "min" ? "" : ` ${clock.unit}`;
  if (span.period === null) return `${moment(span.from, clock)}–${moment(span.to, clock)}${unit}`;
  const whole = (ns: number) => Number((ns / 1e6).toFixed(3));
  return `${whole(span.from)}–${whole(span.to)} ms of each ${Number((span.period / 1e9).toFixed(3))} s`;
}

/** A length for a sentence: `3.000 s`, `140 ms`, `51.1 min`; a short one in a shorter unit, which that of `like` decides. */
export function lengthText(ns: number, clock: Clock, like = ns): [number: string, unit: string] {
  // Rounded to nothing it would look like nothing.
  if (clock.unit === "min" && like > 0 && like < 60e9) return lengthText(ns, { unit: "s", digits: 3 }, like);
  if (clock.unit === "s" && like > 0 && like < 1e6) return [grouped(ns / 1e6, 3), "ms"];
  if (clock.unit === "min") return [grouped(ns / 60e9, 1), "min"];
  return clock.unit === "ms" ? [grouped(ns / 1e6, Math.max(clock.digits, 1)), "ms"] : [grouped(ns / 1e9, 3), "s"];
}

/** A span as it stands in the hash, in µs: `2000000-5000000`, with its period `1360000-1500000/2000000`. */
export function writeSpan(span: Span): string {
  const micro = (ns: number) => Math.round(ns / 1e3);
  return `${micro(span.from)}-${micro(span.to)}${span.period === null ? "" : `/${micro(span.period)}`}`;
}

/** The span of a text; null where it is none. */
export function readSpan(text: string): Span | null {
  const found = /^(\d{1,15})-(\d{1,15})(?:\/(\d{1,15}))?$/.exec(text);
  if (!found) return null;
  const [from, to, period] = found.slice(1).map((part) => (part === undefined ? null : Number(part) * 1e3)) as [number, number, number | null];
  if (to <= from || (period !== null && (period <= 0 || to > period))) return null;
  return { from, to, period };
}

/** The least step of 1, 2 or 5 (for minutes of whole parts of an hour) that is at least so many ns. */
export function tickStep(leastNs: number, clock: Clock): number {
  if (clock.unit === "min") {
    const known = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400].find((seconds) => seconds * 1e9 >= leastNs);
    if (known && leastNs > 0.5e9) return known * 1e9;
  }
  const power = 10 ** Math.floor(Math.log10(leastNs));
  return ([1, 2, 5, 10].find((step) => step * power >= leastNs * (1 - 1e-9)) ?? 10) * power;
}

/** The text of a tick; `step` says how many digits it needs. */
export function tickText(ns: number, step: number, clock: Clock): string {
  if (clock.unit === "min") {
    const text = moment(ns, { unit: "min", digits: step >= 1e9 ? 0 : Math.ceil(-Math.log10(step / 1e9)) });
    return step >= 60e9 ? text.replace(/:00$/, "") : text;
  }
  const scale = clock.unit === "ms" ? 1e6 : 1e9;
  return grouped(ns / scale, Math.max(0, Math.ceil(-Math.log10(step / scale) - 1e-9)));
}
