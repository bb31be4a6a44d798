// The worker: holds the tree and answers questions about it, so that the page stays quick.

import { type Analysis, Model, type MetricInfo } from "./model/analysis.ts";
import { fromBase64, gunzip, readSlabs } from "./model/slabs.ts";
import { readTree } from "./model/tree.ts";
import type { Transform } from "./model/transform.ts";
import type { Request } from "./model/merged.ts";

export type Question =
  | { op: "open"; text: string; metrics: MetricInfo[]; functions: number; baseRuns: boolean[] | null }
  | { op: "transform"; transforms: Transform[] }
  | { op: "analyse"; metric: number }
  | { op: "merged"; metric: number; request: Request }
  | { op: "matched"; metric: number; mask: Uint8Array }
  | { op: "lines"; metric: number; fn: number };

let model: Model | null = null;

async function answer(question: Question): Promise<unknown> {
  if (question.op === "open") {
    const data = readSlabs(await gunzip(fromBase64(question.text)));
    model = new Model(readTree(data), question.metrics, question.functions, question.baseRuns);
    return model.tree.length;
  }
  if (!model) throw new Error("the profile is not read yet");
  switch (question.op) {
    case "transform":
      model.setTransforms(question.transforms);
      return null;
    case "analyse":
      return model.analyse(question.metric);
    case "merged":
      return model.merged(question.metric, question.request);
    case "matched":
      return model.matched(question.metric, question.mask);
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
self.onmessage = (event: MessageEvent<{ id: number; question: Question }>) => {
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
