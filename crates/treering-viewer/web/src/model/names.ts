// Short names. What parts a name is told in `split.ts`. A name has a qualifier, a last component, which says most, and a tail of arguments.

import { brackets, isName, parts } from "./split.ts";

export interface Name {
  /** Namespaces, classes, crates, with the separator at the end. */
  qualifier: string;
  last: string;
  /** Template arguments and arguments, shortened to `<…>` and `(…)`. */
  tail: string;
  full: string;
}

const ALIASES: [RegExp, string][] = [
  [/\bstd::__cxx11::/g, "std::"],
  [/\bstd::__1::/g, "std::"],
  [/\bstd::basic_string<char(, std::char_traits<char>)?(, std::allocator<char> ?)?>/g, "std::string"],
  [/\bstd::basic_string_view<char(, std::char_traits<char> ?)?>/g, "std::string_view"],
  [/\{\{([a-z_.]{1,40})\}\}/g, "{$1}"],
  [/\[abi:\w{1,40}\]/g, ""],
  [/::h[0-9a-f]{16}$/, ""],
  [/\.llvm\.\d+$/, ""],
];

/** A name without what only its compiler means by it. */
function plain(full: string): string {
  const clone = full.indexOf("[clone ");
  let text = clone > 0 && full.endsWith("]") ? full.slice(0, clone).trimEnd() : full;
  for (const [pattern, replacement] of ALIASES) text = text.replace(pattern, replacement);
  // `<T as Trait>::f` reads as `T::f`.
  if (text.startsWith("<")) {
    const close = brackets(text)[0];
    const as = close > 0 && text.startsWith("::", close + 1) ? text.slice(0, close).indexOf(" as ") : -1;
    if (as > 0 && isBalanced(text.slice(1, as))) {
      const inner = parts(text.slice(1, as));
      text = `${inner.last}${shortenArguments(inner.tail)}${text.slice(close + 1)}`;
    }
  }
  return text;
}

function isBalanced(text: string): boolean {
  const pairs = brackets(text);
  return [...text].every((sign, at) => !"<([{".includes(sign) || pairs[at] > 0);
}

/** A place behind a name, as py-spy and others write it: `main (app.py:3)`. */
const PLACE = / \((?:[^()\s][^()]*\.[A-Za-z]\w{0,9}(?::\d+){0,2}|[^()]*:\d+|line \d+)\)$/;

/** Splits a name. `keepArguments` leaves them as they are, for names that would read alike. */
export function splitName(full: string, keepArguments = false): Name {
  const text = plain(full);
  const place = text.length < 4000 ? (PLACE.exec(text)?.[0] ?? "") : "";
  const { qualifier, last, tail } = parts(text.slice(0, text.length - place.length));
  return { qualifier: shortenArguments(qualifier), last, tail: (keepArguments ? tail : shortenArguments(tail)) + place, full };
}

const ANONYMOUS = "(anonymous namespace)";

/** `<…>` for template arguments, `(…)` for arguments, `()` for none; what is a part of the name stays. */
export function shortenArguments(text: string): string {
  const pairs = brackets(text);
  let short = "";
  for (let at = 0; at < text.length; at++) {
    const sign = text[at];
    const close = pairs[at];
    const stays = sign === "<" ? text[at - 1] === "." || text.startsWith("<impl ", at) : sign === "(" && at > 0 && isName(text, at, -1);
    if (!close || sign === "[" || sign === "{" || stays || text.startsWith(ANONYMOUS, at)) {
      short += close ? text.slice(at, close + 1) : sign;
    } else {
      short += text.slice(at + 1, close).trim() ? `${sign}…${text[close]}` : sign + text[close];
    }
    if (close) at = close;
  }
  return short;
}

/**
 * A number that is the same for names that read alike when they are short: of what stands outside of
 * all brackets. Others may have the same number by chance.
 */
export function bareHash(full: string): number {
  // `<T as Trait>::f` reads as `T::f`, and what a function returns is not read at all.
  if (full.startsWith("<") || hasBlankOutside(full)) {
    const { qualifier, last, tail } = splitName(full);
    return hashOutside(qualifier + last + tail);
  }
  return hashOutside(full);
}

/** Whether a name has blanks outside of all brackets, before them. */
function hasBlankOutside(full: string): boolean {
  let depth = 0;
  for (let at = 0; at < full.length; at++) {
    const sign = full.charCodeAt(at);
    if (sign === 60 || sign === 40 || sign === 91) depth++;
    else if (sign === 62 || sign === 41 || sign === 93) depth--;
    else if (sign === 32 && depth <= 0) return true;
  }
  return false;
}

/** A hash of the signs of a name outside of all brackets. */
function hashOutside(full: string): number {
  let end = full.length;
  if (end > 19 && full.startsWith("::h", end - 19)) end -= 19;
  const llvm = full.indexOf(".llvm.");
  if (llvm >= 0) end = Math.min(end, llvm);
  let depth = 0;
  let hash = 0x811c9dc5;
  for (let at = 0; at < end; at++) {
    const sign = full.charCodeAt(at);
    // < ( [ and their ends
    if (sign === 60 || sign === 40 || sign === 91) depth++;
    else if (sign === 62 || sign === 41 || sign === 93) depth--;
    else if (sign === 95 && (full.startsWith("__cxx11::", at) || full.startsWith("__1::", at))) at += full[at + 2] === "1" ? 4 : 8;
    // Blanks and braces come and go; operators with brackets in their names end below 0.
    else if (depth <= 0 && sign !== 32 && sign !== 123 && sign !== 125) hash = Math.imul(hash ^ sign, 0x01000193);
  }
  return hash >>> 0;
}

/** Longer names fit nowhere, and would take long to measure. */
const LONGEST = 2000;

/** How wide a text is, in any unit. */
export type Measure = (text: string) => number;

/** The part of a name that fits, in the order of the design: arguments, leading qualifiers, the middle of the last part. */
export function fit(name: Name, width: number, measure: Measure): Name {
  const fits = (candidate: Name) => {
    const text = candidate.qualifier + candidate.last + candidate.tail;
    return text.length <= LONGEST && measure(text) <= width;
  };
  if (fits(name)) return name;
  // A place behind it says less than the name.
  const place = name.tail.lastIndexOf(" (");
  const [bare, behind] = place >= 0 && name.tail.endsWith(")") ? [name.tail.slice(0, place), name.tail.slice(place)] : [name.tail, ""];
  let candidate: Name = { ...name, tail: shortenArguments(bare) + behind };
  if (fits(candidate)) return candidate;
  candidate = { ...candidate, tail: shortenArguments(bare) };
  if (fits(candidate)) return candidate;
  const scopes = scopesOf(name.qualifier.slice(-LONGEST));
  while (scopes.length > 1) {
    scopes.shift();
    const shorter = { ...candidate, qualifier: `…${scopes.join("")}` };
    if (fits(shorter)) return shorter;
  }
  // The class nearest to the name says more than its arguments.
  const nearest = scopes.pop();
  if (nearest) {
    const shorter = { ...candidate, qualifier: nearest === name.qualifier ? nearest : `…${nearest}`, tail: "" };
    if (fits(shorter)) return shorter;
  }
  if (name.qualifier) {
    candidate = { ...candidate, qualifier: "…" };
    if (fits(candidate)) return candidate;
    candidate = { ...candidate, qualifier: "" };
    if (fits(candidate)) return candidate;
  }
  candidate = { ...candidate, tail: "" };
  if (fits(candidate)) return candidate;
  return { ...candidate, last: cutMiddle(name.last, width, measure) };
}

/** The scopes of a qualifier, each with the separator behind it. */
function scopesOf(qualifier: string): string[] {
  const pairs = brackets(qualifier);
  const scopes: string[] = [];
  let from = 0;
  for (let at = 0; at < qualifier.length; at++) {
    const sign = qualifier[at];
    if (pairs[at]) at = pairs[at];
    else if (sign === "." || sign === "/" || sign === "#" || sign === " " || (sign === ":" && qualifier[at + 1] !== ":")) {
      scopes.push(qualifier.slice(from, at + 1));
      from = at + 1;
    }
  }
  return scopes;
}

/** `__memcpy_av…gned_erms`. */
export function cutMiddle(text: string, width: number, measure: Measure): string {
  // Of a very long one only what could be seen is looked at.
  const signs = text.length > 2 * LONGEST ? [...text.slice(0, LONGEST), ...text.slice(-LONGEST)] : [...text];
  let low = 0;
  let high = signs.length;
  const cut = (kept: number) => {
    const front = Math.ceil(kept / 2);
    return `${signs.slice(0, front).join("")}…${signs.slice(signs.length - (kept - front)).join("")}`;
  };
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (measure(cut(middle)) <= width) low = middle;
    else high = middle - 1;
  }
  return low < 2 ? "" : cut(low);
}
