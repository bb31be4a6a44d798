//! Two profiles in one page.

use std::path::Path;

use treering_analysis::{correct, default_metric};
use treering_compare::{Difference, Joined, Options, Pairing, Reason, Sides, compare_with_code, join};
use treering_profile::Profile;
use treering_report::Verdict;
use treering_viewer::{Changes, FunctionChange};

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
    Ok(TwoProfiles { profile: joined.profile, base_runs, changes })
}

fn check_comparable(paths: (&Path, &Path), base: &Profile, head: &Profile) -> Result<(), Failure> {
    for (path, profile) in [(paths.0, base), (paths.1, head)] {
        if profile.is_arcs_only() {
            let message = format!("{} has no stacks, so its calls cannot be compared", path.display());
            let hint = "treering diff compares functions and calls without stacks; record it again, or count it with --tree";
            return Err(Failure::new(message).hint(hint));
        }
    }
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
    let function = |group: usize| joined.functions[group];
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
