//! Pages of profiles: made, written beside a profile, and opened.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use treering_analysis::{Basis, Corrected, correct, default_metric};
use treering_profile::{CodeAddress, MetricId, Profile};
use treering_symbols::CodeReader;
use treering_viewer::{Changes, Compared, Page, View};

use crate::failure::Failure;
use crate::interpreted::add_sources;
use crate::open::open_profile;
use crate::output::{check_page_target, write_whole};
use crate::stream::is_stream;

/// The user's options for a page.
#[derive(Debug, Default)]
pub struct Wishes {
    /// Its title; the command by default.
    pub title: Option<String>,
    /// Whether text of source files is put into it.
    pub with_source: bool,
    /// By run: whether it is one of the base, in a difference.
    pub base_runs: Option<Vec<bool>>,
    /// Why the run changed, in a difference.
    pub changes: Option<Changes>,
    /// Both profiles of a difference.
    pub compared: Option<Compared>,
}

/// Makes a page of `part`, of a profile that was read from `file`. Percents are of `whole`.
pub fn make(
    file: &Path,
    whole: &Corrected<'_>,
    part: &Corrected<'_>,
    wishes: Wishes,
) -> Result<Page, Failure> {
    let profile = &*part.profile;
    if profile.metrics.iter().all(|metric| metric.is_level) {
        return Err(Failure::new(format_args!("{}: nothing was measured", file.display())));
    }
    let view = view(whole, part, wishes);
    let options = treering_symbols::Options::default();
    let mut reader = CodeReader::new(profile, &options);
    let mut disassemble = |at: CodeAddress, length: u8| {
        let bytes = reader.read(at, length.into())?;
        treering_x86::disassembly::text(&bytes, at.address.0)
    };
    Ok(Page::with_code(&view, &mut disassemble))
}

/// The part of a profile that a page shows.
fn view<'a>(whole: &Corrected<'_>, part: &'a Corrected<'_>, wishes: Wishes) -> View<'a> {
    let profile = &*part.profile;
    let metric = default_metric(profile).unwrap_or(MetricId::new(0));
    let mut view = View::of(part);
    view.bases = whole.profile.metrics().map(|(metric, _)| whole.basis(metric)).collect();
    if wishes.base_runs.is_some() {
        let bases = std::mem::take(&mut view.bases).into_iter();
        view.bases = bases.map(|basis| treering_compare::of_samples(&whole.profile, basis)).collect();
    }
    view.metric = metric;
    view.facts = facts(profile, &view.bases[metric.index()]);
    if let Some(compared) = &wishes.compared {
        view.facts = facts_of_both(view.facts, compared, &profile.metrics[metric.index()].name);
    }
    view.base_runs = wishes.base_runs;
    view.changes = wishes.changes;
    view.compared = wishes.compared;
    view.with_source = wishes.with_source;
    if let Some(title) = wishes.title {
        view.title = title;
    }
    view
}

fn facts(profile: &Profile, basis: &Basis) -> Vec<(String, String)> {
    let facts = treering_report::facts(profile, basis).into_iter();
    facts.map(|(label, text)| (label.to_owned(), text)).collect()
}

/// The facts of a difference. Amounts are those of each side, as both together are a sum that nobody measured.
fn facts_of_both(
    together: Vec<(String, String)>,
    compared: &Compared,
    metric: &str,
) -> Vec<(String, String)> {
    let is_of_both =
        |(label, _): &(String, String)| ["command", "note", "losses", "also"].contains(&label.as_str());
    let [new, base] = [0, 1].map(|side| {
        let profile = &compared.sides[side].profile;
        let of = profile.find_metric(metric).map(|id| facts(profile, &Basis::of(profile, id)));
        of.unwrap_or_default().into_iter().filter(|fact| !is_of_both(fact)).collect::<Vec<_>>()
    });
    let mut all: Vec<_> = together.into_iter().filter(is_of_both).collect();
    all.extend(base.iter().filter(|fact| new.contains(fact)).cloned());
    for (side, own, other) in [("base", &base, &new), ("new", &new, &base)] {
        let own = own.iter().filter(|fact| !other.contains(fact));
        all.extend(own.map(|(label, text)| (format!("{label}, {side}"), text.clone())));
    }
    all
}

/// A page that is to be made beside a profile when that is written.
#[derive(Debug)]
pub struct PageBeside {
    profile: PathBuf,
    page: PathBuf,
}

/// Finds out, before a program runs, where the page of its profile goes. `force` replaces a file that is no
/// page of ours.
pub fn beside(profile: &Path, force: bool) -> Result<PageBeside, Failure> {
    if profile == Path::new("-") || is_stream(profile) {
        let message = "--view makes a page of a profile that is a file, but this one is written to a stream";
        return Err(Failure::new(message).hint("name a file after -o, or leave --view out"));
    }
    let page = profile.with_extension("html");
    if page == profile {
        let shown = profile.display();
        return Err(Failure::new(format_args!("the page would take the place of the profile, {shown}"))
            .hint("name the profile after -o with the extension .trg"));
    }
    check_page_target(&page, &[profile], force)
        .map_err(|failure| failure.hint("the page has the name of the profile, with .html"))?;
    Ok(PageBeside { profile: profile.to_owned(), page })
}

impl PageBeside {
    /// Makes the page of the profile, which is written, and opens it.
    pub fn show(&self, quiet: bool) -> Result<(), Failure> {
        let mut profile = open_profile(&self.profile)?.profile;
        let sources = add_sources(&mut profile, &self.profile);
        let whole = correct(&profile);
        let page = make(&self.profile, &whole, &whole, Wishes { with_source: true, ..Wishes::default() })?;
        write_whole(&self.page, |to| to.write_all(page.html().as_bytes()))?;
        if !quiet {
            sources.notes().iter().chain(&page.left_out).for_each(|what| tell!("note: {what}"));
            tell_written(&self.page);
        }
        open_page(&self.page);
        Ok(())
    }
}

/// Says where a page is.
pub fn tell_written(page: &Path) {
    let seen = page.canonicalize().unwrap_or_else(|_| page.to_owned());
    let size = std::fs::metadata(page).map_or(0, |known| known.len());
    tell!("wrote {} ({:.1} MB)", seen.display(), size as f64 / 1e6);
}

/// Opens a page in the browser of the desktop, where there is one.
pub fn open_page(page: &Path) {
    if !has_desktop() {
        tell!("hint: open it in a browser; it needs no network, so it can be copied or mailed");
        return;
    }
    let seen = page.canonicalize().unwrap_or_else(|_| page.to_owned());
    if let Err(error) = start_browser(&seen) {
        tell!("hint: cannot start a browser (xdg-open: {error}); open the file yourself");
    }
}

/// Whether a browser can be shown on this machine's desktop.
pub fn has_desktop() -> bool {
    let has = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !has("SSH_CONNECTION") && (has("DISPLAY") || has("WAYLAND_DISPLAY"))
}

/// Has the desktop open a file.
pub fn start_browser(file: &Path) -> std::io::Result<()> {
    let mut open = Command::new("xdg-open");
    open.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    open.spawn().map(drop)
}
