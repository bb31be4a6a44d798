//! The filter that decides by name if a function is recorded.

/// Patterns that names are compared with: `*` stands for any characters, `?` for one.
///
/// A function is recorded when it fits one of `only`, or there are none, and none of `ignored`.
/// Costs of one that is not recorded are its caller's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Patterns of the functions to record; empty for all.
    pub only: Vec<String>,
    /// Patterns of the functions to leave out.
    pub ignored: Vec<String>,
}

impl Filter {
    /// Whether everything is recorded.
    pub(crate) const fn is_open(&self) -> bool {
        self.only.is_empty() && self.ignored.is_empty()
    }

    /// Whether a function of that name is recorded.
    pub fn keeps(&self, name: &[u8]) -> bool {
        let fits = |patterns: &[String]| patterns.iter().any(|pattern| fits(pattern.as_bytes(), name));
        (self.only.is_empty() || fits(&self.only)) && !fits(&self.ignored)
    }

    /// The patterns of a list with commas.
    pub(crate) fn list(text: &str) -> Vec<String> {
        text.split(',').map(str::trim).filter(|pattern| !pattern.is_empty()).map(str::to_owned).collect()
    }
}

/// Whether a name fits a pattern, in time proportional to the product of their lengths at most.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    // Where the last `*` stands, and up to where of the name it reaches.
    let mut star: Option<(usize, usize)> = None;
    while from < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(&expected) if expected == b'?' || expected == name[from] => {
                at += 1;
                from += 1;
            }
            _ => match &mut star {
                Some((place, reach)) => {
                    *reach += 1;
                    (at, from) = (*place + 1, *reach);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|&left| left == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_as_in_a_shell() {
        for (pattern, name, expected) in [
            ("solve", "solve", true),
            ("solve", "solver", false),
            ("sol*", "solver", true),
            ("*ve*", "solver", true),
            ("s?lve", "solve", true),
            ("*a*b*c", "xaxbxbxc", true),
            ("*a*b*c", "xaxbxbx", false),
            ("", "", true),
            ("*", "", true),
        ] {
            assert_eq!(fits(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn ignored_functions_are_left_out_of_those_asked_for() {
        let filter = Filter { only: Filter::list("a*, b*"), ignored: Filter::list("ab*") };
        assert!(filter.keeps(b"ac") && filter.keeps(b"b"));
        assert!(!filter.keeps(b"abc") && !filter.keeps(b"c"));
    }
}
