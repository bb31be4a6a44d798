// Things in order of their keys.

/** The things of equal keys, in their own order: those of key `k` are `items` from `starts[k]` up to `starts[k + 1]`. */
export interface Groups {
  starts: Uint32Array;
  items: Uint32Array;
}

/** Groups the indexes of keys below `count`; all others, such as `NONE`, are the last group. */
export function grouped(keys: ArrayLike<number>, count: number): Groups {
  const starts = new Uint32Array(count + 2);
  for (let at = 0; at < keys.length; at++) starts[Math.min(keys[at], count) + 1]++;
  for (let key = 0; key <= count; key++) starts[key + 1] += starts[key];
  const next = starts.slice();
  const items = new Uint32Array(keys.length);
  for (let at = 0; at < keys.length; at++) items[next[Math.min(keys[at], count)]++] = at;
  return { starts, items };
}
