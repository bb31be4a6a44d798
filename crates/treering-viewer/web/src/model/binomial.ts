// Whether two counts differ by more than chance, and how many of many such findings may be false.

/** log Γ(x) for x > 0: Lanczos 1964, with the coefficients of g = 7. */
function logGamma(x: number): number {
  const coefficients = [0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7];
  const y = x - 1;
  let sum = coefficients[0];
  for (let at = 1; at < 9; at++) sum += coefficients[at] / (y + at);
  const t = y + 7.5;
  return 0.5 * Math.log(2 * Math.PI) + (y + 0.5) * Math.log(t) - t + Math.log(sum);
}

/** The regularised incomplete beta function, by Lentz's continued fraction (Numerical Recipes 6.4). */
function beta(x: number, a: number, b: number): number {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - beta(1 - x, b, a);
  const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x)) / a;
  const least = 1e-300;
  const away = (value: number) => (Math.abs(value) < least ? least : value);
  let c = 1;
  let d = 1 / away(1 - ((a + b) * x) / (a + 1));
  let h = d;
  for (let m = 1; m < 10_000; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away(1 + even * d);
    c = away(1 + even / c);
    h *= d * c;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away(1 + odd * d);
    c = away(1 + odd / c);
    h *= d * c;
    if (Math.abs(d * c - 1) < 1e-13) break;
  }
  return front * h;
}

/** The chance that at most `k` of `n` fall where each falls with the chance `p`. */
function atMost(k: number, n: number, p: number): number {
  return k < 0 ? 0 : k >= n ? 1 : beta(1 - p, n - k, k + 1);
}

/**
 * How probable it is that chance alone divides `a + b` samples as unevenly as this, or more so, where the first have the
 * part `p` of the time: the exact binomial test, twice its smaller tail.
 */
export function binomialTest(a: number, b: number, p: number): number {
  const n = a + b;
  if (n === 0) return 1;
  return Math.min(1, 2 * Math.min(atMost(a, n, p), 1 - atMost(a - 1, n, p)));
}

/**
 * The greatest probability that counts as a finding, so that on average at most `rate` of all findings are false:
 * Benjamini and Hochberg 1995. Below 0 where there is none.
 */
export function falseDiscoveryLimit(probabilities: number[], rate: number): number {
  const sorted = [...probabilities].sort((a, b) => a - b);
  for (let at = sorted.length - 1; at >= 0; at--) if (sorted[at] <= (rate * (at + 1)) / sorted.length) return sorted[at];
  return -1;
}
