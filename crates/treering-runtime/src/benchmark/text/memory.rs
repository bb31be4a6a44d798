//! The memory plot as a table.

use crate::benchmark::Run;
use crate::benchmark::escape::{cut, line};
use crate::benchmark::table::Table;
use crate::benchmark::unit::ms;

/// A long name must leave room for the description.
const TASK_COLUMNS: usize = 20;

pub(crate) fn section(run: &Run, narrow: bool) -> String {
    let mut table = Table::new(narrow, &["time", "virtual", "resident", "task: description"]);
    for point in run.points {
        let task = line(&run.task_name(point.task));
        let task = if narrow { cut(&task, TASK_COLUMNS) } else { task };
        table.row(vec![
            ms(point.time_ns),
            point.virtual_bytes.to_string(),
            point.resident_bytes.to_string(),
            format!("{task}: {}", line(point.description)),
        ]);
    }
    format!("[Memplot:]\n\nTime since the start in ms, memory in bytes.\n\n{}\n", table.text())
}
