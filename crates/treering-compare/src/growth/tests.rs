use treering_profile::{
    BasicBlock, BlockExecutions, BlockId, CodeAddress, CodeSpace, Function, FunctionId, Metric, Profile,
    RecursionRule, StatedAddress, ThreadId, Unit,
};

use super::{Form, NotScalable, Scaling, Sized, growth};

const SIZES: [u64; 6] = [250, 500, 1000, 2000, 4000, 8000];

const N: Form = Form::ALL[3];
const N_LOG: Form = Form::ALL[4];
const SQUARE: Form = Form::ALL[6];

/// A profile with instructions and calls of contexts, which are written as `main;work`.
fn profile(contexts: &[(&str, u64, u64)]) -> Profile {
    let mut profile = Profile::new(RecursionRule::Full);
    let metric = profile.add_metric(Metric::exact("instructions", Unit::Count));
    let thread = profile.add_single_thread("main");
    let root = profile.threads[thread.index()].root;
    for (chain, cost, calls) in contexts {
        let mut node = root;
        for name in chain.split(';') {
            let name = profile.strings.intern(name);
            let function = profile.functions.intern(Function::named(name));
            node = profile.tree.child(node, function, None);
        }
        profile.tree.add_self_cost(metric, node, *cost);
        profile.tree.add_calls(node, *calls, 0);
    }
    profile
}

fn scaling_of(
    sizes: &[u64],
    run: impl Fn(u64) -> Vec<(&'static str, u64, u64)>,
) -> Result<Scaling, NotScalable> {
    let profiles: Vec<Profile> = sizes.iter().map(|&size| profile(&run(size))).collect();
    let sized: Vec<Sized<'_>> =
        sizes.iter().zip(&profiles).map(|(&size, profile)| Sized { size: size as f64, profile }).collect();
    growth(&sized, None)
}

fn scaling(run: impl Fn(u64) -> Vec<(&'static str, u64, u64)>) -> Scaling {
    scaling_of(&SIZES, run).expect("the sizes differ")
}

fn row<'a>(scaling: &'a Scaling, name: &str) -> &'a super::FunctionGrowth {
    scaling.functions.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("no {name}"))
}

/// A cost of each form, with a constant, and with what real loops do: parts of lower order, and whole numbers.
fn of_form(form: usize, size: u64) -> u64 {
    let n = size as f64;
    let lower = if form > 0 { Form::ALL[form - 1].at(n) / 10.0 } else { 0.0 };
    (900.0 + 40.0 * Form::ALL[form].at(n) + lower) as u64
}

#[test]
fn each_form_is_found_with_a_constant_and_a_part_of_lower_order() {
    for form in 0..Form::ALL.len() {
        let scaling = scaling(|size| vec![("main;work", of_form(form, size), 1)]);
        let curve = &row(&scaling, "work").self_cost;
        assert_eq!(curve.form, Form::ALL[form], "{curve:?}");
        assert!(curve.is_settled, "{curve:?}");
        let foretold = curve.model.at(scaling.foretold());
        let truth = of_form(form, 80_000) as f64;
        assert!((foretold / truth - 1.0).abs() < 0.03, "{form}: {foretold} for {truth}");
    }
}

/// `insert` is called n times and calls `shift` n times; `main` and `read` do work that is linear, and `shift` costs less
/// than they do at every size that was run.
#[test]
fn the_function_whose_calls_grow_dearer_is_the_culprit() {
    let scaling = scaling(|n| {
        vec![
            ("main", 500_000 * n, 1),
            ("main;load;read", 30 * n, n),
            ("main;load;insert", 20 * n, n),
            ("main;load;insert;shift", 8 * n * n, n * n),
            ("main;load;insert;move", 2 * n * n, n),
        ]
    });
    assert_eq!(scaling.run.form, SQUARE);
    let culprit = scaling.culprit.as_ref().expect("there is one");
    let name = |function: usize| scaling.functions[function].name.as_str();
    assert_eq!(name(culprit.function), "insert");
    assert_eq!(culprit.chain.iter().map(|&at| name(at)).collect::<Vec<_>>(), ["main", "load", "insert"]);
    let (calls, per_call) = culprit.calls.as_ref().expect("calls were counted");
    assert_eq!((calls.form, *per_call), (N, N));
    let parts: Vec<_> = culprit.parts.iter().map(|part| (name(part.function), part.self_cost.form)).collect();
    assert_eq!(parts, [("insert", N), ("shift", SQUARE), ("move", SQUARE)]);
    let calls: Vec<_> = culprit.parts.iter().map(|part| part.calls.as_ref().expect("counted").form).collect();
    assert_eq!(calls, [N, SQUARE, N]);
    // 80,000 × 10 of 510,050 + 80,000 × 10.
    assert!((scaling.share(&culprit.total_cost) - 80_020.0 / 580_050.0).abs() < 1e-9);
    assert!((scaling.foretold_share(&culprit.total_cost) - 800_020.0 / 1_300_050.0).abs() < 1e-4);
    assert_eq!(name(culprit.elsewhere[0].function), "main");
}

/// `work` costs most when `load` calls it, at every size that was run.
#[test]
fn the_chain_of_the_culprit_is_the_one_along_which_it_grows() {
    let scaling = scaling(|n| vec![("main;load;work", 500_000 * n, 1), ("main;search;work", 10 * n * n, 1)]);
    let culprit = scaling.culprit.as_ref().expect("there is one");
    let chain: Vec<_> = culprit.chain.iter().map(|&at| scaling.functions[at].name.as_str()).collect();
    assert_eq!(chain, ["main", "search", "work"]);
}

/// Its loop calls `leaf` n² times at the same cost each: it is `pairs` that is called once.
#[test]
fn a_callee_whose_calls_cost_the_same_is_not_the_culprit() {
    let scaling = scaling(|n| vec![("main;pairs", 3 * n * n, 1), ("main;pairs;leaf", 9 * n * n, n * n)]);
    let culprit = scaling.culprit.as_ref().expect("there is one");
    assert_eq!(scaling.functions[culprit.function].name, "pairs");
    let (calls, per_call) = culprit.calls.as_ref().expect("calls were counted");
    assert_eq!((calls.form, *per_call), (Form::CONSTANT, SQUARE));
}

/// Contexts of a recursion are new at each size; folded, they are one.
#[test]
fn a_recursion_is_one_context_however_deep() {
    let chains: Vec<&'static str> =
        (1..=14).map(|depth| &*format!("main;{}", ["sort"; 14][..depth].join(";")).leak()).collect();
    let scaling = scaling(|n| {
        let depth = n.ilog2() as usize;
        (0..=depth).map(|level| (chains[level.min(13)], 6 * n, 1_u64 << level)).collect()
    });
    let sort = row(&scaling, "sort");
    assert_eq!(sort.self_cost.form, N_LOG, "{sort:?}");
    assert_eq!(sort.calls.as_ref().map(|calls| calls.form), Some(N), "{sort:?}");
    assert_eq!(sort.total_cost.as_ref().map(|total| &total.costs), Some(&sort.self_cost.costs));
    let culprit = scaling.culprit.as_ref().expect("there is one");
    let (calls, per_call) = culprit.calls.as_ref().expect("calls were counted");
    assert_eq!((calls.form, *per_call), (Form::CONSTANT, N_LOG));
}

#[test]
fn a_linear_program_has_no_culprit() {
    let scaling = scaling(|n| vec![("main", 100, 1), ("main;work", 70 * n + 5, n)]);
    assert_eq!((scaling.run.form, &scaling.culprit), (N, &None));
    assert!(scaling.run.is_settled);
    assert!((scaling.run.slope.expect("it grows") - 1.0).abs() < 0.001);
}

/// A step at the largest size is no growth that could be foretold.
#[test]
fn a_form_that_the_largest_size_alone_shows_is_not_settled() {
    let scaling =
        scaling(|n| vec![("main", 1000 * n, 1), ("main;late", if n >= 8000 { 700 * n } else { n }, 1)]);
    assert!(!row(&scaling, "late").self_cost.is_settled);
    assert!(row(&scaling, "main").self_cost.is_settled);
    let once = scaling_of(&SIZES, |n| {
        vec![("main", 1000 * n, 1), ("main;late", if n >= 8000 { 700 * n } else { 0 }, 1)]
    });
    let once = once.expect("the sizes differ");
    // One measurement fits n³ as well; it would be nearly all of the run that is foretold.
    assert_eq!(row(&once, "late").self_cost.form, N);
    assert!(!row(&once, "late").self_cost.is_settled);
}

/// The costs of a program with random hashes: a constant that varies by a hundredth, and by chance most at the end.
#[test]
fn noise_around_a_constant_is_no_growth() {
    let noise = [3, 0, 1, 2, 0, 9];
    let scaling = scaling(|n| {
        let at = SIZES.iter().position(|&size| size == n).unwrap_or(0);
        vec![("main", 90 * n, 1), ("main;lookup", 1_000_000 + 1000 * noise[at], n)]
    });
    assert_eq!(row(&scaling, "lookup").self_cost.form, Form::CONSTANT);
    assert_eq!((scaling.run.form, &scaling.culprit), (N, &None));
}

/// A cost that rises with each size is no noise, though none of the forms fits.
#[test]
fn costs_that_rise_faster_than_all_forms_make_a_culprit_that_outgrows_them() {
    for (law, sizes) in [
        (&(|n| 1_u64 << n) as &dyn Fn(u64) -> u64, [6, 9, 12, 15, 18, 21, 24]),
        (&|n: u64| n.pow(4), [4, 6, 8, 12, 16, 24, 32]),
    ] {
        let run = |n: u64| vec![("main", 60 * n, 1), ("main;search", 8 * law(n), 1)];
        let scaling = scaling_of(&sizes, run).expect("the sizes differ");
        let culprit = scaling.culprit.as_ref().expect("the run grows faster than n");
        assert_eq!(scaling.functions[culprit.function].name, "search");
        assert!(scaling.run.outgrows() && culprit.total_cost.outgrows(), "{scaling:?}");
        assert!(scaling.foretold_share(&row(&scaling, "search").self_cost) > 0.9);
    }
}

#[test]
fn costs_between_two_forms_have_one_of_them() {
    let between = |n: u64| vec![("main;work", (n as f64).powf(2.5) as u64, 1)];
    let curve = scaling(between).run;
    assert!(curve.form >= SQUARE && !curve.is_settled && !curve.outgrows(), "{curve:?}");
}

#[test]
fn costs_that_end_at_the_fastest_form_do_not_outgrow_it() {
    let triples = |n: u64| vec![("main;work", n * (n - 1) * (n - 2), 1)];
    let scaling = scaling_of(&[8, 16, 32, 64, 128], triples).expect("the sizes differ");
    assert!(scaling.run.form == Form::FASTEST && !scaling.run.outgrows(), "{:?}", scaling.run);
}

/// Samples of a quadratic and a linear function, drawn with chance: the forms hold, with intervals that hold the truth.
#[test]
fn sampled_costs_have_intervals_that_hold_the_slope() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut held = 0;
    const RUNS: usize = 12;
    for _ in 0..RUNS {
        let profiles: Vec<(u64, Profile)> = SIZES
            .iter()
            .map(|&n| {
                let (slow, fast) = (n as f64 * n as f64 / 4000.0, n as f64 * 2.0);
                let mut drawn =
                    |mean: f64| (mean + mean.sqrt() * super::curve::normal(&mut random)).round().max(0.0);
                let text = format!("main;slow {}\nmain;fast {}", drawn(slow), drawn(fast));
                (n, treering_testing::stacks(&text))
            })
            .collect();
        let sized: Vec<Sized<'_>> =
            profiles.iter().map(|(size, profile)| Sized { size: *size as f64, profile }).collect();
        let scaling = growth(&sized, None).expect("the sizes differ");
        assert!(!scaling.is_exact);
        let slow = &row(&scaling, "slow").self_cost;
        assert!(slow.form >= Form::ALL[5], "{slow:?}");
        let (low, high) = slow.slope_interval.expect("samples have errors");
        held += usize::from((low..=high).contains(&2.0));
        let culprit = scaling.culprit.as_ref().expect("there is one");
        assert_eq!(scaling.functions[culprit.function].name, "slow");
    }
    assert!(held >= RUNS - 2, "{held} of {RUNS}");
}

/// Two loops of one function, of which the slower one is larger until the end. In the smallest run a block is not divided.
#[test]
fn a_function_is_fitted_by_its_blocks_where_they_are_counted() {
    let cost = |n: u64| 2 * 40_000 * n + 3 * n * n;
    let run = |n: u64, with_blocks: bool| {
        let mut profile = profile(&[("main", 100, 1), ("main;mixed", cost(n), 1)]);
        let function = |profile: &Profile, name: &str| -> FunctionId {
            let mut all = profile.functions.iter();
            all.find(|(_, function)| &profile.strings[function.name] == name).expect("it is there").0
        };
        let mixed = function(&profile, "mixed");
        let space = profile.code.spaces.intern(CodeSpace { module: None, generation: 0 });
        let loops: &[(u64, &[u8], u64)] = match n {
            250 => &[(0x10, &[4, 4], 0), (0x20, &[2, 3, 1], 1)],
            _ => &[(0x10, &[4], 0), (0x14, &[4], 0), (0x20, &[2, 3, 1], 1)],
        };
        for (at, (start, lengths, square)) in loops.iter().enumerate().filter(|_| with_blocks) {
            let start = CodeAddress { space, address: StatedAddress(*start) };
            profile.code.blocks.push(BasicBlock {
                start,
                lengths: lengths.iter().copied().collect(),
                function: Some(mixed),
            });
            let executions = if *square == 1 { n * n } else { 40_000 * n };
            let block = BlockId::from_usize(at);
            profile.code.executions.push(BlockExecutions {
                thread: ThreadId::from_usize(0),
                block,
                executions,
            });
        }
        profile
    };
    let error = |with_blocks: bool| {
        let profiles = SIZES.map(|n| run(n, with_blocks));
        let sized: Vec<Sized<'_>> =
            SIZES.iter().zip(&profiles).map(|(&n, profile)| Sized { size: n as f64, profile }).collect();
        let scaling = growth(&sized, None).expect("the sizes differ");
        let curve = &row(&scaling, "mixed").self_cost;
        ((curve.model.at(80_000.0) / cost(80_000) as f64 - 1.0).abs(), curve.form)
    };
    let (by_blocks, form) = error(true);
    assert!(by_blocks < 1e-6 && form == SQUARE, "{by_blocks} {form:?}");
    let (whole, _) = error(false);
    assert!(whole > 0.1, "{whole}");
}

#[test]
fn sizes_that_tell_nothing_are_refused() {
    let run = |n: u64| vec![("main", n, 1)];
    assert_eq!(scaling_of(&[10], run).err(), Some(NotScalable::TooFew(1)));
    assert_eq!(scaling_of(&[10, 20], run).err(), Some(NotScalable::TooFew(2)));
    assert_eq!(scaling_of(&[10, 20, 20], run).err(), Some(NotScalable::Twice(20.0)));
    assert_eq!(scaling_of(&[0, 20, 40], run).err(), Some(NotScalable::TooSmall(0.0)));
    let (a, b) = (profile(&run(1)), treering_testing::stacks("main 3"));
    let sized = [(1.0, &a), (2.0, &b), (4.0, &a)].map(|(size, profile)| Sized { size, profile });
    assert_eq!(growth(&sized, None).err(), Some(NotScalable::NotMeasured(2.0, "instructions".to_owned())));
}
