//! Several writers at once, writers that are killed, damaged files, and folders that cannot be written.
#![expect(clippy::print_stderr, reason = "tests say what they skipped")]

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use treering_archive::{Archive, Error, Id, Manifest, Measured, Moment, Retention, Unit};

/// A run that differs from others by its number.
fn run(number: u64) -> Manifest {
    let samples = [("cpu".to_owned(), Measured { unit: Unit::Ns, values: vec![number as f64; 15] })];
    let started = Moment(1_000_000_000 * number);
    Manifest { program: "orders".to_owned(), started, samples: samples.into(), ..Manifest::default() }
}

fn profile(number: u64) -> Vec<u8> {
    // Large enough to be written in pieces.
    format!("profile {number}\n").repeat(20_000).into_bytes()
}

fn add(archive: &mut Archive, number: u64) -> Result<Id, Error> {
    archive.add_with_profiles(&run(number), &[(&profile(number), "a test")])
}

/// The files below a folder, as paths within it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(below) = folders.pop() {
        for entry in std::fs::read_dir(below).expect("a folder").flatten() {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path => found.push(path.strip_prefix(folder).expect("it is below").to_owned()),
            }
        }
    }
    found
}

fn files_in(folder: &Path, part: &str) -> Vec<PathBuf> {
    files(folder).into_iter().filter(|path| path.starts_with(part)).collect()
}

/// Checks that all runs that are listed are whole, with their profiles, and returns their numbers.
fn numbers(folder: &Path) -> BTreeSet<u64> {
    let mut archive = Archive::open_existing(folder).expect("an archive");
    assert_eq!(archive.problems().len(), 0, "{:?}", archive.problems());
    let summaries = archive.summaries(None).expect("it can be read");
    let listed = summaries.iter().map(|summary| {
        let manifest = archive.read(&summary.run).expect("a whole run");
        let number = summary.started.0 / 1_000_000_000;
        assert_eq!(manifest.samples["cpu"].values, [number as f64; 15]);
        let kept = archive.profile(&manifest.profiles[0]).expect("a whole profile");
        assert!(kept == profile(number));
        number
    });
    listed.collect()
}

const FOLDER: &str = "TREERING_ARCHIVE_OF_TEST";
const FIRST: &str = "TREERING_FIRST_OF_TEST";
const COUNT: &str = "TREERING_COUNT_OF_TEST";

/// Not a test of its own: the writer that the tests below start, as this program.
#[test]
fn writer() {
    let (Some(folder), Ok(first)) = (std::env::var_os(FOLDER), std::env::var(FIRST)) else { return };
    let mut archive = Archive::open(Path::new(&folder)).expect("an archive");
    let count = std::env::var(COUNT).map_or(usize::MAX, |count| count.parse().expect("a number"));
    for number in (first.parse().expect("a number")..).take(count) {
        add(&mut archive, number).expect("it can be written");
    }
}

fn start_writer(folder: &Path, first: u64) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "writer"]).env(FOLDER, folder).env(FIRST, first.to_string());
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts")
}

#[test]
fn a_killed_writer_leaves_nothing_half_and_loses_nothing() {
    const WRITERS: u64 = 8;
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().join("archive");
    let mut known = BTreeSet::new();
    for round in 0..WRITERS {
        // Two at once, of which each is killed after another number of files.
        let mut writers = [0, 500].map(|more| start_writer(&folder, 1000 * round + more));
        let goal = known.len() + 2 + round as usize;
        while !folder.join("runs").exists() || files_in(&folder, "runs").len() < goal {
            std::thread::yield_now();
        }
        for writer in &mut writers {
            writer.kill().expect("it runs");
            writer.wait().expect("it ends");
        }
        let manifests = files_in(&folder, "runs").len();
        let now = numbers(&folder);
        assert_eq!(now.len(), manifests, "everything is listed");
        assert!(now.is_superset(&known), "nothing is lost");
        known = now;
    }
    // A profile whose writer was killed before the manifest is no run.
    assert!(files_in(&folder, "profiles").len() >= known.len());
}

#[test]
fn writers_of_the_same_runs_make_each_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().join("archive");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut archive = Archive::open(&folder).expect("an archive");
                (0..10).for_each(|number| drop(add(&mut archive, number).expect("it is added")));
            });
        }
    });
    assert_eq!(numbers(&folder), (0..10).collect());
    assert_eq!((files_in(&folder, "runs").len(), files_in(&folder, "profiles").len()), (10, 10));
    assert_eq!(files_in(&folder, "incoming").len(), 0);
}

#[test]
fn a_missing_or_damaged_index_is_made_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut archive = Archive::open(folder.path()).expect("an empty folder becomes an archive");
    for number in 0..20 {
        add(&mut archive, number).expect("it is added");
    }
    drop(archive);
    let index = folder.path().join("index.sqlite");
    let whole = std::fs::read(&index).expect("an index");
    let at = |of: &[u8]| whole.windows(of.len()).position(|part| part == of).expect("it is there");
    let changed = |at: usize, to: u8| {
        let mut bytes = whole.clone();
        bytes[at] = to;
        bytes
    };
    // Digits of a median, of a time and of an identifier; a table's name.
    let digit = changed(at(b"\"median\":1") + 9, b'7');
    let damages: [(&str, Vec<u8>); 7] = [
        ("empty", Vec::new()),
        ("cut short", whole[..whole.len() / 2].to_vec()),
        ("no database", b"not a database".repeat(1000)),
        ("zeros", vec![0; whole.len()]),
        ("another number", digit),
        ("another program", changed(at(b"\"program\":\"orders\"") + 11, b'x')),
        ("another table", changed(at(b"CREATE TABLE run") + 13, b'x')),
    ];
    for (damage, bytes) in damages {
        std::fs::write(&index, bytes).expect("it can be written");
        assert_eq!(numbers(folder.path()), (0..20).collect(), "{damage}");
        let mut archive = Archive::open(folder.path()).expect("an archive");
        let summaries = archive.summaries(Some(3)).expect("a list");
        let listed: Vec<_> =
            summaries.iter().map(|of| (of.metrics["cpu"].median, of.program.as_str())).collect();
        assert_eq!(listed, [(19.0, "orders"), (18.0, "orders"), (17.0, "orders")], "{damage}");
    }
    std::fs::remove_file(&index).expect("it is there");
    assert_eq!(numbers(folder.path()), (0..20).collect());
    // A folder in its place cannot be replaced; the list is as good.
    std::fs::remove_file(&index).expect("it was made again");
    std::fs::create_dir(&index).expect("it can be made");
    assert_eq!(numbers(folder.path()), (0..20).collect());
}

#[test]
fn runs_that_are_copied_or_removed_by_hand_are_listed_as_they_are() {
    let [from, to] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let mut archive = Archive::open(from.path()).expect("an archive");
    let mut other = Archive::open(to.path()).expect("an archive");
    let ids = [1, 2].map(|number| add(&mut archive, number).expect("it is added"));
    add(&mut other, 3).expect("it is added");
    for path in
        files(from.path()).iter().filter(|path| path.starts_with("runs") || path.starts_with("profiles"))
    {
        std::fs::create_dir_all(to.path().join(path.parent().expect("a folder"))).expect("it can be made");
        std::fs::copy(from.path().join(path), to.path().join(path)).expect("it can be copied");
    }
    assert_eq!(numbers(to.path()), BTreeSet::from([1, 2, 3]));
    let manifest = |id: &Id| to.path().join(format!("runs/{}/{id}.json", &id.as_str()[..2]));
    std::fs::remove_file(manifest(&ids[0])).expect("it is there");
    assert_eq!(numbers(to.path()), BTreeSet::from([2, 3]));
    assert_eq!(other.find(&ids[1].as_str()[..9]).expect("it is there"), ids[1]);
    assert!(matches!(other.find(ids[0].as_str()), Err(Error::NoRun(_))));
    assert!(matches!(other.find(""), Err(Error::NoRun(_))));
    // Files of others are left alone.
    std::fs::write(to.path().join("runs/README"), "notes").expect("it can be written");
    std::fs::write(manifest(&ids[1]).with_extension("json~"), "a backup").expect("it can be written");
    assert_eq!(numbers(to.path()), BTreeSet::from([2, 3]));
}

#[test]
fn a_changed_manifest_and_a_newer_one_are_named_and_not_listed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut archive = Archive::open(folder.path()).expect("an archive");
    let [first, second] = [1, 2].map(|number| add(&mut archive, number).expect("it is added"));
    drop(archive);
    let path = |id: &Id| folder.path().join(format!("runs/{}/{id}.json", &id.as_str()[..2]));
    let text = std::fs::read_to_string(path(&first)).expect("it is there");
    // A run of a newer version has the name of its content too.
    let newer =
        text.replace("\"treering_run\": 1", "\"treering_run\": 2").replace("\"samples\"", "\"shards\"");
    let id = Id::of(newer.as_bytes());
    std::fs::create_dir_all(path(&id).parent().expect("a folder")).expect("it can be made");
    std::fs::write(path(&id), newer).expect("it can be written");
    let archive = Archive::open(folder.path()).expect("an archive");
    let problems: Vec<String> = archive.problems().iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 1);
    assert!(problems[0].contains(id.as_str()), "{problems:?}");
    assert!(problems[0].ends_with("a newer treering wrote it: its format is 2, and this one reads up to 1"));
    // The list knows the run from before; reading it tells.
    replace(&path(&second), "{}");
    let wrong = archive.read(&second).expect_err("it is damaged");
    assert!(wrong.to_string().ends_with("is damaged: its content is not what its name says"), "{wrong}");
    // Without the index, damaged ones are named.
    std::fs::remove_file(folder.path().join("index.sqlite")).expect("it is there");
    let mut archive = Archive::open(folder.path()).expect("an archive");
    assert_eq!((archive.problems().len(), archive.summaries(None).expect("a list").len()), (2, 1));
    // A manifest that cannot be read may name any profile, so none is removed.
    let before = files_in(folder.path(), "profiles").len();
    archive.collect(Retention::default(), false).expect("it can be changed");
    assert_eq!(files_in(folder.path(), "profiles").len(), before);
    // The run added again is whole again.
    add(&mut archive, 2).expect("it is added");
    assert_eq!(archive.read(&second).expect("it is whole").started, run(2).started);
}

fn replace(path: &Path, text: &str) {
    std::fs::remove_file(path).expect("it is there");
    std::fs::write(path, text).expect("it can be written");
}

#[test]
fn a_newer_archive_and_a_folder_of_other_files_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = |result: Result<Archive, Error>| result.expect_err("it is refused").to_string();
    let missing = text(Archive::open_existing(&folder.path().join("none")));
    assert!(missing.starts_with("there is no archive") && missing.ends_with("/none"), "{missing}");
    std::fs::write(folder.path().join("letter.txt"), "dear").expect("it can be written");
    assert!(text(Archive::open(folder.path())).ends_with("is no archive of runs, and is not empty"));
    assert_eq!(files(folder.path()), [Path::new("letter.txt")]);
    let newer = folder.path().join("newer");
    drop(Archive::open(&newer).expect("a new one"));
    replace(&newer.join("treering-archive.json"), "{\"treering_archive\":2}\n");
    assert!(text(Archive::open(&newer)).contains("treering-archive.json: a newer treering wrote it"));
    replace(&newer.join("treering-archive.json"), "{\"tree");
    assert!(text(Archive::open(&newer)).contains("treering-archive.json is damaged: "));
}

#[test]
fn files_are_read_by_others_only_if_the_folder_is() {
    let folder = tempfile::tempdir().expect("a folder");
    for (mode, expected) in [(0o700, 0o400), (0o755, 0o444), (0o750, 0o440)] {
        let path = folder.path().join(format!("{mode:o}"));
        std::fs::create_dir(&path).expect("it can be made");
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).expect("its mode can be set");
        add(&mut Archive::open(&path).expect("an archive"), 1).expect("it is added");
        for part in ["runs", "profiles"] {
            let file = path.join(&files_in(&path, part)[0]);
            assert_eq!(file.metadata().expect("it is there").mode() & 0o777, expected, "{part} in {mode:o}");
        }
    }
}

#[test]
fn all_members_of_a_group_add_to_the_folder_that_they_share() {
    const GROUP: u32 = 54_321;
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("its mode can be set");
    let shared = folder.path().join("shared");
    std::fs::create_dir(&shared).expect("it can be made");
    if std::os::unix::fs::chown(&shared, None, Some(GROUP)).is_err() {
        return eprintln!("skipped: only root can act as two users");
    }
    std::fs::set_permissions(&shared, Permissions::from_mode(0o2770)).expect("its mode can be set");
    // Where any user may start it.
    let program = folder.path().join("member");
    std::fs::copy(std::env::current_exe().expect("this program"), &program).expect("it can be copied");
    for (user, first) in [(54_001, 0), (54_002, 20), (54_003, 40)] {
        let mut command = Command::new(&program);
        command.args(["--exact", "writer"]).env(FOLDER, &shared);
        command.env(FIRST, first.to_string()).env(COUNT, "20");
        std::os::unix::process::CommandExt::uid(&mut command, user);
        std::os::unix::process::CommandExt::gid(&mut command, GROUP);
        let outcome = command.current_dir("/").output().expect("it starts");
        assert!(outcome.status.success(), "{}", String::from_utf8_lossy(&outcome.stdout));
    }
    assert_eq!(numbers(&shared), (0..60).collect());
}

#[test]
fn files_that_no_run_needs_are_removed_when_they_are_old() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut archive = Archive::open(folder.path()).expect("an archive");
    for number in 1..=4 {
        add(&mut archive, number).expect("it is added");
    }
    let mut input = archive.new_input().expect("a file");
    std::io::Write::write_all(&mut input, b"automaton").expect("it can be written");
    let (id, path) = archive.keep_input("gen 10 > {input}", &input).expect("it is kept");
    drop(input);
    assert_eq!(archive.input_of("gen 10 > {input}").expect("it is sound"), Some((id.clone(), path.clone())));
    assert_eq!(archive.input_of("gen 11 > {input}").expect("there is none"), None);
    let all = files(folder.path()).len();
    let nothing = archive.collect(Retention::default(), false).expect("it can be changed");
    assert_eq!((nothing.runs.len(), nothing.files, files(folder.path()).len()), (0, 0, all));
    let keep = Retention { last: Some(1), since: Some(Moment(3_000_000_000)) };
    let planned = archive.collect(keep, true).expect("it can be read");
    assert_eq!((planned.runs.len(), planned.files, files(folder.path()).len()), (2, 2, all));
    assert_eq!(archive.collect(keep, false).expect("it can be changed"), planned);
    assert_eq!(numbers(folder.path()), BTreeSet::from([3, 4]));
    let keep = Retention { last: Some(1), since: None };
    assert_eq!(archive.collect(keep, false).expect("it can be changed").runs.len(), 1);
    assert_eq!(numbers(folder.path()), BTreeSet::from([4]));
    // Long after, what killed writers left is removed, and an input that no run had.
    let left = folder.path().join("incoming/left");
    std::fs::write(&left, "half").expect("it can be written");
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(90_000);
    let old = |path: &Path| {
        std::fs::set_permissions(path, Permissions::from_mode(0o600)).expect("its mode can be set");
        let file = std::fs::OpenOptions::new().write(true).open(path).expect("it is there");
        file.set_modified(long_ago).expect("its time can be set");
    };
    old(&left);
    old(&path);
    archive.collect(Retention::default(), false).expect("it can be changed");
    assert!(!left.exists() && !path.exists());
    assert_eq!(archive.input_of("gen 10 > {input}").expect("there is none"), None);
    assert_eq!(numbers(folder.path()), BTreeSet::from([4]));
}

/// A small file system in memory, which only root can make.
struct Small(tempfile::TempDir);

impl Small {
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().ok()?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=2m,mode=755", "tmpfs"]).arg(folder.path());
        let mounted = mount.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        mounted.then_some(Self(folder))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_lists_nothing_half_and_loses_nothing() {
    let Some(small) = Small::mount() else {
        return eprintln!("skipped: only root can mount a small file system");
    };
    let folder = small.0.path().join("archive");
    let mut archive = Archive::open(&folder).expect("an archive");
    let mut added = 0;
    let refused = loop {
        match add(&mut archive, added) {
            Ok(_) => added += 1,
            Err(error) => break error.to_string(),
        }
    };
    assert!(added > 0 && refused.ends_with(": No space left on device (os error 28)"), "{refused}");
    drop(archive);
    assert_eq!(numbers(&folder), (0..added).collect());
    // With no room for an index either.
    std::fs::remove_file(folder.join("index.sqlite")).expect("it is there");
    let mut filler = std::fs::File::create(small.0.path().join("filler")).expect("it can be made");
    let fill = |filler: &mut std::fs::File| while std::io::Write::write_all(filler, &[1; 512]).is_ok() {};
    fill(&mut filler);
    assert_eq!(numbers(&folder), (0..added).collect());
    // With room for a manifest, but at first not for a change of the index as well, a run that was added is listed.
    filler.set_len(0).expect("it becomes shorter");
    let mut archive = Archive::open(&folder).expect("an archive");
    std::io::Seek::rewind(&mut filler).expect("a file");
    fill(&mut filler);
    let mut listed = added;
    while filler.metadata().is_ok_and(|filler| filler.len() > 4096) {
        let length = filler.metadata().expect("it is there").len();
        filler.set_len(length - 4096).expect("it becomes shorter");
        listed += u64::from(archive.add(&run(listed)).is_ok());
        assert_eq!(archive.summaries(None).expect("a list").len() as u64, listed);
        assert_eq!(archive.count().expect("a number") as u64, listed);
    }
    assert!(listed > added, "no run had room");
}
