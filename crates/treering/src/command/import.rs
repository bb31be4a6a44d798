//! `treering import`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::LazyLock;

use clap::ValueEnum;
use clap::builder::PossibleValue;
use treering_formats::{Format, trg};

use crate::failure::Outcome;
use crate::open::{open, open_labelled};
use crate::output::{check_target, clean_up_at_signals, write_whole};
use treering_report::plural;

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
    /// The file to write; by default FILE with the extension .trg. `-` for standard output. In its name, `%p` stands for
    /// the process, `%h` for the machine, `%r` for the rank, and `%%` for %
    #[arg(short, long, value_name = "OUT", value_parser = crate::output_name::parser())]
    output: Option<PathBuf>,
    /// Replace OUT even if it is not a profile that Treering wrote
    #[arg(long)]
    force: bool,
}

/// A format that can be imported.
#[derive(Clone, Copy, Debug)]
struct From(Format);

impl ValueEnum for From {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<From>> = LazyLock::new(|| {
            let imported = |format: &Format| format.import_help().is_some();
            Format::ALL.into_iter().filter(imported).map(From).collect()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.as_str()).help(self.0.import_help()?))
    }
}

impl Import {
    /// Does it.
    pub fn run(self) -> Outcome {
        clean_up_at_signals();
        check_target(&self.path(), &[&self.file], Format::Trg, self.force)?;
        let mut opened = match self.labels.as_slice() {
            [] => open(&self.file, self.from.map(|from| from.0), self.program.as_deref())?,
            labels => open_labelled(&self.file, labels)?,
        };
        opened.print_warnings();
        // The result keeps the warnings, for its readers.
        for warning in &opened.warnings {
            opened.profile.metadata.note(warning.clone());
        }
        let path = self.path();
        write_whole(&path, |output| trg::write(&opened.profile, output))?;
        let profile = &opened.profile;
        let functions = plural(profile.functions.len() as u64 - 1, "function");
        let nodes = plural(profile.tree.len() as u64, "node");
        let place = if path == Path::new("-") { "standard output".into() } else { path.to_string_lossy() };
        tell!("wrote {functions} in {nodes}, from {}, to {place}", opened.format);
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
