//! MOJO: events, each a byte that tells its kind, with numbers of variable length and texts that end with a zero.

use std::collections::HashMap;

use crate::austin::MAGIC;
use crate::austin::read::{Amounts, Reader};
use crate::label::text_of;
use crate::{Problem, ReadError};

/// A frame that later stacks refer to.
struct Known {
    name: String,
    file: String,
    line: u32,
}

/// The sample that is being read.
struct Sample {
    pid: i64,
    thread: String,
    amounts: Amounts,
}

struct Events<'a> {
    bytes: &'a [u8],
    at: usize,
    version: i64,
    /// By process and number.
    texts: HashMap<(i64, i64), String>,
    frames: HashMap<(i64, i64), Known>,
    sample: Option<Sample>,
}

/// Reads all events. A file that ends within one is read up to there.
pub(super) fn read(bytes: &[u8], reader: &mut Reader) -> Result<(), ReadError> {
    let (texts, frames) = (HashMap::new(), HashMap::new());
    let mut events = Events { bytes, at: MAGIC.len(), version: 0, texts, frames, sample: None };
    events.version = events.number().ok_or_else(|| ReadError::at_byte(0, Problem::CutShort))?;
    while events.at < bytes.len() {
        let at = events.at;
        match events.event(reader)? {
            Some(()) => {}
            None if events.at >= bytes.len() => {
                // The sample that was being written is not whole.
                events.sample = None;
                reader.import.report.unfinished = true;
                break;
            }
            None => {
                return Err(ReadError::at_byte(
                    at,
                    "the event is of an unknown kind, or names a text or frame that is missing",
                ));
            }
        }
    }
    events.end(reader)
}

impl Events<'_> {
    /// Reads an event; nothing if that cannot be done.
    fn event(&mut self, reader: &mut Reader) -> Result<Option<()>, ReadError> {
        let kind = self.bytes[self.at];
        self.at += 1;
        if kind == 2 {
            self.end(reader)?;
        }
        Ok(self.read_event(kind, reader))
    }

    fn read_event(&mut self, kind: u8, reader: &mut Reader) -> Option<()> {
        match kind {
            0 => {}
            1 => {
                let (key, value) = (self.text()?, self.text()?);
                reader.metadata(&key, &value);
            }
            2 => {
                let pid = self.number()?;
                let interpreter = if self.version >= 3 { Some(self.number()?) } else { None };
                let thread = self.text()?;
                // In hexadecimal here, unlike in the text.
                let thread = u64::from_str_radix(&thread, 16).map_or(thread, |number| number.to_string());
                let thread = interpreter.map_or(thread.clone(), |number| format!("{number}:{thread}"));
                self.sample = Some(Sample { pid, thread, amounts: Amounts::default() });
                reader.import.begin();
            }
            3 => {
                let (key, file, name, line) =
                    (self.number()?, self.number()?, self.number()?, self.number()?);
                if self.version >= 2 {
                    for _ in 0..3 {
                        self.number()?;
                    }
                }
                let known = Known {
                    name: self.known_text(name)?,
                    file: self.known_text(file)?,
                    line: u32::try_from(line).unwrap_or(0),
                };
                let pid = self.pid()?;
                self.frames.insert((pid, key), known);
            }
            4 => reader.frame("INVALID", "", 0),
            5 => {
                let key = (self.pid()?, self.number()?);
                let Known { name, file, line } = self.frames.get(&key)?;
                reader.frame(name, file, *line);
            }
            6 => {
                let name = self.text()?;
                reader.import.frame(&name, "", 0, treering_profile::FunctionKind::Kernel);
            }
            7 => reader.frame("GC", "", 0),
            8 => self.sample.as_mut()?.amounts.idle = Some(true),
            9 => {
                let time = u64::try_from(self.number()?).unwrap_or(0);
                let full = reader.is_mode("full");
                let amounts = &mut self.sample.as_mut()?.amounts;
                amounts.time = Some(time);
                amounts.idle = if full { amounts.idle.or(Some(false)) } else { None };
            }
            10 => {
                let memory = self.number()?;
                self.sample.as_mut()?.amounts.memory = Some(memory);
            }
            11 => {
                let (key, text) = (self.number()?, self.text()?);
                let pid = self.pid()?;
                self.texts.insert((pid, key), text);
            }
            12 => drop(self.number()?),
            _ => return None,
        }
        Some(())
    }

    /// Adds the sample that was read.
    fn end(&mut self, reader: &mut Reader) -> Result<(), ReadError> {
        let Some(sample) = self.sample.take() else { return Ok(()) };
        Ok(reader.sample(u32::try_from(sample.pid).unwrap_or(0), &sample.thread, sample.amounts)?)
    }

    fn pid(&self) -> Option<i64> {
        Some(self.sample.as_ref()?.pid)
    }

    /// A text by its number; 1 stands for one that is not known.
    fn known_text(&self, number: i64) -> Option<String> {
        if number == 1 {
            return Some("(unknown)".to_owned());
        }
        self.texts.get(&(self.pid()?, number)).cloned()
    }

    /// Six bits with a sign, then seven bits a byte.
    fn number(&mut self) -> Option<i64> {
        let first = self.byte()?;
        let mut value = i64::from(first & 0x3f);
        let (mut more, mut shift) = (first & 0x80 != 0, 6);
        while more {
            let byte = self.byte()?;
            value |= i64::from(byte & 0x7f).checked_shl(shift).filter(|_| shift < 62)?;
            more = byte & 0x80 != 0;
            shift += 7;
        }
        Some(if first & 0x40 != 0 { -value } else { value })
    }

    fn text(&mut self) -> Option<String> {
        let rest = self.bytes.get(self.at..)?;
        let Some(end) = rest.iter().position(|&byte| byte == 0) else {
            self.at = self.bytes.len();
            return None;
        };
        self.at += end + 1;
        Some(text_of(&rest[..end]).into_owned())
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at).copied();
        self.at += 1;
        byte
    }
}
