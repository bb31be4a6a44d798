//! The options of `on`.

use std::path::PathBuf;

use treering_runtime::{Filter, Kind};

use crate::hooks::what;

/// How Octave is to be profiled.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Request {
    /// What is made of the events.
    pub(crate) kind: Kind,
    /// What is recorded besides calls: bits of [`what`].
    pub(crate) bits: u32,
    /// Which functions are recorded.
    pub(crate) filter: Filter,
    /// The file to write; none for one that is removed at the end.
    pub(crate) output: Option<PathBuf>,
    /// The folder of our commands.
    pub(crate) home: String,
}

/// The words that may follow `on`, for error messages.
pub(crate) const USAGE: &str =
    "graph, flat, -lines, -args, -operators, -memory, -only PATTERN, -ignore PATTERN, -output FILE";

impl Request {
    /// Reads the words that follow `on`.
    ///
    /// # Errors
    /// A sentence for the user.
    pub(crate) fn read(words: &[String]) -> Result<Self, String> {
        let mut request = Self { bits: what::CALLS, ..Self::default() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut next = || words.next().cloned().ok_or_else(|| format!("{word} needs a value behind it"));
            match word.as_str() {
                "graph" => request.kind = Kind::CallGraph,
                "flat" => request.kind = Kind::Flat,
                "-lines" => request.bits |= what::LINES,
                "-args" => request.bits |= what::SIZES,
                "-operators" => request.bits |= what::OPERATORS,
                "-only" => request.filter.only.push(next()?),
                "-ignore" => request.filter.ignored.push(next()?),
                "-output" => request.output = Some(PathBuf::from(next()?)),
                "-home" => request.home = next()?,
                "-memory" => request.bits |= what::MEMORY,
                other => return Err(format!("unknown option '{other}'; there are {USAGE}")),
            }
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<Request, String> {
        Request::read(&words.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_read_in_any_order() {
        let request = read("-lines flat -only a* -only b -ignore ab -output x.trg").unwrap();
        assert_eq!((request.kind, request.bits), (Kind::Flat, what::CALLS | what::LINES));
        assert_eq!((request.filter.only.len(), request.filter.ignored.len()), (2, 1));
        assert_eq!(request.output, Some(PathBuf::from("x.trg")));
        assert_eq!(read("").unwrap().kind, Kind::CallGraph);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert!(read("-only").unwrap_err().contains("needs a value"));
        assert!(read("-line").unwrap_err().contains("unknown option '-line'"));
    }
}
