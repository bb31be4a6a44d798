//! Functions that a JIT compiler had put at an address.

use std::collections::HashMap;

use crate::jitdump::{JitEvent, JitLine, Jitdump};
use crate::perf_map::JitSymbol;

/// The functions that the JIT compilers of one process made, by runtime address and time.
///
/// Addresses are used again after code was freed, so several functions may have been at one.
#[derive(Clone, Debug, Default)]
pub struct JitTable {
    /// Sorted by start; of equal starts in the order in which they were made.
    functions: Vec<JitFunction>,
    /// The length of the longest function: how far back one that holds an address may start.
    longest: u64,
}

#[derive(Clone, Debug)]
struct JitFunction {
    start: u64,
    size: u64,
    loaded: u64,
    order: usize,
    name: Box<str>,
    lines: Box<[JitLine]>,
}

/// A function that a JIT compiler made, and the line in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JitPlace<'a> {
    /// The function's name as the compiler wrote it.
    pub name: &'a str,
    /// The runtime address of its first byte.
    pub start: u64,
    /// The source file, where the compiler told.
    pub file: Option<&'a str>,
    /// The line, or 0.
    pub line: u32,
}

impl JitTable {
    /// The functions of a perf map. It tells no times: of two at one address, the later counts.
    pub fn from_perf_map(symbols: Vec<JitSymbol>) -> Self {
        let function = |(order, symbol): (usize, JitSymbol)| JitFunction {
            start: symbol.start,
            size: symbol.size,
            loaded: 0,
            order,
            name: symbol.name.into(),
            lines: Box::default(),
        };
        Self::new(symbols.into_iter().enumerate().map(function).collect())
    }

    /// The functions of a jitdump file, each from when it was made or moved there on.
    pub fn from_jitdump(dump: Jitdump) -> Self {
        let mut functions: Vec<JitFunction> = Vec::new();
        let mut by_index = HashMap::new();
        for (order, event) in dump.events.into_iter().enumerate() {
            match event {
                JitEvent::Load { time, start, size, index, name, lines } => {
                    by_index.insert(index, functions.len());
                    let (name, lines) = (name.into(), lines.into());
                    functions.push(JitFunction { start, size, loaded: time, order, name, lines });
                }
                JitEvent::Move { time, index, from: _, to, size } => {
                    let Some(&known) = by_index.get(&index) else { continue };
                    let moved = functions[known].moved(to, size, time, order);
                    by_index.insert(index, functions.len());
                    functions.push(moved);
                }
            }
        }
        Self::new(functions)
    }

    fn new(mut functions: Vec<JitFunction>) -> Self {
        functions.sort_by_key(|function| (function.start, function.order));
        let longest = functions.iter().map(|function| function.size).max().unwrap_or(0);
        Self { functions, longest }
    }

    /// Whether there are no functions.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The function that was at `address` at `time`, in the clock of the jitdump file, or that
    /// was made there last when no time is given.
    pub fn lookup(&self, address: u64, time: Option<u64>) -> Option<JitPlace<'_>> {
        let made = self.holding(address).filter(|function| time.is_none_or(|time| function.loaded <= time));
        made.max_by_key(|function| (function.loaded, function.order)).map(|function| function.place(address))
    }
}

impl JitTable {
    /// The names of the functions that were at an address in turn, the one that
    /// [`lookup`](Self::lookup) tells without a time last; one name where the address was used once.
    pub fn names(&self, address: u64) -> Vec<&str> {
        let mut held: Vec<&JitFunction> = self.holding(address).collect();
        held.sort_by_key(|function| (function.loaded, function.order));
        let mut names: Vec<&str> = Vec::new();
        for function in held {
            names.retain(|name| **name != *function.name);
            names.push(&function.name);
        }
        names
    }

    /// The functions that hold an address.
    fn holding(&self, address: u64) -> impl Iterator<Item = &JitFunction> {
        let after = self.functions.partition_point(|function| function.start <= address);
        let near = self.functions[..after].iter().rev();
        let near = near.take_while(move |function| address - function.start < self.longest);
        near.filter(move |function| address - function.start < function.size)
    }
}

impl JitFunction {
    fn moved(&self, to: u64, size: u64, time: u64, order: usize) -> Self {
        let moved = |line: &JitLine| {
            let address = line.address.wrapping_sub(self.start).wrapping_add(to);
            JitLine { address, ..line.clone() }
        };
        let lines = self.lines.iter().map(moved).collect();
        Self { start: to, size, loaded: time, order, name: self.name.clone(), lines }
    }

    fn place(&self, address: u64) -> JitPlace<'_> {
        let after = self.lines.partition_point(|line| line.address <= address);
        let line = after.checked_sub(1).map(|at| &self.lines[at]);
        JitPlace {
            name: &self.name,
            start: self.start,
            file: line.map(|line| line.file.as_str()),
            line: line.map_or(0, |line| line.line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jitdump::tests::Writer;
    use crate::{jitdump, perf_map};

    #[test]
    fn of_two_functions_at_an_address_the_later_line_of_a_perf_map_counts() {
        let table = JitTable::from_perf_map(perf_map::parse("1000 100 old\n1080 10 new\n2000 10 other\n"));
        let name = |address| table.lookup(address, None).map(|place| place.name);
        assert_eq!(name(0x1000), Some("old"));
        assert_eq!(name(0x1085), Some("new"));
        assert_eq!(name(0x1090), Some("old"));
        assert_eq!(name(0x1100), None);
        assert_eq!(name(0xfff), None);
    }

    #[test]
    fn names_that_an_address_had_in_turn_are_told() {
        let map = "1000 100 old\n1080 10 new\n1000 100 old\n2000 10 other\n";
        let table = JitTable::from_perf_map(perf_map::parse(map));
        assert_eq!(table.names(0x1085), ["new", "old"]);
        assert_eq!(table.names(0x1000), ["old"]);
        assert!(table.names(0x3000).is_empty());
    }

    #[test]
    fn a_reused_address_resolves_by_time() {
        let mut writer = Writer::new(false);
        writer.load(10, 0x1000, 0x20, 1, "first").load(20, 0x1000, 0x20, 2, "second");
        let table = JitTable::from_jitdump(jitdump::parse(writer.bytes()).expect("it has a header"));
        let name = |time| table.lookup(0x1008, time).map(|place| place.name);
        assert_eq!(name(Some(9)), None);
        assert_eq!(name(Some(15)), Some("first"));
        assert_eq!(name(Some(20)), Some("second"));
        assert_eq!(name(None), Some("second"));
    }

    #[test]
    fn moved_code_takes_its_name_and_lines_along() {
        let mut writer = Writer::new(true);
        writer.lines(0x1000, &[(0x1000, 7, b"a.js"), (0x1010, 8, b"b.js")]);
        writer.load(10, 0x1000, 0x20, 1, "add").moved(20, 0x1000, 0x2000, 0x20, 1);
        let table = JitTable::from_jitdump(jitdump::parse(writer.bytes()).expect("it has a header"));
        let place = |address| table.lookup(address, None);
        let expected = |start, file, line| Some(JitPlace { name: "add", start, file: Some(file), line });
        assert_eq!(place(0x1008), expected(0x1000, "a.js", 7));
        assert_eq!(place(0x201f), expected(0x2000, "b.js", 8));
    }

    #[test]
    fn extreme_addresses_and_sizes_are_looked_up() {
        let symbol = |start, size, name: &str| JitSymbol { start, size, name: name.into() };
        let table = JitTable::from_perf_map(vec![symbol(u64::MAX, 1, "top"), symbol(0, u64::MAX, "all")]);
        assert_eq!(table.lookup(u64::MAX, None).map(|place| place.name), Some("top"));
        assert_eq!(table.lookup(5, None).map(|place| place.name), Some("all"));
    }
}
