//! Pictures as files of text.

use crate::csv::CSV_START;
use crate::dot::DOT_START;
use crate::drcov::DRCOV_START;
use crate::flame_graph::SVG_START;
use crate::gcov_json::GCOV_JSON_START;
use crate::lcov::LCOV_START;

/// A picture and what is not in it.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The file's text.
    pub text: String,
    /// Omissions, as sentences. The picture says the same.
    pub left_out: Vec<String>,
}

/// Whether a file that starts so is a picture or a table of ours.
pub fn is_picture(start: &[u8]) -> bool {
    [SVG_START, DOT_START, CSV_START].iter().any(|known| start.starts_with(known.as_bytes()))
}

/// Whether a file that starts so is a file of coverage that we wrote.
pub fn is_coverage(start: &[u8]) -> bool {
    [LCOV_START, GCOV_JSON_START, DRCOV_START].iter().any(|known| start.starts_with(known.as_bytes()))
}
