// Colours of rectangles and graph nodes, read from the style's tokens.

import { CATEGORIES } from "../profile.ts";
import { route } from "../route.ts";
import { theProfile } from "../state.ts";

export interface Palette {
  bg: string;
  ink: string;
  accent: string;
  kinds: string[];
  ramp: string[];
  same: string;
  middle: string;
  more: string;
  less: string;
}

let cached: { theme: string; palette: Palette } | null = null;

/** The tokens of the present theme. */
export function palette(): Palette {
  const theme = document.documentElement.dataset.theme ?? "";
  if (cached?.theme === theme) return cached.palette;
  const style = getComputedStyle(document.documentElement);
  const token = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const palette = {
    bg: token("bg"), ink: token("ink"), accent: token("accent"),
    kinds: CATEGORIES.map((kind) => token(`k-${kind}`)),
    ramp: [0, 1, 2, 3, 4, 5].map((at) => token(`q${at}`)),
    same: token("same0"), middle: token("div0"), more: token("more"), less: token("less"),
  };
  cached = { theme, palette };
  return palette;
}

/** The step of the cost ramp: limits 0.5, 1.5, 3, 6 and 10 % of the run. */
export function rampStep(share: number): number {
  return [0.005, 0.015, 0.03, 0.06, 0.1].filter((limit) => share >= limit).length;
}

function channels(colour: string): [number, number, number] {
  const hex = colour.replace("#", "");
  return [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)) as [number, number, number];
}

/** A colour between two. */
export function mix(from: string, to: string, part: number): string {
  const [a, b] = [channels(from), channels(to)];
  return `#${a.map((value, at) => Math.round(value + (b[at] - value) * part).toString(16).padStart(2, "0")).join("")}`;
}

function luminance(colour: string): number {
  const [r, g, b] = channels(colour).map((value) => {
    const part = value / 255;
    return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

const inks = new Map<string, { ink: string; clear: boolean }>();

/** The ink that reads best on a fill, and whether it leaves room for a paler one. */
export function inkOn(fill: string): { ink: string; clear: boolean } {
  let known = inks.get(fill);
  if (known) return known;
  const contrast = (ink: string) => {
    const [a, b] = [luminance(ink), luminance(fill)].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  };
  const dark = "#1d1b18";
  const ink = contrast(dark) >= 9 ? dark : contrast("#000000") >= contrast("#ffffff") ? "#000000" : "#ffffff";
  known = { ink, clear: contrast(ink) >= 7 };
  inks.set(fill, known);
  return known;
}

/** The fill of a function's rectangle outside of differences. */
export function fill(fn: number, inlined: boolean, selfCost: number, whole: number, hues: Map<string, number> | null): string {
  const colours = palette();
  switch (route.value.colour) {
    case "self":
      return colours.ramp[rampStep(whole ? selfCost / whole : 0)];
    case "module": {
      const hue = hues?.get(theProfile().module(fn));
      return hue === undefined ? colours.same : colours.kinds[hue];
    }
    default:
      return colours.kinds[inlined ? 4 : theProfile().data.functions.category[fn]];
  }
}

/** The fill for a change, as a part of the base run: grey inside the error. */
export function changeFill(change: number, sure: boolean): string {
  const colours = palette();
  if (!sure) return colours.same;
  if (change === 0) return colours.middle;
  const part = Math.min(0.92, 0.25 + 0.75 * Math.sqrt(Math.abs(change) / 0.2));
  return mix(colours.middle, change > 0 ? colours.more : colours.less, part);
}

/** The modules that cost most, each with one of the five hues. */
export function moduleHues(self: Float64Array): Map<string, number> {
  const costs = new Map<string, number>();
  self.forEach((cost, fn) => {
    const module = theProfile().module(fn);
    if (cost > 0) costs.set(module, (costs.get(module) ?? 0) + cost);
  });
  const order = [...costs].sort((a, b) => b[1] - a[1]).slice(0, 5);
  return new Map(order.map(([module], at) => [module, at]));
}
