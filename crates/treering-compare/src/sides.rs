//! A value of the base and one of the head.

use treering_analysis::Measure;

/// A value of the base and one of the head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sides<T> {
    /// The value of the profile that is compared with.
    pub base: T,
    /// The value of the profile that is asked about.
    pub head: T,
}

impl<T> Sides<T> {
    /// Both sides made in the same way.
    pub fn map<U>(self, mut make: impl FnMut(T) -> U) -> Sides<U> {
        Sides { base: make(self.base), head: make(self.head) }
    }

    /// References to both.
    pub fn as_ref(&self) -> Sides<&T> {
        Sides { base: &self.base, head: &self.head }
    }

    /// One of both.
    pub(crate) fn of(&mut self, side: Side) -> &mut T {
        match side {
            Side::Base => &mut self.base,
            Side::Head => &mut self.head,
        }
    }
}

/// One of two profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Base,
    Head,
}

impl Side {
    pub(crate) const BOTH: [Self; 2] = [Self::Base, Self::Head];
}

/// A number of a metric's unit, or of calls.
pub trait Cost: Copy {
    /// The number.
    fn cost(self) -> u64;
}

impl Cost for u64 {
    fn cost(self) -> u64 {
        self
    }
}

impl Cost for Measure {
    fn cost(self) -> u64 {
        self.cost
    }
}

impl<T: Cost> Sides<T> {
    /// Head − base.
    pub fn change(self) -> i128 {
        i128::from(self.head.cost()) - i128::from(self.base.cost())
    }

    /// Whether both are 0.
    pub fn is_zero(self) -> bool {
        self.base.cost() == 0 && self.head.cost() == 0
    }

    /// The change as a part of the base; nothing where the base is 0.
    pub fn relative_change(self) -> Option<f64> {
        (self.base.cost() > 0).then(|| self.change() as f64 / self.base.cost() as f64)
    }
}
