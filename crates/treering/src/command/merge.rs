//! `treering merge`.

use crate::failure::{Failure, Outcome};

/// The arguments of `treering merge`.
#[derive(Debug, clap::Args)]
pub struct Merge {}

impl Merge {
    /// Does it.
    pub fn run(self) -> Outcome {
        Err(Failure::new("not built yet"))
    }
}
