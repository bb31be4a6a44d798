//! `profile view` in Octave: the page of what was recorded there.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::octave::octave;
use crate::session::{Outcome, Session};

#[test]
fn profile_view_makes_the_page_of_the_recording() {
    let Some(folder) = octave("profile_view") else { return };
    let inst = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hooks/octave/inst");
    let inst = inst.canonicalize().expect("the package is there");
    let script = format!(
        "warning ('off', 'Octave:shadowed-function'); addpath ('{inst}'); addpath ('{inst}/takeover');
         try, profile on -only, catch failure, disp (failure.message), end
         profile on -lines
         for i = 1:3, strjust (['a '; 'bb'], 'right'); end
         profile view 'my page.html'
         disp (profile ('status').ProfilerStatus)
         profile viewer
         setenv ('PATH', '/nowhere');
         try, profile view, catch failure, disp (failure.message), end",
        inst = inst.display()
    );
    std::fs::write(folder.join("test_script.m"), script).expect("the script can be written");
    let temporary = folder.join("it's temporary");
    std::fs::create_dir(&temporary).expect("a folder can be made");
    let program = Path::new(env!("CARGO_BIN_EXE_treering")).parent().expect("it is in a folder");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("octave-cli")
        .args(["--norc", "test_script.m"])
        .current_dir(&folder)
        .env("PATH", path)
        .env("TMPDIR", &temporary)
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .stdin(Stdio::null())
        .output();
    let outcome = Outcome::of(output.expect("Octave runs"));
    assert!(outcome.status.success(), "{outcome:#?}");
    let told = &outcome.stdout;
    assert!(told.contains("-only needs a value behind it"), "{outcome:#?}");
    assert!(told.contains("my page.html (") && told.contains("open it in a browser"), "{outcome:#?}");
    assert!(told.contains("\noff\n"), "recording stops: {outcome:#?}");
    let page = std::fs::read_to_string(folder.join("my page.html")).expect("the page was written");
    assert!(page.starts_with("<!doctype html>") && page.contains("– Treering</title>"), "{told}");
    let left = |ending: &str| {
        let files = std::fs::read_dir(&temporary).expect("the folder is there").flatten();
        let mut paths = files.map(|file| file.path());
        paths.find(|path| path.extension().is_some_and(|known| known == ending))
    };
    let other = left("html").expect("viewer wrote a page as well");
    assert!(told.contains(&*other.to_string_lossy()), "{outcome:#?}");
    // Without the program the profile is kept.
    assert!(told.contains("install it: cargo install"), "{outcome:#?}");
    let kept = left("trg").expect("the profile is kept");
    let word = kept.display().to_string().replace('\'', "'\\''");
    assert!(told.contains(&format!("treering view '{word}'")), "{outcome:#?}");
    let report = Session::new().output(&[Path::new("report"), Path::new("--flat"), &kept]);
    assert!(report.contains("strjust"), "{report}");
}
