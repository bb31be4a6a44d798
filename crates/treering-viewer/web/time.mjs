// Time in the page, for runs whose course is known: what is drawn, selected, compared and found, by pointer, keys and touch.
//
//   node time.mjs [FOLDER]
//
// FOLDER gets a picture of each state.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { launch, settled } from "./chromium.mjs";
import { RUNS } from "./timed.mjs";

const [pictures] = process.argv.slice(2);
const scratch = mkdtempSync(join(tmpdir(), "treering-time-"));
const failures = [];
const check = (holds, what) => holds || failures.push(what);
const browser = await launch();
const page = await browser.newPage();
page.on("pageerror", (error) => failures.push(error.message));

const made = new Map();
async function open(name, hash = "", size = { width: 1440, height: 900 }) {
  if (!made.has(name)) {
    const file = join(scratch, `${name}.html`);
    writeFileSync(file, RUNS[name]().html());
    made.set(name, file);
  }
  await page.setViewport(size);
  // Another hash alone would open nothing.
  await page.goto("about:blank");
  await page.goto(`file://${made.get(name)}#${hash}`);
  await drawn();
}

/** Waits until all panes and the strip show the same state. */
async function drawn() {
  await settled(page);
  await page.waitForFunction(() => !document.querySelector(".time .wait"), { polling: 50 });
  await settled(page);
}

const text = (selector) => page.$$eval(selector, (all) => all.map((one) => one.textContent.trim()).join(" "));
const state = () => page.evaluate(() => window.treering.state());
const self = (name) => page.evaluate((name) => window.treering.functions().find((one) => one.function === name).self, name);
const hash = () => page.evaluate(() => decodeURIComponent(location.hash));
async function picture(name) {
  if (pictures) await page.screenshot({ path: join(pictures, `${name}.png`) });
}
async function press(...keys) {
  for (const key of keys) {
    await page.keyboard.press(key);
    await drawn();
  }
}

/** Drags over the plot, from and to parts of its width. */
async function drag(from, to, { y = 0.75, y2 = y, selector = "#time-plot" } = {}) {
  const box = await (await page.$(selector)).boundingBox();
  await page.mouse.move(box.x + from * box.width, box.y + y * box.height);
  await page.mouse.down();
  for (let at = 1; at <= 8; at++) await page.mouse.move(box.x + (from + ((to - from) * at) / 8) * box.width, box.y + (y + ((y2 - y) * at) / 8) * box.height);
  await page.mouse.up();
  await drawn();
}

/** The colour of the strip's canvas at parts of its size. */
const pixel = (x, y) => page.evaluate((x, y) => {
  const canvas = document.querySelector("#time-plot canvas");
  return [...canvas.getContext("2d").getImageData(Math.floor(x * canvas.width), Math.floor(y * canvas.height), 1, 1).data].slice(0, 3).join();
}, x, y);

await selects();
await currentIsDark();
await keys();
await threads();
await compares();
await repeats();
await ordered();
await peaks();
await without();
await marks();
await odd();
await phone();
await browser.close();
rmSync(scratch, { recursive: true, force: true });
failures.forEach((failure) => console.error(`FAILED: ${failure}`));
process.exit(failures.length ? 1 : 0);

/** Every pane follows what a drag selects; the address has it, and Escape undoes it. */
async function selects() {
  await open("phases");
  await drag(0.2, 0.5);
  const { steps } = await state();
  const [from, to] = steps[0].target.split("-").map(Number);
  // A pixel of the plot is some ms.
  check(Math.abs(from - 2e6) < 2e4 && Math.abs(to - 5e6) < 2e4 && from % 1000 === 0, `the drag selects ${steps[0].target}`);
  await open("phases", "x=time:2000000-5000000");
  await picture("phases-selected");
  const right = { load: 0, parse: 0, index: 1e9, sort: 1e9, merge: 1e9, simulate: 0 };
  for (const [name, cost] of Object.entries(right)) check((await self(name)) === cost, `${name} has ${await self(name)} in seconds 2 to 5, not ${cost}`);
  check(/2\.000–5\.000 s.*3\.000 s, 30\.0 % of the run.*CPU 3\.000 ± 0\.107 s \(1\.00 processors\).*3,000 samples/.test(await text(".time-numbers")), `the numbers are ${await text(".time-numbers")}`);
  check(/2\.000–5\.000 s/.test(await text(".crumbs")), "the breadcrumbs name the selection");
  const shown = await page.$$eval(".functions .row:not(.head)", (rows) => rows.map((row) => `${row.querySelector(".name").title} ${row.firstChild.textContent}`));
  check(shown.includes("index 33.3") && !shown.some((row) => row.startsWith("parse")), `the table has ${shown}`);
  // 1,000 of 3,000 samples, by Wilson: 31.7 to 35.0 %.
  check((await text(".functions .row")).includes("31.7–35.0"), "a part has intervals of its own");
  await press("Escape");
  check((await state()).steps.length === 0 && (await self("load")) === 1e9, "Escape shows the whole run again");
  await page.goBack();
  await drawn();
  check(/x=time:2000000-5000000/.test(await hash()), "back brings the selection back");
  await press("u");
  check((await state()).steps.length === 0, "U undoes the selection");
  // A click without moving clears.
  await drag(0.1, 0.3);
  await drag(0.65, 0.65, { y: 0.2 });
  check((await state()).steps.length === 0, "a click clears");
}

/** The current function is dark where it runs, in the overview and in its thread's track. */
async function currentIsDark() {
  await open("phases", "fn=sort");
  const colour = await page.evaluate(() => {
    const rgb = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim().match(/[0-9a-f]{2}/g).map((part) => parseInt(part, 16)).join();
    return { cur: rgb("--cur"), cpu: rgb("--cpu") };
  });
  for (const y of [0.3, 0.9]) {
    check((await pixel(0.355, y)) === colour.cur, `sort is ${await pixel(0.355, y)} at ${y}, not ${colour.cur}`);
    check((await pixel(0.255, y)) === colour.cpu, `index is ${await pixel(0.255, y)} at ${y}, not ${colour.cpu}`);
  }
}

/** The keys of the strip move, widen and magnify. */
async function keys() {
  await open("phases", "x=time:2000000-5000000");
  await press("t", "ArrowRight");
  const moved = (await state()).steps[0].target;
  check(moved === "2050000-5050000", `an arrow moves by a 200th: ${moved}`);
  await page.keyboard.down("Shift");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.up("Shift");
  await drawn();
  check((await state()).steps[0].target === "2050000-5100000", `with Shift its end alone: ${(await state()).steps[0].target}`);
  await page.focus(".grip");
  await press("ArrowLeft");
  check((await state()).steps[0].target === "2000000-5100000", `an edge is a slider: ${(await state()).steps[0].target}`);
  check((await page.$eval(".grip", (grip) => grip.getAttribute("aria-valuetext"))) === "2.000 s", "its value is told as a time");
  await press("z");
  const { window } = await state();
  check(window && window[0] < 2e9 && window[1] > 5.1e9, `Z zooms to the selection: ${window}`);
  check((await state()).steps[0].target === "2000000-5100000" && (await self("load")) === 0, "zooming selects nothing else");
  await press("z");
  check((await state()).window === null, "Z again shows the whole run");
  // The edge has the focus, which is in the strip.
  await press("t");
  check((await state()).folded && !(await page.$("#time-plot")), "T folds the strip to its head");
  await press("t");
  check(!(await state()).folded, "T unfolds it");
}

/** A click on a label shows only this thread, again all; hundreds of threads are processes. */
async function threads() {
  await open("convoy", "fn=rehash");
  await picture("convoy");
  const labels = await page.$$eval(".time-label .time-name", (all) => all.map((one) => one.textContent));
  check(labels.join() === "worker 0,worker 1,worker 2,worker 3" || labels.length === 4, `the tracks are ${labels}`);
  await page.click(".time-label:nth-child(2)");
  await drawn();
  check(/worker 1/.test(await text(".crumbs")), `the breadcrumb is ${await text(".crumbs")}`);
  const one = await self("rehash");
  await page.click(".time-label:nth-child(2)");
  await drawn();
  check((await state()).steps.length === 0 && one > 0 && one < (await self("rehash")), "again shows all");
  // 150 rounds of 3 waiters, 18 ms each, in the part with the lock.
  await open("convoy", "x=time:2000000-5000000");
  check(/waited for locks 8\.100, for a processor 0\.900 s/.test(await text(".time-numbers")), `the waits are ${await text(".time-numbers")}`);
  await press("w");
  const waits = await page.$$eval(".waits .row:not(.head)", (rows) => rows.map((row) => row.textContent.replace(/\s+/g, " ")));
  check(/^4508\.1000\.018update_table$/.test(waits[0]) && waits.some((row) => /^4500\.900.*no processor/.test(row)) && /^9\.000/.test(waits.at(-1)), `the places of waits are ${waits.join(" | ")}`);
  await picture("convoy-selected");
  const enders = await page.$$eval(".waits .waker", (rows) => rows.map((row) => row.textContent));
  check(enders[0] === "ended by handle_request 100.0 %", `the waits for the lock are ${enders[0]}`);
  await page.click(".waits .row:not(.head)");
  await drawn();
  const told = await text(".waits .code-head");
  check(/^worker \d waited 18\.000 ms for a lock in update_table, ended by worker \d in handle_request, ran 1\.000 ms later\.$/.test(told), `the longest wait is told as ${told}`);
  await picture("convoy-waker");
  await open("many");
  await picture("many");
  const rows = await page.$$eval(".time-label .time-name", (all) => all.map((one) => one.textContent));
  check(rows.length === 6 && /^server \d+ \d+ \d+$/.test(rows[0]) && /11 more processes/.test(rows[5]), `of 500 threads there are ${rows}`);
}

/** A compares the selection with the rest, per second; only what is more than chance has an arrow. */
async function compares() {
  await open("stall", "fn=write_pages&x=time:7360000-7500000");
  await press("a");
  await picture("stall-compared");
  check(/A the rest of the run.*B 7\.360–7\.500 s/.test(await text(".time-numbers")), `the sides are ${await text(".time-numbers")}`);
  const rows = await page.$$eval(".functions .row:not(.head)", (rows) => Object.fromEntries(rows.map((row) => [row.querySelector(".name").title, [...row.querySelectorAll("[role=gridcell]")].map((cell) => cell.textContent)])));
  // In 140 ms nine of ten samples are of it; in the rest 980 of 15,860 ms are other stalls.
  check(/^▲ 0\.8/.test(rows.write_pages[2]) && Number(rows.write_pages[1]) > 0.8, `write_pages has ${rows.write_pages}`);
  check(!/[▲▼]/.test(rows._recv[2]), `_recv, which runs alike, has ${rows._recv}`);
  check(/x=against:rest/.test(await hash()), "the address has the comparison");
  await press("a");
  check((await state()).steps.length === 1 && (await state()).sort === "self", "A again ends it");
}

/** The heatmap says what repeats; a band is the same milliseconds of every column. */
async function repeats() {
  await open("stall", "fn=write_pages");
  await press("g");
  check(/repeats every 2 s/.test(await text(".time-head")), `the heatmap says ${await text(".time-head")}`);
  await page.keyboard.down("Shift");
  await drag(0.1, 0.6, { y: 0.69, y2: 0.735, selector: ".heat-body .time-plot" });
  await page.keyboard.up("Shift");
  const { steps } = await state();
  const found = /^(\d+)-(\d+)\/2000000$/.exec(steps[0]?.target ?? "");
  check(found && Math.abs(Number(found[1]) - 1.36e6) <= 4e4 && Math.abs(Number(found[2]) - 1.5e6) <= 4e4, `the band is ${steps[0]?.target}`);
  check(/8 times/.test(await text(".time-numbers")), `its numbers are ${await text(".time-numbers")}`);
  const share = await page.evaluate(() => {
    const all = window.treering.functions();
    return all.find((one) => one.function === "write_pages").self / all.reduce((sum, one) => sum + one.self, 0);
  });
  check(share > 0.8, `write_pages is ${share} of the band`);
  await picture("stall-band");
  await press("g");
  check((await state()).mode === "tracks", "G again shows the tracks");
}

/** P goes from peak to peak of the current function, and around the run. */
async function peaks() {
  await open("stall", "fn=write_pages");
  const found = [];
  for (let at = 0; at < 3; at++) {
    await press("p");
    await page.waitForFunction((before) => window.treering.state().steps[0] && window.treering.state().steps[0].target !== before, { polling: 50 }, found.at(-1) ?? "");
    await drawn();
    found.push((await state()).steps[0].target);
  }
  // A stall of 140 ms, or of 40, stands in each two seconds.
  const starts = found.map((target) => Number(target.split("-")[0]));
  check(starts[1] - starts[0] > 1.5e6 && starts[1] - starts[0] < 2.5e6 && starts[2] > starts[1], `the peaks are ${found}`);
  const share = await page.evaluate(() => {
    const all = window.treering.functions();
    return all.find((one) => one.function === "write_pages").self / all.reduce((sum, one) => sum + one.self, 0);
  });
  check(share > 0.5, `write_pages is ${share} of a peak`);
  // Threads by their names, in the search.
  await open("convoy");
  await page.focus("#search");
  await page.keyboard.type("thread:3");
  await drawn();
  check(/1 thread/.test(await text(".search .hit")), `the search says ${await text(".search .hit")}`);
  await press("Enter");
  check((await state()).steps[0]?.kind === "threads" && (await state()).q === "" && /worker 3/.test(await text(".crumbs")), `the breadcrumb is ${await text(".crumbs")}`);
  // The lower edge has room for fewer tracks.
  await page.focus(".time-edge");
  await press("ArrowUp");
  check((await state()).tracks === 3 && (await page.$$(".time-label")).length === 3, `three tracks, not ${(await page.$$(".time-label")).length}`);
  check(/tracks=3/.test(await hash()), "the address has the tracks");
}

/** A profile without time has a sentence instead. */
async function without() {
  await open("phases");
  const html = readFileSync(made.get("phases"), "utf8");
  const head = /<script[^>]*id="head"[^>]*>([^<]*)</.exec(html);
  const none = html.replace(head[1], () => JSON.stringify({ ...JSON.parse(head[1]), time: null }));
  writeFileSync(join(scratch, "none.html"), none);
  await page.goto(`file://${join(scratch, "none.html")}`);
  await settled(page);
  check(/No time in this profile.*record.*perf, Firefox/.test(await text(".time-none")), `it says ${await text(".time-none")}`);
  check(!(await page.$("#time-plot")), "it has no strip");
  await picture("without");
}

/** O shows the stacks of the selected part in the order of time; magnifying selects nothing. */
async function ordered() {
  await open("convoy", "x=time:2000000-2200000&fn=rehash");
  await press("o");
  const words = () => page.$eval(".order canvas", (canvas) => canvas.getAttribute("aria-label"));
  check(/^stacks in the order of time, 2\.000 to 2\.200: worker \d, CPU 0\.060 s here, below update_table;/.test(await words()), `the picture is ${await words()}`);
  check(/order=time/.test(await hash()), "the address has the order");
  await picture("convoy-in-order");
  const before = await self("rehash");
  await page.focus(".order canvas");
  await press("+", "+");
  check(/2\.051 to 2\.149/.test(await words()), `magnified it is ${await words()}`);
  check((await self("rehash")) === before && (await state()).steps.length === 1, "magnifying selects nothing else");
  // Row 0 of the first lane: each worker has the lock for 20 ms in turn.
  const found = await page.evaluate(() => {
    const canvas = document.querySelector(".order canvas");
    const box = canvas.getBoundingClientRect();
    const colours = new Set();
    for (let x = 0; x < canvas.width; x += 4) colours.add([...canvas.getContext("2d").getImageData(x, Math.round(((20 + 20 + 4) * canvas.height) / box.height), 1, 1).data].slice(0, 3).join());
    return colours.size;
  });
  check(found >= 2, `the first lane has ${found} colours`);
  await press("o");
  check(!(await page.$(".order")) && (await state()).order === "sum", "O again adds the stacks up");
}

/** Marks stand at their times, with their names. */
async function marks() {
  await open("phases", "theme=dark", { width: 1280, height: 800 });
  await picture("phases-dark");
  const head = await page.$eval(".time-scale", (one) => one.getBoundingClientRect().height);
  check(head === 36, `with flags the axis is ${head} px high`);
  const box = await (await page.$("#time-plot")).boundingBox();
  await page.mouse.click(box.x + 0.2 * box.width + 8, box.y + 66);
  await drawn();
  check((await state()).steps[0]?.target === "2000000-3000000", `a click on the mark "index" selects ${(await state()).steps[0]?.target}`);
  // The menu of a function selects when it ran.
  await press("Escape");
  await page.click(".functions .row .name[title=merge]", { button: "right" });
  await (await page.$$(".menu button")).at(-1).evaluate(() => [...document.querySelectorAll(".menu button")].find((one) => /first to its last/.test(one.textContent)).click());
  await page.waitForFunction(() => window.treering.state().steps.length === 1, { polling: 50 });
  check((await state()).steps[0].target === "4000000-5000000", `the menu selects ${(await state()).steps[0].target}`);
}

/** An address that nobody would write shows a page all the same. */
async function odd() {
  for (const hash of ["x=time:0-1/2", "x=time:99999999-999999999", "x=time:5-1", "x=against:rest", "x=time:0-9&x=time:1-2", "window=99999999-999999999", "window=1-2", "mode=heat&column=0.0001", "mode=heat&column=99999999999", "x=time:1000000-2000000&x=against:x"]) {
    await open("phases", hash);
    check((await page.evaluate(() => window.treering.failure())) === null && (await page.$("#time-plot")), `${hash} is shown`);
  }
  // A part behind the end of the run is its last slot.
  await open("phases", "x=time:99999999-999999999");
  check(/9\.999–10\.000 s/.test(await text(".time-numbers")) && /9\.999–10\.000 s/.test(await text(".crumbs")), `it is named: ${await text(".time-numbers")}`);
  check((await self("report")) === 1e6, `the last slot has ${await self("report")}`);
}

/** On a phone the strip is one line and an overview; the tab has the tracks, and a finger selects. */
async function phone() {
  await open("convoy", "", { width: 390, height: 844, isMobile: true, hasTouch: true });
  await picture("phone");
  const tabs = await text(".tabbar");
  check(/Time/.test(tabs) && !/Line/.test(tabs), `the tabs are ${tabs}`);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  check(wide <= 390, `the page is ${wide} px wide`);
  const box = await (await page.$("#time-plot")).boundingBox();
  const touch = await page.touchscreen;
  await touch.touchStart(box.x + 0.25 * box.width, box.y + 20);
  for (let at = 1; at <= 5; at++) await touch.touchMove(box.x + (0.25 + 0.075 * at) * box.width, box.y + 20);
  await touch.touchEnd();
  await drawn();
  const [from, to] = ((await state()).steps[0]?.target ?? "0-0").split("-").map(Number);
  check(Math.abs(from - 2e6) < 5e4 && Math.abs(to - 5e6) < 5e4, `a finger selects ${from}-${to}`);
  await page.evaluate(() => window.treering.go({ pane: "time" }));
  await drawn();
  check((await page.$$(".time-phone")).length === 4, "the tab has a track for each thread");
  await picture("phone-time");
}
