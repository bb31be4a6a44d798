//! `treering bench bisect`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};
use treering_compare::Sides;
use treering_measure::{FLOOR, Launch};
use treering_report::Style;

use crate::arguments::seconds;
use crate::command::report::percent;
use crate::failure::{Context as _, Failure, Outcome};
use crate::git::{output, within};
use crate::terminal;

use super::git::{Trees, commit};
use super::interrupt::Interrupt;
use super::timed::{self, Plan};
use super::verdict::Verdict;
use super::{Comparison, commands, exact};

/// Find the first commit at which a program costs more, by git bisect
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Each commit that git bisect chooses is built and compared with GOOD, as treering compare does. It \
is bad if it costs more than the limit; one that cannot be built, fails, or is undecided is passed \
over. The work tree is left alone.

Exit status: 0 if the commit was found, 2 an error, 3 if it is one of several that were passed over.

Examples:
  treering bench bisect v1.0 main --build 'make -j2' -- ./program input
  treering bench bisect v1.0 main --build make --time -n 50 --limit 5% -- ./program input")]
pub struct Bisect {
    /// A revision that is as fast as it should be
    good: String,
    /// A later one that is not
    bad: String,
    /// Run this command by a shell in each checked-out tree before the program
    #[arg(long, value_name = "COMMAND")]
    build: Option<String>,
    /// A commit is bad if it costs more than this part more than GOOD
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "2%")]
    limit: f64,
    /// Measure time, and count no instructions
    #[arg(long)]
    time: bool,
    /// With --time: how many rounds
    #[arg(short = 'n', long, value_name = "ROUNDS", default_value_t = 30,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rounds: u32,
    /// Pass over a commit of which a run takes longer
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// The file that each run reads as its standard input [default: nothing]
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Compare even if a commit writes something else to standard output
    #[arg(long)]
    ignore_output: bool,
    /// Print JSON; every key is described in docs/json.md
    #[arg(long)]
    json: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// A commit that was tested.
struct Tested {
    commit: String,
    /// Its date and the first line of its message.
    title: String,
    mark: Mark,
    /// The verdict, or why there is none.
    text: String,
}

/// The verdict on a commit, as `git bisect` takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Good,
    Bad,
    Skipped,
}

impl Mark {
    /// The word for it, of git and for the reader.
    fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Skipped => "skip",
        }
    }
}

/// The end of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    Found(String),
    /// One of these.
    Several(Vec<String>),
}

impl Bisect {
    /// Does it.
    pub fn run(self) -> Outcome {
        let interrupt = Interrupt::heed()?;
        let told =
            |failure: Failure| if interrupt.is_asked() { interrupt.failure() } else { failure.status(2) };
        self.bisect(&interrupt).map_err(told)
    }

    fn bisect(&self, interrupt: &Interrupt) -> Outcome {
        let words = commands::one(&self.command)?;
        let ends = Sides { base: commit(&self.good)?, head: commit(&self.bad)? };
        let revisions = format!("{}..{}", ends.base, ends.head);
        let trees = Trees::create(&revisions, self.build.as_deref(), interrupt)?;
        let launches = trees.launches(&Launch {
            input: self.input.clone(),
            timeout: self.timeout,
            stop: Some(interrupt.flag()),
            ..Launch::new(words)
        });
        let mut tested = vec![self.test(&trees, &launches, interrupt)?];
        if tested[0].mark != Mark::Bad {
            let message = format!("{} is not bad, compared with {}: {}", self.bad, self.good, tested[0].text);
            return Err(Failure::new(message).hint("--limit sets how much more is bad"));
        }
        let mut said = bisect(&trees, &["start", &ends.head, &ends.base])?;
        let end = loop {
            if let Some(end) = end(&said) {
                break end;
            }
            let next = self.test_built(&trees, &launches, interrupt)?;
            said = bisect(&trees, &[next.mark.as_str()])?;
            tested.push(next);
        };
        let text = match self.json {
            true => format!("{:#}\n", self.document(&end, &tested, &ends)),
            false => self.text(&trees, &end, &tested),
        };
        match self.json || terminal::has_unicode() {
            true => terminal::print(&text)?,
            false => terminal::print(&treering_report::in_ascii(&text))?,
        }
        Ok(ExitCode::from(if matches!(end, End::Found(_)) { 0 } else { 3 }))
    }

    /// Builds the commit that is checked out and tests it.
    fn test_built(
        &self,
        trees: &Trees,
        launches: &Sides<Launch>,
        interrupt: &Interrupt,
    ) -> Result<Tested, Failure> {
        match trees.build_head(self.build.as_deref(), interrupt) {
            Ok(()) => self.test(trees, launches, interrupt),
            Err(_) if interrupt.is_asked() => Err(interrupt.failure()),
            Err(failure) => tested(trees, Mark::Skipped, format!("not built: {failure}")),
        }
    }

    /// Compares it with GOOD.
    fn test(
        &self,
        trees: &Trees,
        launches: &Sides<Launch>,
        interrupt: &Interrupt,
    ) -> Result<Tested, Failure> {
        match self.compare(launches, interrupt) {
            Ok(verdict) => {
                let mark = match verdict.status {
                    0 => Mark::Good,
                    1 => Mark::Bad,
                    _ => Mark::Skipped,
                };
                tested(trees, mark, verdict.text)
            }
            Err(_) if interrupt.is_asked() => Err(interrupt.failure()),
            Err(failure) => tested(trees, Mark::Skipped, failure.to_string()),
        }
    }

    fn compare(&self, launches: &Sides<Launch>, interrupt: &Interrupt) -> Result<Verdict, Failure> {
        // All are built here, and of another compiler only the sum matters.
        const ANY_COMPILER: bool = true;
        let plan = Plan {
            commands: launches.clone(),
            rounds: self.rounds as usize,
            warm_up: 1,
            prepare: None,
            ignore_output: self.ignore_output,
            floor: FLOOR,
        };
        let (exact, timed) = match self.time {
            true => (None, Some(timed::measure(&plan, interrupt)?)),
            false => (Some(exact::count(launches, self.ignore_output, None, ANY_COMPILER, interrupt)?), None),
        };
        let commands = launches.as_ref().map(|launch| commands::shown(&launch.words));
        Ok(Verdict::of(&Comparison { commands, exact, timed, limit: Some(self.limit / 100.0) }))
    }

    fn text(&self, trees: &Trees, end: &End, tested: &[Tested]) -> String {
        let style = Style { colour: terminal::colour(), width: terminal::width() };
        let of = |commit: &str| tested.iter().find(|of| of.commit == commit);
        let mut text = match end {
            End::Found(commit) => {
                let title = title(trees, commit);
                let why = of(commit).map_or(String::new(), |of| style.wrap(&of.text, 0) + "\n");
                style.bold(&format!("first bad commit: {} {title}", short(commit))) + "\n" + &why
            }
            End::Several(commits) => {
                let list: String =
                    commits.iter().map(|of| format!("  {} {}\n", short(of), title(trees, of))).collect();
                let passed_over =
                    "the first bad commit is one of these, as those before it were passed over:";
                format!("undecided: {passed_over}\n{list}")
            }
        };
        text += "\n";
        for of in tested {
            let line = format!("{} {}  {:<4}  {}", short(&of.commit), of.title, of.mark.as_str(), of.text);
            text += &style.wrap(&line, 9);
            text.push('\n');
        }
        let limit = (self.limit * 1000.0).round() / 1000.0;
        let steps = treering_report::plural(tested.len() as u64, "commit");
        text += &format!("\n{steps} compared with {}; bad: more than {limit} % more\n", self.good);
        text
    }

    fn document(&self, end: &End, tested: &[Tested], ends: &Sides<String>) -> Value {
        let one = |of: &Tested| json!({ "commit": of.commit, "title": of.title, "result": of.mark.as_str(), "text": of.text });
        let (first_bad, candidates) = match end {
            End::Found(commit) => (Some(commit), Vec::new()),
            End::Several(commits) => (None, commits.clone()),
        };
        json!({
            "view": "bisect", "good": ends.base, "bad": ends.head, "limit": self.limit / 100.0,
            "first_bad": first_bad, "candidates": candidates, "tested": tested.iter().map(one).collect::<Vec<_>>(),
        })
    }
}

fn tested(trees: &Trees, mark: Mark, text: String) -> Result<Tested, Failure> {
    let commit = output(within(trees.head()), &["rev-parse", "HEAD"])?;
    let title = title(trees, &commit);
    Ok(Tested { commit, title, mark, text })
}

/// The date of a commit and the first line of its message.
fn title(trees: &Trees, commit: &str) -> String {
    output(within(trees.head()), &["show", "--no-patch", "--format=%cs %s", commit]).unwrap_or_default()
}

fn short(commit: &str) -> &str {
    commit.get(..8).unwrap_or(commit)
}

/// Runs git bisect in the head's tree, which has a search of its own; what it says.
fn bisect(trees: &Trees, words: &[&str]) -> Result<String, Failure> {
    // A build may have changed files that git knows.
    output(within(trees.head()), &["reset", "--hard", "--quiet"])?;
    let said = said(trees.head(), &[&["bisect"], words].concat())?;
    // Where only commits are left that were passed over, it fails, and names them.
    if said.is_success || end(&said.text).is_some() {
        return Ok(said.text);
    }
    let line = said.error.lines().chain(said.text.lines()).find(|line| !line.is_empty());
    Err(Failure::new(format_args!("git bisect: {}", line.unwrap_or("it failed"))))
}

/// The output of git.
struct Said {
    is_success: bool,
    text: String,
    error: String,
}

fn said(directory: &Path, words: &[&str]) -> Result<Said, Failure> {
    let output = within(directory).args(words).env("LC_ALL", "C").output().context("cannot run git")?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(Said { is_success: output.status.success(), text: text(&output.stdout), error: text(&output.stderr) })
}

/// The end of a search, from what git says; nothing if it goes on.
fn end(said: &str) -> Option<End> {
    let found = said.lines().find_map(|line| line.strip_suffix(" is the first bad commit"));
    if let Some(commit) = found {
        return Some(End::Found(commit.to_owned()));
    }
    let (_, rest) = said.split_once("The first bad commit could be any of:\n")?;
    let is_commit = |line: &&str| line.len() >= 40 && line.bytes().all(|byte| byte.is_ascii_hexdigit());
    Some(End::Several(rest.lines().take_while(is_commit).map(str::to_owned).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts are those of git 2.39.
    #[test]
    fn the_end_of_a_search_is_known_from_what_git_says() {
        let commit = "1234567890123456789012345678901234567890";
        assert_eq!(end(&format!("Bisecting: 3 revisions left to test after this\n[{commit}] title\n")), None);
        let found = format!("{commit} is the first bad commit\ncommit {commit}\nAuthor: A\n");
        assert_eq!(end(&found), Some(End::Found(commit.to_owned())));
        let several = format!(
            "There are only 'skip'ped commits left to test.\nThe first bad commit could be any of:\n\
             {commit}\n{commit}\nWe cannot bisect more!\n"
        );
        assert_eq!(end(&several), Some(End::Several(vec![commit.to_owned(), commit.to_owned()])));
    }
}
