//! `treering view --live`: a page that follows a running program.

mod following;
mod gate;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tiny_http::Server;
use treering_temporary::Folder;

use crate::failure::{Context as _, Failure, Outcome};
use crate::page::{has_desktop, start_browser};
use crate::wake::{Waiting, Wake, beside_waits};
use crate::watched::Watched;

use following::Following;
use gate::Gate;

/// Gives out a page that follows a program, until this one is ended.
pub(super) fn follow(target: &str, title: Option<String>, open: bool) -> Outcome {
    let mut following = Following::start(target, Watched::find(target)?, title)?;
    // Before the threads of the server, which would take the signals.
    let waiting = Waiting::new(false)?;
    let cannot = "cannot give out a page on this machine";
    let server =
        Server::http("127.0.0.1:0").map_err(|error| Failure::new(format_args!("{cannot}: {error}")))?;
    let port = server.server_addr().to_ip().map_or(0, |address| address.port());
    let gate = Gate::new(port)?;
    let (server, address) = (Arc::new(server), gate.address());
    let serving = {
        let server = Arc::clone(&server);
        std::thread::spawn(move || {
            server.incoming_requests().for_each(|request| gate.answer(request, &mut following));
        })
    };
    tell!("following {target}: {address}");
    // Until it ends, for a browser may be slow.
    let _door = if open { opened(&address, port) } else { None };
    tell!("anyone on this machine who has the address can see the page; Ctrl-C ends");
    while waiting.until(Instant::now() + Duration::from_secs(3600))? != Wake::Ended {}
    server.unblock();
    serving.join().map_err(|_| "it ended early").context(cannot)?;
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
    std::fs::write(&path, format!("{head}{leads}"))?;
    Ok((folder, path))
}
