// Starts the Chromium that tests and benchmarks use, and waits for its pages.

import puppeteer from "puppeteer-core";

/**
 * A headless Chromium that asks nothing of any network by itself. `CHROMIUM` names another one than Debian's. None of
 * its answers has a limit of time: a loaded machine gives them late.
 */
export async function launch(more = []) {
  const browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    headless: true,
    timeout: 0,
    protocolTimeout: 0,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", ...more],
  });
  const newPage = browser.newPage.bind(browser);
  browser.newPage = async () => {
    const page = await newPage();
    page.setDefaultTimeout(0);
    page.setDefaultNavigationTimeout(0);
    // Colours are those that stay, and not those on the way to them.
    await page.emulateMediaFeatures([{ name: "prefers-reduced-motion", value: "reduce" }]);
    return page;
  };
  return browser;
}

/** How often a page is asked whether a condition holds, and how many milliseconds lie between. */
const MOST_ANSWERS = 6000;
const PAUSE_MS = 10;

/**
 * Waits until a condition holds in a page. The limit is one of answers that it does not, since the page last made
 * progress: `progress` is read in the page, and any change of it begins anew.
 */
export async function until(page, condition, { given = [], progress = () => document.querySelector("#page")?.childElementCount } = {}) {
  let last;
  for (let asked = 0; asked < MOST_ANSWERS; asked++) {
    if (await page.evaluate(condition, ...given)) return;
    const now = JSON.stringify(await page.evaluate(progress));
    if (now !== last) asked = 0;
    last = now;
    await new Promise((done) => setTimeout(done, PAUSE_MS));
  }
  throw new Error(`the page answered ${MOST_ANSWERS} times that this does not hold: ${condition}`);
}

/** Waits until everything that a page shows is worked out, and drawn. */
export async function settled(page) {
  await until(page, () => (window.treering?.settled() && !document.querySelector("main .wait")) || window.treering?.failure() || document.querySelector("#page > .failure"));
  await drawn(page);
}

/** Waits until the last change of a page is drawn: the second frame after it begins when the first one is. */
export async function drawn(page) {
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
}
