// Short names. A name has a qualifier, a last component, which says most, and a tail of arguments.

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
  [/\{\{([a-z_]+)\}\}/g, "{$1}"],
  [/::h[0-9a-f]{16}$/, ""],
  [/\.llvm\.\d+$/, ""],
  [/ ?\[clone [^\]]*\]/g, ""],
];

/** Splits a name. `keepArguments` leaves them as they are, for names that would read alike. */
export function splitName(full: string, keepArguments = false): Name {
  let text = full;
  for (const [pattern, replacement] of ALIASES) text = text.replace(pattern, replacement);
  // File paths, tasks and sentences have no parts.
  if (/\s/.test(text) && !/[(<]/.test(text)) return { qualifier: "", last: text, tail: "", full };
  const trait = /^<(.+) as .+?>::(.+)$/.exec(text);
  if (trait && balanced(trait[1])) {
    const inner = splitName(trait[1]);
    text = `${inner.last}${inner.tail}::${trait[2]}`;
  }
  const shape = scan(text);
  const start = shape.separator < 0 ? 0 : shape.separator;
  const head = text.slice(0, start);
  const rest = text.slice(start);
  const open = shape.tail < 0 ? rest.length : shape.tail - start;
  const last = rest.slice(0, open);
  const tail = rest.slice(open);
  return {
    qualifier: shortenArguments(head),
    last,
    tail: keepArguments ? tail : shortenArguments(tail),
    full,
  };
}

/** Where the last component starts (after the last top-level `::`), and where its tail does. */
function scan(text: string): { separator: number; tail: number } {
  let depth = 0;
  let separator = -1;
  let tail = -1;
  for (let at = 0; at < text.length; at++) {
    if (text.startsWith("operator", at) && depth === 0) {
      const operator = /^operator(\(\)|<=>|<<=?|>>=?|->\*?|<=?|>=?|[-+*/%^&|~!=,\[\]]+| ?(new|delete)(\[\])?|"" ?\w+|)/.exec(text.slice(at));
      if (operator) {
        at += operator[0].length - 1;
        continue;
      }
    }
    const sign = text[at];
    if (sign === "(" && text.startsWith("(anonymous", at)) {
      at = text.indexOf(")", at);
      if (at < 0) break;
      continue;
    }
    if (sign === "{") depth++;
    else if (sign === "}") depth--;
    else if (sign === "<" || sign === "(" || sign === "[") {
      if (depth === 0 && at > 0 && tail < 0 && sign !== "[") tail = at;
      depth++;
    } else if (sign === ">" || sign === ")" || sign === "]") {
      if (text[at - 1] === "-" && sign === ">") continue;
      depth--;
    } else if (depth === 0 && sign === ":" && text[at + 1] === ":" && at > 0) {
      separator = at + 2;
      tail = -1;
      at++;
    }
  }
  return { separator: separator >= text.length ? -1 : separator, tail };
}

function balanced(text: string): boolean {
  let depth = 0;
  for (const sign of text) {
    if (sign === "<") depth++;
    else if (sign === ">" && --depth < 0) return false;
  }
  return depth === 0;
}

const ANONYMOUS = "(anonymous namespace)";

/** `<…>` for template arguments, `(…)` for arguments, `()` for none; everything else stays. */
export function shortenArguments(text: string): string {
  let short = "";
  let depth = 0;
  let open = "";
  let inside = "";
  for (let at = 0; at < text.length; at++) {
    const sign = text[at];
    if (depth === 0 && text.startsWith(ANONYMOUS, at)) {
      short += ANONYMOUS;
      at += ANONYMOUS.length - 1;
    } else if (depth === 0 && (sign === "<" || sign === "(")) {
      open = sign;
      depth = 1;
      inside = "";
    } else if (depth > 0) {
      if (sign === "<" || sign === "(") depth++;
      else if (sign === ">" || sign === ")") depth--;
      if (depth > 0) inside += sign;
      else short += inside.trim() ? `${open}…${sign}` : `${open}${sign}`;
    } else {
      short += sign;
    }
  }
  return depth > 0 ? short + open + inside : short;
}

/**
 * A number that is the same for names that read alike when they are short: of what stands outside of
 * all brackets. Others may have the same number by chance.
 */
export function bareHash(full: string): number {
  // `<T as Trait>::f` reads as `T::f`.
  if (full.startsWith("<") && / as /.test(full)) {
    const { qualifier, last, tail } = splitName(full);
    return hashOutside(qualifier + last + tail);
  }
  return hashOutside(full);
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

/** What is longer fits nowhere, and would take long to measure. */
const LONGEST = 2000;

/** How wide a text is, in any unit. */
export type Measure = (text: string) => number;

/** What of a name fits, in the order of the design: arguments, leading qualifiers, the middle of the last part. */
export function fit(name: Name, width: number, measure: Measure): Name {
  const fits = (candidate: Name) => {
    const text = candidate.qualifier + candidate.last + candidate.tail;
    return text.length <= LONGEST && measure(text) <= width;
  };
  if (fits(name)) return name;
  let candidate: Name = { ...name, tail: shortenArguments(name.tail) };
  if (fits(candidate)) return candidate;
  const parts = topLevelParts(name.qualifier.slice(-LONGEST));
  while (parts.length > 1) {
    parts.shift();
    const shorter = { ...candidate, qualifier: `…${parts.join("::")}::` };
    if (fits(shorter)) return shorter;
  }
  // The class nearest to the name says more than its arguments.
  const nearest = topLevelParts(name.qualifier.slice(-LONGEST)).pop();
  if (nearest) {
    const shorter = { ...candidate, qualifier: `${nearest}::` === name.qualifier ? name.qualifier : `…${nearest}::`, tail: "" };
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

function topLevelParts(qualifier: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let from = 0;
  for (let at = 0; at < qualifier.length; at++) {
    const sign = qualifier[at];
    if ("<({[".includes(sign)) depth++;
    else if (">)}]".includes(sign)) depth--;
    else if (depth === 0 && sign === ":" && qualifier[at + 1] === ":") {
      parts.push(qualifier.slice(from, at));
      from = at + 2;
      at++;
    }
  }
  return parts;
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
