//! Plots as PNG: the same picture in twice as many pixels, for documents and sites that take no SVG.

use std::fmt::Display;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::{Database, Family, Query};
use resvg::usvg::{Options, Tree};

use crate::failure::Failure;

/// How many pixels of a PNG make one of the SVG.
const SCALE: f32 = 2.0;

/// The text in a PNG that says who made it.
const SOFTWARE: (&str, &str) = ("Software", "Treering");

/// Draws a plot, which is SVG, on a light page. Text has the system's sans-serif font.
pub fn draw(svg: &str) -> Result<Vec<u8>, Failure> {
    let mut options = Options::default();
    let fonts = options.fontdb_mut();
    fonts.load_system_fonts();
    choose_sans_serif(fonts)?;
    let failed = |error: &dyn Display| Failure::new(format_args!("the plot cannot be drawn as PNG: {error}"));
    let tree = Tree::from_str(svg, &options).map_err(|error| failed(&error))?;
    let size = tree.size().to_int_size().scale_by(SCALE);
    let pixels = size.and_then(|size| Pixmap::new(size.width(), size.height()));
    let mut pixels = pixels.ok_or_else(|| failed(&"it has no size"))?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    encoded(&pixels).map_err(|error| failed(&error))
}

/// Whether a file with this beginning is a PNG that Treering drew.
pub fn is_ours(start: &[u8]) -> bool {
    let (keyword, text) = SOFTWARE;
    let chunk = [b"tEXt", keyword.as_bytes(), b"\0", text.as_bytes()].concat();
    start.starts_with(b"\x89PNG\r\n\x1a\n") && start.windows(chunk.len()).any(|part| part == chunk)
}

/// Machines without a configured sans-serif font take any that is called so, or the first of all.
fn choose_sans_serif(fonts: &mut Database) -> Result<(), Failure> {
    let query = Query { families: &[Family::SansSerif], ..Query::default() };
    if fonts.query(&query).is_some() {
        return Ok(());
    }
    let names = || fonts.faces().filter_map(|face| Some(face.families.first()?.0.clone()));
    let name = names().find(|name| name.contains("Sans")).or_else(|| names().next());
    let name = name.ok_or_else(|| {
        Failure::new("no font is installed, so a PNG would have no text")
            .hint("name the file .svg, or install a font: apt install fonts-dejavu-core")
    })?;
    fonts.set_sans_serif_family(name);
    Ok(())
}

fn encoded(pixels: &Pixmap) -> Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, pixels.width(), pixels.height());
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.add_text_chunk(SOFTWARE.0.to_owned(), SOFTWARE.1.to_owned())?;
    let mut writer = encoder.write_header()?;
    // The page is opaque, so that colours are not multiplied by anything.
    writer.write_image_data(pixels.data())?;
    writer.finish()?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_png_is_the_picture_in_twice_as_many_pixels() {
        let svg = r##"<svg xmlns="http://www.w3.org/2000/svg" width="60" height="40"><rect width="60" height="40" fill="#fdfdfc"/>
            <rect x="10" y="10" width="20" height="10" fill="#9c4a00"/></svg>"##;
        let bytes = match draw(svg) {
            Ok(bytes) => bytes,
            Err(failure) => {
                return assert!(failure.to_string().contains("no font is installed"), "{failure}");
            }
        };
        assert!(is_ours(&bytes[..100]) && !is_ours(&bytes[..50]), "it is known by its first bytes");
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().expect("a PNG");
        let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
        let info = reader.next_frame(&mut pixels).expect("a frame");
        assert_eq!((info.width, info.height), (120, 80));
        let at = |x: usize, y: usize| &pixels[4 * (120 * y + x)..][..4];
        assert_eq!((at(40, 30), at(100, 70)), (&[0x9c, 0x4a, 0x00, 0xff][..], &[0xfd, 0xfd, 0xfc, 0xff][..]));
    }
}
