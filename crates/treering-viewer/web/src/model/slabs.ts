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

/** The skeleton with its slabs in place: columns as views of `buffer`, JSON slabs parsed. */
export function readSlabs(buffer: ArrayBuffer): any {
  const view = new DataView(buffer);
  if (buffer.byteLength < HEADER || view.getUint32(0, true) !== 0x534adfdc) {
    throw new Error("the data in this page is damaged: it is not a JsonSlabs container");
  }
  const count = view.getUint32(12, true);
  const root = view.getUint32(16, true);
  const read = (at: number): any => {
    const entry = HEADER + at * ENTRY;
    const kind = view.getUint32(entry, true);
    const start = view.getUint32(entry + 4, true);
    const length = view.getUint32(entry + 8, true);
    if (kind === JSON_SLAB) {
      return substitute(JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, start, length))));
    }
    const array = ARRAYS[kind as keyof typeof ARRAYS];
    if (!array) throw new Error(`the data in this page is damaged: slab ${at} has kind ${kind}`);
    return new array(buffer, start, length / array.BYTES_PER_ELEMENT);
  };
  const substitute = (value: any): any => {
    if (Array.isArray(value)) {
      return value.length && typeof value[0] === "object" ? value.map(substitute) : value;
    }
    if (value === null || typeof value !== "object") return value;
    if (typeof value.$s === "number" && value.$s < count) return read(value.$s);
    for (const key of Object.keys(value)) value[key] = substitute(value[key]);
    return value;
  };
  return read(root);
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
