//! Functions of JavaScript as texts that hold their place.

/// A function, and where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Location<'a> {
    pub(super) name: &'a str,
    pub(super) file: &'a str,
    pub(super) line: u32,
}

/// The columns behind lines, by the versions of the format.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Columns {
    /// There may be some, as Firefox itself writes them.
    Optional,
    /// There are none, as in processed profiles before version 4.
    Never,
}

impl<'a> Location<'a> {
    /// `frobnicate (chrome://blargh:34)`, `frobnicate (chrome://blargh:34:5)`, or without a name `chrome://blargh:34`,
    /// after the profiler's own rules. A script that another one loaded is behind an arrow: `loader.js -> script.js`.
    pub(super) fn parse(text: &'a str, columns: Columns) -> Option<Self> {
        let named = text.strip_suffix(')').and_then(|text| text.rsplit_once(" ("));
        let (name, place) = named.unwrap_or(("", text));
        let (file, line) = place_of(place, columns)?;
        let file = file.rsplit_once(" -> ").map_or(file, |(_, file)| file);
        Some(Self { name: if name.is_empty() { file } else { name }, file, line })
    }
}

fn place_of(place: &str, columns: Columns) -> Option<(&str, u32)> {
    let (file, last) = place.rsplit_once(':')?;
    let last = last.parse().ok()?;
    let line_before = file.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
    match line_before {
        Some((file, line)) if columns == Columns::Optional && !file.is_empty() => Some((file, line)),
        _ => Some((file, last)).filter(|(file, _)| !file.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_places_are_told_apart_as_in_the_profiler() {
        let parse = |text, columns| Location::parse(text, columns).map(|at| (at.name, at.file, at.line));
        for columns in [Columns::Optional, Columns::Never] {
            let blargh = Some(("frobnicate", "chrome://blargh", 34));
            assert_eq!(parse("frobnicate (chrome://blargh:34)", columns), blargh);
            assert_eq!(parse("a.js:7", columns), Some(("a.js", "a.js", 7)));
            assert_eq!(parse("f (g) (a.js -> b.js:7)", columns), Some(("f (g)", "b.js", 7)));
            for other in ["(root)", "Startup::XRE_Main", "0x1a2b", "f (a.js)", ":7", ""] {
                assert_eq!(parse(other, columns), None, "{other}");
            }
        }
        assert_eq!(parse("paint (a.js:7:9)", Columns::Optional), Some(("paint", "a.js", 7)));
        let port = parse("paint (http://localhost:8080:9)", Columns::Never);
        assert_eq!(port, Some(("paint", "http://localhost:8080", 9)));
    }
}
