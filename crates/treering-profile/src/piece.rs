//! Functions whose machine code compilers divided.

/// The piece of a function's machine code that something is; by default the piece that callers enter, or all of it.
///
/// Compilers move code out of functions, under symbols such as `f.part.0` and `f.cold`. Copies of a function that were
/// made for certain callers (`f.constprop.0`, `f.isra.0`) are no pieces: each is entered for itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Piece {
    /// Whether it is what a function does behind a test at its beginning (gcc's partial inlining). Callers into which
    /// that test was inlined enter it, and so does the rest of the function.
    pub behind_test: bool,
    /// Whether it is code that the compiler only moved apart, mostly because it is rarely executed. Only the rest of
    /// the function enters it.
    pub apart: bool,
}

impl Piece {
    /// Whether control that comes into this piece from another one of the same function stays in one activation.
    ///
    /// Code behind the test that enters code behind the test has made the test again: the function calls itself.
    pub fn goes_on_from(self, from: Self) -> bool {
        self.apart || (self.behind_test && !from.behind_test)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_stays_in_one_activation_until_the_function_is_entered_again() {
        let whole = Piece::default();
        let part = Piece { behind_test: true, apart: false };
        let cold = Piece { behind_test: false, apart: true };
        let cold_of_part = Piece { behind_test: true, apart: true };
        for (from, to, stays) in [
            (whole, part, true),
            (cold, part, true),
            (whole, cold, true),
            (part, cold_of_part, true),
            (part, part, false),
            (cold_of_part, part, false),
            (part, whole, false),
            (whole, whole, false),
        ] {
            assert_eq!(to.goes_on_from(from), stays, "{from:?} to {to:?}");
        }
    }
}
