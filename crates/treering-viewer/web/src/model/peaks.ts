// The parts of a course that stand out of it.

/** How many standard deviations a bin lies above the mean, to be part of a peak. */
const ABOVE = 2;

/** The runs of bins that are higher than the mean by two standard deviations; the second number is not part of one. */
export function peaks(course: ArrayLike<number>): [from: number, to: number][] {
  const count = course.length;
  let [sum, squares] = [0, 0];
  for (let at = 0; at < count; at++) sum += course[at];
  const mean = sum / count;
  for (let at = 0; at < count; at++) squares += (course[at] - mean) ** 2;
  const limit = mean + ABOVE * Math.sqrt(squares / count);
  const found: [number, number][] = [];
  for (let at = 0; at < count; at++) {
    if (!(course[at] > limit)) continue;
    const last = found[found.length - 1];
    if (last?.[1] === at) last[1] = at + 1;
    else found.push([at, at + 1]);
  }
  return found;
}
