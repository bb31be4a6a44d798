//! Takes the first line of a sample apart.

use crate::perf_script::line::Frame;

/// The first line of a sample: whose it is, of which event, and what it weighs. What a line does not
/// have, `-F` left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header<'a> {
    /// The name of the thread.
    pub(crate) comm: &'a [u8],
    /// The process; only where both numbers are printed.
    pub(crate) pid: Option<u32>,
    /// The thread, or the process where only that is printed.
    pub(crate) tid: Option<u32>,
    /// The period: how many events the sample stands for.
    pub(crate) period: Option<u64>,
    /// When it was taken, in nanoseconds.
    pub(crate) time_ns: Option<u64>,
    pub(crate) event: &'a [u8],
    /// Where the sample was taken, where that is in the same line since there is no call chain.
    pub(crate) frame: Option<Frame<'a>>,
    /// Whether what follows the event is no frame, as of tracepoints.
    pub(crate) has_text: bool,
    /// Whether the line is a sample's whatever follows it. One with neither time, number nor processor may be any text.
    pub(crate) is_certain: bool,
}

/// A line that starts like a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start<'a> {
    /// A sample.
    Sample(Header<'a>),
    /// Something else that the kernel noted, such as a mapping; with how many samples it says are lost.
    Record { lost: u64 },
}

impl<'a> Start<'a> {
    /// The first line of a sample or another record; nothing for other lines.
    ///
    /// Names of threads hold blanks, colons and numbers, so the line is found by the time in it, which
    /// nothing else looks like; by the number or processor before an event where there is no time; by the place of the
    /// event where there is neither.
    pub(crate) fn parse(line: &'a [u8]) -> Option<Self> {
        let words = Words::of(line);
        let time = words.position(is_time);
        let numbered = || words.first_event().map(|(owner_ends, at)| (owner_ends, at, true));
        let bare = || words.event_without_numbers().map(|at| (at, at, false));
        let (owner_ends, mut at, is_certain) = match time {
            Some(at) => (at, at + 1, true),
            None => match numbered().or_else(bare) {
                Some(event) => event,
                None => return words.lone_sample().map(Self::Sample),
            },
        };
        let time_ns = time.and_then(|at| nanoseconds(words.get(at)?));
        let mut header = Header { time_ns, is_certain, ..Header::default() };
        match is_certain {
            true => words.owner(owner_ends, &mut header)?,
            false => header.comm = words.before(owner_ends),
        }
        if words.starts_with(at, b"PERF_RECORD_") {
            return Some(Self::Record { lost: words.lost(at) });
        }
        if let (Some(period), true) = (words.number(at), words.is_event(at + 1)) {
            header.period = Some(period);
            at += 1;
        }
        if !words.is_event(at) {
            // Without an event, but with a time: `-F comm,tid,time,ip,sym`.
            (words.count() == at || words.frame_at(at).is_some()).then_some(())?;
            header.frame = words.frame_at(at);
            return Some(Self::Sample(header));
        }
        let event = words.get(at)?;
        header.event = event.strip_suffix(b":").unwrap_or(event);
        header.frame = words.frame_at(at + 1);
        header.has_text = header.frame.is_none() && words.count() > at + 1;
        Some(Self::Sample(header))
    }
}

/// The words of a line and where they are.
struct Words<'a> {
    line: &'a [u8],
    /// Start and end of each of the first words.
    places: [(usize, usize); MOST],
    count: usize,
}

/// The meaning of a word before an event.
enum Role {
    /// The thread or the processor.
    Owner,
    /// How many events the sample stands for.
    Period,
    /// The end of the thread's name.
    Name,
}

/// How many words of a line are looked at. The name of a thread has 15 bytes, so no more than 8 words.
const MOST: usize = 24;

impl<'a> Words<'a> {
    fn of(line: &'a [u8]) -> Self {
        let mut words = Self { line, places: [(0, 0); MOST], count: 0 };
        let mut at = 0;
        while words.count < MOST {
            let Some(start) = line[at..].iter().position(|byte| !byte.is_ascii_whitespace()) else { break };
            let start = at + start;
            let length = line[start..].iter().position(u8::is_ascii_whitespace);
            at = length.map_or(line.len(), |length| start + length);
            words.places[words.count] = (start, at);
            words.count += 1;
        }
        words
    }

    fn count(&self) -> usize {
        self.count
    }

    fn get(&self, at: usize) -> Option<&'a [u8]> {
        self.places[..self.count].get(at).map(|&(start, end)| &self.line[start..end])
    }

    fn position(&self, holds: impl Fn(&[u8]) -> bool) -> Option<usize> {
        (0..self.count).find(|&at| self.get(at).is_some_and(&holds))
    }

    fn starts_with(&self, at: usize, start: &[u8]) -> bool {
        self.get(at).is_some_and(|word| word.starts_with(start))
    }

    fn number(&self, at: usize) -> Option<u64> {
        number(self.get(at)?)
    }

    /// Whether a word is the name of an event with the colon behind it.
    fn is_event(&self, at: usize) -> bool {
        self.get(at).is_some_and(|word| word.len() > 1 && word.ends_with(b":"))
    }

    /// In a line without a time, the first event that follows a processor or the number of a thread, or a period: where
    /// the words about the thread end, and where those about the event begin.
    fn first_event(&self) -> Option<(usize, usize)> {
        (1..self.count).filter(|&at| self.is_event(at)).find_map(|at| match self.role(at - 1) {
            Role::Owner => Some((at, at)),
            Role::Period => Some((at - 1, at - 1)),
            Role::Name => None,
        })
    }

    /// The meaning of the word before an event.
    ///
    /// perf writes the number of a thread 5 or 7 digits wide at least and a period 10, with a blank between. Where white
    /// space was lost, a number behind another one is a period. One behind a single blank is the end of a name.
    fn role(&self, at: usize) -> Role {
        const THREAD: usize = 5;
        const PERIOD: usize = 10;
        let (start, end) = self.places[at];
        let word = &self.line[start..end];
        let is_owner = |word: &[u8]| is_cpu(word) || ids(word).is_some();
        let is_plain = number(word).is_some();
        if !is_plain && !is_owner(word) {
            return Role::Name;
        }
        let before =
            at.checked_sub(1).map(|at| (&self.line[self.places[at].0..self.places[at].1], self.places[at].1));
        let (before, blanks) = before.map_or((None, start), |(word, end)| (Some(word), start - end - 1));
        let width = blanks + word.len();
        let is_behind = |holds: &dyn Fn(&[u8]) -> bool| before.is_some_and(holds);
        match is_plain {
            true if is_behind(&|word| is_owner(word) && number(word).is_none()) || width >= PERIOD => {
                Role::Period
            }
            true if width < THREAD && is_behind(&is_owner) => Role::Period,
            true if width < THREAD && before.is_some() && blanks > 0 => Role::Period,
            true if width < THREAD && before.is_some() => Role::Name,
            _ => Role::Owner,
        }
    }

    /// In a line without a time and numbers, the event: the last word, or one that a frame follows, or one whose name has
    /// a colon within, as those of tracepoints, with their text behind.
    fn event_without_numbers(&self) -> Option<usize> {
        if self.line.first() == Some(&b'\t') {
            return None;
        }
        let events = || (0..self.count).filter(|&at| self.is_event(at));
        let is_frame = |frame: Frame<'_>| !frame.symbol.is_empty() || !frame.module.is_empty();
        let is_nameless = |at: usize| at + 1 < self.count && self.is_address(at);
        let has_frame = |at: &usize| self.frame_at(at + 1).is_some_and(is_frame) || is_nameless(at + 1);
        let is_last = |at: &usize| at + 1 == self.count && self.count < MOST;
        let is_tracepoint =
            |at: &usize| self.get(*at).is_some_and(|word| word[1..word.len() - 1].contains(&b':'));
        events().find(has_frame).or_else(|| events().find(is_last)).or_else(|| events().find(is_tracepoint))
    }

    /// In a line without a time and an event, the sample of a frame behind the name or number of its thread, or its period,
    /// as perf prints one without a call chain.
    fn lone_sample(&self) -> Option<Header<'a>> {
        let at = (0..self.count).find(|&at| self.is_address(at))?;
        // A name, or `[unknown]`.
        let frame = self.frame_at(at).filter(|_| self.count > at + 1);
        let mut header = Header { frame: Some(frame?), ..Header::default() };
        let role = at.checked_sub(1).map_or(Role::Name, |before| self.role(before));
        let owner_ends = at - usize::from(matches!(role, Role::Period));
        header.period = (owner_ends < at).then(|| self.number(owner_ends)).flatten();
        match role {
            Role::Name => header.comm = self.before(owner_ends),
            Role::Owner | Role::Period => self.owner(owner_ends, &mut header)?,
        }
        header.is_certain = header.tid.is_some();
        Some(header)
    }

    /// Whether a word is an address in its column, which is 16 digits wide behind a blank: two, if another field is before.
    /// The second number of `4624/4624` is at least five wide, and stands at the left of that.
    fn is_address(&self, at: usize) -> bool {
        const WIDTH: usize = 16;
        let (start, end) = self.places[at];
        const THREAD: usize = 5;
        let padding = |word: &[u8]| {
            let slash = word.iter().position(|&byte| byte == b'/');
            slash.map_or(0, |slash| THREAD.saturating_sub(word.len() - slash - 1))
        };
        let after = |(start, end): (usize, usize)| end + padding(&self.line[start..end]) + 1;
        let column = at.checked_sub(1).map_or(0, |before| after(self.places[before]));
        let is_hex = end - start >= 6 && is_hex(&self.line[start..end]);
        is_hex && self.line[..start].iter().all(|&byte| byte != b'\t') && end == column + 1 + WIDTH
    }

    /// The text of the words before one.
    fn before(&self, end: usize) -> &'a [u8] {
        if end == 0 { b"" } else { &self.line[self.places[0].0..self.places[end - 1].1] }
    }

    /// The name and numbers of the thread, in the words before `end`.
    fn owner(&self, end: usize, header: &mut Header<'a>) -> Option<()> {
        let mut end = end;
        // `[003]`, the processor, and letters of `-F misc`.
        while end > 0 && self.get(end - 1).is_some_and(|word| is_cpu(word) || is_misc(word)) {
            end -= 1;
        }
        let found = end.checked_sub(1).and_then(|at| ids(self.get(at)?));
        if let Some((pid, tid)) = found {
            (header.pid, header.tid) = (pid, tid);
            end -= 1;
        } else if end > 0 && self.line.first().is_some_and(|byte| *byte == b'\t') {
            // A frame whose name looks like a time.
            return None;
        }
        header.comm = self.before(end);
        Some(())
    }

    /// How many samples a record says were lost: `PERF_RECORD_LOST lost 17`.
    fn lost(&self, at: usize) -> u64 {
        let is_lost = self.starts_with(at, b"PERF_RECORD_LOST");
        let after = (at..self.count).find(|&at| self.get(at) == Some(b"lost")).map(|at| at + 1);
        after.filter(|_| is_lost).and_then(|at| self.number(at)).unwrap_or(0)
    }

    /// The frame that starts at a word, or behind the address that was accessed (`-F addr`).
    fn frame_at(&self, at: usize) -> Option<Frame<'a>> {
        let rest = |at: usize| self.places[..self.count].get(at).map(|&(start, _)| &self.line[start..]);
        let frame = Frame::parse(rest(at)?)?;
        let accessed = self.get(at + 1).is_some_and(|word| word.len() >= 4 && is_hex(word));
        Some(if accessed { rest(at + 1).and_then(Frame::parse).unwrap_or(frame) } else { frame })
    }
}

pub(crate) fn is_hex(word: &[u8]) -> bool {
    !word.is_empty() && word.len() <= 16 && word.iter().all(u8::is_ascii_hexdigit)
}

fn number(word: &[u8]) -> Option<u64> {
    let digits = word.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(word).ok().filter(|_| digits)?;
    text.parse().ok()
}

/// `12567.083697:`, with six digits or nine behind the point.
pub(crate) fn is_time(word: &[u8]) -> bool {
    let Some(word) = word.strip_suffix(b":") else { return false };
    let Some(point) = word.iter().position(|byte| matches!(byte, b'.' | b',')) else { return false };
    let (seconds, decimals) = (&word[..point], &word[point + 1..]);
    let digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    digits(seconds) && digits(decimals) && matches!(decimals.len(), 6 | 9)
}

/// The nanoseconds of a time.
fn nanoseconds(word: &[u8]) -> Option<u64> {
    let digits = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<u64>().ok();
    let word = word.strip_suffix(b":")?;
    let point = word.iter().position(|byte| matches!(byte, b'.' | b','))?;
    let decimals = &word[point + 1..];
    let unit = 10_u64.checked_pow(9_u32.checked_sub(u32::try_from(decimals.len()).ok()?)?)?;
    digits(&word[..point])?.checked_mul(1_000_000_000)?.checked_add(digits(decimals)? * unit)
}

/// `[003]`.
fn is_cpu(word: &[u8]) -> bool {
    let inner = word.strip_prefix(b"[").and_then(|word| word.strip_suffix(b"]"));
    inner.is_some_and(|inner| inner == b"-01" || !inner.is_empty() && number(inner).is_some())
}

/// A word of `-F misc`: where the processor was, `U` or `K`, and flags of other records.
fn is_misc(word: &[u8]) -> bool {
    word.len() <= 3
        && word.iter().all(|byte| matches!(byte, b'U' | b'K' | b'H' | b'G' | b'g' | b'M' | b'E' | b'S'))
}

/// `1234`, `1234/1235` or `-1`: process and thread, as far as they are there and no mark for none.
#[allow(clippy::type_complexity, reason = "two numbers, either of which may be missing")]
fn ids(word: &[u8]) -> Option<(Option<u32>, Option<u32>)> {
    let one = |word: &[u8]| match word {
        b"-1" => Some(None),
        word => number(word).filter(|_| !word.is_empty()).and_then(|n| u32::try_from(n).ok()).map(Some),
    };
    match word.iter().position(|&byte| byte == b'/') {
        Some(slash) => Some((one(&word[..slash])?, one(&word[slash + 1..])?)),
        None => Some((None, one(word)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Option<String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Some(match Start::parse(line.as_bytes())? {
            Start::Record { lost } => format!("record, lost {lost}"),
            Start::Sample(Header { comm, pid, tid, period, event, frame, has_text, .. }) => {
                let number = |n: Option<u64>| n.map_or("-".to_owned(), |n| n.to_string());
                let ids = [pid.map(u64::from), tid.map(u64::from), period].map(number).join(" ");
                let frame = frame.map_or(String::new(), |frame| format!(" at {}", text(frame.symbol)));
                format!("{}|{ids} {}{frame}{}", text(comm), text(event), if has_text { " ..." } else { "" })
            }
        })
    }

    /// Lines without numbers were taken for names of threads, and their events were added up.
    #[test]
    fn an_event_is_found_without_any_number() {
        for (line, expected) in [
            ("w page-faults: ", "w|- - - page-faults"),
            ("     page-faults/period=5/: ", "|- - - page-faults/period=5/"),
            ("tmux: server cycles:u: ", "tmux: server|- - - cycles:u"),
            ("my worker 7 page-faults:", "my worker 7|- - - page-faults"),
            (
                "  mix      page-faults:      7f05b4ef71d2 f.constprop.0 (/usr/lib/ld.so)",
                "mix|- - - page-faults at f.constprop.0",
            ),
            ("w sched:sched_switch: prev_comm=mix ==> next_comm=a", "w|- - - sched:sched_switch ..."),
        ] {
            assert_eq!(parsed(line).as_deref(), Some(expected), "{line}");
            let is_certain =
                matches!(Start::parse(line.as_bytes()), Some(Start::Sample(header)) if header.is_certain);
            assert!(!is_certain, "{line}");
        }
    }

    #[test]
    fn all_layouts_tell_whose_sample_it_is() {
        for (line, expected) in [
            ("ls 14331  1083.917330:     250000 cpu-clock: ", "ls|- 14331 250000 cpu-clock"),
            (
                "my worker 7 1/21405 [000] 12567.106266:   10309278 cpu-clock:u: ",
                "my worker 7|1 21405 10309278 cpu-clock:u",
            ),
            ("tmux: server  7 1.123456789: cycles: ", "tmux: server|- 7 - cycles"),
            ("swapper     0 [001]  1333.768770: cpu-clock: ", "swapper|- 0 - cpu-clock"),
            ("java 19983 cycles:", "java|- 19983 - cycles"),
            ("java 12/34 [001] 99 cycles:pp:", "java|12 34 99 cycles:pp"),
            ("emu  4152 75695.008865:          1 cycles:u: ", "emu|- 4152 1 cycles:u"),
            ("a 5 1.000000: 5 page-faults/period=5/: ", "a|- 5 5 page-faults/period=5/"),
            (
                "a 5 [000] 1.000000: sched:sched_switch: prev_comm=mix ==> next_comm=a",
                "a|- 5 - sched:sched_switch ...",
            ),
            (
                "    my worker 7 21733 U  12.670475: 10 cpu-clock:  5562c6298217 solve+0x37 (/tmp/mix)",
                "my worker 7|- 21733 10 cpu-clock at solve",
            ),
            ("ls 1 1.000000: 3 mem: 7fdb67be93e0 5562c6298217 f (/x)", "ls|- 1 3 mem at f"),
            ("ls 1 1.000000:", "ls|- 1 - "),
            ("java   19983 cycles:", "java|- 19983 - cycles"),
            ("swapper     0 cycles:", "swapper|- 0 - cycles"),
            ("mix          5      page-faults: ", "mix|- - 5 page-faults"),
            ("mix 10309278000 cpu-clock:", "mix|- - 10309278000 cpu-clock"),
            ("             mix 29760          5      page-faults: ", "mix|- 29760 5 page-faults"),
            ("my worker 7   58 page-faults:", "my worker|- 7 58 page-faults"),
            ("[001]         58 page-faults:", "|- - 58 page-faults"),
            ("        58 page-faults:", "|- - 58 page-faults"),
            ("   58 page-faults:", "|- 58 - page-faults"),
            (":-1 -1/-1 [000] 1.000000: 3 cycles:", ":-1|- - 3 cycles"),
            ("a 1 1.000000: PERF_RECORD_LOST lost 17", "record, lost 17"),
            ("             mix      55bd9bbcd143 poly", "mix|- - -  at poly"),
            ("     55bd9bbcd143 poly+0xa (/tmp/mix)", "|- - -  at poly"),
            (" ffffffff81f7cc5a finish_task_switch ([kernel.kallsyms])", "|- - -  at finish_task_switch"),
            (" 4624      55bd9bbcd143 poly", "|- 4624 -  at poly"),
            (" 4624/4624       55bd9bbcd143 poly", "|4624 4624 -  at poly"),
            ("my worker 7 1/21405      55bd9bbcd143 poly", "my worker 7|1 21405 -  at poly"),
            ("   5000000      55bd9bbcd143 poly", "|- - 5000000  at poly"),
            ("a 0 0.000000: PERF_RECORD_MMAP -1/0: [0xff(0x1) @ 0]: x [kernel]_text", "record, lost 0"),
        ] {
            assert_eq!(parsed(line).as_deref(), Some(expected), "{line}");
        }
        for line in [
            "",
            "hello world",
            "\t1217 solve+0x37 (/tmp/imp/mix)",
            "\tfoo bar:",
            "tmux: server",
            "-rw-r--r-- 1 root root    123456 Jan  1 file",
            "\t          55bd9bbcd143 poly (/tmp/mix)",
            "     55bd9bbcd143",
            "ffffffff8103d0ca f ([kernel.kallsyms])",
            "a b c",
        ] {
            assert_eq!(parsed(line), None, "{line}");
        }
    }
}
