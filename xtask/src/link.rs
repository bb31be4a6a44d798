//! Links in the documentation: every one leads to a file that is there, and to a heading that is in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::workspace;

/// A page of Markdown.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    /// The names by which its headings are linked to.
    anchors: Vec<String>,
    /// Where its links and images lead.
    pub(crate) targets: Vec<String>,
}

impl Page {
    /// Reads a page from its text.
    pub(crate) fn parse(text: &str) -> Self {
        let mut page = Self::default();
        let mut heading: Option<String> = None;
        for event in Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES) {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let anchor = anchor(&heading.take().unwrap_or_default());
                    let same = |known: &&String| {
                        known.strip_prefix(&anchor).is_some_and(|rest| {
                            rest.is_empty()
                                || rest.strip_prefix('-').is_some_and(|number| number.parse::<u32>().is_ok())
                        })
                    };
                    page.anchors.push(match page.anchors.iter().filter(same).count() {
                        0 => anchor,
                        before => format!("{anchor}-{before}"),
                    });
                }
                Event::Text(text) | Event::Code(text) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&text);
                    }
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.targets.push(dest_url.into_string());
                }
                _ => {}
            }
        }
        page
    }
}

/// The name that a heading gets on the page: its letters and digits in lower case, spaces as hyphens.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|&c| c.is_alphanumeric() || c == ' ' || c == '-' || c == '_');
    kept.map(|c| if c == ' ' { '-' } else { c }).flat_map(char::to_lowercase).collect()
}

/// The file in the repository that a link in `page` leads to, and the heading in it; nothing for links to elsewhere.
pub(crate) fn local(page: &Path, target: &str) -> Option<(PathBuf, Option<String>)> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, heading) = match target.split_once('#') {
        Some((path, heading)) => (path, Some(heading.to_owned())),
        None => (target, None),
    };
    let file = if path.is_empty() { page.to_owned() } else { page.parent()?.join(path) };
    Some((file, heading))
}

/// Reads every page of the repository and returns every broken link as a sentence.
pub(crate) fn check() -> Result<Vec<String>, String> {
    let mut pages: BTreeMap<PathBuf, Page> = BTreeMap::new();
    for file in workspace::files(workspace::root(), "md") {
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        pages.insert(file, Page::parse(&text));
    }
    let mut broken = Vec::new();
    for (file, page) in &pages {
        let shown = file.strip_prefix(workspace::root()).unwrap_or(file).display();
        let leads_nowhere = page.targets.iter().filter(|target| is_broken(file, target, &pages));
        broken.extend(leads_nowhere.map(|target| format!("{shown}: the link to {target} leads nowhere")));
    }
    Ok(broken)
}

fn is_broken(page: &Path, target: &str, pages: &BTreeMap<PathBuf, Page>) -> bool {
    let Some((file, heading)) = local(page, target) else { return false };
    let Ok(file) = file.canonicalize() else { return true };
    let Some(heading) = heading else { return false };
    let known = |(path, _): &(&PathBuf, &Page)| path.canonicalize().is_ok_and(|path| path == file);
    pages.iter().find(known).is_none_or(|(_, page)| !page.anchors.contains(&heading))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_have_the_names_that_links_use() {
        let page = Page::parse("# The `.trg` file, *again*\n## Layout\n```\n# no heading\n```\n## Layout\n");
        assert_eq!(page.anchors, ["the-trg-file-again", "layout", "layout-1"]);
    }

    #[test]
    fn links_and_images_are_found_but_not_those_in_code() {
        let page = Page::parse("[a](b.md#c) ![d](e.png) `[f](g.md)` [h]\n\n[h]: i.md\n");
        assert_eq!(page.targets, ["b.md#c", "e.png", "i.md"]);
    }

    #[test]
    fn a_link_without_a_file_or_heading_leads_nowhere() {
        let root = workspace::root();
        let readme = root.join("README.md");
        let page = Page { anchors: vec!["there".to_owned()], targets: Vec::new() };
        let pages = BTreeMap::from([(readme.clone(), page)]);
        let broken = |target: &str| is_broken(&readme, target, &pages);
        assert!(!broken("README.md#there") && !broken("#there") && !broken("Cargo.toml"));
        assert!(!broken("https://example.org/nowhere"));
        assert!(broken("README.md#elsewhere") && broken("#elsewhere") && broken("no-such-file.md"));
    }

    #[test]
    fn the_source_files_that_the_architecture_names_exist() {
        let root = workspace::root();
        let text = std::fs::read_to_string(root.join("ARCHITECTURE.md")).expect("the page");
        let files = ["crates", "xtask", "query/src"]
            .map(|folder| workspace::files(&root.join(folder), "rs"))
            .concat();
        let exists = |name: &str| files.iter().any(|file| file.ends_with(name));
        let words = text.split('`').skip(1).step_by(2);
        let named: Vec<&str> = words.filter(|word| word.ends_with(".rs") && !word.contains(' ')).collect();
        assert!(named.len() > 40, "{named:?}");
        assert_eq!(named.into_iter().filter(|name| !exists(name)).collect::<Vec<_>>(), [""; 0]);
    }

    #[test]
    fn every_link_of_the_repository_leads_somewhere() {
        assert_eq!(check(), Ok(Vec::new()));
    }
}
