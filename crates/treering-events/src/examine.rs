//! Looks for damage.

use alloc::vec;
use alloc::vec::Vec;

use crate::check::{Findings, Sealed, count, first, is_sealed};
use crate::{
    Activation, CODE, Function, HEADER_BYTES, Header, LineCost, Module, Node, NodeLinks, Point, Ref, Setting,
    Sizes, Text, Thread, UNIT, View, flag, mode, text_check,
};

/// The two kinds of damage that a list can have.
struct List {
    broken: &'static str,
    miscounted: &'static str,
}

impl View<'_> {
    /// Finds records that are not as they were written. The file is one at rest, or `is_growing`: then it was
    /// copied while its writer went on, and what is open may be half of one moment and half of
    /// another. Nothing for a file of the layout [without checks](Self::has_checks).
    ///
    /// Takes memory in proportion to the file, and time too.
    pub fn examine(&self, is_growing: bool) -> Findings {
        let mut examination = Examination {
            view: self,
            found: Findings::default(),
            seen: vec![false; self.bytes.len().div_ceil(UNIT as usize)],
            is_growing,
        };
        if self.has_checks() {
            examination.header();
        }
        examination.found
    }
}

struct Examination<'a> {
    view: &'a View<'a>,
    found: Findings,
    /// Units at which a record was met.
    seen: Vec<bool>,
    is_growing: bool,
}

impl<'a> Examination<'a> {
    fn header(&mut self) {
        let Some(header) = Header::read(self.view.bytes) else { return };
        // A record that changes now and then may be halfway while the file grows.
        if !self.is_growing && !is_sealed::<Header>(0, self.view.bytes) {
            self.found.add(0, "the header is damaged");
        }
        if !header.has_sound_numbers() {
            self.found.add(0, "a number of the header is damaged");
        }
        let used = (header.used_units / CODE).saturating_mul(UNIT);
        let length = self.view.bytes.len() as u64;
        if used > length || used < HEADER_BYTES {
            self.found.add(length, "the file is cut short");
        }
        self.text(header.command);
        self.text(header.path);
        let list = |broken, miscounted| List { broken, miscounted };
        let functions = list("a function is damaged", "the list of functions is damaged");
        self.records::<Function>(header.functions, &functions, Function::read, |this, function| {
            this.text(function.name);
            this.text(function.file);
            function.next
        });
        let modules = list("a module is damaged", "the list of modules is damaged");
        self.records::<Module>(header.modules, &modules, Module::read, |this, module| {
            this.text(module.path);
            module.next
        });
        let points = list("a memory point is damaged", "the list of memory points is damaged");
        self.records::<Point>(header.points, &points, Point::read, |this, point| {
            this.text(point.description);
            point.next
        });
        let settings = list("a fact about the run is damaged", "the list of facts about the run is damaged");
        self.records::<Setting>(header.settings, &settings, Setting::read, |this, setting| {
            this.text(setting.name);
            this.text(setting.value);
            setting.next
        });
        let mut threads = Vec::new();
        let kind = list("the record of a thread is damaged", "the list of threads is damaged");
        if self.is_growing {
            threads.extend(self.view.threads().map(|(_, thread)| thread));
        } else {
            self.records::<Thread>(header.threads, &kind, Thread::read, |_, thread| {
                threads.push(*thread);
                thread.next
            });
        }
        threads.iter().for_each(|thread| self.thread(&header, thread));
    }

    /// The bytes of a record that is sealed and was not met before.
    fn sealed<T: Sealed>(&mut self, place: Ref) -> Option<&'a [u8]> {
        let bytes = self.view.at(place).filter(|bytes| is_sealed::<T>(place, bytes))?;
        let is_fresh = self.seen.get_mut(place as usize).is_some_and(|seen| !core::mem::replace(seen, true));
        is_fresh.then_some(bytes)
    }

    /// Walks a list; `look` returns where it goes on.
    fn records<T: Sealed>(
        &mut self,
        link: u64,
        list: &List,
        read: fn(&[u8]) -> Option<T>,
        mut look: impl FnMut(&mut Self, &T) -> Ref,
    ) {
        let mut at = first(link);
        let mut left = count(link);
        while at != 0 && left > 0 {
            let Some(record) = self.sealed::<T>(at).and_then(read) else {
                return self.found.add(u64::from(at) * UNIT, list.broken);
            };
            left -= 1;
            at = look(self, &record);
        }
        if at != 0 || left > 0 {
            self.found.add(0, list.miscounted);
        }
    }

    fn text(&mut self, text: Text) {
        let bytes = self.view.text(text);
        if bytes.len() != text.length as usize || text.length > 0 && text_check(bytes) != text.check {
            self.found.add(text.at, "a text is damaged");
        }
    }

    fn thread(&mut self, header: &Header, thread: &Thread) {
        if !self.is_growing && !thread.has_sound_numbers() {
            self.found.add(0, "a number of a thread is damaged");
        }
        let mut parents = vec![(thread.root, 0)];
        while let Some((place, parent)) = parents.pop() {
            let at = u64::from(place) * UNIT;
            let Some(node) =
                self.sealed::<Node>(place).and_then(Node::read).filter(|node| node.parent == parent)
            else {
                self.found.add(at, "a node of the tree is damaged, with all that is below it");
                continue;
            };
            self.node(place, &node);
            self.children(place, &node, &mut parents);
        }
        if !self.is_growing {
            self.open(header, thread);
        }
    }

    /// The children of a node, which are examined later.
    fn children(&mut self, place: Ref, node: &Node, later: &mut Vec<(Ref, Ref)>) {
        let (mut at, mut left) = (first(node.child_list), count(node.child_list));
        while at != 0 && left > 0 {
            later.push((at, place));
            left -= 1;
            // A node that is damaged is told of when it is examined.
            let child = self.view.at(at).filter(|bytes| is_sealed::<Node>(at, bytes)).and_then(Node::read);
            let Some(child) = child.filter(|child| child.parent == place) else { return };
            at = child.next_sibling;
        }
        if at != 0 || left > 0 {
            self.found.add(u64::from(place) * UNIT, "the list of callees of a node is damaged");
        }
    }

    fn node(&mut self, place: Ref, node: &Node) {
        let at = u64::from(place) * UNIT;
        if !node.has_sound_numbers() {
            self.found.add(at, "a number of a node is damaged");
        }
        let links = self.view.at(place).is_some_and(|bytes| is_sealed::<NodeLinks>(place, bytes));
        if self.is_growing {
            return;
        }
        if (node.sizes | node.lines != 0 || node.links_check != 0) && !links {
            return self.found.add(at, "the links of a node to its lines and argument sizes are damaged");
        }
        if node.sizes != 0 {
            let sizes = self.view.at(node.sizes).and_then(Sizes::read);
            if !sizes.is_some_and(|sizes| sizes.has_sound_numbers()) {
                self.found.add(u64::from(node.sizes) * UNIT, "argument sizes are damaged");
            }
        }
        let mut line_at = node.lines;
        while line_at != 0 {
            let line = self.sealed::<LineCost>(line_at).and_then(LineCost::read);
            let Some(line) = line.filter(|line| line.node == place && line.has_sound_numbers()) else {
                return self.found.add(u64::from(line_at) * UNIT, "the cost of a line is damaged");
            };
            line_at = line.next;
        }
    }

    /// Checks the activations that a thread has open. Each is of a node below that of the one before, but for those
    /// that recursion has folded, and in a flat profile.
    fn open(&mut self, header: &Header, thread: &Thread) {
        let bytes = thread.top.wrapping_sub(thread.stack_address);
        let depth = bytes / Activation::BYTES as u64;
        if !bytes.is_multiple_of(Activation::BYTES as u64) || depth >= u64::from(thread.capacity) {
            return self.found.add(0, "the number of open activations of a thread is damaged");
        }
        for index in 1..=u32::try_from(depth).unwrap_or(0) {
            let at = u64::from(thread.stack) * UNIT + u64::from(index) * Activation::BYTES as u64;
            let Some(activation) = self.view.activation(thread, index) else {
                return self.found.add(at, "an open activation of a thread is damaged");
            };
            // The last one may be about to be filled.
            let is_filled = activation.start != 0 || activation.flags & flag::UNTIMED != 0;
            let is_last = u64::from(index) == depth;
            let is_sound = activation.check == Activation::check_of(activation.node, activation.flags)
                && activation.start % CODE == 0
                && (header.mode != mode::FLAT || activation.children % CODE == 0)
                && self.view.node(self.view.node_of(&activation)).is_some();
            // Until then, the bytes there have a check that is not 0.
            let is_being_entered = is_last && !is_filled && activation.check != 0;
            if !is_sound && !is_being_entered {
                self.found.add(at, "a function that a thread has open is damaged");
            }
        }
    }
}
