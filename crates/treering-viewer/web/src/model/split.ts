// Where a name's qualifier ends and its arguments begin, by the rules of the language that it is of. Every pass is
// linear in the name's length: names come from anywhere.

/** A name in three parts that together are its text. */
export interface Parts {
  qualifier: string;
  last: string;
  tail: string;
}

/** By sign: where the bracket that opens there closes; 0 elsewhere. `>` closes `<` only, so comparisons and arrows are none. */
export function brackets(text: string): Int32Array {
  const pairs = new Int32Array(text.length);
  const open: number[] = [];
  for (let at = 0; at < text.length; at++) {
    const sign = text[at];
    if (isOperator(text, at)) {
      OPERATOR.lastIndex = at;
      at += OPERATOR.exec(text)![0].length - 1;
    } else if (sign === "(" || sign === "[" || sign === "{" || sign === "<") open.push(at);
    else if (sign === ">") {
      if (text[at - 1] !== "-" && open.length && text[open[open.length - 1]] === "<") pairs[open.pop()!] = at;
    } else if (sign === ")" || sign === "]" || sign === "}") {
      // An opening character that does not close was no bracket.
      while (open.length && text[open[open.length - 1]] === "<") open.pop();
      const other = open[open.length - 1];
      if (other !== undefined && "([{"[")]}".indexOf(sign)] === text[other]) pairs[open.pop()!] = at;
    }
  }
  return pairs;
}

/** Whether the word `operator` stands there. */
function isOperator(text: string, at: number): boolean {
  return text[at] === "o" && text.startsWith("operator", at) && !WORD.test(text[at - 1] ?? " ") && !WORD.test(text[at + 8] ?? " ");
}

const OPERATOR = /operator(?: ?(?:new|delete)(?:\[\])?|\(\)|\[\]|<=>|<<=?|>>=?|->\*?|""\s?\w+|[-+*/%^&|~!=<>]=?|&&|\|\||\+\+|--|,| co_await)?/y;
const WORD = /[\w$]/;

/** Parts of a name whose separators are those of C++ and Rust; null where it is not of that form. */
function ofScopes(text: string, pairs: Int32Array): Parts | null {
  let [from, start, end] = [0, 0, -1];
  let spaces = false;
  for (let at = 0; at < text.length; at++) {
    const sign = text[at];
    const close = pairs[at];
    if (isOperator(text, at)) {
      at = endOfOperator(text, at, pairs) - 1;
    } else if (sign === "(" && close && text[at - 1] === " " && /[*&]/.test(text[at + 1]) && end < 0) {
      // `void (*signal(int))(int)`: what returns a pointer to a function stands in the first brackets.
      const inner = text.slice(at + 1, close).replace(/^[*&]+ ?(?:const )?/, "");
      const parts = WORD.test(inner[0] ?? "") ? splitScopes(inner) : null;
      if (parts) return parts;
      at = close;
    } else if (sign === "(" && close && isName(text, at, from)) {
      at = close;
    } else if (sign === "<" && close && isPath(text, at, start, close)) {
      at = close;
    } else if ((sign === "(" || sign === "<") && close) {
      if (end < 0) end = text.startsWith("::", at - 2) && start === at ? at - 2 : at;
      at = close;
    } else if ((sign === "[" || sign === "{") && close) {
      at = close;
    } else if (sign === ":" && text[at + 1] === ":") {
      // `from_elem::<u8>` ends with the arguments of the function itself.
      const turbofish = text[at + 2] === "<" && pairs[at + 2] > 0 && !text.startsWith("::", pairs[at + 2] + 1) && !text.startsWith("<impl", at + 2);
      if (turbofish) {
        if (end < 0) end = at;
        at = pairs[at + 2];
      } else {
        [start, end] = [at + 2, -1];
        at++;
      }
    } else if (sign === "#" && WORD.test(text[at - 1] ?? " ") && WORD.test(text[at + 1] ?? " ")) {
      [start, end] = [at + 1, -1];
    } else if (sign === " " && end < 0 && text[at + 1] === "<" && pairs[at + 1]) {
      end = at;
      at = pairs[at + 1];
    } else if (sign === " " && (end < 0 || text[at - 1] === ">")) {
      // Before the name stands what it returns.
      spaces = true;
      [from, start, end] = [at + 1, at + 1, -1];
    }
  }
  if (end >= 0 && end <= start) return null;
  const last = text.slice(start, end < 0 ? text.length : end);
  if (!last) return null;
  // A sentence has blanks and no arguments; a thunk is of the function that it names.
  const phrase = /(?:^| )(?:to|for|in) $/.test(text.slice(Math.max(0, from - 5), from));
  if (spaces && end < 0 && !(phrase && text[start - 1] === "#")) return null;
  return { qualifier: text.slice(phrase ? 0 : from, start), last, tail: end < 0 ? "" : text.slice(end) };
}

function splitScopes(text: string): Parts | null {
  return ofScopes(text, brackets(text));
}

/** Whether a round bracket belongs to a name: `(anonymous namespace)`, Go's receivers, and what stands in brackets as a whole. */
export function isName(text: string, at: number, from: number): boolean {
  return text.startsWith("(anonymous", at) || at === from || text[at - 1] === "." || text.startsWith("decltype", at - 8);
}

/** Whether angle brackets are a part of a path: Rust's `<impl T>`, `<T as Trait>::`, Python's `<locals>`. */
function isPath(text: string, at: number, start: number, close: number): boolean {
  return text[at - 1] === "." || text.startsWith("<impl ", at) || (at === start && (text.startsWith("::", close + 1) || close === text.length - 1));
}

/** Where an operator's name ends; that of a conversion is a type. */
function endOfOperator(text: string, at: number, pairs: Int32Array): number {
  OPERATOR.lastIndex = at;
  const end = at + OPERATOR.exec(text)![0].length;
  if (end > at + 8 || text[end] !== " ") return end;
  let type = end + 1;
  while (type < text.length && text[type] !== "(") type = (text[type] === "<" && pairs[type]) || type + 1;
  return type;
}

/** `boxes:queens/2`: the number of arguments is a part of the name. */
function ofPredicate(text: string): Parts | null {
  if (!/\/\d+$/.test(text)) return null;
  const module = /^[a-z]\w*:(?!:)/.exec(text)?.[0] ?? "";
  return { qualifier: module, last: text.slice(module.length), tail: "" };
}

const SUFFIXES = /^(?:isra|part|cold|constprop|lto_priv|llvm|so|\d.*)$/;
const FILE = /^(?:py|js|mjs|ts|m|pl|rb|so|c|cc|cpp|h|rs|go|php|lua|java|html)$/;

/** Parts of a name with dots, of Go, Java, Python and others; null where dots do not part it. */
function ofDots(text: string, pairs: Int32Array): Parts | null {
  if (text[0] === "/" || text[0] === ".") return null;
  const dots: number[] = [];
  let [slash, end] = [-1, text.length];
  for (let at = 0; at < text.length; at++) {
    const sign = text[at];
    const close = pairs[at];
    if (close && (sign === "(" || sign === "[") && text[at - 1] !== ".") {
      end = at;
      break;
    }
    if (close) at = close;
    else if (/\s/.test(sign)) return null;
    else if (sign === "/") slash = at;
    else if (sign === ".") dots.push(at);
  }
  const inLast = dots.filter((at) => at > slash);
  const head = text.slice(0, end);
  const components = head.slice(slash + 1).split(".");
  const isGo = (slash >= 0 || head.includes(".(")) && inLast.length > 0;
  const isPython = head.includes(".<");
  const isDotted = inLast.length >= 2 && !components.some((one) => SUFFIXES.test(one)) && components.every((one) => /^[A-Za-z_$<]/.test(one));
  if (!(isGo || isPython || isDotted) || FILE.test(components[components.length - 1])) return null;
  // A closure of Go is named after the function that it is in.
  const closure = /\.(?:func|gowrap|deferwrap)\d+(?:\.\d+|\.func\d+)*(?:-fm)?$/.exec(head.slice(-200));
  const limit = closure ? head.length - closure[0].length : head.length;
  const dot = inLast.filter((at) => at < limit).pop();
  if (dot === undefined || dot + 1 >= end) return null;
  return { qualifier: text.slice(0, dot + 1), last: text.slice(dot + 1, end), tail: text.slice(end) };
}

/** The parts of a name, of whatever language. Paths, sentences and what is not understood are one part. */
export function parts(text: string): Parts {
  const whole = { qualifier: "", last: text, tail: "" };
  if (/^[-+]\[/.test(text)) return whole;
  const predicate = ofPredicate(text);
  if (predicate) return predicate;
  if (/\s/.test(text) && !/[(<#]/.test(text)) return whole;
  const pairs = brackets(text);
  // `(garbage collector)`, `<module>`.
  if (pairs[0] === text.length - 1 && text.length > 1) return whole;
  return (text.includes("::") ? null : ofDots(text, pairs)) ?? ofScopes(text, pairs) ?? whole;
}
