// Columns that give way to names: a name says more than a picture of a number, or than a number that is told elsewhere as well.

/** The width that a column takes of a row, with the gap beside it; those of the lowest rank go first, those without one stay. */
export interface Yielding {
  width: number;
  rank: number | null;
}

/** The columns that leave `least` for the name in a row of this width. */
export function fitting<T extends Yielding>(columns: T[], width: number, least: number): T[] {
  let kept = columns;
  const used = () => kept.reduce((sum, column) => sum + column.width, 0);
  while (width - used() < least) {
    const next = kept.filter((column) => column.rank !== null).sort((a, b) => a.rank! - b.rank!)[0];
    if (!next) break;
    kept = kept.filter((column) => column !== next);
  }
  return kept;
}
