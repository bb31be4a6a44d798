//! The tables of some runs.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::column::{Column, Table, Texts};
use crate::identity::{Key, Named};
use crate::rows::{Rows, Run, Stack, StackCost, Unfit};

/// The rows of some runs of one day, gathered to be written.
#[derive(Debug, Default)]
pub struct Batch {
    runs: Vec<(Run, Rows)>,
    functions: HashMap<Key, Named>,
    stacks: HashMap<Key, Stack>,
}

impl Batch {
    /// Adds a run.
    ///
    /// # Errors
    /// One of its keys means something else in another run. Nothing is added then.
    pub fn add(&mut self, run: Run, mut rows: Rows) -> Result<(), Unfit> {
        let same_function =
            |(key, named): (&Key, &Named)| self.functions.get(key).is_none_or(|known| known == named);
        let same_stack =
            |(key, stack): (&Key, &Stack)| self.stacks.get(key).is_none_or(|known| known == stack);
        if !rows.functions.iter().all(same_function) || !rows.stacks.iter().all(same_stack) {
            return Err(Unfit::SameKey);
        }
        self.functions.extend(rows.functions.drain());
        self.stacks.extend(rows.stacks.drain());
        self.runs.push((run, rows));
        Ok(())
    }

    /// The names of the runs.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.runs.iter().map(|(run, _)| run.name.as_str())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// All tables. Equal runs make equal ones, in whatever order they were added.
    pub(crate) fn tables(mut self) -> Vec<Table> {
        self.runs
            .sort_by(|(one, _), (other, _)| (&one.project, &one.name).cmp(&(&other.project, &other.name)));
        vec![
            self.run_table(),
            function_table(&self.functions),
            stack_table(&self.stacks),
            self.cost_table(),
            self.function_cost_table(),
            self.rollup_table(),
        ]
    }

    fn run_table(&self) -> Table {
        let (mut names, mut collectors, mut recursions) =
            (Texts::default(), Texts::default(), Texts::default());
        let mut place = Place::default();
        let (mut host, mut rank, mut start) = (Texts::default(), Vec::new(), Vec::new());
        let (mut metrics, mut units, mut main) = (Texts::default(), Texts::default(), Vec::new());
        let (mut costs, mut samples) = (Vec::new(), Vec::new());
        let mut lost: [Vec<i64>; 4] = Default::default();
        let (mut unknown, mut unfinished) = (Vec::new(), Vec::new());
        for (run, rows) in &self.runs {
            for of in &rows.runs {
                place.push(run);
                names.push(&run.name);
                host.push(&run.host);
                rank.push(run.rank.map(i64::from));
                start.push(i64::try_from(run.start_unix_ns).unwrap_or(i64::MAX));
                collectors.push(&rows.collector);
                recursions.push(rows.recursion);
                metrics.push(&of.metric);
                units.push(of.unit);
                main.push(of.is_main);
                costs.push(of.cost);
                samples.push(of.samples);
                let all = [
                    rows.lost.samples,
                    rows.lost.truncated_stacks,
                    rows.lost.unresolved_samples,
                    rows.lost.dropped_events,
                ];
                lost.iter_mut().zip(all).for_each(|(column, value)| column.push(value));
                unknown.push(rows.lost.is_unknown);
                unfinished.push(rows.lost.is_unfinished);
            }
        }
        let [lost_samples, truncated, unresolved, dropped] = lost;
        let mut columns = place.columns();
        columns.extend([
            ("run", names.column()),
            ("host", host.column()),
            ("rank", Column::MaybeWhole(rank)),
            ("start_unix_ns", Column::Whole(start)),
            ("collector", collectors.column()),
            ("recursion", recursions.column()),
            ("metric", metrics.column()),
            ("unit", units.column()),
            ("main", Column::Truth(main)),
            ("run_cost", Column::Whole(costs)),
            ("samples", Column::MaybeWhole(samples)),
            ("lost_samples", Column::Whole(lost_samples)),
            ("truncated_stacks", Column::Whole(truncated)),
            ("unresolved_samples", Column::Whole(unresolved)),
            ("dropped_events", Column::Whole(dropped)),
            ("losses_unknown", Column::Truth(unknown)),
            ("unfinished", Column::Truth(unfinished)),
        ]);
        Table { name: "run", columns }
    }

    /// Each row of costs with its run, in the order of the file: by project, metric, function and chain. Equal keys are
    /// beside each other then, and a function's rows in few pages.
    fn costs(&self) -> Vec<(&Run, &Rows, &StackCost)> {
        let rows =
            self.runs.iter().flat_map(|(run, rows)| rows.costs.iter().map(move |cost| (run, rows, cost)));
        let mut all: Vec<_> = rows.collect();
        // The runs are sorted already, and equal rows keep their order.
        all.sort_by(|(run, rows, cost), (other, others, of_other)| {
            let (metric, other_metric) =
                (&rows.runs[cost.metric].metric, &others.runs[of_other.metric].metric);
            let of = (&run.project, metric, cost.function, cost.stack);
            of.cmp(&(&other.project, other_metric, of_other.function, of_other.stack))
        });
        all
    }

    fn cost_table(&self) -> Table {
        let (mut place, mut metrics) = (Place::default(), Texts::default());
        let (mut stacks, mut functions, mut own) = (Vec::new(), Vec::new(), Vec::new());
        let (mut samples, mut squares, mut calls) = (Vec::new(), Vec::new(), Vec::new());
        for (run, rows, cost) in self.costs() {
            place.push(run);
            metrics.push(&rows.runs[cost.metric].metric);
            stacks.push(cost.stack);
            functions.push(cost.function);
            own.push(cost.self_cost);
            samples.push(cost.samples);
            squares.push(cost.squares);
            calls.push(cost.calls);
        }
        let mut columns = place.columns();
        columns.extend([
            ("metric", metrics.column()),
            ("stack_id", Column::Key(stacks)),
            ("fn_id", Column::Key(functions)),
            ("self", Column::Whole(own)),
            ("samples", Column::MaybeWhole(samples)),
            ("squares", Column::MaybeReal(squares)),
            ("calls", Column::MaybeWhole(calls)),
        ]);
        Table { name: "cost", columns }
    }

    fn function_cost_table(&self) -> Table {
        let rows = self
            .runs
            .iter()
            .flat_map(|(run, rows)| rows.function_costs.iter().map(move |cost| (run, rows, cost)));
        let mut all: Vec<_> = rows.collect();
        all.sort_by(|(run, rows, cost), (other, others, of_other)| {
            let (metric, other_metric) =
                (&rows.runs[cost.metric].metric, &others.runs[of_other.metric].metric);
            (&run.project, metric, cost.function).cmp(&(&other.project, other_metric, of_other.function))
        });
        let (mut place, mut metrics) = (Place::default(), Texts::default());
        let (mut functions, mut own, mut totals, mut calls) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (run, rows, cost) in all {
            place.push(run);
            metrics.push(&rows.runs[cost.metric].metric);
            functions.push(cost.function);
            own.push(cost.self_cost);
            totals.push(cost.total);
            calls.push(cost.calls);
        }
        let mut columns = place.columns();
        columns.extend([
            ("metric", metrics.column()),
            ("fn_id", Column::Key(functions)),
            ("self", Column::Whole(own)),
            ("total", Column::MaybeWhole(totals)),
            ("calls", Column::MaybeWhole(calls)),
        ]);
        Table { name: "fcost", columns }
    }

    /// The sums over all runs of a day. Rows of several files add up.
    fn rollup_table(&self) -> Table {
        let mut texts: [Texts; 4] = Default::default();
        let (mut stacks, mut functions) = (Vec::new(), Vec::new());
        let mut sums: [Vec<i64>; 4] = Default::default();
        let mut squares = Vec::new();
        let mut rows = rolled_up(&self.costs());
        rows.sort_unstable_by(|one, other| one.key().cmp(&other.key()));
        for row in rows {
            let of = [&row.run.day, &row.run.project, &row.run.version, row.metric];
            texts.iter_mut().zip(of).for_each(|(column, text)| column.push(text));
            stacks.push(row.stack);
            functions.push(row.function);
            let of = [row.runs, row.sum, row.least, row.greatest];
            sums.iter_mut().zip(of).for_each(|(column, value)| column.push(value));
            squares.push(Some(row.squares));
        }
        let [day, project, version, metric] = texts.map(Texts::column);
        let [runs, sum, least, greatest] = sums.map(Column::Whole);
        let columns = vec![
            ("day", day),
            ("project", project),
            ("version", version),
            ("metric", metric),
            ("stack_id", Column::Key(stacks)),
            ("fn_id", Column::Key(functions)),
            ("runs", runs),
            ("self", sum),
            ("least", least),
            ("greatest", greatest),
            ("squares", Column::MaybeReal(squares)),
        ];
        Table { name: "rollup", columns }
    }
}

/// The columns that say which run a row is of.
#[derive(Default)]
struct Place {
    run: Vec<Key>,
    project: Texts,
    version: Texts,
    day: Texts,
}

impl Place {
    fn push(&mut self, run: &Run) {
        self.run.push(Key::of(&[run.name.as_bytes()]));
        self.project.push(&run.project);
        self.version.push(&run.version);
        self.day.push(&run.day);
    }

    fn columns(self) -> Vec<(&'static str, Column)> {
        vec![
            ("run_id", Column::Key(self.run)),
            ("project", self.project.column()),
            ("version", self.version.column()),
            ("day", self.day.column()),
        ]
    }
}

/// The costs of a chain in all runs of a version on one day.
struct RolledUp<'a> {
    run: &'a Run,
    metric: &'a str,
    stack: Key,
    function: Key,
    runs: i64,
    sum: i64,
    least: i64,
    greatest: i64,
    squares: f64,
}

impl RolledUp<'_> {
    fn key(&self) -> (&str, &str, Key, Key, &str, i64) {
        (&self.run.project, self.metric, self.function, self.stack, &self.run.version, self.sum)
    }
}

/// Adds up rows. A sum that no column holds is begun anew in a row of its own.
fn rolled_up<'a>(costs: &[(&'a Run, &'a Rows, &'a StackCost)]) -> Vec<RolledUp<'a>> {
    let mut done = Vec::new();
    let mut open: HashMap<(&str, &str, &str, &str, Key), RolledUp<'a>> = HashMap::new();
    for &(run, rows, cost) in costs {
        let metric = rows.runs[cost.metric].metric.as_str();
        let value = cost.self_cost;
        let first = RolledUp {
            run,
            metric,
            stack: cost.stack,
            function: cost.function,
            runs: 1,
            sum: value,
            least: value,
            greatest: value,
            squares: value as f64 * value as f64,
        };
        match open.entry((&run.day, &run.project, &run.version, metric, cost.stack)) {
            Entry::Vacant(entry) => drop(entry.insert(first)),
            Entry::Occupied(mut entry) => {
                let row = entry.get_mut();
                match row.sum.checked_add(value) {
                    None => done.push(entry.insert(first)),
                    Some(sum) => {
                        row.sum = sum;
                        row.runs += 1;
                        row.least = row.least.min(value);
                        row.greatest = row.greatest.max(value);
                        row.squares += first.squares;
                    }
                }
            }
        }
    }
    done.extend(open.into_values());
    done
}

fn function_table(functions: &HashMap<Key, Named>) -> Table {
    let mut all: Vec<_> = functions.iter().collect();
    all.sort_unstable_by_key(|(key, _)| **key);
    let (mut names, mut modules, mut kinds) = (Texts::default(), Texts::default(), Texts::default());
    for (_, named) in &all {
        names.push(&named.name);
        modules.push(&named.module);
        kinds.push(named.kind);
    }
    let columns = vec![
        ("fn_id", Column::Key(all.iter().map(|(key, _)| **key).collect())),
        ("name", names.column()),
        ("module", modules.column()),
        ("kind", kinds.column()),
    ];
    Table { name: "fn", columns }
}

fn stack_table(stacks: &HashMap<Key, Stack>) -> Table {
    let mut all: Vec<_> = stacks.iter().collect();
    all.sort_unstable_by_key(|(key, _)| **key);
    let columns = vec![
        ("stack_id", Column::Key(all.iter().map(|(key, _)| **key).collect())),
        ("parent_id", Column::MaybeKey(all.iter().map(|(_, stack)| stack.parent).collect())),
        ("fn_id", Column::Key(all.iter().map(|(_, stack)| stack.function).collect())),
        ("depth", Column::Whole(all.iter().map(|(_, stack)| stack.depth).collect())),
    ];
    Table { name: "stack", columns }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORK: &str = "0 enter main\n1   enter work\n4   leave work\n5 leave main";

    fn run(name: &str) -> Run {
        Run { name: name.to_owned(), project: "p".to_owned(), day: "2026-11-27".to_owned(), ..Run::default() }
    }

    fn batch(names: &[&str]) -> Batch {
        let mut batch = Batch::default();
        for name in names {
            let rows = Rows::of(&treering_testing::trace(WORK)).unwrap();
            batch.add(run(name), rows).unwrap();
        }
        batch
    }

    fn whole(table: &Table, name: &str) -> Vec<i64> {
        match &table.columns.iter().find(|(known, _)| *known == name).unwrap().1 {
            Column::Whole(values) => values.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn tables_do_not_depend_on_the_order_of_runs() {
        assert_eq!(batch(&["a", "b"]).tables(), batch(&["b", "a"]).tables());
        let names: Vec<&str> = batch(&["a"]).tables().iter().map(|table| table.name).collect();
        assert_eq!(names, crate::sql::TABLES);
    }

    #[test]
    fn the_rollup_adds_up_the_costs_of_a_day() {
        let tables = batch(&["a", "b", "c"]).tables();
        let (cost, rollup) = (&tables[3], &tables[5]);
        assert_eq!(whole(cost, "self").iter().sum::<i64>(), 15);
        assert_eq!(whole(rollup, "self").iter().sum::<i64>(), 15);
        assert!(whole(rollup, "runs").iter().all(|&runs| runs == 3));
        assert_eq!(whole(rollup, "least").iter().sum::<i64>(), 5);
    }

    #[test]
    fn sums_that_no_column_holds_are_begun_anew() {
        let rows = Rows::of(&treering_testing::trace(WORK)).unwrap();
        let (run, mut cost) = (run("a"), rows.costs[0]);
        cost.self_cost = i64::MAX - 1;
        let all = [(&run, &rows, &cost); 3];
        let sums: Vec<i64> = rolled_up(&all).iter().map(|row| row.sum).collect();
        assert_eq!(sums, [i64::MAX - 1; 3]);
    }

    #[test]
    fn a_key_of_another_meaning_is_refused() {
        let mut batch = batch(&["a"]);
        let mut rows = Rows::of(&treering_testing::trace(WORK)).unwrap();
        let key = *rows.functions.keys().next().unwrap();
        rows.functions.get_mut(&key).unwrap().name.push('x');
        assert_eq!(batch.add(run("b"), rows), Err(Unfit::SameKey));
    }
}
