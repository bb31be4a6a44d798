//! `treering report`.

use crate::failure::{Failure, Outcome};

/// The arguments of `treering report`.
#[derive(Debug, clap::Args)]
pub struct Report {}

impl Report {
    /// Does it.
    pub fn run(self) -> Outcome {
        Err(Failure::new("not built yet"))
    }
}
