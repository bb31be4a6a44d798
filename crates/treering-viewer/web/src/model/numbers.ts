// How numbers are written.

export type Unit = "nanoseconds" | "bytes" | "count";

/** A column's unit: what its numbers are divided by, how many digits follow the point, its head. */
export interface Scale {
  divisor: number;
  digits: number;
  /** The text behind the column's name in the head. */
  suffix: string;
}

/** The scale that suits the largest number of a column. */
export function scaleFor(unit: Unit, largest: number, narrow = false): Scale {
  const size = Math.abs(largest);
  if (unit === "nanoseconds") {
    if (size >= 1e8) return { divisor: 1e9, digits: 3, suffix: "s" };
    if (size >= 1e5) return { divisor: 1e6, digits: 3, suffix: "ms" };
    if (size >= 1e2) return { divisor: 1e3, digits: 3, suffix: "µs" };
    return { divisor: 1, digits: 0, suffix: "ns" };
  }
  if (narrow && size >= 1e10) return { divisor: 1e6, digits: 0, suffix: "M" };
  if (narrow && size >= 1e7) return { divisor: 1e3, digits: 0, suffix: "k" };
  return { divisor: 1, digits: 0, suffix: unit === "bytes" ? "B" : "" };
}

/** The percents of a run. */
export const PERCENT: Scale = { divisor: 0.01, digits: 1, suffix: "%" };

/** Exact zero is `0`; more than nothing but below the last digit is `0.0`, or `<1` where there are no digits. */
export function format(value: number, scale: Scale): string {
  if (value === 0) return "0";
  const shown = value / scale.divisor;
  return scale.digits === 0 && shown > 0 && shown < 0.5 ? "<1" : grouped(shown, scale.digits);
}

/** With its sign, always; a minus sign rather than a hyphen. */
export function signed(value: number, scale: Scale): string {
  if (value === 0) return "0";
  return (value < 0 ? "−" : "+") + format(Math.abs(value), scale);
}

/** Commas between thousands. */
export function grouped(value: number, digits = 0): string {
  // Setting up the browser's own formatter takes longer than a frame.
  const text = Math.abs(value).toFixed(digits);
  if (!Number.isFinite(value) || text.includes("e")) return String(value);
  const sign = value < 0 && /[1-9]/.test(text) ? "−" : "";
  const point = digits ? text.length - digits - 1 : text.length;
  if (point <= 3) return sign + text;
  let whole = text.slice(0, point);
  let groups = "";
  for (; whole.length > 3; whole = whole.slice(0, -3)) groups = `,${whole.slice(-3)}${groups}`;
  return sign + whole + groups + text.slice(point);
}

/** A time for a sentence: `3.128 s`. */
export function duration(nanoseconds: number): string {
  const scale = scaleFor("nanoseconds", nanoseconds);
  return `${format(nanoseconds, scale)} ${scale.suffix}`;
}

/** A cost for a sentence, in full. */
export function amount(unit: Unit, value: number): string {
  if (unit === "nanoseconds") return duration(value);
  return unit === "bytes" ? `${grouped(value)} B` : grouped(value);
}

/** A percentage for a sentence: `39.6 %`. */
export function percent(share: number): string {
  return `${format(share, PERCENT)} %`;
}

/** `9.7 MB` for axes. */
export function axisBytes(value: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (value >= 1000 && at < units.length - 1) {
    value /= 1000;
    at++;
  }
  return `${Number(value.toPrecision(3))} ${units[at]}`;
}

/** `1 sample`, `2 samples`. */
export function plural(count: number, noun: string): string {
  return `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** What the nanoseconds of a metric are: `CPU` of those that count processor time, else `time`, such as that of a wall clock. */
export function timeWord(metric: string): "CPU" | "time" {
  return /^(cpu|task-clock|user|system)/.test(metric) ? "CPU" : "time";
}
