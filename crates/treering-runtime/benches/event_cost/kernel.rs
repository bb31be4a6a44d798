//! Work of known length, of several sorts.

use std::hint::black_box;

/// A sort of work, in steps; each is some nanoseconds or less.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kernel {
    /// Multiplications that wait for each other.
    Dependent,
    /// Additions that do not.
    Independent,
    /// Loads whose addresses are loaded, from what fits the second level cache.
    Chasing,
    /// Multiplications and additions in floating point that wait for each other.
    Floating,
}

pub(crate) const KERNELS: [(&str, Kernel); 4] = [
    ("dependent multiplications", Kernel::Dependent),
    ("independent additions", Kernel::Independent),
    ("pointer chasing in L2", Kernel::Chasing),
    ("floating point", Kernel::Floating),
];

/// Numbers that lead to each other in one circle, 256 KiB in all.
struct Circle(Vec<u32>);

impl Circle {
    fn new() -> Self {
        let length = 1 << 16;
        // A step of odd length visits all places of a length that is a power of two.
        Self((0..length as u32).map(|at| (at + 16_411) % length as u32).collect())
    }
}

/// The values that a piece of work continues from and leaves behind. The next piece cannot begin before the
/// last one has ended; else they would overlap without events and not with them.
pub(crate) struct State {
    circle: Circle,
    at: u32,
    value: u64,
    sums: [u64; 4],
    float: f64,
}

impl State {
    pub(crate) fn new() -> Self {
        Self { circle: Circle::new(), at: 0, value: 1, sums: [1, 2, 3, 4], float: 1.0 }
    }
}

impl Kernel {
    /// Does that many steps.
    #[inline(always)]
    pub(crate) fn work(self, steps: u32, state: &mut State) {
        match self {
            Self::Dependent => {
                let mut value = state.value;
                (0..steps).for_each(|_| value = value.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
                state.value = black_box(value);
            }
            Self::Independent => {
                let mut sums = state.sums;
                for step in 0..steps {
                    sums.iter_mut().for_each(|sum| *sum = sum.wrapping_add((*sum >> 7) ^ u64::from(step)));
                }
                state.sums = black_box(sums);
            }
            Self::Chasing => {
                (0..steps).for_each(|_| state.at = state.circle.0[state.at as usize]);
                black_box(state.at);
            }
            Self::Floating => {
                let mut float = state.float;
                (0..steps).for_each(|_| float = float * 0.999 + 1.0);
                state.float = black_box(float);
            }
        }
    }
}
