// Shows one page, then gives it another one as the next version, whose functions have other numbers.
//
//   node versions.mjs FIRST.html NEXT.html
//
// Prints what the page has of every function then, as JSON.

import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { launch, until } from "./chromium.mjs";

const [first, next] = process.argv.slice(2).map((path) => readFileSync(path, "utf8"));
const block = (html, id) => new RegExp(`<script type="[^"]*" id="${id}">([^]*?)</script>`).exec(html)[1];
const pieces = (html, name) => [...html.matchAll(new RegExp(`<script type="[^"]*" data-piece="${name}"[^>]*>([^]*?)</script>`, "g"))].map((one) => one[1]).join("");
const page1 = first
  .replace("worker-src", "connect-src 'self'; worker-src")
  .replace("<script>", '<script type="application/json" id="live">{"version":1,"interval":10}</script>\n<script>');
const news = JSON.stringify({
  version: 2, state: "ended", problem: null,
  page: { head: JSON.parse(block(next, "head")), ...Object.fromEntries(["data", "tree", "rest", "time", "code"].map((name) => [name, pieces(next, name)])) },
});
let released = () => {};
const release = new Promise((resolve) => (released = resolve));
const server = createServer(async (request, response) => {
  if (request.url === "/") return response.writeHead(200, { "Content-Type": "text/html" }).end(page1);
  if (!request.url.startsWith("/data")) return response.writeHead(404).end();
  await release;
  response.writeHead(200, { "Content-Type": "application/json" }).end(news);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));

const browser = await launch();
const failures = [];
const check = (holds, what) => holds || failures.push(what);
const page = await browser.newPage();
page.on("pageerror", (error) => failures.push(error.message));
await page.goto(`http://127.0.0.1:${server.address().port}/`);
await until(page, () => window.treering?.ready());
const shown = () => page.evaluate(() => {
  const functions = window.treering.functions();
  const { fn, zoom, view, sort, steps, metric } = window.treering.state();
  const name = (fn) => functions[fn].function;
  return { fn: name(fn), zoom: zoom.map(name), view, sort, steps: steps.map((step) => step.target), metric };
});
const numbers = () => page.evaluate(() => window.treering.functions().map((one) => one.function));
const find = async (name) => (await numbers()).indexOf(name);
const zoom = [await find("main"), await find("work")];
await page.evaluate((fn, zoom) => window.treering.go({ fn, zoom, view: "flame", sort: "name", steps: [{ kind: "ignore", target: "f:idle" }] }), await find("copy"), zoom);
await until(page, () => window.treering.ready());
const [before, old] = [await shown(), await numbers()];
check(before.fn === "copy" && before.zoom.join() === "main,work", JSON.stringify(before));
released();
await until(page, () => window.treering.live().version === 2);
await until(page, () => window.treering.ready());
const [after, now] = [await shown(), await numbers()];
check(old.some((name, fn) => now[fn] !== name), `the numbers are others: ${old} and ${now}`);
check(JSON.stringify(after) === JSON.stringify(before), `${JSON.stringify(before)} became ${JSON.stringify(after)}`);
const line = await page.evaluate((fn) => window.treering.line(fn), await find("copy"));
check(line.callersAdd && line.calleesAdd, "the central line adds up");
check((await page.evaluate(() => document.querySelector("[role=status]").textContent)) === "the program has ended", "it says that it has ended");
check(decodeURIComponent(new URL(page.url()).hash).includes("fn=copy"), page.url());
console.log(JSON.stringify(await page.evaluate(() => window.treering.functions())));
await browser.close();
server.close();
failures.forEach((failure) => console.error(`FAILED: ${failure}`));
process.exit(failures.length ? 1 : 0);
