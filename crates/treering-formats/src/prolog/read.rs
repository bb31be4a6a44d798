//! Reads profiles of SWI-Prolog.

use treering_profile::{
    Arc, Function, FunctionId, FunctionKind, Metric, MetricId, NodeId, Ports, Profile, RecursionRule, Unit,
    pluralize,
};

use crate::budget::Budget;
use crate::import::Import;
use crate::label::text_of;
use crate::prolog::MAGIC;
use crate::read_error::LARGE_SUM;
use crate::text_line::text_lines;
use crate::{Problem, ReadError, ReadReport};

/// Reads a profile of SWI-Prolog as one thread.
///
/// Ticks become time: all of them together are what the goal took by the clock of the profile. Where
/// there are none, the profile has calls only.
///
/// # Errors
/// At the first line that makes no sense.
pub fn read(bytes: &[u8]) -> Result<(Profile, ReadReport), ReadError> {
    read_within(bytes, Budget::new(bytes.len()))
}

/// The same with a limit to the memory that the profile may take.
pub(crate) fn read_within(bytes: &[u8], budget: Budget) -> Result<(Profile, ReadReport), ReadError> {
    let mut reader = Reader::new(budget);
    for line in text_lines(bytes) {
        if line.number == 1 {
            first_line(line.bytes).map_err(|problem| line.error(problem))?;
        } else if !line.bytes.is_empty() && !reader.has_ended {
            let text = reader.import.text(line.bytes);
            reader.line(&text).map_err(|problem| line.error(problem))?;
        }
    }
    reader.finish()
}

fn first_line(text: &[u8]) -> Result<(), Problem> {
    let version = text.strip_prefix(MAGIC).ok_or("it does not say that this is a profile of SWI-Prolog")?;
    if version.trim_ascii_end() == b"1" {
        Ok(())
    } else {
        Err(Problem::unsupported(format!("it is of version `{}`; version 1 is known", text_of(version))))
    }
}

/// The unit of costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CostUnit {
    /// Ticks of a timer, of which all together are the time of the goal.
    Ticks,
    Nanoseconds,
}

struct Reader {
    import: Import,
    root: NodeId,
    unit: CostUnit,
    is_wall: bool,
    is_flat: bool,
    goal: String,
    system: String,
    start_unix_ns: u64,
    time_ns: u64,
    samples: u64,
    ticks: u64,
    accounting: u64,
    predicates: Vec<FunctionId>,
    nodes: Vec<NodeId>,
    /// The cost of each node, in the unit of the file.
    costs: Vec<u64>,
    /// The number of nodes that the file states.
    stated: u64,
    has_ended: bool,
}

/// The columns that a line may take: those of a node with costs and ports, or of an arc.
const LINE_COLUMNS: usize = 10;

/// The columns of a line behind its first word.
struct Columns<'a>(std::str::Split<'a, char>);

impl<'a> Columns<'a> {
    fn word(&mut self, what: &'static str) -> Result<&'a str, Problem> {
        self.0.next().ok_or_else(|| format!("there is no column of {what}").into())
    }

    fn number(&mut self, what: &'static str) -> Result<u64, Problem> {
        let word = self.word(what)?;
        word.trim().parse().map_err(|_| bad_number(what, word))
    }
}

impl Reader {
    fn new(budget: Budget) -> Self {
        let mut import = Import::with_rule(RecursionRule::SwiClassic, budget);
        let process = import.process(0, "main");
        let thread = import.profile.add_thread(process, 0, "main");
        Self {
            root: import.profile.threads[thread.index()].root,
            import,
            unit: CostUnit::Ticks,
            is_wall: false,
            is_flat: false,
            goal: String::new(),
            system: String::new(),
            start_unix_ns: 0,
            time_ns: 0,
            samples: 0,
            ticks: 0,
            accounting: 0,
            predicates: Vec::new(),
            nodes: Vec::new(),
            costs: Vec::new(),
            stated: 0,
            has_ended: false,
        }
    }

    fn line(&mut self, text: &str) -> Result<(), Problem> {
        let mut columns = Columns(text.split('\t'));
        let first = columns.word("first word")?;
        match first {
            "system" => self.system = columns.word("name of the system")?.to_owned(),
            "goal" => self.goal = columns.word("goal")?.to_owned(),
            "clock" => {
                self.is_wall = match columns.word("clock")? {
                    "cpu" => false,
                    "wall" => true,
                    other => return Err(bad_word("clock", other)),
                }
            }
            "unit" => {
                self.unit = match columns.word("unit")? {
                    "ticks" => CostUnit::Ticks,
                    "ns" => CostUnit::Nanoseconds,
                    other => return Err(bad_word("unit", other)),
                }
            }
            "rule" => self.rule(columns.word("rule")?)?,
            "start" => self.start_unix_ns = columns.number("start")?,
            "time" => self.time_ns = columns.number("time")?,
            "samples" => self.samples = columns.number("number of samples")?,
            "ticks" => self.ticks = columns.number("number of ticks")?,
            "accounting" => self.accounting = columns.number("ticks of the profiler")?,
            "note" => {
                let note = columns.word("note")?.to_owned();
                self.import.profile.metadata.note(note);
            }
            "predicate" => self.predicate(columns)?,
            "node" => self.node(columns)?,
            "arc" => self.arc(columns)?,
            "end" => {
                self.stated = columns.number("number of nodes")?;
                self.has_ended = true;
            }
            other => return Err(format!("the line starts with `{other}`, which is not known").into()),
        }
        Ok(())
    }

    fn rule(&mut self, word: &str) -> Result<(), Problem> {
        self.is_flat = word == "flat";
        self.import.profile.recursion = match word {
            "swi-classic" => RecursionRule::SwiClassic,
            "direct" => RecursionRule::Direct,
            // Arcs and a node for each predicate.
            "full" | "flat" => RecursionRule::Full,
            other => return Err(bad_word("rule", other)),
        };
        Ok(())
    }

    fn predicate(&mut self, mut columns: Columns<'_>) -> Result<(), Problem> {
        let kind = match columns.word("kind")? {
            "user" => FunctionKind::Interpreted,
            "system" => FunctionKind::Builtin,
            "foreign" => FunctionKind::Extension,
            "goal" => FunctionKind::Task,
            other => return Err(bad_word("kind", other)),
        };
        let line = u32::try_from(columns.number("line")?).unwrap_or(0);
        let name = self.import.profile.strings.intern(columns.word("name")?);
        let file = self.import.profile.strings.intern(columns.word("file")?);
        let function = Function { file, line, kind, ..Function::named(name) };
        self.predicates.push(self.import.profile.functions.intern(function));
        Ok(())
    }

    fn known(&self, number: u64) -> Result<FunctionId, Problem> {
        let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        at.and_then(|at| self.predicates.get(at)).copied().ok_or_else(|| bad_reference("predicate", number))
    }

    /// Parent, predicate, calls, recursive ones among them, cost; exits, redos, fails, exceptions and
    /// cuts where they are known.
    fn node(&mut self, mut columns: Columns<'_>) -> Result<(), Problem> {
        self.import.budget.numbers(1, LINE_COLUMNS)?;
        let parent = match columns.number("parent")? {
            0 => self.root,
            number => {
                let node = usize::try_from(number - 1).ok().and_then(|at| self.nodes.get(at));
                *node.ok_or_else(|| bad_reference("node", number))?
            }
        };
        let number = columns.number("predicate")?;
        let function = self.known(number)?;
        let node = self.import.profile.tree.child(parent, function, None);
        let (calls, recursive) = (columns.number("calls")?, columns.number("recursive calls")?);
        self.import.profile.tree.add_calls(node, calls, recursive.min(calls));
        self.costs.push(columns.number("cost")?);
        self.nodes.push(node);
        let mut counts = [0; 5];
        for (count, what) in counts.iter_mut().zip(Ports::NAMES) {
            let Some(word) = columns.0.next() else { return Ok(()) };
            *count = word.parse().map_err(|_| bad_number(what, word))?;
        }
        self.import.profile.ports.row(node).add(&Ports::from_counts(counts));
        Ok(())
    }

    fn arc(&mut self, mut columns: Columns<'_>) -> Result<(), Problem> {
        self.import.budget.numbers(1, LINE_COLUMNS)?;
        let (caller, callee) = (columns.number("caller")?, columns.number("callee")?);
        let (caller, callee) = (self.known(caller)?, self.known(callee)?);
        let calls = columns.number("calls")?;
        self.import.profile.add_arc(Arc { caller, callee, call_site: None, calls, total_costs: Vec::new() });
        Ok(())
    }

    fn finish(mut self) -> Result<(Profile, ReadReport), ReadError> {
        self.import.report.unfinished = !self.has_ended || self.stated != self.nodes.len() as u64;
        self.import.profile.metadata.unfinished = self.import.report.unfinished;
        self.add_metadata();
        match self.unit {
            CostUnit::Nanoseconds => self.add_exact()?,
            CostUnit::Ticks => self.add_ticks()?,
        }
        self.import.finish_own()
    }

    fn add_metadata(&mut self) {
        let run = &mut self.import.profile.runs[0];
        run.command = Some(self.goal.clone()).filter(|goal| !goal.is_empty()).into_iter().collect();
        run.start_unix_ns = self.start_unix_ns;
        if self.is_wall {
            run.duration_ns = self.time_ns;
        } else {
            run.cpu_ns = Some(self.time_ns);
        }
        let metadata = &mut self.import.profile.metadata;
        metadata.collector = match self.unit {
            CostUnit::Ticks => "the profiler of SWI-Prolog",
            CostUnit::Nanoseconds => "treering prolog",
        }
        .to_owned();
        let facts = [("system", self.system.clone()), ("clock", clock(self.is_wall).to_owned())];
        metadata.parameters.extend(facts.map(|(name, value)| (name.to_owned(), value)));
    }

    /// The time of each node as the file has it.
    fn add_exact(&mut self) -> Result<(), Problem> {
        let time = self.import.profile.add_metric(Metric::exact(clock(self.is_wall), Unit::Nanoseconds));
        let costs = std::mem::take(&mut self.costs);
        self.charge(time, &costs)
    }

    /// The time and the samples, shared out by ticks.
    fn add_ticks(&mut self) -> Result<(), Problem> {
        let costs = std::mem::take(&mut self.costs);
        let all: u128 = costs.iter().map(|&ticks| u128::from(ticks)).sum();
        if all == 0 || self.time_ns == 0 || self.samples == 0 {
            return self.add_calls_only();
        }
        let samples = self.import.profile.add_metric(Metric::exact("samples", Unit::Count));
        let period = self.time_ns / self.samples;
        let metric = Metric::sampled(clock(self.is_wall), Unit::Nanoseconds, samples, Some(period.max(1)));
        let time = self.import.profile.add_metric(metric);
        self.charge(samples, &shared(&costs, all, self.samples))?;
        self.charge(time, &shared(&costs, all, self.time_ns))?;
        let metadata = &mut self.import.profile.metadata;
        metadata.losses.samples = self.samples;
        for note in notes_on_ticks(self.samples, self.ticks, self.accounting) {
            metadata.note(note);
        }
        Ok(())
    }

    fn add_calls_only(&mut self) -> Result<(), Problem> {
        let calls = self.import.profile.add_metric(Metric::exact("calls", Unit::Count));
        let counts: Vec<u64> = self.nodes.iter().map(|&node| self.import.profile.tree.calls(node)).collect();
        self.import.profile.metadata.note(NO_SAMPLES);
        // A node that two lines name has the calls of both.
        let mut charged = std::collections::HashSet::new();
        let counts: Vec<u64> = self
            .nodes
            .iter()
            .zip(counts)
            .map(|(node, count)| if charged.insert(*node) { count } else { 0 })
            .collect();
        self.charge(calls, &counts)
    }

    fn charge(&mut self, metric: MetricId, costs: &[u64]) -> Result<(), Problem> {
        let sum = costs.iter().try_fold(0_u64, |sum, &cost| sum.checked_add(cost));
        sum.ok_or(LARGE_SUM)?;
        for (&node, &cost) in self.nodes.iter().zip(costs) {
            self.import.profile.tree.add_self_cost(metric, node, cost);
        }
        Ok(())
    }
}

fn bad_number(column: &str, word: &str) -> Problem {
    format!("`{word}` for the {column} is not a number from 0 to 2^64 - 1").into()
}

fn bad_word(column: &str, word: &str) -> Problem {
    format!("`{word}` for the {column} is not known").into()
}

fn bad_reference(kind: &str, number: u64) -> Problem {
    format!("it names {kind} {number}, which did not come before").into()
}

/// With fewer samples than this, a function that has a tenth of them has from 4 % to 18 % of the time, with 95 %
/// confidence.
const FEW: u64 = 100;

/// The note on a profile without time.
pub(crate) const NO_SAMPLES: &str =
    "0 samples: the goal was too short to tell where the time goes; calls are exact";

/// The notes on time that ticks were made of.
pub(crate) fn notes_on_ticks(samples: u64, ticks: u64, accounting: u64) -> Vec<String> {
    let mut notes = vec![format!(
        "{} of {} stand for the time, which is shared out in proportion to them; \
         {accounting} of them fell into the profiler of SWI-Prolog itself",
        pluralize(ticks, "tick", "ticks"),
        pluralize(samples, "sample", "samples")
    )];
    if samples < FEW {
        let samples = pluralize(samples, "sample is", "samples are");
        notes.push(format!("{samples} too few to tell where the time goes; calls are exact"));
    }
    notes
}

fn clock(is_wall: bool) -> &'static str {
    if is_wall { "time" } else { "cpu" }
}

/// `whole` in parts in proportion to `weights`, which add up to `all`; the parts add up to it.
pub(crate) fn shared(weights: &[u64], all: u128, whole: u64) -> Vec<u64> {
    let (mut before, mut given) = (0_u128, 0_u64);
    let part = |&weight: &u64| {
        before += u128::from(weight);
        let until = (u128::from(whole) * before / all) as u64;
        let part = until - given;
        given = until;
        part
    };
    weights.iter().map(part).collect()
}
