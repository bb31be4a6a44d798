//! Changes of real programs, each of which makes one call or function more expensive.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::Place;
use crate::measure::succeed;
use crate::table::Table;

/// A program whose sources are changed.
struct Program {
    /// The folder of its sources, in the one that is given.
    name: &'static str,
    seeds: &'static str,
    /// The input that it runs, and the file that holds it.
    input: (&'static str, &'static str),
    arguments: &'static [&'static str],
    /// Source files that are not compiled.
    left_out: &'static [&'static str],
}

const PROGRAMS: [Program; 2] = [
    Program {
        name: "lua",
        seeds: include_str!("../../seeds/lua.txt"),
        input: ("records.lua", include_str!("../../seeds/records.lua")),
        arguments: &["records.lua"],
        left_out: &["luac.c", "onelua.c", "ltests.c"],
    },
    Program {
        name: "sqlite",
        seeds: include_str!("../../seeds/sqlite.txt"),
        input: ("orders.c", include_str!("../../seeds/orders.c")),
        arguments: &[],
        left_out: &["shell.c"],
    },
];

/// A change.
#[derive(Debug, PartialEq, Eq)]
struct Seed<'a> {
    title: &'a str,
    file: &'a str,
    /// The functions one of which is its cause.
    causes: Vec<&'a str>,
    old: &'a str,
    new: &'a str,
}

impl<'a> Seed<'a> {
    fn all(text: &'a str) -> Vec<Self> {
        text.split("\n== ").skip(1).filter_map(Self::read).collect()
    }

    fn read(text: &'a str) -> Option<Self> {
        let (title, rest) = text.split_once('\n')?;
        let (place, rest) = rest.split_once("\n<<<\n")?;
        let (file, causes) = place.split_once(": ")?;
        let (old, rest) = rest.split_once("\n===\n")?;
        let (new, _) = rest.split_once("\n>>>")?;
        Some(Self { title, file, causes: causes.split(' ').collect(), old, new })
    }
}

/// Compares each program with itself with each change.
pub(super) fn measure(place: &Place, sources: &Path) -> Result<Table, String> {
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
        let base = program.build(place, &folder, None)?;
        for seed in Seed::all(program.seeds) {
            let head = program.build(place, &folder, Some(&seed))?;
            let document = program.compare(place, &base, &head)?;
            let found = Found::of(&document, &seed);
            all += 1;
            right += u32::from(found.is_right);
            in_rows += u32::from(found.is_in_rows);
            let sign = |is: bool| if is { "yes" } else { "no" }.to_owned();
            let change = document["exact"]["change"].as_f64().unwrap_or(f64::NAN) * 100.0;
            table.row(vec![
                program.name.to_owned(),
                seed.title.to_owned(),
                format!("{change:+.3} %"),
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
    fn of(document: &Value, seed: &Seed) -> Self {
        let difference = &document["exact"]["difference"];
        let cause = &difference["verdict"]["cause"];
        let name = |value: &Value| value.as_str().unwrap_or("").to_owned();
        let (caller, function) = (name(&cause["caller"]), name(&cause["function"]));
        let is_cause = |name: &str| seed.causes.contains(&name.split(['.', '@']).next().unwrap_or(name));
        let rows = difference["functions"].as_array().into_iter().flatten().take(3);
        Self {
            is_right: is_cause(&function) || (!caller.is_empty() && is_cause(&caller)),
            is_in_rows: rows.filter_map(|row| row["function"].as_str()).any(is_cause),
            named: if caller.is_empty() { function } else { format!("{caller} → {function}") },
        }
    }
}

impl Program {
    /// Compiles the sources, and with a change the changed one, into a folder of its own; returns the program.
    fn build(&self, place: &Place, sources: &Path, seed: Option<&Seed>) -> Result<PathBuf, String> {
        let base = place.folder.join(self.name).join("base");
        let folder = if seed.is_some() { place.folder.join(self.name).join("head") } else { base.clone() };
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        std::fs::write(place.folder.join(self.input.0), self.input.1).map_err(|error| error.to_string())?;
        let mut objects = Vec::new();
        for file in self.files(sources)? {
            let object = base.join(file.file_stem().unwrap_or_default()).with_extension("o");
            objects.push(match seed {
                None => compile(&file, sources, object)?,
                Some(seed) if file.ends_with(seed.file) => {
                    compile(&changed(&file, seed, &folder)?, sources, folder.join("changed.o"))?
                }
                Some(_) => object,
            });
        }
        let program = folder.join("program");
        succeed(Command::new("cc").arg("-o").arg(&program).args(objects).args(["-lm", "-ldl"]))?;
        Ok(program)
    }

    fn files(&self, sources: &Path) -> Result<Vec<PathBuf>, String> {
        let entries =
            std::fs::read_dir(sources).map_err(|error| format!("{}: {error}", sources.display()))?;
        let is_source = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.ends_with(".c") && !self.left_out.contains(&name.as_str())
        };
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_source).collect();
        if self.input.0.ends_with(".c") {
            files.push(workspace_input(self.input.0));
        }
        files.sort();
        Ok(files)
    }

    fn compare(&self, place: &Place, base: &Path, head: &Path) -> Result<Value, String> {
        let (base, head) = (base.to_string_lossy(), head.to_string_lossy());
        let of = |program| [&[program], self.arguments].concat();
        let (base, head): (Vec<&str>, Vec<&str>) = (of(&*base), of(&*head));
        place.compare(&["--exact"], &base, &head)
    }
}

/// Compiles a file; returns the object.
fn compile(file: &Path, sources: &Path, object: PathBuf) -> Result<PathBuf, String> {
    let mut command = Command::new("cc");
    command.args(["-O2", "-g", "-w", "-DSQLITE_THREADSAFE=0", "-DLUA_USE_POSIX"]);
    // Lua's own is made of addresses, which any change moves, and changes all hashes.
    command.arg("-Dluai_makeseed()=24301").arg("-I").arg(sources);
    succeed(command.arg("-c").arg(file).arg("-o").arg(&object))?;
    Ok(object)
}

/// The file that a C program of ours has as its input.
fn workspace_input(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(name)
}

/// Writes the changed file, and returns where.
fn changed(file: &Path, seed: &Seed, folder: &Path) -> Result<PathBuf, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    if !text.contains(seed.old) {
        return Err(format!("{} has no text for {:?}", file.display(), seed.title));
    }
    let path = folder.join(seed.file);
    std::fs::write(&path, text.replacen(seed.old, seed.new, 1)).map_err(|error| error.to_string())?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_seeds_are_read_and_change_something() {
        for program in PROGRAMS {
            let seeds = Seed::all(program.seeds);
            assert_eq!(seeds.len(), program.seeds.matches("\n== ").count(), "{}", program.name);
            for seed in seeds {
                assert!(seed.old != seed.new && !seed.causes.is_empty(), "{}", seed.title);
            }
        }
    }

    #[test]
    fn causes_are_functions_or_callers() {
        let seeds = Seed::all("\n== a title\na.c: f g\n<<<\nold\n===\nnew\n>>>\n");
        assert_eq!(
            seeds[0],
            Seed { title: "a title", file: "a.c", causes: vec!["f", "g"], old: "old", new: "new" }
        );
        let document = serde_json::json!({"exact": {"difference": {
            "verdict": {"cause": {"caller": "f.part.0", "function": "h"}},
            "functions": [{"function": "h"}, {"function": "k"}]}}});
        let found = Found::of(&document, &seeds[0]);
        assert_eq!((found.named.as_str(), found.is_right, found.is_in_rows), ("f.part.0 → h", true, false));
    }
}
