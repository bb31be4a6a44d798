//! Texts of the source files that matter to a profile.

use std::collections::HashMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use treering_profile::{MetricId, Profile, Source, StringId};

use crate::Options;
use crate::regular_file::open_regular;

/// Adds the texts of files whose lines have costs or call sites, dearest first, up to the limit.
/// Only what is an ordinary file and valid UTF-8 is taken, and only whole.
pub(crate) fn embed(profile: &mut Profile, options: &Options<'_>) {
    let mut files: Vec<(StringId, u64)> = cost_by_file(profile).into_iter().collect();
    files.sort_by_key(|&(file, cost)| (std::cmp::Reverse(cost), file));
    let mut left = options.source_limit;
    for (file, _) in files {
        if profile.sources.iter().any(|known| known.file == file) {
            continue;
        }
        if let Some(text) = read(&profile.strings[file], options, left) {
            left -= text.len();
            profile.sources.push(Source { file, text: text.into() });
        }
    }
}

/// The costs of each file's lines in the first metric, with those of the calls from them.
fn cost_by_file(profile: &Profile) -> HashMap<StringId, u64> {
    let mut costs: HashMap<StringId, u64> = HashMap::new();
    if profile.metrics.is_empty() {
        return costs;
    }
    let metric = MetricId::new(0);
    let mut add = |file: StringId, cost: u64| {
        let known = costs.entry(file).or_default();
        *known = known.saturating_add(cost);
    };
    for cost in &profile.line_costs {
        add(profile.lines[cost.line].file, if cost.metric == metric { cost.cost } else { 0 });
    }
    let totals = profile.tree.total_costs(metric);
    for node in profile.tree.nodes() {
        if let Some(line) = profile.tree.call_site(node) {
            add(profile.lines[line].file, totals[node.index()]);
        }
    }
    costs
}

/// The text of a file of at most `limit` bytes.
fn read(path: &str, options: &Options<'_>, limit: usize) -> Option<String> {
    let places = (options.open)(Path::new(path)).into_iter().chain(rust_library(path, &options.rust_sources));
    places.into_iter().find_map(|path| {
        let file = open_regular(&path).ok()?;
        let mut text = String::new();
        file.take(limit as u64 + 1).read_to_string(&mut text).ok()?;
        (text.len() <= limit).then_some(text)
    })
}

/// Where a file of the Rust library lies, whose compiled path is `/rustc/HASH/library/...`.
fn rust_library(path: &str, directories: &[PathBuf]) -> Option<PathBuf> {
    let (hash, inner) = path.strip_prefix("/rustc/")?.split_once('/')?;
    let of_release = |directory: &&PathBuf| is_release(directory, hash);
    let paths = directories.iter().filter(of_release).map(|directory| directory.join(inner));
    paths.into_iter().find(|path| path.is_file())
}

/// Whether the sources below `lib/rustlib/src/rust` are those of a release; rustup leaves the
/// release's hash in a manifest beside them. Where there is none, they are taken to be.
fn is_release(directory: &Path, hash: &str) -> bool {
    let manifest = directory.join("../../multirust-channel-manifest.toml");
    std::fs::read_to_string(manifest).map_or(true, |manifest| manifest.contains(hash))
}

/// The directories with the sources of the Rust library of all toolchains below `toolchains`,
/// which is `~/.rustup/toolchains` with rustup; for [`Options::rust_sources`].
pub fn rust_sources(toolchains: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(toolchains).into_iter().flatten().flatten();
    let sources = entries.map(|toolchain| toolchain.path().join("lib/rustlib/src/rust"));
    let mut sources: Vec<_> = sources.filter(|directory| directory.join("library").is_dir()).collect();
    sources.sort();
    sources
}
