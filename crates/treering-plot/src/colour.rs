//! The colours, on light pages and on dark ones.

use plotters::style::RGBColor;

/// A colour by its role. Each is another one on light pages, so that the style can replace it on dark ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Page,
    Ink,
    Note,
    Grid,
    Axis,
    /// The whole run, behind its parts.
    Run,
    /// Changes that do not count.
    Floor,
    Undecided,
    More,
    Less,
    Level,
    Culprit,
    /// The colour of a series.
    Series(usize),
}

use Colour::{Axis, Culprit, Floor, Grid, Ink, Less, Level, More, Note, Page, Run, Undecided};

const SERIES: usize = 6;

/// All with their values on light and on dark pages.
///
/// The first two series are told apart by readers with each of the three kinds of colour blindness; those with the third
/// need the marks and the names at the ends as well.
const ALL: [(Colour, u32, u32); 12 + SERIES] = [
    (Page, 0xfd_fd_fc, 0x1a_1b_1e),
    (Ink, 0x1b_1b_1a, 0xf1_f0_ee),
    (Note, 0x5c_5a_53, 0xa9_a7_a1),
    (Grid, 0xdf_dc_d3, 0x33_35_39),
    (Axis, 0xb9_b5_aa, 0x55_58_5e),
    (Run, 0xcb_c6_ba, 0x4d_4f_54),
    (Floor, 0xef_ec_e4, 0x27_29_2d),
    (Undecided, 0xa5_a0_93, 0x7c_7a_75),
    (More, 0x9c_4a_00, 0xf0_94_3a),
    (Less, 0x1f_5a_a6, 0x6c_a9_f0),
    (Level, 0xd3_cc_e6, 0x45_3a_66),
    (Culprit, 0xb8_44_2a, 0xf0_7a_5c),
    (Colour::Series(0), 0xd0_8a_1f, 0xe8_b0_4a),
    (Colour::Series(1), 0x0a_6c_74, 0x5c_c4_cc),
    (Colour::Series(2), 0x6b_4f_a0, 0xb9_a0_ee),
    (Colour::Series(3), 0x4c_7a_2e, 0x9f_cc_7c),
    (Colour::Series(4), 0xb0_3a_6b, 0xec_8a_b8),
    (Colour::Series(5), 0x60_60_68, 0xc0_c0_c8),
];

impl Colour {
    /// Its value on light pages.
    pub(crate) fn rgb(self) -> RGBColor {
        let sought = match self {
            Self::Series(at) => Self::Series(at % SERIES),
            other => other,
        };
        let light = ALL.iter().find(|(colour, ..)| *colour == sought).map_or(0, |&(_, light, _)| light);
        let [_, red, green, blue] = light.to_be_bytes();
        RGBColor(red, green, blue)
    }
}

/// The style that replaces all colours on dark pages.
pub(crate) fn style() -> String {
    let mut style =
        "<style>text{font-family:system-ui,sans-serif}@media (prefers-color-scheme:dark){".to_owned();
    for (_, light, dark) in ALL {
        for part in ["fill", "stroke"] {
            style += &format!("[{part}=\"#{light:06X}\"]{{{part}:#{dark:06x}}}");
        }
    }
    style + "}</style>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_colour_has_a_value_of_its_own_on_both_pages() {
        for part in [|of: &(Colour, u32, u32)| of.1, |of: &(Colour, u32, u32)| of.2] {
            let mut values: Vec<u32> = ALL.iter().map(part).collect();
            values.sort_unstable();
            values.dedup();
            assert_eq!(values.len(), ALL.len());
        }
        assert_eq!(Colour::Series(7).rgb(), Colour::Series(1).rgb());
    }
}
