// The menu of a function: opened by a right click or a long press on it, wherever it stands, or by the keyboard's menu key.

import { useEffect, useRef } from "preact/hooks";
import { addStep } from "../keys.ts";
import { askRanIn } from "../asking.ts";
import { go, select } from "../route.ts";
import { hasTree, menu, notice, theProfile } from "../state.ts";
import { selectSpan } from "./time/selection.ts";

/** How long a finger rests for a menu, in ms. */
const LONG = 500;

/** Marks an element as one that shows a function. */
export function ofFunction(fn: number) {
  return fn > 0 ? { "data-fn": fn } : {};
}

/** Opens the menu of a function. */
export function openMenu(fn: number, x: number, y: number) {
  if (fn > 0) menu.value = { fn, x, y, back: document.activeElement as HTMLElement | null };
}

export function closeMenu() {
  menu.peek()?.back?.focus?.();
  menu.value = null;
}

/** The function that an element shows; of a table with the focus that of its active row. */
function functionAt(target: Element | null): number {
  const marked = target?.closest<HTMLElement>("[data-fn]");
  if (marked) return Number(marked.dataset.fn);
  const active = target?.getAttribute("aria-activedescendant");
  return active ? Number(document.getElementById(active)?.dataset.fn ?? -1) : -1;
}

/** Listens for what opens the menu. */
export function followMenus() {
  addEventListener("contextmenu", (event) => {
    const target = event.target as Element;
    const fn = functionAt(target);
    if (event.defaultPrevented || fn <= 0) return;
    event.preventDefault();
    const byKey = event.clientX === 0 && event.clientY === 0;
    const box = (document.getElementById(target.getAttribute("aria-activedescendant") ?? "") ?? target).getBoundingClientRect();
    openMenu(fn, byKey ? box.left + 20 : event.clientX, byKey ? box.bottom : event.clientY);
  });
  // Some browsers of phones tell of no long press by themselves.
  let timer = 0;
  const end = () => clearTimeout(timer);
  addEventListener("touchstart", (event) => {
    end();
    const [touch] = event.touches;
    const target = event.target as Element;
    if (event.touches.length === 1 && functionAt(target) > 0) timer = window.setTimeout(() => openMenu(functionAt(target), touch.clientX, touch.clientY), LONG);
  }, { passive: true });
  for (const name of ["touchend", "touchmove", "touchcancel", "scroll"]) addEventListener(name, end, { passive: true, capture: true });
}

async function copy(text: string) {
  try {
    await navigator.clipboard.writeText(text);
    return;
  } catch {
    // Some browsers give the clipboard to no file; the old way works there.
  }
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  if (!document.execCommand("copy")) notice.value = `this browser does not let the page copy; the text is ${text}`;
  field.remove();
}

/** Copies the address of the page as it is, with the function as the current one. */
function copyLink(fn: number) {
  select(fn);
  void copy(location.href);
}

/** Selects the part of the run in which a function had any cost. */
async function selectRun(fn: number) {
  const span = await askRanIn(fn);
  if (span) selectSpan(span);
  else notice.value = `${theProfile().name(fn).last} has no cost at any time in this metric`;
}

export function FunctionMenu() {
  const box = useRef<HTMLDivElement>(null);
  const open = menu.value;
  useEffect(() => {
    const element = box.current;
    if (!element || !open) return;
    // It stays within the window.
    const { width, height } = element.getBoundingClientRect();
    element.style.left = `${Math.max(4, Math.min(open.x, innerWidth - width - 4))}px`;
    element.style.top = `${Math.max(4, Math.min(open.y, innerHeight - height - 4))}px`;
    element.querySelector("button")?.focus();
  }, [open]);
  if (!open) return null;
  const { fn } = open;
  const profile = theProfile();
  const act = (what: () => void) => () => {
    closeMenu();
    what();
  };
  const items: [string, () => void][] = [
    ...(hasTree() ? [
      ["Focus: only stacks with it", () => addStep("focus", false, fn)], ["Ignore: no stacks with it", () => addStep("ignore", false, fn)],
      ["Hide: its cost to its callers", () => addStep("hide", false, fn)],
      ...(profile.module(fn) ? [["Collapse its library into its callers", () => addStep("hide", true, fn)]] : []),
    ] as [string, () => void][] : []),
    ...(profile.head.time ? [["Select the time from its first to its last sample", () => void selectRun(fn)]] as [string, () => void][] : []),
    ["Copy name", () => void copy(profile.fullName(fn))],
    ["Copy link to this state", () => copyLink(fn)],
    ["Open source", () => go({ fn, tab: "source", pane: "source", view: "overview" })],
    ["Find this name", () => go({ q: profile.name(fn).last })],
  ];
  const onKey = (event: KeyboardEvent) => {
    const buttons = [...box.current!.querySelectorAll("button")];
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (to !== undefined) buttons[(to + buttons.length) % buttons.length].focus();
    else if (event.key === "Escape" || event.key === "Tab") closeMenu();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="menu-veil" onPointerDown={closeMenu} onContextMenu={(event) => event.preventDefault()}>
      <div class="menu" role="menu" aria-label={`menu of ${profile.fullName(fn)}`} ref={box} onKeyDown={onKey} onPointerDown={(event) => event.stopPropagation()}>
        <b>{profile.name(fn).qualifier}{profile.name(fn).last}</b>
        {items.map(([label, does]) => <button type="button" role="menuitem" tabIndex={-1} onClick={act(does)}>{label}</button>)}
      </div>
    </div>
  );
}
