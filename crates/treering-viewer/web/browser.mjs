// Shows pages of real profiles in Chromium and compares what is on screen with `treering report --json`.
//
//   node browser.mjs TREERING PROFILE... [--shots FOLDER]
//
// Every profile becomes a page; its functions and central lines are read out of the page and compared
// with the report's, to the unit. axe-core looks at every view, light and dark. A request to anything
// but the page itself fails the test. `--shots` puts pictures of all views at four widths into a folder.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { drawn, launch, settled, until } from "./chromium.mjs";

const args = process.argv.slice(2);
const shotsAt = args.indexOf("--shots");
const shots = shotsAt >= 0 ? args.splice(shotsAt, 2)[1] : null;
const [treering, ...profiles] = args;
const scratch = mkdtempSync(join(tmpdir(), "treering-view-"));
const axe = readFileSync(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
let failed = 0;

function check(holds, what) {
  if (!holds) {
    failed++;
    console.error(`  FAILED: ${what}`);
  }
}

/** What the page can show, by the names of the pictures. */
const SIGHTS = {
  overview: { view: "overview", tab: "source" },
  lines: { view: "overview", tab: "lines" },
  blocks: { view: "overview", tab: "blocks" },
  charts: { view: "overview", tab: "charts" },
  flame: { view: "flame" },
  sandwich: { view: "sandwich" },
  graph: { view: "graph" },
  tree: { view: "tree" },
  callers: { view: "callers" },
};

/** By theme: how many texts of each look were checked for their contrast. */
const looks = { light: {}, dark: {} };

const browser = await launch();

async function open(page, file, hash = "") {
  await page.goto(`file://${file}${hash}`);
  await until(page, () => window.treering?.ready() || window.treering?.failure() || document.querySelector("#page > .failure") !== null);
}

for (const profile of profiles) {
  const name = basename(profile).replace(/\..*$/, "");
  console.log(`${name}`);
  const file = join(scratch, `${name}.html`);
  execFileSync(treering, ["view", profile, "--no-open", "-o", file], { stdio: ["ignore", "ignore", "pipe"] });
  const report = JSON.parse(execFileSync(treering, ["report", profile, "--json", "--callgraph"], { maxBuffer: 1 << 30 }));
  const page = await browser.newPage();
  await page.setViewport({ width: 1440, height: 900 });
  const requests = [];
  const problems = [];
  page.on("request", (request) => /^(file|blob|data):/.test(request.url()) || requests.push(request.url()));
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  await open(page, file);
  check((await page.evaluate(() => window.treering.failure())) === null, `the page opens: ${await page.evaluate(() => window.treering?.failure())}`);
  await compare(page, report);
  await page.evaluate(axe);
  for (const theme of ["light", "dark"]) {
    for (const [sight, change] of Object.entries(SIGHTS)) {
      await show(page, { ...change, theme }, `${sight} of ${name}`);
      await accessible(page, theme, `${sight} of ${name}, ${theme}`);
    }
    await show(page, { ...SIGHTS.overview, open: true, q: "a" }, `the opened header of ${name}`);
    await page.keyboard.press("?");
    await accessible(page, theme, `the header and the keys of ${name}, ${theme}`);
    await page.keyboard.press("Escape");
    // So low that whatever can scroll does, on any machine: its facts may be long or short.
    await page.setViewport({ width: 1280, height: 360 });
    await accessible(page, theme, `the opened header of ${name} in a low window, ${theme}`);
    await page.keyboard.press("?");
    await accessible(page, theme, `the keys of ${name} in a low window, ${theme}`);
    await page.keyboard.press("Escape");
    await page.setViewport({ width: 1440, height: 900 });
    await show(page, { open: false, q: "" }, `the overview of ${name} after a search`);
  }
  await newUser(page, name);
  await keyboard(page, name);
  await narrow(page, name);
  if (shots) await pictures(page, name);
  check(requests.length === 0, `no request leaves the page: ${requests.join(", ")}`);
  check(problems.length === 0, `no error in the console: ${problems.join("; ")}`);
  await page.close();
}
await browser.close();
rmSync(scratch, { recursive: true, force: true });
console.log(failed ? `${failed} failed` : "the pages show what the reports say");
process.exit(failed ? 1 : 0);

/** A name as pages show it: what cannot be seen is escaped. */
function asShown(name) {
  return name.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (sign) => ({ "\n": "\\n", "\r": "\\r", "\t": "\\t" })[sign] ?? `\\u{${sign.codePointAt(0).toString(16)}}`);
}

/** Functions and central lines against the report's, to the unit. */
async function compare(page, report) {
  for (const known of report.functions) {
    known.function = asShown(known.function);
    for (const arc of [...(known.callers ?? []), ...(known.callees ?? [])]) for (const end of ["caller", "callee"]) if (typeof arc[end] === "string") arc[end] = asShown(arc[end]);
  }
  const shown = await page.evaluate(() => window.treering.functions());
  const key = (one) => `${one.function}\t${one.module ?? ""}`;
  const byKey = new Map();
  shown.forEach((one, fn) => byKey.has(key(one)) ? byKey.get(key(one)).push(fn) : byKey.set(key(one), [fn]));
  let functions = 0;
  let arcs = 0;
  for (const known of report.functions) {
    const candidates = byKey.get(key(known)) ?? [];
    const fn = candidates.find((fn) => shown[fn].self === known.self_cost && (known.total_cost === null || shown[fn].total === known.total_cost) && (known.calls === null || shown[fn].calls === known.calls));
    check(fn !== undefined, `${known.function}: self ${known.self_cost}, total ${known.total_cost}, calls ${known.calls}; the page has ${candidates.map((fn) => JSON.stringify(shown[fn]))}`);
    if (fn === undefined) continue;
    functions++;
    if (candidates.length > 1) continue;
    const line = await page.evaluate((fn) => window.treering.line(fn), fn);
    // Members of a collapsed cycle are the exception: their callers asked for the cycle as a whole.
    const whole = report.collapsed_cycles && known.cycle !== null;
    check(whole || (line.callersAdd && line.calleesAdd), `the central line of ${known.function} adds up`);
    for (const [rows, list, other] of [[line.callers, known.callers ?? [], "caller"], [line.callees, known.callees ?? [], "callee"]]) {
      if (rows.some((row) => row.fn === -1)) continue;
      const pairs = (all) => JSON.stringify(all.sort());
      const ours = pairs(rows.map((row) => [row.fn === 0 && other === "caller" ? null : shown[row.fn].function, row.self, row.total].join("\t")));
      const theirs = pairs(list.map((arc) => [arc[other], arc.self_cost ?? arc.estimated_self_cost, arc.total_cost ?? arc.estimated_total_cost].join("\t")));
      check(ours === theirs, `${other}s of ${known.function}:\n    page   ${ours}\n    report ${theirs}`);
      arcs += rows.length;
    }
  }
  console.log(`  ${functions} functions and ${arcs} arcs are equal`);
}

/** As one who sees the page for the first time: three clicks from the first picture to the hottest line of the program's own code. */
async function newUser(page, name) {
  await page.evaluate(() => (location.hash = ""));
  await page.reload();
  await settled(page);
  const own = await page.$$eval(".chip", (chips) => chips.findIndex((chip) => /^\s*own/.test(chip.textContent)));
  if (own >= 0) await (await page.$$(".chip"))[own].click();
  await drawn(page);
  const first = await page.$(".functions .row:not(.head)");
  await first.click();
  await until(page, () => window.treering.settled());
  await drawn(page);
  const hottest = await page.evaluateHandle(() => [...document.querySelectorAll(".code-head button")].find((one) => one.textContent.startsWith("hottest")));
  // Without lines there is nothing to find, which the pane says.
  if (!hottest.asElement()) return check((await page.$(".code .empty, .code .charts")) !== null, `${name}: a pane without lines says so`);
  await hottest.asElement().click();
  await drawn(page);
  const seen = await page.evaluate(() => {
    const row = document.querySelector(".source-row.hot1") ?? document.querySelector(".block.hot1");
    if (!row) return null;
    const [box, pane] = [row.getBoundingClientRect(), row.closest(".scroll").getBoundingClientRect()];
    return { inSight: box.bottom > pane.top && box.top < pane.bottom, text: row.textContent };
  });
  check(seen?.inSight, `${name}: the hottest line is in sight after three clicks: ${JSON.stringify(seen)}`);
  console.log(`  three clicks lead to ${seen?.text.trim().slice(0, 100)}`);
}

/** On a phone nothing is wider than it is, whatever is shown. */
async function narrow(page, name) {
  await page.setViewport({ width: 390, height: 844 });
  const fn = await page.evaluate(() => window.treering.rows()[0]);
  const hide = { kind: "hide", target: "q:a function with a name that is longer than a phone is wide, so that it has to scroll" };
  for (const change of [{}, { steps: [hide, hide], q: "a" }, { pane: "flame" }, { pane: "line" }, { pane: "source" }, { pane: "more" }, { view: "sandwich" }, { view: "graph" }, { view: "tree" }, { view: "callers" }, { open: true }]) {
    await show(page, { fn, ...change }, `${name} on a phone`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    check(wide <= 390, `${name}: a phone shows ${JSON.stringify(change)} ${wide} pixels wide`);
  }
  await show(page, { view: "overview", open: false, steps: [], q: "", pane: "functions" }, `${name} on a phone`);
  await page.setViewport({ width: 1440, height: 900 });
}

/** Everything by keys alone: what each is said to do is what it does. */
async function keyboard(page, name) {
  await page.evaluate(() => (location.hash = ""));
  await page.reload();
  await until(page, () => window.treering?.settled());
  const state = () => page.evaluate(() => window.treering.state());
  const press = async (...keys) => {
    for (const key of keys) {
      const [modifier, letter] = key.length > 1 && key.includes("+") ? key.split("+") : [null, key];
      if (modifier) await page.keyboard.down(modifier);
      await page.keyboard.press(letter);
      if (modifier) await page.keyboard.up(modifier);
    }
    await until(page, () => window.treering.settled());
    await drawn(page);
  };
  const is = async (what, holds) => check(holds(await state()), `${name}: ${what}: ${JSON.stringify(await state())}`);
  for (const [at, view] of ["overview", "flame", "sandwich", "graph", "tree", "callers"].entries()) {
    await press(String(at + 1));
    await is(`${at + 1} shows ${view}`, (now) => now.view === view);
  }
  await press("1");
  for (const [key, tab] of [["w", "lines"], ["b", "blocks"], ["c", "charts"], ["s", "source"]]) {
    await press(key);
    await is(`${key} shows ${tab}`, (now) => now.tab === tab);
  }
  await press("?");
  const help = await page.evaluate(() => ({ keys: [...document.querySelectorAll(".help kbd")].map((one) => one.textContent), focused: document.activeElement.closest(".help") !== null }));
  check(help.focused && ["H", "J", "F", "X", "K", "L", "U", "R", "E", "#", "F6", "Esc"].every((key) => help.keys.includes(key)), `${name}: ? lists the keys: ${help.keys}`);
  await press("Escape");
  check((await page.$(".help")) === null, `${name}: Escape closes the keys`);
  if (await page.evaluate(() => document.querySelector(".toolbar [aria-haspopup=dialog]") !== null)) {
    await press("t");
    await accessible(page, "light", `the threads of ${name}`);
    await press("Escape");
    check((await page.$(".threads")) === null, `${name}: Escape closes the threads`);
  }
  await press("i");
  await is("I opens how it was measured", (now) => now.open);
  await press("i");
  await press("d");
  const theme = (await state()).theme;
  await press("d");
  check(theme !== (await state()).theme, `${name}: D changes the theme`);
  // The table: F6 goes there, arrows go on from row to row.
  await page.evaluate(() => document.activeElement.blur());
  await press("F6");
  check(await page.evaluate(() => document.activeElement.closest(".functions") !== null), `${name}: F6 goes to the functions`);
  const rows = await page.evaluate(() => window.treering.rows().length);
  await press("Home");
  const first = (await state()).fn;
  await press("ArrowDown");
  if (rows > 1) await is("an arrow goes to the next function", (now) => now.fn !== first);
  // Browsers take Alt ← themselves, which a driver's keys do not reach; the button does the same.
  await page.focus("[aria-label=back]");
  await press("Enter");
  await until(page, (first) => window.treering.state().fn === first, { given: [first] }).catch(() => check(rows < 2, `${name}: back goes back`));
  const around = await page.evaluate(() => { const { fn } = window.treering.state(); const line = window.treering.line(fn); return [line.callers, line.callees].map((rows) => rows.find((row) => row.fn > 0 && row.fn !== fn)?.fn ?? null); });
  const now = (await state()).fn;
  if (around[0] !== null) {
    await press("[");
    await is("[ goes to the first caller", (state) => state.fn === around[0]);
    await page.evaluate((fn) => window.treering.go({ fn }), now);
  }
  if (around[1] !== null) {
    await press("]");
    await is("] goes to the first callee", (state) => state.fn === around[1]);
    await page.evaluate((fn) => window.treering.go({ fn }), now);
  }
  await press("/");
  check(await page.evaluate(() => document.activeElement.id === "search"), `${name}: / goes to the search`);
  await page.keyboard.type("a");
  await press("Enter");
  await is("the search is typed", (now) => now.q === "a");
  await press("n");
  const matched = await page.evaluate(() => window.treering.rows());
  if (matched.length) await is("N goes to a match", (now) => matched.includes(now.fn));
  await press("Escape");
  await is("Escape clears the search", (now) => now.q === "");
  await press("#");
  await is("# searches the name", (now) => now.q !== "");
  await press("Escape");
  if (!(await page.$(".flame canvas"))) return;
  // Transforms, and back.
  for (const key of ["f", "x", "k"]) {
    await page.evaluate((fn) => window.treering.go({ fn }), now);
    await press(key);
    await is(`${key} is a transform`, (state) => state.steps.length === 1);
    check((await page.$$(".crumb")).length === 1, `${name}: ${key} stands as a breadcrumb`);
    await press("u");
    await is("U undoes it", (state) => state.steps.length === 0);
  }
  await press("r");
  await is("R folds recursion", (state) => state.fold);
  await press("r");
  // The flame graph: cursor, zoom, and out again.
  await page.focus(".flame canvas");
  await press("ArrowDown", "ArrowDown", "Enter");
  await is("Enter zooms", (state) => state.zoom.length > 0);
  check(await page.$eval(".mirror", (one) => one.textContent.includes("depth")), `${name}: the cursor is said to those who cannot see it`);
  await press("+", "0");
  await is("0 fits", (state) => state.zoom.length === 0);
  await press("5");
  const open = () => page.$$eval(".tree .row:not(.head)", (rows) => rows.length);
  const shown = await open();
  await page.focus(".tree .scroll");
  await press("Home", "ArrowLeft", "e");
  check((await open()) >= Math.min(shown, 1), `${name}: E opens the hottest path`);
  await press("1");
}

/** Changes what is shown, and waits until it is drawn. */
async function show(page, change, what) {
  await page.evaluate((change) => window.treering.go(change), change);
  await settled(page).catch(() => check(false, `${what} is still waiting`));
}

/**
 * Colours are all that differs between the themes. Contrast, which takes most of the time, is checked in the first three texts of
 * each look, in all views and pages: texts look alike whose elements have the same tags, classes and styles up to the root.
 */
async function accessible(page, theme, what) {
  if (await page.evaluate(() => window.axe === undefined)) await page.evaluate(axe);
  const [faults, counts] = await page.evaluate(async (counts, enough, isFull) => {
    const ends = (one) => [one.tagName, one.getAttribute("class"), one.getAttribute("style")?.replace(/-?\d+(\.\d+)?(px|%)/g, "")].join(".");
    const look = (one) => (one ? `${look(one.parentElement)} ${ends(one)}` : "");
    const hasText = (one) => [...one.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.data.trim());
    const include = [...document.querySelectorAll("body *")].filter((one) => {
      if (!hasText(one)) return false;
      const of = look(one);
      counts[of] = (counts[of] ?? 0) + 1;
      return counts[of] <= enough;
    });
    const violations = async (context, options) => (await window.axe.run(context, { resultTypes: ["violations"], ...options })).violations;
    const found = include.length ? await violations({ include }, { runOnly: ["color-contrast"] }) : [];
    if (isFull) found.push(...await violations(document, { rules: { "color-contrast": { enabled: false } } }));
    return [found
      .filter((one) => one.impact === "serious" || one.impact === "critical")
      .map((one) => `${one.id}: ${one.nodes.length} × ${one.nodes[0].html.slice(0, 160)}`), counts];
  }, looks[theme], 3, theme !== "dark");
  looks[theme] = counts;
  check(faults.length === 0, `axe-core finds nothing serious in ${what}: ${faults.join("; ")}`);
}

/** Pictures of all views at the widths of a phone, a laptop and a large screen, light and dark. */
async function pictures(page, name) {
  for (const [width, height] of [[390, 844], [1280, 800], [1440, 900], [3840, 2160]]) {
    await page.setViewport({ width, height });
    for (const theme of ["light", "dark"]) {
      for (const [sight, change] of Object.entries(SIGHTS)) {
        const pane = sight === "flame" ? "flame" : "tab" in change ? "source" : "more";
        await show(page, { ...change, theme, pane }, sight);
        await page.screenshot({ path: join(shots, `${name}-${width}-${theme}-${sight}.png`) });
      }
      await show(page, { ...SIGHTS.overview, theme, pane: "functions", open: true }, "the opened header");
      await page.screenshot({ path: join(shots, `${name}-${width}-${theme}-trust.png`) });
      for (const pane of width < 761 ? ["functions", "line", "more"] : []) {
        await show(page, { theme, pane, open: false }, pane);
        await page.screenshot({ path: join(shots, `${name}-${width}-${theme}-${pane}.png`) });
      }
      await show(page, { open: false }, "the overview");
    }
  }
}
