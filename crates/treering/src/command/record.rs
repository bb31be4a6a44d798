//! `treering record`.

use crate::failure::{Failure, Outcome};

/// The arguments of `treering record`.
#[derive(Debug, clap::Args)]
pub struct Record {}

impl Record {
    /// Does it.
    pub fn run(self) -> Outcome {
        Err(Failure::new("not built yet"))
    }
}
