//! The headers for C and C++ compile without a warning under every standard, and call the right
//! functions of the library in the right order, as a stand-in for the library sees it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "a test says that it was skipped")]

use std::path::{Path, PathBuf};
use std::process::Command;

use super::program::succeeded;

const WARNINGS: [&str; 5] = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-Wshadow"];

fn hooks() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hooks/c")
}

/// A folder for what a test builds, empty at first.
fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c_headers").join(test);
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The compilers of a language that are installed.
fn compilers(language: &str) -> Vec<&'static str> {
    let both = if language == "c" { ["gcc", "clang"] } else { ["g++", "clang++"] };
    let is_installed = |name: &&str| {
        let found = Command::new(name).arg("--version").output().is_ok();
        if !found {
            eprintln!("skipped: {name} is not installed");
        }
        found
    };
    both.into_iter().filter(is_installed).collect()
}

/// Checks one text that includes headers, in each standard, with and without macros defined.
fn compiles(language: &str, standards: &[&str], defines: &[&str], text: &str) {
    let source = folder(&format!("{language}{}", standards.join(""))).join(format!("source.{language}"));
    std::fs::write(&source, text).unwrap();
    for compiler in compilers(language) {
        for standard in standards {
            for define in defines {
                let mut command = Command::new(compiler);
                command.args(WARNINGS).args(["-fsyntax-only", *define, &format!("-std={standard}"), "-I"]);
                succeeded(command.arg(hooks().join("include")).arg(&source));
            }
        }
    }
}

/// Builds a program of `hooks/c/tests` and runs it in a folder of its own.
fn passes(source: &str, with_stand_in: bool) {
    let (name, language) = source.split_once('.').unwrap();
    let standard = if language == "c" { "-std=c11" } else { "-std=c++17" };
    for (compiler, c_compiler) in compilers(language).into_iter().zip(compilers("c")) {
        let folder = folder(&format!("{name}-{language}-{compiler}"));
        let (include, tests) = (hooks().join("include"), hooks().join("tests"));
        let object = folder.join("mock_runtime.o");
        let mut stand_in = Command::new(c_compiler);
        stand_in.args(WARNINGS).args(["-std=c11", "-c", "-I"]).arg(&include);
        succeeded(stand_in.arg(tests.join("mock_runtime.c")).arg("-o").arg(&object));
        let mut command = Command::new(compiler);
        command.args(WARNINGS).args([standard, "-I"]).arg(&include).arg(tests.join(source));
        if with_stand_in {
            command.arg(&object);
        }
        succeeded(command.arg("-o").arg(folder.join("program")));
        succeeded(Command::new(folder.join("program")).current_dir(&folder));
    }
}

#[test]
fn the_header_for_c_compiles_in_every_standard() {
    let text = "#include <treering/treering.h>\n\
                void f(const char *name);\n\
                void f(const char *name)\n\
                {\n\
                TREERING_FUNCTION();\nTREERING_SCOPE(\"a\");\nTREERING_SCOPE(\"b\");\n\
                TREERING_SCOPE_NAMED(name);\nTREERING_LEAF(\"d\", 16);\n\
                treering_task_start(treering_task(\"c\"));\ntreering_task_stop();\n\
                }\n";
    compiles("c", &["c11", "c17", "gnu11"], &["-DNDEBUG", "-DTREERING_DISABLE"], text);
}

#[test]
fn the_header_for_cpp_compiles_in_every_standard() {
    let text = "#include <treering/treering.hpp>\n#include <treering/treering.h>\n\
                std::string f(const std::string &name)\n\
                {\n\
                TREERING_FUNCTION();\nTREERING_SCOPE(\"a\");\nTREERING_SCOPE(\"b\");\n\
                TREERING_SCOPE_NAMED(name);\nTREERING_SCOPE_NAMED(\"c\");\n\
                TREERING_LEAF(\"d\", 16);\n\
                return treering::report(treering::Verbosity::full, treering::Format::xml, 3);\n\
                }\n";
    compiles("cc", &["c++17", "c++20"], &["-DNDEBUG", "-DTREERING_DISABLE"], text);
}

#[test]
fn the_headers_of_cbs_compile_in_every_standard() {
    let text = "#include <cbs/bench/bench_internals.hh>\n#include <cbs/bench/bench_macros.hh>\n\
                enum Kind { A };\n\
                void f(std::string name)\n\
                {\n\
                BENCH_START(name, \"b\");\nBENCH_TASK_SCOPED(name + \"c\");\n\
                BENCH_PARAMETER(\"n\", 3u);\nBENCH_PARAMETER(\"n\", sizeof 3);\nBENCH_RESULT(\"n\", A);\n\
                BENCH_RESULT(\"n\", (short)3);\nBENCH_RESULT(name, 1.5f);\nBENCH_RESULT(name, name);\n\
                BENCH_TASK_START(\"d\");\nBENCH_TASK_STOP();\n\
                BENCH_MEMPLOT(\"e\" + name);\nBENCH_STOP();\n\
                BENCH_SAVE(name + \".xml\", bench::Options());\n\
                BENCH_PRINT(bench::Options(bench::Options::VE_NORMAL, bench::Options::FO_TEXT, 0));\n\
                BENCH_DUMP(std::cerr, bench::Options(bench::Options::VE_MINIMAL));\n\
                (void)name;\n\
                }\n\
                void by_number()\n\
                {\n\
                const bench::TaskId id = bench::task_id(\"a\");\n\
                BENCH_TASK_START(id);\nBENCH_TASK_STOP();\nBENCH_TASK_SCOPED(id);\n(void)id;\n\
                }\n";
    compiles("cc", &["c++98", "c++14", "c++17", "c++20"], &["-DNDEBUG"], text);
    let defines = ["-DBENCH_DISABLED", "-DTREERING_DISABLE", "-DBENCH_CALLGRAPH_DISABLED"];
    compiles("cc", &["c++11"], &defines, text);
}

#[test]
fn scopes_in_c() {
    passes("scopes.c", true);
}

#[test]
fn scopes_in_cpp() {
    passes("scopes.cc", true);
}

#[test]
fn macros_and_functions_of_cbs() {
    passes("bench.cc", true);
}

#[test]
fn the_timer_of_cbs() {
    passes("timer.cc", true);
}

#[test]
fn tasks_and_memory_plot_are_disabled_apart() {
    passes("parts_disabled.cc", true);
}

#[test]
fn disabled_programs_need_no_library() {
    passes("disabled.c", false);
    passes("disabled.cc", false);
}
