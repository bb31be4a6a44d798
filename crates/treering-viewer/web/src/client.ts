// Asks the worker, one promise a question.

import type { Part, Question } from "./worker.ts";

export class Client {
  #worker: Worker;
  #waiting = new Map<number, { resolve: (value: any) => void; reject: (error: Error) => void }>();
  #next = 0;
  #ending = false;
  readonly source: string;

  constructor(source: string) {
    this.source = source;
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    this.#worker = new Worker(url);
    this.#worker.onmessage = (event) => {
      const { id, result, problem } = event.data;
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (problem === undefined) waiting?.resolve(result);
      else waiting?.reject(new Error(problem));
      URL.revokeObjectURL(url);
      if (this.#ending) this.end();
    };
    this.#worker.onerror = (event) => {
      const error = new Error(event.message || "the worker did not start");
      for (const waiting of this.#waiting.values()) waiting.reject(error);
      this.#waiting.clear();
    };
  }

  /** Ends the worker when it has answered what was asked. */
  end() {
    this.#ending = true;
    if (this.#waiting.size === 0) this.#worker.terminate();
  }

  /** Hands a piece of the payload on. */
  give(part: Part, text: string, last: boolean) {
    this.#worker.postMessage({ part, text, last });
  }

  ask<T>(question: Question): Promise<T> {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ id, question });
    });
  }
}
