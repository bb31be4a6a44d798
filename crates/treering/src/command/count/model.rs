//! Options of `treering count` for its model of caches and branches, and what it says of them.

use std::path::Path;

use clap::ValueEnum;
use treering_profile::{ModelledEvent, Profile};
use treering_report::grouped;
use treering_translator::Counts;
use treering_translator::model::{CacheShape, Geometry, ModelOptions};

use crate::failure::{Context as _, Failure};

// The options of the model.
#[derive(Debug, clap::Args)]
pub struct Model {
    /// Model caches, branch prediction, or both, and count misses
    #[arg(long, value_name = "cache,branch", value_delimiter = ',', conflicts_with_all = ["tree", "toggle", "marked", "stop_after"])]
    model: Vec<Part>,

    /// The modelled instruction cache, if not this processor's
    #[arg(long, value_name = SHAPE, value_parser = shape, requires = "model")]
    i1: Option<CacheShape>,

    /// The modelled data cache, if not this processor's
    #[arg(long, value_name = SHAPE, value_parser = shape, requires = "model")]
    d1: Option<CacheShape>,

    /// The modelled last-level cache, if not this processor's
    #[arg(long, value_name = SHAPE, value_parser = shape, requires = "model")]
    ll: Option<CacheShape>,
}

const SHAPE: &str = "BYTES,WAYS,LINE";

/// A part of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Caches of instructions and data
    Cache,
    /// A branch predictor
    Branch,
}

/// The model, with the properties of this processor that are not known.
#[derive(Debug, Default)]
pub struct Modelled {
    pub options: ModelOptions,
    /// Caches whose form was assumed, as the system does not tell it.
    assumed: Vec<&'static str>,
}

impl Model {
    /// The options, completed by the system's description of its processor.
    pub fn modelled(&self) -> Result<Modelled, Failure> {
        let branches = self.model.contains(&Part::Branch);
        if !self.model.contains(&Part::Cache) {
            if self.i1.or(self.d1).or(self.ll).is_some() {
                return Err(Failure::new("--i1, --d1 and --ll describe a cache, but none is modelled")
                    .hint("--model cache"));
            }
            return Ok(Modelled { options: ModelOptions { caches: None, branches }, assumed: Vec::new() });
        }
        let own = own_caches(Path::new("/sys/devices/system/cpu/cpu0/cache"));
        let mut assumed = Vec::new();
        let mut choose = |name, said: Option<CacheShape>, own: Option<CacheShape>, size, ways| {
            if let Some(shape) = said.or(own) {
                return Ok(shape);
            }
            assumed.push(name);
            CacheShape::new(size, ways, 64).context(name)
        };
        let i1 = choose("I1", self.i1, own.i1, 32 << 10, 8)?;
        let d1 = choose("D1", self.d1, own.d1, 32 << 10, 8)?;
        let ll = choose("LL", self.ll, own.ll, 8 << 20, 16)?;
        let caches = Some(Geometry { i1, d1, ll });
        Ok(Modelled { options: ModelOptions { caches, branches }, assumed })
    }
}

/// `32768,8,64`, or `32K,8,64`.
fn shape(text: &str) -> Result<CacheShape, String> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let [size, ways, line] = parts[..] else {
        return Err("a cache is described by three numbers: bytes, ways, and bytes of a line".to_owned());
    };
    let number = |text: &str| text.parse::<u32>().map_err(|_| format!("{text:?} is not a number"));
    let bytes = bytes(size).ok_or_else(|| format!("{size:?} is not a number of bytes"))?;
    CacheShape::new(bytes, number(ways)?, number(line)?).map_err(|error| error.to_string())
}

/// `32768`, `32K`, `8M`.
fn bytes(text: &str) -> Option<u64> {
    let unit = match text.as_bytes().last()? {
        b'k' | b'K' => 10,
        b'm' | b'M' => 20,
        b'g' | b'G' => 30,
        _ => return text.parse().ok(),
    };
    text[..text.len() - 1].parse::<u64>().ok()?.checked_mul(1 << unit)
}

/// The caches of this processor, as far as they are known.
#[derive(Debug, Default)]
struct OwnCaches {
    i1: Option<CacheShape>,
    d1: Option<CacheShape>,
    ll: Option<CacheShape>,
}

/// Reads what Linux tells of the caches of a processor.
fn own_caches(directory: &Path) -> OwnCaches {
    let mut own = OwnCaches::default();
    let mut last = 0;
    for number in 0..16 {
        let index = directory.join(format!("index{number}"));
        let read = |name: &str| std::fs::read_to_string(index.join(name)).map(|text| text.trim().to_owned());
        let known = || {
            let size = bytes(&read("size").ok()?)?;
            let line = read("coherency_line_size").ok()?.parse().ok()?;
            let ways = match read("ways_of_associativity").ok()?.parse().ok()? {
                // Any line may be anywhere.
                0 => u32::try_from(size / u64::from(line)).ok()?,
                ways => ways,
            };
            let level: u32 = read("level").ok()?.parse().ok()?;
            Some((level, read("type").ok()?, CacheShape::new(size, ways, line).ok()?))
        };
        match known() {
            Some((1, kind, shape)) if kind == "Instruction" => own.i1 = Some(shape),
            Some((1, kind, shape)) if kind == "Data" => own.d1 = Some(shape),
            Some((level, kind, shape)) if kind == "Unified" && level > last => {
                (own.ll, last) = (Some(shape), level);
            }
            _ => {}
        }
    }
    own
}

/// `32 KiB, 8-way`.
fn described(shape: CacheShape) -> String {
    let size = match shape.size() {
        size if size.is_multiple_of(1 << 20) => format!("{} MiB", size >> 20),
        size if size.is_multiple_of(1 << 10) => format!("{} KiB", size >> 10),
        size => format!("{size} bytes"),
    };
    format!("{size}, {}-way, {}-byte lines", shape.ways(), shape.line())
}

impl Modelled {
    /// Whether nothing is modelled.
    pub fn is_empty(&self) -> bool {
        self.options == ModelOptions::default()
    }

    /// Puts into the profile what its numbers stand for, and what is wrong with them.
    pub fn describe(&self, counts: &Counts, profile: &mut Profile) {
        if self.is_empty() {
            return;
        }
        let mut notes = self.gaps(counts);
        if let Some(Geometry { i1, d1, ll }) = self.options.caches {
            for (name, shape) in [("I1", i1), ("D1", d1), ("LL", ll)] {
                profile.metadata.parameters.insert(format!("model {name}"), described(shape));
            }
            notes.push("cache misses come from a model, not from this processor");
        }
        if self.options.branches {
            let form = "16384 counters of 2 bits by address and history, 512 targets";
            profile.metadata.parameters.insert("model branches".to_owned(), form.to_owned());
            notes.push("mispredicted branches come from a model, not from this processor");
        }
        notes.into_iter().for_each(|note| profile.metadata.note(note));
    }

    /// Gaps of the model: parts of the run that it does not count exactly.
    fn gaps(&self, counts: &Counts) -> Vec<&'static str> {
        let mut gaps = Vec::new();
        if self.is_empty() {
            return gaps;
        }
        let threads = || counts.programs.iter().flat_map(|program| &program.threads);
        let seen: u64 = threads().filter_map(|thread| Some(thread.modelled.as_ref()?.executed)).sum();
        let executed: u64 =
            counts.programs.iter().map(treering_translator::ProgramCounts::instructions).sum();
        if seen != executed {
            gaps.push("the model missed some of the counted instructions");
        }
        let inexact = threads().filter_map(|thread| thread.modelled.as_ref()).any(|it| it.inexact > 0);
        if inexact && self.options.caches.is_some() {
            gaps.push("gathers, scatters and bit strings were modelled as one access at their base");
        }
        gaps
    }

    /// The lines of the summary.
    pub fn summary(&self, counts: &Counts, profile: &Profile) -> String {
        let mut text = String::new();
        if let Some(Geometry { i1, d1, ll }) = self.options.caches {
            text += "modelled caches:\n";
            for (name, shape) in [("I1", i1), ("D1", d1), ("LL", ll)] {
                let source =
                    if self.assumed.contains(&name) { " (assumed: the system does not say)" } else { "" };
                text += &format!("    {name} {}{source}\n", described(shape));
            }
            let executed = counts.programs.iter().map(treering_translator::ProgramCounts::instructions).sum();
            use ModelledEvent as E;
            text += &misses(profile, "instructions fetched", executed, &[("I1", E::I1mr), ("LL", E::ILmr)]);
            let reads = sum(profile, E::Dr);
            text += &misses(profile, "reads of data", reads, &[("D1", E::D1mr), ("LL", E::DLmr)]);
            let writes = sum(profile, E::Dw);
            text += &misses(profile, "writes of data", writes, &[("D1", E::D1mw), ("LL", E::DLmw)]);
        }
        if self.options.branches {
            use ModelledEvent as E;
            text += "modelled branches:\n";
            let mut branches = |what: &str, of: E, wrong: E| {
                let (of, wrong) = (sum(profile, of), sum(profile, wrong));
                let (count, wrong_count, rate) = (grouped(of), grouped(wrong), rate(wrong, of));
                text += &format!("{count:>20}  {what}; {wrong_count} mispredicted ({rate})\n");
            };
            branches("conditional branches", E::Bc, E::Bcm);
            branches("indirect jumps and calls", E::Bi, E::Bim);
        }
        for gap in self.gaps(counts) {
            text += &format!("not modelled exactly: {gap}\n");
        }
        text
    }
}

fn misses(profile: &Profile, what: &str, of: u64, caches: &[(&str, ModelledEvent)]) -> String {
    let missed = caches.iter().map(|&(cache, event)| {
        let missed = sum(profile, event);
        format!("{} missed {cache} ({})", grouped(missed), rate(missed, of))
    });
    format!("{:>20}  {what}; {}\n", grouped(of), missed.collect::<Vec<_>>().join(", "))
}

fn sum(profile: &Profile, event: ModelledEvent) -> u64 {
    let metric = profile.metrics().find(|(_, metric)| metric.name == event.as_str());
    metric.map_or(0, |(metric, _)| profile.run_cost(metric))
}

fn rate(part: u64, of: u64) -> String {
    let percent = if of == 0 { 0.0 } else { part as f64 / of as f64 * 100.0 };
    format!("{percent:.2} %")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail by panicking")]
mod tests {
    use super::*;

    #[test]
    fn caches_are_described_by_three_numbers() {
        assert_eq!(shape("32768,8,64"), shape("32K,8,64"));
        assert_eq!(described(shape("8M, 16, 64").unwrap()), "8 MiB, 16-way, 64-byte lines");
        assert_eq!(described(shape("96,3,32").unwrap()), "96 bytes, 3-way, 32-byte lines");
        for wrong in ["", "32K", "32K,8", "32K,8,64,1", "K,8,64", "32K,8,63", "32K,7,64", "32K,-1,64"] {
            assert!(shape(wrong).is_err(), "{wrong}");
        }
    }
}
