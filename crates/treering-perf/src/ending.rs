//! How stacks end in the C library, for those of which only the chain of frame pointers is known.
//!
//! The functions with which a C library starts programs and threads keep no frame pointers, so the
//! chain ends at the first of them. The frames behind it are the same in all stacks.

use hashbrown::HashMap;

/// The code found behind the frames in which a C library calls a thread's first function.
#[derive(Debug, Default)]
pub(crate) struct Endings {
    known: HashMap<u64, Ending>,
}

#[derive(Debug, PartialEq, Eq)]
enum Ending {
    /// These frames follow.
    Frames(Vec<u64>),
    /// The frame was found in other places too.
    Ambiguous,
    /// It was searched this many times in vain.
    Sought(u32),
}

/// How often an ending is looked for.
const MOST_SEARCHES: u32 = 20;

/// How many frames there are behind one in which a C library starts a thread: two in glibc's
/// `__libc_start_call_main`, one in its `start_thread`.
const MOST_BEHIND: usize = 2;

impl Endings {
    /// Where a whole stack comes to the C library's start: at the outermost frame that was called
    /// from another module than it calls into, but for the program's `_start`.
    pub(crate) fn boundary<M: PartialEq>(stack: &[u64], module: impl Fn(u64) -> Option<M>) -> Option<usize> {
        let first = stack.len().checked_sub(1)?;
        (1..=MOST_BEHIND).find_map(|behind| {
            let at = first.checked_sub(behind).filter(|&at| at > 0)?;
            let library = module(stack[at])?;
            let is_inside = stack[at..first].iter().all(|&frame| module(frame).as_ref() == Some(&library));
            let is_called_into = module(stack[at - 1]).is_some_and(|inner| inner != library);
            (is_inside && is_called_into).then_some(at)
        })
    }

    /// Notes the end of a whole stack.
    pub(crate) fn note(&mut self, ending: &[u64]) {
        let Some((&frame, behind)) = ending.split_first() else { return };
        match self.known.entry(frame).or_insert(Ending::Sought(0)) {
            Ending::Frames(known) if known == behind => {}
            Ending::Ambiguous => {}
            known @ Ending::Frames(_) => *known = Ending::Ambiguous,
            known @ Ending::Sought(_) => *known = Ending::Frames(behind.to_vec()),
        }
    }

    /// Whether it is worth looking for the end of stacks behind a frame; counts that it was.
    pub(crate) fn seek(&mut self, frame: u64) -> bool {
        match self.known.entry(frame).or_insert(Ending::Sought(0)) {
            Ending::Sought(times) => {
                *times += 1;
                *times <= MOST_SEARCHES
            }
            Ending::Frames(_) | Ending::Ambiguous => false,
        }
    }

    /// The frames behind a frame, if they are always the same.
    pub(crate) fn after(&self, frame: u64) -> Option<&[u64]> {
        match self.known.get(&frame)? {
            Ending::Frames(frames) => Some(frames),
            Ending::Ambiguous | Ending::Sought(_) => None,
        }
    }

    /// Forgets all, since other code may be mapped now.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Modules by hundreds of addresses.
    fn boundary(stack: &[u64]) -> Option<usize> {
        Endings::boundary(stack, |address| Some(address / 100))
    }

    #[test]
    fn the_c_library_starts_programs_and_threads() {
        // work, main | __libc_start_call_main, __libc_start_main | _start
        assert_eq!(boundary(&[100, 101, 201, 202, 102]), Some(2));
        // work | start_thread, clone3
        assert_eq!(boundary(&[100, 201, 202]), Some(1));
        // All in one module, as in a static program.
        assert_eq!(boundary(&[100, 101, 102, 103]), None);
        // More frames than a start has.
        assert_eq!(boundary(&[100, 201, 202, 203, 204]), None);
        assert_eq!(boundary(&[]), None);
    }

    #[test]
    fn a_frame_that_leads_to_different_ends_is_not_believed() {
        let mut endings = Endings::default();
        endings.note(&[1, 2, 3]);
        assert_eq!(endings.after(1), Some(&[2, 3][..]));
        endings.note(&[1, 2, 3]);
        endings.note(&[1, 4]);
        assert_eq!(endings.after(1), None);
        endings.note(&[1, 2, 3]);
        assert_eq!(endings.after(1), None);
        assert!(!endings.seek(1));
    }

    #[test]
    fn the_search_for_an_ending_is_given_up_after_some_failures() {
        let mut endings = Endings::default();
        assert_eq!((0..1000).filter(|_| endings.seek(1)).count(), MOST_SEARCHES as usize);
        endings.note(&[1, 2]);
        assert_eq!(endings.after(1), Some(&[2][..]));
    }
}
