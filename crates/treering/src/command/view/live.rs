//! `treering view --live`: a page that follows a running program.

mod following;
mod gate;
mod server;

use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use treering_temporary::Folder;

use crate::failure::{Context as _, Failure, Outcome};
use crate::page::{has_desktop, start_browser};
use crate::wake::{Waiting, Wake, beside_waits};
use crate::watched::Watched;

use following::Following;
use gate::{Gate, HEADERS};

/// Gives out a page that follows a program, until this one is ended.
pub(super) fn follow(target: &str, title: Option<String>, open: bool) -> Outcome {
    let following = Following::start(target, Watched::find(target)?, title)?;
    // Before the threads of the server, which would take the signals.
    let waiting = Waiting::new(false)?;
    let cannot = "cannot give out a page on this machine";
    let listener =
        TcpListener::bind("127.0.0.1:0").map_err(|error| Failure::new(format_args!("{cannot}: {error}")))?;
    let port = listener.local_addr().context(cannot)?.port();
    let gate = Gate::new(port)?;
    let (address, following) = (gate.address(), Mutex::new(following));
    server::serve(listener, HEADERS, move |head| gate.answer(head, &following)).context(cannot)?;
    tell!("following {target}: {address}");
    // Until it ends, for a browser may be slow.
    let _door = if open { opened(&address, port) } else { None };
    tell!("anyone on this machine who has the address can see the page; Ctrl-C ends");
    while waiting.until(Instant::now() + Duration::from_secs(3600))? != Wake::Ended {}
    // Its threads end with the process, whatever they wait for.
    Ok(std::process::ExitCode::SUCCESS)
}

/// Has the browser of the desktop open an address, by way of a file that leads there: arguments of programs
/// can be seen by all users, and this file cannot.
fn opened(address: &str, port: u16) -> Option<Folder> {
    if !has_desktop() {
        tell!(
            "hint: open the address in a browser here; from elsewhere: ssh -L {port}:127.0.0.1:{port} HOST"
        );
        return None;
    }
    let started = door(address).and_then(|(folder, door)| {
        beside_waits(|| start_browser(&door))?;
        Ok(folder)
    });
    match started {
        Ok(folder) => Some(folder),
        Err(error) => {
            tell!("hint: cannot start a browser (xdg-open: {error}); open the address yourself");
            None
        }
    }
}

/// A folder that only this user can read, with the file that leads to the address, and that file.
fn door(address: &str) -> std::io::Result<(Folder, PathBuf)> {
    let folder = Folder::create("view")?;
    let path = folder.path().join("page.html");
    let head = "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">";
    let leads = format!(
        "<meta http-equiv=\"refresh\" content=\"0;url={address}\"><a href=\"{address}\">the page</a>\n"
    );
    let mut page = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    page.write_all(format!("{head}{leads}").as_bytes())?;
    Ok((folder, path))
}
