// The worker: holds the tree and answers questions about it, so that the page stays quick.

import { type Analysis, Model, type MetricInfo } from "./model/analysis.ts";
import { Inflater, readSlabs } from "./model/slabs.ts";
import { addRest, readTree } from "./model/tree.ts";
import type { Transform } from "./model/transform.ts";
import type { Request } from "./model/merged.ts";
import type { OrderGrid } from "./model/order.ts";
import { type Course, type Grid, readTimeline, type Span } from "./model/timeline.ts";

export type Question =
  | { op: "open"; metrics: MetricInfo[]; functions: number; baseRuns: boolean[] | null }
  | { op: "transform"; transforms: Transform[] }
  | { op: "part"; span: Span | null; against: Span | "rest" | null }
  | { op: "timeline" }
  | { op: "prepare"; metric: number }
  | { op: "waited" }
  | { op: "waitPlaces"; own: Uint8Array }
  | { op: "ranIn"; metric: number; fn: number }
  | { op: "courses"; metric: number; fn: number; grid: Grid }
  | { op: "inOrder"; metric: number; grid: OrderGrid }
  | { op: "analyse"; metric: number }
  | { op: "merged"; metric: number; request: Request }
  | { op: "matched"; metric: number; mask: Uint8Array }
  | { op: "lines"; metric: number; fn: number }
  | { op: "threads"; metric: number }
  | { op: "owners"; metric: number; fn: number; own: Uint8Array };

/** A piece of the payload; they come in the order in which the browser reads the page. */
export interface Piece {
  part: Part;
  text: string;
  last: boolean;
}

/** The parts of the payload that are the worker's: what the first picture needs, the rest, and the course of the run. */
export type Part = "tree" | "rest" | "time";

const parts: Record<Part, Inflater> = { tree: new Inflater(), rest: new Inflater(), time: new Inflater() };
let model: Model | null = null;
/** When everything is there. */
let complete: Promise<void>;
/** What the page needs to know of the course of the run, when it is there. */
let course: Promise<Course>;

async function open({ metrics, functions, baseRuns }: Question & { op: "open" }): Promise<number> {
  const recorded = readTree(readSlabs(await parts.tree.whole));
  complete = parts.rest.whole.then((buffer) => addRest(recorded, readSlabs(buffer)));
  course = parts.time.whole.then((buffer) => {
    const data = readSlabs(buffer);
    model!.setTimeline(readTimeline(data));
    const { lives, marks, losses, clockStepsBack } = data;
    return { lives, marks, losses, clockStepsBack };
  });
  complete.catch(() => {});
  course.catch(() => {});
  model = new Model(recorded, metrics, functions, baseRuns);
  return recorded.tree.length;
}

async function answer(question: Question): Promise<unknown> {
  if (question.op === "open") return open(question);
  if (!model) throw new Error("the profile is not read yet");
  const metric = "metric" in question ? question.metric : null;
  if (question.op === "transform" || question.op === "lines" || (metric !== null && !model.has(metric))) await complete;
  // Parts of the run need its course, and the costs of all metrics.
  if (question.op === "part" || question.op === "prepare" || question.op === "courses" || question.op === "inOrder" || question.op === "waited" || question.op === "waitPlaces" || question.op === "ranIn") await Promise.all([complete, course]);
  switch (question.op) {
    case "timeline":
      return course;
    case "part":
      model.setPart(question.span, question.against);
      return null;
    case "prepare":
      model.prepare(question.metric);
      return null;
    case "ranIn":
      return model.ranIn(question.metric, question.fn);
    case "waitPlaces":
      return model.waitPlaces(question.own);
    case "waited":
      return model.waited();
    case "courses":
      return model.courses(question.metric, question.fn, question.grid);
    case "inOrder":
      return model.inOrder(question.metric, question.grid);
    case "transform":
      model.setTransforms(question.transforms);
      return null;
    case "analyse":
      return model.analyse(question.metric);
    case "merged":
      return model.merged(question.metric, question.request);
    case "matched":
      return model.matched(question.metric, question.mask);
    case "threads":
      return model.threadCosts(question.metric);
    case "owners":
      return model.owners(question.metric, question.fn, question.own);
    case "lines":
      return model.lineCalls(question.metric, question.fn);
  }
}

/** The buffers in an answer that move rather than being copied; `kept` are arrays that stay. */
function buffers(value: unknown, kept: Set<unknown>, found = new Set<ArrayBuffer>()): Set<ArrayBuffer> {
  if (ArrayBuffer.isView(value)) {
    if (!kept.has(value) && value.byteLength === value.buffer.byteLength) found.add(value.buffer as ArrayBuffer);
  } else if (Array.isArray(value)) {
    if (typeof value[0] === "object") value.forEach((item) => buffers(item, kept, found));
  } else if (value && typeof value === "object") {
    Object.values(value).forEach((item) => buffers(item, kept, found));
  }
  return found;
}

let queue = Promise.resolve();
self.onmessage = (event: MessageEvent<{ id: number; question: Question } | Piece>) => {
  if ("part" in event.data) return parts[event.data.part].add(event.data.text, event.data.last);
  const { id, question } = event.data;
  // One after the other: transforms must not overtake what was asked before them.
  queue = queue.then(async () => {
    try {
      const result = await answer(question);
      const kept = question.op === "analyse" ? model!.kept(result as Analysis) : new Set();
      self.postMessage({ id, result }, { transfer: [...buffers(result, kept)] });
    } catch (error) {
      self.postMessage({ id, problem: error instanceof Error ? error.message : String(error) });
    }
  });
};
