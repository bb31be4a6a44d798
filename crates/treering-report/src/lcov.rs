//! Coverage as the tracefile of LCOV.

use std::collections::BTreeMap;

use treering_analysis::{Coverage, FileCoverage};

use crate::picture::Picture;
use crate::printable::printable;

/// How our tracefiles begin: with the name of the test.
pub(crate) const LCOV_START: &str = "TN:treering\n";

/// The coverage of a counted program as a tracefile for LCOV's `genhtml` and whatever else reads `.info` files: lines
/// (`DA`), functions (`FN`, `FNDA`) and conditional branches (`BRDA`), as geninfo(1) describes them.
///
/// The two branches of a `BRDA` are 0, not taken, so that control goes on below, and 1, taken.
pub fn lcov_text(coverage: &Coverage) -> Picture {
    let mut text = LCOV_START.to_owned();
    for file in &coverage.files {
        file_text(&mut text, file);
    }
    Picture { text, left_out: crate::gcov_json::left_out(coverage) }
}

fn file_text(text: &mut String, file: &FileCoverage) {
    *text += &format!("SF:{}\n", printable(&file.path));
    // A tracefile tells functions by name: those of one name, such as static ones of several units, are one.
    let mut functions: BTreeMap<String, (u32, u64)> = BTreeMap::new();
    for function in &file.functions {
        let name = printable(&function.linkage_name).into_owned();
        let known = functions.entry(name).or_insert((function.line, 0));
        known.1 = known.1.saturating_add(function.calls);
    }
    let mut by_line: Vec<_> = functions.iter().collect();
    by_line.sort_by_key(|(name, (line, _))| (*line, name.as_str()));
    for (name, (line, _)) in &by_line {
        *text += &format!("FN:{line},{name}\n");
    }
    for (name, (_, calls)) in &by_line {
        *text += &format!("FNDA:{calls},{name}\n");
    }
    let called = by_line.iter().filter(|(_, (_, calls))| *calls > 0).count();
    *text += &format!("FNF:{}\nFNH:{called}\n", by_line.len());
    let (mut branches, mut taken) = (0, 0);
    for (number, line) in &file.lines {
        for (block, branch) in line.branches.iter().enumerate() {
            let ways = branch.ways.map(|ways| [ways.not_taken, ways.taken]);
            for way in 0..2 {
                let count = ways.map(|ways| ways[way]);
                branches += 1;
                taken += u64::from(count.is_some_and(|count| count > 0));
                let count = count.map_or_else(|| "-".to_owned(), |count| count.to_string());
                *text += &format!("BRDA:{number},{block},{way},{count}\n");
            }
        }
    }
    if branches > 0 {
        *text += &format!("BRF:{branches}\nBRH:{taken}\n");
    }
    for (number, line) in &file.lines {
        *text += &format!("DA:{number},{}\n", line.executions);
    }
    let hit = file.lines.values().filter(|line| line.executions > 0).count();
    *text += &format!("LF:{}\nLH:{hit}\nend_of_record\n", file.lines.len());
}
