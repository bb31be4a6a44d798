// Trees for tests, written as indented lines of a function, its self cost and its calls.

import { NONE, type Tree } from "../src/model/tree.ts";

/** Functions by number; 0 is the root. */
export interface Sketch {
  tree: Tree;
  costs: Float64Array;
  names: string[];
}

/** `main 1` below it, indented by two blanks, `work 3 x2` for two calls. */
export function sketch(text: string): Sketch {
  const names = [""];
  const parent: number[] = [];
  const fn: number[] = [];
  const costs: number[] = [];
  const calls: number[] = [];
  const path: number[] = [];
  const roots: number[] = [];
  const add = (depth: number, name: string, cost: number, count: number) => {
    let number = names.indexOf(name);
    if (number < 0) number = names.push(name) - 1;
    path.length = depth;
    parent.push(depth ? path[depth - 1] : NONE);
    path[depth] = fn.length;
    fn.push(number);
    costs.push(cost);
    calls.push(count);
  };
  for (const line of text.split("\n").filter((line) => line.trim())) {
    const found = /^( *)(\S+)(?: (\d+))?(?: x(\d+))?$/.exec(line)!;
    const depth = found[1].length / 2;
    if (depth === 0 && (roots.length === 0 || found[2] === "@")) {
      roots.push(fn.length);
      add(0, "", 0, 0);
      if (found[2] === "@") continue;
    }
    add(depth + 1, found[2], Number(found[3] ?? 0), Number(found[4] ?? 1));
  }
  const tree: Tree = {
    length: fn.length, parent: Uint32Array.from(parent), fn: Uint32Array.from(fn), site: new Uint32Array(fn.length),
    inlined: new Uint8Array(fn.length), calls: Uint32Array.from(calls), recursive: null, roots: Uint32Array.from(roots),
  };
  return { tree, costs: Float64Array.from(costs), names };
}
