//! Reads a profile from all frames that are whole.

use treering_profile::Profile;

use crate::ReadReport;
use crate::trg::assembly::Assembly;
use crate::trg::content::{Content, End, VERSION};
use crate::trg::frame::read_header;
use crate::trg::scan::{Frames, Unpacker};
use crate::trg::{Damage, Kind, Loss, RawFrame, ReadError};

/// Reads a profile.
///
/// A file without END, whose writer was killed, gives all that its whole frames hold, with
/// [`Metadata::unfinished`](treering_profile::Metadata::unfinished) set. Damaged frames are left
/// out and reported. Frames of unknown kinds are skipped.
///
/// # Errors
/// When it is not a `.trg` file, or one of a newer major version, or one that no correct writer
/// makes.
pub fn read(bytes: &[u8]) -> Result<(Profile, ReadReport), ReadError> {
    read_header(bytes)?;
    let mut assembly = Assembly::new(bytes.len());
    if let Some(end) = End::find(bytes) {
        assembly.reserve(&end.totals);
    }
    let mut reading = Reading { assembly, report: ReadReport::default() };
    let mut unpacker = Unpacker::new();
    for frame in Frames::new(bytes) {
        reading.frame(frame, &mut unpacker);
    }
    reading.finish()
}

struct Reading {
    assembly: Assembly,
    report: ReadReport,
}

impl Reading {
    fn frame(&mut self, frame: Result<RawFrame<'_>, Loss>, unpacker: &mut Unpacker) {
        let taken = frame.and_then(|frame| self.take(&frame, unpacker).map_err(|damage| frame.loss(damage)));
        let Err(loss) = taken else { return };
        // After another loss, that the totals differ says nothing new.
        if loss.damage != Damage::Totals || self.report.losses.is_empty() {
            self.report.losses.push(loss);
        }
    }

    fn take(&mut self, frame: &RawFrame<'_>, unpacker: &mut Unpacker) -> Result<(), Damage> {
        let known = Kind::from_number(frame.kind).filter(|_| frame.version <= VERSION);
        let Some(kind) = known else {
            self.report.skipped.push((frame.kind, frame.version));
            return Ok(());
        };
        if self.assembly.ended() {
            return Err(Damage::AfterEnd);
        }
        self.assembly.budget.unpack(frame.raw_length)?;
        let content = Content::decode(kind, unpacker.unpack(frame)?)?;
        self.assembly.add(content)
    }

    fn finish(mut self) -> Result<(Profile, ReadReport), ReadError> {
        self.report.unfinished = !self.assembly.ended();
        let mut profile = self.assembly.finish().map_err(ReadError::Invalid)?;
        if self.report.unfinished {
            profile.metadata.unfinished = true;
        }
        if !self.report.losses.is_empty() {
            let count = self.report.losses.len();
            let parts = if count == 1 { "part" } else { "parts" };
            profile.metadata.note(format!("{count} {parts} of the file could not be read"));
        }
        Ok((profile, self.report))
    }
}
