// Opens pages of odd and hostile profiles in Chromium, and goes through all that they can show.
//
//   node odd.mjs PAGE...
//
// Fails where a page does not open, asks for anything, runs what stands in names or sources, or says that
// something is wrong. The first page and the one with sources in its name are also printed, and the
// first one is opened cut off and in a browser that is too old.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { launch, settled, until } from "./chromium.mjs";

const pages = process.argv.slice(2);
const scratch = mkdtempSync(join(tmpdir(), "treering-odd-"));
const failures = [];
const check = (holds, what) => holds || failures.push(what);
const browser = await launch();

async function opened(file, prepare = async () => {}) {
  const page = await browser.newPage();
  await page.setViewport({ width: 1440, height: 900 });
  const problems = [];
  page.on("request", (request) => /^(file|blob|data):/.test(request.url()) || problems.push(`a request: ${request.url()}`));
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  page.on("dialog", (dialog) => { problems.push(`a dialog: ${dialog.message()}`); void dialog.dismiss(); });
  await prepare(page);
  await page.goto(`file://${file}`);
  return { page, problems };
}

for (const file of pages) {
  const name = basename(file);
  const { page, problems } = await opened(file);
  try {
    await until(page, () => window.treering?.settled());
    check((await page.evaluate(() => window.treering.functions().length)) > 1, `${name} has functions`);
    for (const view of ["overview", "flame", "sandwich", "graph", "tree", "callers"]) {
      await page.evaluate((view) => window.treering.go({ view }), view);
      await settled(page).catch(() => check(false, `${name}: ${view} still waits`));
    }
    await page.evaluate(() => window.treering.go({ view: "overview", fold: true, q: "a" }));
    await settled(page);
    // The function that costs most is in the address, and comes back from there.
    const fn = await page.evaluate(() => { const fn = window.treering.functions().findIndex((one, at) => at > 0 && (one.self > 0 || one.calls > 0 || at === 1)); window.treering.go({ fn, q: "", fold: false }); return fn; });
    await settled(page);
    await page.reload();
    await settled(page);
    check((await page.evaluate(() => window.treering.state().fn)) === fn, `${name}: the address names the function`);
    check((await page.evaluate(() => window.treering.failure())) === null, `${name}: nothing failed`);
    check(await page.evaluate(() => window.owned === undefined && !document.querySelector("#page img, #page iframe, #page script")), `${name}: what stands in names and sources is text`);
    check(await page.evaluate(() => ({}).polluted === undefined), `${name}: names are no properties`);
  } catch (error) {
    failures.push(`${name}: ${error.message}`);
  }
  check(problems.length === 0, `${name}: ${problems.join("; ")}`);
  await page.close();
}

await printed(pages[0], { stacks: true });
await printed(pages.find((page) => page.includes("sources")), { lines: true });
await cutOff(pages[0]);
await old(pages[0]);
await browser.close();
rmSync(scratch, { recursive: true, force: true });
failures.forEach((failure) => console.error(`FAILED: ${failure}`));
process.exit(failures.length ? 1 : 0);

/** Paper has a document of its own, light in any case, and the page comes back after it. */
async function printed(file, { stacks = false, lines = false }) {
  const { page, problems } = await opened(file);
  await settled(page);
  await page.evaluate(() => window.treering.go({ theme: "dark" }));
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  await until(page, () => document.querySelector(".print h1") !== null);
  if (stacks) await until(page, () => document.querySelector(".print canvas") !== null).catch(() => check(false, "the printed page has the flame graph"));
  const seen = await page.evaluate(() => ({
    theme: document.documentElement.dataset.theme, heads: [...document.querySelectorAll(".print h1, .print h2")].map((one) => one.textContent),
    functions: document.querySelectorAll(".print table")[0].rows.length - 1,
    own: document.querySelectorAll(".print tr.this").length, lines: document.querySelectorAll(".print table.lines code").length,
  }));
  check(seen.theme === "light", `paper is ${seen.theme}`);
  check(seen.heads.some((one) => one.startsWith("Functions by self")), `the printed heads are ${seen.heads}`);
  check(seen.functions > 0, "the printed page has functions");
  check(seen.own === 1, `one row of the printed central line is the function itself, not ${seen.own}`);
  check(!lines || seen.lines > 2, "the printed page has the lines of the current function");
  check((await page.pdf()).length > 5_000, "a browser prints it");
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  await settled(page);
  check((await page.evaluate(() => document.documentElement.dataset.theme)) === "dark", "the theme comes back after printing");
  check(problems.length === 0, `printing: ${problems.join("; ")}`);
  await page.close();
}

/** A file of which the end is missing says so. */
async function cutOff(file) {
  const whole = readFileSync(file, "utf8");
  const cut = join(scratch, "cut.html");
  writeFileSync(cut, whole.slice(0, whole.lastIndexOf('data-piece="code"')));
  const { page } = await opened(cut);
  await until(page, () => document.querySelector(".failure") !== null).catch(() => {});
  const said = await page.evaluate(() => document.querySelector(".failure")?.textContent ?? document.body.textContent.slice(0, 200));
  check(said.includes("its end is missing"), `a page that was cut off says: ${said}`);
  await page.close();
}

/** A browser without what the page needs, or without scripts, says what it needs. */
async function old(file) {
  for (const [what, prepare] of [
    ["without streams that inflate", (page) => page.evaluateOnNewDocument(() => delete window.DecompressionStream)],
    ["without scripts", (page) => page.setJavaScriptEnabled(false)],
  ]) {
    const { page, problems } = await opened(file, prepare);
    const text = await page.$eval("#page", (one) => one.textContent);
    check(text.includes("needs a browser of 2023 or later"), `${what} the page says: ${text.slice(0, 100)}`);
    check(problems.length === 0, `${what}: ${problems.join("; ")}`);
    await page.close();
  }
}
