//! Strongly connected components: what call graphs have cycles by.

use alloc::vec;
use alloc::vec::Vec;

/// The strongly connected components of a call graph whose functions are numbered from 0 and whose arcs lead from caller
/// to callee: callees before callers, in O(functions + arcs). A function alone is a component too.
///
/// After Tarjan, "Depth-first search and linear graph algorithms", 1972, with an explicit stack:
/// generated programs call deeply enough to overflow ours.
pub fn components(functions: usize, arcs: &[(u32, u32)]) -> Vec<Vec<u32>> {
    let mut search = Search::new(functions, arcs);
    for function in 0..functions as u32 {
        if search.order[function as usize] == UNSEEN {
            search.from(function);
        }
    }
    search.components
}

const UNSEEN: u32 = u32::MAX;

struct Search {
    /// By function: where its callees start in `callees`; one more at the end.
    starts: Vec<u32>,
    callees: Vec<u32>,
    /// By function: when it was first seen.
    order: Vec<u32>,
    /// By function: the earliest function on the stack that it is known to reach.
    reaches: Vec<u32>,
    on_stack: Vec<bool>,
    stack: Vec<u32>,
    seen: u32,
    components: Vec<Vec<u32>>,
}

impl Search {
    fn new(functions: usize, arcs: &[(u32, u32)]) -> Self {
        let mut starts = vec![0; functions + 1];
        for &(caller, _) in arcs {
            starts[caller as usize + 1] += 1;
        }
        for at in 0..functions {
            starts[at + 1] += starts[at];
        }
        let mut next = starts.clone();
        let mut callees = vec![0; arcs.len()];
        for &(caller, callee) in arcs {
            let at = &mut next[caller as usize];
            callees[*at as usize] = callee;
            *at += 1;
        }
        Self {
            starts,
            callees,
            order: vec![UNSEEN; functions],
            reaches: vec![0; functions],
            on_stack: vec![false; functions],
            stack: Vec::new(),
            seen: 0,
            components: Vec::new(),
        }
    }

    /// Visits everything that `function` reaches and that was not seen yet.
    fn from(&mut self, function: u32) {
        // Each entry is a function and the position of its next callee.
        let mut path = vec![self.discover(function)];
        while let Some((caller, next)) = path.last_mut() {
            let caller = *caller as usize;
            if *next == self.starts[caller + 1] {
                self.close(caller);
                path.pop();
                if let Some(&(above, _)) = path.last() {
                    self.reaches[above as usize] = self.reaches[above as usize].min(self.reaches[caller]);
                }
                continue;
            }
            let callee = self.callees[*next as usize];
            *next += 1;
            if self.order[callee as usize] == UNSEEN {
                path.push(self.discover(callee));
            } else if self.on_stack[callee as usize] {
                self.reaches[caller] = self.reaches[caller].min(self.order[callee as usize]);
            }
        }
    }

    fn discover(&mut self, function: u32) -> (u32, u32) {
        let at = function as usize;
        self.order[at] = self.seen;
        self.reaches[at] = self.seen;
        self.seen += 1;
        self.on_stack[at] = true;
        self.stack.push(function);
        (function, self.starts[at])
    }

    /// Takes a component off the stack if `function` is the first one seen of it.
    fn close(&mut self, function: usize) {
        if self.reaches[function] != self.order[function] {
            return;
        }
        let first = self.stack.iter().rposition(|&at| at as usize == function);
        let component = self.stack.split_off(first.expect("an open function is on the stack"));
        for &member in &component {
            self.on_stack[member as usize] = false;
        }
        self.components.push(component);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn components_come_callees_before_callers() {
        let arcs = [(0, 1), (1, 2), (2, 1), (2, 3), (3, 3), (0, 4)];
        let mut found = components(5, &arcs);
        found.iter_mut().for_each(|component| component.sort_unstable());
        assert_eq!(found, [vec![3], vec![1, 2], vec![4], vec![0]]);
    }

    #[test]
    fn a_cycle_of_a_million_functions_does_not_overflow_the_stack() {
        let count = 1_000_000;
        let ring: Vec<_> = (0..count).map(|at| (at, (at + 1) % count)).collect();
        assert_eq!(components(count as usize, &ring).len(), 1);
    }
}
