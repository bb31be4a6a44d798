//! The report of a reader, beside the profile.

#[cfg(feature = "all")]
use treering_profile::pluralize;

#[cfg(feature = "all")]
use crate::trg::Loss;

/// Parts of a file that its reader could not use, and notes that a person should know of the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadReport {
    /// Whether the writer of the file was stopped before it finished.
    pub unfinished: bool,
    /// Parts of a `.trg` file that are damaged or depend on damaged ones.
    #[cfg(feature = "all")]
    pub losses: Vec<Loss>,
    /// Kind and version of frames of a `.trg` file that this version does not know.
    #[cfg(feature = "all")]
    pub skipped: Vec<(u16, u16)>,
    /// Facts that the format could state and the profile cannot, each said once; lower case, no full
    /// stop.
    pub notes: Vec<String>,
}

impl ReadReport {
    /// Whether everything in the file is in the profile.
    pub fn is_complete(&self) -> bool {
        !self.unfinished && self.has_all_frames() && self.notes.is_empty()
    }

    /// A line for each thing a person should know, the most important first; lower case, no full
    /// stop. Of many losses only the first few are told.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.loss_warnings();
        if self.unfinished {
            warnings
                .push("the file has no end: its writer was stopped, what came last may be missing".into());
        }
        warnings.extend(self.skipped_warning());
        warnings.extend(self.notes.iter().cloned());
        warnings
    }
}

/// Frames, which files of `.trg` have.
#[cfg(feature = "all")]
impl ReadReport {
    fn has_all_frames(&self) -> bool {
        self.losses.is_empty() && self.skipped.is_empty()
    }

    fn loss_warnings(&self) -> Vec<String> {
        const SHOWN: usize = 3;
        let mut warnings: Vec<_> = self.losses.iter().take(SHOWN).map(Loss::to_string).collect();
        if self.losses.len() > SHOWN {
            let (more, bytes) = (self.losses.len() - SHOWN, self.lost_bytes());
            let more = pluralize(more as u64, "more frame", "more frames");
            warnings.push(format!("{more} could not be used; {bytes} bytes are lost in all"));
        }
        warnings
    }

    fn skipped_warning(&self) -> Option<String> {
        let count = self.skipped.len() as u64;
        let skipped = pluralize(count, "frame of a kind", "frames of kinds");
        (count > 0).then(|| format!("skipped {skipped} that this version does not know"))
    }

    /// How many bytes of a `.trg` file could not be used.
    pub fn lost_bytes(&self) -> u64 {
        self.losses.iter().map(|loss| loss.length).sum()
    }
}

#[cfg(not(feature = "all"))]
impl ReadReport {
    fn has_all_frames(&self) -> bool {
        true
    }

    fn loss_warnings(&self) -> Vec<String> {
        Vec::new()
    }

    fn skipped_warning(&self) -> Option<String> {
        None
    }
}
