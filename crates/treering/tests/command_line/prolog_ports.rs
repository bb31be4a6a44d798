//! Exact ports where programs do what is hard to follow, and what is refused.

use crate::prolog::{Prolog, check_boxes, counts, text};

const START: &str = ":- use_module(library(treering)).\n:- use_module(fixtures(boxes)).\n\
    ports(Goal, File) :- treering(Goal, [ports(true), report(none), output(File)]).\n";

#[test]
fn every_thread_has_its_own_activations() {
    let Some(prolog) = Prolog::new("threads") else { return };
    prolog.run(&format!(
        "{START}
        :- ports(( findall(Id, (between(1, 4, _), thread_create(boxes:caught(50), Id)), Ids),
                   boxes:loop(500),
                   forall(member(Id, Ids), thread_join(Id)) ), 'threads.trg')."
    ));
    let profile = prolog.profile("threads.trg");
    let counts = counts(&profile);
    assert_eq!(counts["boxes:deep/1"], [204, 0, 0, 0, 204, 0]);
    assert_eq!(counts["boxes:caught/1"], [4, 4, 0, 0, 0, 0]);
    assert_eq!(counts["boxes:loop/1"], [501, 501, 0, 0, 0, 0]);
    check_boxes(&profile);
    // The record of a thread that has ended serves the next one.
    assert!(profile.threads.len() >= 2, "{}", profile.threads.len());
}

#[test]
fn engines_rest_and_go_on() {
    let Some(prolog) = Prolog::new("engines") else { return };
    prolog.run(&format!(
        "{START}
        producer :- item(X), inner(X), engine_yield(X), after, fail.
        producer.
        item(1). item(2). item(3).
        inner(_).
        after.
        local.
        take(Engine) :- engine_next(Engine, _), local.
        whole :- engine_create(_, producer, Engine), take(Engine), take(Engine), take(Engine), take(Engine),
                 \\+ engine_next(Engine, _).
        part :- engine_create(_, producer, Engine), take(Engine), take(Engine), engine_destroy(Engine).
        two :- engine_create(X, item(X), A), engine_create(X, item(X), B),
               take(A), take(B), take(A), take(B), take(A), take(B),
               \\+ engine_next(A, _), \\+ engine_next(B, _).
        :- ports(whole, 'whole.trg'), ports(part, 'part.trg'), ports(two, 'two.trg')."
    ));
    let whole = prolog.profile("whole.trg");
    check_boxes(&whole);
    let of = counts(&whole);
    assert_eq!(of["producer/0"], [1, 1, 0, 0, 0, 0]);
    assert_eq!(of["item/1"], [1, 3, 2, 0, 0, 0]);
    assert_eq!([of["inner/1"], of["after/0"]], [[3, 3, 0, 0, 0, 0]; 2]);
    assert_eq!([of["take/1"], of["local/0"]], [[4, 4, 0, 0, 0, 0]; 2]);
    // Calls in an engine stand below what made it go on, and never below what ran in it.
    let names = |node| &whole.strings[whole.functions.entries()[whole.tree.function(node).index()].name];
    for node in whole.tree.nodes() {
        let mut above = whole.tree.path(node).skip(1);
        assert!(names(node) != "local/0" || !above.any(|node| names(node) == "producer/0"));
    }
    // One that is destroyed while it rests has neither succeeded nor failed.
    let part = prolog.profile("part.trg");
    check_boxes(&part);
    assert_eq!(counts(&part)["producer/0"], [1, 0, 0, 0, 1, 0]);
    let two = prolog.profile("two.trg");
    check_boxes(&two);
    assert_eq!(counts(&two)["item/1"], [2, 6, 4, 0, 0, 0]);
}

#[test]
fn the_end_of_a_goal_is_passed_on() {
    let Some(prolog) = Prolog::new("ends") else { return };
    let printed = prolog.run(&format!(
        "{START}
        :- catch(ports(boxes:deep(3), 'throws.trg'), Ball, (print(Ball), nl)).
        :- ( ports(boxes:gen(7), 'fails.trg') -> true ; writeln(failed) ).
        :- ports(boxes:gen(X), 'succeeds.trg'), writeln(X).
        :- predicate_property(boxes:gen(_), wrapped(_)) -> writeln(wrapped) ; writeln(clean)."
    ));
    assert_eq!(printed, "bottom\nfailed\n1\nclean\n");
    assert_eq!(counts(&prolog.profile("throws.trg"))["boxes:deep/1"], [4, 0, 0, 0, 4, 0]);
    assert_eq!(counts(&prolog.profile("fails.trg"))["boxes:gen/1"], [1, 0, 0, 1, 0, 0]);
    assert_eq!(counts(&prolog.profile("succeeds.trg"))["boxes:gen/1"], [1, 1, 0, 0, 0, 1]);
    assert_eq!(counts(&prolog.profile("throws.trg"))["?- deep(3)"], [1, 0, 0, 0, 1, 0]);
}

/// A file alone is sent to others, without what was printed.
#[test]
fn a_profile_names_the_predicates_that_were_not_counted() {
    let Some(prolog) = Prolog::new("uncounted") else { return };
    let output = prolog.output(&format!(
        "{START}
        main :- assertz(fresh(1)), call(fresh, _), boxes:loop(3).
        :- ports(main, 'uncounted.trg')."
    ));
    assert!(output.status.success() && text(&output.stderr).contains("not counted, since"), "{output:?}");
    let told = "not counted, since the goal loaded or asserted their first clause: fresh/1";
    let profile = prolog.profile("uncounted.trg");
    let notes: Vec<_> = profile.metadata.notes.iter().map(|note| note.0.as_str()).collect();
    assert!(notes.contains(&told), "{notes:?}");
}

/// Wrapping SWI-Prolog's thread-local hook for messages of threads crashes programs with threads.
#[test]
fn thread_local_predicates_are_not_wrapped() {
    let Some(prolog) = Prolog::new("thread-local") else { return };
    let output = prolog.output(
        ":- use_module(library(treering)).\n:- use_module(library(thread)).\n:- thread_local own/1.\n\
         uses(X) :- ignore(own(X)).\ngo :- concurrent_forall(member(X, [1,2,3]), uses(X)).\n\
         :- treering(go, [ports(true), modules([user]), report(none), output('go.trg')]).\n\
         :- catch(treering(go, [ports(true), predicates([own/1])]), error(E, _), (print(E), nl)).\n",
    );
    let (printed, errors) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{printed}\n{errors}");
    assert!(
        printed.contains("permission_error(profile,thread_local_predicate,user:own/1)"),
        "{printed}\n{errors}"
    );
    let counts = counts(&prolog.profile("go.trg"));
    assert_eq!(counts["uses/1"], [3, 3, 0, 0, 0, 0]);
    assert!(!counts.contains_key("own/1") && !counts.contains_key("thread_message_hook/3"), "{counts:?}");
}

#[test]
fn a_goal_that_halts_leaves_its_profile() {
    let Some(prolog) = Prolog::new("halts") else { return };
    let output = prolog.output(&format!(
        "{START}stops :- boxes:loop(10), halt(3).\n:- current_prolog_flag(version, V), print(V), nl.\n\
         :- initialization(ports(stops, 'halts.trg')).\n"
    ));
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let version = text(&output.stdout).lines().find_map(|line| line.parse::<u32>().ok());
    let counts = counts(&prolog.profile("halts.trg"));
    assert_eq!(counts["boxes:loop/1"], [11, 11, 0, 0, 0, 0]);
    // Since 9.3, halt/1 unwinds what is open.
    let unwound = u64::from(version.expect("the script prints it") >= 90_300);
    assert_eq!(counts["stops/0"], [1, 0, 0, 0, unwound, 0]);
}

#[test]
fn deep_recursion_takes_time_in_proportion_and_is_warned_of() {
    let Some(prolog) = Prolog::new("deep") else { return };
    // In time that grew with the depth of every call this would take an hour.
    let output = prolog.output(&format!("{START}:- ports(boxes:loop(120000), 'deep.trg').\n"));
    let errors = text(&output.stderr);
    assert!(
        errors.contains("calls were 120,002 deep") && errors.contains("except([boxes:loop/1])"),
        "{errors}"
    );
    assert_eq!(counts(&prolog.profile("deep.trg"))["boxes:loop/1"], [120_001, 120_001, 0, 0, 0, 0]);
}

#[test]
fn running_out_of_stack_leaves_the_profile_and_a_hint() {
    let Some(prolog) = Prolog::new("stack") else { return };
    let output = prolog.output(&format!(
        "{START}:- set_prolog_flag(stack_limit, 10_000_000).\n\
         :- catch(ports(boxes:loop(1000000), 'stack.trg'), error(resource_error(What), _), (print(What), nl)).\n"
    ));
    let (printed, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(printed.contains("stack"), "{printed}\n{errors}");
    assert!(errors.contains("the stack was exhausted when calls were"), "{errors}");
    let profile = prolog.profile("stack.trg");
    check_boxes(&profile);
    let [calls, exits, _, _, exceptions, _] = counts(&profile)["boxes:loop/1"];
    assert!(calls > 1000 && exits == 0 && exceptions == calls, "{calls} {exits} {exceptions}");
}

#[test]
fn predicates_are_chosen() {
    let Some(prolog) = Prolog::new("chosen") else { return };
    prolog.run(&format!(
        "{START}
        own(L) :- append(X, [_], L), length(X, 2), atom_length(abc, 3), phrase(letters, [a,a]).
        letters --> [a], letters.
        letters --> [].
        :- treering(own([1,2,3]), [ports(true), report(none), output('some.trg'),
                                   predicates([lists:append/3, system:atom_length/2, user:letters//0])]).
        :- treering(own([1,2,3]), [ports(true), report(none), output('without.trg'), except([letters//0])])."
    ));
    let some = counts(&prolog.profile("some.trg"));
    assert_eq!(some.len(), 4, "{some:?}");
    assert_eq!(some["lists:append/3"][..2], [3, 3]);
    assert_eq!(some["atom_length/2"], [1, 1, 0, 0, 0, 0]);
    assert_eq!(some["letters/2"][..2], [3, 3]);
    let without = counts(&prolog.profile("without.trg"));
    assert!(without.contains_key("own/1") && !without.contains_key("letters/2"), "{without:?}");
}

#[test]
fn wrong_options_are_refused_with_the_known_ones() {
    let Some(prolog) = Prolog::new("refused") else { return };
    for (goal, expected) in [
        ("treering(true, [port(true)])", "the options are ports, clock, output"),
        ("treering(true, [ports(maybe)])", "ports takes true or false"),
        ("treering(true, [clock(sun)])", "clock takes one of cpu, wall"),
        ("treering(true, [ports(true), ports(false)])", "is given twice"),
        ("treering(true, [recursion(full)])", "is for ports(true) only"),
        ("treering(true, [ports(true), predicates([nosuch/7])])", "nosuch/7"),
        ("treering(true, [ports(true), modules([nosuch])])", "module `nosuch' does not exist"),
        ("treering(true, [output('/nonexistent/a.trg')])", "No permission to write file"),
        ("treering(true, [output('.')])", "No permission to write file"),
        ("treering(_, [ports(true)])", "not sufficiently instantiated"),
        ("ports(ports(true, 'b.trg'), 'a.trg')", "a goal is being profiled already"),
        ("treering(treering(true), [report(none)])", "a goal is being profiled already"),
    ] {
        let output = prolog.output(&format!("{START}:- initialization(({goal}, writeln(done))).\n"));
        let (printed, errors) = (text(&output.stdout), text(&output.stderr));
        assert!(errors.contains(expected), "{goal}: {errors}");
        assert!(!printed.contains("done"), "{goal}");
    }
}

#[test]
fn without_the_library_only_ports_are_refused() {
    let Some(prolog) = Prolog::new("no_library") else { return };
    let goals = "treering(boxes:loop(10), [report(none)]), writeln(ticks), ports(true, 'a.trg')";
    let mut command = prolog.command(&format!("{START}:- initialization(({goals})).\n"));
    let output = command.env_remove("TREERING_PROLOG_LIBRARY").output().expect("swipl runs");
    assert_eq!(text(&output.stdout), "ticks\n");
    assert!(text(&output.stderr).contains("foreign_library `treering_prolog' does not exist"));
}

#[test]
fn engines_go_on_in_other_threads() {
    let Some(prolog) = Prolog::new("moved") else { return };
    prolog.run(&format!(
        "{START}
        prod(X) :- boxes:gen(X), inside.
        inside.
        step(Engine) :- engine_next(Engine, _).
        elsewhere(Goal) :- thread_create(Goal, Id), thread_join(Id, true).
        upto(N, N).
        upto(N, X) :- M is N+1, upto(M, X).
        there :- engine_create(X, prod(X), E), step(E), elsewhere(step(E)), step(E), \\+ step(E).
        often :- engine_create(X, upto(1, X), E), forall(between(1, 10, _), (elsewhere(step(E)), step(E))),
                 engine_destroy(E).
        destroyed :- engine_create(X, prod(X), E), step(E), elsewhere(engine_destroy(E)), inside.
        inherited :- thread_create((engine_create(X, prod(X), E), step(E), thread_exit(E)), Id),
                     thread_join(Id, exited(F)), step(F), engine_destroy(F).
        yields :- inside, engine_yield(1), inside, engine_yield(2), inside.
        open :- engine_create(_, yields, E), step(E), elsewhere(step(E)), step(E).
        :- ports(there, 'there.trg'), ports(often, 'often.trg'), ports(destroyed, 'destroyed.trg'),
           ports(inherited, 'inherited.trg'), ports(open, 'open.trg')."
    ));
    let of = |file: &str| {
        let profile = prolog.profile(file);
        check_boxes(&profile);
        counts(&profile)
    };
    let there = of("there.trg");
    assert_eq!([there["prod/1"], there["boxes:gen/1"]], [[1, 3, 2, 0, 0, 0]; 2]);
    assert_eq!(there["inside/0"], [3, 3, 0, 0, 0, 0]);
    // The solution number k is k deep, and exits from all these depths.
    assert_eq!(of("often.trg")["upto/2"], [20, 210, 190, 0, 0, 20]);
    assert_eq!(of("destroyed.trg")["prod/1"], [1, 1, 0, 0, 0, 1]);
    assert_eq!(of("inherited.trg")["prod/1"], [1, 2, 1, 0, 0, 1]);
    let open = of("open.trg");
    assert_eq!([open["yields/0"], open["inside/0"]], [[1, 1, 0, 0, 0, 0], [3, 3, 0, 0, 0, 0]]);
}

#[test]
fn a_thread_that_exits_ends_its_open_activations() {
    let Some(prolog) = Prolog::new("thread_exit") else { return };
    prolog.run(&format!(
        "{START}
        exits(0) :- boxes:gen(_), thread_exit(done).
        exits(N) :- M is N-1, exits(M), boxes:gen(_).
        :- ports((thread_create(exits(3), Id), thread_join(Id, exited(done))), 'exits.trg')."
    ));
    let profile = prolog.profile("exits.trg");
    check_boxes(&profile);
    let counts = counts(&profile);
    assert_eq!(counts["exits/1"], [4, 0, 0, 0, 4, 0]);
    assert_eq!(counts["boxes:gen/1"], [1, 1, 0, 0, 0, 1]);
}

/// Before 9.3.25, `unwrap_predicate/2` frees atoms that are in use.
#[test]
fn atoms_may_be_collected_after_many_recordings() {
    let Some(prolog) = Prolog::new("atoms") else { return };
    let printed = prolog.run(&format!(
        "{START}
        :- forall(between(1, 40, _), (ports((boxes:queens(4, _), garbage_collect_atoms), 'atoms.trg'),
                                      garbage_collect_clauses, garbage_collect_atoms)).
        :- ports(boxes:queens(6, _), 'last.trg'), writeln(done)."
    ));
    assert_eq!(printed, "done\n");
    assert_eq!(counts(&prolog.profile("last.trg"))["boxes:queens/3"], [32, 7, 0, 25, 0, 7]);
}

#[test]
fn delimited_continuations_are_entered_again() {
    let Some(prolog) = Prolog::new("continuations") else { return };
    prolog.run(&format!(
        "{START}
        effect(X) :- shift(get(X)), after.
        after.
        handle(Goal, State) :-
            reset(Goal, Ball, Rest), ( Rest == 0 -> true ; Ball = get(State), Next is State+1, handle(Rest, Next) ).
        body :- effect(_), effect(_), after.
        each(X) :- boxes:gen(X), shift(yield(X)).
        all(Goal, List) :- reset(Goal, yield(X), Rest), ( Rest == 0 -> List = [] ; List = [X|More], all(Rest, More) ).
        twice :- reset(once_more, yield, Rest), call(Rest), call(Rest).
        once_more :- shift(yield), after.
        :- ports(handle(body, 1), 'once.trg'), ports(findall(L, all(each(_), L), [[1],[2],[3]]), 'each.trg'),
           ports(twice, 'twice.trg')."
    ));
    let of = |file: &str| {
        let profile = prolog.profile(file);
        check_boxes(&profile);
        counts(&profile)
    };
    let once = of("once.trg");
    // They count as if they had left a choice.
    assert_eq!([once["effect/1"], once["body/0"]], [[2, 2, 0, 0, 0, 2], [1, 1, 0, 0, 0, 1]]);
    assert_eq!(once["after/0"], [3, 3, 0, 0, 0, 0]);
    assert_eq!(of("each.trg")["each/1"], [1, 3, 3, 1, 0, 0]);
    // The second call of the continuation enters it once more.
    let twice = of("twice.trg");
    assert_eq!(twice["once_more/0"][..3], [1, 2, 1]);
    assert_eq!(twice["after/0"], [2, 2, 0, 0, 0, 0]);
}

/// Ten million tail calls do not fit; which predicate to leave out is said, and without it they run.
#[test]
fn a_loop_that_runs_out_of_stack_is_named_and_can_be_left_out() {
    let Some(prolog) = Prolog::new("loop") else { return };
    let output = prolog.output(&format!(
        "{START}:- set_prolog_flag(stack_limit, 100_000_000).
        started :- boxes:gen(_), boxes:loop(10000000).
        :- catch(ports(started, 'all.trg'), error(resource_error(What), _), (print(What), nl)).
        :- treering(started, [ports(true), report(none), output('left.trg'), except([boxes:loop/1])]).\n"
    ));
    let errors = text(&output.stderr);
    assert!(errors.contains("Most of the deepest ones are of boxes:loop/1"), "{errors}");
    assert!(errors.contains("except([boxes:loop/1]), or from a shell --except boxes:loop/1"), "{errors}");
    let left = counts(&prolog.profile("left.trg"));
    assert_eq!((left["started/0"], left.get("boxes:loop/1")), ([1, 1, 0, 0, 0, 1], None));
}
