//! Makes a profile of a file of gperftools.

use treering_profile::{
    Frame, Function, FunctionKind, Metric, MetricId, Profile, RecursionRule, ThreadId, Unit,
};

use crate::ReadReport;
use crate::binary::{Binaries, Mappings, NoBinaries};
use crate::gperftools::{Problem, ReadError, cpu, heap, maps};
use crate::gzip::unzip;

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
    let bytes = unzip(bytes).map_err(|error| ReadError { offset: 0, problem: Problem::Gzip(error) })?;
    let mut profile = Profile::new(RecursionRule::Full);
    profile.metadata.set_foreign("gperftools");
    let thread = profile.add_single_thread("");
    let reader = Reader { profile, thread, binaries, report: ReadReport::default(), unplaced: 0 };
    if let Some(samples) = cpu::parse(&bytes) {
        return reader.samples(&samples);
    }
    match bytes.starts_with(heap::HEADING.as_bytes()) {
        true => reader.heap(&heap::parse(&bytes)?),
        false => Err(ReadError { offset: 0, problem: Problem::Neither }),
    }
}

struct Reader<'a> {
    profile: Profile,
    thread: ThreadId,
    binaries: &'a mut dyn Binaries,
    report: ReadReport,
    /// How many stacks begin in no file that was mapped, or in one that is not here.
    unplaced: u64,
}

impl Reader<'_> {
    fn samples(mut self, samples: &cpu::Samples<'_>) -> Result<(Profile, ReadReport), ReadError> {
        let counted = self.profile.add_metric(Metric::exact("samples", Unit::Count));
        let period = samples.period_us.saturating_mul(1000);
        let time = Metric::sampled("cpu", Unit::Nanoseconds, counted, Some(period));
        let time = self.profile.add_metric(time);
        let mappings = maps::parse(samples.maps, &mut self.profile, self.binaries);
        self.report.unfinished = samples.unfinished;
        let too_large = || ReadError { offset: 0, problem: Problem::LargeNumber };
        let mut all: u64 = 0;
        for (count, stack) in &samples.stacks {
            all = all.checked_add(*count).ok_or_else(too_large)?;
            let calls = stack.iter().enumerate().map(|(at, address)| (*address, at > 0));
            self.add(&mappings, calls, &[(counted, *count), (time, count.saturating_mul(period))]);
        }
        all.checked_mul(period).ok_or_else(too_large)?;
        self.profile.metadata.losses.samples = all;
        self.profile.metadata.losses.unresolved_samples = self.unplaced.min(all);
        self.finish(all, "samples", mappings.len())
    }

    fn heap(mut self, heap: &heap::Heap<'_>) -> Result<(Profile, ReadReport), ReadError> {
        let mappings = maps::parse(heap.maps, &mut self.profile, self.binaries);
        let differs = |(in_use, allocated, _): &(_, _, _)| in_use != allocated && *allocated != (0, 0);
        let names = match heap.stacks.iter().any(differs) {
            true => [Some(["alloc_objects", "alloc_space"]), Some(["inuse_objects", "inuse_space"])],
            false => [None, Some(["objects", "space"])],
        };
        let metrics = names.map(|names| {
            let [objects, bytes] = names?;
            let objects = self.profile.add_metric(Metric::exact(objects, Unit::Count));
            Some([objects, self.profile.add_metric(Metric::exact(bytes, Unit::Bytes))])
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
            self.add(&mappings, addresses.iter().map(|address| (*address, true)), &weights);
        }
        if sums.iter().any(|sum| *sum >= u64::MAX as f64) {
            return Err(ReadError { offset: 0, problem: Problem::LargeNumber });
        }
        self.note_kind(heap);
        self.finish(stacks, "stacks", mappings.len())
    }

    fn note_kind(&mut self, heap: &heap::Heap<'_>) {
        if let Some(rate) = heap.rate {
            self.report.notes.push(format!(
                "allocations were sampled, one in {rate} bytes on average: objects and bytes are estimates of all"
            ));
        }
        if heap.is_growth {
            self.report.notes.push(
                "the numbers are the memory that the heap requested from the system, by the caller that made it grow".to_owned(),
            );
        }
    }

    /// Adds a stack of addresses, the innermost first, of which some are where calls return to.
    fn add(
        &mut self,
        mappings: &Mappings,
        addresses: impl DoubleEndedIterator<Item = (u64, bool)> + Clone,
        weights: &[(MetricId, u64)],
    ) {
        let mut function = |(address, returns): (u64, bool)| {
            let address = address.wrapping_sub(u64::from(returns));
            let unknown = |profile: &mut Profile| Function {
                kind: FunctionKind::Unresolved,
                ..Function::named(profile.strings.intern("[unknown]"))
            };
            let place = mappings.find(address).map(|place| place.function(address));
            place.unwrap_or_else(|| unknown(&mut self.profile))
        };
        let innermost = addresses.clone().next().map(&mut function);
        let functions: Vec<Function> = addresses.rev().map(function).collect();
        let is_lost = innermost.is_some_and(|function| function.kind == FunctionKind::Unresolved);
        let count = weights.first().map_or(0, |weight| weight.1);
        self.unplaced = self.unplaced.saturating_add(if is_lost { count } else { 0 });
        let frames: Vec<Frame> =
            functions.into_iter().map(|f| Frame::new(self.profile.functions.intern(f))).collect();
        self.profile.add_stack(self.thread, &frames, None, weights);
    }

    fn finish(mut self, found: u64, what: &str, mapped: usize) -> Result<(Profile, ReadReport), ReadError> {
        let error = |problem| ReadError { offset: 0, problem };
        if found == 0 {
            return Err(error(Problem::Empty));
        }
        if mapped == 0 {
            self.report
                .notes
                .push("it does not tell which files were mapped, so nothing has a name".to_owned());
        } else {
            self.report
                .notes
                .push("it has no build-ids: names are those of the binaries as they are here now".to_owned());
        }
        if self.unplaced > 0 && mapped > 0 {
            self.report.notes.push(format!("{what} in code whose file is not here: {}", self.unplaced));
        }
        self.profile.validate().map_err(|invalid| error(Problem::Invalid(invalid)))?;
        Ok((self.profile, self.report))
    }
}
