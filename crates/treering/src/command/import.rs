//! `treering import`.

use crate::failure::{Failure, Outcome};

/// The arguments of `treering import`.
#[derive(Debug, clap::Args)]
pub struct Import {}

impl Import {
    /// Does it.
    pub fn run(self) -> Outcome {
        Err(Failure::new("not built yet"))
    }
}
