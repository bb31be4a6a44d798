//! Options for resolving addresses, and where to look for names.

use std::path::{Path, PathBuf};

use treering_cache::Cache;

use crate::JitTable;

/// Options for resolving addresses, and where to look for names.
pub struct Options<'a> {
    /// Whether inlined functions get frames of their own. Without, their cost is their caller's.
    pub inlines: bool,
    /// Whether debug information in files apart from the binaries is read for more than the names of functions. That
    /// takes long; for counted code, [`add_lines`](crate::add_lines) can do it later.
    pub separate_lines: bool,
    /// Whether the texts of source files become part of the profile.
    pub sources: bool,
    /// Whether costs arose at the addresses that functions stand for, as those of samples did; then they are kept by
    /// address, too. Not where the addresses are those of whole functions.
    pub exact_addresses: bool,
    /// How many bytes of source texts to take at most; those with the highest cost come first.
    pub source_limit: usize,
    /// Where systems keep separate debug files, below `.build-id` or under the binary's path.
    pub debug_directories: Vec<PathBuf>,
    /// Where clients of debuginfod keep what they fetched: `BUILD-ID/debuginfo`. Nothing is fetched.
    pub debuginfod_caches: Vec<PathBuf>,
    /// Where sections that had to be decompressed are kept for the next time.
    pub cache: Option<&'a Cache>,
    /// Where a file can be opened that the program saw at a path: the two differ for programs in
    /// other mount namespaces, or when a copy was kept. Nothing when it can not.
    ///
    /// Asked with the path as the profile has it, ` (deleted)` included. Where a file that goes
    /// with a binary is not found that way, its plain path is tried as well.
    pub open: &'a (dyn Fn(&Path) -> Option<PathBuf> + Sync),
    /// The text of `/proc/kallsyms`, or those of its lines that the addresses belong to.
    pub kallsyms: Option<String>,
    /// The functions of JIT compilers, by the path of the module that their addresses are in,
    /// such as `[jit 77]`. A path may occur more than once; later tables are asked first.
    pub jit: Vec<(String, JitTable)>,
    /// Directories with the sources of the Rust library, each holding `library`, that stand in
    /// for the `/rustc/HASH` of compiled paths; see [`rust_sources`](crate::rust_sources).
    pub rust_sources: Vec<PathBuf>,
    /// On how many threads to work, at least one; as many as there are processors if nothing is said.
    pub threads: Option<usize>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            inlines: true,
            separate_lines: true,
            sources: false,
            exact_addresses: false,
            source_limit: 8 << 20,
            debug_directories: vec!["/usr/lib/debug".into()],
            debuginfod_caches: Vec::new(),
            cache: None,
            open: &|path| Some(path.into()),
            kallsyms: None,
            jit: Vec::new(),
            rust_sources: Vec::new(),
            threads: None,
        }
    }
}

impl std::fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("inlines", &self.inlines)
            .field("separate_lines", &self.separate_lines)
            .field("sources", &self.sources)
            .field("exact_addresses", &self.exact_addresses)
            .field("source_limit", &self.source_limit)
            .field("debug_directories", &self.debug_directories)
            .field("rust_sources", &self.rust_sources)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

/// How far symbolising is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// The path of the module whose addresses are resolved next; empty at the end.
    pub module: &'a str,
    /// How many addresses were dealt with.
    pub done: usize,
    /// How many there are.
    pub total: usize,
}
