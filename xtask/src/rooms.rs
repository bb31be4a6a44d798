//! The rules for modules of a large crate: its rooms, from the bottom to the top, and their uses of each
//! other.

use std::collections::BTreeSet;

use crate::unsafe_code::code_of;
use crate::workspace;

/// A crate whose top-level modules use only those that are named before them.
struct House {
    name: &'static str,
    /// Its rooms, each a top-level module with all that is in it. Each may use those before it.
    rooms: &'static [&'static str],
    /// Modules that use no room, and that any may use.
    apart: &'static [&'static str],
}

const HOUSES: &[House] = &[House {
    name: "treering-translator",
    rooms: &[
        "sys",
        "surroundings",
        "program",
        "areas",
        "context",
        "cache",
        "model",
        "counting",
        "history",
        "address_space",
        "linking",
        "emit",
        "journal",
        "tracer",
        "run",
        "profile",
    ],
    apart: &["address_map", "chunked_vec", "error"],
}];

/// Reads the sources and returns every broken rule as a sentence.
pub(crate) fn check() -> Result<Vec<String>, String> {
    let mut broken = Vec::new();
    for house in HOUSES {
        let sources = workspace::root().join("crates").join(house.name).join("src");
        for file in workspace::files(&sources, "rs") {
            let text =
                std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
            let place = file.strip_prefix(&sources).unwrap_or(&file).to_string_lossy().into_owned();
            let refused = refusals(house, &place, &text);
            broken.extend(refused.into_iter().map(|why| format!("{}/src/{place}: {why}", house.name)));
        }
    }
    Ok(broken)
}

/// The forbidden uses in a file.
fn refusals(house: &House, place: &str, text: &str) -> Vec<String> {
    let own = place.split(['/', '.']).next().unwrap_or_default();
    if own == "lib" {
        return Vec::new();
    }
    let rank = |room: &str| house.rooms.iter().position(|other| *other == room);
    let Some(limit) = rank(own).or_else(|| house.apart.contains(&own).then_some(0)) else {
        return vec![format!("the room {own} has no place in xtask/src/rooms.rs")];
    };
    let refusal = |used: String| match rank(&used) {
        _ if used.is_empty() => Some("it must name one room in each use of crate::".to_owned()),
        Some(rank) if rank <= limit && !house.apart.contains(&own) => None,
        None if house.apart.contains(&used.as_str()) => None,
        _ => Some(format!("{own} must not use {used}")),
    };
    used_modules(text).into_iter().filter_map(refusal).collect()
}

/// The top-level modules that a source names outside of its tests; an empty name stands for several at once.
fn used_modules(text: &str) -> BTreeSet<String> {
    let tests = text.find("\n#[cfg(test)]").unwrap_or(text.len());
    let code = code_of(&text[..tests]);
    let names = code.split("crate::").skip(1);
    names.map(|rest| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUSE: House = House { name: "house", rooms: &["cellar", "kitchen", "attic"], apart: &["stairs"] };

    #[test]
    fn rooms_use_what_is_below_them() {
        let uses = |place: &str, text: &str| refusals(&HOUSE, place, text);
        assert!(uses("kitchen/stove.rs", "use crate::cellar::Coal;\nuse crate::stairs;").is_empty());
        assert!(uses("kitchen.rs", "use crate::kitchen::Stove;").is_empty());
        assert_eq!(uses("kitchen/stove.rs", "use crate::attic::Box;"), ["kitchen must not use attic"]);
        assert_eq!(uses("stairs.rs", "fn a() { crate::cellar::b() }"), ["stairs must not use cellar"]);
        assert_eq!(
            uses("cellar.rs", "use crate::{attic, kitchen};"),
            ["it must name one room in each use of crate::"]
        );
    }

    #[test]
    fn comments_and_tests_may_name_everything() {
        let text = "//! See [`crate::attic`].\nuse crate::cellar::Coal;\n#[cfg(test)]\nmod tests { use crate::attic::Box; }";
        assert!(refusals(&HOUSE, "kitchen.rs", text).is_empty());
    }

    #[test]
    fn every_room_has_a_place() {
        let refused = refusals(&HOUSE, "garden/shed.rs", "");
        assert_eq!(refused, ["the room garden has no place in xtask/src/rooms.rs"]);
    }

    #[test]
    fn this_workspace_keeps_the_rules() {
        assert_eq!(check(), Ok(Vec::new()));
    }
}
