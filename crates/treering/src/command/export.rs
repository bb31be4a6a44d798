//! `treering export`.

use crate::failure::{Failure, Outcome};

/// The arguments of `treering export`.
#[derive(Debug, clap::Args)]
pub struct Export {}

impl Export {
    /// Does it.
    pub fn run(self) -> Outcome {
        Err(Failure::new("not built yet"))
    }
}
