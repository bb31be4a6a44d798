//! Text: `# key: value`, and a stack for each line with what it cost.

use crate::austin::read::{Amounts, Reader};
use crate::label::text_of;
use crate::text_line::text_lines;
use crate::{Problem, ReadError};

/// Reads all lines.
pub(super) fn read(bytes: &[u8], reader: &mut Reader) -> Result<(), ReadError> {
    reader.import.report.unfinished = !bytes.ends_with(b"\n");
    let mut stray = 0_u64;
    for line in text_lines(bytes) {
        let text = text_of(line.bytes);
        let text = text.trim();
        match text.strip_prefix('#') {
            Some(comment) => {
                let (key, value) = comment.split_once(':').unwrap_or((comment, ""));
                reader.metadata(key.trim(), value.trim());
            }
            None if text.is_empty() => {}
            None => {
                let is_stack = stack(text, reader).map_err(|problem| line.error(problem))?;
                stray += u64::from(!is_stack);
            }
        }
    }
    reader.import.note_count("lines that are no stacks with a cost were passed over", stray);
    Ok(())
}

/// `P1;T0:1;app.py:main:3;app.py:work:7 500`; whether it is one.
fn stack(line: &str, reader: &mut Reader) -> Result<bool, Problem> {
    let Some((stack, cost)) = line.rsplit_once(' ') else { return Ok(false) };
    let Some(amounts) = amounts(cost, reader) else { return Ok(false) };
    let mut parts = stack.split(';');
    let Some(pid) = parts.next().and_then(|part| part.strip_prefix('P')?.parse().ok()) else {
        return Ok(false);
    };
    let Some(thread) = parts.next().and_then(|part| part.strip_prefix('T')) else { return Ok(false) };
    reader.import.begin();
    for part in parts.filter(|part| !part.is_empty()) {
        let (name, file, line) = frame(part);
        reader.frame(name, file, line);
    }
    reader.sample(pid, thread, amounts)?;
    Ok(true)
}

/// `500` of the mode, or `500,1,2048` in full mode: microseconds, whether the thread waited, bytes.
fn amounts(cost: &str, reader: &Reader) -> Option<Amounts> {
    let mut parts = cost.split(',');
    let (first, second, third) = (parts.next()?, parts.next(), parts.next());
    match (second, third) {
        (Some(idle), Some(memory)) => Some(Amounts {
            time: Some(first.parse().ok()?),
            idle: Some(idle.parse::<u8>().ok()? != 0),
            memory: Some(memory.parse().ok()?),
        }),
        (None, _) if reader.is_mode("memory") => {
            Some(Amounts { memory: Some(first.parse().ok()?), ..Amounts::default() })
        }
        (None, _) => Some(Amounts { time: Some(first.parse().ok()?), ..Amounts::default() }),
        _ => None,
    }
}

/// `app.py:main:3`, with up to three more numbers for where the expression is; or `:GC:`.
fn frame(text: &str) -> (&str, &str, u32) {
    let mut rest = text;
    let mut line = None;
    for _ in 0..4 {
        let Some((before, number)) = rest.rsplit_once(':') else { break };
        let Ok(number) = number.parse() else { break };
        (rest, line) = (before, Some(number));
    }
    match (rest.rsplit_once(':'), line) {
        (Some((file, name)), Some(line)) if !name.is_empty() && !file.is_empty() => (name, file, line),
        _ => (text.trim_matches(':'), "", 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_a_file_a_name_and_numbers() {
        for (text, expected) in [
            ("app.py:main:3", ("main", "app.py", 3)),
            ("C:\\a.py:main:3:4:1:9", ("main", "C:\\a.py", 3)),
            ("/a/b.py:<module>:12", ("<module>", "/a/b.py", 12)),
            (":GC:", ("GC", "", 0)),
            ("weird", ("weird", "", 0)),
        ] {
            assert_eq!(frame(text), expected, "{text}");
        }
    }
}
