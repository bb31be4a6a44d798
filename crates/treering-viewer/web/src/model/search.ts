// The language of the search box: text without arguments, /regex/, module:, file:, thread:, self>1, total>5.

export interface Searchable {
  /** The name as it is shown, without arguments. */
  short: string;
  full: string;
  module: string;
  file: string;
  /** Whether a regular expression of the search, as it was written, matches the full name. */
  regex(written: string): boolean;
}

/** Finds functions. `shares` gives self and total of a function as percents of the run. */
export interface Query {
  text: string;
  /** Why the text cannot be used. */
  problem: string | null;
  /** Its regular expressions, as they were written. */
  regexes: string[];
  /** The names of threads that it asks for, which are no part of what functions are. */
  threads: string[];
  /** The search without them. */
  rest: string;
  matches(fn: Searchable, shares: () => { self: number; total: number }): boolean;
}

type Test = Query["matches"];

/** Reads a search; several words must all match. */
export function parseQuery(text: string): Query {
  const tests: Test[] = [];
  const regexes: string[] = [];
  let problem: string | null = null;
  const threads: string[] = [];
  const others: string[] = [];
  for (const word of words(text)) {
    const thread = /^thread:(.+)$/.exec(word);
    if (thread) {
      threads.push(thread[1].toLowerCase());
      continue;
    }
    others.push(word);
    if (REGEX.test(word)) regexes.push(word);
    const test = readWord(word);
    if (typeof test === "string") problem = test;
    else tests.push(test);
  }
  // A search for threads alone matches no function.
  const matches: Test = (fn, shares) => !problem && tests.length > 0 && tests.every((test) => test(fn, shares));
  return { text, problem, regexes: problem ? [] : regexes, threads, rest: others.join(" "), matches };
}

const REGEX = /^\/.+\/i?$/;

/** The parts of `/regex/i`. */
export function readRegex(written: string): { pattern: string; flags: string } {
  const end = written.lastIndexOf("/");
  return { pattern: written.slice(1, end), flags: written.slice(end + 1) };
}

function words(text: string): string[] {
  const trimmed = text.trim();
  if (REGEX.test(trimmed)) return [trimmed];
  return trimmed.split(/\s+/).filter(Boolean);
}

function readWord(word: string): Test | string {
  if (REGEX.test(word)) {
    try {
      const { pattern, flags } = readRegex(word);
      new RegExp(pattern, flags);
      return (fn) => fn.regex(word);
    } catch (error) {
      return `not a regular expression: ${(error as Error).message}`;
    }
  }
  const field = /^(module|file):(.*)$/.exec(word);
  if (field) {
    const wanted = field[2].toLowerCase();
    return (fn) => fn[field[1] as "module" | "file"].toLowerCase().includes(wanted);
  }
  const limit = /^(self|total)([<>])([\d.]+)%?$/.exec(word);
  if (limit) {
    const bound = Number(limit[3]);
    return (_, shares) => {
      const share = shares()[limit[1] as "self" | "total"];
      return limit[2] === ">" ? share > bound : share < bound;
    };
  }
  const wanted = word.toLowerCase();
  return (fn) => fn.short.toLowerCase().includes(wanted) || (word.includes("(") && fn.full.toLowerCase().includes(wanted));
}
