// Borders between panes: dragged, or moved by arrow keys; double click restores. Kept in the hash.

import { go, route } from "../route.ts";

/** The widths of the functions, of the source and of the central line, for a window of this width. */
export function widthsOf(width: number): [number, number, number] {
  const plain: [number, number, number] =
    width >= 2400 ? [560, 760, 680] : width >= 1900 ? [520, 620, 0] : width >= 1301 ? [490, 400, 0] : [Math.min(420, width * 0.34), Math.min(340, width * 0.28), 0];
  const { sizes } = route.value;
  return plain.map((size, at) => (sizes[at] > 0 ? Math.min(sizes[at], width * 0.6) : size)) as [number, number, number];
}

/** The border that sets width `at`; the functions are left of theirs, the others right. */
export function Splitter({ at }: { at: 0 | 1 | 2 }) {
  const set = (size: number) => {
    const sizes = [...widthsOf(innerWidth)] as number[];
    sizes[at] = Math.max(180, size);
    go({ sizes }, true);
  };
  const sign = at === 0 ? 1 : -1;
  const now = widthsOf(innerWidth)[at];
  return (
    <div class="splitter" role="separator" aria-orientation="vertical" aria-valuenow={Math.round(now)} aria-label="width of the pane" tabIndex={0}
      onKeyDown={(event) => {
        if (event.key === "ArrowLeft") set(now - sign * 20);
        else if (event.key === "ArrowRight") set(now + sign * 20);
        else return;
        event.preventDefault();
        event.stopPropagation();
      }}
      onDblClick={() => go({ sizes: [] }, true)}
      onPointerDown={(event) => {
        const from = event.clientX;
        const target = event.currentTarget;
        target.setPointerCapture(event.pointerId);
        const move = (moved: PointerEvent) => set(now + sign * (moved.clientX - from));
        target.addEventListener("pointermove", move);
        target.addEventListener("pointerup", () => target.removeEventListener("pointermove", move), { once: true });
      }} />
  );
}
