// Sentences and numbers of panes, for profiles that need them: units, losses, differences, lines, and why nothing is there.
//
//   node panes.mjs TREERING FIXTURES FOLDER
//
// FIXTURES is the folder of recorded files, FOLDER holds the profiles that `view_panes.rs` makes.

import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { launch, settled, until } from "./chromium.mjs";

const [treering, fixtures, folder] = process.argv.slice(2);
const scratch = mkdtempSync(join(tmpdir(), "treering-panes-"));
const failures = [];
const check = (holds, what) => holds || failures.push(what);
const browser = await launch();
const page = await browser.newPage();
await page.setViewport({ width: 1440, height: 900 });
page.on("pageerror", (error) => failures.push(error.message));

const fixture = (path) => join(fixtures, path);
const made = (name) => join(folder, name);

/** Opens the page of a profile. */
async function open(profile, ...more) {
  const hash = more[0]?.startsWith("#") ? more.shift() : "";
  const file = join(scratch, `${basename(profile)}.html`);
  execFileSync(treering, ["view", profile, "--no-open", "--force", "-o", file, ...more], { stdio: ["ignore", "ignore", "pipe"] });
  // Another hash alone would open nothing.
  await page.goto("about:blank");
  await page.goto(`file://${file}${hash}`);
  await settled(page);
}

/** Changes what is shown; `of` names the current function. */
async function show(change, of) {
  await page.evaluate((change, of) => {
    const fn = of === undefined ? {} : { fn: window.treering.functions().findIndex((one) => one.function === of) };
    window.treering.go({ ...change, ...fn });
  }, change, of);
  await settled(page);
}

const texts = (selector) => page.$$eval(selector, (all) => all.map((one) => one.textContent.trim()));
const text = async (selector) => (await texts(selector)).join(" ");
const report = (profile, ...more) => JSON.parse(execFileSync(treering, ["report", profile, "--json", ...more], { maxBuffer: 1 << 30, stdio: ["ignore", "pipe", "ignore"] }));

/** The cells of a row of the functions, by the heads of their columns. */
function cells(name) {
  return page.$$eval(".functions .row", (rows, name) => {
    const heads = [...rows[0].querySelectorAll("[role=columnheader]")].map((head) => head.textContent.replace(/ [▾▴]$/, ""));
    const row = rows.slice(1).find((row) => row.querySelector(".name")?.title === name);
    return Object.fromEntries([...row.querySelectorAll("[role=gridcell]")].map((cell, at) => [heads[at], cell.textContent]));
  }, name);
}

await intervals();
await badges();
await recursion();
await differences();
await shares();
await chance();
await sides();
await paper();
await divided();
await versions();
await lines();
await reasons();
await losses();
await unseen();
await endless();
await reader();
await widths();
await names();
await threads();
await menus();
await places();
await back();
await picture();
await phone();
await browser.close();
rmSync(scratch, { recursive: true, force: true });
failures.forEach((failure) => console.error(`FAILED: ${failure}`));
process.exit(failures.length ? 1 : 0);

/** Intervals have the unit of the costs beside them, and are those of the report. */
async function intervals() {
  const profile = fixture("formats/cpuprofile/shapes.cpuprofile");
  const known = report(profile, "--flat");
  const of = known.functions.find((one) => one.function === "sum");
  const run = known.run.run_cost;
  await open(profile);
  await page.setViewport({ width: 1900, height: 900 });
  const units = {
    run: (cost) => (100 * cost) / run,
    natural: (cost) => cost / 1e9,
    parent: (cost) => (100 * cost) / of.total_cost,
    samples: (cost) => (cost * known.run.samples) / run,
  };
  for (const [unit, value] of Object.entries(units)) {
    await show({ unit });
    const row = await cells("sum");
    const shown = row["95 %"].split("–").map(Number);
    const right = [of.self_low, of.self_high].map(value);
    // The last digit that is shown.
    const digit = { natural: 0.001, samples: 1 }[unit] ?? 0.1;
    check(shown.length === 2 && shown.every((bound, at) => Math.abs(bound - right[at]) <= 0.51 * digit), `the interval in ${unit} is ${row["95 %"]}, not ${right}`);
    const self = Number(Object.entries(row).find(([head]) => head.startsWith("self"))[1]);
    check(shown[0] <= self && self <= shown[1], `${self} lies in ${shown} in ${unit}`);
  }
  await show({ unit: "natural", view: "tree" });
  const rows = await page.$$eval(".tree .row:not(.head)", (rows) => rows.map((row) => [...row.querySelectorAll("[role=gridcell]")].map((cell) => cell.textContent)));
  for (const [total, , between] of rows) {
    const [low, high] = between.split("–").map(Number);
    check(low <= Number(total) && Number(total) <= high, `in the tree ${total} lies in ${between}`);
  }
  check(rows.length > 3, "the tree has rows");
  await show({ unit: "run", view: "overview" });
  await page.setViewport({ width: 1440, height: 900 });
}

/** How numbers came about is said of each format as it is: what was measured is not called estimated. */
async function badges() {
  const cases = [
    ["formats/pstats/shapes.pstats", /^exact$/, false],
    ["formats/pstats/profile.pstats", /^exact, totals estimated/, true],
    ["formats/gprof/full.txt", /^sampled, totals estimated/, true],
    ["formats/callgrind/plain.callgrind", /^exact$/, false],
    ["formats/cpuprofile/shapes.cpuprofile", /^sampled/, false],
    ["formats/folded/py-spy.folded", /^costs as stated, by a file that tells no calls$/, false],
  ];
  for (const [path, badge, estimates] of cases) {
    await open(fixture(path));
    check(badge.test(await text(".trust .badge:not(.lost)")), `${path} is called ${await text(".trust .badge:not(.lost)")}`);
    const estimated = [];
    for (const one of report(fixture(path), "--callgraph").functions) {
      await show({}, one.function);
      if ((await text(".central-table")).includes("~")) estimated.push(one.function);
    }
    check(estimates === estimated.length > 0, `${path}: estimates are marked at ${estimated}`);
    await show({ open: true });
    const cycles = await text(".details");
    check(/totals within them are estimates/.test(cycles) === (estimates && /Cycles\d/.test(cycles)), `${path}: ${cycles}`);
    await show({ open: false });
  }
}

/** Calls are recursive where they were made further in, not where they cost nothing. */
async function recursion() {
  await open(made("recursion.folded"));
  const marked = async (of) => {
    await show({}, of);
    return page.$$eval(".central-table [aria-label=callers] .row", (rows) => rows.filter((row) => [...row.querySelectorAll(".tag")].some((tag) => tag.textContent === "recursive")).map((row) => row.querySelector(".name").title));
  };
  check((await marked("idle")).join() === "", `main's calls of idle are marked: ${await marked("idle")}`);
  check((await marked("fact")).join() === "fact", `fact's calls of itself: ${await marked("fact")}`);
  check((await marked("even")).join() === "odd", `odd's calls of even: ${await marked("even")}`);
}

/** A difference has its sign, inside of its interval as well. */
async function differences() {
  await open(made("new.trg"), "--diff", made("base.trg"));
  const rows = await page.$$eval(".functions .row:not(.head)", (rows) => rows.map((row) => [row.querySelector(".name").title, ...[...row.querySelectorAll("[role=gridcell]")].map((cell) => cell.textContent)]));
  const of = (name) => rows.find((row) => row[0] === name)?.[3];
  check(of("grown") === "▲ 0.500" && of("shrunk") === "▼ 0.500", `grown ${of("grown")}, shrunk ${of("shrunk")}`);
  check(of("little_more") === "+0.001" && of("little_less") === "−0.001", `within the interval: ${of("little_more")}, ${of("little_less")}`);
  check(of("same") === "0", `without any: ${of("same")}`);
  for (const [view, row] of [["overview", ".central-table .row"], ["tree", ".tree .row"]]) {
    await show({ view }, "little_less");
    check((await text(row)).includes("−0.001") || (await text(row)).includes("−1.000"), `${view} has the sign: ${await text(row)}`);
  }
  await show({ view: "overview" });
}

/** The columns of a difference differ by the change in every unit, which percents have of the base's run; a function that one run alone ran is new or gone. */
async function shares() {
  const [base, head] = [made("shorter.folded"), made("longer.folded")];
  await open(head, "--diff", base);
  const number = (text) => Number(text.replace(/[▲+]\s?/, "").replace(/[▼−]\s?/, "-").replace("–", "0").replace(/,/g, ""));
  const runs = [178, 216];
  const changes = { run: (base, now) => (100 * (now - base)) / runs[0], natural: (base, now) => now - base };
  const normalised = { run: (base, now) => 100 * (now / runs[1] - base / runs[0]), natural: (base, now) => now - (base * runs[1]) / runs[0] };
  for (const [unit, isNormalised] of [["run", false], ["natural", false], ["run", true], ["natural", true]]) {
    await show({ unit, lineUnit: unit, normalised: isNormalised, view: "overview" }, "b");
    const right = (isNormalised ? normalised : changes)[unit](50, 170);
    const digit = unit === "run" ? 0.1 : 1;
    const table = Object.values(await cells("b")).slice(0, 3).map(number);
    const line = await page.$$eval(".central-table .row:not(.head)", (rows) => rows.map((row) => [...row.children].slice(0, 3).map((cell) => cell.textContent)));
    await show({ view: "tree" });
    const tree = await page.$$eval(".tree .row:not(.head)", (rows) => rows.map((row) => [...row.children].slice(0, 3).map((cell) => cell.textContent)));
    for (const [where, [before, now, by]] of [["table", table], ...line.map((one) => ["central line", one.map(number)]), ...tree.map((one) => ["tree", one.map(number)])]) {
      check(Math.abs(now - before - by) <= 1.51 * digit, `${unit}, ${isNormalised}: in the ${where} ${before} and ${now} differ by ${by}`);
    }
    check(Math.abs(table[2] - right) <= 0.51 * digit && line.every((one) => Math.abs(number(one[2]) - right) <= 0.51 * digit), `${unit}, ${isNormalised}: b changed by ${table} and ${line}, not by ${right}`);
    check(tree.length > 3, `the tree has ${tree}`);
  }
  await show({ unit: "natural", normalised: false, view: "overview" });
  const tags = Object.fromEntries(await page.$$eval(".functions .row:not(.head)", (rows) => rows.map((row) => [row.querySelector(".name").title, row.querySelector(".tag")?.textContent ?? ""])));
  check(tags.appears === "new" && tags.vanishes === "gone" && Object.values(tags).filter(Boolean).length === 2, `what one run alone ran: ${JSON.stringify(tags)}`);
  check((await texts(".functions .chip")).filter((one) => /new|gone/.test(one)).join() === "new 1,gone 1", `the chips: ${await texts(".functions .chip")}`);
  check((await text(".strip")).includes("total 50 → 170, +120"), `the strip says ${await text(".strip")}`);
}

/** Of a difference, threads are parts of their own profile, names have room in a narrow window, and runs may differ. */
async function sides() {
  const [base, head] = [made("shorter.folded"), made("longer.folded")];
  await open(head, "--diff", base);
  await page.keyboard.press("t");
  await settled(page);
  const listed = (await texts(".threads ul b")).map((one) => one.replace(/^process/, ""));
  check(listed.sort().join(" ") === ", base , new", `the processes are ${listed}`);
  check((await texts(".threads ul ul .note")).every((one) => one.endsWith("100.0 %")), `the threads are ${await texts(".threads ul ul .note")}`);
  await page.keyboard.press("Escape");
  for (const width of [800, 1280]) {
    await page.setViewport({ width, height: 800 });
    await settled(page);
    const room = await page.$$eval(".functions .row:not(.head)", (rows) => rows.map((row) => row.lastElementChild.getBoundingClientRect().width));
    check(room.length > 3 && room.every((pixels) => pixels >= 110), `names have ${room} pixels of a window of ${width}`);
  }
  await page.setViewport({ width: 1440, height: 900 });
  const runs = [[base, head], [head, head]].map((files, at) => {
    const file = join(scratch, `runs_${at}.trg`);
    execFileSync(treering, ["merge", "-o", file, ...files], { stdio: "ignore" });
    return file;
  });
  await open(runs[1], "--diff", runs[0]);
  await show({ open: true });
  check(!(await text(".trust")).includes("±") && (await text(".details")).includes("intervals are those of all samples"), `of several runs the header says ${await text("header")}`);
  await show({ open: false });
}

/** A difference has both sides on paper as well, each with its own amounts, and says what part is shown. */
async function paper() {
  const [base, head] = [made("shorter.folded"), made("longer.folded")];
  await open(head, "--diff", base);
  const printed = async (change) => {
    await show(change, "b");
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    await until(page, () => document.querySelector(".print h1") !== null);
    const seen = await page.evaluate(() => ({
      rows: [...document.querySelectorAll(".print tr")].map((row) => [...row.children].map((cell) => cell.textContent).join(" ")),
      facts: [...document.querySelectorAll(".print dd")].map((fact) => fact.textContent), text: document.querySelector(".print").textContent,
    }));
    await page.evaluate(() => dispatchEvent(new Event("afterprint")));
    await settled(page);
    return seen;
  };
  const whole = await printed({});
  check(whole.rows.includes("50 170 ▲ 120 b") && whole.rows.includes("50 170 ▲ 120 ← main"), `on paper: ${whole.rows}`);
  check(whole.facts.join() === "samples, 178 in all,samples, 216 in all" && /mostly b/.test(whole.text), `the facts on paper are ${whole.facts}`);
  const part = await printed({ steps: [{ kind: "ignore", target: "f:a" }] });
  check(part.facts.at(-1) === "ignore a", `the part on paper is ${part.facts}`);
  await show({ open: true, steps: [] });
  check(/metric, basesamples, 178 in all/.test(await text(".details")) && !/394/.test(await text("header")), `the header says ${await text(".details")}`);
}

/** Numbers of samples differ by chance, also where their file has nothing else. */
async function chance() {
  const [base, head] = [made("few_base.folded"), made("few_new.folded")];
  await open(head, "--diff", base);
  const told = JSON.parse(execFileSync(treering, ["diff", base, head, "--json"], { encoding: "utf8" }));
  check(/no function changed by more than chance/.test(told.verdict.text) && (await text(".verdict")) === told.verdict.text, `the verdict is ${await text(".verdict")}`);
  const changes = await page.$$eval(".functions .row:not(.head)", (rows) => rows.map((row) => row.children[2].textContent));
  check(changes.join() === "+3,+3,−3,0", `the table calls ${changes} more than chance`);
  check((await text(".trust .badge:not(.lost)")) === "difference, 95 % intervals", `the badge is ${await text(".trust .badge:not(.lost)")}`);
}

/** Where calls were counted, a change is divided, and the first sentence is that of the text report. */
async function divided() {
  const [base, head] = [made("calls_base.trg"), made("calls_new.trg")];
  await open(head, "--diff", base);
  const told = JSON.parse(execFileSync(treering, ["diff", base, head, "--json"], { encoding: "utf8" }));
  check((await text(".verdict")) === told.verdict.text && /main → parse, 4 → 8 calls/.test(told.verdict.text), `the verdict is ${await text(".verdict")}; the report says ${told.verdict.text}`);
  const [parse, hash] = [await cells("parse"), await cells("hash")];
  check(parse["more calls"] === "+40.000" && parse["cost/call"] === "0" && parse["Δ self ms"] === "▲ 40.000", `parse: ${JSON.stringify(parse)}`);
  check(hash["more calls"] === "0" && hash["cost/call"] === "+20.000", `hash: ${JSON.stringify(hash)}`);
  check((await page.evaluate(() => document.querySelector(".functions [aria-selected=true] .name").title)) === "main", "the caller is the current function");
  // The central line divides the changes of calls, 4 more of 10 ms each and 2 that are 10 ms dearer, and rows add up.
  const central = () => page.$$eval(".central-table .row", (rows) => {
    const heads = [...rows[0].children].map((head) => head.textContent);
    return rows.slice(1).map((row) => [heads.indexOf("more calls"), heads.indexOf("cost/call"), heads.length - 1].map((at) => row.children[at]?.textContent).join());
  });
  const adds = "✓ callers add up to the function’s total, in both runs";
  await show({}, "main");
  const ofMain = await central();
  check(ofMain.includes("+0.040,0,parse") && ofMain.includes("0,+0.020,hash") && ofMain.some((row) => row.startsWith("+0.040,+0.020,✓ self and callees")), `main's callees: ${ofMain}`);
  await show({}, "parse");
  const ofParse = await central();
  check(ofParse.includes("+40.000,0,main") && ofParse.includes(`+40.000,0,${adds}`) && ofParse.includes("+40.000,0,self"), `parse's callers: ${ofParse}`);
  // Costs of a part of the run, or not as measured, are not divided.
  await show({ normalised: true });
  check(!("more calls" in (await cells("parse"))) && !(await page.$(".verdict")) && !/more calls/.test(await text(".central-table .row.head")), "normalised costs are not divided");
  await open(head, "--diff", base, "--focus", "parse");
  check(!("more calls" in (await cells("parse"))) && !(await page.$(".verdict")), "a part is not divided");
}

/** Lines and blocks of both versions are those that the text report compares. */
async function versions() {
  const rows = (selector) => page.$$eval(selector, (rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)));
  const number = (text) => Number(text.replace(/,/g, ""));
  for (const kind of ["flat", "tree"]) {
    const [base, head] = [made(`${kind}_base.trg`), made(`${kind}_new.trg`)];
    if (!existsSync(base)) return;
    const diff = (view, of) => JSON.parse(execFileSync(treering, ["diff", base, head, view, of, "--json"], { encoding: "utf8" }));
    await open(head, "--diff", base);
    for (const name of ["hash", "work"]) {
      const told = diff("--lines", name);
      await show({ tab: "source" }, name);
      const shown = (await rows(".source-row:not(.head):not(.call):not(.cold)")).filter((cells) => cells[3]).map(([base, now, , place]) => [place, number(base), number(now)].join());
      const placeOf = ({ base, head }) => (base === head ? `${head}` : `${base ?? ""} → ${head ?? ""}`.trim());
      const wanted = told.lines.map(({ line, self_cost }) => [placeOf(line), self_cost.base, self_cost.head].join());
      check(wanted.length > 2 && shown.join("\n") === wanted.join("\n"), `${kind}, lines of ${name}:\n${shown.join("\n")}\nthe report has\n${wanted.join("\n")}`);
      check(/paired by their distance/.test(await text(".code")) === (told.matched_by === "place"), `${kind}: ${name} is paired by ${told.matched_by}`);
      const blocks = diff("--blocks", name).blocks;
      await show({ tab: "blocks" }, name);
      const changes = (await rows(".block-pairs .source-row:not(.head)")).map(([change]) => number(change.replace("−", "-")));
      const executed = blocks.map(({ base, head }) => (head?.instructions_executed ?? 0) - (base?.instructions_executed ?? 0));
      const sum = executed.reduce((all, one) => all + one, 0);
      check(executed.length > 2 && changes.join() === [...executed, sum].join(), `${kind}, blocks of ${name}: ${changes}; the report has ${executed}`);
    }
    await show({ tab: "source" }, "hash");
    const gone = (await rows(".source-row")).find((cells) => /^\d+ →$/.test(cells[3]));
    check(kind === "tree" || /h = h \* 33 \+ \*s;/.test(gone?.[4]), `a line of the base alone has its text: ${gone}`);
    await open(head, "--diff", base, ...(kind === "tree" ? ["--focus", "work"] : []));
    await show({ tab: "blocks" }, "work");
    check(kind === "flat" || /the page shows a part/.test(await text(".code .empty")), `blocks of a part: ${await text(".code .empty")}`);
  }
}

/** Lines of V8's files have the ticks that the file tells. */
async function lines() {
  const profile = fixture("formats/cpuprofile/shapes.cpuprofile");
  const file = JSON.parse(readFileSync(profile, "utf8"));
  const ticks = {};
  const idle = file.nodes.filter((node) => node.callFrame.functionName === "(idle)").map((node) => node.id);
  const samples = file.samples.filter((id) => !idle.includes(id)).length;
  for (const node of file.nodes.filter((node) => node.callFrame.functionName === "sum")) {
    for (const { line, ticks: count } of node.positionTicks ?? []) ticks[line] = (ticks[line] ?? 0) + count;
  }
  await open(profile);
  await show({}, "sum");
  const shown = await page.$$eval(".source-row:not(.head):not(.call)", (rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)));
  for (const [line, count] of Object.entries(ticks)) {
    const row = shown.find((cells) => cells[3] === line);
    check(row !== undefined && Math.abs(Number(row[0]) - (100 * count) / samples) <= 0.051, `line ${line} of sum has ${row}; ${count} of ${samples} ticks`);
  }
  check(Object.keys(ticks).length > 1 && /in samples: what they cost in time was not measured/.test(await text(".code-head")), `the head says ${await text(".code-head")}`);
}

/** Why a pane is empty. */
async function reasons() {
  const cases = [
    ["kinds.trg", { category: 2, q: "none" }, undefined, ".functions .empty", /No functions are kernel and match “none”/],
    ["kinds.trg", { category: 4, q: "" }, undefined, ".functions .empty", /No functions are inlined.*leave out all \d+ functions/],
    ["kinds.trg", { category: null, q: "/(/" }, undefined, ".functions .empty", /The search cannot be used.*not a regular expression/],
    ["kinds.trg", { steps: [{ kind: "focus", target: "q:none" }], q: "" }, undefined, ".functions .empty", /The transforms leave nothing/],
    ["kinds.trg", { steps: [{ kind: "focus", target: "q:none" }], q: "" }, undefined, "[aria-label='flame graph'] .empty", /The transforms leave nothing/],
    ["kinds.trg", { steps: [], q: "" }, "of_the_kernel", ".code .empty", /the kernel’s/],
    ["kinds.trg", {}, "made_at_run_time", ".code .empty", /made while the program ran/],
    ["kinds.trg", {}, "a_task", ".code .empty", /It is a task/],
    ["kinds.trg", {}, "built_in", ".code .empty", /built into its interpreter/],
    ["kinds.trg", {}, "without_debug_information", ".code .empty", /without debug information/],
    ["kinds.trg", {}, "with_a_file", ".code .empty", /no cost of its own/],
    ["kinds.trg", { tab: "blocks" }, "of_the_kernel", ".code .empty", /Executions of code were not counted/],
    ["kinds.trg", { tab: "blocks" }, "built_in", ".code .empty", /no machine code of its own/],
    ["zero.trg", { tab: "source" }, undefined, ".functions .empty", /The whole run has no cost in cpu-clock/],
  ];
  let opened = "";
  for (const [profile, change, of, selector, said] of cases) {
    if (opened !== profile) await open(made((opened = profile)));
    await show(change, of);
    check(said.test(await text(selector)), `${profile}, ${JSON.stringify(change)}, ${of}: ${await text(selector)}`);
  }
  await open(fixture("formats/gprof/flat.txt"));
  check(/This profile is flat/.test(await text("[aria-label='flame graph'] .empty")) && !(await page.$("[aria-label='flame graph'] .empty code")), `a flat profile says ${await text("[aria-label='flame graph'] .empty")}`);
  check(/tells no lines/.test(await text(".code .empty")), `a file without lines says ${await text(".code .empty")}`);
  // While the lines are worked out, nothing is said of them.
  await open(made("kinds.trg"));
  const meanwhile = await page.evaluate(async () => {
    const fn = window.treering.functions().findIndex((one) => one.function === "with_a_file");
    const before = window.treering.state().fn;
    window.treering.go({ fn: fn === before ? 1 : fn });
    await Promise.resolve();
    return document.querySelector(".code .empty")?.textContent ?? "";
  });
  check(!/without debug information/.test(meanwhile), `while it is worked out the pane says ${meanwhile}`);
}

/** Losses are the first of all facts, and never cut, at any width. */
async function losses() {
  for (const [profile, said] of [["lossy.trg", /^(?=.*7 samples lost \(0\.7 %\))(?=.*1 stack cut short)(?=.*3 more)/], ["kinds.trg", /^nothing lost$/]]) {
    await open(made(profile));
    for (const width of [360, 390, 761, 1024, 1280, 1366, 1440, 1600, 1920, 2560]) {
      await page.setViewport({ width, height: 800 });
      await settled(page);
      const seen = await page.$eval(".lost", (lost) => {
        const { left, right, top, bottom } = lost.getBoundingClientRect();
        const over = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
        const facts = document.querySelector(".facts").getBoundingClientRect();
        return { text: lost.textContent, whole: left >= 0 && right <= innerWidth && lost.scrollWidth <= Math.ceil(right - left) && bottom - top >= 14, seen: lost.contains(over), first: top < facts.top || left <= facts.left };
      });
      check(said.test(seen.text) && seen.whole && seen.seen && seen.first, `losses of ${profile} at ${width} pixels: ${JSON.stringify(seen)}`);
      check((await page.evaluate(() => document.documentElement.scrollWidth)) <= width, `nothing of ${profile} is wider than ${width} pixels`);
    }
  }
  await page.setViewport({ width: 1440, height: 900 });
}

/** What would turn the text around, or cannot be seen, stands escaped wherever a name stands. */
async function unseen() {
  await open(made("unseen.folded"), "--title", "a\u202etitle");
  await show({ q: "live\u202e", steps: [{ kind: "focus", target: "q:main\u200b" }] });
  await show({ steps: [] });
  const names = ["safe_\\u{202e}gnirts_live\\u{202c}_end", "user\\u{200b}admin", "user\\u{2066}admin\\u{2069}", "\\u{1b}[31mred"];
  await show({ q: "" });
  for (const name of names) {
    for (const view of ["overview", "sandwich", "graph", "tree"]) {
      await show({ view }, name);
      const seen = await page.evaluate(() => {
        const all = [document.title, document.body.innerText];
        for (const one of document.querySelectorAll("*")) for (const { value } of one.attributes) all.push(value);
        return all.join("\n");
      });
      check(!/[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u001b]/.test(seen), `${name} in ${view}: ${/.{0,40}[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u001b].{0,40}/.exec(seen)}`);
      check(seen.includes(name), `${name} is in ${view}`);
    }
  }
  check((await page.title()).startsWith("a\\u{202e}title"), await page.title());
  const written = readFileSync(join(scratch, "unseen.folded.html"), "utf8");
  check(/<title>a\\u\{202e\}title/.test(written), "the title is escaped before any script runs");
  // Letters that are read from the right turn nothing around but themselves.
  const isolated = await page.$$eval(".functions .name .text", (all) => all.every((one) => getComputedStyle(one).unicodeBidi.includes("isolate")));
  check(isolated, "names are isolated from what stands beside them");
  await show({ view: "overview" });
}

/** A regular expression that takes for ever, in a link or typed, leaves the page usable, and is named. */
async function endless() {
  for (const regex of ["/(a+)+$/", "/(a|a)*b$/", "/^(.*a){30}$/", "/(?=(a+)+$)/"]) {
    await open(made("endless.folded"), `#q=${encodeURIComponent(regex)}`);
    check(/takes too long/.test(await text(".search .hit")), `${regex} in a link: ${await text(".search")}`);
    check(/The search cannot be used/.test(await text(".functions .empty")), `${regex}: ${await text(".functions")}`);
    await open(made("endless.folded"), `#x=${encodeURIComponent(`focus:q:${regex}`)}`);
    check(/takes too long on the names of this profile,/.test(await text("[role=alert]")) && (await page.$$(".crumb")).length === 0, `${regex} as a filter: ${await text("#page")}`);
    check((await page.evaluate(() => window.treering.rows().length)) === 3, `${regex} as a filter leaves nothing out`);
  }
  // Later searches work again.
  for (const [q, count] of [["/^b$/", 1], ["/A+/i", 2], ["/^b$/ self>99", 0], ["/a/ self>50", 1]]) {
    await show({ q });
    check((await page.evaluate(() => window.treering.rows().length)) === count, `${q} finds ${await page.evaluate(() => window.treering.rows().length)}`);
  }
  await show({ q: "", steps: [{ kind: "ignore", target: "q:/^b$/" }] });
  check((await page.evaluate(() => window.treering.rows().length)) === 2, "a filter by a regular expression works");
  await show({ steps: [] });
}

/** What a screen reader is told: the active row of a table, and as many cells in each row as there are heads. */
async function reader() {
  const client = await page.createCDPSession();
  await client.send("Accessibility.enable");
  const active = async (table) => {
    const { nodes } = await client.send("Accessibility.getFullAXTree");
    const grid = nodes.find((node) => /grid/.test(node.role?.value) && table.test(node.name?.value));
    const related = grid?.properties.find((one) => one.name === "activedescendant")?.value.relatedNodes?.[0].backendDOMNodeId;
    const row = nodes.find((node) => node.backendDOMNodeId === related);
    return { focused: grid?.properties.some((one) => one.name === "focused" && one.value.value), role: row?.role?.value, name: row?.name?.value ?? "" };
  };
  for (const [profile, more] of [[fixture("formats/cpuprofile/shapes.cpuprofile"), []], [fixture("formats/pstats/shapes.pstats"), []], [fixture("formats/prolog/queens.prolog"), []], [made("new.trg"), ["--diff", made("base.trg")]]]) {
    await open(profile, ...more);
    const is = `${basename(profile)}:`;
    const tables = { functions: ".functions .scroll", central: ".central-table", tree: ".tree .scroll" };
    for (const [table, selector] of Object.entries(tables)) {
      await show({ view: table === "tree" ? "tree" : "overview" });
      if (!(await page.$(selector))) continue;
      const counts = await page.$$eval(`${selector} [role=row]`, (rows) => rows.map((row) => row.querySelectorAll("[role=columnheader], [role=gridcell]").length));
      check(new Set(counts).size === 1 && counts.length > 2, `${is} heads and cells of ${table}: ${counts}`);
      await page.focus(selector);
      await page.keyboard.press("Home");
      await settled(page);
      const first = await active(new RegExp(table, "i"));
      check(first.role === "row" && first.name.length > 0 && first.focused, `${is} ${table} tells ${JSON.stringify(first)}`);
      await page.keyboard.press("ArrowDown");
      await settled(page);
      const second = await active(new RegExp(table, "i"));
      const several = (await page.$$(`${selector} [role=row][id]`)).length > 1;
      if (several) check(second.name !== first.name && second.name.length > 0, `${is} an arrow in ${table} leads from ${first.name} to ${JSON.stringify(second)}`);
    }
    await show({ view: "overview" });
    await page.focus(".functions .scroll");
    await page.keyboard.press("End");
    await page.keyboard.press("Home");
    await settled(page);
    const told = await active(/functions/);
    const name = await page.evaluate(() => window.treering.functions()[window.treering.rows()[0]].function);
    check(told.name.startsWith(`${name}, total`) && /self|→/.test(told.name), `${is} the first row is told as ${told.name}`);
  }
  await client.detach();
}

/** Names have their place, and no label is cut, at the widths of common screens. */
async function widths() {
  const profiles = [fixture("formats/cpuprofile/shapes.cpuprofile"), fixture("formats/prolog/queens.prolog"), made("kinds.trg"), made("callers.folded"), fixture("formats/callgrind/instructions.callgrind")];
  for (const profile of profiles) {
    await open(profile);
    for (const [width, height] of [[1280, 800], [1366, 768], [1440, 900], [1600, 900], [1920, 1080], [390, 844]]) {
      await page.setViewport({ width, height });
      for (const unit of ["run", "natural"]) {
        for (const change of width < 761 ? [{ pane: "functions" }, { pane: "line" }, { pane: "source" }] : [{ view: "overview" }, { view: "graph" }, { view: "tree" }]) {
          await show({ ...change, unit });
          const seen = await page.evaluate(() => {
            const inside = (one) => {
              const box = one.getBoundingClientRect();
              const pane = (one.closest(".pane, header, .toolbar") ?? document.body).getBoundingClientRect();
              return box.width === 0 || (box.left >= pane.left - 1 && box.right <= pane.right + 1 && one.scrollWidth <= one.clientWidth + 1);
            };
            const labels = [...document.querySelectorAll(".chip, .pane-head > *, .code-head > *, .badge, .toolbar > *, label, .tabs button, .row.head span")];
            const cells = (selector) => [...document.querySelectorAll(selector)].map((row) => row.lastElementChild.getBoundingClientRect().width);
            return { cut: labels.filter((one) => !inside(one)).map((one) => one.outerHTML.slice(0, 120)), functions: Math.min(...cells(".functions .row:not(.head)")), line: Math.min(...cells(".central-table .row:not(.head)")) };
          });
          const is = `${basename(profile)} at ${width}, ${unit}, ${JSON.stringify(change)}`;
          check(seen.cut.length === 0, `${is} cuts ${seen.cut}`);
          check((seen.functions ?? 999) >= 178 && (seen.line ?? 999) >= 168, `${is} leaves ${seen.functions} and ${seen.line} pixels for names`);
        }
      }
    }
  }
  // Sixty callers leave the function and its callees in sight.
  await page.setViewport({ width: 1440, height: 900 });
  await open(made("callers.folded"));
  await show({}, "shared");
  const inSight = () => page.evaluate(() => {
    const pane = document.querySelector(".central-table").getBoundingClientRect();
    const all = [...document.querySelectorAll(".central-table .row.this, .central-table [aria-label=callees] .row")];
    return { rows: document.querySelectorAll(".central-table [aria-label=callers] .row").length, inSight: all.length === 4 && all.every((one) => one.getBoundingClientRect().top >= pane.top && one.getBoundingClientRect().bottom <= pane.bottom), words: document.querySelector(".central-table .sum").textContent };
  });
  const few = await inSight();
  check(few.inSight && few.rows < 20 && /adds up/.test(few.words), `with 60 callers: ${JSON.stringify(few)}`);
  await (await page.$(".central-table [aria-label=callers] button")).click();
  await settled(page);
  check((await inSight()).rows === 60, `all callers are shown when they are asked for: ${JSON.stringify(await inSight())}`);
}

/** The way back ends at the function that was shown first, which its address does not name. */
async function back() {
  await open(made("recursion.folded"));
  const current = () => page.evaluate(() => window.treering.state().fn);
  const first = await current();
  await show({ fn: first === 1 ? 2 : 1 });
  await page.evaluate(() => history.back());
  await until(page, () => location.hash === "");
  await settled(page);
  check((await current()) === first && !/reading/.test(await text(".central")), `back is ${await current()}, and not ${first}: ${await text(".central")}`);
}

/** Names end where they are cut to fit, and not where the room ends: Tree14 was shown as Tree1 in its own line. */
async function names() {
  await open(fixture("formats/trg/timed.trg"));
  for (const width of [1280, 1366, 700]) {
    await page.setViewport({ width, height: 800 });
    for (const fn of await page.evaluate(() => window.treering.rows().slice(0, 12))) {
      await show({ fn, pane: "line" });
      const cut = await page.$$eval(".central-table .name .text", (all) => all.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent));
      check(cut.length === 0, `at ${width} pixels the central line cuts ${cut}`);
    }
  }
  await page.setViewport({ width: 1440, height: 900 });
}

/** Threads are listed with the costs of the report, and those that are chosen are shown alone. */
async function threads() {
  await open(made("threads.trg"));
  await page.keyboard.press("t");
  await settled(page);
  const listed = await texts(".threads ul ul li label");
  const known = report(made("threads.trg"), "--threads").threads;
  check(listed.length === known.length && listed.length === 3, `threads are ${listed}; the report has ${JSON.stringify(known)}`);
  const run = known.reduce((sum, one) => sum + one.total_cost, 0);
  for (const one of known) check(listed.some((text) => text.startsWith(one.thread) && text.includes(`${((100 * one.total_cost) / run).toFixed(1)} %`)), `${JSON.stringify(one)} in ${listed}`);
  const boxes = await page.$$(".threads ul ul input");
  await boxes[listed.findIndex((text) => text.startsWith("worker-2"))].click();
  await (await page.$(".threads .buttons button")).click();
  await settled(page);
  const of = report(made("threads.trg"), "--flat", "--thread", "worker-2").functions;
  const shown = await page.evaluate(() => window.treering.functions().filter((one) => one.self > 0).map(({ function: name, self, total }) => ({ name, self, total })));
  for (const one of shown) check(of.some((other) => other.function === one.name && other.self_cost === one.self && other.total_cost === one.total), `${JSON.stringify(one)} of worker-2; the report has ${JSON.stringify(of)}`);
  check(shown.length === of.filter((one) => one.self_cost > 0).length && shown.length === 2, `functions of worker-2: ${JSON.stringify(shown)}`);
  check((await texts(".crumb")).length === 1, `a breadcrumb tells of it: ${await texts(".crumb")}`);
  await show({ steps: [] });
}

/** The menu of a function, by mouse, finger and keyboard, wherever the function stands. */
async function menus() {
  await open(made("threads.trg"));
  const menu = () => page.$eval(".menu", (one) => one.getAttribute("aria-label")).catch(() => null);
  const choose = async (label) => {
    for (const item of await page.$$(".menu button")) if ((await item.evaluate((one) => one.textContent)).startsWith(label)) await item.click();
    await settled(page);
  };
  const places = { overview: [".functions .row[data-fn]", ".central-table .row[data-fn]"], tree: [".tree .row[data-fn]"], graph: [".graph-node"] };
  for (const [view, selectors] of Object.entries(places)) {
    await show({ view });
    for (const selector of selectors) {
      await (await page.$(selector)).click({ button: "right" });
      await settled(page);
      check(/^menu of \w+/.test(await menu()), `a right click on ${selector} opens ${await menu()}`);
      check(await page.evaluate(() => document.activeElement?.closest(".menu") !== null), "the menu has the focus");
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("Escape");
      await settled(page);
      check((await menu()) === null, "Escape closes the menu");
    }
  }
  await show({ view: "flame" });
  const canvas = await (await page.$(".flame canvas")).boundingBox();
  await page.mouse.click(canvas.x + 20, canvas.y + 10, { button: "right" });
  await settled(page);
  check((await menu()) === "menu of main", `in the flame graph: ${await menu()}`);
  await choose("Copy name");
  await show({ view: "overview" }, "work");
  const right = async (name) => {
    const row = await page.evaluateHandle((name) => [...document.querySelectorAll(".functions .row[data-fn]")].find((row) => row.querySelector(".name").title === name), name);
    await row.click({ button: "right" });
    await settled(page);
  };
  for (const [label, kind] of [["Focus", "focus"], ["Ignore", "ignore"], ["Hide", "hide"]]) {
    await right("copy");
    await choose(label);
    const { steps, fn } = await page.evaluate(() => window.treering.state());
    check(steps.length === 1 && steps[0].kind === kind && steps[0].target === "f:copy", `${label} is ${JSON.stringify(steps)}`);
    check((await page.evaluate((fn) => window.treering.functions()[fn].function, fn)) === "work", `${label} leaves the current function`);
    await show({ steps: [] });
  }
  await page.evaluate(() => { navigator.clipboard.writeText = (text) => ((window.copied = text), Promise.resolve()); });
  await right("copy");
  await choose("Copy name");
  check((await page.evaluate(() => window.copied)) === "copy", `the name is copied: ${await page.evaluate(() => window.copied)}`);
  await show({ tab: "charts" });
  await right("copy");
  await choose("Open source");
  check(await page.evaluate(() => { const { fn, tab } = window.treering.state(); return tab === "source" && window.treering.functions()[fn].function === "copy"; }), "the source is opened");
  // The keyboard's menu key has no place of its own: the menu is that of the active row.
  await page.focus(".functions .scroll");
  await page.keyboard.press("Home");
  await settled(page);
  await page.evaluate(() => document.activeElement.dispatchEvent(new MouseEvent("contextmenu", { bubbles: true, cancelable: true })));
  await settled(page);
  const first = await page.evaluate(() => window.treering.functions()[window.treering.rows()[0]].function);
  check((await menu()) === `menu of ${first}`, `the key opens ${await menu()}`);
  await page.keyboard.press("Escape");
  const client = await page.createCDPSession();
  const row = await (await page.$(".functions .row[data-fn]")).boundingBox();
  await client.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: [{ x: row.x + 200, y: row.y + 10 }] });
  await until(page, () => document.querySelector(".menu") !== null).catch(() => check(false, "a long press opens the menu"));
  await client.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
  await page.keyboard.press("Escape");
  await settled(page);
}

/** Waiting is led back to the program's own functions, and the hottest lines of all functions are listed. */
async function places() {
  await open(made("waiting.trg"));
  await show({}, "futex_wait");
  const owners = await text(".owners");
  check(/^from the program’s own locked 75\.0 % light 25\.0 %/.test(owners.replace(/\s+/g, " ")), `futex_wait comes ${owners}`);
  check((await page.$("[role=grid] .owners")) === null, "buttons are in no grid, except in its cells");
  await show({}, "locked");
  check((await text(".owners")) === "", "an own function needs none");
  await open(made("threads.trg"));
  await show({ tab: "lines" });
  const lines = (await texts(".hot-line button")).slice(0, 2).map((one) => one.replace(/\s+/g, " "));
  check(/^60\.0.*demo\.c:9.*work/.test(lines[0]) && /^30\.0.*demo\.c:21.*copy/.test(lines[1]), `the hottest lines are ${lines.join(" and ")}`);
  await (await page.$$(".hot-line button"))[1].click();
  await settled(page);
  check(await page.evaluate(() => window.treering.functions()[window.treering.state().fn].function === "copy"), "a click leads to its function");
}

/** The picture is SVG as wide as the costs are. */
async function picture() {
  await open(made("threads.trg"));
  await show({ view: "flame", fn: 0 });
  await page.evaluate(() => { URL.createObjectURL = (blob) => { void blob.text().then((text) => (window.saved = text)); return "blob:none"; }; HTMLAnchorElement.prototype.click = function () { window.savedAs = this.download; }; });
  for (const button of await page.$$(".pane-head button")) if ((await button.evaluate((one) => one.textContent)) === "SVG") await button.click();
  await until(page, () => window.saved !== undefined);
  const seen = await page.evaluate(() => {
    const svg = new DOMParser().parseFromString(window.saved, "image/svg+xml");
    const widths = Object.fromEntries([...svg.querySelectorAll("g")].map((one) => [one.querySelector("title").textContent.split(":")[0], Number(one.querySelector("rect").getAttribute("width"))]));
    return { broken: svg.querySelector("parsererror") !== null, scripts: svg.querySelectorAll("script").length, widths, as: window.savedAs };
  });
  check(!seen.broken && seen.scripts === 0 && seen.as === "flame-graph.svg", JSON.stringify(seen));
  for (const [name, share] of [["main", 1], ["work", 0.6], ["copy", 0.3], ["idle", 0.1]]) check(Math.abs(seen.widths[name] - (1200 * share - 1)) < 0.6, `${name} is ${seen.widths[name]} wide`);
}

/** A phone has menus of metric and unit, and losses. */
async function phone() {
  await page.setViewport({ width: 390, height: 844 });
  await open(made("lossy.trg"));
  const selects = await page.$$eval(".toolbar select", (all) => all.filter((one) => one.offsetParent).map((one) => { const { left, right, height } = one.getBoundingClientRect(); return left >= 0 && right <= 390 && height >= 34; }));
  check(selects.length >= 2 && selects.every(Boolean), `menus on a phone: ${selects}`);
  await page.select(".toolbar label:last-of-type select", "natural");
  await settled(page);
  check((await page.evaluate(() => window.treering.state().unit)) === "natural", "the unit changes on a phone");
  check(/samples lost/.test(await text(".lost")), "losses on a phone");
  check((await page.evaluate(() => document.documentElement.scrollWidth)) <= 390, "nothing is wider than the phone");
  await page.setViewport({ width: 1440, height: 900 });
}
