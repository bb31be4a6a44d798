//! The views of counted code: `--blocks`.

use std::path::Path;

use treering_analysis::{Basis, BlockList, BlockTable, LineTable};
use treering_profile::{CodeAddress, Function, FunctionId, Profile, StatedAddress};
use treering_report::Style;
use treering_symbols::CodeReader;

use super::{Report, warn};
use crate::coverage::covered;
use crate::failure::Failure;
use crate::word::word;

impl Report {
    /// The blocks of a function or of the whole program, of the threads asked for.
    pub(super) fn blocks(
        &self,
        profile: Profile,
        wanted: Option<&str>,
        style: &Style,
    ) -> Result<String, Failure> {
        self.part.check_no_stacks("--blocks")?;
        self.time.check_whole_run()?;
        let profile = self.part.of_threads(profile)?;
        match wanted {
            Some(wanted) => self.blocks_of(&profile, wanted, style),
            None => self.all_blocks(&profile, style),
        }
    }

    fn blocks_of(&self, profile: &Profile, wanted: &str, style: &Style) -> Result<String, Failure> {
        // The profile may get another metric for this.
        let mut with_metric = profile.clone();
        let metric = self.metric(&mut with_metric)?;
        let function = self.function(&with_metric, &Basis::of(&with_metric, metric), wanted);
        let function = function.map_err(|failure| match Path::new(wanted).is_file() {
            true => failure.hint(format_args!(
                "for the blocks of the whole program: treering report {} --blocks",
                word(Path::new(wanted))
            )),
            false => failure,
        })?;
        let table = BlockTable::of(profile, function).ok_or_else(|| self.not_counted())?;
        let options = treering_symbols::Options::default();
        let mut reader = CodeReader::new(profile, &options);
        let mut disassemble = |at: CodeAddress, length: u8| {
            let bytes = reader.read(at, length.into())?;
            treering_x86::disassembly::text(&bytes, at.address.0)
        };
        let text = match self.json {
            true => treering_report::blocks_json(profile, &table, &mut disassemble),
            false => treering_report::blocks_text(profile, &table, style, &mut disassemble),
        };
        for problem in reader.problems() {
            warn(&format!("instructions of a module are not shown: {problem}"));
        }
        Ok(text)
    }

    fn all_blocks(&self, profile: &Profile, style: &Style) -> Result<String, Failure> {
        let list = BlockList::of(profile).ok_or_else(|| self.not_counted())?;
        let options = self.options(0.0, style);
        Ok(match self.json {
            true => treering_report::block_list_json(profile, &list, &options),
            false => treering_report::block_list_text(profile, &list, style, &options),
        })
    }

    /// Whether lines can be marked that were never executed: of whole counts, as parts of stacks say nothing of code.
    pub(super) fn has_coverage(&self, profile: &Profile) -> bool {
        !profile.code.blocks.is_empty() && self.part.is_everything()
    }

    /// The profile with a function of that name that has code in an executed binary and never ran; nothing if there is
    /// none, or nobody knows.
    pub(super) fn with_idle_function(
        &self,
        profile: &Profile,
        wanted: &str,
    ) -> Result<Option<(Profile, FunctionId)>, Failure> {
        if !self.has_coverage(profile) {
            return Ok(None);
        }
        let covered = covered(profile, None);
        let files = covered.coverage.files.iter();
        let functions =
            files.flat_map(|file| file.functions.iter().map(move |function| (&file.path, function)));
        let is_it = |name: &str| name == wanted || name.split('(').next() == Some(wanted);
        let idle = functions.filter(|(_, function)| function.calls == 0 && function.executed_blocks == 0);
        let mut found = idle.filter(|(_, function)| is_it(&function.name) || function.linkage_name == wanted);
        let Some((path, function)) = found.next() else { return Ok(None) };
        let others: Vec<_> = found.map(|(path, other)| format!("{path}:{}", other.line)).collect();
        if !others.is_empty() {
            let all = others.len() + 1;
            let failure =
                Failure::new(format_args!("{wanted:?} could be any of {all} functions that never ran"));
            let failure = failure.hint(format_args!("{path}:{}", function.line));
            return Err(others.into_iter().take(9).fold(failure, Failure::hint));
        }
        let mut with_it = profile.clone();
        let added = Function {
            linkage_name: with_it.strings.intern(&function.linkage_name),
            file: with_it.strings.intern(path),
            line: function.line,
            module: function.module,
            address: Some(StatedAddress(function.start)),
            ..Function::named(with_it.strings.intern(&function.name))
        };
        let added = with_it.functions.intern(added);
        Ok(Some((with_it, added)))
    }

    /// The profile has no executions of code.
    fn not_counted(&self) -> Failure {
        Failure::new(format_args!("{}: executions of code were not counted", self.file.display()))
            .hint("treering count counts every one")
    }
}

/// Adds to the lines of a function how often each was executed, and those that never were. Says why if that is not
/// known.
pub(super) fn with_coverage(mut profile: Profile, table: LineTable) -> (Profile, LineTable) {
    let function = &profile.functions[table.function];
    let Some(module) = function.module.filter(|_| function.address.is_some()) else {
        return (profile, table);
    };
    let covered = covered(&profile, Some(module));
    for reason in &covered.without_lines {
        tell!("note: lines that were never executed are not marked: {reason}");
    }
    let table = table.with_coverage(&mut profile, &covered.coverage);
    (profile, table)
}
