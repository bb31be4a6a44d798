//! Reads a profile from all frames that are whole.

use std::sync::mpsc::sync_channel;

use treering_profile::Profile;

use crate::trg::assembly::Assembly;
use crate::trg::content::{Decoded, End, VERSION};
use crate::trg::frame::read_header;
use crate::trg::scan::{Frames, Unpacker};
use crate::trg::{Damage, Kind, Loss, RawFrame};
use crate::{ReadError, ReadReport};

/// Reads a profile.
///
/// A file without END, whose writer was killed, gives all that its whole frames hold, with
/// [`Metadata::unfinished`](treering_profile::Metadata::unfinished) set. Damaged frames are left
/// out and reported. Frames of unknown kinds are skipped. Large files are decoded on two threads.
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
    let room = reading.assembly.budget.room();
    let frames: Vec<_> = Frames::new(bytes).filter_map(|frame| reading.known(frame)).collect();
    if bytes.len() < WORTH_A_THREAD {
        reading.alone(&frames, room)
    } else {
        reading.with_helper(&frames, room)
    }
    reading.finish()
}

/// Below this size a second thread costs more than it saves.
const WORTH_A_THREAD: usize = 1 << 20;

/// A frame that can be decoded, with its kind; or why it cannot.
type Known<'a> = Result<(RawFrame<'a>, Kind), Loss>;

struct Reading {
    assembly: Assembly,
    report: ReadReport,
}

impl Reading {
    /// The frame, unless its kind or version is unknown.
    fn known<'a>(&mut self, frame: Result<RawFrame<'a>, Loss>) -> Option<Known<'a>> {
        let frame = match frame {
            Ok(frame) => frame,
            Err(loss) => return Some(Err(loss)),
        };
        let Some(kind) = Kind::from_number(frame.kind).filter(|_| frame.version <= VERSION) else {
            self.report.skipped.push((frame.kind, frame.version));
            return None;
        };
        let allowed = self.assembly.budget.unpack(frame.raw_length);
        Some(allowed.map(|()| (frame, kind)).map_err(|over| frame.loss(over.into())))
    }

    fn alone(&mut self, frames: &[Known<'_>], room: u64) {
        let mut unpacker = Unpacker::new();
        for frame in frames {
            self.take(frame, |frame, kind| decode(frame, kind, &mut unpacker, room));
        }
    }

    /// Decodes every third frame here, where they are also put together, and the others on a
    /// second thread, which may be a few frames ahead.
    fn with_helper(&mut self, frames: &[Known<'_>], room: u64) {
        const AHEAD: usize = 4;
        let is_ours = |at: usize| at.is_multiple_of(3);
        let (sender, decoded) = sync_channel(AHEAD);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut unpacker = Unpacker::new();
                let theirs = frames.iter().enumerate().filter(|(at, _)| !is_ours(*at));
                for (frame, kind) in theirs.filter_map(|(_, frame)| frame.as_ref().ok()) {
                    if sender.send(decode(frame, *kind, &mut unpacker, room)).is_err() {
                        return;
                    }
                }
            });
            let mut unpacker = Unpacker::new();
            for (at, frame) in frames.iter().enumerate() {
                self.take(frame, |frame, kind| match is_ours(at) {
                    true => decode(frame, kind, &mut unpacker, room),
                    false => decoded.recv().unwrap_or(Err(Damage::Compression)),
                });
            }
        });
    }

    fn take(
        &mut self,
        frame: &Known<'_>,
        decode: impl FnOnce(&RawFrame<'_>, Kind) -> Result<Decoded, Damage>,
    ) {
        let taken = match frame {
            Ok((frame, kind)) => {
                // Decoded in any case, since the helper decodes it too.
                let content = decode(frame, *kind);
                let added = if self.assembly.ended() {
                    Err(Damage::AfterEnd)
                } else {
                    content.and_then(|content| self.assembly.add(content))
                };
                added.map_err(|damage| frame.loss(damage))
            }
            Err(loss) => Err(loss.clone()),
        };
        let Err(loss) = taken else { return };
        // After another loss, that the totals differ says nothing new.
        if loss.damage != Damage::Totals || self.report.losses.is_empty() {
            self.report.losses.push(loss);
        }
    }

    fn finish(mut self) -> Result<(Profile, ReadReport), ReadError> {
        self.report.unfinished = !self.assembly.ended();
        let mut profile = self.assembly.finish()?;
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

fn decode(frame: &RawFrame<'_>, kind: Kind, unpacker: &mut Unpacker, room: u64) -> Result<Decoded, Damage> {
    Decoded::from_payload(kind, unpacker.unpack(frame)?, room)
}
