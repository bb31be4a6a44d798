// Reads a JsonSlabs container: a JSON skeleton whose {"$s": n} objects stand for typed arrays.
// Layout: https://github.com/mstange/json-slabs/blob/main/FORMAT.md

export type Column = Uint8Array | Uint16Array | Uint32Array | Int32Array | Float32Array | Float64Array;

const HEADER = 20;
const ENTRY = 12;
const JSON_SLAB = 10;

const ARRAYS = {
  1: Uint8Array,
  3: Uint16Array,
  4: Int32Array,
  5: Uint32Array,
  6: Float32Array,
  7: Float64Array,
} as const;

/** A container whose texts can also be read one by one, when they are shown. */
export class Slabs {
  #buffer: ArrayBuffer;
  #view: DataView;
  #count: number;

  constructor(buffer: ArrayBuffer) {
    this.#buffer = buffer;
    this.#view = new DataView(buffer);
    if (buffer.byteLength < HEADER || this.#view.getUint32(0, true) !== 0x534adfdc) {
      throw new Error("the data in this page is damaged: it is not a JsonSlabs container");
    }
    this.#count = this.#view.getUint32(12, true);
  }

  /** The skeleton with its slabs in place: columns as views of the buffer, JSON slabs parsed. */
  root(): any {
    return this.slab(this.#view.getUint32(16, true));
  }

  /** One slab. */
  slab(at: number): any {
    const view = this.#view;
    const entry = HEADER + at * ENTRY;
    const kind = view.getUint32(entry, true);
    const start = view.getUint32(entry + 4, true);
    const length = view.getUint32(entry + 8, true);
    if (kind === JSON_SLAB) {
      return this.#substitute(JSON.parse(new TextDecoder().decode(new Uint8Array(this.#buffer, start, length))));
    }
    const array = ARRAYS[kind as keyof typeof ARRAYS];
    if (!array) throw new Error(`the data in this page is damaged: slab ${at} has kind ${kind}`);
    return new array(this.#buffer, start, length / array.BYTES_PER_ELEMENT);
  }

  #substitute(value: any): any {
    if (Array.isArray(value)) {
      return value.length && typeof value[0] === "object" ? value.map((item) => this.#substitute(item)) : value;
    }
    if (value === null || typeof value !== "object") return value;
    if (typeof value.$s === "number" && value.$s < this.#count) return this.slab(value.$s);
    for (const key of Object.keys(value)) value[key] = this.#substitute(value[key]);
    return value;
  }
}

/** The skeleton of a container with its slabs in place. */
export function readSlabs(buffer: ArrayBuffer): any {
  return new Slabs(buffer).root();
}

/** Inflates gzip that comes as pieces of base64, while the rest is still being read. */
export class Inflater {
  #writer: WritableStreamDefaultWriter<BufferSource>;
  /** All of it. */
  readonly whole: Promise<ArrayBuffer>;

  constructor() {
    const stream = new DecompressionStream("gzip");
    this.#writer = stream.writable.getWriter();
    this.whole = new Response(stream.readable).arrayBuffer();
    // The caller learns of the failure.
    this.whole.catch(() => {});
  }

  /** Takes the next piece; its length is a multiple of four. */
  add(text: string, last: boolean) {
    this.#writer.write(fromBase64(text)).catch(() => {});
    if (last) this.#writer.close().catch(() => {});
  }
}

/** The bytes of base64 text; `fromBase64` where the browser has it, which is ten times faster. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const native = (Uint8Array as any).fromBase64;
  if (native) return native.call(Uint8Array, text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

/** Inflates gzip with the browser's own inflater. */
export async function gunzip(bytes: Uint8Array<ArrayBuffer>): Promise<ArrayBuffer> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}
