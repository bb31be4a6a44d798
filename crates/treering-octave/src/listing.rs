//! The words behind `info`: the parts of a profile to print.

/// The parts of a profile to print.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Listing {
    /// Whether the call graph is; where nothing was said, if there is one.
    pub(crate) kind: Option<Kind>,
    /// Whether statistics of single calls are.
    pub(crate) statistics: bool,
    /// Whether lines, and sizes of arguments, were asked for; recorded ones are printed in any case.
    pub(crate) lines: bool,
    /// See `lines`.
    pub(crate) sizes: bool,
    /// The most functions to list.
    pub(crate) top: Option<usize>,
    /// The order of the table of functions.
    pub(crate) sort: Sort,
}

/// A table of functions, with the call graph or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The table of functions.
    Flat,
    /// The call graph as well.
    Graph,
}

/// The order of the table of functions; the words are those of `treering report --sort`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sort {
    /// Self time, largest first.
    #[default]
    SelfTime,
    /// Total time, largest first.
    Total,
    /// Calls, most first.
    Calls,
    /// Name.
    Name,
}

impl Sort {
    fn of(word: &str) -> Result<Self, String> {
        match word {
            "self" => Ok(Self::SelfTime),
            "total" => Ok(Self::Total),
            "calls" => Ok(Self::Calls),
            "name" => Ok(Self::Name),
            other => Err(format!("-sort takes self, total, calls or name, not '{other}'")),
        }
    }
}

impl Listing {
    /// Reads the words that follow `info`.
    ///
    /// # Errors
    /// A sentence for the user.
    pub(crate) fn read(words: &[String]) -> Result<Self, String> {
        let mut listing = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "graph" => listing.kind = Some(Kind::Graph),
                "flat" => listing.kind = Some(Kind::Flat),
                "-statistics" => listing.statistics = true,
                "-lines" => listing.lines = true,
                "-args" => listing.sizes = true,
                "-top" => {
                    let number = words.next().and_then(|word| word.parse().ok()).filter(|&number| number > 0);
                    listing.top = Some(number.ok_or("-top needs a number of functions behind it")?);
                }
                "-sort" => {
                    let key = words.next().ok_or("-sort needs self, total, calls or name behind it")?;
                    listing.sort = Sort::of(key)?;
                }
                other => {
                    return Err(format!(
                        "unknown option '{other}' of info; there are graph, flat, -statistics, -lines, \
                         -args, -top NUMBER, -sort KEY"
                    ));
                }
            }
        }
        Ok(listing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<Listing, String> {
        Listing::read(&words.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn words_are_read_in_any_order() {
        assert_eq!(read("").unwrap(), Listing::default());
        let both =
            Listing { kind: Some(Kind::Flat), statistics: true, sort: Sort::Calls, ..Listing::default() };
        assert_eq!(read("-sort calls flat -statistics").unwrap(), both);
        assert_eq!(read("-statistics -sort calls flat").unwrap(), both);
        let few = read("-top 5 -lines -args").unwrap();
        assert_eq!((few.top, few.lines, few.sizes), (Some(5), true, true));
        assert_eq!(read("graph").unwrap().kind, Some(Kind::Graph));
    }

    #[test]
    fn unknown_options_and_values_are_refused() {
        assert!(read("grap").unwrap_err().contains("unknown option 'grap' of info"));
        assert!(read("-top").is_err() && read("-top x").is_err() && read("-top 0").is_err());
        assert!(read("-sort").unwrap_err().contains("needs self, total"));
        assert!(read("-sort time").unwrap_err().contains("not 'time'"));
    }
}
