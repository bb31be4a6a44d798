//! The colours of pictures, which are those of the page of `treering view`.

/// A fill in both themes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fill {
    /// The class in a style sheet.
    pub(crate) class: &'static str,
    pub(crate) light: &'static str,
    pub(crate) dark: &'static str,
}

/// By the number of a [`Category`](treering_analysis::Category), and last what was inlined.
pub(crate) const KINDS: [Fill; 5] = [
    Fill { class: "own", light: "#e3b673", dark: "#8d5b27" },
    Fill { class: "library", light: "#a9d0f5", dark: "#3f5f92" },
    Fill { class: "kernel", light: "#b989cd", dark: "#652a75" },
    Fill { class: "script", light: "#79a488", dark: "#25584b" },
    Fill { class: "inlined", light: "#f9e9cc", dark: "#453820" },
];

/// Index of [`KINDS`].
pub(crate) const INLINED: usize = 4;

/// The program as a whole, which has no kind.
pub(crate) const WHOLE: Fill = Fill { class: "whole", light: "#e3dfd8", dark: "#3a3836" };

/// From cheap to costly.
const RAMP: [&str; 6] = ["#faf6ef", "#fbe3d2", "#f6c3a4", "#eb9c76", "#d97450", "#b8492a"];

/// The fill for a share of the run: limits are 0.5, 1.5, 3, 6 and 10 %.
pub(crate) fn ramp(share: f64) -> &'static str {
    RAMP[[0.005, 0.015, 0.03, 0.06, 0.1].iter().filter(|&&limit| share >= limit).count()]
}

/// The text that reads best on a fill, and whether it leaves room for paler one.
pub(crate) fn ink_on(fill: &str) -> (&'static str, bool) {
    const DARK: &str = "#1d1b18";
    let of = |ink: &str| contrast(ink, fill);
    let ink = match () {
        () if of(DARK) >= 9.0 => DARK,
        () if of("#000000") >= of("#ffffff") => "#000000",
        () => "#ffffff",
    };
    (ink, of(ink) >= 7.0)
}

/// The ratio of luminances after the Web Content Accessibility Guidelines 2.1, 1 to 21.
fn contrast(one: &str, other: &str) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

fn luminance(colour: &str) -> f64 {
    let channel = |at: usize| {
        let part = colour.get(at..at + 2).and_then(|hex| u8::from_str_radix(hex, 16).ok()).unwrap_or(0);
        let part = f64::from(part) / 255.0;
        if part <= 0.039_28 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_readable_on_every_fill() {
        let kinds = KINDS.iter().chain([&WHOLE]).flat_map(|fill| [fill.light, fill.dark]);
        for fill in kinds.chain(RAMP) {
            let (ink, _) = ink_on(fill);
            assert!(contrast(ink, fill) >= 4.5, "{ink} on {fill}: {}", contrast(ink, fill));
        }
        assert!((contrast("#000000", "#ffffff") - 21.0).abs() < 1e-9);
    }

    #[test]
    fn the_colours_are_those_of_the_page() {
        let style = include_str!("../../treering-viewer/web/src/style.css");
        let (light, dark) = style.split_once(":root[data-theme=\"dark\"]").expect("there are two themes");
        for Fill { class, light: one, dark: other } in KINDS {
            assert!(light.contains(&format!("--k-{class}: {one};")), "{class}");
            assert!(dark.contains(&format!("--k-{class}: {other};")), "{class}");
        }
        for (at, colour) in RAMP.iter().enumerate() {
            assert!(light.contains(&format!("--q{at}: {colour};")), "q{at}");
        }
        assert!(light.contains(&format!("--same0: {};", WHOLE.light)));
        assert!(dark.contains(&format!("--same0: {};", WHOLE.dark)));
    }

    #[test]
    fn the_ramp_starts_at_nothing() {
        assert_eq!([0.0, 0.005, 0.0999, 0.1, 1.0].map(ramp), [RAMP[0], RAMP[1], RAMP[4], RAMP[5], RAMP[5]]);
    }
}
