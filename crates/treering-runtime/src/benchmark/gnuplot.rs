//! The memory plot as data for gnuplot: a line for each point, columns between spaces.

use super::escape::gnuplot;
use super::unit::ms;
use super::{Contents, Options, Run};

const HEADER: &str = "\
# Memory of the benchmark. Columns:
# 1 time since the start, ms
# 2 \"task that was running\"
# 3 virtual memory, bytes
# 4 resident memory, bytes
# 5 \"description\"
";

pub(crate) fn report(run: &Run, options: Options) -> String {
    if !options.contents.has(Contents::MEMPLOT) {
        return String::new();
    }
    let lines = run.points.iter().map(|point| {
        format!(
            "{} \"{}\" {} {} \"{}\"\n",
            ms(point.time_ns),
            gnuplot(&run.task_name(point.task)),
            point.virtual_bytes,
            point.resident_bytes,
            gnuplot(point.description),
        )
    });
    HEADER.to_owned() + &lines.collect::<String>()
}
