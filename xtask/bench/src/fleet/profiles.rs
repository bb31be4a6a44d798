//! Profiles of a fleet: recordings of programs of Debian, from each of which many are drawn as sampling draws them.

use std::path::{Path, PathBuf};

use fastrand::Rng;
use treering_formats::trg;
use treering_profile::{NodeId, Profile};

use crate::frame::Bench;
use crate::measure::{profile, succeed};

/// Commands of a shell that take half a second or so. `text` is a file of lines with numbers.
const PROGRAMS: [&str; 24] = [
    "sort -R text",
    "sort -n -k2 text",
    "gzip -c text",
    "bzip2 -c text",
    "xz -0 -c text",
    "awk '{ n[$2 % 997] += $3 } END { for (k in n) print k, n[k] }' text text",
    "sed -E 's/([0-9]+) ([0-9]+)/\\2 \\1/' text",
    "grep -c -E '(17|71)+.*4{2}' text",
    "perl -ne '@w = split; $h{$w[1]} .= $w[2]; END { print scalar keys %h }' text",
    "/usr/bin/python3 -c 'import collections; print(len(collections.Counter(open(\"text\").read().split())))'",
    "/usr/bin/python3 -c 'import json; print(len(json.dumps([list(range(300))] * 3000)))'",
    "sqlite3 :memory: 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 900000) SELECT sum(x % 7) FROM c'",
    "bc -l <<< 'scale=1500; a(1)'",
    "sha256sum text text text text text text text text",
    "md5sum text text text text text text text text text text",
    "cksum text text text text text text text text",
    "base64 text",
    "od -x text",
    "tac text text text text",
    "wc -w text text text",
    "factor 1000000016000000063 1000000000000000003 999999999999999989",
    "cut -d' ' -f2 text",
    "find /usr/share /usr/lib -name '*.no-such-ending'",
    "gcc -x c -O2 -c -o /dev/null program.c",
];

/// The number of recordings of each program.
const RECORDINGS: usize = 2;

/// Hosts of the fleet. One in a hundred has a planted fault.
const HOSTS: usize = 500;

/// Days over which the runs are spread.
pub(super) const DAYS: usize = 28;

/// 2026-10-01, in nanoseconds since the Unix epoch.
const FIRST_DAY: u64 = 1_790_812_800_000_000_000;

/// Whether a host has the planted fault.
pub(super) fn is_bad(host: &str) -> bool {
    host.ends_with("37")
}

/// A number of samples where so many are expected: from the distribution of Poisson.
fn poisson(random: &mut Rng, expected: f64) -> u64 {
    // In parts, as the power of e becomes too small to be held.
    let (mut left, mut count) = (expected, 0);
    while left > 0.0 {
        let part = left.min(200.0);
        left -= part;
        let limit = (-part).exp();
        let mut product = random.f64();
        while product > limit {
            count += 1;
            product *= random.f64();
        }
    }
    count
}

/// Records every program. Returns the profiles of each, without what the tables leave out.
pub(super) fn record(bench: &Bench, folder: &Path) -> Result<Vec<Vec<Profile>>, String> {
    let mut random = Rng::with_seed(1);
    let lines: String =
        (0..120_000).map(|at| format!("{at} {} {}\n", random.u32(..99_999), random.u64(..))).collect();
    let program: String = (0..600)
        .map(|at| {
            format!(
                "int f{at}(int x) {{ int s = 0; for (int i = 0; i < x; i++) s += i * {at} ^ s; return s; }}\n"
            )
        })
        .collect();
    for (name, text) in [("text", lines), ("program.c", program)] {
        std::fs::write(folder.join(name), text).map_err(|error| format!("cannot write {name}: {error}"))?;
    }
    let mut recorded = Vec::new();
    for (at, program) in PROGRAMS.iter().enumerate() {
        let mut profiles = Vec::new();
        for recording in 0..RECORDINGS {
            let file = folder.join(format!("recorded-{at}-{recording}.trg"));
            let mut command = bench.command("treering record --quiet --force --no-time -o");
            command.arg(&file).args(["--", "bash", "-c", &format!("exec {program}")]).current_dir(folder);
            if let Err(error) = succeed(&mut command) {
                eprintln!("note: a program is left out: {error}");
                break;
            }
            profiles.extend(plain(profile(&file)?));
        }
        recorded.extend((!profiles.is_empty()).then_some(profiles));
    }
    if recorded.len() < 5 {
        return Err(format!("only {} programs could be recorded", recorded.len()));
    }
    Ok(recorded)
}

/// A profile of samples that weigh the same, without lines, addresses and times; nothing for others.
fn plain(mut profile: Profile) -> Option<Profile> {
    profile.line_costs.clear();
    profile.address_costs.clear();
    profile.sources.clear();
    profile.points.clear();
    profile.timeline = None;
    let counter = profile.metrics.first()?.counted_by()?;
    let is_plain = profile.metrics.len() == 2 && counter.index() == 1 && profile.run_cost(counter) >= 50;
    is_plain.then_some(profile)
}

/// A file of the fleet.
pub(super) struct Drawn {
    pub(super) path: PathBuf,
    /// The version of the program.
    pub(super) version: &'static str,
}

/// Writes so many profiles, in the order of their days.
pub(super) fn draw(recorded: &[Vec<Profile>], number: usize, folder: &Path) -> Result<Vec<Drawn>, String> {
    let mut random = Rng::with_seed(2);
    let mut files = Vec::with_capacity(number);
    for at in 0..number {
        let (program, of_program) = (at % recorded.len(), at / recorded.len());
        let base = &recorded[program][of_program % recorded[program].len()];
        let host = format!("h{:03}", of_program % HOSTS);
        let profile = drawn(base, at, number, &host, &mut random);
        let path = folder.join(format!("{at:06}.trg"));
        let mut content = Vec::new();
        trg::write(&profile, &mut content).map_err(|error| format!("{}: {error}", path.display()))?;
        std::fs::write(&path, content).map_err(|error| format!("{}: {error}", path.display()))?;
        files.push(Drawn { path, version: if at < number / 2 { "1.0" } else { "1.1" } });
    }
    Ok(files)
}

/// One profile, drawn from a recorded one: each stack has as many samples as sampling it again might give. Of stacks with
/// one sample, every other one is another stack that is as rare.
fn drawn(base: &Profile, at: usize, number: usize, host: &str, random: &mut Rng) -> Profile {
    let mut profile = base.clone();
    let nodes = profile.tree.len();
    let metrics: Vec<_> = profile.metrics().map(|(id, _)| id).collect();
    let [cost, samples] = metrics[..] else { unreachable!("`plain` has let two metrics through") };
    let counted = base.tree.self_costs(samples).to_vec();
    let period = base.run_cost(cost) / base.run_cost(samples).max(1);
    let hottest = (0..nodes).max_by_key(|&node| counted[node]).unwrap_or(0);
    let mut of_node = vec![0; nodes];
    for (node, &count) in counted.iter().enumerate().filter(|(_, count)| **count > 0) {
        let fault = if node == hottest && is_bad(host) { 3.0 } else { 1.0 };
        let drawn = poisson(random, count as f64 * fault);
        let place = match count {
            1 if random.bool() => rare(&mut profile, nodes, random.u64(..4000)),
            _ => node,
        };
        of_node.resize(of_node.len().max(place + 1), 0);
        of_node[place] += drawn;
    }
    profile.tree.set_self_costs(cost, of_node.iter().map(|count| count * period).collect());
    profile.metadata.losses.samples = of_node.iter().sum();
    profile.tree.set_self_costs(samples, of_node);
    profile.metadata.machine.insert("host".to_owned(), host.to_owned());
    let day = (at * DAYS / number) as u64;
    for run in &mut profile.runs {
        // The project is named after the command, which was a shell's.
        let words = run.command.last().and_then(|script| script.strip_prefix("exec "));
        run.command = words.into_iter().flat_map(str::split_whitespace).map(str::to_owned).collect();
        // No two runs begin at once.
        run.start_unix_ns = FIRST_DAY + day * 86_400_000_000_000 + at as u64 * 1_000_000;
    }
    profile
}

/// One of a program's rare stacks: a stack of the recording with one more call, of a function of the recording.
fn rare(profile: &mut Profile, nodes: usize, number: u64) -> usize {
    let mut random = Rng::with_seed(number);
    let above = NodeId::from_usize(random.usize(..nodes));
    let function = profile.tree.function(NodeId::from_usize(1 + random.usize(..nodes - 1)));
    profile.tree.child(above, function, None).index()
}
