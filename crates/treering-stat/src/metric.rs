//! Top-down metrics: which part of a processor's slots was used, and what kept the others empty.
//!
//! A. Yasin, "A Top-Down method for performance analysis and counters architecture", ISPASS 2014. The formulas and the events
//! that they need are those that Intel publishes for each of its processors, in a table that `cargo xtask metrics` makes.

use crate::expression::Expression;

/// The table: a line for each model, event and metric, with cells between tabs.
const TABLE: &str = include_str!("metric/intel.tsv");

/// A processor, as `/proc/cpuinfo` tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processor {
    vendor: String,
    family: u32,
    model: u32,
    stepping: u32,
}

/// A metric of a processor, in percent of its slots.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Its name.
    pub name: String,
    /// 1, or 2 for a part of a metric of level 1.
    pub level: u8,
    /// The metric that it is a part of.
    pub parent: Option<String>,
    expression: Expression,
    /// The names in the expression, each with an event as `-e` takes it.
    events: Vec<(String, String)>,
    /// Whether a core runs two threads at once.
    has_threads: bool,
}

impl Processor {
    /// The processor of a text like `/proc/cpuinfo`.
    pub fn parse(cpuinfo: &str) -> Option<Self> {
        let value = |key: &str| {
            let mut lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
            lines.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim())
        };
        let number = |key: &str| value(key)?.parse().ok();
        Some(Self {
            vendor: value("vendor_id")?.to_owned(),
            family: number("cpu family")?,
            model: number("model")?,
            stepping: number("stepping")?,
        })
    }

    /// The metrics of this processor up to a level, each before its parts; none if the table has none for it.
    /// `has_threads`: whether a core runs two threads at once.
    pub fn metrics(&self, most_level: u8, has_threads: bool) -> Vec<Metric> {
        let rows = || TABLE.lines().map(|line| line.split('\t').collect::<Vec<_>>());
        let mut own = rows().filter(|row| row[0] == "model" && self.is(row[1]));
        let Some(folder) = own.next().map(|row| row[2]) else { return Vec::new() };
        let events: Vec<(&str, &str)> =
            rows().filter(|row| row[0] == "event" && row[1] == folder).map(|row| (row[2], row[3])).collect();
        let metric = |row: &[&str]| -> Option<Metric> {
            let event = |cell: &&str| {
                let (alias, name) = cell.split_once('=')?;
                let (_, encoded) = events.iter().find(|(known, _)| *known == name)?;
                Some((alias.to_owned(), (*encoded).to_owned()))
            };
            Some(Metric {
                name: row[2].to_owned(),
                level: row[3].parse().ok()?,
                parent: Some(row[4].to_owned()).filter(|parent| !parent.is_empty()),
                expression: Expression::parse(row[5]).ok()?,
                events: row[6..].iter().map(event).collect::<Option<_>>()?,
                has_threads,
            })
        };
        let of_folder = rows().filter(|row| row[0] == "metric" && row[1] == folder);
        of_folder.filter_map(|row| metric(&row)).filter(|metric| metric.level <= most_level).collect()
    }

    /// Whether a model of the table is this one: `6-55-[01234]`, in hexadecimal, with steppings or without.
    fn is(&self, model: &str) -> bool {
        let mut parts = model.split('-');
        let hexadecimal = |part: Option<&str>| part.and_then(|part| u32::from_str_radix(part, 16).ok());
        let is_model = self.vendor == "GenuineIntel"
            && hexadecimal(parts.next()) == Some(self.family)
            && hexadecimal(parts.next()) == Some(self.model);
        let stepping = format!("{:x}", self.stepping);
        is_model
            && parts.next().is_none_or(|steppings| steppings.trim_matches(['[', ']']).contains(&stepping))
    }
}

impl std::fmt::Display for Processor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { vendor, family, model, stepping } = self;
        write!(f, "{vendor} family {family} model {model} stepping {stepping}")
    }
}

impl Metric {
    /// The events that it needs, as `-e` takes them, to be counted as one group. The counter of slots comes first: the
    /// kernel counts its parts in a group that it leads, and nowhere else.
    pub fn events(&self) -> Vec<&str> {
        let needed = self.expression.names(&|name| self.constant(name));
        let mut events: Vec<&str> = Vec::new();
        for (_, event) in self.events.iter().filter(|(alias, _)| needed.contains(alias)) {
            if !events.contains(&event.as_str()) {
                events.push(event);
            }
        }
        const SLOTS: &str = "cpu/slots/";
        if events.iter().any(|event| event.starts_with("cpu/topdown-")) {
            events.retain(|event| *event != SLOTS);
            events.insert(0, SLOTS);
        }
        events
    }

    /// Its value in percent for the counts of its events; nothing if one was not counted, or nothing ran.
    pub fn value(&self, count: &dyn Fn(&str) -> Option<f64>) -> Option<f64> {
        self.expression.evaluate(&|name| {
            self.constant(name).or_else(|| {
                let (_, event) = self.events.iter().find(|(alias, _)| alias == name)?;
                count(event)
            })
        })
    }

    fn constant(&self, name: &str) -> Option<f64> {
        match name {
            "smt_on" => Some(f64::from(u8::from(self.has_threads))),
            "threads" => Some(if self.has_threads { 2.0 } else { 1.0 }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn processor(model: u32, stepping: u32) -> Processor {
        let text = format!(
            "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: {model}\nmodel name\t: Some\nstepping\t: {stepping}\n"
        );
        Processor::parse(&text).expect("a processor")
    }

    /// The processors that these numbers stand for are those of the kernel's `intel-family.h`.
    #[test]
    fn a_processor_is_found_by_model_and_stepping() {
        let folder = |model, stepping| {
            let processor = processor(model, stepping);
            let rows = TABLE.lines().map(|line| line.split('\t').collect::<Vec<_>>());
            rows.filter(|row| row[0] == "model").find(|row| processor.is(row[1])).map(|row| row[2])
        };
        assert_eq!(folder(0x55, 4), Some("SKX"));
        assert_eq!(folder(0x55, 7), Some("CLX"));
        assert_eq!(folder(0x6a, 6), Some("ICX"));
        assert_eq!(folder(0x8f, 8), Some("SPR"));
        assert_eq!(folder(0x3c, 3), Some("HSW"));
        assert_eq!(folder(0xff, 0), None);
        assert_eq!(
            Processor { vendor: "AuthenticAMD".to_owned(), ..processor(0x55, 4) }.metrics(2, true),
            []
        );
    }

    #[test]
    fn every_line_of_the_table_is_a_metric_that_can_be_worked_out() {
        let models = TABLE.lines().filter_map(|line| line.strip_prefix("model\t6-"));
        for model in models {
            let (model, steppings) = model.split_once(['-', '\t']).expect("a model");
            let stepping = steppings.strip_prefix('[').and_then(|of| u32::from_str_radix(&of[..1], 16).ok());
            let processor =
                processor(u32::from_str_radix(model, 16).expect("a number"), stepping.unwrap_or(0));
            for has_threads in [false, true] {
                let metrics = processor.metrics(2, has_threads);
                assert!(metrics.len() >= 10, "{processor}: {}", metrics.len());
                for metric in metrics {
                    assert!(!metric.events().is_empty(), "{processor} {}", metric.name);
                    assert!(metric.value(&|_| Some(1000.0)).is_some(), "{processor} {}", metric.name);
                }
            }
        }
    }

    /// The events of a Skylake server, as `toplev` of pmu-tools asks `perf stat` for them (its issue 262).
    #[test]
    fn events_are_encoded_as_another_tool_encodes_them() {
        let events: Vec<String> = processor(0x55, 4)
            .metrics(2, false)
            .iter()
            .flat_map(|metric| metric.events().into_iter().map(str::to_owned).collect::<Vec<_>>())
            .collect();
        for theirs in [
            "cpu/event=0x9c,umask=0x1/",
            "cpu/event=0xc2,umask=0x2/",
            "cpu/event=0xd,umask=0x1/",
            "cpu/event=0xe,umask=0x1/",
            "cpu/event=0xa6,umask=0x40/",
            "cpu/event=0xa3,umask=0x14,cmask=0x14/",
            "cpu/event=0x9c,umask=0x1,cmask=0x4/",
        ] {
            assert!(events.iter().any(|event| event == theirs), "{theirs}: {events:?}");
        }
    }

    /// Four slots a cycle: the formulas of likwid's group TMA for the same counters.
    #[test]
    fn level_1_of_skylake_is_that_of_another_tool() {
        let (clock, undelivered, issued, retired, recovery) = (1e9, 0.6e9, 2.2e9, 2.0e9, 0.05e9);
        let counts = |event: &str| match event {
            "cpu/event=0x3c/" => Some(clock),
            "cpu/event=0x9c,umask=0x1/" => Some(undelivered),
            "cpu/event=0xe,umask=0x1/" => Some(issued),
            "cpu/event=0xc2,umask=0x2/" => Some(retired),
            "cpu/event=0xd,umask=0x1/" => Some(recovery),
            _ => None,
        };
        let slots = 4.0 * clock;
        let expected = [
            ("Frontend_Bound", undelivered / slots),
            ("Bad_Speculation", (issued - retired + 4.0 * recovery) / slots),
            ("Backend_Bound", 1.0 - (undelivered + issued + 4.0 * recovery) / slots),
            ("Retiring", retired / slots),
        ];
        let metrics = processor(0x55, 4).metrics(1, false);
        assert_eq!(metrics.len(), 4);
        for (name, share) in expected {
            let metric = metrics.iter().find(|metric| metric.name == name).expect(name);
            let value = metric.value(&counts).expect("all is counted");
            assert!((value - 100.0 * share).abs() < 1e-9, "{name}: {value}");
        }
    }

    #[test]
    fn parts_of_slots_are_led_by_their_counter() {
        for metric in processor(0x6a, 6).metrics(1, true) {
            assert_eq!(metric.events()[0], "cpu/slots/", "{}", metric.name);
        }
    }
}
