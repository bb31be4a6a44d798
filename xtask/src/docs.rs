//! `cargo xtask docs`: makes the pages that are made of others, and the documentation as a site.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::{link, readme, workspace};

/// Makes everything and prints where it is.
pub(crate) fn run() -> ExitCode {
    match make() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn make() -> Result<(), String> {
    for page in readme::all()? {
        if page.write()? {
            println!("wrote {}", page.path.display());
        }
    }
    make_command_reference()?;
    let broken = link::check()?;
    broken.iter().for_each(|line| eprintln!("error: {line}"));
    if !broken.is_empty() {
        return Err(format!("{} links are broken", broken.len()));
    }
    make_site()
}

/// Has the test that compares `docs/cli.md` with the program write it.
fn make_command_reference() -> Result<(), String> {
    let mut test = workspace::cargo();
    test.args(["test", "--quiet", "--package", "treering", "--bin", "treering", "command_line_reference"]);
    let output = test.env("UPDATE_EXPECT", "1").stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot run {test:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("docs/cli.md was not written:\n{}", String::from_utf8_lossy(&output.stderr)))
}

/// Puts the pages together as they lie in the repository and has mdBook make a site of them.
fn make_site() -> Result<(), String> {
    let book = workspace::target_directory().join("book");
    stage(&book)?;
    match Command::new("mdbook").arg("build").arg(&book).stdin(Stdio::null()).status() {
        Ok(status) if status.success() => {
            println!("{}", book.join("book/index.html").display());
            Ok(())
        }
        Ok(status) => Err(format!("mdbook ended with {status}")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            println!("skipped: mdBook is not installed, so there is no site");
            println!("hint: cargo install mdbook");
            Ok(())
        }
        Err(error) => Err(format!("cannot run mdbook: {error}")),
    }
}

/// Copies every page of `docs/SUMMARY.md`, and the files that they link to, below `book/src`.
fn stage(book: &Path) -> Result<(), String> {
    if book.exists() {
        std::fs::remove_dir_all(book).map_err(|error| format!("{}: {error}", book.display()))?;
    }
    let source = book.join("src");
    for file in staged_files()? {
        let place = source.join(file.strip_prefix(workspace::root()).unwrap_or(&file));
        copy(&file, &place)?;
        if file.extension().is_some_and(|extension| extension == "md") {
            let page = with_links_to_indexes(&read(&file)?);
            std::fs::write(&place, page).map_err(|error| format!("{}: {error}", place.display()))?;
        }
    }
    let docs = workspace::root().join("docs");
    copy(&docs.join("book.toml"), &book.join("book.toml"))?;
    let contents = seen_from_root(&read(&docs.join("SUMMARY.md"))?);
    std::fs::write(source.join("SUMMARY.md"), contents).map_err(|error| format!("SUMMARY.md: {error}"))
}

/// The pages of the site, and the files that they link to.
fn staged_files() -> Result<Vec<PathBuf>, String> {
    let mut files = pages()?;
    for page in files.clone() {
        files.extend(linked(&page)?);
    }
    files.sort();
    files.dedup();
    Ok(files)
}

/// The pages of the site.
fn pages() -> Result<Vec<PathBuf>, String> {
    linked(&workspace::root().join("docs/SUMMARY.md"))
}

/// The files that a page links to. A link to a folder leads to its README, as on the sites that show repositories.
fn linked(page: &Path) -> Result<Vec<PathBuf>, String> {
    let targets = link::Page::parse(&read(page)?).targets;
    let files = targets.iter().filter_map(|target| Some(link::local(page, target)?.0));
    let files = files.map(|file| if file.is_dir() { file.join("README.md") } else { file });
    files.map(|file| file.canonicalize().map_err(|error| format!("{}: {error}", file.display()))).collect()
}

/// The contents with links as they are from the root of the repository in place of `docs/`.
fn seen_from_root(contents: &str) -> String {
    contents.replace("](", "](docs/").replace("](docs/../", "](")
}

/// A page with its links to a README as links to `index.md`: mdBook makes the one into `index.html`, but not its links.
fn with_links_to_indexes(page: &str) -> String {
    page.replace("README.md)", "index.md)").replace("README.md#", "index.md#")
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let folder = to.parent().map_or(Ok(()), std::fs::create_dir_all);
    let copied = folder.and_then(|()| std::fs::copy(from, to));
    copied.map(drop).map_err(|error| format!("cannot copy {} to {}: {error}", from.display(), to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_site_has_every_page_that_its_pages_link_to() {
        let pages = pages().expect("the contents link to pages");
        let is_page = |file: &PathBuf| file.extension().is_some_and(|extension| extension == "md");
        let missing: Vec<_> = staged_files()
            .expect("pages link to files")
            .into_iter()
            .filter(is_page)
            .filter(|file| !pages.contains(file))
            .collect();
        assert_eq!(missing, Vec::<PathBuf>::new(), "docs/SUMMARY.md has them not");
    }

    #[test]
    fn every_page_of_the_documentation_is_in_its_contents() {
        let pages = pages().expect("the contents link to pages");
        let docs = workspace::root().join("docs").canonicalize().expect("the folder is there");
        let missing: Vec<_> = workspace::files(&docs, "md")
            .into_iter()
            .filter(|file| !file.ends_with("SUMMARY.md") && !pages.contains(file))
            .collect();
        assert_eq!(missing, Vec::<PathBuf>::new(), "docs/SUMMARY.md has them not");
    }

    #[test]
    fn links_lead_to_what_mdbook_makes() {
        let page = with_links_to_indexes("[a](b/README.md), [c](README.md#d), `README.md`");
        assert_eq!(page, "[a](b/index.md), [c](index.md#d), `README.md`");
    }

    #[test]
    fn contents_are_rewritten_for_the_root() {
        assert_eq!(seen_from_root("[a](../A.md) [b](b/c.md)"), "[a](A.md) [b](docs/b/c.md)");
    }
}
