//! Inputs that are made once, and kept.

use std::ffi::OsString;
use std::path::PathBuf;

use treering_archive::{Archive, Id};

use super::super::measuring::Stop;
use super::super::parameters::{Template, Values};
use super::super::place::failure;
use super::INPUT;
use super::built::{Built, shell};
use crate::failure::Failure;
use crate::word::word;

/// The input of a program for some parameters: that which the same command made earlier, or else a new one, which is kept.
pub fn make(
    setup: &Template,
    values: &Values,
    built: &Built,
    archive: &mut Archive,
    stop: &Stop,
) -> Result<(Id, PathBuf), Failure> {
    let fill = |input: OsString| {
        let value = |name: &str| {
            if name == INPUT { input.clone() } else { values.get(name).cloned().unwrap_or_default().into() }
        };
        let words = setup.fill(value);
        words.first().map_or(String::new(), |command| command.to_string_lossy().into_owned())
    };
    let named = fill(format!("{{{INPUT}}}").into());
    let absolute = |(id, path): (Id, PathBuf)| (id, path.canonicalize().unwrap_or(path));
    if let Some(kept) = archive.input_of(&named).map_err(failure)? {
        return Ok(absolute(kept));
    }
    let file = archive.new_input().map_err(failure)?;
    let path = file.path().canonicalize().unwrap_or_else(|_| file.path().to_owned());
    let made = shell(&fill(word(&path).into()), built.folder(), stop);
    made.map_err(|why| Failure::new(format_args!("setup = {named:?} {why}")))?;
    Ok(absolute(archive.keep_input(&named, &file).map_err(failure)?))
}
