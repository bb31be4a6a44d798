//! Makes a profile of a file of gperftools.

use treering_profile::{Function, FunctionKind, Metric, MetricId, Profile, ThreadId, Unit};

use crate::binary::{Binaries, Mappings, NoBinaries};
use crate::budget::Budget;
use crate::gperftools::{cpu, heap, maps};
use crate::gzip::unzip;
use crate::import::Import;
use crate::label::without_mark;
use crate::read_error::LARGE_SUM;
use crate::{Problem, ReadError, ReadReport};

/// Reads a file without the binaries that its addresses are in: there is one function for each of them.
///
/// # Errors
/// When it is damaged, holds nothing, or is no such file.
pub fn read(bytes: &[u8]) -> Result<(Profile, ReadReport), ReadError> {
    read_with(bytes, &mut NoBinaries)
}

/// Reads a file. Functions are addresses of the binaries that are known.
///
/// # Errors
/// When it is damaged, holds nothing, or is no such file.
pub fn read_with(bytes: &[u8], binaries: &mut dyn Binaries) -> Result<(Profile, ReadReport), ReadError> {
    read_within(bytes, Budget::new(bytes.len()), binaries)
}

/// The same with a limit to the memory that the profile may take.
pub(super) fn read_within(
    bytes: &[u8],
    budget: Budget,
    binaries: &mut dyn Binaries,
) -> Result<(Profile, ReadReport), ReadError> {
    let unzipped = unzip(bytes)?;
    let bytes = without_mark(&unzipped);
    let mut import = Import::new(budget);
    let thread = import.thread(0, 0, "");
    let reader = Reader { import, thread, binaries, unplaced: 0 };
    if let Some(samples) = cpu::parse(bytes) {
        return reader.samples(&samples);
    }
    match bytes.starts_with(heap::HEADING.as_bytes()) {
        true => reader.heap(&heap::parse(bytes)?),
        false => Err(Problem::OtherFormat("a CPU profile or a heap profile of gperftools").into()),
    }
}

struct Reader<'a> {
    import: Import,
    thread: ThreadId,
    binaries: &'a mut dyn Binaries,
    /// How many stacks begin in no file that was mapped, or in one that is not here.
    unplaced: u64,
}

impl Reader<'_> {
    fn samples(mut self, samples: &cpu::Samples<'_>) -> Result<(Profile, ReadReport), ReadError> {
        let counted = self.import.profile.add_metric(Metric::exact("samples", Unit::Count));
        let period = samples.period_us.saturating_mul(1000);
        let time = Metric::sampled("cpu", Unit::Nanoseconds, counted, Some(period));
        let time = self.import.profile.add_metric(time);
        let mappings = maps::parse(samples.maps, &mut self.import.profile, self.binaries);
        self.import.report.unfinished = samples.unfinished;
        let mut all: u64 = 0;
        for (count, stack) in &samples.stacks {
            all = all.checked_add(*count).ok_or(LARGE_SUM)?;
            let calls = stack.iter().enumerate().map(|(at, address)| (*address, at > 0));
            self.add(&mappings, calls, &[(counted, *count), (time, count.saturating_mul(period))])?;
        }
        all.checked_mul(period).ok_or(LARGE_SUM)?;
        self.import.profile.metadata.losses.samples = all;
        self.import.profile.metadata.losses.unresolved_samples = self.unplaced.min(all);
        self.finish(all, "samples", mappings.len())
    }

    fn heap(mut self, heap: &heap::Heap<'_>) -> Result<(Profile, ReadReport), ReadError> {
        let mappings = maps::parse(heap.maps, &mut self.import.profile, self.binaries);
        let differs = |(in_use, allocated, _): &(_, _, _)| in_use != allocated && *allocated != (0, 0);
        let names = match heap.stacks.iter().any(differs) {
            true => [Some(["alloc_objects", "alloc_space"]), Some(["inuse_objects", "inuse_space"])],
            false => [None, Some(["objects", "space"])],
        };
        let metrics = names.map(|names| {
            let [objects, bytes] = names?;
            let objects = self.import.profile.add_metric(Metric::exact(objects, Unit::Count));
            Some([objects, self.import.profile.add_metric(Metric::exact(bytes, Unit::Bytes))])
        });
        let mut sums = [0_f64; 4];
        let mut stacks: u64 = 0;
        for (in_use, allocated, addresses) in &heap.stacks {
            let mut weights: Vec<(MetricId, u64)> = Vec::new();
            for (at, (amount, metrics)) in [allocated, in_use].into_iter().zip(metrics).enumerate() {
                let Some(metrics) = metrics else { continue };
                let (objects, bytes) = heap.estimate(*amount);
                sums[2 * at] += objects.round();
                sums[2 * at + 1] += bytes.round();
                weights.extend([(metrics[0], objects.round() as u64), (metrics[1], bytes.round() as u64)]);
            }
            stacks += u64::from(weights.iter().any(|(_, cost)| *cost > 0));
            self.add(&mappings, addresses.iter().map(|address| (*address, true)), &weights)?;
        }
        if sums.iter().any(|sum| *sum >= u64::MAX as f64) {
            return Err(LARGE_SUM.into());
        }
        self.note_kind(heap);
        self.finish(stacks, "stacks", mappings.len())
    }

    fn note_kind(&mut self, heap: &heap::Heap<'_>) {
        if let Some(rate) = heap.rate {
            self.import.note(format!(
                "allocations were sampled, one in {rate} bytes on average: objects and bytes are estimates of all"
            ));
        }
        self.import.note_if(
            heap.is_growth,
            "the numbers are the memory that the heap requested from the system, by the caller that made it grow",
        );
    }

    /// Adds a stack of addresses, the innermost first, of which some are where calls return to.
    fn add(
        &mut self,
        mappings: &Mappings,
        addresses: impl DoubleEndedIterator<Item = (u64, bool)> + Clone,
        weights: &[(MetricId, u64)],
    ) -> Result<(), ReadError> {
        let mut function = |(address, returns): (u64, bool)| {
            let address = address.wrapping_sub(u64::from(returns));
            let unknown = |profile: &mut Profile| Function {
                kind: FunctionKind::Unresolved,
                ..Function::named(profile.strings.intern("[unknown]"))
            };
            let place = mappings.find(address).map(|place| place.function(address));
            place.unwrap_or_else(|| unknown(&mut self.import.profile))
        };
        let innermost = addresses.clone().next().map(&mut function);
        let functions: Vec<Function> = addresses.rev().map(function).collect();
        self.import.begin();
        functions.into_iter().for_each(|function| self.import.function(function, 0));
        let is_lost = innermost.is_some_and(|function| function.kind == FunctionKind::Unresolved);
        let count = weights.first().map_or(0, |weight| weight.1);
        self.unplaced = self.unplaced.saturating_add(if is_lost { count } else { 0 });
        self.import.add(self.thread, weights)?;
        Ok(())
    }

    fn finish(
        mut self,
        found: u64,
        counted: &str,
        mapped: usize,
    ) -> Result<(Profile, ReadReport), ReadError> {
        if found == 0 {
            return Err(Problem::Empty("samples or allocations").into());
        }
        self.import.note(match mapped {
            0 => "it does not tell which files were mapped, so nothing has a name",
            _ => "it has no build-ids: names are those of the binaries as they are here now",
        });
        let unplaced = if mapped > 0 { self.unplaced } else { 0 };
        self.import.note_count(&format!("{counted} in code whose file is not here"), unplaced);
        self.import.finish("gperftools")
    }
}
