//! The JSON of hyperfine.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{ImportError, time};
use crate::manifest::{Manifest, Measured, Unit, metric};
use crate::word::Word;

/// Nanoseconds in a second, which hyperfine's times are in.
const SECOND: f64 = 1e9;

/// Reads what `hyperfine --export-json` wrote: the wall time and memory of every round; the processor time as the mean
/// that hyperfine states.
///
/// # Errors
/// The file is none of hyperfine's.
pub fn hyperfine(json: &[u8]) -> Result<Vec<Manifest>, ImportError> {
    let file: Value = serde_json::from_slice(json)?;
    let results =
        file["results"].as_array().ok_or_else(|| ImportError::wrong("results", "there are none"))?;
    let mut manifests = results.iter().map(result).collect::<Result<Vec<_>, _>>()?;
    let names: Vec<String> = manifests.iter().map(|of| program(of, &manifests)).collect();
    manifests.iter_mut().zip(names).for_each(|(of, name)| of.program = name);
    Ok(manifests)
}

fn result(result: &Value) -> Result<Manifest, ImportError> {
    let command =
        result["command"].as_str().ok_or_else(|| ImportError::wrong("a result", "it has no command"))?;
    let mut samples = BTreeMap::new();
    let mut notes = Vec::new();
    let list = |name: &str| result.get(name).and_then(Value::as_array).filter(|list| !list.is_empty());
    let wall: Vec<f64> = match list("times") {
        Some(times) => times
            .iter()
            .map(|value| Ok(time(command, value)? * SECOND))
            .collect::<Result<_, ImportError>>()?,
        None => {
            notes.push("only the mean of all rounds is known".to_owned());
            vec![time(command, &result["mean"])? * SECOND]
        }
    };
    if let (Some(user), Some(system)) = (result["user"].as_f64(), result["system"].as_f64()) {
        notes.push("the processor time is the mean of all rounds".to_owned());
        samples.insert(
            metric::CPU.to_owned(),
            Measured { unit: Unit::Ns, values: vec![(user + system) * SECOND] },
        );
    }
    if let Some(memory) = list("memory_usage_byte") {
        let values: Option<Vec<f64>> = memory.iter().map(Value::as_f64).collect();
        let values = values.ok_or_else(|| ImportError::wrong(command, "its memory is no list of numbers"))?;
        samples.insert(metric::MEMORY.to_owned(), Measured { unit: Unit::Bytes, values });
    }
    let failed =
        list("exit_codes").map_or(0, |codes| codes.iter().filter(|code| code.as_i64() != Some(0)).count());
    if failed > 0 {
        notes.push(format!("the command failed in {failed} of {} rounds", wall.len()));
    }
    samples.insert(metric::WALL.to_owned(), Measured { unit: Unit::Ns, values: wall });
    let parameters = result.get("parameters").and_then(Value::as_object);
    let parameters: BTreeMap<String, String> = parameters
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        .collect();
    Ok(Manifest {
        program: command.to_owned(),
        command: command.split_whitespace().map(Word::from).collect(),
        parameters,
        samples,
        notes,
        clock: "hyperfine: wall by the monotonic clock".to_owned(),
        imported_from: Some("hyperfine".to_owned()),
        ..Manifest::default()
    })
}

/// The words of a command in which no parameter stands: hyperfine states the command with the values in their places.
/// A word in which a value occurs by chance is the same in all other commands of the same length and parameters. In the
/// first word names of parameters stand for their values, `./mode{n}/run`, as the rest is no name.
fn program(of: &Manifest, all: &[Manifest]) -> String {
    let words = |of: &'_ Manifest| of.program.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let own = words(of);
    let is_alike = |other: &&Manifest| {
        other.parameters.keys().eq(of.parameters.keys()) && other.command.len() == own.len()
    };
    let alike: Vec<&Manifest> = all.iter().filter(is_alike).collect();
    let varies = |name: &str| alike.iter().any(|other| other.parameters[name] != of.parameters[name]);
    let is_fixed = |(at, word): &(usize, &String)| {
        let holds = |varying: bool| {
            let stands = |value: &str| !value.is_empty() && word.contains(value);
            of.parameters.iter().any(|(name, value)| varies(name) == varying && stands(value))
        };
        !holds(false) && (!holds(true) || alike.iter().all(|other| words(other)[*at] == **word))
    };
    let template = |of: &Manifest| {
        let mut values: Vec<_> = of.parameters.iter().filter(|(name, _)| varies(name)).collect();
        values.retain(|(_, value)| !value.is_empty());
        values.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
        let first = words(of).into_iter().next().unwrap_or_default();
        values.iter().fold(first, |word, (name, value)| word.replace(*value, &format!("{{{name}}}")))
    };
    let named = own.first().filter(|first| !is_fixed(&(0, first))).map(|_| template(of));
    let named = named.filter(|name| alike.len() > 1 && alike.iter().all(|other| template(other) == *name));
    let rest = own.iter().enumerate().filter(is_fixed).map(|(_, word)| word.as_str());
    let fixed: Vec<&str> = named.as_deref().into_iter().chain(rest).collect();
    if fixed.is_empty() { of.program.clone() } else { fixed.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made by hyperfine 1.15; see the fixture's README.
    const FILE: &[u8] = include_bytes!("../../../../fixtures/bench/hyperfine.json");

    #[test]
    fn rounds_and_parameters_of_hyperfine_are_read() {
        let runs = hyperfine(FILE).unwrap();
        let of = |run: &Manifest| (run.program.clone(), run.parameters["n"].clone(), run.rounds());
        assert_eq!(
            runs.iter().map(of).collect::<Vec<_>>(),
            [("sleep".to_owned(), "1".to_owned(), 4), ("sleep".to_owned(), "2".to_owned(), 4)]
        );
        // The file's own mean, in seconds.
        let mean = runs[0].samples["wall"].values.iter().sum::<f64>() / 4e9;
        assert!((mean - 0.00749075275).abs() < 1e-12);
        assert_eq!(runs[1].samples["cpu"].values, [(0.0011367500000000002 + 0.00037224999999999997) * 1e9]);
    }

    /// Values occur by chance in the program's name and in another option.
    #[test]
    fn a_program_has_one_name_for_all_values_of_its_parameters() {
        let result = |n: u32| {
            format!(
                r#"{{"command":"./p1 -j 4 --n {n} -m 7","mean":1,"times":[1],"parameters":{{"n":"{n}","m":"7"}}}}"#
            )
        };
        let file = format!(r#"{{"results":[{},{},{}]}}"#, result(1), result(2), result(4));
        let runs = hyperfine(file.as_bytes()).unwrap();
        assert_eq!(runs.iter().map(|run| run.program.as_str()).collect::<Vec<_>>(), ["./p1 -j 4 --n -m"; 3]);
    }

    /// The rest of the command was the name, or each value had a name of its own.
    #[test]
    fn a_parameter_in_the_program_s_path_stands_in_its_name() {
        for (rest, expected) in [("", "./mode{n}/run"), (" --fast", "./mode{n}/run --fast")] {
            let result = |n: u32| {
                format!(r#"{{"command":"./mode{n}/run{rest}","times":[1],"parameters":{{"n":"{n}"}}}}"#)
            };
            let file = format!(r#"{{"results":[{},{}]}}"#, result(1), result(2));
            let runs = hyperfine(file.as_bytes()).unwrap();
            assert_eq!(runs.iter().map(|run| run.program.as_str()).collect::<Vec<_>>(), [expected; 2]);
        }
    }

    #[test]
    fn failed_rounds_are_noted_and_other_files_refused() {
        let text = String::from_utf8(FILE.to_vec()).unwrap().replacen("0,\n        0,", "0,\n        3,", 1);
        let runs = hyperfine(text.as_bytes()).unwrap();
        assert!(
            runs[0].notes.contains(&"the command failed in 1 of 4 rounds".to_owned()),
            "{:?}",
            runs[0].notes
        );
        for (text, message) in [
            ("", "it is no JSON: EOF while parsing a value at line 1 column 0"),
            ("{}", "results: there are none"),
            (r#"{"results":[{}]}"#, "a result: it has no command"),
            (r#"{"results":[{"command":"ls","times":[-1]}]}"#, "ls: -1 is no time"),
            (r#"{"results":[{"command":"ls"}]}"#, "ls: null is no time"),
        ] {
            assert_eq!(hyperfine(text.as_bytes()).unwrap_err().to_string(), message);
        }
        for length in 0..FILE.len() {
            let _ = hyperfine(&FILE[..length]);
        }
    }
}
