// Cycles of the call graph: strongly connected components of two or more functions.

/** By function: the number of its cycle from 1, in the order of the smallest member; 0 for none. */
export function findCycles(functions: number, caller: Uint32Array, callee: Uint32Array, root: number): Uint32Array {
  const starts = new Uint32Array(functions + 1);
  for (let arc = 0; arc < caller.length; arc++) starts[caller[arc] + 1]++;
  for (let at = 0; at < functions; at++) starts[at + 1] += starts[at];
  const targets = new Uint32Array(caller.length);
  const next = starts.slice();
  for (let arc = 0; arc < caller.length; arc++) targets[next[caller[arc]]++] = callee[arc];

  // Tarjan 1972, with an explicit stack: generated programs call deeply.
  const index = new Uint32Array(functions);
  const low = new Uint32Array(functions);
  const onStack = new Uint8Array(functions);
  const component: number[] = [];
  const path: number[] = [];
  const position = new Uint32Array(functions);
  const found: number[][] = [];
  let counter = 0;
  for (let start = 0; start < functions; start++) {
    if (index[start] || start === root) continue;
    path.push(start);
    while (path.length) {
      const at = path[path.length - 1];
      if (!index[at]) {
        index[at] = low[at] = ++counter;
        position[at] = starts[at];
        component.push(at);
        onStack[at] = 1;
      }
      if (position[at] < starts[at + 1]) {
        const to = targets[position[at]++];
        if (!index[to]) path.push(to);
        else if (onStack[to]) low[at] = Math.min(low[at], index[to]);
        continue;
      }
      path.pop();
      if (path.length) {
        const above = path[path.length - 1];
        low[above] = Math.min(low[above], low[at]);
      }
      if (low[at] !== index[at]) continue;
      const members: number[] = [];
      let member;
      do {
        member = component.pop()!;
        onStack[member] = 0;
        members.push(member);
      } while (member !== at);
      if (members.length > 1) found.push(members);
    }
  }
  const cycles = new Uint32Array(functions);
  found.forEach((members, at) => members.forEach((member) => (cycles[member] = at + 1)));
  return cycles;
}
