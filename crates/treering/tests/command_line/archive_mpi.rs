//! `treering archive` under `mpirun`: every rank adds its profile, and the slow one is found.

use std::path::{Path, PathBuf};
use std::process::Command;

use treering_testing::programs::installed;

use crate::archive::{add, costs, folded, listed, of_kept};
use crate::archive_query::{asked, engines};
use crate::session::{Outcome, Session, treering};
use crate::skip;

const RANKS: u64 = 8;

const STRAGGLER: u64 = 5;

/// The program, and `mpirun`; nothing if they are not there, which is said.
fn program(session: &Session) -> Option<(PathBuf, PathBuf)> {
    let (Some(mpicc), Some(mpirun)) = (installed("mpicc"), installed("mpirun")) else {
        skip("mpicc or mpirun is not installed (Debian: libopenmpi-dev openmpi-bin)");
        return None;
    };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command_line/programs/straggler.c");
    let program = session.path("straggler");
    let made = Command::new(mpicc).args(["-O2", "-g", "-o"]).arg(&program).arg(source).output();
    let made = made.expect("mpicc runs");
    if !made.status.success() && String::from_utf8_lossy(&made.stderr).contains("mpi.h: No such file") {
        skip("the headers of MPI are not installed (Debian: libopenmpi-dev)");
        return None;
    }
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Some((program, mpirun))
}

#[test]
fn every_rank_of_mpirun_adds_its_profile_and_the_straggler_is_named() {
    let session = Session::new();
    let Some((program, mpirun)) = program(&session) else { return };
    // A folder that is an archive; the ranks need no option beyond it.
    folded(&session, "other.folded", 1);
    add(&session, &["--project", "other"], &["other.folded"]);
    let mut command = Command::new(mpirun);
    command.args(["--oversubscribe", "-n", &RANKS.to_string()]).arg(treering());
    command.args(["record", "-q", "-o", "kept", "--"]).arg(program).arg(STRAGGLER.to_string());
    // It refuses to be run by root otherwise, as in containers.
    command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    command.env("XDG_CACHE_HOME", session.path("cache")).current_dir(session.path("."));
    let outcome = Outcome::of(command.output().expect("mpirun runs"));
    assert!(outcome.status.success(), "{outcome:#?}");

    for rank in 0..RANKS {
        assert_eq!(
            listed(&session, &format!("project = 'straggler' and rank = {rank} and host <> ''")).len(),
            1
        );
    }
    assert_eq!(listed(&session, "project = 'straggler'").len(), RANKS as usize);
    let relax = |condition: &str| {
        let shown = of_kept(&session, "flat", &["--where", condition, "--", "--json", "--min", "0"]);
        let found = costs(&shown.stdout).into_iter().find(|(name, ..)| name == "relax");
        found.map_or(0, |(_, own, _)| own)
    };
    let slow = relax(&format!("rank = {STRAGGLER}"));
    let others = relax(&format!("project = 'straggler' and rank <> {STRAGGLER}"));
    assert!(slow as f64 > 1.5 * others as f64 / (RANKS - 1) as f64, "{slow} {others}");

    of_kept(&session, "compact", &[]);
    for engine in engines() {
        let rows = asked(&session, engine, &["--named", "imbalance", "--project", "straggler"]);
        let first = rows.first().expect("a row");
        assert_eq!(first["name"], "\"relax\"", "{rows:#?}");
        assert_eq!(first["slowest_rank"], STRAGGLER.to_string(), "{rows:#?}");
    }
}
