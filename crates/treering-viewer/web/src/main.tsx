// The page: starts reading, and puts the panes where the width allows.

import { effect, signal } from "@preact/signals";
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { Inflater, readSlabs } from "./model/slabs.ts";
import { Profile, takeBlock, type Head } from "./profile.ts";
import { giveWorker, start, startWorker } from "./asking.ts";
import { go, PANES, route } from "./route.ts";
import { analysis, busy, failure, generation, helpOpen, notice, theProfile, threadsOpen } from "./state.ts";
import { plural } from "./model/numbers.ts";
import type { Part } from "./worker.ts";
import { allVisible } from "./model/visible.ts";
import { matching } from "./matcher.ts";
import { KEYS, addStep, onKey } from "./keys.ts";
import { followServer } from "./live.ts";
import { Central, centralLine } from "./ui/central.tsx";
import { CodePane } from "./ui/code.tsx";
import { FlamePane, frames, SandwichPane } from "./ui/flame.tsx";
import { Functions, rows } from "./ui/functions.tsx";
import { GraphPane } from "./ui/graph.tsx";
import { Header, Logo } from "./ui/header.tsx";
import { Print } from "./ui/print.tsx";
import { treesAreThere } from "./ui/trees.ts";
import { followMenus, FunctionMenu } from "./ui/menu.tsx";
import { Strip } from "./ui/strip.tsx";
import { Threads } from "./ui/threads.tsx";
import { TimeStrip } from "./ui/time/strip.tsx";
import { Crumbs, Toolbar, VIEW_NAMES } from "./ui/toolbar.tsx";
import { TreePane } from "./ui/tree.tsx";
import { Splitter, widthsOf } from "./ui/splitter.tsx";

const width = signal(innerWidth);
const printing = signal(false);

function App() {
  useEffect(() => {
    const resize = () => (width.value = innerWidth);
    addEventListener("resize", resize);
    addEventListener("keydown", onKey);
    followMenus();
    addEventListener("beforeprint", () => (printing.value = true));
    addEventListener("afterprint", () => (printing.value = false));
  }, []);
  if (printing.value) return <Print />;
  const phone = width.value <= 760;
  return (
    <>
      <Header />
      <Toolbar />
      <div class="under">
        {failure.value && <p class="failure" role="alert">{failure.value}</p>}
        {notice.value && <p class="failure" role="alert">{notice.value} <button type="button" class="link" onClick={() => (notice.value = null)}>close</button></p>}
        <TimeStrip compact={phone && route.value.pane !== "time"} />
        <Crumbs />
      </div>
      {phone ? <Phone /> : <Wide />}
      {helpOpen.value && <Help />}
      {threadsOpen.value && <Threads />}
      <FunctionMenu />
    </>
  );
}

function Wide() {
  const { view } = route.value;
  const huge = width.value >= 2400;
  const sizes = widthsOf(width.value);
  if (view !== "overview") {
    return (
      <main style={{ gridTemplateColumns: `${sizes[0]}px 5px minmax(0,1fr)` }}>
        <Functions />
        <Splitter at={0} />
        <div class="column"><View /><Strip /></div>
      </main>
    );
  }
  if (huge) {
    return (
      <main style={{ gridTemplateColumns: `${sizes[0]}px 5px minmax(0,1fr) 5px ${sizes[2]}px 5px ${sizes[1]}px` }}>
        <Functions /><Splitter at={0} />
        <div class="column"><FlamePane /><Strip /></div><Splitter at={2} />
        <Central /><Splitter at={1} />
        <CodePane />
      </main>
    );
  }
  return (
    <main style={{ gridTemplateColumns: `${sizes[0]}px 5px minmax(0,1fr) 5px ${sizes[1]}px` }}>
      <Functions />
      <Splitter at={0} />
      <div class="column split"><FlamePane /><Strip /><Central /></div>
      <Splitter at={1} />
      <CodePane />
    </main>
  );
}

function View() {
  switch (route.value.view) {
    case "sandwich": return <SandwichPane />;
    case "graph": return <GraphPane />;
    case "tree": return <TreePane inverted={false} />;
    case "callers": return <TreePane inverted />;
    default: return <FlamePane />;
  }
}

const PANE_NAMES = { functions: ["☰", "Functions"], flame: ["▤", "Flame"], line: ["⇅", "Line"], time: ["▂▅", "Time"], source: ["‹›", "Source"], more: ["…", "More"] } as const;

function Phone() {
  const { pane, view } = route.value;
  const other = view !== "overview" && view !== "flame" && pane === "more";
  return (
    <>
      <main class="phone">
        {(pane === "functions" || pane === "time") && <Functions />}
        {pane === "flame" && <div class="column"><FlamePane /><Strip /></div>}
        {pane === "line" && <Central />}
        {pane === "source" && <CodePane />}
        {other && <div class="column"><View /><Strip /></div>}
        {pane === "more" && !other && <More />}
      </main>
      <nav class="tabbar" aria-label="panes">
        {phonePanes().map((one) => (
          <button type="button" aria-pressed={pane === one} onClick={() => go({ pane: one, view: "overview" })}>
            <span aria-hidden="true">{PANE_NAMES[one][0]}</span>{PANE_NAMES[one][1]}
          </button>
        ))}
      </nav>
    </>
  );
}

/** The panes that a phone has tabs for. Time takes the place of the central line, which is among the others then. */
function phonePanes() {
  return PANES.filter((one) => one !== (theProfile().head.time ? "line" : "time"));
}

function More() {
  const views = ["sandwich", "graph", "tree", "callers"] as const;
  return (
    <section class="pane more" aria-label="more">
      <h2>Views</h2>
      {views.map((view) => <button type="button" onClick={() => go({ view, pane: "more" })}>{VIEW_NAMES[view]}</button>)}
      {theProfile().head.threads > 1 && theProfile().head.shape === "tree" && <button type="button" onClick={() => (threadsOpen.value = true)}>Threads and processes</button>}
      {theProfile().head.time && <button type="button" onClick={() => go({ pane: "line" })}>Central line</button>}
      <h2>Code</h2>
      <button type="button" onClick={() => go({ pane: "source", tab: "lines" })}>Lines of the whole program</button>
      <button type="button" onClick={() => go({ pane: "source", tab: "blocks" })}>Blocks</button>
      <button type="button" onClick={() => go({ pane: "source", tab: "charts" })}>Charts</button>
      {theProfile().head.time?.hasWaits && <button type="button" onClick={() => go({ pane: "source", tab: "waits" })}>Waits</button>}
      <h2>The current function</h2>
      <Transforms />
    </section>
  );
}

/** Buttons for every transform, for those without a keyboard. */
function Transforms() {
  return (
    <>
      <button type="button" onClick={() => addStep("focus")}>Focus: only stacks with it</button>
      <button type="button" onClick={() => addStep("ignore")}>Ignore: no stacks with it</button>
      <button type="button" onClick={() => addStep("hide")}>Hide: its cost to its callers</button>
      <button type="button" onClick={() => addStep("hide", true)}>Collapse its library into its callers</button>
      <button type="button" onClick={() => go({ fold: !route.value.fold })}>{route.value.fold ? "Unfold" : "Fold"} recursion</button>
      {theProfile().head.baseRuns && <button type="button" onClick={() => go({ normalised: !route.value.normalised })}>{route.value.normalised ? "As measured" : "Normalise by run cost"}</button>}
    </>
  );
}

function Help() {
  useEffect(() => document.querySelector<HTMLElement>(".help button")?.focus(), []);
  return (
    <div class="veil" onClick={() => (helpOpen.value = false)}>
      <div class="help" role="dialog" aria-modal="true" aria-label="keys" onClick={(event) => event.stopPropagation()}>
        <h2>Keys</h2>
        <button type="button" class="icon close" aria-label="close" onClick={() => (helpOpen.value = false)}>×</button>
        <dl>{KEYS.map(([keys, does]) => <><dt>{keys.split(" ").map((key) => <kbd>{key}</kbd>)}</dt><dd>{does}</dd></>)}</dl>
        <h2>Transforms of the current function</h2>
        <div class="buttons"><Transforms /></div>
      </div>
    </div>
  );
}

/** The theme: the reader's choice, else the system's. */
function followTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const chosen = route.value?.theme ?? "auto";
    // Paper is light.
    document.documentElement.dataset.theme = printing.value ? "light" : chosen === "auto" ? (dark.matches ? "dark" : "light") : chosen;
  };
  dark.addEventListener("change", apply);
  effect(apply);
}

/** The values that tests and benchmarks read out of the page. */
function expose() {
  (window as any).treering = {
    ready: () => generation.value > 0 && busy.value === 0 && matching.value === 0,
    settled: () => generation.value > 0 && busy.value === 0 && matching.value === 0 && treesAreThere(),
    state: () => route.peek(),
    go,
    functions: () => {
      const found = analysis.peek()!;
      const profile = theProfile();
      return Array.from({ length: profile.functions }, (_, fn) => ({
        function: profile.fullName(fn), module: profile.module(fn), self: found.now.self[fn], total: found.now.total[fn],
        calls: found.calls ? found.calls[fn] : null, cycle: found.cycle[fn],
      }));
    },
    line: (fn: number) => centralLine(analysis.peek()!, fn),
    rows: () => rows.peek(),
    frames,
    failure: () => failure.peek(),
  };
}

/** The screen until the profile is read: a frame that says how much there is to read. */
function Reading({ head }: { head: Head }) {
  return (
    <>
      <header><div class="trust"><span class="logo"><Logo /><b>Treering</b></span><code class="command">{head.title}</code></div></header>
      <p class="wait">reading {plural(head.nodes, "node")}</p>
    </>
  );
}

/** Takes the pieces of the page as the browser reads them, and frees their text. */
function takePieces(take: (part: string, text: string, last: boolean) => void) {
  const missing = new Set(["tree", "data", "rest", "time", "code"]);
  (window as any).treeringPiece = () => {
    const script = document.currentScript!;
    const piece = script.previousElementSibling as HTMLElement;
    const { piece: part = "", last } = piece.dataset;
    take(part, piece.textContent!, last !== undefined);
    if (last !== undefined) missing.delete(part);
    piece.remove();
    script.remove();
  };
  return new Promise<never>((_, reject) => document.addEventListener("DOMContentLoaded", () => {
    if (missing.size) reject(new Error("its end is missing; was it copied as a whole?"));
  }));
}

async function open() {
  // The page says what browser it needs as long as it is not replaced.
  if (!("DecompressionStream" in window) || !("Worker" in window)) return;
  const head: Head = allVisible(JSON.parse(document.getElementById("head")!.textContent!));
  document.title = `${head.title} – Treering`;
  const root = document.getElementById("page")!;
  root.textContent = "";
  startWorker(head, takeBlock("worker"));
  const own: Record<string, Inflater> = { data: new Inflater(), code: new Inflater() };
  const cut = takePieces((part, text, last) => {
    if (part in own) own[part].add(text, last);
    else giveWorker(part as Part, text, last);
  });
  followTheme();
  render(<Reading head={head} />, root);
  const profile = new Profile(head, readSlabs(await Promise.race([own.data.whole, cut])));
  start(profile);
  expose();
  render(<App />, root);
  profile.addCode(await Promise.race([own.code.whole, cut]));
  followServer();
}

open().catch((error) => {
  const root = document.getElementById("page")!;
  root.innerHTML = "";
  const line = document.createElement("p");
  line.className = "failure";
  line.textContent = `this page cannot be shown: ${error?.message ?? error}`;
  root.append(line);
});
