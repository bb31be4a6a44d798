//! Measures how fast random addresses of a binary are resolved.
//!
//! `cargo run --release -p treering-symbols --example symbolise_speed -- FILE N [DEBUG_DIRECTORY]`
//! takes N addresses of the file's executable segments, evenly spread at random with a fixed
//! seed, and prints the time to symbolise a profile of them with and without inlined functions.
//! Separate debug files are looked for in `/usr/lib/debug` or the directory given.
#![allow(clippy::print_stdout, reason = "it is a program")]

use std::path::{Path, PathBuf};
use std::time::Instant;

use treering_profile::{
    Frame, Function, Metric, MetricId, Module, ModuleKind, NodeId, Profile, RecursionRule, StatedAddress,
    Unit,
};
use treering_symbols::{Options, segment_map, symbolise};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: symbolise_speed FILE N [DEBUG_DIRECTORY]";
    let file = arguments.next().ok_or(usage)?;
    let count: usize = arguments.next().ok_or(usage)?.parse()?;
    let directories: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    let profile = random_profile(&file, count)?;
    for inlines in [true, false] {
        let mut options = Options { inlines, ..Options::default() };
        if !directories.is_empty() {
            options.debug_directories.clone_from(&directories);
        }
        measure(&profile, &options);
    }
    Ok(())
}

fn measure(profile: &Profile, options: &Options<'_>) {
    let mut fastest = f64::INFINITY;
    let mut last = None;
    for _ in 0..3 {
        let start = Instant::now();
        last = Some(symbolise(profile, options, &mut |_| {}));
        fastest = fastest.min(start.elapsed().as_secs_f64());
    }
    let Some(symbolised) = last else { return };
    let report = &symbolised.modules[0];
    let inlines = if options.inlines { "with" } else { "without" };
    let per_second = report.addresses as f64 / fastest;
    println!("{inlines} inlined functions: {fastest:.3} s, {per_second:.0} addresses/s (fastest of 3)");
    println!(
        "  {} addresses, {} named, {} with a line, {} nodes, {} functions, debug file {:?}",
        report.addresses,
        report.named,
        report.with_line,
        symbolised.profile.tree.len(),
        symbolised.profile.functions.len(),
        report.debug_file.as_deref().unwrap_or(Path::new("none")),
    );
    for problem in &report.problems {
        println!("  {problem}");
    }
    if std::env::var_os("SHOW").is_some() {
        for node in symbolised.profile.tree.nodes().take(60) {
            show(&symbolised.profile, node);
        }
    }
}

fn show(profile: &Profile, node: NodeId) {
    let function = &profile.functions[profile.tree.function(node)];
    let cost = profile.tree.self_cost(MetricId::new(0), node);
    println!(
        "  {cost} {:?} {} {}:{}",
        function.kind, &profile.strings[function.name], &profile.strings[function.file], function.line
    );
}

fn random_profile(file: &str, count: usize) -> Result<Profile, Box<dyn std::error::Error>> {
    let segments = segment_map(Path::new(file))?;
    let code: Vec<_> = segments.segments().iter().filter(|segment| segment.executable).collect();
    let total: u64 = code.iter().map(|segment| segment.file_size).sum();
    let mut random = fastrand::Rng::with_seed(1);
    let mut profile = Profile::new(RecursionRule::Full);
    let samples = profile.add_metric(Metric::exact("samples", Unit::Count));
    let thread = profile.add_single_thread(file);
    let path = profile.strings.intern(&std::fs::canonicalize(file)?.to_string_lossy());
    let module = Module { path, build_id: Box::default(), kind: ModuleKind::Elf };
    let module = profile.modules.intern(module);
    for _ in 0..count {
        let mut at = random.u64(..total);
        for segment in &code {
            if at < segment.file_size {
                let address = StatedAddress(segment.stated_address.0 + at);
                let function = profile.functions.intern(Function::at_address(Some(module), address));
                profile.add_stack(thread, &[Frame::new(function)], None, &[(samples, 1)]);
                break;
            }
            at -= segment.file_size;
        }
    }
    Ok(profile)
}
