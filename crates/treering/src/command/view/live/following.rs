//! The visible state of a program, as versions of a page.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;
use treering_analysis::{add_calls_metric, correct, default_metric};
use treering_profile::Profile;
use treering_viewer::Page;

use crate::failure::Failure;
use crate::name_cache::NameCache;
use crate::page::{Wishes, make};
use crate::watched::{Sight, Watched};
use crate::word::word;

/// A program that is followed.
pub(super) struct Following {
    watched: Watched,
    names: NameCache,
    target: PathBuf,
    title: Option<String>,
    /// The page as it was made last, and its number.
    last: Page,
    version: u64,
    state: State,
    /// Why the last look showed nothing.
    problem: Option<String>,
    made: Instant,
    /// Until the next look.
    pause: Duration,
}

/// The fate of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    /// It has left a profile.
    Ended,
    /// It has left nothing.
    Gone,
    /// Its file cannot be read, or not now.
    Failed,
}

/// From one version to the next.
const INTERVAL: Duration = Duration::from_secs(1);

/// Versions are made in so small a part of the time, so that little of the machine is taken from the program.
const PART: u32 = 5;

impl Following {
    /// Looks for the first time.
    pub(super) fn start(target: &str, mut watched: Watched, title: Option<String>) -> Result<Self, Failure> {
        let begun = Instant::now();
        let (mut names, target) = (NameCache::default(), PathBuf::from(target));
        let read = match watched.look()? {
            Sight::Running(read) => read,
            Sight::Ended(_) => {
                let failure = Failure::new(format_args!("{}: the program has ended", target.display()));
                return Err(match target.is_file() {
                    true => {
                        failure.hint(format_args!("to show what it left: treering view {}", word(&target)))
                    }
                    false => failure.hint("to show what it left: treering view"),
                });
            }
            Sight::Gone => {
                return Err(Failure::new(format_args!("{}: the program has ended", target.display()))
                    .hint("its profile was replaced by another program's profile, or removed"));
            }
        };
        let last = page(&target, title.clone(), running(read.running.profile, &mut names))?;
        let pause = INTERVAL.max(begun.elapsed() * PART);
        let (state, problem) = (State::Running, None);
        Ok(Self {
            watched,
            names,
            target,
            title,
            last,
            version: 1,
            state,
            problem,
            made: Instant::now(),
            pause,
        })
    }

    /// The page as it is now.
    pub(super) fn page(&mut self) -> String {
        self.look();
        let interval = self.pause.as_millis().try_into().unwrap_or(u64::MAX);
        self.last.live_html(self.version, interval)
    }

    /// The next version, as the page reads it.
    pub(super) fn news(&mut self, after: u64) -> String {
        self.look();
        let state = match self.state {
            State::Running => "running",
            State::Ended => "ended",
            State::Gone => "gone",
            State::Failed => "failed",
        };
        let head = json!({ "version": self.version, "state": state, "problem": self.problem }).to_string();
        if after == self.version {
            return head;
        }
        format!("{},\"page\":{}}}", head.trim_end_matches('}'), self.last.payload())
    }

    /// Makes the next version where it is time for one.
    fn look(&mut self) {
        let is_final = matches!(self.state, State::Ended | State::Gone);
        if is_final || self.made.elapsed() < self.pause {
            return;
        }
        let begun = Instant::now();
        let seen = self.watched.look().and_then(|sight| match sight {
            Sight::Running(read) => {
                let profile = running(read.running.profile, &mut self.names);
                Ok((State::Running, Some(page(&self.target, self.title.clone(), profile)?)))
            }
            Sight::Ended(opened) => {
                Ok((State::Ended, Some(page(&self.target, self.title.clone(), opened.profile)?)))
            }
            Sight::Gone => Ok((State::Gone, None)),
        });
        match seen {
            Ok((state, next)) => {
                (self.state, self.problem) = (state, None);
                if let Some(next) = next {
                    self.last = next;
                    self.version += 1;
                }
            }
            Err(failure) => (self.state, self.problem) = (State::Failed, Some(failure.to_string())),
        }
        self.made = Instant::now();
        self.pause = INTERVAL.max(begun.elapsed() * PART);
    }
}

/// A profile up to now, with names.
fn running(mut profile: Profile, names: &mut NameCache) -> Profile {
    names.name(&mut profile);
    profile
}

fn page(target: &Path, title: Option<String>, mut profile: Profile) -> Result<Page, Failure> {
    if default_metric(&profile).is_none() {
        add_calls_metric(&mut profile);
    }
    let whole = correct(&profile);
    make(target, &whole, &whole, Wishes { title, with_source: true, ..Wishes::default() })
}
