//! The files that `treering count` keeps while it counts, and leaves behind if it is killed.

use std::path::{Path, PathBuf};

use treering_formats::Format;
use treering_translator::{is_kept, salvage};

use crate::failure::{Context as _, Failure};
use crate::open::Opened;
use crate::stream::is_stream;
use crate::word::word;

/// The directory beside an output file; none beside standard output and what is no regular file.
pub fn count_folder_of(output: &Path) -> Option<PathBuf> {
    let is_regular = std::fs::metadata(output).map_or(true, |known| known.is_file()) && !is_stream(output);
    let mut path = output.as_os_str().to_owned();
    path.push(".counting");
    (is_regular && output != Path::new("-")).then(|| path.into())
}

/// How to read such a directory.
pub fn report_command(directory: &Path) -> String {
    format!("treering report {}", word(directory))
}

/// Opens such a directory as a profile; the names of its functions are to be found. Nothing if it is
/// none.
pub fn open_count_folder(path: &Path) -> Option<Result<Opened, Failure>> {
    is_kept(path).then(|| {
        let salvaged = salvage(path).context(format_args!("cannot read {}", path.display()))?;
        let state = match salvaged.running {
            true => "the program still runs; these are its counts up to now",
            false => "counting was cut short; these are the counts up to then",
        };
        let unfinished =
            salvaged.not_counted.iter().map(|note| format!("process {}: {}", note.pid, note.detail));
        let warnings = std::iter::once(state.to_owned()).chain(unfinished);
        let warnings = warnings.map(|text| format!("{}: {text}", path.display())).collect();
        Ok(Opened { profile: salvaged.profile(), format: Format::Trg, warnings, hint: None })
    })
}

/// The hint for a missing profile whose counts lie in files beside it.
pub fn hint_for_missing(path: &Path) -> Option<String> {
    let kept = count_folder_of(path).filter(|kept| is_kept(kept))?;
    Some(format!("counting goes on, or was cut short; to see the counts: {}", report_command(&kept)))
}
