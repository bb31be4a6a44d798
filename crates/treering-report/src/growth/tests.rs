use expect_test::expect;
use treering_compare::{Scaling, Sized, growth};
use treering_profile::Profile;

use super::{GrowthView, growth_json, growth_text};
use crate::{Style, in_ascii};

/// For each of the items it is read and inserted, for which all that are there are shifted one by one.
fn run(items: u64) -> Profile {
    let mut text = "0 enter main\n".to_owned();
    let mut now = 0;
    for at in 0..items {
        text += &format!("{now} enter read\n{} leave read\n{} enter insert\n", now + 40, now + 40);
        now += 42;
        for _ in 0..at {
            text += &format!("{now} enter shift\n{} leave shift\n", now + 3);
            now += 3;
        }
        text += &format!("{now} leave insert\n");
    }
    treering_testing::trace(&format!("{text}{} leave main\n", now + 500))
}

fn scaling(run: impl Fn(u64) -> Profile) -> Scaling {
    let profiles: Vec<(u64, Profile)> =
        [8, 16, 32, 64, 128].into_iter().map(|size| (size, run(size))).collect();
    let sized: Vec<Sized<'_>> =
        profiles.iter().map(|(size, profile)| Sized { size: *size as f64, profile }).collect();
    growth(&sized, None).expect("the sizes differ")
}

const VIEW: GrowthView<'_> = GrowthView { parameter: "n", limit: None, notes: &[] };

#[test]
fn the_culprit_comes_first_with_what_it_calls_and_how_it_is_called() {
    let text = growth_text(&scaling(run), VIEW, &Style { colour: false, width: Some(80) });
    expect![[r#"
        n²: insert, called n times, cost per call grows with n
        81 % of the run at n = 128, 98 % at 1,280

        self 128  at 1,280  growth  slope  calls  function
           0.8 %     0.1 %       n   1.00      n  insert
          80.6 %    97.8 %      n²   2.01     n²  └ shift
          16.9 %     2.1 %       n   1.00      n  read
           1.7 %     0.0 %       1   0.00      1  main

        called by main
        5 sizes of n, time, measured, errors not known · slope: last step · at 1,280:
        extrapolated 10 times
    "#]]
    .assert_eq(&text);
}

#[test]
fn a_run_that_grows_no_faster_than_its_input_says_so() {
    let linear =
        |items: u64| treering_testing::trace(&format!("0 enter main\n{} leave main\n", 30 * items + 7));
    let text = growth_text(&scaling(linear), VIEW, &Style::default());
    expect![[r#"
        n: the run grows no faster than n
        slope 1.00 from n = 64 to 128

        self 128  at 1,280  growth  slope  calls  function
         100.0 %   100.0 %       n   1.00      1  main
        5 sizes of n, time, measured, errors not known · slope: last step · at 1,280: extrapolated 10 times
    "#]]
    .assert_eq(&text);
}

/// Every word that a terminal without Unicode is shown.
#[test]
fn in_ascii_nothing_is_left_of_other_letters() {
    let text = in_ascii(&growth_text(&scaling(run), VIEW, &Style::default()));
    assert!(text.is_ascii(), "{text}");
}

#[test]
fn json_has_the_verdict_and_the_numbers_of_every_function() {
    let json: serde_json::Value =
        serde_json::from_str(&growth_json(&scaling(run), VIEW)).expect("it is JSON");
    let verdict = &json["verdict"];
    assert_eq!((&verdict["function"], &verdict["growth"]), (&"insert".into(), &"n²".into()));
    assert_eq!((&verdict["calls_growth"], &verdict["cost_per_call_growth"]), (&"n".into(), &"n".into()));
    assert_eq!(verdict["callers"], serde_json::json!(["main"]));
    let shift = &json["functions"][0];
    assert_eq!(shift["function"], "shift");
    assert_eq!(shift["self_cost"]["values"], serde_json::json!([84, 360, 1488, 6048, 24384]));
}
