//! Admission to the page: a request must know its address, name this machine, and not come from another page.

use std::sync::{Mutex, PoisonError};

use super::following::Following;
use super::server::{Answer, Head, refusal};
use crate::failure::{Context as _, Failure};

/// Lets requests in.
pub(super) struct Gate {
    port: u16,
    token: String,
}

/// The headers of each answer: browsers are to keep nothing, to let no other page in, to show it in no other page.
pub(super) const HEADERS: &[(&str, &str)] = &[
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

    /// Answers a request. Only those that are let in wait for each other.
    pub(super) fn answer(&self, head: &Head, following: &Mutex<Following>) -> Answer {
        let wanted = match self.wanted(head) {
            Ok(wanted) => wanted,
            Err(refusal) => return refusal,
        };
        let mut following = following.lock().unwrap_or_else(PoisonError::into_inner);
        let (kind, text) = match wanted {
            Wanted::Page => ("text/html; charset=utf-8", following.page()),
            Wanted::News(after) => ("application/json", following.news(after)),
        };
        Answer { status: 200, kind, text }
    }

    fn wanted(&self, head: &Head) -> Result<Wanted, Answer> {
        if head.method != "GET" {
            return Err(refusal(405, "this page can only be read"));
        }
        // Later bytes are never read.
        let has_body = head.header("Content-Length").is_some_and(|length| length != "0")
            || head.header("Transfer-Encoding").is_some();
        if has_body {
            return Err(refusal(413, "a request has no body here"));
        }
        // A name that leads here from elsewhere would make another site's page one of the same origin.
        let names = ["127.0.0.1", "localhost"].map(|name| format!("{name}:{}", self.port));
        if !head.header("Host").is_some_and(|host| names.iter().any(|name| host.eq_ignore_ascii_case(name))) {
            return Err(refusal(403, "this page is on 127.0.0.1 only"));
        }
        let path = head.path.strip_prefix('/').unwrap_or_default();
        let (token, rest) = path.split_once('/').unwrap_or((path, "?"));
        if !is_same(token.as_bytes(), self.token.as_bytes()) {
            return Err(refusal(404, "there is no such page"));
        }
        match rest.strip_prefix("data?after=").map(str::parse) {
            // Browsers say where a question comes from; other programs say nothing.
            Some(Ok(_)) if !matches!(head.header("Sec-Fetch-Site"), None | Some("same-origin" | "none")) => {
                Err(refusal(403, "this is for the page itself"))
            }
            Some(Ok(after)) => Ok(Wanted::News(after)),
            None if rest.is_empty() => Ok(Wanted::Page),
            _ => Err(refusal(404, "there is no such page")),
        }
    }
}

/// The request.
enum Wanted {
    Page,
    /// The changes after a version.
    News(u64),
}

/// Compares in a time that does not tell how much of it is right.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
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
