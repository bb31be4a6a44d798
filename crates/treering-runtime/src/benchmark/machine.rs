//! The machine that a benchmark ran on.

/// The machine as the summary describes it. Unknown parts are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Its name in the network.
    pub host: String,
    /// The model of its first processor.
    pub cpu: String,
    /// Its memory with the unit, such as `16311132 kB`.
    pub memory: String,
}

impl Machine {
    /// The machine that this program runs on, as `/proc` describes it.
    ///
    /// Parts that cannot be read stay empty; nothing fails.
    pub fn here() -> Self {
        let read = |path: &str| {
            let bytes = std::fs::read(path).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        Self {
            host: read("/proc/sys/kernel/hostname").trim().to_owned(),
            cpu: value(&read("/proc/cpuinfo"), &["model name", "cpu model", "uarch"]),
            memory: value(&read("/proc/meminfo"), &["MemTotal"]),
        }
    }
}

/// The text behind the colon of the first line that has one of the keys.
fn value(text: &str, keys: &[&str]) -> String {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let mut found = lines.filter(|(key, _)| keys.contains(&key.trim()));
    found.next().map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_with_the_key_counts() {
        let text = "processor\t: 0\nmodel name\t: Fast: 3 GHz\nmodel name\t: Slow\n";
        assert_eq!(value(text, &["model name"]), "Fast: 3 GHz");
        assert_eq!(value("model names: x\nno colon\n", &["model name"]), "");
    }
}
