//! Plots in files.

use std::path::Path;

use crate::failure::Failure;
use crate::output::write_whole;
use crate::png;

/// Writes a plot, which is SVG; as PNG where the file is called so.
pub fn write_plot(output: &Path, svg: &str) -> Result<(), Failure> {
    let is_png = output.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("png"));
    let bytes = if is_png { png::draw(svg)? } else { svg.as_bytes().to_vec() };
    write_whole(output, |to| to.write_all(&bytes))
}
