// What the search box means: text without arguments, /regex/, module:, file:, self>1, total>5.

export interface Searchable {
  /** The name as it is shown, without arguments. */
  short: string;
  full: string;
  module: string;
  file: string;
}

/** Finds functions. `shares` gives self and total of a function as percents of the run. */
export interface Query {
  text: string;
  /** Why the text cannot be used. */
  problem: string | null;
  matches(fn: Searchable, shares: () => { self: number; total: number }): boolean;
}

type Test = Query["matches"];

/** Reads a search; several words must all match. */
export function parseQuery(text: string): Query {
  const tests: Test[] = [];
  let problem: string | null = null;
  for (const word of words(text)) {
    const test = readWord(word);
    if (typeof test === "string") problem = test;
    else tests.push(test);
  }
  return { text, problem, matches: (fn, shares) => !problem && tests.every((test) => test(fn, shares)) };
}

function words(text: string): string[] {
  const trimmed = text.trim();
  if (/^\/.+\/i?$/.test(trimmed)) return [trimmed];
  return trimmed.split(/\s+/).filter(Boolean);
}

function readWord(word: string): Test | string {
  const regex = /^\/(.+)\/(i?)$/.exec(word);
  if (regex) {
    try {
      const pattern = new RegExp(regex[1], regex[2]);
      return (fn) => pattern.test(fn.full);
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
