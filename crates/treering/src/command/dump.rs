//! `treering dump`.

use crate::failure::{Failure, Outcome};

/// The arguments of `treering dump`.
#[derive(Debug, clap::Args)]
pub struct Dump {}

impl Dump {
    /// Does it.
    pub fn run(self) -> Outcome {
        Err(Failure::new("not built yet"))
    }
}
