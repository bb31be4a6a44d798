//! `treering view`.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use treering_analysis::{Basis, Corrected, correct, default_metric};
use treering_profile::{CodeAddress, MetricId, Profile, merge};
use treering_symbols::CodeReader;
use treering_viewer::{Page, View as Shown};

use crate::command::report::Part;
use crate::failure::{Context as _, Failure, Outcome};
use crate::open::open_profile;
use crate::output::{check_page_target, clean_up_at_signals, write_whole};

/// Make a page that shows the profile: one HTML file that needs no network
#[derive(Debug, clap::Args)]
pub struct View {
    /// The profile, of any format that Treering reads
    #[arg(default_value = "treering.trg")]
    file: PathBuf,
    /// Show what changed since this profile; differences within the error bars are grey
    #[arg(long, value_name = "BASE")]
    diff: Option<PathBuf>,
    /// The page to write [default: the profile's name with .html]; `-` for standard output
    #[arg(short, long, value_name = "PAGE")]
    output: Option<PathBuf>,
    /// Replace PAGE even if it is no page that Treering wrote
    #[arg(long)]
    force: bool,
    /// Write the page without opening it
    #[arg(long)]
    no_open: bool,
    /// What the page is called [default: the command that was profiled]
    #[arg(long, value_name = "TITLE")]
    title: Option<String>,
    /// Leave out the text of source files
    #[arg(long)]
    no_source: bool,
    #[command(flatten)]
    part: Part,
}

impl View {
    /// Does it.
    pub fn run(self) -> Outcome {
        clean_up_at_signals();
        let output = self.output();
        let inputs: Vec<&Path> =
            std::iter::once(&self.file).chain(&self.diff).map(PathBuf::as_path).collect();
        check_page_target(&output, &inputs, self.force)?;
        let opened = open_profile(&self.file)?;
        opened.print_warnings();
        let (mut profile, base_runs) = match &self.diff {
            None => (opened.profile, None),
            Some(base) => {
                let opened_base = open_profile(base)?;
                opened_base.print_warnings();
                self.difference(base, opened_base.profile, opened.profile)?
            }
        };
        let selection = self.part.selection(&mut profile)?;
        let whole = correct(&profile);
        let part = whole.part(&selection).context(self.file.display())?;
        let page = self.page(&whole, &part, base_runs)?;
        page.left_out.iter().for_each(|what| tell!("note: {what}"));
        write_whole(&output, |to| to.write_all(page.html().as_bytes()))?;
        if output != Path::new("-") {
            self.show(&output);
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Both profiles as one, and which of its runs are those of the base.
    fn difference(
        &self,
        base_path: &Path,
        base: Profile,
        new: Profile,
    ) -> Result<(Profile, Option<Vec<bool>>), Failure> {
        for (path, profile) in [(base_path, &base), (self.file.as_path(), &new)] {
            if profile.is_arcs_only() {
                let message = format!("{} has no stacks, so its calls cannot be compared", path.display());
                return Err(Failure::new(message).hint("record it again, or count it with --tree"));
            }
        }
        let name = |profile: &Profile| {
            default_metric(profile).map(|metric| profile.metrics[metric.index()].name.clone())
        };
        let (of_base, of_new) = (name(&base), name(&new));
        if let (Some(of_base), Some(of_new)) = (&of_base, &of_new)
            && base.find_metric(of_new).is_none()
            && new.find_metric(of_base).is_none()
        {
            return Err(Failure::new(format_args!(
                "{} measures {of_base} and {} measures {of_new}: they cannot be compared",
                base_path.display(),
                self.file.display()
            ))
            .hint("record both in the same way"));
        }
        let runs = base.runs.len();
        let merged = merge(&[&base, &new]);
        let is_base = (0..merged.runs.len()).map(|run| run < runs).collect();
        Ok((merged, Some(is_base)))
    }

    fn page(
        &self,
        whole: &Corrected<'_>,
        part: &Corrected<'_>,
        base_runs: Option<Vec<bool>>,
    ) -> Result<Page, Failure> {
        let profile = &*part.profile;
        if profile.metrics.iter().all(|metric| metric.is_level) {
            return Err(Failure::new(format_args!("{}: nothing was measured", self.file.display())));
        }
        let metric = default_metric(profile).unwrap_or(MetricId::new(0));
        let mut view = Shown::of(part);
        view.bases = whole.profile.metrics().map(|(metric, _)| whole.basis(metric)).collect();
        view.metric = metric;
        view.facts = facts(profile, &view.bases[metric.index()]);
        view.base_runs = base_runs;
        view.with_source = !self.no_source;
        if let Some(title) = &self.title {
            view.title.clone_from(title);
        } else if view.base_runs.is_some() {
            view.title = difference_title(profile, view.base_runs.as_deref().unwrap_or_default());
        }
        let options = treering_symbols::Options::default();
        let mut reader = CodeReader::new(profile, &options);
        let mut disassemble = |at: CodeAddress, length: u8| {
            let bytes = reader.read(at, length.into())?;
            treering_x86::disassembly::text(&bytes, at.address.0)
        };
        Ok(Page::with_code(&view, &mut disassemble))
    }

    fn output(&self) -> PathBuf {
        let named = || match self.file == Path::new("-") {
            true => PathBuf::from("treering.html"),
            false => PathBuf::from(self.file.file_name().unwrap_or_default()).with_extension("html"),
        };
        self.output.clone().unwrap_or_else(named)
    }

    /// Opens the page in the browser of the desktop, where there is one, and says where it is.
    fn show(&self, page: &Path) {
        let seen = page.canonicalize().unwrap_or_else(|_| page.to_owned());
        let size = std::fs::metadata(page).map_or(0, |known| known.len());
        tell!("wrote {} ({:.1} MB)", seen.display(), size as f64 / 1e6);
        if self.no_open {
            return;
        }
        let has = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        if has("SSH_CONNECTION") || !(has("DISPLAY") || has("WAYLAND_DISPLAY")) {
            tell!("hint: open it in a browser; it needs no network, so it can be copied or mailed");
            return;
        }
        let started = Command::new("xdg-open")
            .arg(&seen)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        if let Err(error) = started {
            tell!("hint: cannot start a browser (xdg-open: {error}); open the file yourself");
        }
    }
}

/// The lines above a text report.
fn facts(profile: &Profile, basis: &Basis) -> Vec<(String, String)> {
    treering_report::facts(profile, basis).into_iter().map(|(label, text)| (label.to_owned(), text)).collect()
}

/// `old → new`, each by its command.
fn difference_title(profile: &Profile, base_runs: &[bool]) -> String {
    let command = |wanted: bool| {
        let run = profile.runs.iter().zip(base_runs).find(|&(_, &base)| base == wanted);
        run.map_or_else(String::new, |(run, _)| run.command.join(" "))
    };
    format!("{} → {}", command(true), command(false))
}
