//! Functions whose cost differs between two runs of one program, set apart from those that a change of it has changed.

use hashbrown::HashMap;
use treering_profile::FunctionId;

use crate::difference::{Difference, FunctionChange};
use crate::pairing::{Group, GroupIndex, Pairing};

/// How many times more than the largest difference between runs of base a function must change to be no chance.
const BEYOND: u128 = 4;

/// The differences between runs of the base, and the changes of the head that these may explain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Apart {
    /// The functions, with the change from base to head of each, the largest first. Each differs between runs of the
    /// base, and changes by at most four times what the most different function of these does.
    pub functions: Vec<(GroupIndex, i128)>,
    /// How many functions differ between runs of the base.
    pub differing: usize,
    /// The largest difference of each of these, added up.
    pub moved: u128,
    /// All that base and head differ by in other functions, added up without signs.
    pub left: u128,
    /// The sum of these differences: the change of the run that chance does not explain.
    pub left_change: i128,
}

impl Apart {
    /// `again` are the differences of the base's run and others of it, `functions` the changes from it to the head. From
    /// two runs chance may look small by chance: five others make that rare.
    pub(crate) fn of(again: &[Difference], functions: &[FunctionChange], pairing: &Pairing) -> Self {
        let mut noise: HashMap<Key<'_>, u128> = HashMap::new();
        for again in again {
            for row in again.functions.iter().filter(|row| row.self_cost.change() != 0) {
                let Some(key) = keys(&again.pairing.groups[row.group]).next() else { continue };
                let most = noise.entry(key).or_default();
                *most = (*most).max(row.self_cost.change().unsigned_abs());
            }
        }
        let largest = noise.values().copied().max().unwrap_or(0);
        let mut apart = Self { differing: noise.len(), moved: noise.values().sum(), ..Self::default() };
        for row in functions {
            let change = row.self_cost.change();
            let size = change.unsigned_abs();
            if size == 0 {
                continue;
            }
            let is_noisy = || keys(&pairing.groups[row.group]).any(|key| noise.contains_key(&key));
            if size <= largest * BEYOND && is_noisy() {
                apart.functions.push((row.group, change));
            } else {
                apart.left += size;
                apart.left_change += change;
            }
        }
        apart.functions.sort_by_key(|(_, change)| std::cmp::Reverse(change.unsigned_abs()));
        apart
    }

    /// Whether head differs from base by no more than runs of base do.
    pub fn is_all(&self) -> bool {
        self.left <= self.moved
    }

    /// Whether the change of this function may be chance.
    pub fn holds(&self, group: GroupIndex) -> bool {
        self.functions.iter().any(|&(of, _)| of == group)
    }
}

/// A function in several comparisons of one base.
#[derive(PartialEq, Eq, Hash)]
enum Key<'a> {
    /// It ran in the base.
    OfBase(FunctionId),
    /// It did not: its module's file name and its own name.
    Named(Option<&'a str>, &'a str),
}

/// A group's functions in the base, or else its name.
fn keys(group: &Group) -> impl Iterator<Item = Key<'_>> {
    let named = group.functions.base.is_empty().then(|| Key::Named(group.module.as_deref(), &group.name));
    group.functions.base.iter().map(|&id| Key::OfBase(id)).chain(named)
}

#[cfg(test)]
mod tests {
    use treering_testing::trace;

    use super::*;
    use crate::code::ProgramCode;
    use crate::{Options, compare, compare_beyond_chance};

    fn run(seed: u32, work: u32) -> treering_profile::Profile {
        let (a, b) = (10 + seed, 10 + seed + work);
        trace(&format!(
            "0 enter main\n 5 enter hash\n {a} leave hash\n {a} enter work\n {b} leave work\n {b} leave main"
        ))
    }

    fn beyond(
        base: &treering_profile::Profile,
        head: &treering_profile::Profile,
        again: &[Difference],
    ) -> Difference {
        let (options, code) = (Options::default(), ProgramCode::default());
        compare_beyond_chance(base, head, &options, &code, again).expect("both have a time")
    }

    fn apart(base: (u32, u32), again: (u32, u32), head: (u32, u32)) -> (Apart, Vec<String>) {
        let of = |(seed, work): (u32, u32)| run(seed, work);
        let again = compare(&of(base), &of(again), &Options::default()).expect("both have a time");
        let Difference { apart, pairing, .. } = beyond(&of(base), &of(head), &[again]);
        let names = apart.functions.iter().map(|&(group, _)| pairing.groups[group].name.clone());
        let names = names.collect();
        (apart, names)
    }

    #[test]
    fn functions_that_differ_by_chance_are_set_apart() {
        let (chance, names) = apart((3, 100), (7, 100), (9, 100));
        assert_eq!(names, ["hash"]);
        assert!(chance.is_all());
        assert_eq!((chance.moved, chance.left, chance.functions[0].1), (4, 0, 6));
        let (change, names) = apart((3, 100), (7, 100), (9, 150));
        assert_eq!(names, ["hash"]);
        assert!(!change.is_all());
        assert_eq!((change.left, change.left_change), (50, 50));
    }

    #[test]
    fn more_runs_show_more_of_chance() {
        let of = |seed: u32| run(seed, 100);
        let differ = |seed: u32| compare(&of(3), &of(seed), &Options::default()).expect("both have a time");
        // By chance, the second run is nearly the first.
        let two = beyond(&of(3), &of(60), &[differ(4)]).apart;
        assert_eq!((two.functions.len(), two.is_all()), (0, false));
        let four = beyond(&of(3), &of(60), &[differ(4), differ(30), differ(12)]).apart;
        assert_eq!((four.functions.len(), four.moved, four.is_all()), (1, 27, true));
    }

    #[test]
    fn a_change_against_that_of_chance_is_what_is_left() {
        let again = compare(&run(50, 100), &run(30, 100), &Options::default()).expect("both have a time");
        let difference = beyond(&run(50, 100), &run(90, 80), &[again]);
        assert_eq!((difference.run.change(), difference.apart.left_change), (20, -20));
        assert!(difference.relative_change().is_some_and(|change| change < 0.0));
        let cause = difference.cause.expect("work costs less");
        assert_eq!(difference.pairing.groups[cause.function].name, "work");
    }

    #[test]
    fn a_large_change_is_no_chance_and_equal_runs_set_nothing_apart() {
        let (change, names) = apart((3, 100), (7, 100), (303, 100));
        assert!(names.is_empty() && !change.is_all());
        let (equal, _) = apart((3, 100), (3, 100), (3, 101));
        assert_eq!((equal.differing, equal.left_change, equal.is_all()), (0, 1, false));
        let (none, _) = apart((3, 100), (3, 100), (3, 100));
        assert!(none.is_all());
    }
}
