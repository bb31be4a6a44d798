//! `treering octave`: which files it writes and does not, folders of any name, and the header.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::octave::{evaluate, library, octave};
use crate::prolog::text;

const TREERING: &str = env!("CARGO_BIN_EXE_treering");

const SCRIPT: &str = "1;\nfunction r = twice (x), r = 2 * x; end\nfor i = 1:3, twice (i); end\n";

fn treering(folder: &Path, locale: &str, arguments: &[&OsStr]) -> Output {
    let mut command = Command::new(TREERING);
    command.arg("octave").args(arguments).current_dir(folder).env("LC_ALL", locale);
    command.stdin(Stdio::null()).output().expect("treering runs")
}

/// Calls of `twice`, and the command.
fn read(profile: &Path) -> (u64, Vec<String>) {
    let bytes = std::fs::read(profile).expect("the profile was written");
    let (_, profile, _) = treering_formats::read_any(&bytes).expect("it can be read");
    let is_twice = |name: &str| name == "twice" || name.ends_with(">twice");
    let calls = crate::prolog::counts(&profile).into_iter().filter(|(name, _)| is_twice(name));
    (calls.map(|(_, counts)| counts[0]).sum(), profile.runs[0].command.clone())
}

#[test]
fn folders_and_scripts_of_any_name_will_do() {
    let Some(folder) = octave("names") else { return };
    library();
    for (name, script) in [
        (&b"gr\xf6n"[..], &b"script.m"[..]),
        ("grün und blau".as_bytes(), "grün.m".as_bytes()),
        (b"it's a \"%\" $x", b"s.m"),
    ] {
        let (folder, script) = (folder.join(OsStr::from_bytes(name)), OsStr::from_bytes(script));
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        std::fs::write(folder.join(script), SCRIPT).expect("the script can be written");
        for locale in ["C", "C.UTF-8"] {
            let output = treering(&folder, locale, &["-q".as_ref(), script, "a b".as_ref()]);
            assert!(output.status.success(), "{locale} {name:?} {}", text(&output.stderr));
            let (calls, command) = read(&folder.join("treering.trg"));
            assert_eq!(calls, 3, "{locale} {name:?}");
            assert_eq!(command, ["octave-cli", &*script.to_string_lossy(), "a b"]);
        }
    }
}

#[test]
fn files_that_are_no_profiles_are_not_replaced() {
    let Some(folder) = octave("replaced") else { return };
    library();
    let files = [("script.m", SCRIPT), ("notes.txt", "my notes")];
    for (file, content) in files {
        std::fs::write(folder.join(file), content).expect("it can be written");
    }
    let run = |options: &[&str]| {
        let words: Vec<&OsStr> = options.iter().chain(&["-q", "script.m"]).map(OsStr::new).collect();
        treering(&folder, "C.UTF-8", &words)
    };
    for (file, content) in files {
        let output = run(&["-o", file]);
        let errors = text(&output.stderr);
        assert!(!output.status.success() && errors.contains("hint: name another file"), "{errors}");
        assert_eq!(std::fs::read(folder.join(file)).expect("it is there"), content.as_bytes());
    }
    for options in [&["--force", "-o", "notes.txt"][..], &["-o", "notes.txt"]] {
        let output = run(options);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(read(&folder.join("notes.txt")).0, 3);
    }
}

#[test]
fn saving_in_octave_replaces_profiles_only_and_statistics_may_be_asked_for_at_the_start() {
    let Some(folder) = octave("saved") else { return };
    std::fs::write(folder.join("notes.txt"), "my notes").expect("it can be written");
    let code = "__treering__ ('on', 'graph', '-statistics');\nfor i = 1:20, sin (i); end\n\
                try, __treering__ ('save', 'notes.txt'); catch e, disp (e.message); end\n\
                __treering__ ('save', 'a.trg'); __treering__ ('save', 'a.trg');\n\
                disp (__treering__ ('print', 'flat'));\n__treering__ ('clear');\n\
                try, __treering__ ('save', 'b.trg'); catch e, disp (e.message); end\n";
    let printed = evaluate(&folder, code);
    assert!(printed.contains("notes.txt exists and is no profile of Treering"), "{printed}");
    assert_eq!(std::fs::read(folder.join("notes.txt")).expect("it is there"), b"my notes");
    assert!(folder.join("a.trg").exists() && printed.contains("calm"), "{printed}");
    assert!(!folder.join("b.trg").exists() && printed.contains("there is no profile"), "{printed}");
}

#[test]
fn a_line_of_several_statements_is_hit_once_each_time() {
    let Some(folder) = octave("hits") else { return };
    let function = "function r = busy (n)\n  a = 1; b = 2;\n  for i = 1:n\n    a += i; b += a; c = b;\n  end\n  for i = 1:n, a = i; \
                    b = i; end\n  r = a;\nend\n";
    std::fs::write(folder.join("busy.m"), function).expect("it can be written");
    let code = "__treering__ ('on', 'graph', '-lines');\nbusy (5); busy (2);\n__treering__ ('off');\n\
                t = __treering__ ('details').FunctionTable; k = strcmp ({t.FunctionName}, 'busy');\n\
                printf ('%d:%d ', t(k).ExecutedLines(:, 1:2)');\n";
    let printed = evaluate(&folder, code);
    // The last line is the end of the function, which Octave runs as well.
    assert_eq!(printed.trim(), "2:2 3:2 4:7 6:2 7:2 8:2");
}
