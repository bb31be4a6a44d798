//! The tables as views of an engine, and questions in SQL that all engines understand.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::store::Tables;

/// An engine that reads Parquet files and answers SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// DuckDB.
    DuckDb,
    /// Apache DataFusion, and Ballista, which distributes it.
    DataFusion,
    /// Apache Spark.
    Spark,
}

/// The names of all tables.
pub const TABLES: [&str; 6] = ["run", "fn", "stack", "cost", "fcost", "rollup"];

/// The columns of a table. Views list them: engines differ in what they make of files that have more or fewer.
fn columns(table: &str) -> &'static [&'static str] {
    match table {
        "run" => &[
            "run_id",
            "project",
            "version",
            "day",
            "run",
            "host",
            "rank",
            "start_unix_ns",
            "collector",
            "recursion",
            "metric",
            "unit",
            "main",
            "run_cost",
            "samples",
            "lost_samples",
            "truncated_stacks",
            "unresolved_samples",
            "dropped_events",
            "losses_unknown",
            "unfinished",
        ],
        "fn" => &["fn_id", "name", "module", "kind"],
        "stack" => &["stack_id", "parent_id", "fn_id", "depth"],
        "cost" => &[
            "run_id", "project", "version", "day", "metric", "stack_id", "fn_id", "self", "samples",
            "squares", "calls",
        ],
        "fcost" => &["run_id", "project", "version", "day", "metric", "fn_id", "self", "total", "calls"],
        _ => &[
            "day", "project", "version", "metric", "stack_id", "fn_id", "runs", "self", "least", "greatest",
            "squares",
        ],
    }
}

/// The columns that hold whole numbers of 64 bits.
const LARGE: [&str; 13] = [
    "run_cost",
    "self",
    "total",
    "least",
    "greatest",
    "samples",
    "calls",
    "lost_samples",
    "truncated_stacks",
    "unresolved_samples",
    "dropped_events",
    "runs",
    "start_unix_ns",
];

/// The start of the statement that reads a table: `SELECT` with its columns.
///
/// DataFusion adds and multiplies whole numbers of 64 bits without noticing that they overflow. As decimals they are
/// exact, or an error.
pub fn select(table: &str, engine: Engine) -> String {
    let column = |name: &&str| match engine {
        Engine::DataFusion if LARGE.contains(name) => format!("CAST({name} AS DECIMAL(20,0)) AS {name}"),
        _ => (*name).to_owned(),
    };
    let columns: Vec<String> = columns(table).iter().map(column).collect();
    // Functions and chains of callers are in the files of every day on which they occur.
    let distinct = if matches!(table, "fn" | "stack") { "DISTINCT " } else { "" };
    format!("SELECT {distinct}{}", columns.join(", "))
}

/// Statements that make a view of each table; nothing where there are no tables.
///
/// Functions and chains of callers are in the files of every day on which they occur, and once in their views.
pub fn views(tables: &Tables, engine: Engine) -> Option<String> {
    let mut text = String::new();
    for table in TABLES {
        let (files, select, plain) = (tables.files(table), select(table, engine), columns(table).join(", "));
        if files.is_empty() {
            return None;
        }
        _ = match engine {
            Engine::DuckDb => {
                let files: Vec<String> = files.iter().map(|file| quoted(&without_patterns(file))).collect();
                let files = files.join(", ");
                writeln!(
                    text,
                    "CREATE OR REPLACE TEMP VIEW {table} AS {select} FROM read_parquet([{files}]);"
                )
            }
            Engine::Spark => {
                let parts = files.iter().map(|file| {
                    let file = file.display().to_string().replace('`', "``");
                    format!("SELECT {plain} FROM parquet.`file://{file}`")
                });
                let parts = parts.collect::<Vec<_>>().join(" UNION ALL ");
                writeln!(text, "CREATE OR REPLACE TEMPORARY VIEW {table} AS {select} FROM ({parts});")
            }
            Engine::DataFusion => {
                let mut parts = Vec::new();
                for (at, file) in files.iter().enumerate() {
                    let file = quoted(&file.display().to_string());
                    _ = writeln!(
                        text,
                        "CREATE EXTERNAL TABLE {table}_{at} STORED AS PARQUET LOCATION {file};"
                    );
                    parts.push(format!("SELECT {plain} FROM {table}_{at}"));
                }
                let parts = parts.join(" UNION ALL ");
                writeln!(text, "CREATE VIEW {table} AS {select} FROM ({parts});")
            }
        };
    }
    Some(text)
}

/// A path in which DuckDB takes no letter for a pattern.
fn without_patterns(path: &Path) -> String {
    let mut text = String::new();
    for letter in path.display().to_string().chars() {
        match letter {
            '*' | '?' | '[' => _ = write!(text, "[{letter}]"),
            _ => text.push(letter),
        }
    }
    text
}

/// A text in SQL.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A question that is asked often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// Its name.
    pub name: &'static str,
    /// Its text, with parameters in braces.
    text: &'static str,
}

/// All of them.
///
/// DataFusion answers a part of a text again for each use of it, so texts use a part seldom, and have windows in the place
/// of joins of a part with its own sums. Where every function has a row for each host, numbers are grouped faster than texts
/// and keys; their windows are over groups, as Ballista 55 repeats rows without. Its messages hold plans of some 49 steps.
pub const QUESTIONS: [Question; 12] = [
    Question { name: "flat", text: include_str!("../queries/flat.sql") },
    Question { name: "stacks", text: include_str!("../queries/stacks.sql") },
    Question { name: "versions", text: include_str!("../queries/versions.sql") },
    Question { name: "outliers", text: include_str!("../queries/outliers.sql") },
    Question { name: "hosts", text: include_str!("../queries/hosts.sql") },
    Question { name: "percentiles", text: include_str!("../queries/percentiles.sql") },
    Question { name: "growth", text: include_str!("../queries/growth.sql") },
    Question { name: "changes", text: include_str!("../queries/changes.sql") },
    Question { name: "callers", text: include_str!("../queries/callers.sql") },
    Question { name: "new", text: include_str!("../queries/new.sql") },
    Question { name: "runs", text: include_str!("../queries/runs.sql") },
    Question { name: "imbalance", text: include_str!("../queries/imbalance.sql") },
];

/// The values of a question's parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    /// The project; all if there is none.
    pub project: Option<String>,
    /// The metric; the one that is the first of most profiles of the selection if there is none.
    pub metric: Option<String>,
    /// The first day; all days if there is none.
    pub since: Option<String>,
    /// The function.
    pub function: Option<String>,
    /// The version that is compared with.
    pub base: Option<String>,
    /// The version that is compared.
    pub head: Option<String>,
    /// The greatest number of rows.
    pub limit: u32,
}

impl Values {
    /// The metric that is the first of most profiles of the project. Another project's metric would select nothing.
    fn main_metric(&self) -> String {
        let of = |project: &String| format!(" AND m.project = {}", quoted(project));
        let project = self.project.as_ref().map_or_else(String::new, of);
        format!(
            "(SELECT m.metric FROM run m WHERE m.main{project} GROUP BY m.metric ORDER BY COUNT(*) DESC, m.metric LIMIT 1)"
        )
    }
}

impl Question {
    /// The question of that name.
    pub fn named(name: &str) -> Option<Self> {
        QUESTIONS.into_iter().find(|question| question.name == name)
    }

    /// The answer that it gives, in a sentence.
    pub fn about(&self) -> String {
        let lines = self.text.lines().take_while(|line| line.starts_with("--"));
        lines.map(|line| line.trim_start_matches("-- ")).collect::<Vec<_>>().join(" ")
    }

    /// Whether its answer depends on a parameter.
    pub fn takes(&self, parameter: &str) -> bool {
        self.text.contains(&format!("{{{parameter}}}"))
    }

    /// The parameters that must have a value.
    pub fn required(&self) -> Vec<&'static str> {
        let mut required: Vec<&str> =
            ["function", "base", "head"].into_iter().filter(|name| self.takes(name)).collect();
        required.extend((self.name == "new").then_some("since"));
        required
    }

    /// Its text in SQL.
    pub fn sql(&self, values: &Values) -> String {
        let text = |value: &Option<String>| quoted(value.as_deref().unwrap_or_default());
        let metric = values.metric.as_deref().map_or_else(|| values.main_metric(), quoted);
        let known = [
            ("{project}", text(&values.project)),
            ("{metric}", metric),
            ("{since}", text(&values.since)),
            ("{function}", text(&values.function)),
            ("{base}", text(&values.base)),
            ("{head}", text(&values.head)),
            ("{limit}", values.limit.to_string()),
        ];
        let mut sql = String::new();
        let mut rest = self.text;
        // In one pass: a value that looks like a parameter stays what it is.
        while let Some(at) = rest.find('{') {
            let (before, from) = rest.split_at(at);
            sql += before;
            let (value, length) = known
                .iter()
                .find(|(name, _)| from.starts_with(name))
                .map_or(("{", 1), |(name, value)| (value, name.len()));
            sql += value;
            rest = &from[length..];
        }
        sql + rest
    }
}

/// The files of all tables, for those who read them by other means.
pub fn files(tables: &Tables) -> Vec<(&'static str, Vec<PathBuf>)> {
    TABLES.into_iter().map(|table| (table, tables.files(table))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_values() {
        let values = Values { project: Some("a'; DROP {metric}".to_owned()), limit: 5, ..Values::default() };
        let sql = Question::named("flat").unwrap().sql(&values);
        assert!(sql.contains("c.project = 'a''; DROP {metric}'") && sql.ends_with("LIMIT 5;\n"), "{sql}");
        assert!(sql.contains("WHERE m.main AND m.project = 'a''; DROP {metric}' GROUP BY"), "{sql}");
        let of_all = Question::named("flat").unwrap().sql(&Values { limit: 5, ..Values::default() });
        assert!(of_all.contains("WHERE m.main GROUP BY"), "{of_all}");
    }

    #[test]
    fn questions_say_what_they_need() {
        let required = |name| Question::named(name).unwrap().required();
        assert_eq!(required("versions"), ["base", "head"]);
        assert_eq!((required("callers"), required("new")), (vec!["function"], vec!["since"]));
        for question in QUESTIONS {
            assert!(question.about().ends_with('.'), "{}", question.name);
            let sql = question.sql(&Values { limit: 1, ..Values::default() });
            assert!(!sql.contains('{'), "{sql}");
        }
    }

    #[test]
    fn the_page_of_questions_has_each_with_its_text() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/queries.md");
        let page = std::fs::read_to_string(page).unwrap();
        for Question { name, text } in QUESTIONS {
            assert!(page.contains(&format!("\n## {name}\n")), "{name}");
            assert!(page.contains(&format!("```sql\n{text}```")), "{name}: docs/queries.md has another text");
        }
    }

    #[test]
    fn paths_are_no_patterns() {
        assert_eq!(without_patterns(Path::new("/a[b]*'c")), "/a[[]b][*]'c");
        assert_eq!(quoted("a'c"), "'a''c'");
    }
}
