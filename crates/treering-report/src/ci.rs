//! Comparisons as files that the programs of others read: JUnit's XML, github-action-benchmark's and Bencher's JSON.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use treering_compare::Difference;
use treering_profile::Unit;

use crate::difference::{Outcome, Verdict};
use crate::printable::printable;

/// One metric of one benchmark, in base and head.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The benchmark.
    pub benchmark: String,
    /// The metric.
    pub metric: String,
    /// Its unit.
    pub unit: &'static str,
    /// Its value in the base.
    pub base: f64,
    /// Its value in the head.
    pub head: f64,
    /// How much head's runs differ.
    pub deviation: Option<f64>,
    /// Whether head costs more.
    pub outcome: Outcome,
    /// The conclusion, in one line.
    pub text: String,
    /// Whether head costs more than it may.
    pub is_beyond_limit: bool,
}

impl Measured {
    /// The result of a difference, which no limit is set for.
    pub fn of(difference: &Difference, benchmark: &str) -> Self {
        let verdict = Verdict::of(difference);
        Self {
            benchmark: benchmark.to_owned(),
            metric: difference.metric.clone(),
            unit: match difference.unit {
                Unit::Nanoseconds => "ns",
                Unit::Bytes => "bytes",
                _ => "count",
            },
            base: difference.run.base.cost as f64,
            head: difference.run.head.cost as f64,
            deviation: None,
            outcome: verdict.outcome,
            text: verdict.text,
            is_beyond_limit: false,
        }
    }
}

/// A test case for each: failed beyond its limit, skipped if undecided.
pub fn junit_xml(measured: &[Measured]) -> String {
    let count = |of: fn(&Measured) -> bool| measured.iter().filter(|measured| of(measured)).count();
    let failures = count(|measured| measured.is_beyond_limit);
    let skipped = count(is_skipped);
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"treering\" tests=\"{}\" \
         failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\">\n",
        measured.len()
    );
    for of in measured {
        let (benchmark, metric, message) = (xml(&of.benchmark), xml(&of.metric), xml(&of.text));
        let _ = write!(text, "    <testcase classname=\"{benchmark}\" name=\"{metric}\">");
        let _ = match of {
            of if of.is_beyond_limit => write!(text, "<failure message=\"{message}\"/>"),
            of if is_skipped(of) => write!(text, "<skipped message=\"{message}\"/>"),
            _ => write!(text, "<system-out>{message}</system-out>"),
        };
        text += "</testcase>\n";
    }
    text + "  </testsuite>\n</testsuites>\n"
}

fn is_skipped(measured: &Measured) -> bool {
    measured.outcome == Outcome::Undecided && !measured.is_beyond_limit
}

/// The list that github-action-benchmark reads as `customSmallerIsBetter`.
pub fn benchmark_action_json(measured: &[Measured]) -> String {
    let entries = measured.iter().map(|of| {
        let mut entry = json!({
            "name": format!("{}: {}", of.benchmark, of.metric),
            "unit": of.unit,
            "value": of.head,
            "extra": of.text,
        });
        if let Some(deviation) = of.deviation {
            entry["range"] = format!("± {deviation:.0}").into();
        }
        entry
    });
    format!("{:#}\n", Value::from(entries.collect::<Vec<_>>()))
}

/// The object that Bencher reads, its metric format: measures by benchmark.
pub fn bencher_json(measured: &[Measured]) -> String {
    let mut benchmarks: Map<String, Value> = Map::new();
    for of in measured {
        let mut value = json!({"value": of.head});
        if let Some(deviation) = of.deviation {
            value["lower_value"] = (of.head - deviation).max(0.0).into();
            value["upper_value"] = (of.head + deviation).into();
        }
        let measures = benchmarks.entry(of.benchmark.clone()).or_insert_with(|| json!({}));
        measures[&of.metric] = value;
    }
    format!("{:#}\n", Value::Object(benchmarks))
}

/// A text in XML; characters that XML does not have are escaped as those of other outputs are.
fn xml(text: &str) -> String {
    let text = printable(text);
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn measured() -> Vec<Measured> {
        let of = |metric: &str, unit, values: (f64, f64), outcome, text: &str| Measured {
            benchmark: "a <\"b\">\u{1b}".to_owned(),
            metric: metric.to_owned(),
            unit,
            base: values.0,
            head: values.1,
            deviation: None,
            outcome,
            text: text.to_owned(),
            is_beyond_limit: false,
        };
        let mut all = vec![
            of("instructions", "count", (100.0, 104.0), Outcome::More, "+4 % instructions"),
            of("cpu-time", "ns", (2000.0, 2500.0), Outcome::Undecided, "undecided"),
            of("memory", "bytes", (10.0, 10.0), Outcome::Same, "same"),
        ];
        all[0].is_beyond_limit = true;
        all[1].deviation = Some(100.0);
        all
    }

    #[test]
    fn junit_has_failures_and_skipped_cases() {
        expect![[r#"
            <?xml version="1.0" encoding="UTF-8"?>
            <testsuites>
              <testsuite name="treering" tests="3" failures="1" errors="0" skipped="1">
                <testcase classname="a &lt;&quot;b&quot;&gt;\u{1b}" name="instructions"><failure message="+4 % instructions"/></testcase>
                <testcase classname="a &lt;&quot;b&quot;&gt;\u{1b}" name="cpu-time"><skipped message="undecided"/></testcase>
                <testcase classname="a &lt;&quot;b&quot;&gt;\u{1b}" name="memory"><system-out>same</system-out></testcase>
              </testsuite>
            </testsuites>
        "#]]
        .assert_eq(&junit_xml(&measured()));
    }

    #[test]
    fn other_programs_get_the_heads_numbers() {
        let list: Value =
            serde_json::from_str(&benchmark_action_json(&measured()[1..2])).expect("it is JSON");
        assert_eq!(
            list,
            json!([{"name": "a <\"b\">\u{1b}: cpu-time", "unit": "ns", "value": 2500.0, "extra": "undecided",
                    "range": "± 100"}])
        );
        let benchmarks: Value = serde_json::from_str(&bencher_json(&measured())).expect("it is JSON");
        let of = &benchmarks["a <\"b\">\u{1b}"];
        assert_eq!(of["instructions"], json!({"value": 104.0}));
        assert_eq!(of["cpu-time"], json!({"value": 2500.0, "lower_value": 2400.0, "upper_value": 2600.0}));
    }
}
