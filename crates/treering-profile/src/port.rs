//! Ports of logic programs.

/// How often the activations of a node were left and entered again, in logic programs: the ports
/// of Byrd's box ("Understanding the control flow of Prolog programs", 1980) other than call,
/// which [`Tree::calls`](crate::Tree::calls) counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ports {
    /// It succeeded.
    pub exits: u64,
    /// Another solution was asked for.
    pub redos: u64,
    /// It failed.
    pub fails: u64,
    /// It was left by an exception.
    pub exceptions: u64,
    /// Choices that it had left were given up.
    pub cuts: u64,
}

impl Ports {
    /// The names of the ports in the order of [`counts`](Self::counts).
    pub const NAMES: [&str; 5] = ["exits", "redos", "fails", "exceptions", "cuts"];

    /// The counts: exits, redos, fails, exceptions, cuts.
    pub fn counts(&self) -> [u64; 5] {
        [self.exits, self.redos, self.fails, self.exceptions, self.cuts]
    }

    /// The ports with these counts, in the order of [`counts`](Self::counts).
    pub fn from_counts([exits, redos, fails, exceptions, cuts]: [u64; 5]) -> Self {
        Self { exits, redos, fails, exceptions, cuts }
    }

    /// Adds those of another node; stops at 2^64 − 1.
    pub fn add(&mut self, other: &Self) {
        let (ours, theirs) = (self.counts(), other.counts());
        *self = Self::from_counts(std::array::from_fn(|at| ours[at].saturating_add(theirs[at])));
    }
}
