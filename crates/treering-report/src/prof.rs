//! The table of the Unix tool prof.

use treering_analysis::{CallGraph, FlatRow, SortKey, flat};
use treering_profile::{Profile, Unit};

use crate::function::Labels;
use crate::header::header_lines;
use crate::options::Options;
use crate::printable::printable_profile;
use crate::style::Style;

/// The table that prof printed of `mon.out`: share of the time, seconds, their running sum, calls, milliseconds of
/// own time for each call, and the name; largest first. Calls that were not counted are blank.
///
/// For costs in another unit than time, `Seconds` are numbers of that, and `msec/call` thousandths of it.
/// `profile` is the one that `graph` was made of.
pub fn prof_text(profile: &Profile, graph: &CallGraph, style: &Style, options: &Options) -> String {
    let profile = &*printable_profile(profile);
    let mut text = header_lines(profile, &graph.basis, style);
    if graph.basis.run.cost == 0 {
        return text;
    }
    let unit = profile.metrics[graph.basis.metric.index()].unit;
    let name = &profile.metrics[graph.basis.metric.index()].name;
    let labels = Labels::of(profile);
    let rows = flat(profile, graph, options.sort.unwrap_or(SortKey::SelfCost));
    let shown = rows.iter().filter(|row| graph.basis.share(row.cost.self_cost.cost) >= options.min_share);
    let limit = options.limit.unwrap_or(usize::MAX);
    let (seconds, cumulative, per_call) = match unit {
        Unit::Nanoseconds => ("Seconds".to_owned(), "Cumsecs".to_owned(), "msec/call".to_owned()),
        _ => (name.clone(), "Cumulative".to_owned(), "a call".to_owned()),
    };
    let heading =
        format!("{:>6} {seconds:>14} {cumulative:>14} {:>12} {per_call:>12}  Name", "%Time", "#Calls");
    text.push('\n');
    text += &style.bold(&heading);
    text.push('\n');
    for row in shown.take(limit) {
        let cells = cells(row, unit, graph);
        let name = labels.with_module(row.cost.function);
        text += &format!("{cells}  {}\n", style.fit_name(cells.chars().count() + 2, &name));
    }
    text
}

fn cells(row: &FlatRow<'_>, unit: Unit, graph: &CallGraph) -> String {
    let own = row.cost.self_cost.cost;
    let share = graph.basis.share(own);
    let number = |cost: u64| match unit {
        Unit::Nanoseconds => format!("{:.3}", cost as f64 / 1e9),
        _ => cost.to_string(),
    };
    let calls = row.cost.calls.map(|calls| calls.all).filter(|&calls| calls > 0);
    let costed = Some(row.cost.calls_of_self_cost()).filter(|&calls| calls > 0 && graph.has_averages());
    let each = costed.map(|calls| match unit {
        Unit::Nanoseconds => format!("{:.4}", own as f64 / 1e6 / calls as f64),
        _ => format!("{:.2}", own as f64 / calls as f64),
    });
    format!(
        "{:>6.1} {:>14} {:>14} {:>12} {:>12}",
        share * 100.0,
        number(own),
        number(row.running_sum),
        calls.map_or(String::new(), |calls| calls.to_string()),
        each.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use treering_analysis::{Basis, Presentation};

    use super::*;

    #[test]
    fn the_columns_are_those_of_prof() {
        let profile = treering_testing::trace(
            "
                     0 enter main
               1000000   enter work
               4000000   leave work
               5000000   enter work
               9000000   leave work
              10000000 leave main
            ",
        );
        let time = profile.find_metric("time").expect("traces have a time");
        let graph = CallGraph::of(&profile, &Basis::of(&profile, time), Presentation::Contexts);
        let text = prof_text(&profile, &graph, &Style::default(), &Options::default());
        let table = text.split_once("\n\n").map_or(&*text, |(_, table)| table);
        let expected = " %Time        Seconds        Cumsecs       #Calls    msec/call  Name\n  \
             70.0          0.007          0.007            2       3.5000  work\n  \
             30.0          0.003          0.010            1       3.0000  main\n";
        assert_eq!(table, expected);
    }
}
