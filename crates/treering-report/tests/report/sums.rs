//! The printed numbers of a call graph add up to the last digit, whatever has to be rounded.

use proptest::prelude::*;
use treering_analysis::{Basis, CallGraph, Presentation};
use treering_profile::MetricId;
use treering_report::{Amount, Options, Style, call_graph_text};

/// Stacks of few functions, so that recursion and cycles are common, with uneven weights.
fn stacks() -> impl Strategy<Value = String> {
    let stack = prop::collection::vec((0..5_u8).prop_map(|f| format!("f{f}")), 1..8);
    let line = (stack, 1..997_u64).prop_map(|(stack, samples)| format!("{} {samples}\n", stack.join(";")));
    prop::collection::vec(line, 1..25).prop_map(|lines| lines.concat())
}

/// The self and children columns of a line in their last digits; nothing where they are blank.
fn columns(line: &str) -> Option<(u64, u64)> {
    let rest = line.strip_prefix('[').map_or(line, |_| &line[14..]);
    let mut digits = rest.split_whitespace().map(|cell| cell.replace(['.', ','], "").parse());
    Some((digits.next()?.ok()?, digits.next()?.ok()?))
}

/// Checks a block; gives how many lines it had besides its own.
fn check(block: &str) -> Result<usize, TestCaseError> {
    let lines: Vec<&str> = block.lines().collect();
    let own = lines.iter().position(|line| line.starts_with('[')).expect("a block has its own line");
    let (self_cost, children) = columns(lines[own]).expect("the function's own line has numbers");
    let callers: Vec<_> = lines[..own].iter().filter_map(|line| columns(line)).collect();
    let callees: Vec<_> = lines[own + 1..].iter().filter_map(|line| columns(line)).collect();
    let self_asked: u64 = callers.iter().map(|(own, _)| own).sum();
    let children_asked: u64 = callers.iter().map(|(_, children)| children).sum();
    prop_assert_eq!((self_asked, children_asked), (self_cost, children), "callers of\n{}", block);
    let called: u64 = callees.iter().map(|(own, children)| own + children).sum();
    prop_assert_eq!(called, children, "callees of\n{}", block);
    Ok(lines.len() - 1)
}

proptest! {
    #[test]
    fn every_block_adds_up(text in stacks(), min_share in prop_oneof![Just(0.0), 0.0..0.3]) {
        let profile = treering_testing::stacks(&text);
        let graph = CallGraph::of(&profile, &Basis::of(&profile, MetricId::new(0)), Presentation::Contexts);
        for amount in [Amount::Percent, Amount::Natural, Amount::Samples] {
            let options = Options { amount: Some(amount), min_share, ..Options::default() };
            let text = call_graph_text(&profile, &graph, &Style::default(), &options);
            let (_, listing) = text.split_once("index  % total").expect("there is a heading");
            let (_, blocks) = listing.split_once('\n').expect("blocks follow the heading");
            let mut lines = 0;
            for block in blocks.split_inclusive("---\n").filter(|block| block.contains("---\n")) {
                let block: String = block.lines().filter(|line| !line.starts_with("---")).map(|l| format!("{l}\n")).collect();
                lines += check(&block)?;
            }
            prop_assert!(lines > 0);
        }
    }
}
