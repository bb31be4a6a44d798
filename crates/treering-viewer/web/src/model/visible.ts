// Text as a reader may see it. Names come from anywhere: some characters turn the text around them, or cannot be seen at all.

/** Controls, formats, what has no width or no ink, and blanks that are none of the keyboard's. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/u;
const ALL_HIDDEN = new RegExp(`(\\p{Extended_Pictographic}[\\ufe0f\\u{1f3fb}-\\u{1f3ff}]?(?:\\u200d\\p{Extended_Pictographic}[\\ufe0f\\u{1f3fb}-\\u{1f3ff}]?)*)|${HIDDEN.source}`, "gu");
const NAMED: Record<string, string> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** A text with what cannot be seen escaped as Rust does, `\u{202e}`; pictures that are joined to one stay. */
export function visible(text: string, keep = ""): string {
  if (!HIDDEN.test(text)) return text;
  return text.replace(ALL_HIDDEN, (found, picture?: string) =>
    picture !== undefined || keep.includes(found) ? found : (NAMED[found] ?? `\\u{${found.codePointAt(0)!.toString(16)}}`));
}

/** The same of every text in a value, which has no others than those of JSON. */
export function allVisible<T>(value: T): T {
  if (typeof value === "string") return visible(value) as T;
  if (Array.isArray(value)) return value.map(allVisible) as T;
  if (value && typeof value === "object" && Object.getPrototypeOf(value) === Object.prototype) {
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [visible(key), allVisible(one)])) as T;
  }
  return value;
}
