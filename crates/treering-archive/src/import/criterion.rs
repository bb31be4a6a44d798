//! The JSON that criterion keeps of each benchmark.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{ImportError, time};
use crate::manifest::{Manifest, Measured, Unit, metric};
use crate::word::Word;

/// Reads `benchmark.json` and `sample.json` of one benchmark: the time of an iteration, one for each sample.
///
/// # Errors
/// The files are none of criterion's.
pub fn criterion(benchmark: &[u8], sample: &[u8]) -> Result<Manifest, ImportError> {
    let (benchmark, sample): (Value, Value) =
        (serde_json::from_slice(benchmark)?, serde_json::from_slice(sample)?);
    let text = |key: &str| benchmark[key].as_str().map(str::to_owned);
    let group = text("group_id").ok_or_else(|| ImportError::wrong("benchmark.json", "it has no group_id"))?;
    let program =
        [Some(group.clone()), text("function_id")].into_iter().flatten().collect::<Vec<_>>().join("/");
    let list = |key: &str| {
        let list =
            sample[key].as_array().ok_or_else(|| ImportError::wrong(&program, format!("there are no {key}")));
        list?.iter().map(|value| time(&program, value)).collect::<Result<Vec<f64>, ImportError>>()
    };
    let (iterations, times) = (list("iters")?, list("times")?);
    if iterations.len() != times.len() || iterations.contains(&0.0) {
        return Err(ImportError::wrong(&program, "its samples have no number of iterations each"));
    }
    let values = times.iter().zip(&iterations).map(|(time, iterations)| time / iterations).collect();
    Ok(Manifest {
        command: vec![Word::from(&program)],
        parameters: text("value_str").map(|value| ("value".to_owned(), value)).into_iter().collect(),
        samples: BTreeMap::from([(metric::WALL.to_owned(), Measured { unit: Unit::Ns, values })]),
        clock: "criterion: wall time of an iteration".to_owned(),
        imported_from: Some("criterion".to_owned()),
        program,
        ..Manifest::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BENCHMARK: &str = r#"{"group_id":"sort","function_id":"quick","value_str":"1000","throughput":null,
        "full_id":"sort/quick/1000","directory_name":"sort/quick/1000","title":"sort/quick/1000"}"#;

    #[test]
    fn samples_of_criterion_are_times_of_an_iteration() {
        let sample = r#"{"sampling_mode":"Linear","iters":[10.0,20.0],"times":[1000.0,3000.0]}"#;
        let run = criterion(BENCHMARK.as_bytes(), sample.as_bytes()).unwrap();
        assert_eq!((run.program.as_str(), run.parameters["value"].as_str()), ("sort/quick", "1000"));
        assert_eq!(run.samples["wall"].values, [100.0, 150.0]);
        let plain = br#"{"group_id":"sum","function_id":null,"value_str":null}"#;
        let run = criterion(plain, sample.as_bytes()).unwrap();
        assert_eq!((run.program.as_str(), run.parameters.len()), ("sum", 0));
        for wrong in [r#"{"iters":[1.0],"times":[]}"#, r#"{"iters":[0.0],"times":[1.0]}"#, "{}", "["] {
            assert!(criterion(BENCHMARK.as_bytes(), wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
