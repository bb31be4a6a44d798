//! The frames at addresses, of which many that follow each other have the same.

use std::ops::Range;

use crate::answer::Place;

/// For each of a list of addresses its frames, outermost first.
///
/// Kept by runs of addresses with the same frames: the instructions of a line, or of a function
/// whose lines are not known.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    runs: Vec<Run>,
    places: Vec<Place>,
}

/// Addresses and their frames, each from where the run before ends.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Behind its last address.
    end: usize,
    /// Behind its last frame.
    places: usize,
}

impl Frames {
    /// The same frames at `count` addresses.
    pub(crate) fn same(frames: &[Place], count: usize) -> Self {
        let mut all = Self::default();
        all.push(frames, count);
        all
    }

    /// Adds the frames of the next `count` addresses.
    pub(crate) fn push(&mut self, frames: &[Place], count: usize) {
        if count == 0 {
            return;
        }
        let end = self.len() + count;
        let same = self.runs.len().checked_sub(1).filter(|&last| self.of_run(last) == frames);
        match same {
            Some(last) => self.runs[last].end = end,
            None => {
                self.places.extend_from_slice(frames);
                self.runs.push(Run { end, places: self.places.len() });
            }
        }
    }

    /// How many addresses there are.
    pub(crate) fn len(&self) -> usize {
        self.runs.last().map_or(0, |run| run.end)
    }

    /// The addresses, by their indexes, of each run, and their frames.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (Range<usize>, &[Place])> + '_ {
        (0..self.runs.len()).map(|at| {
            let start = at.checked_sub(1).map_or(0, |before| self.runs[before].end);
            (start..self.runs[at].end, self.of_run(at))
        })
    }

    /// The frames of each address.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[Place]> + '_ {
        self.runs().flat_map(|(addresses, frames)| std::iter::repeat_n(frames, addresses.len()))
    }

    /// Adds the frames of the addresses of another list, each as `moved`.
    pub(crate) fn append(&mut self, other: Self, moved: impl Fn(&mut Place)) {
        let (addresses, places) = (self.len(), self.places.len());
        self.places.extend(other.places);
        self.places[places..].iter_mut().for_each(moved);
        let behind = |run: Run| Run { end: run.end + addresses, places: run.places + places };
        self.runs.extend(other.runs.into_iter().map(behind));
    }

    fn of_run(&self, at: usize) -> &[Place] {
        let start = at.checked_sub(1).map_or(0, |before| self.runs[before].places);
        &self.places[start..self.runs[at].places]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(function: usize) -> Place {
        Place { function, line: None }
    }

    #[test]
    fn every_address_has_the_frames_that_were_given_for_it() {
        let mut frames = Frames::default();
        let given: [&[Place]; 5] = [&[], &[place(1)], &[place(1)], &[place(1), place(2)], &[]];
        given.iter().for_each(|given| frames.push(given, 1));
        frames.push(&[place(7)], 0);
        assert_eq!((frames.len(), frames.runs().count()), (5, 4));
        frames.append(Frames::same(&[place(3)], 2), |place| place.function += 1);
        let all: Vec<_> = frames.iter().map(<[Place]>::to_vec).collect();
        let mut expected: Vec<_> = given.iter().map(|given| given.to_vec()).collect();
        expected.extend([vec![place(4)], vec![place(4)]]);
        assert_eq!(all, expected);
    }
}
