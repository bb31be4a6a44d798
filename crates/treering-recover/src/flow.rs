//! How often branches were taken, by the law of flow.
//!
//! The executions of instructions are known, but not how they divide among successors. At every instruction whose
//! predecessors are all known, the arrivals add up to the executions. That is one equation, in the taken counts of
//! the branches that lead there and in the counts that fall through. An equation with one unknown left determines it,
//! and an equation whose unknowns add up to 0 determines them all; that may leave another equation with one unknown.
//! The remaining unknowns lie on cycles of branches, around which any number could be moved without a change in the
//! known counts.

use std::collections::VecDeque;

use hashbrown::{HashMap, HashSet};
use treering_profile::{BranchCount, BranchKind, CodeAddress, StatedAddress, ThreadId};
use treering_x86::disassembly::Flow;

use super::stretches::Stretches;
use super::threads::Tables as CodeTables;
use super::{Counts, by_thread, direct};

/// Branches that were worked out.
pub(super) struct Derived {
    branches: Vec<Taken>,
    /// How many conditional branches were executed whose count remains unknown.
    pub(super) unknown: usize,
}

/// How often a thread took the direct branch of a stretch.
struct Taken {
    thread: ThreadId,
    site: u32,
    count: u64,
}

impl Derived {
    /// Adds the branches to those of `code`, which are sorted then.
    pub(super) fn add_to(&self, code: &mut CodeTables, stretches: &Stretches) {
        let rows = self.branches.iter().filter_map(|&Taken { thread, site, count }| {
            let (kind, target) = direct(stretches.flow(site as usize))?;
            let (site, _) = stretches.last(site as usize);
            let target = CodeAddress { address: StatedAddress(target), ..site };
            Some(BranchCount { thread, kind, site: Some(site), target: Some(target), count })
        });
        let more = rows.clone().count();
        code.branches.sort_by_key(|row| (row.thread, row.site, row.kind, row.target));
        merge_in(&mut code.branches, rows, more);
    }
}

/// Merges `more` sorted rows into other sorted rows; at equal sites, the latter come first. The rows are moved in
/// place, the last ones first, as they may take much memory.
fn merge_in(
    branches: &mut Vec<BranchCount>,
    rows: impl DoubleEndedIterator<Item = BranchCount> + Clone,
    more: usize,
) {
    let Some(filler) = rows.clone().next() else { return };
    let mut stated = branches.len();
    branches.reserve_exact(more);
    branches.resize(stated + more, filler);
    let mut end = branches.len();
    for row in rows.rev() {
        while stated > 0 && (branches[stated - 1].thread, branches[stated - 1].site) > (row.thread, row.site)
        {
            (stated, end) = (stated - 1, end - 1);
            branches[end] = branches[stated];
        }
        end -= 1;
        branches[end] = row;
    }
}

/// Works out the branches that `code` does not state. A conditional branch is known in all threads
/// or in none.
pub(super) fn branches(code: &CodeTables, stretches: &Stretches, counts: &Counts) -> Derived {
    let mut branches = Vec::new();
    let mut unknown: HashSet<u32> = HashSet::new();
    let rows = by_thread(&code.branches, |row| row.thread);
    let (mut tables, mut numbers) = (Tables::new(stretches), Numbers::new(stretches));
    let returned = returned_to(code, stretches);
    counts.each(|thread, executions, executed| {
        let rows = rows.get(&thread).into_iter().flatten().cloned().flatten();
        let rows = rows.map(|at| (&code.branches[at], stretches.stated[at]));
        let stated = Stated::of(rows, std::mem::take(&mut tables));
        branches.extend(unconditional(stretches, thread, executed, &stated));
        let mut system = System::new(stretches, executions, executed, &stated, std::mem::take(&mut numbers));
        system.prepare(&stated, &returned);
        system.solve();
        for &Unknown { site, taken, is_known } in &system.unknowns {
            match is_known {
                true => branches.push(Taken { thread, site, count: taken }),
                false => _ = unknown.insert(site),
            }
        }
        numbers = system.into_numbers();
        tables = stated.tables.cleared();
    });
    if !unknown.is_empty() {
        branches.retain(|taken| !unknown.contains(&taken.site));
    }
    // In the order that they are wanted in, while they are small.
    branches.sort_by_key(|taken| (taken.thread, taken.site));
    Derived { branches, unknown: unknown.len() }
}

/// The stretches that returns may lead to: those behind calls of any thread, as a thread may return from a call that
/// another one has made, and those that returns were seen to lead to. A return that is used as a jump leads anywhere.
fn returned_to(code: &CodeTables, stretches: &Stretches) -> Vec<bool> {
    let mut returned = vec![false; stretches.len()];
    (0..stretches.len()).filter_map(|at| stretches.landing(at)).for_each(|at| returned[at] = true);
    let rows = code.branches.iter().zip(&stretches.stated).filter(|(row, _)| row.is_seen_return());
    rows.filter_map(|(_, (_, target))| *target).for_each(|at| returned[at as usize] = true);
    returned
}

/// A branch that is stated, with the stretches that it leaves and goes to.
type CountedBranch<'a> = (&'a BranchCount, (Option<u32>, Option<u32>));

/// The stated counts of one thread, by stretch. The memory is used again for the next thread, as threads may be many
/// and execute little.
#[derive(Default)]
struct Tables {
    /// Whether branches out of each stretch are stated, and their counts.
    out: Vec<Option<u64>>,
    /// Arrivals at each stretch by stated branches, which were not worked out here.
    arrivals: Vec<u64>,
    /// The stretches of which something is stated.
    touched: Vec<usize>,
}

impl Tables {
    fn new(stretches: &Stretches) -> Self {
        let length = stretches.len();
        Self { out: vec![None; length], arrivals: vec![0; length], touched: Vec::new() }
    }

    fn cleared(mut self) -> Self {
        for at in self.touched.drain(..) {
            (self.out[at], self.arrivals[at]) = (None, 0);
        }
        self
    }
}

/// The stated counts of one thread.
struct Stated {
    tables: Tables,
    /// Signals that came before a stretch.
    signals: HashMap<usize, u64>,
    ends: HashMap<usize, u64>,
    /// Whether returns are stated, and need not be left open.
    returns: bool,
    /// Instructions that were never executed and yet arrived at: a signal came before them.
    interrupted: HashSet<CodeAddress>,
}

impl Stated {
    /// Takes the branches of a thread; `tables` are empty.
    fn of<'a>(rows: impl Iterator<Item = CountedBranch<'a>>, tables: Tables) -> Self {
        let mut stated = Self {
            tables,
            signals: HashMap::new(),
            ends: HashMap::new(),
            returns: false,
            interrupted: HashSet::new(),
        };
        for (row, (site, target)) in rows.filter(|(row, _)| !row.is_seen_return()) {
            let (site, target) = (site.map(|at| at as usize), target.map(|at| at as usize));
            stated.tables.touched.extend(site.into_iter().chain(target));
            if let Some(site) = site {
                let leaving = match row.kind {
                    BranchKind::Signal => stated.signals.entry(site).or_default(),
                    BranchKind::End => stated.ends.entry(site).or_default(),
                    _ => stated.tables.out[site].get_or_insert(0),
                };
                *leaving += row.count;
            }
            if let Some(target) = target {
                stated.tables.arrivals[target] += row.count;
            }
            if row.kind == BranchKind::Signal && site.is_none() {
                stated.interrupted.extend(row.site);
            }
            stated.returns |= row.kind == BranchKind::Return && row.count > 0;
        }
        stated
    }
}

/// Direct jumps and calls that are not stated were taken whenever they were executed.
fn unconditional(
    stretches: &Stretches,
    thread: ThreadId,
    executed: &[(u32, u64)],
    stated: &Stated,
) -> impl Iterator<Item = Taken> {
    let taken = |site: u32| {
        let stated = stated.tables.out[site as usize].is_some();
        matches!(stretches.flow(site as usize), Flow::Jump(_) | Flow::Call(_)) && !stated
    };
    let sites = executed.iter().filter(move |(site, _)| taken(*site));
    sites.map(move |&(site, count)| Taken { thread, site, count })
}

/// The numbers of equations and unknowns, used again for the next thread.
#[derive(Default)]
struct Numbers {
    /// By stretch, the number of its equation plus one; 0 without one.
    equation_of: Vec<u32>,
    /// By stretch, the number of its unknown plus one; 0 without one.
    unknown_of: Vec<u32>,
    /// Memory for the fields of [`System`] with the same names.
    equations: Vec<Equation>,
    terms: Vec<Term>,
    unknowns: Vec<Unknown>,
    ready: VecDeque<u32>,
}

impl Numbers {
    fn new(stretches: &Stretches) -> Self {
        let length = stretches.len();
        Self { equation_of: vec![0; length], unknown_of: vec![0; length], ..Self::default() }
    }
}

/// The equations of one thread. An unknown is the taken count of the branch at a site.
struct System<'a> {
    stretches: &'a Stretches,
    /// By stretch.
    executions: &'a [u64],
    /// Stretches that were executed, with their executions.
    executed: &'a [(u32, u64)],
    equations: Vec<Equation>,
    numbers: Numbers,
    /// Terms of equations.
    terms: Vec<Term>,
    unknowns: Vec<Unknown>,
    /// Stretches whose equations may give something.
    ready: VecDeque<u32>,
}

/// A stretch whose branch is not stated.
#[derive(Clone, Copy)]
struct Unknown {
    /// How often it was taken, if that is known by now.
    taken: u64,
    site: u32,
    is_known: bool,
}

/// The arrivals at a stretch by unknowns.
struct Equation {
    at: u32,
    /// The number plus one of the first of the sites that lead there by a branch that is an unknown,
    /// or by not taking it.
    terms: u32,
    /// The known arrivals. Once the equation is closed, the arrivals that are left for the unknowns; a number below 0
    /// wraps, and exceeds the executions of any branch.
    count: u64,
    /// Whether all of its arrivals are known or unknowns.
    is_closed: bool,
}

/// A way of an unknown, as a term of the equation of where it leads.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Term {
    site: u32,
    taken: bool,
    /// The number plus one of the next of the same equation.
    next: u32,
}

impl<'a> System<'a> {
    fn new(
        stretches: &'a Stretches,
        executions: &'a [u64],
        executed: &'a [(u32, u64)],
        stated: &Stated,
        mut numbers: Numbers,
    ) -> Self {
        let (equations, terms) = (std::mem::take(&mut numbers.equations), std::mem::take(&mut numbers.terms));
        let (unknowns, ready) = (std::mem::take(&mut numbers.unknowns), std::mem::take(&mut numbers.ready));
        let mut system = Self { stretches, executions, executed, equations, numbers, terms, unknowns, ready };
        system.find_unknowns(stated);
        system
    }

    /// States the equations; `returned`: where more may arrive than is known of, unless returns are stated.
    fn prepare(&mut self, stated: &Stated, returned: &[bool]) {
        if self.equations.is_empty() {
            return;
        }
        self.add_known_arrivals(stated);
        if self.is_open_everywhere(stated) {
            return;
        }
        for equation in &mut self.equations {
            let at = equation.at as usize;
            if returned[at] && !stated.returns {
                continue;
            }
            let signals = stated.signals.get(&at).copied().unwrap_or(0);
            let arrived = self.executions[at].wrapping_add(signals);
            equation.count = arrived.wrapping_sub(equation.count);
            equation.is_closed = true;
            self.ready.push_back(equation.at);
        }
    }

    /// The conditional branches that were executed and are not stated.
    fn find_unknowns(&mut self, stated: &Stated) {
        let conditional = |at: u32| matches!(self.stretches.flow(at as usize), Flow::Conditional(_));
        let unknowns = self.executed.iter().filter(|(at, _)| conditional(*at)).count();
        self.unknowns.reserve(unknowns);
        self.equations.reserve(unknowns);
        self.terms.reserve(2 * unknowns);
        for &(site, executions) in self.executed {
            let site = site as usize;
            let Flow::Conditional(_) = self.stretches.flow(site) else { continue };
            if stated.tables.out[site].is_some() {
                continue;
            }
            let (target, next) = (self.stretches.direct_target(site), self.stretches.next(site));
            let [there, behind] = match stated.interrupted.is_empty() {
                true => [false; 2],
                false => self.ways(site).map(|place| stated.interrupted.contains(&place)),
            };
            match (target, next) {
                // Nothing went to an instruction that was not translated.
                (None, _) if !there => self.add_unknown(site, Some(0)),
                (_, None) if !behind => self.add_unknown(site, Some(executions)),
                (Some(target), Some(next)) if target == next => {}
                _ => {
                    self.add_unknown(site, None);
                    for (to, taken) in [(target, true), (next, false)] {
                        let Some(to) = to else { continue };
                        self.add_term(to, site, taken);
                    }
                }
            }
        }
    }

    fn add_unknown(&mut self, site: usize, taken: Option<u64>) {
        let (taken, is_known) = (taken.unwrap_or(0), taken.is_some());
        self.unknowns.push(Unknown { taken, site: site as u32, is_known });
        self.numbers.unknown_of[site] = self.unknowns.len() as u32;
    }

    /// How often the branch at a site was taken; nothing if it is stated or not known yet.
    fn solved(&self, site: usize) -> Option<u64> {
        let number = (self.numbers.unknown_of[site] as usize).checked_sub(1)?;
        self.unknowns.get(number).filter(|unknown| unknown.is_known).map(|unknown| unknown.taken)
    }

    /// Whether the branch at a site is to be found by equations.
    fn is_open(&self, site: usize) -> bool {
        self.numbers.unknown_of[site] != 0 && self.solved(site).is_none()
    }

    fn add_term(&mut self, at: usize, site: usize, taken: bool) {
        let known = &mut self.numbers.equation_of[at];
        if *known == 0 {
            self.equations.push(Equation { at: at as u32, terms: 0, count: 0, is_closed: false });
            *known = self.equations.len() as u32;
        }
        let equation = &mut self.equations[*known as usize - 1];
        self.terms.push(Term { site: site as u32, taken, next: equation.terms });
        equation.terms = self.terms.len() as u32;
    }

    /// The places that a conditional branch may lead to: taken, and not.
    fn ways(&self, site: usize) -> [CodeAddress; 2] {
        let (place, behind) = self.stretches.last(site);
        let target = direct(self.stretches.flow(site)).map_or(0, |(_, target)| target);
        [CodeAddress { address: StatedAddress(target), ..place }, behind]
    }

    /// Adds up the known arrivals at the stretches that have equations.
    fn add_known_arrivals(&mut self, stated: &Stated) {
        for equation in &mut self.equations {
            equation.count = stated.tables.arrivals[equation.at as usize];
        }
        for &(at, executed) in self.executed {
            let at = at as usize;
            let out = stated.tables.out[at];
            match self.stretches.flow(at) {
                Flow::Next | Flow::Other => {
                    let ends = stated.ends.get(&at).copied().unwrap_or(0);
                    let elsewhere = out.unwrap_or(0).saturating_add(ends);
                    self.arrive(self.stretches.next(at), executed.saturating_sub(elsewhere));
                }
                Flow::Jump(_) | Flow::Call(_) if out.is_none() => {
                    self.arrive(self.stretches.direct_target(at), executed);
                }
                Flow::Conditional(_) if !self.is_open(at) => {
                    let taken = out.or_else(|| self.solved(at)).unwrap_or(0);
                    self.arrive(self.stretches.next(at), executed.saturating_sub(taken));
                    if out.is_none() {
                        self.arrive(self.stretches.direct_target(at), taken);
                    }
                }
                _ => {}
            }
        }
    }

    fn arrive(&mut self, to: Option<usize>, count: u64) {
        if let Some(equation) = to.and_then(|to| self.equation(to)) {
            equation.count = equation.count.wrapping_add(count);
        }
    }

    /// Whether more may arrive anywhere than is known of: a jump through a register is not stated.
    fn is_open_everywhere(&self, stated: &Stated) -> bool {
        self.executed.iter().any(|&(at, executed)| {
            let flow = self.stretches.flow(at as usize);
            matches!(flow, Flow::IndirectJump | Flow::IndirectCall)
                && stated.tables.out[at as usize].unwrap_or(0) < executed
        })
    }

    /// The tables of numbers, all 0 again, and the rest empty.
    fn into_numbers(mut self) -> Numbers {
        for equation in &self.equations {
            self.numbers.equation_of[equation.at as usize] = 0;
        }
        for unknown in &self.unknowns {
            self.numbers.unknown_of[unknown.site as usize] = 0;
        }
        self.equations.clear();
        self.terms.clear();
        self.unknowns.clear();
        self.ready.clear();
        let Self { equations, terms, unknowns, ready, numbers, .. } = self;
        Numbers { equations, terms, unknowns, ready, ..numbers }
    }

    fn solve(&mut self) {
        let mut open = Vec::new();
        while let Some(at) = self.ready.pop_front() {
            let at = at as usize;
            let Some(equation) = self.equation(at).filter(|equation| equation.is_closed) else { continue };
            let left = equation.count;
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
        self.equations.get_mut((self.numbers.equation_of[at] as usize).checked_sub(1)?)
    }

    /// The terms of an equation whose unknowns have not been found yet.
    fn open_terms(&self, at: usize) -> impl Iterator<Item = Term> + '_ {
        let term = |number: u32| self.terms.get((number as usize).checked_sub(1)?);
        let first = self.numbers.equation_of[at] as usize;
        let first = first.checked_sub(1).map_or(0, |number| self.equations[number].terms);
        let all = std::iter::successors(term(first), move |before| term(before.next));
        all.copied().filter(|term| self.is_open(term.site as usize))
    }

    /// Takes the flow along one way of a branch, and takes both ways off the equations.
    fn set(&mut self, term: Term, flow: u64) {
        let site = term.site as usize;
        let executed = self.executions[site];
        if flow > executed || !self.is_open(site) {
            return;
        }
        let taken = if term.taken { flow } else { executed - flow };
        let unknown = &mut self.unknowns[self.numbers.unknown_of[site] as usize - 1];
        (unknown.taken, unknown.is_known) = (taken, true);
        let target = self.stretches.direct_target(site);
        let next = self.stretches.next(site);
        for (to, flow) in [(target, taken), (next, executed - taken)] {
            let Some(to) = to else { continue };
            if let Some(equation) = self.equation(to).filter(|equation| equation.is_closed) {
                equation.count = equation.count.wrapping_sub(flow);
                self.ready.push_back(to as u32);
            }
        }
    }
}
