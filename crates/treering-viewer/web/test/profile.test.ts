import assert from "node:assert/strict";
import test from "node:test";
import { type Data, type Head, Profile } from "../src/profile.ts";

/** A profile of functions, each with its name, its module, its file and its line. */
function profileOf(functions: [name: string, module: string, file: string, line: number][]): Profile {
  const strings = [...new Set(["", ...functions.flatMap(([name, module, file]) => [name, module, file])])];
  const column = (at: 0 | 1 | 2) => Uint16Array.from(functions, (one) => strings.indexOf(one[at]));
  const none = new Uint8Array(functions.length);
  const table = { name: column(0), module: column(1), file: column(2), line: Uint16Array.from(functions, (one) => one[3]), kind: none, category: none, inlined: none };
  return new Profile({} as Head, { strings, functions: table, points: [] as Data["points"] } as Data);
}

const SAME_NAMES: [string, string, string, number][] = [
  ["", "", "", 0],
  ["main", "/bin/prog", "/src/main.c", 1],
  ["helper", "/bin/prog", "/src/a.c", 10],
  ["helper", "/bin/prog", "/src/b.c", 20],
  ["helper", "/lib/other.so", "/src/a.c", 10],
  ["(anonymous)", "", "/src/page.js", 3],
  ["(anonymous)", "", "/src/page.js", 30],
  ["(anonymous)", "", "/other/page.js", 30],
];

// The second of two static functions of one name was lost when a page was opened again, and F kept the stacks of the first.
test("a key finds its function, however many have its name", () => {
  const profile = profileOf(SAME_NAMES);
  for (let fn = 0; fn < SAME_NAMES.length; fn++) assert.equal(profile.find(profile.key(fn)), fn, profile.key(fn));
  assert.equal(profile.key(1), "main");
  assert.equal(profile.key(3), "helper\tprog\tb.c:20");
  // A function of another build is the one of its name that has most in common.
  assert.equal(profile.find("helper\tother.so\ta.c:11"), 4);
  assert.equal(profile.find("helper\tgone.so"), 2);
  assert.equal(profile.find("gone"), null);
});

test("functions that read alike have their places", () => {
  const profile = profileOf(SAME_NAMES);
  const shown = SAME_NAMES.map((_, fn) => profile.name(fn)).map((name) => name.qualifier + name.last + name.tail);
  assert.deepEqual(shown.slice(1, 7), ["main", "helper [a.c:10]", "helper [b.c:20]", "helper [other.so]", "(anonymous) [page.js:3]", "(anonymous) [page.js:30]"]);
});
