// The worker that lays out graphs: Graphviz, compiled to WebAssembly. Inflated on first use.

import { instance } from "@viz-js/viz";

const viz = instance();
self.onmessage = async (event: MessageEvent<{ id: number; dot: string }>) => {
  const { id, dot } = event.data;
  try {
    const result = (await viz).render(dot, { format: "json", engine: "dot" });
    if (result.status !== "success") throw new Error(result.errors.map((error) => error.message).join("; "));
    self.postMessage({ id, layout: result.output });
  } catch (error) {
    self.postMessage({ id, problem: error instanceof Error ? error.message : String(error) });
  }
};
