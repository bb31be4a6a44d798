//! How often branches were taken, by the law of flow.
//!
//! The executions of instructions are known, and what of them went where is not. At every
//! instruction that can be reached in ways that are all known, what arrives adds up to what is
//! executed: one equation, in the taken counts of the branches that lead there and in the counts
//! that fall through. An equation with one unknown left gives it, and one whose unknowns add up to 0
//! gives them all; that may leave another equation with one. What remains unknown lies on rings of
//! branches around which any number could be moved without anybody seeing it.

use std::collections::VecDeque;

use hashbrown::{HashMap, HashSet};
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
    counts.each(|thread, executions, executed| {
        let stated = Stated::of(code, instructions, thread);
        branches.extend(unconditional(instructions, thread, executed, &stated));
        let mut system = System::new(instructions, executions, executed, &stated);
        system.solve();
        for &(site, taken) in &system.unknowns {
            let Some(taken) = taken else {
                unknown.insert(site);
                continue;
            };
            let target = direct(instructions.flow(site)).map_or(0, |(_, target)| target);
            let place = instructions.place(site);
            branches.push(branch(thread, BranchKind::Conditional, place, target, taken));
        }
    });
    if unknown.is_empty() {
        return Derived { branches, unknown: 0 };
    }
    let known = |row: &BranchCount| {
        let site = row.site.and_then(|site| instructions.find(site));
        row.kind != BranchKind::Conditional || site.is_none_or(|site| !unknown.contains(&site))
    };
    branches.retain(known);
    Derived { branches, unknown: unknown.len() }
}

/// What is stated of one thread, by index of instruction.
struct Stated {
    /// Whether branches out of each instruction are stated, and their counts.
    out: Vec<Option<u64>>,
    /// Arrivals at each instruction by stated branches, which were not worked out here.
    arrivals: Vec<u64>,
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
            out: vec![None; instructions.len()],
            arrivals: vec![0; instructions.len()],
            signals: HashMap::new(),
            ends: HashMap::new(),
            returns: false,
            strays: HashSet::new(),
        };
        let find = |place: Option<CodeAddress>| place.and_then(|place| instructions.find(place));
        for row in code.branches.iter().filter(|row| row.thread == thread) {
            let (site, target) = (find(row.site), find(row.target));
            if let Some(site) = site {
                let leaving = match row.kind {
                    BranchKind::Signal => stated.signals.entry(site).or_default(),
                    BranchKind::End => stated.ends.entry(site).or_default(),
                    _ => stated.out[site].get_or_insert(0),
                };
                *leaving += row.count;
            }
            if let Some(target) = target {
                stated.arrivals[target] += row.count;
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
    executed: &[(u32, u64)],
    stated: &Stated,
) -> Vec<BranchCount> {
    let sites = executed.iter().map(|&(site, executions)| (site as usize, executions));
    let sites = sites.filter(|&(site, _)| stated.out[site].is_none());
    let rows = sites.filter_map(|(site, executions)| match direct(instructions.flow(site))? {
        (BranchKind::Conditional, _) => None,
        (kind, target) => Some(branch(thread, kind, instructions.place(site), target, executions)),
    });
    rows.collect()
}

/// The equations of one thread. An unknown is the taken count of the branch at a site.
struct System<'a> {
    instructions: &'a Instructions,
    /// By instruction.
    executions: &'a [u64],
    /// Instructions that were executed, with their executions.
    executed: &'a [(u32, u64)],
    equations: Vec<Equation>,
    /// By instruction, the number of its equation plus one; 0 without one.
    equation_of: Vec<u32>,
    /// Terms of equations, each with the number plus one of the next of the same equation.
    terms: Vec<(Term, u32)>,
    /// Sites of branches that are not stated, and how often they were taken.
    unknowns: Vec<(usize, Option<u64>)>,
    /// By instruction, the number of its unknown plus one; 0 without one.
    unknown_of: Vec<u32>,
    /// Instructions whose equations may give something.
    ready: VecDeque<usize>,
}

/// What arrives at an instruction by unknowns.
struct Equation {
    at: usize,
    /// What is left of the instruction's arrivals for the unknowns; nothing unless all of its
    /// arrivals are known or unknowns.
    left: Option<i128>,
    /// The number plus one of the first of the sites that lead there by a branch that is an unknown,
    /// or by not taking it.
    terms: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Term {
    site: usize,
    taken: bool,
}

impl<'a> System<'a> {
    fn new(
        instructions: &'a Instructions,
        executions: &'a [u64],
        executed: &'a [(u32, u64)],
        stated: &Stated,
    ) -> Self {
        let mut system = Self {
            instructions,
            executions,
            executed,
            equations: Vec::new(),
            equation_of: vec![0; instructions.len()],
            terms: Vec::new(),
            unknowns: Vec::new(),
            unknown_of: vec![0; instructions.len()],
            ready: VecDeque::new(),
        };
        system.find_unknowns(stated);
        if system.equations.is_empty() {
            return system;
        }
        let arrivals = system.known_arrivals(stated);
        let open = system.open(stated);
        for equation in &mut system.equations {
            let at = equation.at;
            if open.everywhere || open.at.contains(&at) {
                continue;
            }
            let signals = stated.signals.get(&at).copied().unwrap_or(0);
            let arrived = i128::from(executions[at]) + i128::from(signals);
            equation.left = Some(arrived - i128::from(arrivals[at]));
            system.ready.push_back(at);
        }
        system
    }

    /// The conditional branches that were executed and are not stated.
    fn find_unknowns(&mut self, stated: &Stated) {
        for &(site, executions) in self.executed {
            let site = site as usize;
            let Flow::Conditional(_) = self.instructions.flow(site) else { continue };
            if stated.out[site].is_some() {
                continue;
            }
            let (target, next) = (self.instructions.direct_target(site), self.instructions.next(site));
            let [there, behind] = self.ways(site).map(|place| stated.strays.contains(&place));
            match (target, next) {
                // Nothing went to an instruction that was not translated.
                (None, _) if !there => self.add_unknown(site, Some(0)),
                (_, None) if !behind => self.add_unknown(site, Some(executions)),
                (Some(target), Some(next)) if target == next => {}
                _ => {
                    self.add_unknown(site, None);
                    for (to, taken) in [(target, true), (next, false)] {
                        let Some(to) = to else { continue };
                        self.add_term(to, Term { site, taken });
                    }
                }
            }
        }
    }

    fn add_unknown(&mut self, site: usize, taken: Option<u64>) {
        self.unknowns.push((site, taken));
        self.unknown_of[site] = self.unknowns.len() as u32;
    }

    /// How often the branch at a site was taken; nothing if it is stated or not known yet.
    fn solved(&self, site: usize) -> Option<u64> {
        self.unknowns.get((self.unknown_of[site] as usize).checked_sub(1)?)?.1
    }

    /// Whether the branch at a site is to be found by equations.
    fn is_open(&self, site: usize) -> bool {
        self.unknown_of[site] != 0 && self.solved(site).is_none()
    }

    fn add_term(&mut self, at: usize, term: Term) {
        if self.equation_of[at] == 0 {
            self.equations.push(Equation { at, left: None, terms: 0 });
            self.equation_of[at] = self.equations.len() as u32;
        }
        let equation = &mut self.equations[self.equation_of[at] as usize - 1];
        self.terms.push((term, equation.terms));
        equation.terms = self.terms.len() as u32;
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

    /// What arrives at instructions, apart from the unknowns.
    fn known_arrivals(&self, stated: &Stated) -> Vec<u64> {
        let mut arrivals = stated.arrivals.clone();
        let mut add = |to: Option<usize>, count: u64| {
            if let Some(to) = to {
                arrivals[to] += count;
            }
        };
        for &(at, executed) in self.executed {
            let at = at as usize;
            let out = stated.out[at];
            match self.instructions.flow(at) {
                Flow::Next | Flow::Other => {
                    let ends = stated.ends.get(&at).copied().unwrap_or(0);
                    let elsewhere = out.unwrap_or(0).saturating_add(ends);
                    add(self.instructions.next(at), executed.saturating_sub(elsewhere));
                }
                Flow::Jump(_) | Flow::Call(_) if out.is_none() => {
                    add(self.instructions.direct_target(at), executed);
                }
                Flow::Conditional(_) if !self.is_open(at) => {
                    let taken = out.or_else(|| self.solved(at)).unwrap_or(0);
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
        let mut open = Open { at: HashSet::new(), everywhere: false };
        for &(at, executed) in self.executed {
            let at = at as usize;
            let indirect = matches!(self.instructions.flow(at), Flow::IndirectJump | Flow::IndirectCall);
            if indirect && stated.out[at].unwrap_or(0) < executed {
                open.everywhere = true;
            }
            if !stated.returns {
                open.at.extend(self.instructions.landing(at));
            }
        }
        open
    }

    fn solve(&mut self) {
        let mut open = Vec::new();
        while let Some(at) = self.ready.pop_front() {
            let Some(left) = self.equation(at).and_then(|equation| equation.left) else { continue };
            open.clear();
            open.extend(self.open_terms(at));
            match open[..] {
                [] => {}
                [term] => self.set(term, left),
                _ if left == 0 => open.iter().for_each(|&term| self.set(term, 0)),
                _ => {}
            }
        }
    }

    fn equation(&mut self, at: usize) -> Option<&mut Equation> {
        self.equations.get_mut((self.equation_of[at] as usize).checked_sub(1)?)
    }

    /// The terms of an equation whose unknowns have not been found yet.
    fn open_terms(&self, at: usize) -> impl Iterator<Item = Term> + '_ {
        let term = |number: u32| self.terms.get((number as usize).checked_sub(1)?);
        let first = self.equation_of[at] as usize;
        let first = first.checked_sub(1).map_or(0, |number| self.equations[number].terms);
        let all = std::iter::successors(term(first), move |&&(_, next)| term(next));
        all.map(|&(term, _)| term).filter(|term| self.is_open(term.site))
    }

    /// Takes the flow along one way of a branch, and takes both ways off the equations.
    fn set(&mut self, term: Term, flow: i128) {
        let executed = i128::from(self.executions[term.site]);
        if !(0..=executed).contains(&flow) || !self.is_open(term.site) {
            return;
        }
        let taken = if term.taken { flow } else { executed - flow };
        self.unknowns[self.unknown_of[term.site] as usize - 1].1 = Some(taken as u64);
        let target = self.instructions.direct_target(term.site);
        let next = self.instructions.next(term.site);
        for (to, flow) in [(target, taken), (next, executed - taken)] {
            let Some(to) = to else { continue };
            if let Some(left) = self.equation(to).and_then(|equation| equation.left.as_mut()) {
                *left -= flow;
                self.ready.push_back(to);
            }
        }
    }
}

/// Instructions at which more may arrive than is known of.
struct Open {
    at: HashSet<usize>,
    everywhere: bool,
}
