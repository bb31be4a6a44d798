//! What belongs to a format and is not in its folder: pages and fuzz targets.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::Path;

use treering_formats::Format;

fn text(path: &str) -> String {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_format_has_a_page_that_the_lists_name() {
    let (list, summary) = (text("docs/formats/README.md"), text("docs/SUMMARY.md"));
    for format in Format::ALL {
        let page = format!("{format}.md");
        assert!(text(&format!("docs/formats/{page}")).starts_with("# "), "{page}");
        assert!(summary.contains(&format!("(formats/{page})")), "docs/SUMMARY.md lacks {page}");
        let row = list.lines().find(|row| row.starts_with(&format!("| [{page}]({page}) |")));
        let row = row.unwrap_or_else(|| panic!("docs/formats/README.md lacks {page}"));
        // The live file is written by the runtime.
        let written = format.is_written() || format == Format::Live;
        let said = if written { "| reads and writes |" } else { "| reads |" };
        assert!(row.ends_with(said), "{row}");
    }
}

#[test]
fn every_format_has_a_fuzz_target() {
    let manifest = text("fuzz/Cargo.toml");
    for format in Format::ALL {
        let target = format.as_str().replace('-', "_");
        assert!(manifest.contains(&format!("name = \"{target}\"")), "fuzz/Cargo.toml lacks {target}");
        assert!(text(&format!("fuzz/fuzz_targets/{target}.rs")).contains("fuzz_target!"), "{target}");
    }
}

#[test]
fn no_two_formats_have_the_same_name() {
    let names: BTreeSet<_> = Format::ALL.map(Format::as_str).into();
    let titles: BTreeSet<_> = Format::ALL.map(Format::title).into();
    assert_eq!((names.len(), titles.len()), (Format::ALL.len(), Format::ALL.len()));
}

#[test]
fn what_is_offered_for_export_can_be_written() {
    for format in Format::ALL {
        assert!(format.export_help().is_none() || format.is_written(), "{format}");
        assert!(format.import_help().is_some() || format.is_own(), "{format}");
    }
}
