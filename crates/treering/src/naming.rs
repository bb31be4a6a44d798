//! Gives the addresses of a recording their names, with progress on a terminal.

use std::collections::HashMap;
use std::fs::File;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use treering_perf::JitProcess;
use treering_profile::{FunctionKind, ModuleId, ModuleKind, Profile};
use treering_recover::{KnownInstructions, recover};
use treering_symbols::{CodeReader, Options, Progress, Symbolised, rust_sources, symbolise_owned};

use crate::cache;
use crate::generated_names::{self, descriptor_path};
use crate::kernel_symbols::kernel_symbols;

/// Parts of the profile to look up besides names.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Frames for inlined functions.
    pub inlines: bool,
    /// The texts of source files.
    pub sources: bool,
    /// The costs of each address; not where addresses stand for whole functions.
    pub addresses: bool,
}

/// Sources of names that only the recorder can reach.
#[derive(Debug, Default)]
pub struct Reachable {
    /// Files whose paths do not lead to them from here; nothing for those that are gone.
    pub hidden_files: HashMap<PathBuf, Option<File>>,
    /// Processes with generated code.
    pub jit: Vec<JitProcess>,
    /// The instructions of translated blocks.
    pub instructions: KnownInstructions,
}

/// Gives the addresses of a recording their names, from the files of this machine. Translated
/// blocks become basic blocks first.
pub fn name_functions(mut profile: Profile, reachable: Reachable, wanted: Wanted) -> Symbolised {
    let jit = generated_names::tables(&mut profile, &reachable.jit);
    let open = |path: &Path| match reachable.hidden_files.get(path) {
        Some(file) => file.as_ref().map(descriptor_path),
        None => Some(path.to_owned()),
    };
    let sections = cache::folder("debug");
    let options = Options {
        inlines: wanted.inlines,
        // Lines of counted code can be added later on, when the profile is read. Those of modelled code
        // cannot: it has lines of its own.
        separate_lines: !wanted.inlines
            || !profile.code.modelled.is_empty()
            || profile.code.translated.is_empty(),
        sources: wanted.sources,
        exact_addresses: wanted.addresses,
        open: &open,
        kallsyms: Some(kernel_addresses(&profile))
            .filter(|all| !all.is_empty())
            .and_then(|all| kernel_symbols(&all)),
        jit,
        debuginfod_caches: cache::debuginfod(),
        cache: sections.as_ref(),
        rust_sources: toolchains()
            .filter(|_| wanted.sources)
            .map(|path| rust_sources(&path))
            .unwrap_or_default(),
        ..Options::default()
    };
    recover_blocks(&mut profile, reachable.instructions, &options);
    let mut bar = Bar::new();
    let symbolised = symbolise_owned(profile, &options, &mut |progress| bar.show(&progress));
    bar.clear();
    symbolised
}

/// Gives counted code the lines in debug information apart from its binaries, which [`name_functions`] does not read.
pub fn add_lines(profile: &mut Profile) {
    add_lines_to_all(&mut [profile]);
}

/// The same for several profiles, which mostly are of the same modules.
pub fn add_lines_to_all(profiles: &mut [&mut Profile]) {
    treering_symbols::add_lines_to_all(profiles, &Options::default());
}

/// Makes basic blocks of translated ones, if there are any.
fn recover_blocks(profile: &mut Profile, known: KnownInstructions, options: &Options<'_>) {
    if profile.code.translated.is_empty() {
        return;
    }
    let executed = profile.code.translated_instructions();
    let mut reader = CodeReader::new(profile, options);
    let found = recover(&mut profile.code, known, &mut |at, length| reader.read(at, length));
    let mut note = |count: usize, what: &str| {
        if count > 0 {
            profile.metadata.note(format!("{count} {what}"));
        }
    };
    note(
        found.unreadable_blocks,
        "blocks of code could not be read again, so their instructions are not shown one by one",
    );
    note(found.negative_counts, "counts of instructions contradict each other and were taken as 0");
    let missing = executed.saturating_sub(profile.code.block_instructions());
    if missing > 0 {
        let text = "instructions are missing: their code contradicts other code that ran at the same place";
        profile.metadata.note(format!("{missing} {text}"));
    }
}

/// Whether functions of the profile still are addresses or its blocks are as they were translated,
/// as after a recording that was cut short.
pub fn needs_names(profile: &Profile) -> bool {
    let named =
        profile.code.blocks.is_empty() || profile.code.blocks.iter().any(|block| block.function.is_some());
    if !profile.code.translated.is_empty() || !named {
        return true;
    }
    profile.functions.entries().iter().any(|function| function.kind == FunctionKind::Address)
}

/// Where rustup keeps its toolchains, which may hold the sources of the Rust library.
fn toolchains() -> Option<PathBuf> {
    static SAID: std::sync::Once = std::sync::Once::new();
    let home = cache::directory_named_by("RUSTUP_HOME", &SAID);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".rustup")));
    home.map(|home| home.join("toolchains"))
}

/// The addresses in the kernel that have no names yet, in order.
fn kernel_addresses(profile: &Profile) -> Vec<u64> {
    let kernel = |module: Option<ModuleId>| {
        module.is_some_and(|module| profile.modules[module].kind == ModuleKind::Kernel)
    };
    let functions = profile.functions.entries().iter();
    let nameless =
        functions.filter(|function| function.kind == FunctionKind::Address && kernel(function.module));
    let mut addresses: Vec<u64> = nameless.filter_map(|function| Some(function.address?.0)).collect();
    addresses.sort_unstable();
    addresses
}

/// A bar that shows how far naming is, on a terminal and only when it takes a while.
struct Bar {
    bar: ProgressBar,
    started: Instant,
}

/// Shorter work shows no progress.
const PATIENCE: Duration = Duration::from_millis(300);

impl Bar {
    fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        Self { bar, started: Instant::now() }
    }

    fn show(&mut self, progress: &Progress) {
        let shown = !self.bar.is_hidden();
        if !shown && self.started.elapsed() > PATIENCE && std::io::stderr().is_terminal() {
            let look = "finding names {wide_bar} {pos}/{len} {msg}";
            self.bar.set_style(
                ProgressStyle::with_template(look).unwrap_or_else(|_| ProgressStyle::default_bar()),
            );
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        let module = progress.module.rsplit('/').next().unwrap_or_default();
        self.bar.set_length(progress.total as u64);
        self.bar.set_position(progress.done as u64);
        self.bar.set_message(module.to_owned());
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
