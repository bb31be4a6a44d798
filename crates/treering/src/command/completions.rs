//! `treering completions`.

use crate::failure::{Failure, Outcome};

/// The arguments of `treering completions`.
#[derive(Debug, clap::Args)]
pub struct Completions {}

impl Completions {
    /// Does it.
    pub fn run(self) -> Outcome {
        Err(Failure::new("not built yet"))
    }
}
