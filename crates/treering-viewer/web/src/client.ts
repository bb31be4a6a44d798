// Asks the worker, one promise a question.

import type { Question } from "./worker.ts";

export class Client {
  #worker: Worker;
  #waiting = new Map<number, { resolve: (value: any) => void; reject: (error: Error) => void }>();
  #next = 0;

  constructor(source: string) {
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    this.#worker = new Worker(url);
    this.#worker.onmessage = (event) => {
      const { id, result, problem } = event.data;
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (problem === undefined) waiting?.resolve(result);
      else waiting?.reject(new Error(problem));
    };
    this.#worker.onerror = (event) => {
      const error = new Error(event.message || "the worker did not start");
      for (const waiting of this.#waiting.values()) waiting.reject(error);
      this.#waiting.clear();
    };
  }

  ask<T>(question: Question): Promise<T> {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ id, question });
    });
  }
}
