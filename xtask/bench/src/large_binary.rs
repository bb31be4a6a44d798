//! Makes a program with hundreds of megabytes of debug information in a minute or two.
//!
//! Compiling so much would take far longer. One unit of templates is compiled to assembly, and
//! assembled many times under different names of the same length: the names, and with them the
//! debug information, differ as they would between the units of a large program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use treering_testing::programs::fixture;

use crate::frame::make_folder;
use crate::measure::succeed;

/// How the unit's namespace and entry function are called in the source; replaced in each copy.
const PLACEHOLDER: &str = "instance_0000";
/// Each copy adds about 6 MB of debug information.
const COPIES: usize = 52;

/// The program, made in `directory` unless it is there. Its argument is how many times to call
/// every copy.
pub(super) fn build(directory: &Path) -> Result<PathBuf, String> {
    let program = directory.join(format!("large_debug_info_{COPIES}"));
    if program.exists() {
        return Ok(program);
    }
    let work = directory.join("large_debug_info.parts");
    make_folder(&work)?;
    let unit = compile_unit(&work)?;
    let objects: Result<Vec<PathBuf>, String> =
        (0..COPIES).map(|copy| assemble(&work, &unit, copy)).collect();
    let main = work.join("main.cpp");
    write(&main, &main_source())?;
    let unfinished = program.with_extension("unfinished");
    succeed(Command::new("c++").args(["-O2", "-g", "-o"]).arg(&unfinished).arg(main).args(objects?))?;
    fs::rename(&unfinished, &program).map_err(|error| error.to_string())?;
    fs::remove_dir_all(&work).map_err(|error| error.to_string())?;
    Ok(program)
}

fn compile_unit(work: &Path) -> Result<String, String> {
    let assembly = work.join("unit.s");
    let source = fixture("workloads/templates.cpp");
    succeed(Command::new("c++").args(["-std=c++17", "-O2", "-g", "-S", "-o"]).arg(&assembly).arg(source))?;
    fs::read_to_string(&assembly).map_err(|error| format!("cannot read {}: {error}", assembly.display()))
}

fn assemble(work: &Path, unit: &str, copy: usize) -> Result<PathBuf, String> {
    let (source, object) = (work.join("copy.s"), work.join(format!("copy{copy}.o")));
    write(&source, &unit.replace(PLACEHOLDER, &name(copy)))?;
    succeed(Command::new("as").arg(&source).arg("-o").arg(&object))?;
    Ok(object)
}

fn name(copy: usize) -> String {
    format!("instance_{:04}", copy + 1)
}

/// Calls every copy as many times as the argument says.
fn main_source() -> String {
    let each = |make: fn(usize) -> String| (0..COPIES).map(make).collect::<String>();
    let declared = each(|copy| format!("extern \"C\" unsigned long run_{}(unsigned long);\n", name(copy)));
    let called = each(|copy| format!("        seed = run_{}(seed);\n", name(copy)));
    format!(
        "#include <cstdlib>\n{declared}int main(int count, char **words)\n{{\n    unsigned long seed = 1;\n    \
         for (int turn = count > 1 ? std::atoi(words[1]) : 1; turn > 0; turn--) {{\n{called}    }}\n    \
         return seed == 0;\n}}\n"
    )
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_copies_are_as_long_as_the_placeholder() {
        // The lengths are part of mangled names.
        assert!((0..COPIES).all(|copy| name(copy).len() == PLACEHOLDER.len() && name(copy) != PLACEHOLDER));
    }

    #[test]
    fn the_source_of_main_calls_every_copy() {
        assert_eq!(main_source().matches("seed = run_instance_").count(), COPIES);
    }
}
