//! Reads what `cargo test` prints: how many tests passed, failed, and said they skipped something.

/// How many tests passed, failed and were skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// Tests that passed.
    pub(crate) passed: u64,
    /// Tests that failed, and steps before them that failed.
    pub(crate) failed: u64,
    /// Tests that were left out, and tests that said that they skipped a part.
    pub(crate) skipped: u64,
}

/// The start of the line with which each program of tests ends.
pub(crate) const RESULT: &str = "test result: ";

/// Reads the output line by line. Lines that passing tests printed are dropped, except those that
/// say what was skipped.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    count: Count,
    in_successes: bool,
    skipped: Vec<String>,
}

impl Reader {
    /// Reads a line; returns whether a person wants to see it.
    pub(crate) fn read(&mut self, line: &str) -> bool {
        if let Some(result) = line.strip_prefix(RESULT) {
            self.in_successes = false;
            self.add_result(result);
            return true;
        }
        match line {
            "successes:" => self.in_successes = true,
            "failures:" => self.in_successes = false,
            _ => {}
        }
        let skip = line.trim_start().starts_with("skipped: ");
        if skip {
            self.skipped.push(line.trim().to_owned());
        }
        skip || !(self.in_successes || line.ends_with(" ... ok") || line.is_empty())
    }

    fn add_result(&mut self, result: &str) {
        let number = |word: &str| {
            let field = result.split([';', '.']).map(str::trim).find(|field| field.ends_with(word));
            field.and_then(|field| field.split(' ').next()?.parse::<u64>().ok()).unwrap_or(0)
        };
        self.count.passed += number(" passed");
        self.count.failed += number(" failed");
        self.count.skipped += number(" ignored");
    }

    /// The numbers, and what tests said they skipped.
    pub(crate) fn finish(mut self) -> (Count, Vec<String>) {
        self.skipped.sort();
        self.skipped.dedup();
        self.count.skipped += self.skipped.len() as u64;
        (self.count, self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
running 4 tests
test a ... ok
test b ... FAILED
test c ... ignored, slow

successes:

---- a stdout ----
something a test printed
skipped: perf is not installed

successes:
    a

failures:

---- b stdout ----
thread 'b' panicked at src/b.rs:3:5

failures:
    b

test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    #[test]
    fn results_are_added_up() {
        let mut reader = Reader::default();
        let shown: Vec<&str> = OUTPUT.lines().filter(|line| reader.read(line)).collect();
        reader.read("test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
        let (count, skipped) = reader.finish();
        assert_eq!(count, Count { passed: 5, failed: 1, skipped: 2 });
        assert_eq!(skipped, ["skipped: perf is not installed"]);
        assert!(shown.contains(&"thread 'b' panicked at src/b.rs:3:5"));
        assert!(!shown.contains(&"something a test printed"));
    }
}
