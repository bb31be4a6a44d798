//! Parameters of benchmarks: their values, and the places of a command where they stand.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::str::FromStr;

/// A parameter and its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The name, as it stands in braces.
    pub name: String,
    /// The values, in the user's order.
    pub values: Vec<String>,
}

/// The value of each parameter for one run.
pub type Values = BTreeMap<String, String>;

/// More values are a mistake of the user.
const MOST: usize = 100_000;

impl FromStr for Parameter {
    type Err = String;

    /// Reads `n=1000,2000,4000`, `n=250..8000*2`, `n=1..10` or `algo=list,map`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, values) =
            text.split_once('=').ok_or("it is not of the form NAME=VALUES, as n=250..8000*2")?;
        check_name(name)?;
        Ok(Self { name: name.to_owned(), values: parse_values(values)? })
    }
}

/// Refuses names that cannot stand in braces.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_fine = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.bytes().all(is_of_name);
    is_fine.then_some(()).ok_or_else(|| format!("{name:?} is no name: letters, digits, _ and -"))
}

fn is_of_name(letter: u8) -> bool {
    letter.is_ascii_alphanumeric() || letter == b'_' || letter == b'-'
}

/// Reads values: a list of words and ranges, separated by commas.
pub fn parse_values(text: &str) -> Result<Vec<String>, String> {
    let mut values = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            Some((first, rest)) if is_number(first) => values.extend(range(part, first, rest)?),
            _ if part.is_empty() => return Err("a value is missing".to_owned()),
            Some(_) if !is_path(part) => return Err(no_range(part)),
            _ => values.push(part.to_owned()),
        }
    }
    let mut seen = BTreeSet::new();
    match values.iter().find(|value| !seen.insert(*value)) {
        Some(twice) => Err(format!("{twice} is given twice")),
        None => Ok(values),
    }
}

/// Whether dots stand for the folder above, as in `../words.txt`.
fn is_path(text: &str) -> bool {
    text == ".." || text.contains('/')
}

/// The mistake that a text with two dots is no range: as a single word it would hardly be meant.
fn no_range(text: &str) -> String {
    format!(
        "{text} is no range: both ends are whole numbers, as in 250..8000*2, 1..10 or 10..100+10; \
         other values stand one by one, as in n=0.5,1,1.5"
    )
}

fn is_number(text: &str) -> bool {
    text.parse::<u64>().is_ok()
}

/// `1..10`, `10..100+10` or `250..8000*2`, with both ends.
fn range(whole: &str, first: &str, rest: &str) -> Result<Vec<String>, String> {
    let step_at = rest.find(['*', '+']);
    let (last, step) = rest.split_at(step_at.unwrap_or(rest.len()));
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("{whole}: {text:?} is no number"));
    let (first, last) = (number(first)?, number(last)?);
    let step_by = if step.is_empty() { 1 } else { number(&step[1..])? };
    let multiplies = step.starts_with('*');
    if first > last {
        return Err(format!("{whole}: it goes down"));
    }
    if step_by < 1 || (multiplies && (step_by < 2 || first == 0)) {
        return Err(format!("{whole}: it never grows"));
    }
    let next = |value: &u64| if multiplies { value.checked_mul(step_by) } else { value.checked_add(step_by) };
    let values = std::iter::successors(Some(first), next).take_while(|value| *value <= last);
    let values: Vec<String> = values.take(MOST + 1).map(|value| value.to_string()).collect();
    if values.len() > MOST { Err(format!("{whole}: more than {MOST} values")) } else { Ok(values) }
}

/// Every value of each parameter with every value of the others; the last parameter changes fastest.
pub fn combinations(parameters: &[Parameter]) -> Result<Vec<Values>, String> {
    let mut names = BTreeSet::new();
    if let Some(twice) = parameters.iter().find(|parameter| !names.insert(&parameter.name)) {
        return Err(format!("{} is given twice", twice.name));
    }
    let number =
        parameters.iter().try_fold(1_usize, |all, parameter| all.checked_mul(parameter.values.len()));
    if number.is_none_or(|number| number > MOST) {
        return Err(format!("these are more than {MOST} combinations"));
    }
    let mut all = vec![Values::new()];
    for Parameter { name, values } in parameters {
        let with = |of: &Values| {
            let of = of.clone();
            values.iter().map(move |value| {
                let mut of = of.clone();
                of.insert(name.clone(), value.clone());
                of
            })
        };
        all = all.iter().flat_map(with).collect();
    }
    Ok(all)
}

/// Checks that a command has a place for each of some parameters.
pub fn check_used(parameters: &[Parameter], has: impl Fn(&str) -> bool) -> Result<(), String> {
    match parameters.iter().find(|parameter| !has(&parameter.name)) {
        Some(Parameter { name, .. }) => {
            Err(format!("the command has no place for {name}: write {{{name}}} where it is to stand"))
        }
        None => Ok(()),
    }
}

/// A command with places for parameters: `{n}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    words: Vec<Vec<Piece>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(Vec<u8>),
    Place(String),
}

impl Template {
    /// Reads a command in which these names may stand in braces. Without any, braces stand for themselves.
    ///
    /// `{{` and `}}` are braces; what is in braces and no name stands for itself.
    pub fn new(words: &[OsString], names: &[&str]) -> Result<Self, String> {
        if names.is_empty() {
            let words = words.iter().map(|word| vec![Piece::Text(word.as_bytes().to_vec())]).collect();
            return Ok(Self { words });
        }
        let template = Self { words: words.iter().map(|word| pieces(word)).collect() };
        let unknown = template.places().find(|name| !names.contains(name)).map(str::to_owned);
        match unknown {
            Some(unknown) => Err(format!("{{{unknown}}} names no parameter: there are {}", names.join(", "))),
            None => Ok(template),
        }
    }

    fn places(&self) -> impl Iterator<Item = &str> {
        self.words.iter().flatten().filter_map(|piece| match piece {
            Piece::Place(name) => Some(name.as_str()),
            Piece::Text(_) => None,
        })
    }

    /// Whether a name stands in it.
    pub fn has(&self, name: &str) -> bool {
        self.places().any(|place| place == name)
    }

    /// The command with the values in their places.
    pub fn fill(&self, value: impl Fn(&str) -> OsString) -> Vec<OsString> {
        let word = |pieces: &Vec<Piece>| {
            let bytes = pieces.iter().flat_map(|piece| match piece {
                Piece::Text(text) => text.clone(),
                Piece::Place(name) => value(name).into_vec(),
            });
            OsString::from_vec(bytes.collect())
        };
        self.words.iter().map(word).collect()
    }

    /// The words without any place: a name for the program.
    pub fn name(&self) -> String {
        let fixed = self.words.iter().filter_map(|pieces| match &pieces[..] {
            [Piece::Text(text)] => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        });
        fixed.collect::<Vec<_>>().join(" ")
    }
}

fn pieces(word: &OsStr) -> Vec<Piece> {
    let (bytes, mut at) = (word.as_bytes(), 0);
    let (mut pieces, mut text) = (Vec::new(), Vec::new());
    while at < bytes.len() {
        let rest = &bytes[at..];
        if rest.starts_with(b"{{") || rest.starts_with(b"}}") {
            text.push(rest[0]);
            at += 2;
            continue;
        }
        let length = rest.iter().position(|&byte| byte == b'}').filter(|_| rest[0] == b'{');
        let name = length.and_then(|end| std::str::from_utf8(&rest[1..end]).ok());
        match name.filter(|name| check_name(name).is_ok()) {
            Some(name) => {
                if !text.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut text)));
                }
                pieces.push(Piece::Place(name.to_owned()));
                at += name.len() + 2;
            }
            None => {
                text.push(rest[0]);
                at += 1;
            }
        }
    }
    if !text.is_empty() || pieces.is_empty() {
        pieces.push(Piece::Text(text));
    }
    pieces
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn values(text: &str) -> String {
        parse_values(text).map_or_else(|error| error, |values| values.join(" "))
    }

    #[test]
    fn values_are_lists_and_ranges_with_both_ends() {
        assert_eq!(values("1000,2000,4000"), "1000 2000 4000");
        assert_eq!(values("250..8000*2"), "250 500 1000 2000 4000 8000");
        assert_eq!(values("250..8001*2"), "250 500 1000 2000 4000 8000");
        assert_eq!(values("8..10,20..40+10,list"), "8 9 10 20 30 40 list");
        assert_eq!(values("7..7"), "7");
        assert_eq!(
            values("18446744073709551614..18446744073709551615"),
            "18446744073709551614 18446744073709551615"
        );
        // Paths with dots are no ranges.
        assert_eq!(values("../a,..,a/../b,./b..c"), "../a .. a/../b ./b..c");
    }

    #[test]
    fn a_range_that_is_none_is_no_word() {
        for text in ["a..b", "1.5..3", "-5..5", "..10", "1k..8k*2", "0x10..0x20", "b..c,1"] {
            let error = values(text);
            let part = text.split(',').next().unwrap();
            assert!(
                error.starts_with(&format!("{part} is no range: both ends are whole numbers")),
                "{error}"
            );
        }
    }

    #[test]
    fn ranges_that_never_end_or_go_down_are_refused() {
        assert_eq!(values("1..8*1"), "1..8*1: it never grows");
        assert_eq!(values("0..8*2"), "0..8*2: it never grows");
        assert_eq!(values("1..8+0"), "1..8+0: it never grows");
        assert_eq!(values("8..1"), "8..1: it goes down");
        assert_eq!(values("1..x"), "1..x: \"x\" is no number");
        assert_eq!(
            values("1..99999999999999999999"),
            "1..99999999999999999999: \"99999999999999999999\" is no number"
        );
        assert_eq!(values("1..1000000"), "1..1000000: more than 100000 values");
        assert_eq!(values("1,,2"), "a value is missing");
        assert_eq!(values("1,2,1..3"), "1 is given twice");
        for wrong in ["n", "=1", "1n=2", "a b=1", "ä=1", "n="] {
            assert!(wrong.parse::<Parameter>().is_err(), "{wrong}");
        }
    }

    fn template(words: &[&str], parameters: &[&str]) -> Result<Template, String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let parameters: Vec<Parameter> =
            parameters.iter().map(|text| text.parse().expect("it is one")).collect();
        let names: Vec<&str> = parameters.iter().map(|parameter| parameter.name.as_str()).collect();
        let template = Template::new(&words, &names)?;
        check_used(&parameters, |name| template.has(name)).map(|()| template)
    }

    #[test]
    fn values_stand_where_their_names_are_in_braces() {
        let parameters = ["n=1,2".parse::<Parameter>().unwrap(), "algo=list,map".parse().unwrap()];
        let all = combinations(&parameters).unwrap();
        let template =
            template(&["./p", "--n={n}", "{algo}-{n}", "{{n}} {} { x }"], &["n=1", "algo=a"]).unwrap();
        let filled: Vec<Vec<OsString>> =
            all.iter().map(|of| template.fill(|name| of[name].clone().into())).collect();
        assert_eq!(filled.len(), 4);
        assert_eq!(filled[1], ["./p", "--n=1", "map-1", "{n} {} { x }"]);
        assert_eq!(filled[2], ["./p", "--n=2", "list-2", "{n} {} { x }"]);
        assert_eq!(
            (template.name().as_str(), template.has("n"), template.has("m")),
            ("./p {n} {} { x }", true, false)
        );
        assert_eq!(combinations(&[]).unwrap(), [Values::new()]);
        assert_eq!(
            combinations(&[parameters[0].clone(), parameters[0].clone()]).unwrap_err(),
            "n is given twice"
        );
    }

    #[test]
    fn places_and_parameters_must_fit() {
        assert_eq!(
            template(&["./{m}"], &["n=1", "algo=a"]).unwrap_err(),
            "{m} names no parameter: there are n, algo"
        );
        assert_eq!(
            template(&["./p", "{n}"], &["n=1", "algo=a"]).unwrap_err(),
            "the command has no place for algo: write {algo} where it is to stand"
        );
        // Without parameters, a command with braces is as it is.
        let awk = template(&["awk", "{print}{{x}}"], &[]).unwrap();
        assert_eq!(awk.fill(|_| unreachable!()), ["awk", "{print}{{x}}"]);
    }

    #[test]
    fn words_that_are_no_text_keep_their_bytes() {
        let word = OsString::from_vec(b"\xff{n}\xfe".to_vec());
        let template = Template::new(&[word], &["n"]).unwrap();
        assert_eq!(template.fill(|_| "7".into())[0].as_bytes(), b"\xff7\xfe");
    }
}
