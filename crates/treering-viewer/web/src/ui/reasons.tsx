// Why a pane has nothing to show. Each reason is looked up, not guessed: filters before the profile, the function's kind before its build.

import { visible } from "../model/visible.ts";
import { searchProblem } from "../masks.ts";
import { partMeasure, runCost, wholeCost } from "../measures.ts";
import { go, route, shownMetric } from "../route.ts";
import { analysis, theProfile } from "../state.ts";
import { Empty } from "./parts.tsx";
import { CATEGORIES } from "../profile.ts";

/** The command that was profiled, for the commands that a reader may type. */
function command(): string {
  return theProfile().head.runs[0]?.command.join(" ") || "PROGRAM";
}

/** Whether the profile is Treering's own: only then its commands measure the same program in another way. */
function isOurs(): boolean {
  return theProfile().head.collector.startsWith("treering");
}

function UndoTransforms() {
  return <button type="button" class="link" onClick={() => go({ steps: [], fold: false })}>undo the transforms</button>;
}

/** Why the shown part has no cost in the present metric. */
function NoCost({ what }: { what: string }) {
  const metric = shownMetric();
  const { name } = theProfile().head.metrics[metric];
  if (wholeCost(metric, "now") === 0 && wholeCost(metric, "base") === 0) return <Empty what={what} why={`The whole run has no cost in ${name}: it was measured, and it is 0.`} />;
  if (partMeasure(metric)?.cost === 0) return <Empty what={what} why={`Nothing has any cost in ${name} in the selected part of the run.`}><UndoTransforms /></Empty>;
  if (route.value.steps.length) return <Empty what={what} why={`The transforms leave nothing that has any cost in ${name}.`}><UndoTransforms /></Empty>;
  return <Empty what={what} why={`No function has any cost in ${name}; the run cost ${runCost(metric, "now") ? "was passed outside of every function" : "is 0"}.`} />;
}

/** Why the table of functions is empty; `occurring` is how many functions it would have without filters. */
export function NoFunctions({ occurring }: { occurring: number }) {
  const { q, category, change } = route.value;
  if (occurring === 0) return <NoCost what="No function has any cost" />;
  const problem = q ? searchProblem(q) : null;
  if (problem) return <Empty what="The search cannot be used" why={problem}><ClearSearch /></Empty>;
  const isDifference = (analysis.value?.base ?? null) !== null;
  const filters = [
    ...(category !== null && !isDifference ? [`are ${CATEGORIES[category]}`] : []),
    ...(isDifference && change !== "all" ? [CHANGES[change] ?? change] : []),
    ...(q ? [`match “${visible(q)}”`] : []),
  ];
  return (
    <Empty what={`No functions ${filters.join(" and ")}`}
      why={q ? "The search looks at names without arguments; /regex/, module:, file: and self>1 work too." : `The chips above leave out all ${occurring} functions.`}>
      {q && <ClearSearch />}
      {filters.length > (q ? 1 : 0) && <button type="button" class="link" onClick={() => go({ category: null, change: "all" }, true)}>show all kinds</button>}
    </Empty>
  );
}

const CHANGES: Record<string, string> = { less: "cost less", more: "cost more", new: "are new", gone: "are gone", within: "are within the error" };

function ClearSearch() {
  return <button type="button" class="link" onClick={() => go({ q: "" })}>clear the search</button>;
}

/** The text in the place of trees where a profile has no stacks. */
export function NoTree() {
  const { head } = theProfile();
  const why = head.shape === "flat"
    ? "This profile is flat: it has each function’s own numbers, and nothing is known of who called it."
    : `${head.baseRuns ? "One of both profiles" : "This profile"} holds calls between functions but no stacks, so it cannot tell which call led to which.`;
  const again = /count/.test(head.collector) ? `treering count --tree -- ${command()}` : `treering record -- ${command()}`;
  return <Empty what="No tree" why={why} command={isOurs() ? again : undefined} />;
}

/** Why a picture of stacks is empty. */
export function NothingToDraw() {
  return <NoCost what="Nothing to draw" />;
}

/** The kinds of functions that have no lines, however they are built. */
const WITHOUT_LINES: Record<string, string> = {
  kernel: "It is the kernel’s: its source lines are not in what is installed.",
  jit: "It was made while the program ran, and what made it told no lines.",
  task: "It is a task that the program reports by itself: tasks have costs, and no lines.",
  address: "No function is known at this address, so its lines are not known either.",
  unresolved: "The name of this function could not be found out, so its lines are not known.",
  root: "It stands for a thread, not for a function.",
  builtin: "It is built into its interpreter, which tells no lines of it.",
  operator: "It is an operator of its language, which has no lines.",
  extension: "It is compiled code that an interpreter loaded, which tells no lines of it.",
};

/** Why the source pane has no lines of a function; `anyCost` says whether its lines have a cost that the present view leaves out. */
export function NoLines({ fn, anyCost }: { fn: number; anyCost: boolean }) {
  const profile = theProfile();
  const { head, data } = profile;
  if (fn <= 0) return <Empty what="No function" why="No function is chosen: a click on one shows its lines." />;
  const name = <b>{profile.name(fn).last}</b>;
  const kind = profile.kind(fn);
  const metric = head.metrics[shownMetric()].name;
  if (anyCost && route.value.steps.length) return <Empty what="No lines" why={<>The transforms leave nothing of {name} that has any cost in {metric}.</>}><UndoTransforms /></Empty>;
  if (anyCost) return <Empty what="No lines" why={<>The lines of {name} are known, but none has any cost in {metric}.</>} />;
  if (WITHOUT_LINES[kind]) return <Empty what="No lines" why={<>{name} has none. {WITHOUT_LINES[kind]}</>} />;
  const place = profile.file(fn) && <> It begins at {profile.file(fn)}{profile.line(fn) ? `:${profile.line(fn)}` : ""}.</>;
  const costsNothing = <>{name} has no cost of its own, and where it made its calls is not known.{place}</>;
  if (data.lineCosts.fn.length && analysis.value?.now.self[fn] === 0) return <Empty what="No lines" why={costsNothing} />;
  if (kind === "interpreted" || kind === "script" || kind === "anonymous") {
    return <Empty what="No lines" why={<>What the lines of {name} cost was not measured.{place}</>} />;
  }
  if (head.isPart && /count/.test(head.collector)) {
    return <Empty what="No lines" why={<>What lines executed is known of whole runs; the page shows a part of them.</>} command={`treering diff BASE PROFILE --lines ${profile.fullName(fn)}`} />;
  }
  if (head.lossesUnknown) {
    return <Empty what="No lines" why={data.lineCosts.fn.length ? <>The file tells no lines of {name}.{place}</> : <>The file that this profile was read from tells no lines.{place}</>} />;
  }
  // Where the file of a function is known there is debug information, and what is missing is a cost.
  if (profile.file(fn)) return <Empty what="No lines" why={costsNothing} />;
  return (
    <Empty what="No lines" why={<>No source lines are known of {name}. Its program or library was built without debug information, or it is not installed here.</>}
      command="cc -g …, or install the -dbgsym package" />
  );
}

/** Why the pane of blocks has none of a function; `any` says whether the profile has blocks of others. */
export function NoBlocks({ fn, any }: { fn: number; any: boolean }) {
  const profile = theProfile();
  const { head } = profile;
  const kind = fn > 0 ? profile.kind(fn) : "";
  const name = <b>{fn > 0 ? profile.name(fn).last : "it"}</b>;
  const interpreted = ["interpreted", "builtin", "operator", "script", "extension", "anonymous", "task"].includes(kind);
  if (interpreted) return <Empty what="No blocks" why={<>{name} has none: what {kind === "task" ? "a task ran is not known by its code" : "an interpreter runs has no machine code of its own"}.</>} />;
  if (head.noBlocks) return <Empty what="No blocks" why={<>Blocks are compared where both profiles have them, of all that ran: {head.noBlocks}.</>} />;
  if (!any) return <Empty what="No blocks" why="Executions of code were not counted in this profile." command={isOurs() ? `treering count -- ${command()}` : undefined} />;
  if (kind === "kernel") return <Empty what="No blocks" why={<>{name} is the kernel’s, whose instructions are not counted.</>} />;
  if (fn > 0 && profile.category(fn) === 4) return <Empty what="No blocks" why={<>{name} is inlined wherever it occurs: its instructions stand in the blocks of its callers.</>} />;
  const leftOut = head.notes.find((note) => note.includes("leaves out the blocks of"));
  return <Empty what="No blocks" why={<>No executed code is known of {name}.{leftOut && ` The note says that ${leftOut}.`}</>} />;
}
