//! Colours for charges that people with any colour vision can tell apart.

/// Red, green and blue, 0 to 255.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Color(u8, u8, u8);

/// From light to dark, and from yellow to blue, which no common colour blindness confuses: the
/// lightness alone gives the order, as in the cividis map of Nuñez, Anderton and Renslow, 2018.
const RAMP: [Color; 5] = [
    Color(255, 248, 220),
    Color(236, 211, 116),
    Color(160, 158, 120),
    Color(88, 102, 128),
    Color(10, 38, 84),
];

/// The colour for a charge in percent; below 0 is as 0, above 100 as 100.
///
/// The root of the share is taken, because in most programs few tasks have more than a quarter.
pub(crate) fn of_charge(percent: f64) -> Color {
    let place = (percent.clamp(0.0, 100.0) / 100.0).sqrt() * (RAMP.len() - 1) as f64;
    let at = (place as usize).min(RAMP.len() - 2);
    let (from, to, part) = (RAMP[at], RAMP[at + 1], place - at as f64);
    let mix = |from: u8, to: u8| (f64::from(from) + (f64::from(to) - f64::from(from)) * part).round() as u8;
    Color(mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

impl Color {
    /// As DOT, HTML and SVG write it.
    pub(crate) fn hex(self) -> String {
        format!("#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }

    /// Black or white, whichever is easier to read on this colour.
    pub(crate) fn label(self) -> Self {
        let luminance = self.luminance();
        // Contrast with black is (l + 0.05) / 0.05, with white 1.05 / (l + 0.05).
        let dark = (luminance + 0.05) / 0.05 < 1.05 / (luminance + 0.05);
        if dark { Self(255, 255, 255) } else { Self(0, 0, 0) }
    }

    /// Relative luminance, 0 black to 1 white, after WCAG 2.1.
    fn luminance(self) -> f64 {
        let linear = |channel: u8| {
            let value = f64::from(channel) / 255.0;
            if value <= 0.03928 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(self.0) + 0.7152 * linear(self.1) + 0.0722 * linear(self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_charge_is_never_lighter() {
        let luminance = |percent: u32| of_charge(f64::from(percent) / 10.0).luminance();
        let mut before = 1.0;
        for per_mille in 0..=1000 {
            let now = luminance(per_mille);
            assert!(now <= before + 1e-9, "at {per_mille}");
            before = now;
        }
        assert!(luminance(0) > 0.9 && luminance(1000) < 0.05);
    }

    #[test]
    fn labels_can_be_read_on_every_colour() {
        for percent in 0..=100 {
            let color = of_charge(f64::from(percent));
            let (a, b) = (color.luminance(), color.label().luminance());
            let contrast = (a.max(b) + 0.05) / (a.min(b) + 0.05);
            assert!(contrast >= 4.5, "{percent} %: {contrast}");
        }
    }

    #[test]
    fn charges_out_of_range_have_the_outermost_colours() {
        assert_eq!(of_charge(-1.0), RAMP[0]);
        assert_eq!(of_charge(250.0).hex(), "#0a2654");
    }
}
