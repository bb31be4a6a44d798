//! Two profiles in one page.

use std::borrow::Cow;
use std::path::Path;

use treering_analysis::{correct, default_metric};
use treering_compare::{Difference, Joined, Options, Pairing, Reason, Sides, compare_with_code, join};
use treering_profile::{Profile, RecursionRule};
use treering_report::Verdict;
use treering_viewer::{Changes, FunctionChange, Side};

use crate::command::diff::code;
use crate::failure::Failure;

/// Two profiles as one, and why they differ.
pub(super) struct TwoProfiles {
    /// Both, those of the base first.
    pub profile: Profile,
    /// By run: whether it is one of the base.
    pub base_runs: Vec<bool>,
    /// Why the run changed.
    pub changes: Option<Changes>,
    /// The head and the base, where one of them has no stacks.
    pub without_stacks: Option<[Side; 2]>,
}

/// Puts a profile, read from `paths.1`, beside its base, read from `paths.0`.
pub(super) fn both(paths: (&Path, &Path), base: &Profile, head: &Profile) -> Result<TwoProfiles, Failure> {
    check_comparable(paths, base, head)?;
    // A program of another folder, name or build is the same program here.
    let joined = join(base, head, &Pairing::of(base, head));
    let runs = base.runs.len();
    let base_runs = (0..joined.profile.runs.len()).map(|run| run < runs).collect();
    let (base, head) = (correct(base), correct(head));
    let code = code::read(Sides { base: &*base.profile, head: &*head.profile });
    let compared = compare_with_code(&base.profile, &head.profile, &Options::default(), &code);
    let changes = compared.ok().and_then(|difference| changes(&difference, &joined));
    let lacks_stacks = |profile: &Profile| profile.is_arcs_only() || profile.recursion == RecursionRule::Flat;
    let without_stacks = (lacks_stacks(&base.profile) || lacks_stacks(&head.profile)).then(|| {
        let side = |profile: Cow<'_, Profile>, functions| Side { profile: profile.into_owned(), functions };
        [side(head.profile, joined.functions.head), side(base.profile, joined.functions.base)]
    });
    Ok(TwoProfiles { profile: joined.profile, base_runs, changes, without_stacks })
}

fn check_comparable(paths: (&Path, &Path), base: &Profile, head: &Profile) -> Result<(), Failure> {
    let name = |profile: &Profile| {
        default_metric(profile).map(|metric| profile.metrics[metric.index()].name.clone())
    };
    let (Some(of_base), Some(of_head)) = (name(base), name(head)) else { return Ok(()) };
    if base.find_metric(&of_head).is_some() || head.find_metric(&of_base).is_some() {
        return Ok(());
    }
    Err(Failure::new(format_args!(
        "{} measures {of_base} and {} measures {of_head}: they cannot be compared",
        paths.0.display(),
        paths.1.display()
    ))
    .hint("record both in the same way"))
}

/// The verdict and the changes of functions, in the words of the page's profile.
fn changes(difference: &Difference, joined: &Joined) -> Option<Changes> {
    let function = |group: usize| joined.groups[group];
    let cause = difference.cause.map(|cause| match cause.reason {
        Reason::Calls { caller, .. } if caller != 0 => function(caller),
        _ => function(cause.function),
    });
    let first = || {
        let certain = difference.functions.first().filter(|first| first.certainty.is_certain)?;
        Some(function(certain.group))
    };
    let part = |value: i128| value.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
    let functions = difference.functions.iter().filter_map(|change| {
        let (calls, split) = (change.calls?, change.split?);
        Some(FunctionChange {
            function: function(change.group),
            calls: (calls.base, calls.head),
            more_calls: part(split.more_calls),
            cost_per_call: part(split.cost_per_call),
        })
    });
    Some(Changes {
        verdict: Verdict::of(difference).text,
        cause: cause.or_else(first),
        metric: joined.profile.find_metric(&difference.metric)?,
        functions: functions.collect(),
    })
}
