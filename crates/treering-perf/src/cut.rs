//! Why stacks were cut short, counted, and said in the profile.

use hashbrown::HashMap;
use treering_profile::{ModuleId, ModuleKind, Profile};

use crate::address_space::{AddressSpace, Cut, Uncertainty};
use crate::options::LARGEST_STACK;

/// How many stacks were cut short, by reason.
#[derive(Debug, Default)]
pub(crate) struct Cuts {
    beyond_copy: u64,
    hole: u64,
    other_stack: u64,
    too_deep: u64,
    /// By the module whose caller was not found.
    lost: HashMap<Option<ModuleId>, u64>,
    /// Whole stacks with callers that are not certain.
    uncertain: HashMap<Uncertainty, u64>,
}

impl Cuts {
    /// Counts a stack that was cut short.
    pub(crate) fn count(&mut self, cut: Cut, space: &AddressSpace) {
        match cut {
            Cut::BeyondCopy => self.beyond_copy += 1,
            Cut::Hole => self.hole += 1,
            Cut::OtherStack | Cut::Goroutine(_) => self.other_stack += 1,
            Cut::TooDeep => self.too_deep += 1,
            Cut::FramePointers => {}
            Cut::Lost(address) => {
                let module = space.place(address).and_then(|place| place.module);
                *self.lost.entry(module).or_default() += 1;
            }
        }
    }

    /// Counts a whole stack with callers that are not certain.
    pub(crate) fn count_uncertain(&mut self, uncertainty: Uncertainty) {
        *self.uncertain.entry(uncertainty).or_default() += 1;
    }

    /// How many whole stacks were read from the process in part.
    pub(crate) fn read_later(&self) -> u64 {
        let count = |uncertainty| self.uncertain.get(&uncertainty).copied().unwrap_or(0);
        count(Uncertainty::ReadLater) + count(Uncertainty::Goroutine)
    }

    /// Notes in the profile why stacks were cut short. A reason that holds for fewer than one stack in 200, as at a
    /// program's start, has no note: the losses state the number of all.
    pub(crate) fn note(&self, profile: &mut Profile, stack_bytes: u32) {
        let samples = profile.metadata.losses.samples;
        let is_worth_it = |count: u64| count > 0 && count * 200 >= samples;
        let mut notes = Vec::new();
        if is_worth_it(self.beyond_copy) {
            let more = if stack_bytes < LARGEST_STACK { "; a larger --stack reaches further" } else { "" };
            notes.push(format!(
                "{} than the {} KiB copied of each{more}",
                stacks(self.beyond_copy, "goes deeper", "go deeper"),
                stack_bytes / 1024
            ));
        }
        if is_worth_it(self.hole) {
            notes.push(format!(
                "{} behind memory that was not there when the kernel copied it (never touched, or swapped out), and \
                 could not be read reliably afterwards",
                stacks(self.hole, "continues", "continue")
            ));
        }
        if is_worth_it(self.other_stack) {
            notes.push(format!(
                "{} another stack (of a signal, a coroutine or a goroutine), which was not copied",
                stacks(self.other_stack, "continues on", "continue on")
            ));
        }
        if is_worth_it(self.too_deep) {
            notes.push(format!("{} more frames than can be kept", stacks(self.too_deep, "has", "have")));
        }
        if is_worth_it(self.lost.values().sum()) {
            notes.push(self.describe_lost(profile));
        }
        for uncertainty in [Uncertainty::FramePointers, Uncertainty::ReadLater, Uncertainty::Goroutine] {
            let count = self.uncertain.get(&uncertainty).copied().unwrap_or(0);
            if is_worth_it(count) {
                notes.push(describe_uncertainty(uncertainty, count));
            }
        }
        for note in notes {
            profile.metadata.note(note);
        }
    }

    fn describe_lost(&self, profile: &Profile) -> String {
        let mut modules: Vec<_> = self.lost.iter().map(|(&module, &count)| (count, module)).collect();
        modules.sort_by_key(|&(count, module)| (std::cmp::Reverse(count), module));
        let named = modules.iter().take(MOST_MODULES).map(|&(count, module)| {
            format!("{} ({count})", module.map_or_else(unmapped, |module| name(profile, module)))
        });
        let mut named: Vec<String> = named.collect();
        if modules.len() > MOST_MODULES {
            named.push("others".to_owned());
        }
        let all = self.lost.values().sum();
        format!(
            "{} where neither unwind tables nor the code tell the caller: in {}",
            stacks(all, "ends", "end"),
            named.join(", ")
        )
    }
}

/// How many modules a note names.
const MOST_MODULES: usize = 3;

fn stacks(count: u64, one: &str, more: &str) -> String {
    if count == 1 { format!("1 stack {one}") } else { format!("{count} stacks {more}") }
}

fn describe_uncertainty(uncertainty: Uncertainty, count: u64) -> String {
    match uncertainty {
        Uncertainty::FramePointers => format!(
            "{} by frame pointers through code that may keep none: callers may be missing from them",
            stacks(count, "was followed", "were followed")
        ),
        Uncertainty::ReadLater => format!(
            "{} in memory that the kernel did not copy and that was read some milliseconds later: their outer callers \
             may be those of that moment",
            stacks(count, "goes on", "go on")
        ),
        Uncertainty::Goroutine => format!(
            "{} the function of Go that has left its goroutine's stack for the runtime's",
            stacks(count, "lacks", "lack")
        ),
    }
}

fn unmapped() -> String {
    "unmapped memory".to_owned()
}

fn name(profile: &Profile, module: ModuleId) -> String {
    let Some(module) = profile.modules.get(module) else { return unmapped() };
    let path = profile.strings.get(module.path).unwrap_or_default();
    match module.kind {
        ModuleKind::Elf => path.rsplit('/').next().unwrap_or(path).to_owned(),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use treering_profile::RecursionRule;

    use super::*;

    fn notes(cuts: &Cuts, samples: u64) -> Vec<String> {
        let mut profile = Profile::new(RecursionRule::Full);
        profile.metadata.losses.samples = samples;
        cuts.note(&mut profile, 32 << 10);
        profile.metadata.notes.into_iter().map(|note| note.0).collect()
    }

    #[test]
    fn each_reason_is_stated_with_its_remedy() {
        let mut cuts = Cuts::default();
        let uncertainties = [
            Uncertainty::FramePointers,
            Uncertainty::FramePointers,
            Uncertainty::ReadLater,
            Uncertainty::Goroutine,
        ];
        uncertainties.into_iter().for_each(|uncertainty| cuts.count_uncertain(uncertainty));
        let space = AddressSpace::default();
        for cut in
            [Cut::BeyondCopy, Cut::Hole, Cut::OtherStack, Cut::OtherStack, Cut::Lost(7), Cut::FramePointers]
        {
            cuts.count(cut, &space);
        }
        let expected = [
            "1 stack goes deeper than the 32 KiB copied of each; a larger --stack reaches further",
            "1 stack continues behind memory that was not there when the kernel copied it (never touched, or swapped out), \
             and could not be read reliably afterwards",
            "2 stacks continue on another stack (of a signal, a coroutine or a goroutine), which was not copied",
            "1 stack ends where neither unwind tables nor the code tell the caller: in unmapped memory (1)",
            "2 stacks were followed by frame pointers through code that may keep none: callers may be missing from them",
            "1 stack goes on in memory that the kernel did not copy and that was read some milliseconds later: their \
             outer callers may be those of that moment",
            "1 stack lacks the function of Go that has left its goroutine's stack for the runtime's",
        ];
        assert_eq!(notes(&cuts, 6), expected);
    }

    #[test]
    fn a_few_among_many_are_not_explained() {
        let cuts = Cuts { beyond_copy: 1, ..Cuts::default() };
        assert!(notes(&cuts, 1000).is_empty());
        assert!(notes(&Cuts::default(), 0).is_empty());
    }
}
