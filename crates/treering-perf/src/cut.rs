//! Why stacks were cut short, counted, and said in the profile.

use hashbrown::HashMap;
use treering_profile::{ModuleId, ModuleKind, Profile};

use crate::address_space::{AddressSpace, Cut};

/// How many stacks were cut short, by reason.
#[derive(Debug, Default)]
pub(crate) struct Cuts {
    beyond_copy: u64,
    other_stack: u64,
    too_deep: u64,
    /// By the module whose caller was not found.
    lost: HashMap<Option<ModuleId>, u64>,
    /// Stacks whose frame pointers may have passed callers by.
    doubtful: u64,
}

impl Cuts {
    /// Counts a stack that was cut short.
    pub(crate) fn count(&mut self, cut: Cut, space: &AddressSpace) {
        match cut {
            Cut::BeyondCopy => self.beyond_copy += 1,
            Cut::OtherStack => self.other_stack += 1,
            Cut::TooDeep => self.too_deep += 1,
            Cut::FramePointers => {}
            Cut::Lost(address) => {
                let module = space.place(address).and_then(|place| place.module);
                *self.lost.entry(module).or_default() += 1;
            }
        }
    }

    /// Counts a stack that may lack callers.
    pub(crate) fn count_doubtful(&mut self) {
        self.doubtful += 1;
    }

    /// Says in the profile why stacks were cut short. Nothing where a few in passing were, as at a
    /// program's start: those have their number in the losses already.
    pub(crate) fn note(&self, profile: &mut Profile, stack_bytes: u32) {
        let samples = profile.metadata.losses.samples;
        let is_worth_it = |count: u64| count > 0 && count * 200 >= samples;
        let mut notes = Vec::new();
        if is_worth_it(self.beyond_copy) {
            let more = if stack_bytes < LARGEST { "; a larger --stack reaches further" } else { "" };
            notes.push(format!(
                "{} than the {} KiB copied of each{more}",
                stacks(self.beyond_copy, "goes deeper", "go deeper"),
                stack_bytes / 1024
            ));
        }
        if is_worth_it(self.other_stack) {
            notes.push(format!(
                "{} another stack (of a signal or a coroutine), which was not copied",
                stacks(self.other_stack, "continues on", "continue on")
            ));
        }
        if is_worth_it(self.too_deep) {
            notes.push(format!("{} more frames than can be kept", stacks(self.too_deep, "has", "have")));
        }
        if is_worth_it(self.lost.values().sum()) {
            notes.push(self.describe_lost(profile));
        }
        if is_worth_it(self.doubtful) {
            notes.push(format!(
                "{} by frame pointers through code that may keep none: callers may be missing from them",
                stacks(self.doubtful, "was followed", "were followed")
            ));
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

/// The kernel copies no more than this of a stack.
const LARGEST: u32 = 65_528;

/// How many modules a note names.
const MOST_MODULES: usize = 3;

fn stacks(count: u64, one: &str, more: &str) -> String {
    if count == 1 { format!("1 stack {one}") } else { format!("{count} stacks {more}") }
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
    fn each_reason_is_said_with_what_helps() {
        let mut cuts = Cuts { doubtful: 2, ..Cuts::default() };
        let space = AddressSpace::default();
        for cut in [Cut::BeyondCopy, Cut::OtherStack, Cut::OtherStack, Cut::Lost(7), Cut::FramePointers] {
            cuts.count(cut, &space);
        }
        let expected = [
            "1 stack goes deeper than the 32 KiB copied of each; a larger --stack reaches further",
            "2 stacks continue on another stack (of a signal or a coroutine), which was not copied",
            "1 stack ends where neither unwind tables nor the code tell the caller: in unmapped memory (1)",
            "2 stacks were followed by frame pointers through code that may keep none: callers may be missing from them",
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
