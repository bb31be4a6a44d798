//! The activations of an engine, by the numbers that wrappers hold.

use treering_runtime::Place;

/// The state of an activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It runs, or a predicate that it has called does.
    Running,
    /// It was left for a while without a port: its engine rests, or its continuation was captured.
    Suspended,
    /// It succeeded and may be asked for more.
    Exited,
    /// Its continuation was called after it had ended, and succeeded.
    Continued,
    /// It succeeded for good; its wrapper is about to say so.
    Finished,
}

/// One activation of a wrapped predicate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Activation {
    generation: u32,
    pub(crate) state: State,
    /// The number of its predicate.
    pub(crate) function: u32,
    /// The activation of the runtime, while it runs.
    pub(crate) token: u64,
    /// Where it stands in the tree, and of which thread's tree; known once it was left.
    pub(crate) place: Option<(u64, Place)>,
}

/// The predicate of activations that an earlier recording has begun: none.
pub(crate) const UNKNOWN: u32 = u32::MAX;

/// A number for an activation: where it stands, and which use of that place it is. It is below 2^60, so
/// that SWI-Prolog keeps it in a cell.
pub(crate) type Number = i64;

/// How often a place is used before its numbers repeat.
const GENERATIONS: u32 = 1 << 27;

/// The activations of an engine. Places of those that ended are used again.
#[derive(Debug, Default)]
pub(crate) struct Activations {
    all: Vec<Activation>,
    free: Vec<u32>,
}

impl Activations {
    /// Adds one that runs; nothing when there are 2^32.
    pub(crate) fn add(&mut self, function: u32, token: u64) -> Option<Number> {
        let at = match self.free.pop() {
            Some(at) => at,
            None => {
                let at = u32::try_from(self.all.len()).ok()?;
                let new =
                    Activation { generation: 0, state: State::Finished, function, token: 0, place: None };
                self.all.push(new);
                at
            }
        };
        let activation = &mut self.all[at as usize];
        activation.generation = (activation.generation + 1) % GENERATIONS;
        (activation.state, activation.function) = (State::Running, function);
        (activation.token, activation.place) = (token, None);
        Some(i64::from(activation.generation) << 32 | i64::from(at))
    }

    /// The activation of a number, unless it has ended.
    pub(crate) fn get(&mut self, number: Number) -> Option<&mut Activation> {
        let activation = self.all.get_mut(number as u32 as usize)?;
        (i64::from(activation.generation) == number >> 32).then_some(activation)
    }

    /// Ends one; its number leads to nothing from now on.
    pub(crate) fn end(&mut self, number: Number) {
        if let Some(activation) = self.get(number) {
            activation.generation = (activation.generation + 1) % GENERATIONS;
            self.free.push(number as u32);
        }
    }

    /// Ends all, and returns them.
    pub(crate) fn take_live(&mut self) -> Vec<Activation> {
        let mut is_free = vec![false; self.all.len()];
        self.free.iter().for_each(|&at| is_free[at as usize] = true);
        let live: Vec<u32> = (0..self.all.len() as u32).filter(|&at| !is_free[at as usize]).collect();
        let taken = live.iter().map(|&at| self.all[at as usize]).collect();
        for at in live {
            let generation = self.all[at as usize].generation;
            self.end(i64::from(generation) << 32 | i64::from(at));
        }
        taken
    }

    /// Forgets the counts of all: a new recording begins.
    pub(crate) fn forget(&mut self) {
        for activation in &mut self.all {
            (activation.function, activation.token, activation.place) = (UNKNOWN, 0, None);
        }
    }

    /// How many have not ended.
    pub(crate) fn count(&self) -> usize {
        self.all.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_leads_to_its_own_activation_only() {
        let mut activations = Activations::default();
        let first = activations.add(0, 7).unwrap();
        let second = activations.add(0, 8).unwrap();
        assert_eq!(activations.get(first).map(|found| found.token), Some(7));
        activations.end(first);
        let third = activations.add(0, 9).unwrap();
        assert_ne!(first, third);
        assert!(activations.get(first).is_none());
        assert_eq!(activations.get(third).map(|found| found.token), Some(9));
        assert_eq!(activations.get(second).map(|found| found.token), Some(8));
        assert_eq!(activations.count(), 2);
        let taken: Vec<_> = activations.take_live().iter().map(|taken| taken.token).collect();
        assert_eq!((taken, activations.count()), (vec![9, 8], 0));
        assert!(activations.get(second).is_none() && activations.get(third).is_none());
    }

    #[test]
    fn numbers_fit_into_a_cell_of_prolog() {
        let mut activations = Activations::default();
        let number = activations.add(0, 1).unwrap();
        assert!(number < 1 << 60 && i64::from(GENERATIONS - 1) << 32 | i64::from(u32::MAX) < 1 << 60);
        for wrong in [-1, i64::MAX, i64::MIN, 1 << 32 | 5] {
            assert!(activations.get(wrong).is_none());
        }
    }
}
