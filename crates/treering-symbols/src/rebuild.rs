//! The tree of a profile with frames in place of addresses.

use std::collections::{HashMap, HashSet};

use treering_profile::{
    AddressCost, Arc, CodeCounts, CodeSpace, Frame, Function, FunctionId, FunctionKind, Interner, Line,
    LineCost, LineId, MetricId, Module, ModuleId, NodeId, Piece, Profile, StringId, ThreadId,
};

use crate::answer::{Answers, NamedFunction, Place};
use crate::elf_module::short_name;
use crate::joined_pieces::{JoinedPieces, joined_pieces};
use crate::pieces::Pieces;

/// Makes the profile with names out of the one with addresses.
pub(crate) struct Rebuild<'p> {
    from: &'p Profile,
    into: Profile,
    strings: HashMap<StringId, StringId>,
    modules: Vec<ModuleId>,
    functions: HashMap<FunctionId, FunctionId>,
    lines: HashMap<LineId, LineId>,
    /// The frames that stand for each function that is an address, outermost first.
    frames: HashMap<FunctionId, Vec<Resolved>>,
    /// The functions of the new profile that are pieces of others.
    pieces: Pieces,
    /// The functions that are addresses where pieces begin.
    piece_starts: HashMap<FunctionId, NamedFunction>,
    joined: JoinedPieces,
    /// The addresses at which calls were counted.
    entered: HashSet<FunctionId>,
    /// Whether addresses are those at which costs arose, and not only those of functions.
    exact_addresses: bool,
}

/// A frame in terms of the new profile.
#[derive(Clone, Copy)]
struct Resolved {
    function: FunctionId,
    /// The line executed in it.
    line: Option<LineId>,
}

impl<'p> Rebuild<'p> {
    pub(crate) fn new(from: &'p Profile, exact_addresses: bool) -> Self {
        let mut into = Profile::new(from.recursion);
        into.metadata = from.metadata.clone();
        into.runs = from.runs.clone();
        into.processes = from.processes.clone();
        for metric in &from.metrics {
            into.add_metric(metric.clone());
        }
        let mut rebuild = Self {
            from,
            into,
            strings: HashMap::new(),
            modules: Vec::new(),
            functions: HashMap::new(),
            lines: HashMap::new(),
            frames: HashMap::new(),
            pieces: Pieces::default(),
            piece_starts: HashMap::new(),
            joined: JoinedPieces::default(),
            entered: entered(from),
            exact_addresses,
        };
        rebuild.modules = from.modules.entries().iter().map(|module| rebuild.module(module)).collect();
        rebuild
    }

    /// Takes the answers for the addresses of one module. `addresses` are the functions in the order of the
    /// answers.
    pub(crate) fn take(&mut self, module: Option<ModuleId>, addresses: &[FunctionId], answers: &Answers) {
        let module = module.map(|module| self.modules[module.index()]);
        let mut functions = vec![None; answers.functions.len()];
        for place in answers.places.runs().flat_map(|(_, frames)| frames) {
            let named = &answers.functions[place.function];
            let function = *functions[place.function].get_or_insert_with(|| self.add_function(module, named));
            self.pieces.note(function, named);
        }
        let files: Vec<_> = answers.files.iter().map(|file| self.into.strings.intern(file)).collect();
        let arcs_only = self.from.is_arcs_only();
        for (&address, places) in addresses.iter().zip(answers.places.iter()) {
            if self.entered.contains(&address) {
                let function = self.entered_function(address, places, &functions, answers);
                let named = places.first().map(|place| &answers.functions[place.function]);
                let piece = named.filter(|named| named.piece != Piece::default());
                self.piece_starts.extend(piece.map(|piece| (address, piece.clone())));
                self.frames.insert(address, vec![Resolved { function, line: None }]);
                continue;
            }
            let places = if arcs_only { without_inlined(places) } else { places };
            let mut resolved = Vec::with_capacity(places.len());
            for place in places {
                let Some(function) = functions[place.function] else { continue };
                let line = place.line.map(|(file, line)| Line { file: files[file], line });
                resolved.push(Resolved { function, line: line.map(|line| self.into.lines.intern(line)) });
            }
            self.frames.insert(address, resolved);
        }
    }

    /// The function that begins at an address where calls were counted. Such an address is not in
    /// a call instruction, so it tells neither of lines nor of what is inlined there; and functions
    /// without a name stay apart, since each has calls of its own.
    fn entered_function(
        &mut self,
        address: FunctionId,
        places: &[Place],
        functions: &[Option<FunctionId>],
        answers: &Answers,
    ) -> FunctionId {
        let named = |place: &Place| {
            let named = &answers.functions[place.function];
            named.kind != FunctionKind::Unresolved || named.start.is_some()
        };
        let known = places.first().filter(|place| named(place)).and_then(|place| functions[place.function]);
        known.unwrap_or_else(|| self.unnamed_function(address))
    }

    fn unnamed_function(&mut self, id: FunctionId) -> FunctionId {
        let unnamed = self.from.functions[id];
        let path = unnamed.module.map_or("", |module| &self.from.strings[self.from.modules[module].path]);
        let address = unnamed.address.map_or(0, |address| address.0);
        let name = self.into.strings.intern(&format!("{}+{address:#x}", short_name(path)));
        let module = unnamed.module.map(|module| self.modules[module.index()]);
        let kind = FunctionKind::Unresolved;
        self.into.functions.intern(Function {
            module,
            address: unnamed.address,
            kind,
            ..Function::named(name)
        })
    }

    /// Finds the nodes of pieces that functions beside them jumped to, as the counts of the code tell. `resolve` finds
    /// the functions at addresses of a module of the old profile.
    pub(crate) fn join_pieces(
        &mut self,
        code: &CodeCounts,
        resolve: impl FnMut(Option<ModuleId>, &[u64]) -> Answers,
    ) {
        if self.piece_starts.is_empty() || code.is_empty() {
            return;
        }
        let function = |address| self.frames.get(&address)?.first().map(|frame: &Resolved| frame.function);
        let stays = |from, to| {
            let both = function(from).zip(function(to));
            both.is_some_and(|(from, to)| self.pieces.stays(&self.into, from, to))
        };
        self.joined = joined_pieces(self.from, code, &self.piece_starts, stays, resolve);
        if self.joined.divided > 0 {
            self.into.metadata.note(format!(
                "{} jumps of functions into parts of them that their callers enter as well were divided between contexts \
                 in proportion to calls",
                self.joined.divided
            ));
        }
    }

    /// The new profile, with these counts of the old one's code.
    pub(crate) fn finish(mut self, code: CodeCounts) -> Profile {
        let nodes = self.nodes();
        self.costs(&nodes);
        self.count_unresolved();
        self.address_costs();
        self.details(&nodes);
        self.arcs();
        self.code(code);
        self.sources();
        self.into.compact_line_costs();
        self.into
    }

    fn string(&mut self, id: StringId) -> StringId {
        *self.strings.entry(id).or_insert_with(|| self.into.strings.intern(&self.from.strings[id]))
    }

    fn module(&mut self, module: &Module) -> ModuleId {
        let path = self.string(module.path);
        self.into.modules.intern(Module { path, ..module.clone() })
    }

    fn add_function(&mut self, module: Option<ModuleId>, function: &NamedFunction) -> FunctionId {
        let strings = &mut self.into.strings;
        let function = Function {
            name: strings.intern(&function.name),
            linkage_name: strings.intern(&function.linkage_name),
            module,
            file: strings.intern(&function.file),
            line: function.line,
            address: function.start.map(treering_profile::StatedAddress),
            kind: function.kind,
        };
        self.into.functions.intern(function)
    }

    /// The same function in the new profile, for those that had a name already.
    fn function(&mut self, id: FunctionId) -> FunctionId {
        if let Some(&known) = self.functions.get(&id) {
            return known;
        }
        let function = self.from.functions[id];
        let translated = Function {
            name: self.string(function.name),
            linkage_name: self.string(function.linkage_name),
            file: self.string(function.file),
            module: function.module.map(|module| self.modules[module.index()]),
            ..function
        };
        let translated = self.into.functions.intern(translated);
        self.functions.insert(id, translated);
        translated
    }

    fn line(&mut self, id: LineId) -> LineId {
        if let Some(&known) = self.lines.get(&id) {
            return known;
        }
        let Line { file, line } = self.from.lines[id];
        let file = self.string(file);
        let translated = self.into.lines.intern(Line { file, line });
        self.lines.insert(id, translated);
        translated
    }

    /// Builds the tree; for each node of the old one, the node that its costs go to and the line
    /// executed in it.
    fn nodes(&mut self) -> Vec<Resting> {
        let nowhere = Resting { node: NodeId::new(0), line: None, stays: false };
        let mut nodes = vec![nowhere; self.from.tree.len()];
        for thread in &self.from.threads {
            let added = self.into.add_thread(thread.process, thread.tid, thread.name.clone());
            nodes[thread.root.index()].node = self.into.threads[added.index()].root;
        }
        for node in self.from.tree.nodes() {
            if let Some(parent) = self.from.tree.parent(node) {
                nodes[node.index()] = self.node(node, nodes[parent.index()]);
            }
        }
        nodes
    }

    fn node(&mut self, node: NodeId, caller: Resting) -> Resting {
        let Frame { function, call_site } = self.from.frame(node);
        let stated = call_site.map(|line| self.line(line));
        let mut at = Resting { node: caller.node, line: stated.or(caller.line), stays: false };
        let function = self.joined.nodes.get(&node).map_or(function, |joined| joined.into);
        let frames = match self.frames.get(&function) {
            Some(frames) => frames.clone(),
            None => vec![Resolved { function: self.function(function), line: None }],
        };
        let outermost = frames.first().map(|frame| frame.function);
        let around = self.into.tree.function(at.node);
        if outermost.is_some_and(|function| self.pieces.stays(&self.into, around, function)) {
            at = Resting { line: frames[0].line, stays: true, ..at };
        }
        for Resolved { function, line } in frames.into_iter().skip(at.stays.into()) {
            let frame = Frame { function, call_site: at.line };
            at = Resting { node: self.into.step(at.node, &frame).0, line, ..at };
        }
        at
    }

    fn costs(&mut self, nodes: &[Resting]) {
        for (node, resting) in self.from.tree.nodes().zip(nodes) {
            let (calls, recursive) = self.calls(node, *resting);
            if calls > 0 {
                self.into.tree.add_calls(resting.node, calls, recursive);
            }
            for metric in (0..self.from.metrics.len()).map(MetricId::from_usize) {
                self.cost(metric, self.from.tree.self_cost(metric, node), *resting);
            }
        }
        for cost in &self.from.line_costs {
            let Resting { node, line, .. } = nodes[cost.node.index()];
            if line.is_none() {
                let line = self.line(cost.line);
                self.into.line_costs.push(LineCost { node, line, ..*cost });
            }
        }
    }

    /// How often a node was called, and how many of these calls were folded into it: not how often control went from
    /// one piece of a function to another.
    fn calls(&self, node: NodeId, at: Resting) -> (u64, u64) {
        let (calls, recursive) = (self.from.tree.calls(node), self.from.tree.recursive_calls(node));
        let stayed = match self.joined.nodes.get(&node) {
            _ if at.stays => calls - recursive,
            Some(joined) => joined.jumps,
            None => 0,
        };
        let calls = calls.saturating_sub(stayed);
        (calls, recursive.min(calls))
    }

    /// The costs of each address, by thread.
    fn address_costs(&mut self) {
        let kept = self.from.address_costs.clone();
        for row in kept {
            let (function, holder) = (self.function(row.function), self.function(row.holder));
            let line = row.line.map(|line| self.line(line));
            self.into.address_costs.push(AddressCost { function, holder, line, ..row });
        }
        if self.exact_addresses {
            let mut sums: HashMap<(ThreadId, FunctionId, MetricId), u64> = HashMap::new();
            let tree = &self.from.tree;
            for (node, thread) in tree.nodes().zip(self.from.node_threads()) {
                let function = tree.function(node);
                let found = self.frames.get(&function).is_some_and(|frames| !frames.is_empty());
                if !found || self.entered.contains(&function) {
                    continue;
                }
                for (metric, _) in self.from.metrics() {
                    let cost = tree.self_cost(metric, node);
                    if cost > 0 {
                        let sum = sums.entry((thread, function, metric)).or_default();
                        *sum = sum.saturating_add(cost);
                    }
                }
            }
            let rows = sums.into_iter().filter_map(|((thread, function, metric), cost)| {
                let frames = &self.frames[&function];
                let (holder, at) = (frames.first()?.function, frames.last()?);
                let address = self.from.functions[function].address?;
                Some(AddressCost {
                    thread,
                    function: at.function,
                    holder,
                    address,
                    line: at.line,
                    metric,
                    cost,
                })
            });
            self.into.address_costs.extend(rows);
        }
        self.into.compact_address_costs();
    }

    /// Details beside calls and costs go where these go.
    fn details(&mut self, resting: &[Resting]) {
        let nodes: Vec<_> = resting.iter().map(|resting| Some(resting.node)).collect();
        let metrics: Vec<_> = self.from.metrics().map(|(metric, _)| metric).collect();
        self.into.add_details_of(self.from, &nodes, &metrics);
        self.into.add_points_of(self.from, &nodes, &metrics);
        self.into.add_ended_waits_of(self.from, &nodes);
        self.timeline(resting, &metrics);
    }

    /// The times of costs, on the lines that these are on.
    fn timeline(&mut self, nodes: &[Resting], metrics: &[MetricId]) {
        let costs = self.from.timeline.iter().flat_map(|timeline| &timeline.costs);
        let lines: HashSet<LineId> = costs.filter_map(|cost| cost.line).collect();
        let lines: HashMap<_, _> = lines.into_iter().map(|line| (line, self.line(line))).collect();
        let place = |node: NodeId, line: Option<LineId>| {
            let at = nodes[node.index()];
            Some((at.node, at.line.or_else(|| lines.get(&line?).copied())))
        };
        self.into.take_timeline_of(self.from, metrics, place, |root| Some(nodes[root.index()].node));
    }

    fn cost(&mut self, metric: MetricId, cost: u64, at: Resting) {
        if cost == 0 {
            return;
        }
        self.into.tree.add_self_cost(metric, at.node, cost);
        if let Some(line) = at.line {
            self.into.line_costs.push(LineCost { node: at.node, line, metric, cost });
        }
    }

    /// Samples whose own address has no name count as lost for knowing where time went. Those in functions that had no
    /// name before were counted by who made them, or not: they are counted once.
    fn count_unresolved(&mut self) {
        let (_, before) = self.from.counted_samples();
        let (_, now) = self.into.counted_samples();
        let unresolved = &mut self.into.metadata.losses.unresolved_samples;
        *unresolved = unresolved.saturating_sub(before).saturating_add(now);
    }

    fn arcs(&mut self) {
        let mut joined: HashMap<(FunctionId, FunctionId, Option<LineId>), usize> = HashMap::new();
        for arc in &self.from.arcs {
            let arc = self.arc(arc);
            if self.pieces.stays(&self.into, arc.caller, arc.callee) {
                continue;
            }
            let key = (arc.caller, arc.callee, arc.call_site);
            match joined.get(&key) {
                Some(&at) => add_arc(&mut self.into.arcs[at], &arc),
                None => {
                    joined.insert(key, self.into.arcs.len());
                    self.into.arcs.push(arc);
                }
            }
        }
    }

    fn arc(&mut self, arc: &Arc) -> Arc {
        let resolved = |frames: &HashMap<FunctionId, Vec<Resolved>>, id| frames.get(&id)?.first().copied();
        let caller = resolved(&self.frames, arc.caller);
        let callee = resolved(&self.frames, arc.callee);
        let call_site = arc.call_site.map(|line| self.line(line));
        Arc {
            caller: caller.map_or_else(|| self.function(arc.caller), |frame| frame.function),
            callee: callee.map_or_else(|| self.function(arc.callee), |frame| frame.function),
            call_site: call_site.or(caller.and_then(|frame| frame.line)),
            ..arc.clone()
        }
    }

    /// Counts of code stay as they are, in terms of the new profile.
    fn code(&mut self, mut code: CodeCounts) {
        let module = |space: &CodeSpace| space.module.map(|module| self.modules[module.index()]);
        let spaces = code.spaces.entries().iter();
        let spaces = spaces.map(|space| CodeSpace { module: module(space), ..*space }).collect();
        code.spaces = Interner::from_entries(spaces);
        for block in &mut code.blocks {
            block.function = block.function.map(|function| self.function(function));
        }
        for row in &mut code.lines {
            row.line = row.line.map(|line| self.line(line));
        }
        for row in &mut code.uncounted {
            row.detail = self.string(row.detail);
        }
        self.into.code = code;
    }

    fn sources(&mut self) {
        for source in &self.from.sources {
            let file = self.string(source.file);
            self.into.sources.push(treering_profile::Source { file, text: source.text.clone() });
        }
    }
}

/// Where an old node's costs come to rest.
#[derive(Clone, Copy)]
struct Resting {
    node: NodeId,
    /// The line executed there, which is also the call site of what it calls.
    line: Option<LineId>,
    /// Whether the old node is a piece of the function that had called it: it has no node of its own.
    stays: bool,
}

/// The addresses that are starts of functions, because their calls were counted there. Where
/// nothing was sampled and anything was counted all of them are, also those without calls of their
/// own, which were open before the counting began.
fn entered(profile: &Profile) -> HashSet<FunctionId> {
    let tree = &profile.tree;
    let sampled = profile.metrics.iter().any(|metric| metric.sampling.is_some());
    let all = tree.has_calls() && !sampled;
    tree.nodes().filter(|&node| all || tree.calls(node) > 0).map(|node| tree.function(node)).collect()
}

/// A source that has arcs but no tree knows no contexts, so inlined functions count as part of
/// what they were inlined into.
fn without_inlined(places: &[Place]) -> &[Place] {
    &places[..places.len().min(1)]
}

fn add_arc(into: &mut Arc, from: &Arc) {
    into.calls = into.calls.saturating_add(from.calls);
    for &(metric, cost) in &from.total_costs {
        match into.total_costs.iter_mut().find(|(known, _)| *known == metric) {
            Some((_, total)) => *total = total.saturating_add(cost),
            None => into.total_costs.push((metric, cost)),
        }
    }
}
