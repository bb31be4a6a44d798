//! The machine that a run was measured on.

use serde::{Deserialize, Serialize};

use crate::id::Id;

/// A machine, by facts that stay the same from one start to the next. A measured frequency is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// The model of its processors, in the kernel's words.
    pub model: String,
    /// How many processors it has.
    pub cores: u32,
    /// Its memory in GiB, rounded: the kernel keeps a part that differs by version.
    pub memory_gib: u64,
    /// Its name; not a part of the key, as a machine may get another.
    pub host: String,
    /// The kernel; not a part of the key.
    pub kernel: String,
}

impl Machine {
    /// This one.
    pub fn here() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        Self {
            host: read("/proc/sys/kernel/hostname").trim().to_owned(),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            ..Self::read(&read("/proc/cpuinfo"), &read("/proc/meminfo"))
        }
    }

    /// The machine that the kernel describes so.
    fn read(processors: &str, memory: &str) -> Self {
        const GIB: u64 = 1 << 20;
        let of = |name: &'static str| {
            let lines = processors.lines().filter_map(|line| line.split_once(':'));
            lines.filter(move |(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
        };
        let kib = memory.lines().find_map(|line| line.strip_prefix("MemTotal:"));
        let kib = kib.and_then(|text| text.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
        Self {
            model: of("model name").next().unwrap_or_default(),
            cores: of("processor").count() as u32,
            memory_gib: (kib.unwrap_or(0) + GIB / 2) / GIB,
            ..Self::default()
        }
    }

    /// A short name for it; equal for machines that are alike. Empty for one of which nothing is known.
    pub fn key(&self) -> String {
        const DIGITS: usize = 12;
        let Self { model, cores, memory_gib, .. } = self;
        let facts = format!("{model}\n{cores}\n{memory_gib}");
        if self.is_known() { Id::of(facts.as_bytes()).as_str()[..DIGITS].to_owned() } else { String::new() }
    }

    /// Whether anything is known of it but its name.
    pub fn is_known(&self) -> bool {
        !self.model.is_empty() || self.cores > 0
    }

    /// `2 × AMD EPYC, 24 GiB`.
    pub fn text(&self) -> String {
        let model = if self.model.is_empty() { "processors of unknown model" } else { &self.model };
        match (self.is_known(), self.memory_gib) {
            (false, _) => "unknown".to_owned(),
            (true, 0) => format!("{} × {model}", self.cores),
            (true, memory) => format!("{} × {model}, {memory} GiB", self.cores),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROCESSORS: &str = "processor\t: 0\nmodel name\t: AMD EPYC\ncpu MHz\t\t: 2596.1\n\nprocessor\t: 1\nmodel name\t: AMD EPYC\n";

    #[test]
    fn a_machine_keeps_its_key_when_its_frequency_and_free_memory_change() {
        let before = Machine::read(PROCESSORS, "MemTotal:       24619540 kB\nMemFree: 1 kB\n");
        let after = Machine::read(&PROCESSORS.replace("2596.1", "3100.7"), "MemTotal:       24600000 kB\n");
        assert_eq!(before.text(), "2 × AMD EPYC, 23 GiB");
        assert_eq!((before.key().len(), before.key()), (12, after.key()));
        let renamed = Machine { host: "other".to_owned(), kernel: "7".to_owned(), ..before.clone() };
        assert_eq!(renamed.key(), before.key());
        let larger = Machine { memory_gib: 64, ..before.clone() };
        assert_ne!(larger.key(), before.key());
        assert_eq!(
            (Machine::default().key(), Machine::default().text()),
            (String::new(), "unknown".to_owned())
        );
    }
}
