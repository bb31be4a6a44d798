//! The mix of instructions, as a table and as JSON.

use serde_json::{Value, json};
use treering_profile::{FunctionId, Profile};
use treering_report::grouped;

use crate::mix::{Mix, Mixes, SIZES};
use crate::rate::significant;
use crate::text::HEAD;

/// The names of the columns of [`Exact::csv`].
pub(crate) const CSV_HEADING: &str = "function,module,instructions,blocks,branches,floats,loads,loaded_bytes,stores,stored_bytes,repeated,unread\n";

/// Exact counts of a run.
#[derive(Clone, Debug)]
pub struct Exact<'a> {
    /// The command.
    pub title: String,
    /// Its words.
    pub command: Vec<String>,
    /// How it ended, as `exit 0` or `SIGSEGV`.
    pub end: String,
    /// The counted run.
    pub profile: &'a Profile,
    /// The mixes.
    pub mixes: Mixes,
    /// The counts of a model of caches and branches, by its names.
    pub modelled: Vec<(String, u64)>,
    /// Facts that a reader must know, as sentences.
    pub notes: Vec<String>,
}

impl Exact<'_> {
    /// A table for the run and, if asked for, one of as many functions.
    pub fn text(&self, functions: Option<usize>) -> String {
        let run = &self.mixes.run;
        let mut text = format!("{HEAD}exact counts of {}\n\n", self.title);
        let mut row = |count: u64, name: &str, more: &str| {
            text += format!("{:>20}  {name:<24}  {more}", grouped(count)).trim_end();
            text.push('\n');
        };
        row(run.instructions, "instructions", "");
        let each = |part: u64| significant(part as f64 / run.instructions.max(1) as f64);
        row(run.blocks, "basic blocks", &format!("{} instructions each", mean(run.instructions, run.blocks)));
        row(run.branches(), "branches", &format!("{} per instruction", each(run.branches())));
        row(run.loads, "loads", &format!("{} per instruction", each(run.loads)));
        row(run.loaded_bytes, "bytes loaded", &format!("{} each", mean(run.loaded_bytes, run.loads)));
        row(run.stores, "stores", &format!("{} per instruction", each(run.stores)));
        row(run.stored_bytes, "bytes stored", &format!("{} each", mean(run.stored_bytes, run.stores)));
        for (name, count) in &self.modelled {
            row(*count, name, "by the model");
        }
        text += "\n        instructions  of the kind               share\n";
        let mut kinds: Vec<_> = run.kinds.iter().map(|(kind, &count)| (kind.as_str(), count)).collect();
        kinds.extend((run.unread > 0).then_some(("not known", run.unread)));
        kinds.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        for (kind, count) in kinds {
            text += &format!("{:>20}  {kind:<24} {:>6} %\n", grouped(count), share(count, run.instructions));
        }
        text += "\n   blocks of the run  of instructions           share\n";
        for (at, &count) in run.sizes.iter().enumerate().filter(|(_, count)| **count > 0) {
            text += &format!(
                "{:>20}  {:<24} {:>6} %\n",
                grouped(count),
                size_class(at),
                share(count, run.blocks)
            );
        }
        if let Some(most) = functions {
            text += &self.functions_text(most);
        }
        if !self.notes.is_empty() {
            text.push('\n');
        }
        self.notes.iter().for_each(|note| text += &format!("note: {note}\n"));
        text
    }

    fn functions_text(&self, most: usize) -> String {
        let mut text =
            "\n        instructions  share  branch  float  load B/i  store B/i  function\n".to_owned();
        for (function, mix) in self.mixes.functions.iter().take(most) {
            let part = |of: u64| format!("{:.3}", of as f64 / mix.instructions.max(1) as f64);
            text += &format!(
                "{:>20} {:>6} {:>7} {:>6} {:>9} {:>10}  {}\n",
                grouped(mix.instructions),
                share(mix.instructions, self.mixes.run.instructions),
                part(mix.branches()),
                part(mix.floats()),
                part(mix.loaded_bytes),
                part(mix.stored_bytes),
                self.name(*function),
            );
        }
        let left = self.mixes.functions.len().saturating_sub(most);
        if left > 0 {
            text += &format!("{:>20}  more functions: --json has all\n", grouped(left as u64));
        }
        text
    }

    /// Everything, as one document.
    pub fn json(&self) -> Value {
        let modelled: serde_json::Map<String, Value> =
            self.modelled.iter().map(|(name, count)| (name.clone(), json!(count))).collect();
        let functions = self.mixes.functions.iter().map(|(function, mix)| {
            let mut value = mix_json(mix);
            value["function"] = json!(self.name(*function));
            value["module"] = json!(self.module(*function));
            value
        });
        json!({
            "view": "stat exact",
            "command": self.command,
            "end": self.end,
            "run": mix_json(&self.mixes.run),
            "modelled": modelled,
            "functions": functions.collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }

    /// A line for the run and one for each function, with the names of the columns.
    pub fn csv(&self) -> String {
        let mut text = CSV_HEADING.to_owned();
        let mut row = |function: &str, module: &str, mix: &Mix| {
            let counts = [
                mix.instructions,
                mix.blocks,
                mix.branches(),
                mix.floats(),
                mix.loads,
                mix.loaded_bytes,
                mix.stores,
                mix.stored_bytes,
                mix.repeated,
                mix.unread,
            ];
            let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
            let names = [function, module].map(crate::csv::quoted).join(",");
            text += &format!("{names},{}\n", counts.join(","));
        };
        row("", "", &self.mixes.run);
        for (function, mix) in &self.mixes.functions {
            row(&self.name(*function), self.module(*function), mix);
        }
        text
    }

    fn name(&self, function: Option<FunctionId>) -> String {
        let Some(function) = function else { return "[unknown]".to_owned() };
        self.profile.strings[self.profile.functions[function].name].to_owned()
    }

    fn module(&self, function: Option<FunctionId>) -> &str {
        let module = function.and_then(|function| self.profile.functions[function].module);
        module.map_or("", |module| &self.profile.strings[self.profile.modules[module].path])
    }
}

fn mix_json(mix: &Mix) -> Value {
    let kinds: serde_json::Map<String, Value> =
        mix.kinds.iter().map(|(kind, count)| (kind.as_str().to_owned(), json!(count))).collect();
    let sizes: Vec<Value> = (0..SIZES.len())
        .map(|at| {
            let most = (SIZES[at] != usize::MAX).then_some(SIZES[at]);
            json!({"least": at.checked_sub(1).map_or(1, |before| SIZES[before] + 1), "most": most, "executions": mix.sizes[at]})
        })
        .collect();
    json!({
        "instructions": mix.instructions,
        "kinds": kinds,
        "unread": mix.unread,
        "blocks": mix.blocks,
        "block_sizes": sizes,
        "branches": mix.branches(),
        "loads": mix.loads,
        "loaded_bytes": mix.loaded_bytes,
        "stores": mix.stores,
        "stored_bytes": mix.stored_bytes,
        "repeated": mix.repeated,
    })
}

fn size_class(at: usize) -> String {
    let least = at.checked_sub(1).map_or(1, |before| SIZES[before] + 1);
    match SIZES[at] {
        most if most == least => most.to_string(),
        usize::MAX => format!("{least} and more"),
        most => format!("{least} to {most}"),
    }
}

fn share(part: u64, whole: u64) -> String {
    format!("{:.1}", part as f64 / whole.max(1) as f64 * 100.0)
}

fn mean(sum: u64, count: u64) -> String {
    if count == 0 { "0".to_owned() } else { significant(sum as f64 / count as f64) }
}
