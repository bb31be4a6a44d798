//! Answers the questions of `treering query` with Apache DataFusion, and moves the files of archives to and from S3.
//!
//! `treering` starts it, and finds it beside itself or on PATH. It is a program of its own because an engine and a
//! client of S3 take many times as long to build as all of Treering.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that speaks to users")]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod ask;
mod bucket;
mod dialect;
mod form;
mod mirror;

use std::io::{self, BufRead as _, Read as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use form::Form;

/// Answers treering query, and keeps archives in S3
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Answer SQL from standard input
    Ask {
        /// The folder of the archive
        archive: PathBuf,
        /// The form of the answers
        #[arg(long, value_enum, default_value = "box")]
        form: Form,
        /// Show how the statements are answered instead
        #[arg(long)]
        explain: bool,
    },
    /// Bring what is missing in a copy of an archive
    Fetch {
        /// s3://BUCKET/PREFIX
        url: String,
        /// The folder of the copy
        folder: PathBuf,
        /// `tables` and `current`, the file that names them, print its version; `named` takes names from standard input
        what: Fetched,
    },
    /// Put what is in an archive's folder into the bucket; prints how many runs are new
    Push {
        /// s3://BUCKET/PREFIX
        url: String,
        /// The folder
        folder: PathBuf,
        /// The tables instead of the runs, if their version in the bucket is still this one; ends with 3 if not
        #[arg(long, value_name = "VERSION")]
        tables_after: Option<String>,
    },
    /// Remove runs, and files that are a day old and are not to be kept; prints their number and bytes
    Sweep {
        /// s3://BUCKET/PREFIX
        url: String,
        /// Remove nothing
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Fetched {
    Runs,
    Tables,
    Current,
    Named,
}

/// Why it did not work, for users.
#[derive(Debug)]
struct Failure {
    message: String,
    hints: Vec<String>,
}

impl Failure {
    fn new(message: impl std::fmt::Display) -> Self {
        Self { message: message.to_string(), hints: Vec::new() }
    }

    fn hint(mut self, hint: impl std::fmt::Display) -> Self {
        self.hints.push(hint.to_string());
        self
    }
}

/// The exit status when somebody else has changed the tables meanwhile.
const OTHERS_WERE_FIRST: u8 = 3;

fn main() -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: cannot start threads: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(run(Arguments::parse().command)) {
        Ok(status) => status,
        Err(failure) => {
            eprintln!("error: {}", failure.message);
            failure.hints.iter().for_each(|hint| eprintln!("hint: {hint}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Ask { archive, form, explain } => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).map_err(cannot_read_input)?;
            // Answers that came before an error are printed, as by other engines.
            let mut output = io::stdout().lock();
            let mut print =
                |text: String| match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
                    Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                        Err(Failure::new(format_args!("cannot print: {error}")))
                    }
                    _ => Ok(()),
                };
            ask::ask(&archive, &text, explain, |answer| print(form.text(answer)?)).await?;
        }
        Command::Fetch { url, folder, what } => {
            let bucket = bucket::Bucket::open(&url)?;
            match what {
                Fetched::Runs => mirror::fetch_runs(&bucket, &folder).await?,
                Fetched::Tables => println!("{}", mirror::fetch_tables(&bucket, &folder).await?),
                Fetched::Current => println!("{}", mirror::fetch_current(&bucket, &folder).await?.0),
                Fetched::Named => mirror::fetch(&bucket, &folder, lines()?).await?,
            }
        }
        Command::Push { url, folder, tables_after: None } => {
            println!("{}", mirror::push_runs(&bucket::Bucket::open(&url)?, &folder).await?);
        }
        Command::Push { url, folder, tables_after: Some(version) } => {
            if !mirror::push_tables(&bucket::Bucket::open(&url)?, &folder, &version).await? {
                return Ok(ExitCode::from(OTHERS_WERE_FIRST));
            }
        }
        Command::Sweep { url, dry_run } => {
            let (files, bytes) = mirror::sweep(&bucket::Bucket::open(&url)?, &lines()?, dry_run).await?;
            println!("{files} {bytes}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn lines() -> Result<Vec<String>, Failure> {
    io::stdin().lock().lines().collect::<Result<_, _>>().map_err(cannot_read_input)
}

fn cannot_read_input(error: io::Error) -> Failure {
    Failure::new(format_args!("cannot read standard input: {error}"))
}
