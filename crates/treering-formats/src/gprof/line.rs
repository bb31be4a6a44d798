//! Rows of gprof's two tables.

/// A row of the flat profile: `96.15      0.24     0.24     1920     0.13     0.13  name`.
#[derive(Debug, PartialEq)]
pub(super) struct FlatRow<'a> {
    /// Of the time of the whole run, in percent.
    pub(super) share: f64,
    pub(super) seconds: f64,
    /// Nothing where calls were not counted.
    pub(super) calls: Option<u64>,
    pub(super) entry: Entry<'a>,
}

impl<'a> FlatRow<'a> {
    pub(super) fn parse(line: &'a str) -> Option<Self> {
        let mut rest = line;
        let [share, _sum, seconds] = [decimal(&mut rest)?, decimal(&mut rest)?, decimal(&mut rest)?];
        let mut behind = rest;
        let calls = word(&mut behind).and_then(|word| word.parse().ok());
        // The averages of a call follow its number.
        let averages = decimal(&mut behind).zip(decimal(&mut behind));
        let calls = calls.filter(|_| averages.is_some());
        let entry = Entry::parse(if calls.is_some() { behind } else { rest })?;
        Some(Self { share, seconds, calls, entry })
    }
}

/// A function in the call graph, by its number where it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Entry<'a> {
    pub(super) index: Option<u32>,
    pub(super) name: &'a str,
    /// File and line, where lines are profiled (`gprof -l`).
    pub(super) place: Option<(&'a str, u32)>,
}

/// A row of the call graph: `[2] 96.0  0.24  0.00  1920  name [2]`, or one of a caller or callee.
#[derive(Debug, PartialEq)]
pub(super) struct GraphRow<'a> {
    /// Whether it is the function that the entry is about.
    pub(super) is_primary: bool,
    /// Self seconds; nothing between functions of a cycle.
    pub(super) seconds: Option<f64>,
    /// The calls of this arc, or all, without those of a function to itself.
    pub(super) calls: Option<u64>,
    pub(super) entry: Entry<'a>,
}

impl<'a> GraphRow<'a> {
    pub(super) fn parse(line: &'a str) -> Option<Self> {
        let mut rest = line;
        let is_primary = line.starts_with('[');
        if is_primary {
            word(&mut rest)?;
            decimal(&mut rest)?;
        }
        let seconds = decimal(&mut rest);
        if seconds.is_some() {
            decimal(&mut rest)?;
        }
        let mut behind = rest;
        let calls = word(&mut behind).and_then(calls);
        let entry = Entry::parse(if calls.is_some() { behind } else { rest })?;
        Some(Self { is_primary, seconds, calls, entry })
    }
}

impl<'a> Entry<'a> {
    /// `name <cycle 1> [4]` or `name (file.c:7 @ 401136) [4]`.
    fn parse(text: &'a str) -> Option<Self> {
        let text = text.trim();
        let numbered = text.strip_suffix(']').and_then(|text| text.rsplit_once(" ["));
        let numbered = numbered.and_then(|(name, index)| Some((name, index.parse().ok()?)));
        let (name, index) = numbered.map_or((text, None), |(name, index)| (name, Some(index)));
        let in_cycle = name.strip_suffix('>').and_then(|name| name.rsplit_once(" <cycle "));
        let name = match in_cycle {
            Some((name, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => name,
        };
        let (name, place) = with_place(name).map_or((name, None), |(name, place)| (name, Some(place)));
        (!name.is_empty()).then_some(Self { index, name, place })
    }

    /// Its name in both tables: in the flat profile, functions have no numbers.
    pub(super) fn without_index(self) -> Self {
        Self { index: None, ..self }
    }

    /// Whether it stands for all functions of a cycle.
    pub(super) fn is_cycle(&self) -> bool {
        self.name.starts_with("<cycle ") && self.name.ends_with(" as a whole>")
    }
}

/// Takes `name (file.c:7 @ 401136)` apart.
fn with_place(text: &str) -> Option<(&str, (&str, u32))> {
    let (name, place) = text.strip_suffix(')')?.rsplit_once(" (")?;
    let (place, address) = place.rsplit_once(" @ ")?;
    let (file, line) = place.rsplit_once(':')?;
    let is_hex = !address.is_empty() && address.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| Some((name, (file, line.parse().ok()?))))?
}

/// The first of `3`, `3/7` and `3+7`.
fn calls(word: &str) -> Option<u64> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (first, second) = word.split_once(['/', '+']).unwrap_or((word, "0"));
    (digits(first) && digits(second)).then(|| first.parse().ok())?
}

/// Takes the next word.
fn word<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let text = rest.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (word, behind) = text.split_at(end);
    *rest = behind;
    (!word.is_empty()).then_some(word)
}

/// Takes the next word if it is a number with a point.
fn decimal(rest: &mut &str) -> Option<f64> {
    let mut behind = *rest;
    let word = word(&mut behind)?;
    let is_number = word.contains('.') && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number = word.parse().ok().filter(|_| is_number)?;
    *rest = behind;
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_blanks_numbers_and_cycles_are_told_from_columns() {
        let row =
            FlatRow::parse("  0.00      0.25     0.00       60     0.00     0.17  a b(int*) const").unwrap();
        assert_eq!((row.seconds, row.calls, row.entry.name), (0.0, Some(60), "a b(int*) const"));
        let row = FlatRow::parse(" 50.00      0.02     0.02                             memcpy").unwrap();
        assert_eq!((row.seconds, row.calls, row.entry.name), (0.02, None, "memcpy"));
        let row = GraphRow::parse("                0.08    0.00     600/1920        odd(long) <cycle 1> [5]")
            .unwrap();
        let entry = Entry { index: Some(5), name: "odd(long)", place: None };
        assert_eq!(row, GraphRow { is_primary: false, seconds: Some(0.08), calls: Some(600), entry });
        let row =
            GraphRow::parse("                                 540             f(X<3> [2]) [6]").unwrap();
        assert_eq!((row.seconds, row.calls, row.entry.name), (None, Some(540), "f(X<3> [2])"));
        let row =
            GraphRow::parse("[3]     63.0    0.00    0.16      60+1200    <cycle 1 as a whole> [3]").unwrap();
        assert!(row.entry.is_cycle() && row.is_primary && row.calls == Some(60));
        let row =
            FlatRow::parse(" 76.44      0.15     0.15                             f(int) (a b.c:4 @ 11fa)")
                .unwrap();
        let entry = Entry { index: None, name: "f(int)", place: Some(("a b.c", 4)) };
        assert_eq!((row.seconds, row.calls, row.entry), (0.15, None, entry));
        let row = GraphRow::parse("       0.00    0.00       5/7           odd (m.c:6 @ 1225) <cycle 1> [7]")
            .unwrap();
        assert_eq!(row.entry, Entry { index: Some(7), name: "odd", place: Some(("m.c", 6)) });
    }
}
