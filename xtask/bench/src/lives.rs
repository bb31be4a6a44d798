//! How often the truth lies in the printed interval, for threads and processes that live about as long
//! as the interval between samples.

use std::path::Path;
use std::process::Command;

use serde_json::json;
use treering_testing::programs::SHORT_LIVES;

use super::measure::succeed;
use super::table::Table;
use super::{Options, Part, recorded};

/// The parts of the program, and what is shown of them.
const PARTS: [&str; 3] = ["long_part", "first_part", "second_part"];

/// The share of one part in the recordings of one sort of lives.
#[derive(Clone, Copy, Debug, Default)]
struct Answers {
    truth: f64,
    share: f64,
    width: f64,
    hits: u32,
    runs: u32,
}

impl Answers {
    fn add(&mut self, truth: f64, share: f64, (low, high): (f64, f64)) {
        self.truth += truth;
        self.share += share;
        self.width += high - low;
        self.hits += u32::from((low..=high).contains(&truth));
        self.runs += 1;
    }

    /// `48.3 → 48.6, 40/40, ±5.5`
    fn text(&self) -> String {
        let mean = |sum: f64| 100.0 * sum / f64::from(self.runs.max(1));
        let half = mean(self.width) / 2.0;
        format!("{:.1} → {:.1}, {}/{}, ±{half:.1}", mean(self.truth), mean(self.share), self.hits, self.runs)
    }
}

/// Records threads, processes and programs of 0.1 to 10 intervals, with the kernel's mode and without.
pub(super) fn measure(options: &Options) -> Result<Part, String> {
    let program = SHORT_LIVES.build().map_err(|error| error.to_string())?;
    let runs = if options.quick { 2 } else { 20 };
    let header = ["lives", "intervals", "modes", PARTS[0], PARTS[1], PARTS[2]];
    let mut table = Table::new("Lives as short as an interval", &header);
    let mut data = Vec::new();
    for kind in ["thread", "process", "program"] {
        for life_us in [100, 300, 1000, 3000, 10_000] {
            for (modes, flags) in [("all", &[][..]), ("user", &["--user-only"])] {
                let mut answers = [Answers::default(); 3];
                for _ in 0..runs {
                    ask(options, &program, kind, life_us, flags, &mut answers)?;
                }
                let life = format!("{:.1}", f64::from(life_us) / 1000.0);
                let mut row = vec![kind.to_owned(), life, modes.to_owned()];
                row.extend(answers.iter().map(Answers::text));
                table.row(row);
                let part =
                    |(name, of): (&&str, &Answers)| json!({"part": name, "hits": of.hits, "runs": of.runs});
                let parts: Vec<_> = PARTS.iter().zip(&answers).map(part).collect();
                data.push(json!({"lives": kind, "life_us": life_us, "modes": modes, "parts": parts}));
            }
        }
    }
    table.note(
        "Truth → mean of what was reported, in percent; in how many runs the printed interval held the truth; \
         half of its mean width in points. A part that is not listed has the interval that the report states \
         for such. The first part is the first 30 % of each life, the long part is in the main thread.",
    );
    Ok(Part { table, data: json!(data) })
}

fn ask(
    options: &Options,
    program: &Path,
    kind: &str,
    life_us: u32,
    flags: &[&str],
    answers: &mut [Answers; 3],
) -> Result<(), String> {
    let file = options.directory.join("lives.trg");
    let count = (100_000 / life_us).max(10);
    let mut record = Command::new(&options.treering);
    record.args(["record", "-q", "-o"]).arg(&file).args(flags).arg("--").arg(program);
    let printed = succeed(record.arg(kind).args([count.to_string(), life_us.to_string()]))?;
    let printed = String::from_utf8_lossy(&printed).into_owned();
    let time = |part: &str| {
        let time = printed.lines().find_map(|line| line.strip_prefix(part)?.trim().parse::<f64>().ok());
        time.ok_or_else(|| format!("the program did not print its times: {printed}"))
    };
    let times = [time(PARTS[0])?, time(PARTS[1])?, time(PARTS[2])?];
    let flat = recorded::flat(options, &file)?;
    // The program knows its parts only; what they are of the run is known well enough, as nearly
    // all of it is in one of them or was not sampled.
    let known = PARTS.iter().chain(&["[not sampled]"]).map(|part| flat.total_share(part)).sum::<f64>();
    for ((part, time), answers) in PARTS.iter().zip(times).zip(answers) {
        let truth = time / times.iter().sum::<f64>() * known;
        answers.add(truth, flat.total_share(part), flat.interval_or_unlisted(part));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_tell_how_often_the_truth_was_held() {
        let mut answers = Answers::default();
        answers.add(0.5, 0.4, (0.3, 0.5));
        answers.add(0.5, 0.3, (0.2, 0.4));
        assert_eq!(answers.text(), "50.0 → 35.0, 1/2, ±10.0");
    }
}
