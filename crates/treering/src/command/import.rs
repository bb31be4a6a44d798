//! `treering import`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use treering_formats::{Format, trg};

use crate::failure::Outcome;
use crate::open::{open, open_labelled};
use crate::output::{check_target, clean_up_at_signals, write_whole};

/// Read another tool's profile and write it as a .trg file
#[derive(Debug, clap::Args)]
pub struct Import {
    /// The other tool's profile; `-` for standard input
    file: PathBuf,
    /// Its format; by default recognised by content
    #[arg(long, value_enum, value_name = "FORMAT")]
    from: Option<From>,
    /// For a gmon.out: the program that wrote it [default: a.out, or the one beside it that fits]
    #[arg(long, value_name = "PROGRAM")]
    program: Option<PathBuf>,
    /// Of a pprof profile, only the samples with this label; several must all be there
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// The file to write; by default FILE with the extension .trg. `-` for standard output
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Replace OUT even if it is not a profile that Treering wrote
    #[arg(long)]
    force: bool,
}

/// A format that can be read.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum From {
    /// Stacks as text
    Folded,
    /// Protobuf, compressed or not
    Pprof,
    /// What Valgrind's Callgrind writes
    Callgrind,
    /// What perf script prints
    PerfScript,
    /// gmon.out, which programs compiled with -pg write
    Gmon,
    /// What the pack for SWI-Prolog writes
    Prolog,
    /// Speedscope's JSON
    Speedscope,
    /// V8's profile of processor time
    #[value(name = "cpuprofile")]
    CpuProfile,
    /// Trace events of Chrome
    ChromeTrace,
    /// What Python's cProfile dumps
    Pstats,
    /// The Firefox Profiler's processed profiles
    Firefox,
}

impl From {
    fn format(self) -> Format {
        match self {
            Self::Folded => Format::Folded,
            Self::Pprof => Format::Pprof,
            Self::Callgrind => Format::Callgrind,
            Self::PerfScript => Format::PerfScript,
            Self::Gmon => Format::Gmon,
            Self::Prolog => Format::Prolog,
            Self::Speedscope => Format::Speedscope,
            Self::CpuProfile => Format::CpuProfile,
            Self::ChromeTrace => Format::ChromeTrace,
            Self::Pstats => Format::Pstats,
            Self::Firefox => Format::Firefox,
        }
    }
}

impl Import {
    /// Does it.
    pub fn run(self) -> Outcome {
        clean_up_at_signals();
        check_target(&self.path(), &[&self.file], Format::Trg, self.force)?;
        let mut opened = match self.labels.as_slice() {
            [] => open(&self.file, self.from.map(From::format), self.program.as_deref())?,
            labels => open_labelled(&self.file, labels)?,
        };
        opened.print_warnings();
        // What could not be taken over stays known to whoever reads the result.
        for warning in &opened.warnings {
            opened.profile.metadata.note(warning.clone());
        }
        let path = self.path();
        write_whole(&path, |output| trg::write(&opened.profile, output))?;
        let profile = &opened.profile;
        let (functions, nodes) = (profile.functions.len() - 1, profile.tree.len());
        let place = if path == Path::new("-") { "standard output".into() } else { path.to_string_lossy() };
        tell!("wrote {functions} functions in {nodes} nodes, from {}, to {place}", opened.format);
        Ok(ExitCode::SUCCESS)
    }

    fn path(&self) -> PathBuf {
        match &self.output {
            Some(path) => path.clone(),
            None if self.file == Path::new("-") => PathBuf::from("-"),
            None => self.file.with_extension("trg"),
        }
    }
}

fn label(text: &str) -> Result<(String, String), &'static str> {
    let (key, value) = text.split_once('=').ok_or("a label is written KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}
