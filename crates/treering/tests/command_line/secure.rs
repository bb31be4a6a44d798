//! Files of others: programs that have more rights than whoever starts them, and names that are taken.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use treering_testing::programs::installed;

use crate::runtime::Program;
use crate::session::{Session, program, treering, words};
use crate::skip;

const NOBODY: u32 = 65_534;

/// A folder that another user reaches.
fn open_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    set_mode(folder.path(), 0o755);
    folder
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("its mode can be set");
}

/// Runs a program as another user, who chooses its environment.
fn by_nobody(program: &Path, folder: &Path, variables: &[(&str, &Path)]) -> Output {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(program).arg("2");
    command.current_dir(folder).envs(variables.iter().copied()).output().expect("it runs")
}

/// Names of a folder's files.
fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("it can be read");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Programs with the runtime and with the code for `-pg` in them.
fn programs(session: &Session) -> Option<[PathBuf; 2]> {
    let runtime = Program::Calls.compile(session)?;
    crate::libraries::beside("libtreering_pg.a");
    let (source, counted) = (session.path("counted.c"), session.path("counted"));
    std::fs::write(&source, "int main(void) { return 0; }\n").expect("the folder can be written");
    let mut compile = Command::new("cc");
    compile.args(["-pg", "-static", "-o"]).arg(&counted).arg(&source).arg("-L");
    compile.arg(treering().with_file_name("")).arg("-l:libtreering_pg.a");
    let compiled = compile.output().ok()?;
    if !compiled.status.success() {
        skip("there is no static library of C");
        return None;
    }
    Some([runtime, counted])
}

/// As the C library ignores `GMON_OUT_PREFIX`.
#[test]
fn a_setuid_program_writes_nothing_where_its_user_may_not() {
    if std::fs::metadata("/proc/self").map_or(true, |found| found.uid() != 0)
        || installed("setpriv").is_none()
    {
        return skip("only root can make a setuid program of root");
    }
    let session = Session::new();
    let Some(programs) = programs(&session) else { return };
    let (bin, of_root, of_nobody) = (open_folder(), open_folder(), open_folder());
    std::os::unix::fs::chown(of_nobody.path(), Some(NOBODY), Some(NOBODY)).expect("we are root");
    let secret = of_root.path().join("secret.txt");
    for (kind, mode) in [("setuid", 0o4755), ("setgid", 0o2755)] {
        for built in &programs {
            let program = bin.path().join(built.file_name().expect("a file"));
            std::fs::copy(built, &program).expect("it can be copied");
            set_mode(&program, mode);
            let name = format!("{kind} {}", program.display());
            std::fs::write(&secret, "root's").expect("it can be written");
            for target in [of_root.path().join("new.trg"), secret.clone(), of_root.path().to_owned()] {
                for variable in ["TREERING_OUTPUT", "TREERING_PG"] {
                    by_nobody(&program, of_nobody.path(), &[(variable, &target)]);
                    assert_eq!(
                        files(of_root.path()),
                        ["secret.txt"],
                        "{name}: {variable}={}",
                        target.display()
                    );
                }
            }
            by_nobody(&program, of_root.path(), &[]);
            assert_eq!(files(of_root.path()), ["secret.txt"], "{name}: not in a folder of root either");
            assert_eq!(std::fs::read(&secret).expect("it is there"), b"root's", "{name}");
        }
    }
    // The rights are what makes the difference.
    let program = bin.path().join(programs[0].file_name().expect("a file"));
    set_mode(&program, 0o755);
    by_nobody(&program, of_nobody.path(), &[("TREERING_OUTPUT", &of_nobody.path().join("own.trg"))]);
    assert!(files(of_nobody.path()).contains(&"own.trg".to_owned()), "{:?}", files(of_nobody.path()));
}

#[test]
fn a_file_that_is_no_profile_is_never_replaced_by_an_instrumented_program() {
    let session = Session::new();
    let Some(program) = Program::Calls.compile(&session) else { return };
    let folder = session.path("written");
    std::fs::create_dir(&folder).expect("the folder can be made");
    let run = |name: &str| {
        let output =
            Command::new(&program).arg("2").current_dir(&folder).env("TREERING_OUTPUT", name).output();
        String::from_utf8_lossy(&output.expect("it runs").stderr).into_owned()
    };
    for name in ["thesis.txt", "data.trg", "other.trg.old"] {
        std::fs::write(folder.join(name), "mine").expect("the folder can be written");
    }
    for name in ["thesis.txt", "data.trg"] {
        let said = [run(name), run(name), run(name)];
        assert!(said.iter().all(|said| said.contains("is no profile and is left alone")), "{said:?}");
    }
    let said = [run("other.trg"), run("other.trg"), run("other.trg")];
    assert_eq!(said, [""; 3]);
    for name in ["thesis.txt", "data.trg", "other.trg.old"] {
        assert_eq!(std::fs::read(folder.join(name)).expect("it is there"), b"mine", "{name}");
    }
    // Of the names that were taken, each run has another one.
    assert_eq!(files(&folder).len(), 3 + 3 + 3 + 3, "{:?}", files(&folder));
    // Runs that follow each other within moments lose nothing; an empty file holds nothing.
    std::fs::write(folder.join("new.trg"), "").expect("the folder can be written");
    (0..4).for_each(|_| assert_eq!(run("new.trg"), ""));
    let new = files(&folder).into_iter().filter(|name| name.starts_with("new."));
    assert_eq!(new.count(), 1 + 4, "{:?}", files(&folder));
}

#[test]
fn marks_in_names_of_files_are_filled_in() {
    let session = Session::new();
    let Some(program) = Program::Calls.compile(&session) else { return };
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("Linux has it");
    let expected = format!("r3-{}-%p.trg", host.trim());
    let run = |command: &mut Command| {
        command.current_dir(session.path("")).env("OMPI_COMM_WORLD_RANK", "3");
        let output = command.output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        assert!(session.path(&expected).is_file(), "{command:?}: {:?}", files(&session.path("")));
        std::fs::remove_file(session.path(&expected)).expect("it is there");
    };
    let name = "r%r-%h-%%p.trg";
    run(Command::new(&program).arg("2").env("TREERING_OUTPUT", name));
    run(Command::new(treering()).args(["count", "-o", name, "--", "true"]));
    std::fs::write(session.path("a.folded"), "main 5\n").expect("the folder can be written");
    run(Command::new(treering()).args(["import", "a.folded", "-o", name]));
    // A rank that is none leads nowhere else.
    let mut command = Command::new(&program);
    command.arg("2").current_dir(session.path("")).env("PMI_RANK", "../1").env("TREERING_OUTPUT", "%r.trg");
    assert!(command.output().expect("it runs").status.success() && session.path("0.trg").is_file());
}

/// Each of them once replaced what another had written.
#[test]
fn runs_at_the_same_time_have_a_file_each() {
    let session = Session::new();
    let gate = session.path("go");
    let wait = format!("while ! test -e '{}'; do sleep 0.01; done", gate.display());
    let command = program(Path::new("sh"), &["-c", &wait]);
    let mut all = words(&["count", "-q", "-o", "out.trg", "--"]);
    all.extend(command);
    let mut running = Vec::new();
    for _ in 0..4 {
        running.push(session.command(&all).spawn().expect("treering runs"));
    }
    // The last of them has chosen its name by the time that its program runs.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let has_child = |process: u32| {
        let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        let children = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
        children.into_iter().any(|children| !children.is_empty())
    };
    while !running.iter().all(|run| has_child(run.id())) {
        assert!(std::time::Instant::now() < deadline, "all runs begin");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::fs::write(&gate, "").expect("the folder can be written");
    let mut said = String::new();
    for run in running {
        let output = run.wait_with_output().expect("it is our child");
        assert!(output.status.success(), "{output:?}");
        said += &String::from_utf8_lossy(&output.stderr);
    }
    let profiles = files(&session.path("")).into_iter().filter(|name| name.ends_with(".trg"));
    assert_eq!(profiles.count(), 4, "{:?}", files(&session.path("")));
    assert_eq!(
        said.matches("another run writes out.trg at the same time; this one writes out.").count(),
        3,
        "{said}"
    );
    // One after the other they take the name, and keep the one before.
    session.output(&["count", "-q", "-o", "out.trg", "--", "true"]);
    assert_eq!(files(&session.path("")).into_iter().filter(|name| name.ends_with(".trg")).count(), 4);
}
