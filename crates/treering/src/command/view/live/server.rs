//! Connections of anyone who finds the port: each has one request, little room and little time.
//!
//! A request is a head of a few kilobytes; what follows it is never kept. When many connections wait for their heads, the one
//! that has waited longest gives way, so that nobody can keep others out by holding connections open.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long the head of a request may take.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// How long an answer may take: pages have megabytes, and may go through ssh.
const ANSWER_TIME: Duration = Duration::from_secs(60);
/// How much may follow a head before the connection is reset, which would take the answer with it, and for how long.
const IGNORED_BYTES: usize = 64 << 10;
const IGNORED_TIME: Duration = Duration::from_millis(500);
/// How large a head may be, and how many lines it may have.
const HEAD_BYTES: usize = 16 << 10;
const HEAD_LINES: usize = 64;
/// How many connections may wait for their heads.
const WAITING: usize = 32;
/// How many there may be at all, and how long a new one waits for one of them to end.
const MOST: usize = 128;
const ROOM_TIME: Duration = Duration::from_secs(1);

/// A request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) method: String,
    pub(super) path: String,
    /// Names and values; values that are no text are left out.
    headers: Vec<(String, String)>,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) kind: &'static str,
    pub(super) text: String,
}

impl Head {
    /// The value of a line of the head.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Reads a head; nothing if its end is not there yet.
    fn parse(bytes: &[u8]) -> Result<Option<Self>, Answer> {
        let mut lines = [httparse::EMPTY_HEADER; HEAD_LINES];
        let mut request = httparse::Request::new(&mut lines);
        match request.parse(bytes) {
            Ok(httparse::Status::Partial) => return Ok(None),
            Ok(httparse::Status::Complete(_)) => {}
            Err(httparse::Error::TooManyHeaders) => return Err(refusal(431, "the request is too large")),
            Err(_) => return Err(refusal(400, "this is no request of HTTP")),
        }
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        let value = |line: &httparse::Header| {
            let value = std::str::from_utf8(line.value).ok()?;
            Some((line.name.to_owned(), value.trim().to_owned()))
        };
        let headers = request.headers.iter().filter_map(value).collect();
        Ok(Some(Self { method: text(request.method), path: text(request.path), headers }))
    }
}

/// An answer that explains why there is no other.
pub(super) fn refusal(status: u16, why: &str) -> Answer {
    Answer { status, kind: "text/plain; charset=utf-8", text: format!("{why}\n") }
}

/// Answers whoever connects, in threads of their own, until this process ends.
pub(super) fn serve(
    listener: TcpListener,
    headers: &'static [(&'static str, &'static str)],
    answer: impl Fn(&Head) -> Answer + Send + Sync + 'static,
) -> std::io::Result<()> {
    let (answer, waiting) = (Arc::new(answer), Arc::new(Waiting::default()));
    let accept = move || {
        loop {
            // No descriptor may be left at the moment: the door stays open.
            let Ok((stream, _)) = listener.accept() else {
                std::thread::sleep(Duration::from_millis(50));
                continue;
            };
            let (answer, waiting) = (Arc::clone(&answer), Arc::clone(&waiting));
            let Some(place) = waiting.admit(&stream) else { continue };
            let serve = move || {
                let wanted = read_head(&stream, Instant::now() + HEAD_TIME);
                place.has_head();
                if let Some(head) = wanted.transpose() {
                    let answer = head.map_or_else(|refusal| refusal, |head| answer(&head));
                    let _ = write_answer(&stream, headers, &answer);
                }
            };
            // Where there is no thread, the connection is closed.
            let _ = std::thread::Builder::new().name("page".to_owned()).spawn(serve);
        }
    };
    std::thread::Builder::new().name("door".to_owned()).spawn(accept).map(drop)
}

/// The connections whose heads are not there yet, the oldest first, and the number of all.
#[derive(Default)]
struct Waiting {
    streams: Mutex<VecDeque<(usize, TcpStream)>>,
    next: AtomicUsize,
    all: AtomicUsize,
}

/// A connection's place among those that wait.
struct Place {
    number: usize,
    waiting: Arc<Waiting>,
}

impl Waiting {
    /// Gives a connection a place; the one that has waited longest may lose its own.
    fn admit(self: &Arc<Self>, stream: &TcpStream) -> Option<Place> {
        let copy = stream.try_clone().ok()?;
        let oldest = {
            let mut streams = self.streams();
            if streams.len() >= WAITING { streams.pop_front() } else { None }
        };
        if let Some((_, oldest)) = oldest {
            let _ = oldest.shutdown(Shutdown::Both);
        }
        if !self.await_room() {
            return None;
        }
        self.all.fetch_add(1, Ordering::Relaxed);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.streams().push_back((number, copy));
        Some(Place { number, waiting: Arc::clone(self) })
    }

    /// Waits until there are fewer connections than there may be: the thread of one that gave way ends soon, but not at once
    /// on a busy machine.
    fn await_room(&self) -> bool {
        let until = Instant::now() + ROOM_TIME;
        while self.all.load(Ordering::Relaxed) >= MOST {
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }

    fn streams(&self) -> MutexGuard<'_, VecDeque<(usize, TcpStream)>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// From now on it gives way to no other.
    fn has_head(&self) {
        self.waiting.streams().retain(|(number, _)| *number != self.number);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.has_head();
        self.waiting.all.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Reads the head of a request; nothing if the connection is closed before its end.
fn read_head(mut stream: &TcpStream, until: Instant) -> Result<Option<Head>, Answer> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    while bytes.len() < HEAD_BYTES {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return Err(refusal(408, "the request took too long"));
        }
        match stream.read(&mut chunk) {
            Ok(0) => return Ok(None),
            Ok(length) => bytes.extend_from_slice(&chunk[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
            Err(_) => return Ok(None),
        }
        if let Some(head) = Head::parse(&bytes)? {
            return Ok(Some(head));
        }
    }
    Err(refusal(431, "the request is too large"))
}

fn write_answer(mut stream: &TcpStream, headers: &[(&str, &str)], answer: &Answer) -> std::io::Result<()> {
    let (status, kind, length) = (answer.status, answer.kind, answer.text.len());
    let mut head = format!(
        "HTTP/1.1 {status} {}\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n",
        reason(status)
    );
    headers.iter().for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
    head += "\r\n";
    let until = Instant::now() + ANSWER_TIME;
    write_until(stream, head.as_bytes(), until)?;
    write_until(stream, answer.text.as_bytes(), until)?;
    stream.shutdown(Shutdown::Write)?;
    // Closing it with something unread would reset it, and the answer might not arrive.
    let until = Instant::now() + IGNORED_TIME;
    let (mut ignored, mut chunk) = (0, [0; 4096]);
    while ignored < IGNORED_BYTES {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut chunk)? {
            0 => break,
            length => ignored += length,
        }
    }
    Ok(())
}

/// Writes all of it, unless the client reads too slowly.
fn write_until(mut stream: &TcpStream, mut bytes: &[u8], until: Instant) -> std::io::Result<()> {
    while !bytes.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_write_timeout(Some(left))?;
        match stream.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(length) => bytes = &bytes[length..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        _ => "Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_when_all_of_it_is_there() {
        let whole = b"GET /a?b=c HTTP/1.1\r\nHost: here\r\nX: \xff\r\n\r\nGET /next";
        let end = whole.len() - "GET /next".len();
        for cut in 0..end {
            assert_eq!(Head::parse(&whole[..cut]).expect("nothing is wrong so far"), None, "{cut} bytes");
        }
        let head = Head::parse(whole).expect("it is a request").expect("it is whole");
        assert_eq!((head.method.as_str(), head.path.as_str()), ("GET", "/a?b=c"));
        assert_eq!((head.header("host"), head.header("x")), (Some("here"), None));
    }

    #[test]
    fn bytes_that_are_no_request_are_refused() {
        assert_eq!(Head::parse(b"\x16\x03\x01\x02").expect_err("refused").status, 400);
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(HEAD_LINES + 1));
        assert_eq!(Head::parse(many.as_bytes()).expect_err("refused").status, 431);
    }
}
