//! How often branches were taken, by the law of flow.
//!
//! The executions of instructions are known, and what of them went where is not. At every
//! instruction that can be reached in ways that are all known, what arrives adds up to what is
//! executed: one equation, in the taken counts of the branches that lead there and in the counts
//! that fall through. An equation with one unknown left gives it, and one whose unknowns add up to 0
//! gives them all; that may leave another equation with one. What remains unknown lies on rings of
//! branches around which any number could be moved without anybody seeing it.

use std::collections::{HashMap, HashSet, VecDeque};

use treering_profile::{BranchCount, BranchKind, CodeAddress, CodeCounts, StatedAddress, ThreadId};
use treering_x86::disassembly::Flow;

use super::instructions::Instructions;
use super::{Counts, branch, direct};

/// Branches that were worked out.
pub(super) struct Derived {
    pub(super) branches: Vec<BranchCount>,
    /// How many conditional branches were executed whose count remains unknown.
    pub(super) unknown: usize,
}

/// Works out the branches that `code` does not state. A conditional branch is known in all threads
/// or in none.
pub(super) fn branches(code: &CodeCounts, instructions: &Instructions, counts: &Counts) -> Derived {
    let mut branches = Vec::new();
    let mut unknown: HashSet<usize> = HashSet::new();
    counts.each(|thread, executions| {
        let stated = Stated::of(code, instructions, thread);
        branches.extend(unconditional(instructions, thread, executions, &stated));
        let mut system = System::new(instructions, executions, &stated);
        system.solve();
        let solved = system.solved.iter().map(|(&site, &taken)| {
            let target = direct(instructions.flow(site)).map_or(0, |(_, target)| target);
            branch(thread, BranchKind::Conditional, instructions.place(site), target, taken)
        });
        branches.extend(solved);
        unknown.extend(system.unsolved());
    });
    let known = |row: &BranchCount| {
        let site = row.site.and_then(|site| instructions.find(site));
        row.kind != BranchKind::Conditional || site.is_none_or(|site| !unknown.contains(&site))
    };
    branches.retain(known);
    Derived { branches, unknown: unknown.len() }
}

/// What is stated of one thread, by index of instruction.
struct Stated {
    /// Counts of branches out of sites, with their kinds.
    out: HashMap<usize, u64>,
    /// Arrivals by stated branches that were not worked out here.
    arrivals: HashMap<usize, u64>,
    /// Signals that came before an instruction.
    signals: HashMap<usize, u64>,
    ends: HashMap<usize, u64>,
    /// Whether returns are stated, and need not be left open.
    returns: bool,
    /// Instructions that were never executed and yet arrived at: a signal came before them.
    strays: HashSet<CodeAddress>,
}

impl Stated {
    fn of(code: &CodeCounts, instructions: &Instructions, thread: ThreadId) -> Self {
        let mut stated = Self {
            out: HashMap::new(),
            arrivals: HashMap::new(),
            signals: HashMap::new(),
            ends: HashMap::new(),
            returns: false,
            strays: HashSet::new(),
        };
        let find = |place: Option<CodeAddress>| place.and_then(|place| instructions.find(place));
        for row in code.branches.iter().filter(|row| row.thread == thread) {
            let (site, target) = (find(row.site), find(row.target));
            let leaving = match row.kind {
                BranchKind::Signal => &mut stated.signals,
                BranchKind::End => &mut stated.ends,
                _ => &mut stated.out,
            };
            if let Some(site) = site {
                *leaving.entry(site).or_default() += row.count;
            }
            if let Some(target) = target {
                *stated.arrivals.entry(target).or_default() += row.count;
            }
            if row.kind == BranchKind::Signal && site.is_none() {
                stated.strays.extend(row.site);
            }
            stated.returns |= row.kind == BranchKind::Return && row.count > 0;
        }
        stated
    }
}

/// Direct jumps and calls that are not stated were taken whenever they were executed.
fn unconditional(
    instructions: &Instructions,
    thread: ThreadId,
    executions: &[u64],
    stated: &Stated,
) -> Vec<BranchCount> {
    let sites =
        (0..instructions.len()).filter(|site| executions[*site] > 0 && !stated.out.contains_key(site));
    let rows = sites.filter_map(|site| match direct(instructions.flow(site))? {
        (BranchKind::Conditional, _) => None,
        (kind, target) => Some(branch(thread, kind, instructions.place(site), target, executions[site])),
    });
    rows.collect()
}

/// The equations of one thread. An unknown is the taken count of the branch at a site.
struct System<'a> {
    instructions: &'a Instructions,
    executions: &'a [u64],
    /// By instruction: what is left of its arrivals for the unknowns in its equation. Only instructions
    /// all of whose arrivals are known or unknowns have one.
    left: HashMap<usize, i128>,
    /// By instruction: the sites that lead there by a branch that is an unknown, or by not taking it.
    terms: HashMap<usize, Vec<Term>>,
    sites: HashSet<usize>,
    solved: HashMap<usize, u64>,
    ready: VecDeque<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Term {
    site: usize,
    taken: bool,
}

impl<'a> System<'a> {
    fn new(instructions: &'a Instructions, executions: &'a [u64], stated: &Stated) -> Self {
        let mut system = Self {
            instructions,
            executions,
            left: HashMap::new(),
            terms: HashMap::new(),
            sites: HashSet::new(),
            solved: HashMap::new(),
            ready: VecDeque::new(),
        };
        system.find_unknowns(stated);
        if system.sites.is_empty() {
            return system;
        }
        let arrivals = system.known_arrivals(stated);
        let open = system.open(stated);
        for &at in system.terms.keys() {
            if open.everywhere || open.at.contains(&at) {
                continue;
            }
            let signals = stated.signals.get(&at).copied().unwrap_or(0);
            let arrived = i128::from(executions[at]) + i128::from(signals);
            let known = arrivals.get(&at).copied().unwrap_or(0);
            system.left.insert(at, arrived - i128::from(known));
        }
        system.ready = system.left.keys().copied().collect();
        system
    }

    /// The conditional branches that were executed and are not stated.
    fn find_unknowns(&mut self, stated: &Stated) {
        for site in 0..self.instructions.len() {
            let Flow::Conditional(_) = self.instructions.flow(site) else { continue };
            if self.executions[site] == 0 || stated.out.contains_key(&site) {
                continue;
            }
            let (target, next) = (self.instructions.direct_target(site), self.instructions.next(site));
            let [there, behind] = self.ways(site).map(|place| stated.strays.contains(&place));
            match (target, next) {
                // Nothing went to an instruction that was not translated.
                (None, _) if !there => drop(self.solved.insert(site, 0)),
                (_, None) if !behind => drop(self.solved.insert(site, self.executions[site])),
                (Some(target), Some(next)) if target == next => {}
                _ => {
                    self.sites.insert(site);
                    for (to, taken) in [(target, true), (next, false)] {
                        let Some(to) = to else { continue };
                        self.terms.entry(to).or_default().push(Term { site, taken });
                    }
                }
            }
        }
    }

    /// The places that a conditional branch may lead to: taken, and not.
    fn ways(&self, site: usize) -> [CodeAddress; 2] {
        let place = self.instructions.place(site);
        let target = direct(self.instructions.flow(site)).map_or(0, |(_, target)| target);
        [
            CodeAddress { address: StatedAddress(target), ..place },
            place.offset(self.instructions.length(site).into()),
        ]
    }

    /// What arrives at instructions that have an equation, apart from the unknowns.
    fn known_arrivals(&self, stated: &Stated) -> HashMap<usize, u64> {
        let mut arrivals = stated.arrivals.clone();
        let mut add = |to: Option<usize>, count: u64| {
            if let Some(to) = to {
                *arrivals.entry(to).or_default() += count;
            }
        };
        for at in 0..self.instructions.len() {
            let (flow, executed) = (self.instructions.flow(at), self.executions[at]);
            if executed == 0 {
                continue;
            }
            let out = stated.out.get(&at).copied();
            let ends = stated.ends.get(&at).copied().unwrap_or(0);
            match flow {
                Flow::Next | Flow::Other => {
                    let elsewhere = out.unwrap_or(0).saturating_add(ends);
                    add(self.instructions.next(at), executed.saturating_sub(elsewhere));
                }
                Flow::Jump(_) | Flow::Call(_) if out.is_none() => {
                    add(self.instructions.direct_target(at), executed);
                }
                Flow::Conditional(_) if !self.sites.contains(&at) => {
                    let taken = out.or_else(|| self.solved.get(&at).copied()).unwrap_or(0);
                    add(self.instructions.next(at), executed.saturating_sub(taken));
                    if out.is_none() {
                        add(self.instructions.direct_target(at), taken);
                    }
                }
                _ => {}
            }
        }
        arrivals
    }

    /// Where more may arrive than is known of: behind calls, unless returns are stated; and
    /// everywhere, if a jump through a register is not.
    fn open(&self, stated: &Stated) -> Open {
        let executed = |at: &usize| self.executions[*at] > 0;
        let all = (0..self.instructions.len()).filter(executed);
        let mut open = Open { at: HashSet::new(), everywhere: false };
        for at in all {
            let indirect = matches!(self.instructions.flow(at), Flow::IndirectJump | Flow::IndirectCall);
            if indirect && stated.out.get(&at).copied().unwrap_or(0) < self.executions[at] {
                open.everywhere = true;
            }
            if !stated.returns {
                open.at.extend(self.instructions.landing(at));
            }
        }
        open
    }

    fn solve(&mut self) {
        while let Some(at) = self.ready.pop_front() {
            let Some(&left) = self.left.get(&at) else { continue };
            let terms = self.terms.get(&at).cloned().unwrap_or_default();
            let open: Vec<Term> =
                terms.into_iter().filter(|term| !self.solved.contains_key(&term.site)).collect();
            match open[..] {
                [] => {}
                [term] => self.set(term, left),
                _ if left == 0 => open.into_iter().for_each(|term| self.set(term, 0)),
                _ => {}
            }
        }
    }

    /// Takes the flow along one way of a branch, and takes both ways off the equations.
    fn set(&mut self, term: Term, flow: i128) {
        let executed = i128::from(self.executions[term.site]);
        if !(0..=executed).contains(&flow) || self.solved.contains_key(&term.site) {
            return;
        }
        let taken = if term.taken { flow } else { executed - flow };
        self.solved.insert(term.site, taken as u64);
        let target = self.instructions.direct_target(term.site);
        let next = self.instructions.next(term.site);
        for (to, flow) in [(target, taken), (next, executed - taken)] {
            let Some(to) = to else { continue };
            if let Some(left) = self.left.get_mut(&to) {
                *left -= flow;
                self.ready.push_back(to);
            }
        }
    }

    /// The sites that remain unknown.
    fn unsolved(&self) -> Vec<usize> {
        self.sites.iter().copied().filter(|site| !self.solved.contains_key(site)).collect()
    }
}

/// Instructions at which more may arrive than is known of.
struct Open {
    at: HashSet<usize>,
    everywhere: bool,
}
