//! `treering man`.

use crate::failure::{Failure, Outcome};

/// The arguments of `treering man`.
#[derive(Debug, clap::Args)]
pub struct Man {}

impl Man {
    /// Does it.
    pub fn run(self) -> Outcome {
        Err(Failure::new("not built yet"))
    }
}
