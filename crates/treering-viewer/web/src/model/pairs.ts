// A hash table from pairs of numbers to consecutive indexes, in typed arrays: a Map of a million
// entries takes ten times the memory and time.

export class PairTable {
  #slots = new Int32Array(1024).fill(-1);
  #first = new Uint32Array(512);
  #second = new Uint32Array(512);
  length = 0;

  /** The index of the pair, the next free one when it is new. */
  add(first: number, second: number): number {
    let slot = this.#slot(first, second);
    if (this.#slots[slot] >= 0) return this.#slots[slot];
    if (this.length === this.#first.length) {
      this.#grow();
      slot = this.#slot(first, second);
    }
    this.#slots[slot] = this.length;
    this.#first[this.length] = first;
    this.#second[this.length] = second;
    return this.length++;
  }

  /** The first numbers of all pairs, by index. */
  first(): Uint32Array {
    return this.#first.slice(0, this.length);
  }

  /** The second numbers of all pairs, by index. */
  second(): Uint32Array {
    return this.#second.slice(0, this.length);
  }

  #slot(first: number, second: number): number {
    const mask = this.#slots.length - 1;
    let slot = (Math.imul(first, 0x9e3779b1) ^ Math.imul(second + 0x7f4a7c15, 0x85ebca6b)) >>> 0;
    slot = (slot ^ (slot >>> 15)) & mask;
    for (;;) {
      const at = this.#slots[slot];
      if (at < 0 || (this.#first[at] === first && this.#second[at] === second)) return slot;
      slot = (slot + 1) & mask;
    }
  }

  #grow() {
    const size = this.#first.length * 2;
    const larger = (array: Uint32Array) => {
      const copy = new Uint32Array(size);
      copy.set(array);
      return copy;
    };
    this.#first = larger(this.#first);
    this.#second = larger(this.#second);
    this.#slots = new Int32Array(size * 2).fill(-1);
    for (let at = 0; at < this.length; at++) this.#slots[this.#slot(this.#first[at], this.#second[at])] = at;
  }
}
