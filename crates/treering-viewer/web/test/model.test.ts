import assert from "node:assert/strict";
import test from "node:test";
import { findArcs, walk } from "../src/model/walk.ts";
import { findCycles } from "../src/model/cycles.ts";
import { callees, callers, type Request } from "../src/model/merged.ts";
import { firstFork } from "../src/model/fork.ts";
import { carry, transform } from "../src/model/transform.ts";
import { withCounts } from "../src/model/counted.ts";
import { lineCalls, ownLines } from "../src/model/lines.ts";
import { wilson } from "../src/model/interval.ts";
import { parseQuery, readRegex } from "../src/model/search.ts";
import { bareHash, fit, splitName } from "../src/model/names.ts";
import { format, PERCENT, percent, scaleFor, signed, timeWord } from "../src/model/numbers.ts";
import { totals } from "../src/model/tree.ts";
import NAMES from "../../../../fixtures/names/parts.json";
import { allVisible, visible } from "../src/model/visible.ts";
import { sketch } from "./trees.ts";

const RECURSIVE = `
main 1
  f 2
    g 3
      f 4
        g 5
  g 6
`;

function measured(text: string) {
  const { tree, costs, names } = sketch(text);
  const arcs = findArcs(tree, names.length);
  return { tree, costs, names, arcs, tally: walk(tree, arcs, costs, names.length) };
}

test("totals count outermost activations only", () => {
  const { names, tally } = measured(RECURSIVE);
  const of = (name: string) => [tally.self[names.indexOf(name)], tally.total[names.indexOf(name)]];
  assert.deepEqual(of("main"), [1, 21]);
  assert.deepEqual(of("f"), [6, 14]);
  assert.deepEqual(of("g"), [14, 18]);
});

test("callers add up to the total, self and callees too, whatever the recursion", () => {
  for (let seed = 1; seed < 60; seed++) {
    const { names, arcs, tally, costs } = measured(randomTree(seed));
    const whole = costs.reduce((a, b) => a + b, 0);
    assert.equal(tally.self.reduce((a, b) => a + b, 0), whole);
    for (let fn = 1; fn < names.length; fn++) {
      let [above, aboveSelf, below, belowSelf] = [0, 0, 0, 0];
      arcs.callee.forEach((callee, arc) => {
        if (callee === fn) {
          above += tally.fromTotal[arc];
          aboveSelf += tally.fromSelf[arc];
        }
        if (arcs.caller[arc] === fn) {
          below += tally.toTotal[arc];
          belowSelf += tally.toSelf[arc];
        }
      });
      assert.equal(above, tally.total[fn], `callers of ${names[fn]}, seed ${seed}`);
      assert.equal(aboveSelf, tally.self[fn], `self by callers of ${names[fn]}, seed ${seed}`);
      assert.equal(below + tally.self[fn], tally.total[fn], `callees of ${names[fn]}, seed ${seed}`);
      assert.ok(belowSelf <= below, `self of callees of ${names[fn]}, seed ${seed}`);
    }
  }
});

/** A tree of a few functions that call each other. */
function randomTree(seed: number): string {
  let state = seed * 2654435761;
  const next = (limit: number) => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
  const lines: string[] = [];
  const grow = (depth: number) => {
    lines.push(`${"  ".repeat(depth)}${"abcde"[next(5)]} ${next(10)}`);
    for (let child = next(depth < 6 ? 4 : 1); child > 0; child--) grow(depth + 1);
  };
  grow(0);
  return lines.join("\n");
}

test("cycles are functions that reach each other; one that calls only itself is none", () => {
  const { names, arcs } = measured("main 1\n  f 1\n    g 1\n      f 1\n  h 1\n    h 1");
  const cycles = findCycles(names.length, arcs.caller, arcs.callee, 0);
  const of = (name: string) => cycles[names.indexOf(name)];
  assert.ok(of("f") > 0 && of("f") === of("g"));
  assert.deepEqual([of("main"), of("h")], [0, 0]);
});

function shape(tree: ReturnType<typeof callees>, names: string[]): string[] {
  const rows: string[] = [];
  const show = (at: number) => {
    if (at > 0) rows.push(`${"  ".repeat(tree.depth[at] - 1)}${names[tree.fn[at]]} ${tree.self[0][at]}/${tree.total[0][at]}`);
    for (let child = tree.children[at]; child < tree.children[at + 1]; child++) show(child);
  };
  show(0);
  return rows;
}

const WHOLE: Request = { focus: null, direction: "callees", fold: false, path: [], least: 0 };

test("equal chains of all threads are one node, largest first", () => {
  const { tree, costs, names } = sketch("@\nmain 1\n  a 2\n  b 9\n@\nmain 1\n  a 3");
  assert.deepEqual(shape(callees(tree, [costs], 1, names.length, WHOLE), names), ["main 2/16", "  b 9/9", "  a 5/5"]);
});

test("folded recursion joins the outermost activation", () => {
  const { tree, costs, names } = sketch(RECURSIVE);
  const folded = callees(tree, [costs], 1, names.length, { ...WHOLE, fold: true });
  assert.deepEqual(shape(folded, names), ["main 1/21", "  f 6/14", "    g 8/8", "  g 6/6"]);
});

test("the tree below a function starts at its outermost activations", () => {
  const { tree, costs, names } = sketch(RECURSIVE);
  const below = callees(tree, [costs], 1, names.length, { ...WHOLE, focus: names.indexOf("g") });
  assert.deepEqual([below.self[0][0], below.total[0][0]], [9, 18]);
  assert.deepEqual(shape(below, names), ["f 4/9", "  g 5/5"]);
});

test("small nodes are left out and counted, more of them below a path", () => {
  const { tree, costs, names } = sketch("main 1\n  a 90\n    x 1\n  b 4\n    y 3\n    z 1");
  const least = { ...WHOLE, least: 0.05 };
  const whole = callees(tree, [costs], 1, names.length, least);
  assert.deepEqual(shape(whole, names), ["main 1/100", "  a 90/91", "  b 4/8"]);
  assert.deepEqual([...whole.hidden], [0, 0, 1, 2]);
  assert.deepEqual([...whole.hiddenCost], [0, 0, 1, 4]);
  const path = ["main", "b"].map((name) => names.indexOf(name));
  assert.deepEqual(shape(callees(tree, [costs], 1, names.length, { ...least, path }), names), ["main 1/100", "  b 4/8", "    y 3/3", "    z 1/1"]);
  const up = callers(tree, [costs], [costs], 1, names.length, { ...least, direction: "callers", path: [names.indexOf("y")] });
  assert.deepEqual(shape(up, names), ["y 3/3", "  b 3/3", "    main 3/3"]);
});

test("the callers tree divides a function's cost among chains of callers", () => {
  const { tree, costs, names } = sketch(RECURSIVE);
  const request: Request = { ...WHOLE, direction: "callers" };
  const rows = shape(callers(tree, [costs], [costs], 1, names.length, request), names);
  assert.deepEqual(rows.slice(0, 6), ["g 14/14", "  f 8/8", "    g 5/5", "      f 5/5", "        main 5/5", "    main 3/3"]);
  const sums = [totals(tree, costs)];
  const above = callers(tree, [costs], sums, 1, names.length, { ...request, focus: names.indexOf("g") });
  assert.equal(above.total[0][0], 18);
  assert.deepEqual(shape(above, names), ["f 12/12", "  main 12/12", "main 6/6"]);
});

test("transforms keep, drop and pass on costs as report does", () => {
  const { tree, costs, names } = sketch("main 1\n  work 2\n    copy 5\n  copy 3");
  const mask = (name: string) => Uint8Array.from(names, (known) => (known === name ? 1 : 0));
  const after = (kind: "focus" | "ignore" | "hide", name: string) => {
    const state = transform(tree, [{ kind, mask: mask(name) }]);
    return shape(callees(state.tree, [carry(state, costs)], 1, names.length, WHOLE), names);
  };
  assert.deepEqual(after("focus", "work"), ["main 0/7", "  work 2/7", "    copy 5/5"]);
  assert.deepEqual(after("ignore", "copy"), ["main 1/3", "  work 2/2"]);
  assert.deepEqual(after("hide", "work"), ["main 3/11", "  copy 8/8"]);
});

test("transforms apply one after the other", () => {
  const { tree, costs, names } = sketch("main 1\n  work 2\n    copy 5\n  copy 3");
  const mask = (name: string) => Uint8Array.from(names, (known) => (known === name ? 1 : 0));
  const state = transform(tree, [{ kind: "hide", mask: mask("copy") }, { kind: "focus", mask: mask("work") }]);
  assert.deepEqual(shape(callees(state.tree, [carry(state, costs)], 1, names.length, WHOLE), names), ["main 0/7", "  work 7/7"]);
});

test("calls of lines add up to the children cost", () => {
  const { tree, costs, names } = sketch(RECURSIVE);
  tree.site.set([0, 0, 10, 20, 30, 20, 11]);
  const rows = lineCalls(tree, totals(tree, costs), names.indexOf("f"));
  assert.deepEqual(rows.map((row) => [row.site, names[row.callee], row.total]), [[20, "g", 8]]);
});

test("Wilson's interval agrees with published values", () => {
  const [low, high] = wilson(81 / 263, 263)!;
  assert.ok(Math.abs(low - 0.2553) < 5e-5 && Math.abs(high - 0.3662) < 5e-5);
  assert.equal(wilson(0.5, 0), null);
});

test("searches", () => {
  const full = "Parser::primary(int)";
  const regex = (written: string) => new RegExp(readRegex(written).pattern, readRegex(written).flags).test(full);
  const fn = { short: "Parser::primary", full, module: "formula", file: "src/formula.cpp", regex };
  const matches = (text: string) => parseQuery(text).matches(fn, () => ({ self: 2, total: 30 }));
  for (const text of ["prim", "PARSER", "/^Parser/", "/PARSER/i", "prim /int/", "module:form", "file:formula.cpp", "self>1", "total<50", "prim self>1"]) assert.ok(matches(text), text);
  for (const text of ["int", "/^primary/", "/PARSER/", "prim /long/", "module:libc", "self>3", "prim self>3"]) assert.ok(!matches(text), text);
  assert.match(parseQuery("/(/").problem!, /not a regular expression/);
});

test("what cannot be seen is escaped, whatever it is", () => {
  const cases: [string, string][] = [
    ["safe_\u202egnirts_live\u202c_end", "safe_\\u{202e}gnirts_live\\u{202c}_end"],
    ["user\u200badmin", "user\\u{200b}admin"],
    ["user\u200dadmin", "user\\u{200d}admin"],
    ["user\u2066admin\u2069", "user\\u{2066}admin\\u{2069}"],
    ["\x1b[31mred\n\t", "\\u{1b}[31mred\\n\\t"],
    ["a\u00adb\ufeffc\u3164d\u2028e\u{e0041}f\u00a0g\u180eh", "a\\u{ad}b\\u{feff}c\\u{3164}d\\u{2028}e\\u{e0041}f\\u{a0}g\\u{180e}h"],
    ["naïve Größe שלום \"x\" λ→⊕", "naïve Größe שלום \"x\" λ→⊕"],
    ["e\u0301 👨‍👩‍👧 ❤️ 👍🏽", "e\u0301 👨‍👩‍👧 ❤️ 👍🏽"],
    ["👨\u200d\u200dx", "👨\\u{200d}\\u{200d}x"],
  ];
  for (const [text, shown] of cases) assert.equal(visible(text), shown);
  assert.equal(visible("\tif x\u200b", "\t"), "\tif x\\u{200b}");
  assert.deepEqual(allVisible({ a: ["x\u202e", 5, null], b: { "k\u200b": true } }), { a: ["x\\u{202e}", 5, null], b: { "k\\u{200b}": true } });
});

test("names in parts, by their languages", () => {
  for (const [full, ...known] of NAMES as string[][]) {
    const { qualifier, last, tail } = splitName(full);
    assert.deepEqual([qualifier, last, tail], known, full);
  }
});

test("names that read alike have the same number, whatever stands before them", () => {
  const short = (full: string) => { const { qualifier, last, tail } = splitName(full); return qualifier + last + tail; };
  const same = ["long burn<long>(long)", "int burn<int>(int)", "void (*burn<char>(char))(int)"];
  assert.deepEqual(same.map(short), ["burn<…>(…)", "burn<…>(…)", "burn<…>(…)"]);
  assert.equal(new Set(same.map(bareHash)).size, 1);
  for (const [full] of NAMES as string[][]) {
    for (const [other] of NAMES as string[][]) if (short(full) === short(other)) assert.equal(bareHash(full), bareHash(other), `${full}, ${other}`);
  }
});

test("no name takes long, however it is made", () => {
  // Each took time that grows with the square of its length, or worse.
  const signs = ["<", "(", " as ", "[clone ", "{{a", "operator", "std::basic_string<char, ", ".func1", " (a", "::<", "decltype(", "<a as >::", "a.b/", "> ", "operator a<"];
  for (const sign of signs) {
    const name = sign.repeat(Math.ceil(200_000 / sign.length));
    for (const full of [name, `<${name}`, `${name}>::f`, `f ${name}`]) {
      const begun = process.cpuUsage();
      splitName(full);
      bareHash(full);
      fit(splitName(full), 20, (text) => text.length);
      const { user } = process.cpuUsage(begun);
      // Linear work takes some hundredths of a second of processor time, and squares take minutes.
      assert.ok(user < 10e6, `${sign}: ${user / 1e6} s`);
    }
  }
});

test("names give way in the order of the design", () => {
  const width = (text: string) => [...text].length;
  const short = (full: string, room: number) => {
    const { qualifier, last, tail } = fit(splitName(full), room, width);
    return qualifier + last + tail;
  };
  assert.equal(short("formula::Parser::expression()", 40), "formula::Parser::expression()");
  assert.equal(short("formula::Parser::expression()", 22), "…Parser::expression()");
  assert.equal(short("formula::Parser::expression()", 13), "…expression()");
  assert.equal(short("net/http.(*conn).serve", 16), "…(*conn).serve");
  assert.equal(short("com.example.Foo.run(int)", 14), "…Foo.run(…)");
  assert.equal(short("main (app.py:3)", 15), "main (app.py:3)");
  assert.equal(short("main (app.py:3)", 12), "main");
  assert.equal(short("boxes:not_attack/3", 12), "not_attack/3");
  assert.equal(short("__memcpy_avx_unaligned_erms", 20), "__memcpy_a…gned_erms");
});

test("numbers", () => {
  assert.equal(format(0, PERCENT), "0");
  assert.equal(format(0.0001, PERCENT), "0.0");
  assert.deepEqual([percent(0), percent(0.0001)], ["0 %", "0.0 %"]);
  // Seven of ten billions are not nothing.
  const millions = scaleFor("count", 1e10, true);
  assert.deepEqual([format(7, millions), format(0, millions), format(600_000, millions), signed(-7, millions)], ["<1", "0", "1", "−<1"]);
  assert.equal(format(1_238_000_000, scaleFor("nanoseconds", 2e9)), "1.238");
  assert.equal(signed(-371_000_000, scaleFor("nanoseconds", 2e9)), "−0.371");
  assert.equal(format(877_620, scaleFor("count", 877_620)), "877,620");
});

test("calls that were counted apart stand beside what was sampled", () => {
  const { tree, names } = sketch("main 1\n  work 6\n  libc 0\n    work 3\n");
  const number = (name: string) => {
    const known = names.indexOf(name);
    return known < 0 ? names.push(name) - 1 : known;
  };
  const pairs: [string, string, number][] = [["main", "work", 42], ["work", "rare", 9], ["work", "work", 2], ["", "main", 1]];
  const ends = pairs.map(([caller, callee, calls]) => ({ caller: caller ? number(caller) : 0, callee: number(callee), calls }));
  const counted = { caller: ends.map((one) => one.caller), callee: ends.map((one) => one.callee), calls: ends.map((one) => one.calls) };
  const found = withCounts(findArcs(tree, names.length), counted, names.length);
  assert.deepEqual(["main", "work", "rare", "libc"].map((name) => found.calls[number(name)]), [1, 44, 9, 0]);
  assert.equal(found.recursive[number("work")], 2);
  const calls = (caller: string, callee: string) => {
    for (let arc = 0; arc < found.arcs.caller.length; arc++) {
      if (found.arcs.caller[arc] === number(caller) && found.arcs.callee[arc] === number(callee)) return found.arcs.calls[arc];
    }
    return null;
  };
  // Of `libc` a stack tells, and no count.
  assert.deepEqual([calls("main", "work"), calls("libc", "work"), calls("main", "libc"), calls("work", "rare")], [42, 0, 0, 9]);
});

test("costs of lines follow transforms, and what is hidden costs at the line that called it", () => {
  const { tree, names } = sketch("main 1\n  work 5\n    copy 7\n  copy 2\n");
  const mask = (name: string) => Uint8Array.from(names, (known) => (known === name ? 1 : 0));
  const at = (line: number) => line + 1;
  // main calls work at line 11 and copy at 12, work calls copy at 21.
  tree.site = Uint32Array.from([0, 0, at(11), at(21), at(12)]);
  const rows = { node: Uint32Array.from([1, 2, 2, 3, 4]), line: Uint32Array.from([10, 20, 22, 30, 31]), costs: [Float64Array.from([1, 4, 1, 7, 2])] };
  const lines = (name: string, ...steps: Parameters<typeof transform>[1]) => {
    const found = ownLines(tree, rows, transform(tree, steps), 0, names.indexOf(name), () => false);
    return found!.map((row) => `${row.line}: ${row.now}`).sort();
  };
  assert.deepEqual(lines("copy"), ["30: 7", "31: 2"]);
  assert.deepEqual(lines("copy", { kind: "focus", mask: mask("work") }), ["30: 7"]);
  assert.deepEqual(lines("work", { kind: "hide", mask: mask("copy") }), ["20: 4", "21: 7", "22: 1"]);
  assert.deepEqual(lines("main", { kind: "hide", mask: mask("copy") }), ["10: 1", "12: 2"]);
  assert.deepEqual(lines("main", { kind: "hide", mask: Uint8Array.from(names, (name) => (name === "work" || name === "copy" ? 1 : 0)) }), ["10: 1", "11: 12", "12: 2"]);
  assert.deepEqual(lines("work", { kind: "ignore", mask: mask("work") }), []);
  assert.equal(ownLines(tree, null, transform(tree, []), 0, 1, () => false), null);
});

test("the change of a difference is followed to where it divides", () => {
  const { tree, costs: now, names } = sketch("main 1\n  start 1\n    parse 2\n      intern 9\n      scan 7\n    print 5");
  const fork = (base: number[]) => {
    const merged = callees(tree, [now, now, Float64Array.from(base), Float64Array.from(base)], 2, names.length, WHOLE);
    return names[merged.fn[firstFork(merged)]];
  };
  assert.equal(fork([0, 1, 1, 2, 4, 3, 5]), "parse", "intern and scan have changed");
  assert.equal(fork([0, 1, 1, 2, 4, 7, 5]), "parse", "a function that calls nobody stands below its caller");
  assert.equal(fork([0, 1, 1, 2, 4, 7, 9]), "start", "more in one callee and less in another is a fork");
  assert.equal(fork([0, 1, 1, 2, 9, 7, 5]), "", "nothing has changed");
});

test("time by a wall clock is not called processor time", () => {
  const processor = ["cpu", "cpu time", "cpu-clock", "cpu-clock:u", "task-clock", "user", "system"];
  assert.deepEqual(processor.map(timeWord), processor.map(() => "CPU"));
  assert.deepEqual(["time", "latency", "off-cpu", "wall"].map(timeWord), ["time", "time", "time", "time"]);
});
