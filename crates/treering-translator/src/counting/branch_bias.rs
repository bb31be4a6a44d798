//! The bias of branches: the successor that each block had most of the time in the finished run.
//!
//! The next run uses it to lay out code and to save counters: see [`side_exit`](crate::emit::side_exit).

use treering_profile::BranchKind;

use crate::address_map::AddressMap;
use crate::cache::block::{BlockFacts, End};
use crate::counting::result::{EndedThread, Translated};

/// The most frequent successor of a block that ends in a branch or jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BranchBias {
    /// The block behind it.
    FallThrough,
    /// The target of its last instruction.
    Taken,
}

/// The share of executions that one successor must have for a bias. The other successor is laid out
/// elsewhere, so a lower share does not pay in large programs.
const OFTEN: (u64, u64) = (9, 10);
/// The executions that a block must have for a bias: laying it out differently takes time, too.
const LEAST_EXECUTIONS: u64 = 64;

/// The number of blocks that threads entered.
pub(crate) fn executions(ended: &[EndedThread]) -> u64 {
    let executions = ended.iter().flat_map(|ended| &ended.counts.executions);
    executions.fold(0_u64, |sum, &(_, count)| sum.saturating_add(count))
}

/// Whether it pays to compute biases in a run that did the expected. The run must have entered so many blocks
/// (a tenth of a second's worth) that the computation does not matter. And it must have entered a quarter
/// more blocks than the run in which biases were computed last; in a shorter run, most branches have the same
/// bias as in that one.
pub(crate) fn tells_more(executions: u64, former: u64) -> bool {
    const MANY: u64 = 50_000_000;
    executions >= MANY && executions - executions / 5 > former
}

/// The executions of the blocks at an address, and their predecessor.
#[derive(Debug, Clone, Copy, Default)]
struct Arrivals {
    /// Executions of the blocks that begin there, as far as those were executed often enough.
    executions: u64,
    /// The only instruction that led there: 0 if none did, [`MANY`] if several did.
    site: u64,
}

/// No instruction has this address.
const MANY: u64 = u64::MAX;

impl Arrivals {
    fn add(&mut self, site: u64) {
        self.site = if [0, site].contains(&self.site) { site } else { MANY };
    }
}

/// The bias of each block, if it has one.
pub(crate) fn branch_biases(code: &impl Translated, ended: &[EndedThread]) -> Vec<Option<BranchBias>> {
    let mut executions = vec![0_u64; code.block_count() as usize];
    for &(id, count) in ended.iter().flat_map(|ended| &ended.counts.executions) {
        executions[id as usize] += count;
    }
    // Addresses with fewer executions cannot be the target of a bias.
    let least = LEAST_EXECUTIONS * OFTEN.0 / OFTEN.1;
    let mut arrivals = AddressMap::<Arrivals>::default();
    for (id, &count) in executions.iter().enumerate().filter(|(_, count)| **count >= least) {
        arrivals.entry(code.block(id as u32).0.address).or_default().executions += count;
    }
    let arrive = |arrivals: &mut AddressMap<Arrivals>, target, site| {
        arrivals.get_mut(&target).into_iter().for_each(|to| to.add(site));
    };
    for (id, _) in executions.iter().enumerate().filter(|(_, count)| **count != 0) {
        let (block, _) = code.block(id as u32);
        let (site, next) = ends_of(&block);
        if matches!(block.end, End::Branch | End::Jump | End::Call) {
            arrive(&mut arrivals, block.target, site);
        }
        if !matches!(block.end, End::Jump | End::IndirectJump | End::Return) {
            arrive(&mut arrivals, next, site);
        }
    }
    for branch in ended.iter().flat_map(|ended| &ended.counts.branches) {
        // Direct successors of blocks were added above.
        let is_told = matches!(branch.kind, BranchKind::Call | BranchKind::Jump) && branch.block.is_some();
        if let (false, Some(target)) = (is_told, branch.target) {
            arrive(&mut arrivals, target, branch.site.unwrap_or(MANY));
        }
    }
    let bias = |(id, &own): (usize, &u64)| {
        let (block, _) = code.block(id as u32);
        let (site, next) = ends_of(&block);
        // Several blocks may have that end; the next block stands behind one of them.
        let leads_to = |to| {
            let to = arrivals.get(&to).copied().unwrap_or_default();
            let often = to.executions * OFTEN.1 >= own * OFTEN.0 && (1..=own).contains(&to.executions);
            often && to.site == site
        };
        match block.end {
            _ if own < LEAST_EXECUTIONS => None,
            End::Branch if leads_to(next) => Some(BranchBias::FallThrough),
            End::Branch | End::Jump if leads_to(block.target) => Some(BranchBias::Taken),
            _ => None,
        }
    };
    executions.iter().enumerate().map(bias).collect()
}

/// The address of a block's last instruction, and the address behind it.
fn ends_of(block: &BlockFacts) -> (u64, u64) {
    let next = block.address + u64::from(block.length);
    (next - u64::from(block.last_length), next)
}
