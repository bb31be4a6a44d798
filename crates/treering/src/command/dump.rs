//! `treering dump`.

use std::path::PathBuf;
use std::process::ExitCode;

use treering_formats::trg;

use crate::failure::{Failure, Outcome};
use crate::open::read_file;
use crate::terminal::print_lines;

/// Print what a .trg file holds, frame by frame, as JSON lines
#[derive(Debug, clap::Args)]
pub struct Dump {
    /// The .trg file; `-` for standard input
    file: PathBuf,
}

impl Dump {
    /// Prints a line for each frame. A damaged one does not end it, but the exit status is 1.
    pub fn run(self) -> Outcome {
        let bytes = read_file(&self.file)?;
        let file = self.file.display();
        let frames = trg::dump(&bytes).map_err(|error| {
            let failure = Failure::new(format_args!("{file}: {error}"));
            failure
                .hint("only .trg files can be dumped; other formats can be imported first: treering import")
        })?;
        let mut status = ExitCode::SUCCESS;
        for frame in frames {
            print_lines(|output| {
                serde_json::to_writer(&mut *output, &frame)?;
                output.write_all(b"\n")
            })?;
            if let Some(loss) = frame.loss {
                tell!("warning: {file}: {loss}");
                status = ExitCode::FAILURE;
            }
        }
        Ok(status)
    }
}
