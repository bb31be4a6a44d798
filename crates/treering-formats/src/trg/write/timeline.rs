//! Writes when costs arose.

use std::io::Write;

use treering_profile::{Profile, Timeline};

use super::{BLOCK, File};
use crate::trg::content::{Entry, Interval, TimelineHead, WaitEnd, encode_rows};
use crate::trg::{Kind, WriteError};

/// The part of a timeline that a file holds already.
#[derive(Default)]
pub(super) struct WrittenTimeline {
    head: Option<TimelineHead>,
    costs: usize,
    waits: usize,
    lives: usize,
    marks: usize,
    losses: usize,
}

/// A timeline may take so many bytes however short the rest of the file is.
const ALWAYS_ALLOWED: u64 = 64 << 10;

impl WrittenTimeline {
    /// The part that holds for a later state of the timeline: nothing, when that has joined entries.
    fn valid(&self, timeline: &Timeline) -> Self {
        match self.head.is_some_and(|head| head.revision == timeline.revision) {
            true => Self { ..*self },
            false => Self { head: self.head, ..Self::default() },
        }
    }

    pub(super) fn check_extension(&self, profile: &Profile) -> Result<(), WriteError> {
        let Some(timeline) = &profile.timeline else {
            return match self.head {
                Some(_) => Err(WriteError::NotAnExtension("the times of costs are gone")),
                None => Ok(()),
            };
        };
        let before = self.valid(timeline);
        let waits = timeline.waits.as_ref().map_or(0, |waits| waits.intervals.len());
        let shrinks = before.costs > timeline.costs.len()
            || before.waits > waits
            || before.lives > timeline.lives.len()
            || before.marks > timeline.marks.len()
            || before.losses > timeline.losses.len();
        match shrinks {
            true => Err(WriteError::NotAnExtension("a table has fewer entries")),
            false => Ok(()),
        }
    }

    pub(super) fn update(&mut self, profile: &Profile) {
        let Some(timeline) = &profile.timeline else { return };
        *self = Self {
            head: Some(TimelineHead::of(timeline)),
            costs: timeline.costs.len(),
            waits: timeline.waits.as_ref().map_or(0, |waits| waits.intervals.len()),
            lives: timeline.lives.len(),
            marks: timeline.marks.len(),
            losses: timeline.losses.len(),
        };
    }
}

impl<W: Write> File<W> {
    /// Writes what is new.
    pub(super) fn timeline(
        &mut self,
        profile: &Profile,
        written: &WrittenTimeline,
    ) -> Result<(), WriteError> {
        let Some(timeline) = &profile.timeline else { return Ok(()) };
        let before = written.valid(timeline);
        let head = TimelineHead::of(timeline);
        if before.head != Some(head) {
            self.rows(Kind::Timeline, &[head])?;
        }
        let waits = timeline.waits.as_ref().map_or(&[][..], |waits| &waits.intervals);
        self.rows(Kind::TimeCosts, &timeline.costs[before.costs..])?;
        let intervals: Vec<_> = waits[before.waits..].iter().map(Interval::of).collect();
        self.rows(Kind::Waits, &intervals)?;
        self.rows(Kind::Wakings, &WaitEnd::of(waits, before.waits))?;
        self.rows(Kind::Lives, &timeline.lives[before.lives..])?;
        self.rows(Kind::Marks, &timeline.marks[before.marks..])?;
        self.rows(Kind::LostSamples, &timeline.losses[before.losses..])
    }

    /// Writes a whole timeline behind all else. Slots are joined until the costs take at most a quarter of the bytes
    /// before.
    pub(super) fn bounded_timeline(&mut self, profile: &Profile) -> Result<(), WriteError> {
        let Some(timeline) = &profile.timeline else { return Ok(()) };
        let room = (self.output.offset() / 4).max(ALWAYS_ALLOWED);
        if self.packed_length(&timeline.costs)? <= room {
            return self.timeline(profile, &WrittenTimeline::default());
        }
        let mut coarser = timeline.clone();
        while coarser.slots() > 1 && self.packed_length(&coarser.costs)? > room {
            coarser.coarsen();
        }
        let mut bounded = Profile::new(profile.recursion);
        bounded.timeline = Some(coarser);
        self.timeline(&bounded, &WrittenTimeline::default())
    }

    /// How many bytes rows take in the file.
    fn packed_length<T: Entry>(&mut self, rows: &[T]) -> Result<u64, WriteError> {
        let mut sum = 0;
        for piece in rows.chunks(BLOCK) {
            self.payload.clear();
            encode_rows(&mut self.payload, piece);
            sum += self.output.packed_length(self.payload.bytes())? as u64;
        }
        Ok(sum)
    }
}
