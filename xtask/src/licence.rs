//! Checks of dependencies: their licences, their sources, and the Rust they need.
//!
//! `cargo deny` checks more, but takes minutes to install. These are the parts that must never be missed, with the
//! same list of licences: that of `deny.toml`.

use std::path::Path;

use serde_json::Value;
use spdx::{Expression, ParseMode};

use crate::workspace;

/// The registry that every dependency comes from.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// A package that is built for Treering.
struct Package {
    /// Its name and version.
    name: String,
    /// The SPDX expression of its licence.
    licence: Option<String>,
    /// Where it comes from; nothing for the crates of the workspace.
    source: Option<String>,
    /// The oldest Rust that builds it, as its two numbers.
    rust: Option<(u64, u64)>,
}

/// Reads what cargo knows of the dependencies and returns every broken rule as a sentence.
pub(crate) fn check() -> Result<Vec<String>, String> {
    check_of(&workspace::root().join("Cargo.toml"))
}

/// The same for the workspace of a manifest.
pub(crate) fn check_of(manifest: &Path) -> Result<Vec<String>, String> {
    let manifest = manifest.to_str().ok_or("the folder's name is not UTF-8")?;
    let platform = "x86_64-unknown-linux-gnu";
    let metadata = workspace::metadata(&["--filter-platform", platform, "--manifest-path", manifest])?;
    let packages: Vec<Package> =
        metadata["packages"].as_array().into_iter().flatten().map(Package::read).collect();
    let ours = packages.iter().filter(|package| package.source.is_none());
    let promised =
        ours.filter_map(|package| package.rust).max().ok_or("no crate says which Rust it needs")?;
    let allowed = allowed_licences()?;
    let mut broken: Vec<String> =
        packages.iter().flat_map(|package| package.broken(&allowed, promised)).collect();
    broken.extend(metadata["packages"].as_array().into_iter().flatten().flat_map(missing_texts));
    Ok(broken)
}

/// The licence texts that a published crate of the workspace lacks: cargo packs the crate's own folder only.
fn missing_texts(package: &Value) -> Vec<String> {
    let is_published = package["source"].is_null() && package["publish"].is_null();
    let Some(manifest) = package["manifest_path"].as_str().filter(|_| is_published) else {
        return Vec::new();
    };
    let texts = ["LICENSE-APACHE", "LICENSE-MIT"].map(|text| Path::new(manifest).with_file_name(text));
    let missing = texts.iter().filter(|text| !text.exists());
    missing.map(|text| format!("{} is missing, the crate is published", text.display())).collect()
}

/// The licences that `deny.toml` allows.
fn allowed_licences() -> Result<Vec<String>, String> {
    let path = workspace::root().join("deny.toml");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("deny.toml: {error}"))?;
    let table: toml::Table = text.parse().map_err(|error| format!("deny.toml: {error}"))?;
    let allowed = table.get("licenses").and_then(|licences| licences.get("allow")?.as_array());
    let allowed = allowed.ok_or("deny.toml allows no licence")?;
    Ok(allowed.iter().filter_map(|licence| licence.as_str().map(str::to_owned)).collect())
}

impl Package {
    fn read(package: &Value) -> Self {
        let text = |name: &str| package[name].as_str().map(str::to_owned);
        let name = format!("{} {}", text("name").unwrap_or_default(), text("version").unwrap_or_default());
        let rust = text("rust_version").as_deref().and_then(two_numbers);
        Self { name, licence: text("license"), source: text("source"), rust }
    }

    /// Its breaches of the rules.
    fn broken(&self, allowed: &[String], promised: (u64, u64)) -> Vec<String> {
        let mut broken = Vec::new();
        let name = &self.name;
        match self.licence.as_deref().map(|licence| Expression::parse_mode(licence, ParseMode::LAX)) {
            None => broken.push(format!("{name} names no licence")),
            Some(Err(error)) => broken.push(format!("{name}: its licence cannot be read: {}", error.reason)),
            Some(Ok(licence)) if !licence.evaluate(|one| allowed.contains(&one.license.to_string())) => {
                broken.push(format!("{name}: its licence, {licence}, is not allowed by deny.toml"));
            }
            Some(Ok(_)) => {}
        }
        if let Some(source) = self.source.as_deref().filter(|&source| source != REGISTRY) {
            broken.push(format!("{name} comes from {source}, not from crates.io"));
        }
        if let Some((major, minor)) = self.rust.filter(|&needed| needed > promised) {
            let (promised_major, promised_minor) = promised;
            broken.push(format!(
                "{name} needs Rust {major}.{minor}, but rust-version promises {promised_major}.{promised_minor}"
            ));
        }
        broken
    }
}

/// The first two numbers of a version: `1.88` and `1.88.0` are the same to us.
fn two_numbers(version: &str) -> Option<(u64, u64)> {
    let mut numbers = version.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn broken(licence: &str, source: Option<&str>, rust: &str) -> Vec<String> {
        let package = json!({"name": "a", "version": "1.0.0", "license": licence, "source": source,
                             "rust_version": rust});
        Package::read(&package).broken(&["MIT".to_owned(), "Zlib".to_owned()], (1, 88))
    }

    #[test]
    fn one_allowed_licence_of_several_is_enough() {
        for allowed in ["MIT", "MIT OR GPL-3.0-only", "GPL-3.0-only/MIT", "(MIT OR GPL-3.0-only) AND Zlib"] {
            assert_eq!(broken(allowed, Some(REGISTRY), "1.88"), Vec::<String>::new(), "{allowed}");
        }
        for refused in ["GPL-3.0-only", "MIT AND GPL-3.0-only", "nonsense", ""] {
            assert_eq!(broken(refused, Some(REGISTRY), "1.88").len(), 1, "{refused}");
        }
    }

    #[test]
    fn dependencies_come_from_the_registry() {
        assert_eq!(broken("MIT", None, "1.88").len(), 0);
        assert_eq!(
            broken("MIT", Some("git+https://example.org/a"), "1.88"),
            ["a 1.0.0 comes from git+https://example.org/a, not from crates.io"]
        );
    }

    #[test]
    fn published_crates_have_their_licence_texts() {
        let missing = |publish: Value, source: Value| {
            let manifest = workspace::root().join("xtask/Cargo.toml");
            missing_texts(&json!({"manifest_path": manifest, "publish": publish, "source": source})).len()
        };
        assert_eq!(missing(Value::Null, Value::Null), 2);
        assert_eq!(missing(json!([]), Value::Null), 0, "it is not published");
        assert_eq!(missing(Value::Null, json!(REGISTRY)), 0, "it is not ours");
    }

    #[test]
    fn dependencies_build_with_the_rust_that_is_promised() {
        assert_eq!(broken("MIT", Some(REGISTRY), "1.88.1").len(), 0);
        assert_eq!(
            broken("MIT", Some(REGISTRY), "1.100"),
            ["a 1.0.0 needs Rust 1.100, but rust-version promises 1.88"]
        );
    }
}
