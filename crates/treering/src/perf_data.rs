//! `perf.data` files, with the binaries of this machine.

use std::io::BufReader;
use std::path::Path;
use std::process::{Command, Stdio};

use treering_formats::{Error, Format, ReadReport, perf_data, perf_script};
use treering_profile::Profile;

use crate::binaries::Here;

/// Reads a `perf.data` file. One with copies of stacks is given to `perf script`, if that is here and can
/// read it, as it finds the callers in them.
pub fn read(path: &Path, bytes: &[u8]) -> Result<(Profile, ReadReport), Error> {
    if path != Path::new("-")
        && perf_data::needs_unwinding(bytes)
        && let Some((profile, mut report)) = unwound(path)
    {
        report.notes.push("perf script found the callers, as the file has copies of stacks".to_owned());
        return Ok((profile, report));
    }
    perf_data::read_with(bytes, &mut Here::default()).map_err(|error| error.of(Format::PerfData))
}

/// The output of `perf script` for a file; nothing if it fails.
fn unwound(path: &Path) -> Option<(Profile, ReadReport)> {
    let mut perf = Command::new("perf")
        .args(["script", "-F", "comm,pid,tid,time,period,event,ip,sym,dso", "-i"])
        .arg(path)
        // Names come from this machine and never from elsewhere.
        .env("DEBUGINFOD_URLS", "")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let read = perf.stdout.take().map(|output| perf_script::read_from(BufReader::new(output)));
    let succeeded = perf.wait().ok()?.success();
    read?.ok().filter(|_| succeeded)
}
