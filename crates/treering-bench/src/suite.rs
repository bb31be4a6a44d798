//! The benchmarks of a program.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;
use std::rc::Rc;

use crate::bencher::{Bencher, Purpose};
use crate::options::{Format, Options};
use crate::{counted, timed};

/// The benchmarks of a program.
#[derive(Default)]
pub struct Suite<'a> {
    benchmarks: Vec<Benchmark<'a>>,
}

/// One of them.
pub(crate) struct Benchmark<'a> {
    /// `sort/n=1000`.
    pub(crate) name: String,
    run: Box<dyn FnMut(&mut Bencher) + 'a>,
}

impl Benchmark<'_> {
    /// Calls it; the processor time of a call in nanoseconds.
    pub(crate) fn call(&mut self, calls: u64, purpose: Purpose) -> Result<f64, String> {
        let mut bencher = Bencher::new(calls, purpose);
        (self.run)(&mut bencher);
        let never = || format!("benchmark {} measures nothing: it never calls Bencher::iter", self.name);
        bencher.nanoseconds_a_call().ok_or_else(never)
    }
}

impl<'a> Suite<'a> {
    /// No benchmarks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a benchmark.
    ///
    /// # Panics
    /// When there is one of that name.
    pub fn function(&mut self, name: &str, run: impl FnMut(&mut Bencher) + 'a) -> &mut Self {
        assert!(self.benchmarks.iter().all(|known| known.name != name), "two benchmarks are called {name:?}");
        self.benchmarks.push(Benchmark { name: name.to_owned(), run: Box::new(run) });
        self
    }

    /// Adds a benchmark for each value of a parameter, called `name/parameter=value`.
    ///
    /// # Panics
    /// When there is one of that name.
    pub fn parameter<V: Display + 'a>(
        &mut self,
        name: &str,
        parameter: &str,
        values: impl IntoIterator<Item = V>,
        run: impl Fn(&mut Bencher, &V) + 'a,
    ) -> &mut Self {
        let run = Rc::new(run);
        for value in values {
            let run = Rc::clone(&run);
            self.function(&format!("{name}/{parameter}={value}"), move |bench| run(bench, &value));
        }
        self
    }

    /// Does what the arguments of the program ask for, and says how it went.
    pub fn main(&mut self) -> ExitCode {
        let stdout = &mut std::io::stdout().lock();
        self.run(std::env::args_os().skip(1), stdout)
    }

    /// The same with other arguments and another output.
    pub fn run(&mut self, arguments: impl IntoIterator<Item = OsString>, to: &mut impl Write) -> ExitCode {
        let options = match Options::of(arguments) {
            Ok(options) => options,
            Err(error) => {
                drop(error.print());
                return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
            }
        };
        self.obey(&options, to).unwrap_or_else(|message| {
            drop(writeln!(std::io::stderr(), "error: {message}"));
            ExitCode::from(2)
        })
    }

    fn obey(&mut self, options: &Options, to: &mut impl Write) -> Result<ExitCode, String> {
        if let Some(name) = &options.run_once {
            let found = self.benchmarks.iter_mut().find(|benchmark| benchmark.name == *name);
            found.ok_or_else(|| format!("no benchmark is called {name:?}"))?.call(1, Purpose::Count)?;
            return Ok(ExitCode::SUCCESS);
        }
        let wanted = self.benchmarks.iter_mut().filter(|benchmark| options.wants(&benchmark.name));
        let mut wanted: Vec<&mut Benchmark<'a>> = wanted.collect();
        let io = |error: std::io::Error| format!("cannot write: {error}");
        if options.list {
            return list(&wanted, options.format, to).map_err(io);
        }
        if wanted.is_empty() {
            return Err("no benchmark has such a name; --list names them".to_owned());
        }
        // `cargo test` runs benchmarks as tests, and says nothing of that.
        if options.test || !(options.bench || options.counts()) {
            for benchmark in wanted {
                benchmark.call(1, Purpose::Time)?;
                writeln!(to, "{}: ok", benchmark.name).map_err(io)?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        if options.counts() {
            let names: Vec<&str> = wanted.iter().map(|benchmark| benchmark.name.as_str()).collect();
            return counted::count(&names, options, to);
        }
        timed::time(&mut wanted, options, to)
    }
}

/// As libtest lists benchmarks.
fn list(wanted: &[&mut Benchmark<'_>], format: Format, to: &mut impl Write) -> std::io::Result<ExitCode> {
    for benchmark in wanted {
        writeln!(to, "{}: benchmark", benchmark.name)?;
    }
    if format == Format::Pretty {
        writeln!(to, "\n0 tests, {} benchmarks", wanted.len())?;
    }
    Ok(ExitCode::SUCCESS)
}
