// Starts the Chromium that tests and benchmarks use.

import puppeteer from "puppeteer-core";

/** A headless Chromium that asks nothing of any network by itself. `CHROMIUM` names another one than Debian's. */
export function launch(more = []) {
  return puppeteer.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    headless: true,
    protocolTimeout: 600_000,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", ...more],
  });
}
