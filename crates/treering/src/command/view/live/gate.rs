//! Admission to the page: a request must know its address, name this machine, and not come from another page.

use std::io::Cursor;

use tiny_http::{Header, Method, Request, Response};

use super::following::Following;
use crate::failure::{Context as _, Failure};

/// Lets requests in.
pub(super) struct Gate {
    port: u16,
    token: String,
}

type Answer = Response<Cursor<Vec<u8>>>;

/// What browsers are told with each answer: to keep nothing, to let no other page in, to show it in no other page.
const HEADERS: [(&str, &str); 7] = [
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Content-Security-Policy", "frame-ancestors 'none'"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
];

impl Gate {
    /// A gate with an unpredictable address.
    pub(super) fn new(port: u16) -> Result<Self, Failure> {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes).context("cannot draw a random number")?;
        let token = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { port, token })
    }

    /// Where the page is.
    pub(super) fn address(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    /// Answers a request.
    pub(super) fn answer(&self, request: Request, following: &mut Following) {
        let answer = match self.wanted(&request) {
            Ok(Wanted::Page) => text(200, "text/html; charset=utf-8", following.page()),
            Ok(Wanted::News(after)) => text(200, "application/json", following.news(after)),
            Err(refusal) => refusal,
        };
        let answer = HEADERS.into_iter().fold(answer, |answer, (name, value)| with(answer, name, value));
        // A client that has closed the connection wants no answer.
        let _ = request.respond(answer);
    }

    fn wanted(&self, request: &Request) -> Result<Wanted, Answer> {
        let header = |name: &'static str| {
            let known = request.headers().iter().find(|header| header.field.equiv(name));
            known.map(|header| header.value.as_str())
        };
        if *request.method() != Method::Get {
            return Err(refusal(405, "this page can only be read"));
        }
        // A name that leads here from elsewhere would make another site's page one of the same origin.
        let names = ["127.0.0.1", "localhost"].map(|name| format!("{name}:{}", self.port));
        if !header("Host").is_some_and(|host| names.iter().any(|name| host.eq_ignore_ascii_case(name))) {
            return Err(refusal(403, "this page is on 127.0.0.1 only"));
        }
        let path = request.url().strip_prefix('/').unwrap_or_default();
        let (token, rest) = path.split_once('/').unwrap_or((path, "?"));
        if !is_same(token.as_bytes(), self.token.as_bytes()) {
            return Err(refusal(404, "there is no such page"));
        }
        match rest.strip_prefix("data?after=").map(str::parse) {
            // Browsers say where a question comes from; other programs say nothing.
            Some(Ok(_)) if !matches!(header("Sec-Fetch-Site"), None | Some("same-origin" | "none")) => {
                Err(refusal(403, "this is for the page itself"))
            }
            Some(Ok(after)) => Ok(Wanted::News(after)),
            None if rest.is_empty() => Ok(Wanted::Page),
            _ => Err(refusal(404, "there is no such page")),
        }
    }
}

/// What is asked for.
enum Wanted {
    Page,
    /// What is new after a version.
    News(u64),
}

/// Compares in a time that does not tell how much of it is right.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

fn refusal(status: u16, why: &str) -> Answer {
    text(status, "text/plain; charset=utf-8", format!("{why}\n"))
}

fn text(status: u16, kind: &str, text: String) -> Answer {
    with(Response::from_data(text).with_status_code(status), "Content-Type", kind)
}

fn with(answer: Answer, name: &str, value: &str) -> Answer {
    match Header::from_bytes(name, value) {
        Ok(header) => answer.with_header(header),
        Err(()) => answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_differ_and_are_compared_whole() {
        let [one, other] = [Gate::new(1), Gate::new(1)].map(|gate| gate.expect("there is chance").token);
        assert!(one != other && one.len() == 32);
        assert!(is_same(one.as_bytes(), one.as_bytes()));
        for wrong in ["", &one[..31], &format!("{one}0"), &other] {
            assert!(!is_same(one.as_bytes(), wrong.as_bytes()), "{wrong}");
        }
    }
}
