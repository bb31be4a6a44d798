// Follows a running program in Chromium, as a user who looks at one function while it runs.
//
//   node live.mjs ADDRESS
//
// Prints `following` when two more versions were shown, waits for the program to end, and prints the calls of `solve` as
// the page has them then.

import { readFileSync } from "node:fs";
import { launch, until } from "./chromium.mjs";

const address = process.argv[2];
const browser = await launch();
/** A page that shows one version after the other goes on, however slowly. */
const versions = () => JSON.stringify(window.treering.live());
const failures = [];
const check = (holds, what) => holds || failures.push(what);
const page = await browser.newPage();
await page.setViewport({ width: 1440, height: 900 });
const shots = process.env.SHOTS;
page.on("request", (request) => request.url().startsWith(address) || /^(blob|data):/.test(request.url()) || request.url().endsWith("/favicon.ico") || failures.push(`a request left: ${request.url()}`));
page.on("pageerror", (error) => failures.push(error.message));
page.on("console", (message) => message.type() === "error" && !/favicon/.test(message.location()?.url ?? "") && failures.push(message.text()));
await page.goto(address);
await until(page, () => window.treering?.ready());
const find = (name) => page.evaluate((name) => window.treering.functions().findIndex((one) => one.function === name), name);
const row = (name) => page.evaluate((name) => window.treering.functions().find((one) => one.function === name), name);
const live = () => page.evaluate(() => window.treering.live());

const [main, solve] = [await find("main"), await find("solve")];
check(main > 0 && solve > 0, "main and solve are functions");
await page.evaluate((fn, zoom) => window.treering.go({ fn, zoom, view: "flame", q: "fib", steps: [{ kind: "hide", target: "f:by_pointer" }] }), solve, [main, solve]);
await until(page, () => window.treering.ready());
const first = { ...(await live()), calls: (await row("solve")).calls };
check(first.state === "running", `it is followed: ${first.state}`);
for (const more of [1, 2]) {
  await until(page, (version) => window.treering.live().version >= version, { given: [first.version + more], progress: versions });
}
await until(page, () => window.treering.ready());
const second = { ...(await live()), calls: (await row("solve")).calls };
check(second.calls > first.calls, `calls grow: ${first.calls}, then ${second.calls}`);
const shown = await page.evaluate(() => {
  const state = window.treering.state();
  const name = (fn) => window.treering.functions()[fn].function;
  return { fn: name(state.fn), zoom: state.zoom.map(name), view: state.view, q: state.q, steps: state.steps.length, badge: document.querySelector("[role=status]").textContent };
});
const expected = { fn: "solve", zoom: ["main", "solve"], view: "flame", q: "fib", steps: 1, badge: "live" };
check(JSON.stringify(shown) === JSON.stringify(expected), `what is shown stays: ${JSON.stringify(shown)}`);
check((await row("by_pointer")).self === 0, "what is hidden stays hidden");
const line = await page.evaluate((fn) => window.treering.line(fn), await find("solve"));
check(line.callersAdd && line.calleesAdd, "the central line adds up");
if (shots) await page.screenshot({ path: `${shots}/live.png` });
// The badge on a phone, where it is short of room, and to those who do not see it.
await page.setViewport({ width: 390, height: 844 });
await page.evaluate(readFileSync(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8"));
await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
const faults = await page.evaluate(async () => (await window.axe.run(document, { resultTypes: ["violations"] })).violations
  .filter((one) => one.impact === "serious" || one.impact === "critical").map((one) => `${one.id}: ${one.nodes[0].html.slice(0, 160)}`));
check(faults.length === 0, `axe-core finds nothing serious on a phone: ${faults.join("; ")}`);
const box = await page.$eval("[role=status]", (badge) => { const { left, right, width } = badge.getBoundingClientRect(); return { left, right, width }; });
check(box.width > 20 && box.left >= 0 && box.right <= 390, `the badge is in sight on a phone: ${JSON.stringify(box)}`);
check(await page.evaluate(() => document.documentElement.scrollWidth <= 390), "nothing is wider than the phone");
if (shots) await page.screenshot({ path: `${shots}/live-phone.png` });
await page.setViewport({ width: 1440, height: 900 });
console.log("following");

await until(page, () => window.treering.live().state !== "running", { progress: versions });
await until(page, () => window.treering.ready());
check((await live()).state === "ended", `it has ended: ${JSON.stringify(await live())}`);
// The share that the search says is that of the profile that is shown.
const total = (await row("fibonacci")).total;
const run = await page.evaluate(() => window.treering.functions().reduce((sum, one) => sum + one.self, 0));
const share = `${((100 * total) / run).toFixed(1)} %`;
await until(page, (share) => document.querySelector("[role=search]").textContent.includes(share), { given: [share] })
  .catch(async () => check(false, `the search says ${await page.evaluate(() => document.querySelector("[role=search]").textContent)}, not ${share}`));
const badge = await page.evaluate(() => document.querySelector("[role=status]").textContent);
check(badge === "the program has ended", badge);
check((await page.evaluate(() => window.treering.state().view)) === "flame", "the view stays to the end");
if (shots) await page.screenshot({ path: `${shots}/live-ended.png` });
console.log(JSON.stringify({ calls: (await row("solve")).calls }));
await browser.close();
failures.forEach((failure) => console.error(`FAILED: ${failure}`));
process.exit(failures.length ? 1 : 0);
