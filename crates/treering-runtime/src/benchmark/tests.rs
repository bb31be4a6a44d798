//! The graph of tasks against a slow and simple reckoning, on trees made at random.

use super::graph::{Arc, Graph};
use super::text;
use super::*;

/// A tree of `size` nodes with `tasks` tasks. Children of a node may be of the same task as it,
/// as under the rule of a node for each depth, and calls may be folded.
fn random_nodes(seed: u64, size: u32, tasks: u32) -> Vec<Node> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let node = |at: u32| {
        let parent = (at > 0 && next(8) > 0).then(|| next(u64::from(at)) as u32);
        let calls = 1 + next(5);
        let recursive_calls = if next(4) == 0 { next(calls) } else { 0 };
        let self_cost = Times { wall_ns: next(90_000), user_ns: next(60_000), system_ns: next(9_000) };
        Node { parent, task: next(u64::from(tasks)) as u32, calls, recursive_calls, self_cost }
    };
    (0..size).map(node).collect()
}

const NAMES: [&[u8]; 7] = [b"a", b"b", b"c", b"d", b"e", b"f", b"g"];

/// Checks something on 200 random runs of all sizes.
fn on_random_runs(check: impl Fn(&Run, &Graph)) {
    let machine = Machine::default();
    for seed in 1..=200 {
        let nodes = random_nodes(seed, (seed % 40) as u32, 1 + (seed % 7) as u32);
        let mut cost = Times { wall_ns: 12_345, user_ns: 5_678, system_ns: 910 };
        nodes.iter().for_each(|node| cost += node.self_cost);
        let run = Run { nodes: &nodes, tasks: &NAMES, run: cost, stopped: true, ..Run::new(&machine) };
        check(&run, &Graph::new(&run));
    }
}

/// The tasks on the way from a root to a node and the node itself.
fn path(run: &Run, mut node: usize) -> Vec<usize> {
    let mut path = vec![node];
    while let Some(parent) = run.nodes[node].parent {
        node = parent as usize;
        path.push(node);
    }
    path.reverse();
    path
}

fn cpu(arcs: impl Iterator<Item = Times>) -> u64 {
    arcs.map(Times::cpu_ns).sum()
}

fn task_named<'a>(graph: &'a Graph, name: &[u8]) -> Option<&'a graph::Task> {
    graph.tasks[1..].iter().find(|task| task.name == name)
}

#[test]
fn totals_count_outermost_activations_only() {
    on_random_runs(|run, graph| {
        for (task, name) in NAMES.iter().enumerate() {
            // A node's cost is in the total when any node on its path is of the task.
            let inside =
                |&node: &usize| path(run, node).iter().any(|&on| run.nodes[on].task as usize == task);
            let expected = cpu((0..run.nodes.len()).filter(inside).map(|node| run.nodes[node].self_cost));
            let total = task_named(graph, name).map_or(0, |task| task.total.cpu_ns());
            assert_eq!(total, expected);
        }
    });
}

#[test]
fn arcs_count_nested_activations_once() {
    on_random_runs(|run, graph| {
        let task_of = |node: usize| {
            &graph.tasks[1..]
                .iter()
                .position(|task| task.name == run.tasks[run.nodes[node].task as usize])
                .unwrap()
                + 1
        };
        for arc in &graph.arcs {
            let takes = |path: &[usize]| {
                let tasks: Vec<usize> =
                    std::iter::once(0).chain(path.iter().map(|&node| task_of(node))).collect();
                tasks.windows(2).any(|pair| pair == [arc.caller as usize, arc.callee as usize])
            };
            let inside = (0..run.nodes.len()).filter(|&node| takes(&path(run, node)));
            let expected = cpu(inside.map(|node| run.nodes[node].self_cost));
            assert_eq!(arc.total.cpu_ns(), expected, "{arc:?}");
        }
    });
}

#[test]
fn callers_add_up_to_a_task_and_so_do_self_cost_and_callees() {
    on_random_runs(|_, graph| {
        for (at, task) in graph.tasks.iter().enumerate() {
            let called = at > 0;
            let sum = |of: fn(&Arc) -> Times| cpu(graph.arcs_to(at).map(of));
            if called {
                assert_eq!(sum(|arc| arc.self_cost), task.self_cost.cpu_ns());
                assert_eq!(sum(|arc| arc.from_caller), task.total.cpu_ns());
                assert_eq!(graph.arcs_to(at).map(|arc| arc.calls).sum::<u64>(), task.calls);
            }
            let below = cpu(graph.arcs_from(at).map(|arc| arc.to_callee));
            assert_eq!(below + task.self_cost.cpu_ns(), task.total.cpu_ns());
        }
    });
}

#[test]
fn self_costs_add_up_to_the_run_which_no_total_exceeds() {
    on_random_runs(|run, graph| {
        let sum = cpu(graph.tasks.iter().map(|task| task.self_cost));
        assert_eq!(sum, run.run.cpu_ns());
        assert!(graph.tasks.iter().all(|task| task.total.cpu_ns() <= sum));
        assert!(graph.tasks.iter().all(|task| task.total.cpu_ns() >= task.self_cost.cpu_ns()));
    });
}

#[test]
fn tasks_may_have_more_system_time_than_the_run_as_only_cpu_time_is_comparable() {
    on_random_runs(|run, _| {
        let cpu_ns = run.run.cpu_ns();
        for system_ns in [0, run.run.system_ns / 2, cpu_ns / 2, cpu_ns] {
            let times = Times { user_ns: cpu_ns - system_ns, system_ns, ..run.run };
            let graph = Graph::new(&Run { run: times, ..*run });
            assert!(!graph.exceeds_run);
            assert_eq!(graph.run_cost(), cpu_ns);
        }
    });
}

#[test]
fn recursion_has_calls_and_no_cost_of_its_own() {
    on_random_runs(|_, graph| {
        for arc in graph.arcs.iter().filter(|arc| arc.is_recursive()) {
            let task = &graph.tasks[arc.callee as usize];
            assert_eq!(arc.calls, task.recursive_calls);
            assert_eq!([arc.self_cost, arc.to_callee, arc.from_caller], [Times::default(); 3]);
        }
    });
}

#[test]
fn cycles_are_the_tasks_that_reach_each_other() {
    on_random_runs(|_, graph| {
        let count = graph.tasks.len();
        let mut reaches = vec![vec![false; count]; count];
        graph.arcs.iter().for_each(|arc| reaches[arc.caller as usize][arc.callee as usize] = true);
        for via in 0..count {
            for from in 0..count {
                for to in 0..count {
                    reaches[from][to] |= reaches[from][via] && reaches[via][to];
                }
            }
        }
        for (one, other) in (0..count * count).map(|pair| (pair / count, pair % count)) {
            if one != other {
                let together = reaches[one][other] && reaches[other][one];
                let same =
                    graph.tasks[one].cycle.is_some() && graph.tasks[one].cycle == graph.tasks[other].cycle;
                assert_eq!(same, together);
            }
        }
    });
}

#[test]
fn cost_of_a_cycle_is_that_of_its_outermost_activations() {
    on_random_runs(|run, graph| {
        for (at, cycle) in graph.cycles.iter().enumerate() {
            let is_member = |node: usize| {
                let name = run.tasks[run.nodes[node].task as usize];
                task_named(graph, name).is_some_and(|task| task.cycle == Some(at))
            };
            let inside = (0..run.nodes.len()).filter(|&node| path(run, node).into_iter().any(is_member));
            assert_eq!(cycle.total.cpu_ns(), cpu(inside.map(|node| run.nodes[node].self_cost)));
            let calls: u64 = cycle.members.iter().map(|&member| graph.tasks[member].calls).sum();
            assert_eq!(cycle.incoming_calls + cycle.internal_calls + cycle.recursive_calls, calls);
        }
    });
}

/// The rows of the section under a head, split at spaces.
fn rows<'a>(text: &'a str, head: &str) -> Vec<Vec<&'a str>> {
    let section = text.split_once(head).unwrap().1.split("\n\n").nth(2).unwrap();
    section.lines().map(|line| line.split_whitespace().collect()).collect()
}

/// A printed number without its point.
fn steps(number: &str) -> u64 {
    number.replace('.', "").parse().unwrap()
}

fn full_text(run: &Run) -> String {
    let contents = Contents::CALLGRAPH | Contents::NOSUMMARY;
    text::report(run, Options { verbosity: Verbosity::Full, format: Format::Text, contents })
}

#[test]
fn the_printed_list_of_tasks_adds_up() {
    on_random_runs(|run, _| {
        let text = full_text(run);
        let rows = rows(&text, "[Task list:]");
        let sum = |column: usize| rows[1..].iter().map(|row| steps(row[column])).sum::<u64>();
        let root = rows.iter().find(|row| row.last() == Some(&PROGRAM)).unwrap();
        // Columns: charge, inclusive, total, self, ...
        assert_eq!(sum(0), 1000, "{text}");
        assert_eq!(steps(root[1]), 1000, "{text}");
        assert_eq!(sum(3), steps(root[2]), "{text}");
        assert!(rows[1..].iter().all(|row| steps(row[0]) <= steps(row[1]) && steps(row[1]) <= 1000), "{text}");
    });
}

#[test]
fn every_printed_entry_of_the_call_graph_adds_up() {
    on_random_runs(|run, _| {
        let text = full_text(run);
        for entry in rows(&text, "[Call graph:]").split(|row| row[0].starts_with("....")).skip(1) {
            let is = |row: &&Vec<&str>, arrow: &str| row.contains(&arrow) && row[0] != "-";
            let sum = |arrow: &str, column: usize| -> u64 {
                entry.iter().filter(|row| is(row, arrow)).map(|row| steps(row[column])).sum()
            };
            let task = entry.iter().find(|row| !row.contains(&"<-") && !row.contains(&"->")).unwrap();
            assert_eq!(steps(task[2]), steps(task[3]) + sum("->", 2), "{text}");
            assert_eq!(steps(task[1]), steps(task[0]) + sum("->", 1), "{text}");
            if task.last() != Some(&PROGRAM) {
                let sums = [0, 1, 2, 3].map(|column| sum("<-", column));
                assert_eq!(sums, [0, 1, 2, 3].map(|column| steps(task[column])), "{text}");
            }
        }
    });
}

#[test]
fn a_million_nested_activations_do_not_overflow_the_stack() {
    let node = |at: u32| Node {
        parent: at.checked_sub(1),
        task: at % 2,
        calls: 1,
        recursive_calls: 0,
        self_cost: Times { wall_ns: 1, user_ns: 1, system_ns: 0 },
    };
    let nodes: Vec<Node> = (0..1_000_000).map(node).collect();
    let machine = Machine::default();
    let run = Run { nodes: &nodes, tasks: &[b"even", b"odd"], ..Run::new(&machine) };
    let graph = Graph::new(&run);
    assert_eq!(graph.cycles[0].internal_calls, 999_999);
    assert_eq!([graph.tasks[1].total.cpu_ns(), graph.tasks[2].total.cpu_ns()], [1_000_000, 999_999]);
}

#[test]
fn a_tree_that_points_nowhere_gives_a_report() {
    let bad = |parent, task| Node { parent, task, calls: 1, recursive_calls: 9, ..Node::default() };
    let nodes = [bad(Some(0), 0), bad(Some(7), 3), bad(Some(u32::MAX), u32::MAX)];
    let machine = Machine::default();
    let run = Run { nodes: &nodes, tasks: &[b"a"], ..Run::new(&machine) };
    let text = full_text(&run);
    assert!(text.contains("(task 3 without a name)"), "{text}");
}
