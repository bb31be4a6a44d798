//! Changes of real programs, each of which makes one call or function more or less expensive.
//!
//! Some are written by hand, as a text and what takes its place. Most were drawn at random from all places of the
//! functions that run, and kept where the program wrote the same and its instructions changed by 0.02 % or more: see
//! [`drawn`].

mod drawn;
mod symbols;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::frame::Bench;
use crate::measure::succeed;
use crate::table::Table;
use drawn::Place;

/// A program whose sources are changed.
struct Program {
    /// The folder of its sources, in the one that is given.
    name: &'static str,
    seeds: &'static str,
    /// Changes that were drawn.
    drawn: &'static str,
    /// A file of `seeds/`: source code that calls it, or the script that it runs.
    input: &'static str,
    /// Source files that are not compiled.
    left_out: &'static [&'static str],
    defines: &'static [&'static str],
}

const PROGRAMS: [Program; 5] = [
    Program {
        name: "lua",
        seeds: include_str!("../../seeds/lua.txt"),
        drawn: include_str!("../../seeds/lua-drawn.txt"),
        input: "records.lua",
        left_out: &["luac.c", "onelua.c", "ltests.c"],
        // Lua's own seed is made of addresses, which any change moves, and changes all hashes.
        defines: &["-DLUA_USE_POSIX", "-Dluai_makeseed(...)=24301"],
    },
    Program {
        name: "zlib",
        seeds: "",
        drawn: include_str!("../../seeds/zlib-drawn.txt"),
        input: "pages.c",
        left_out: &["gzlib.c", "gzread.c", "gzwrite.c", "gzclose.c"],
        defines: &["-DHAVE_UNISTD_H"],
    },
    Program {
        name: "expat",
        seeds: "",
        drawn: include_str!("../../seeds/expat-drawn.txt"),
        input: "feed.c",
        left_out: &["xmltok_impl.c", "xmltok_ns.c"],
        defines: &[
            "-DXML_GE=1",
            "-DXML_DTD",
            "-DXML_NS",
            "-DXML_CONTEXT_BYTES=1024",
            "-DXML_POOR_ENTROPY",
            "-DHAVE_MEMMOVE",
        ],
    },
    Program {
        name: "bzip2",
        seeds: "",
        drawn: include_str!("../../seeds/bzip2-drawn.txt"),
        input: "blocks.c",
        left_out: &["bzip2.c", "bzip2recover.c", "dlltest.c", "mk251.c", "spewG.c", "unzcrash.c"],
        defines: &["-DBZ_NO_STDIO"],
    },
    Program {
        name: "sqlite",
        seeds: include_str!("../../seeds/sqlite.txt"),
        drawn: include_str!("../../seeds/sqlite-drawn.txt"),
        input: "orders.c",
        left_out: &["shell.c"],
        defines: &["-DSQLITE_THREADSAFE=0"],
    },
];

/// A change of a source file that was written by hand.
fn by_hand(text: &str) -> Option<Change> {
    let (title, rest) = text.split_once('\n')?;
    let (place, rest) = rest.split_once("\n<<<\n")?;
    let (file, causes) = place.split_once(": ")?;
    let (old, rest) = rest.split_once("\n===\n")?;
    let (new, _) = rest.split_once("\n>>>")?;
    Some(Change {
        title: title.to_owned(),
        file: file.to_owned(),
        causes: causes.split(' ').map(str::to_owned).collect(),
        edit: Edit::Replace { old: old.to_owned(), new: new.to_owned() },
    })
}

/// A change of a source file.
#[derive(Debug)]
struct Change {
    title: String,
    file: String,
    /// The functions one of which is its cause.
    causes: Vec<String>,
    edit: Edit,
}

#[derive(Debug)]
enum Edit {
    /// The first place of one text becomes the other.
    Replace { old: String, new: String },
    /// A place is changed by rule.
    Drawn(Place),
}

impl Change {
    /// The changed text; nothing if the text is not that of the version that the change is for.
    fn apply(&self, text: &str) -> Option<String> {
        match &self.edit {
            Edit::Replace { old, new } => text.contains(old).then(|| text.replacen(old, new, 1)),
            Edit::Drawn(place) => place.apply(text),
        }
    }

    /// The functions one of which is the cause; where the compiler has made that of a drawn change part of others, those
    /// whose code differs. `before`, `after`: the object files.
    fn causes(&self, before: &Path, after: &Path) -> Result<Vec<String>, String> {
        if let (Edit::Drawn(_), [function]) = (&self.edit, &self.causes[..]) {
            let (before, after) = (symbols::code(before)?, symbols::code(after)?);
            if !(before.contains_key(function) && after.contains_key(function)) {
                let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
                return Ok(names
                    .into_iter()
                    .filter(|name| before.get(*name) != after.get(*name))
                    .cloned()
                    .collect());
            }
        }
        Ok(self.causes.clone())
    }
}

/// Compares each program with itself with each change.
pub(super) fn measure(bench: &Bench, sources: &Path) -> Result<Table, String> {
    let mut table = Table::new(
        "Changes of real programs, exact",
        &["program", "change", "instructions", "named as the cause", "right", "in the first three rows"],
    );
    let (mut right, mut in_rows, mut all) = (0, 0, 0);
    for program in &PROGRAMS {
        let folder = sources.join(program.name);
        if !folder.is_dir() {
            table.note(format!("{} is not in {}.", program.name, sources.display()));
            continue;
        }
        let base = program.build(bench, &folder, None)?;
        for change in program.changes() {
            // Sources of another version may lack the text of a change.
            let head = match program.build(bench, &folder, Some(&change)) {
                Ok(head) => head,
                Err(error) => {
                    table.note(format!("Left out: {error}."));
                    continue;
                }
            };
            let document = program.compare(bench, &base, &head)?;
            let causes = program.causes(bench, &change)?;
            let found = Found::of(&document, &causes);
            all += 1;
            right += u32::from(found.is_right);
            in_rows += u32::from(found.is_in_rows);
            let sign = |is: bool| if is { "yes" } else { "no" }.to_owned();
            let part = document["exact"]["change"].as_f64().unwrap_or(f64::NAN) * 100.0;
            table.row(vec![
                program.name.to_owned(),
                change.title.clone(),
                format!("{part:+.3} %"),
                found.named,
                sign(found.is_right),
                sign(found.is_in_rows),
            ]);
        }
    }
    table.note(format!("Right: {right} of {all}; in the first three rows: {in_rows} of {all}."));
    Ok(table)
}

/// The verdict of a comparison on a seed.
struct Found {
    named: String,
    is_right: bool,
    is_in_rows: bool,
}

impl Found {
    fn of(document: &Value, causes: &[String]) -> Self {
        let difference = &document["exact"]["difference"];
        let cause = &difference["verdict"]["cause"];
        let name = |value: &Value| value.as_str().unwrap_or("").to_owned();
        let (caller, function) = (name(&cause["caller"]), name(&cause["function"]));
        let is_cause = |name: &str| causes.iter().any(|cause| cause == symbols::plain(name));
        let rows = difference["functions"].as_array().into_iter().flatten().take(3);
        Self {
            is_right: is_cause(&function) || (!caller.is_empty() && is_cause(&caller)),
            is_in_rows: rows.filter_map(|row| row["function"].as_str()).any(is_cause),
            named: if caller.is_empty() { function } else { format!("{caller} → {function}") },
        }
    }
}

impl Program {
    fn changes(&self) -> impl Iterator<Item = Change> {
        self.seeds.split("\n== ").skip(1).filter_map(by_hand).chain(drawn::all(self.drawn))
    }

    /// Compiles the sources, and with a change the changed one, into a folder of its own; returns the program.
    fn build(&self, bench: &Bench, sources: &Path, change: Option<&Change>) -> Result<PathBuf, String> {
        let base = self.folder(bench, "base");
        let folder = if change.is_some() { self.folder(bench, "head") } else { base.clone() };
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let mut objects = Vec::new();
        for file in self.files(sources)? {
            let object = base.join(file.file_stem().unwrap_or_default()).with_extension("o");
            objects.push(match change {
                None => self.compile(&file, sources, object)?,
                Some(change) if file.ends_with(&change.file) => {
                    self.compile(&changed(&file, change, &folder)?, sources, folder.join("changed.o"))?
                }
                Some(_) => object,
            });
        }
        let program = folder.join("program");
        succeed(Command::new("cc").arg("-o").arg(&program).args(objects).args(["-lm", "-ldl"]))?;
        Ok(program)
    }

    fn folder(&self, bench: &Bench, name: &str) -> PathBuf {
        bench.directory.join(self.name).join(name)
    }

    /// The causes of the change that was built last.
    fn causes(&self, bench: &Bench, change: &Change) -> Result<Vec<String>, String> {
        let before = self.folder(bench, "base").join(&change.file).with_extension("o");
        change.causes(&before, &self.folder(bench, "head").join("changed.o"))
    }

    /// Compiles a file; returns the object.
    fn compile(&self, file: &Path, sources: &Path, object: PathBuf) -> Result<PathBuf, String> {
        let mut command = Command::new("cc");
        command.args(["-O2", "-g", "-w"]).args(self.defines).arg("-I").arg(sources);
        succeed(command.arg("-c").arg(file).arg("-o").arg(&object))?;
        Ok(object)
    }

    fn files(&self, sources: &Path) -> Result<Vec<PathBuf>, String> {
        let entries =
            std::fs::read_dir(sources).map_err(|error| format!("{}: {error}", sources.display()))?;
        let is_source = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.ends_with(".c") && !self.left_out.contains(&name.as_str())
        };
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_source).collect();
        files.extend(self.is_called().then(|| self.input()));
        files.sort();
        Ok(files)
    }

    fn compare(&self, bench: &Bench, base: &Path, head: &Path) -> Result<Value, String> {
        let input = self.input();
        let [base, head, input] = [base, head, &input].map(Path::to_string_lossy);
        let script = if self.is_called() { None } else { Some(&*input) };
        let of = |program| [program].into_iter().chain(script).collect::<Vec<_>>();
        bench.compare(&["--exact"], &of(&base), &of(&head))
    }

    fn input(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(self.input)
    }

    /// Whether it is a library, which the input calls.
    fn is_called(&self) -> bool {
        self.input.ends_with(".c")
    }
}

/// Writes the changed file, and returns where.
fn changed(file: &Path, change: &Change, folder: &Path) -> Result<PathBuf, String> {
    // Some sources are not UTF-8.
    let bytes = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let text: String = bytes.into_iter().map(char::from).collect();
    let new = change
        .apply(&text)
        .ok_or_else(|| format!("{} is of another version: no {:?}", file.display(), change.title))?;
    let path = folder.join(&change.file);
    let bytes: Vec<u8> = new.chars().map(|letter| letter as u8).collect();
    std::fs::write(&path, bytes).map_err(|error| error.to_string())?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_seeds_are_read_and_change_something() {
        for program in PROGRAMS {
            let seeds = program.seeds.matches("\n== ").count();
            let drawn = program.drawn.lines().filter(|line| !line.starts_with('#')).count();
            assert_eq!(program.changes().count(), seeds + drawn, "{}", program.name);
            for Change { title, causes, edit, .. } in program.changes() {
                let is_nothing = matches!(edit, Edit::Replace { old, new } if old == new);
                assert!(!is_nothing && !causes.is_empty(), "{title}");
            }
        }
    }

    #[test]
    fn causes_are_functions_or_callers() {
        let change = by_hand("a title\na.c: f g\n<<<\nold\n===\nnew\n>>>\n").expect("a change");
        assert_eq!((&*change.title, &*change.file), ("a title", "a.c"));
        assert_eq!(change.apply("an old text, old"), Some("an new text, old".to_owned()));
        let document = serde_json::json!({"exact": {"difference": {
            "verdict": {"cause": {"caller": "f.part.0", "function": "h"}},
            "functions": [{"function": "h"}, {"function": "k"}]}}});
        let found = Found::of(&document, &change.causes);
        assert_eq!((found.named.as_str(), found.is_right, found.is_in_rows), ("f.part.0 → h", true, false));
    }
}
