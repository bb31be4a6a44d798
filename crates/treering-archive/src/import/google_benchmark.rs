//! The JSON of google-benchmark.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{ImportError, time};
use crate::machine::Machine;
use crate::manifest::{Manifest, Measured, Named, Unit, metric};
use crate::word::Word;

/// Reads what a program of google-benchmark wrote as JSON: the times of an iteration, one for each repetition.
///
/// # Errors
/// The file is none of google-benchmark's.
pub fn google_benchmark(json: &[u8]) -> Result<Vec<Manifest>, ImportError> {
    let file = super::read(json)?;
    let list =
        file["benchmarks"].as_array().ok_or_else(|| ImportError::wrong("benchmarks", "there are none"))?;
    let mut names: Vec<&str> = Vec::new();
    let mut entries: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for entry in list.iter().filter(|entry| !is_fit(entry)) {
        let name = entry["run_name"].as_str().or(entry["name"].as_str());
        let name = name.ok_or_else(|| ImportError::wrong("a benchmark", "it has no name"))?;
        let of = entries.entry(name).or_default();
        if of.is_empty() {
            names.push(name);
        }
        of.push(entry);
    }
    names.into_iter().map(|name| benchmark(name, &entries[name], &file["context"])).collect()
}

/// Whether an entry is the complexity that was fitted to all sizes of a benchmark, which has no time.
fn is_fit(entry: &Value) -> bool {
    entry["aggregate_name"] == "BigO" || entry["aggregate_name"] == "RMS"
}

/// Why a repetition was not run to its end, if it was not. It states times of 0.
fn not_run(entry: &Value) -> Option<String> {
    let of = |how: &str, message: &str| format!("{how}: {}", entry[message].as_str().unwrap_or("no message"));
    match entry {
        _ if entry["error_occurred"] == true => Some(of("it failed", "error_message")),
        // `SkipWithMessage`, from google-benchmark 1.8 on.
        _ if entry["skipped"] == true => Some(of("it was skipped", "skip_message")),
        _ => None,
    }
}

fn benchmark(name: &str, entries: &[&Value], context: &Value) -> Result<Manifest, ImportError> {
    let is_aggregate = |entry: &&&Value| entry["run_type"] == "aggregate";
    let (aggregates, single): (Vec<&&Value>, Vec<&&Value>) = entries.iter().partition(is_aggregate);
    let mut notes: Vec<String> = single.iter().filter_map(|entry| not_run(entry)).collect();
    // Each repetition failed for the same reason, most of the time.
    notes.dedup();
    let was_run = |entry: &&&&Value| not_run(entry).is_none();
    let mut used: Vec<&Value> = single.iter().filter(was_run).map(|entry| **entry).collect();
    if single.is_empty() {
        notes.push("only the mean of all repetitions is known".to_owned());
        used.extend(aggregates.into_iter().filter(|entry| entry["aggregate_name"] == "mean").copied());
    }
    let mut samples = BTreeMap::new();
    for (metric, key) in [(metric::CPU, "cpu_time"), (metric::WALL, "real_time")] {
        let values: Result<Vec<f64>, ImportError> =
            used.iter().map(|entry| nanoseconds(name, entry, key)).collect();
        samples.insert(metric.to_owned(), Measured { unit: Unit::Ns, values: values? });
    }
    for Named { name, .. } in used.first().map_or(Vec::new(), |entry| counters(entry)) {
        let values: Option<Vec<f64>> = used.iter().map(|entry| entry[&name].as_f64()).collect();
        let is_metric =
            ["time", metric::CPU, metric::WALL, metric::MEMORY, metric::INSTRUCTIONS].contains(&&*name);
        // The counters of each repetition become results, as those of a program that was run.
        samples.extend(
            values.filter(|_| !is_metric).map(|values| (name, Measured { unit: Unit::Count, values })),
        );
    }
    let (program, parameters) = parameters(name);
    let text = |key: &str| context[key].as_str().unwrap_or_default().to_owned();
    Ok(Manifest {
        program,
        command: vec![Word::from(text("executable"))],
        parameters,
        results: used.first().map_or(Vec::new(), |entry| counters(entry)),
        machine: Machine {
            host: text("host_name"),
            cores: context["num_cpus"].as_u64().and_then(|cores| u32::try_from(cores).ok()).unwrap_or(0),
            ..Machine::default()
        },
        started: text("date").parse().unwrap_or_default(),
        samples,
        notes,
        clock: "google-benchmark: times of an iteration".to_owned(),
        imported_from: Some("google-benchmark".to_owned()),
        ..Manifest::default()
    })
}

fn nanoseconds(name: &str, entry: &Value, key: &str) -> Result<f64, ImportError> {
    let unit = entry["time_unit"].as_str().unwrap_or("ns");
    let factor = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return Err(ImportError::wrong(name, format!("{unit:?} is no unit of time"))),
    };
    Ok(time(name, &entry[key])? * factor)
}

/// The name without its arguments, and these: `BM_fill/n:64/8` has `n` = 64 and `arg` = 8. The second of one name is
/// `n_2`. Words that are no arguments, as `real_time`, belong to the name.
fn parameters(name: &str) -> (String, BTreeMap<String, String>) {
    let (mut program, mut parameters, mut unnamed) = (Vec::new(), BTreeMap::new(), Vec::new());
    let is_number = |text: &str| text.parse::<f64>().is_ok();
    for (at, part) in name.split('/').enumerate() {
        match part.split_once(':') {
            _ if at == 0 => program.push(part),
            Some((key, value)) if is_number(value) && !key.is_empty() => {
                parameters.insert(unused(&parameters, key), value.to_owned());
            }
            _ if is_number(part) => unnamed.push(part),
            _ => program.push(part),
        }
    }
    let is_only = unnamed.len() == 1;
    for (at, value) in unnamed.into_iter().enumerate() {
        let key = if is_only { "arg".to_owned() } else { format!("arg{}", at + 1) };
        parameters.insert(unused(&parameters, &key), value.to_owned());
    }
    (program.join("/"), parameters)
}

/// The name of an argument, with a number where others have the name already.
fn unused(parameters: &BTreeMap<String, String>, name: &str) -> String {
    let numbered = (2..).map(|number| format!("{name}_{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| !parameters.contains_key(name)).unwrap_or_default()
}

/// The benchmark's own counters: all numbers but those that every benchmark has.
fn counters(entry: &Value) -> Vec<Named> {
    const KNOWN: [&str; 8] = [
        "iterations",
        "real_time",
        "cpu_time",
        "repetitions",
        "repetition_index",
        "threads",
        "family_index",
        "per_family_instance_index",
    ];
    let pairs = entry.as_object().into_iter().flatten();
    let counted = pairs.filter(|(name, value)| value.is_number() && !KNOWN.contains(&name.as_str()));
    counted.map(|(name, value)| Named { name: name.clone(), value: value.to_string() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made by google-benchmark 1.7.1; see the fixture's README.
    const FILE: &[u8] = include_bytes!("../../../../fixtures/bench/google-benchmark.json");

    /// `->Complexity()`, and `SkipWithError` in each of two repetitions.
    #[test]
    fn fitted_complexities_are_no_runs_and_a_failure_is_said_once() {
        let file = br#"{"context": {}, "benchmarks": [
            {"name": "f/64", "run_name": "f/64", "run_type": "iteration", "real_time": 3, "cpu_time": 2, "time_unit": "ns"},
            {"name": "f_BigO", "run_name": "f", "run_type": "aggregate", "aggregate_name": "BigO", "cpu_coefficient": 3,
                "real_coefficient": 3, "big_o": "N", "time_unit": "ns"},
            {"name": "f_RMS", "run_name": "f", "run_type": "aggregate", "aggregate_name": "RMS", "rms": 0.02},
            {"name": "g", "run_name": "g", "run_type": "iteration", "error_occurred": true, "error_message": "no input",
                "real_time": 0, "cpu_time": 0, "time_unit": "ns"},
            {"name": "g", "run_name": "g", "run_type": "iteration", "error_occurred": true, "error_message": "no input",
                "real_time": 0, "cpu_time": 0, "time_unit": "ns"}]}"#;
        let runs = google_benchmark(file).unwrap();
        let of = |run: &Manifest| (run.program.clone(), run.rounds(), run.notes.clone());
        assert_eq!(
            runs.iter().map(of).collect::<Vec<_>>(),
            [("f".to_owned(), 1, Vec::new()), ("g".to_owned(), 0, vec!["it failed: no input".to_owned()])]
        );
    }

    /// As `SkipWithMessage` has it, and `DoNotOptimize(0.0 / 0.0)` in a counter.
    #[test]
    fn skipped_benchmarks_have_no_time_and_counters_may_be_no_numbers() {
        let file = br#"{"context": {}, "benchmarks": [
            {"name": "f", "run_name": "f", "run_type": "iteration", "iterations": 0, "skipped": true, "skip_message": "no data",
                "real_time": 0, "cpu_time": 0, "time_unit": "ns"},
            {"name": "NaN \"-Infinity", "run_type": "iteration", "real_time": 3, "cpu_time": 2, "time_unit": "ns",
                "rate": NaN, "cells": 4, "most": Infinity, "least":-Infinity}]}"#;
        assert_eq!(super::super::recognise(file), Some(super::super::Tool::GoogleBenchmark));
        let runs = google_benchmark(file).unwrap();
        assert_eq!((runs[0].rounds(), &runs[0].notes[..]), (0, &["it was skipped: no data".to_owned()][..]));
        assert_eq!((runs[1].program.as_str(), runs[1].rounds()), ("NaN \"-Infinity", 1));
        assert_eq!(runs[1].results, [Named { name: "cells".into(), value: "4".into() }]);
    }

    #[test]
    fn counters_are_kept_of_each_repetition() {
        let file = br#"{"context": {}, "benchmarks": [
            {"name": "f", "run_type": "iteration", "real_time": 3, "cpu_time": 2, "time_unit": "ns", "rate": 5, "memory": 1},
            {"name": "f", "run_type": "iteration", "real_time": 3, "cpu_time": 2, "time_unit": "ns", "rate": 7, "most": 2}]}"#;
        let samples = &google_benchmark(file).unwrap()[0].samples;
        assert_eq!(samples["rate"], Measured { unit: Unit::Count, values: vec![5.0, 7.0] });
        assert_eq!(samples.keys().collect::<Vec<_>>(), ["cpu", "rate", "wall"]);
    }

    #[test]
    fn repetitions_and_arguments_of_google_benchmark_are_read() {
        let runs = google_benchmark(FILE).unwrap();
        let of = |run: &Manifest| {
            let parameters: Vec<String> =
                run.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
            (run.program.clone(), parameters.join(" "), run.rounds())
        };
        let expected = [
            ("BM_fill", "n=64"),
            ("BM_fill", "n=512"),
            ("BM_pair/real_time", "arg1=3 arg2=4"),
            ("BM_plain", ""),
        ];
        let expected = expected.map(|(program, parameters)| (program.to_owned(), parameters.to_owned(), 3));
        assert_eq!(runs.iter().map(of).collect::<Vec<_>>(), expected);
        // As the file states them; microseconds in the third.
        assert_eq!(runs[0].samples["cpu"].values[1], 37.774402442876685);
        assert!((runs[2].samples["wall"].values[1] - 0.5831032645199686).abs() < 1e-9);
        assert_eq!(runs[1].results[0], Named { name: "cells".into(), value: "512.0".into() });
        assert_eq!(runs[0].started.to_string(), "2026-11-27T14:28:31.000000000Z");
        assert_eq!((runs[0].machine.cores, runs[0].machine.host.as_str()), (2, "vm"));
    }

    /// The last one replaced the others, so that runs of different arguments were one.
    #[test]
    fn arguments_of_one_name_are_kept_apart() {
        let (program, arguments) = parameters("f/n:1/n:2/n_2:3/n:4");
        let pairs: Vec<_> = arguments.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!((program.as_str(), pairs.join(" ").as_str()), ("f", "n=1 n_2=2 n_2_2=3 n_3=4"));
    }

    #[test]
    fn a_file_of_aggregates_has_means_and_failures_are_noted() {
        let mut file: Value = serde_json::from_slice(FILE).unwrap();
        let list = file["benchmarks"].as_array_mut().unwrap();
        list.retain(|entry| entry["run_type"] == "aggregate");
        let runs = google_benchmark(&serde_json::to_vec(&file).unwrap()).unwrap();
        assert_eq!(runs[0].samples["cpu"].values, [36.78351935698993]);
        assert_eq!(runs[0].notes, ["only the mean of all repetitions is known"]);
        let failed = br#"{"context":{},"benchmarks":[{"name":"A","run_type":"iteration","error_occurred":true,"error_message":"no file"}]}"#;
        let runs = google_benchmark(failed).unwrap();
        assert_eq!((runs[0].notes.clone(), runs[0].rounds()), (vec!["it failed: no file".to_owned()], 0));
    }

    #[test]
    fn other_files_are_refused() {
        for (text, message) in [
            ("{}", "benchmarks: there are none"),
            (r#"{"benchmarks":[{}]}"#, "a benchmark: it has no name"),
            (r#"{"benchmarks":[{"name":"A"}]}"#, "A: null is no time"),
            (
                r#"{"benchmarks":[{"name":"A","cpu_time":1,"real_time":1,"time_unit":"h"}]}"#,
                "A: \"h\" is no unit of time",
            ),
        ] {
            assert_eq!(google_benchmark(text.as_bytes()).unwrap_err().to_string(), message);
        }
        for length in (0..FILE.len()).step_by(7) {
            let _ = google_benchmark(&FILE[..length]);
        }
    }
}
