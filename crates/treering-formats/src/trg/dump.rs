//! Shows what the frames of a file hold.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::ReadError;
use crate::budget::Budget;
use crate::trg::content::{Content, Decoded, VERSION};
use crate::trg::frame::{MAJOR, read_header};
use crate::trg::scan::{Frames, Unpacker};
use crate::trg::{Damage, Kind, Loss, RawFrame};

/// A frame of a file, or a damaged part of it. It serialises as JSON, an entry after the other, so that
/// a frame of millions of entries takes no memory for each.
#[derive(Debug)]
pub struct FrameDump {
    /// The facts beside the content: `kind`, `offset`, lengths, `crc_ok`; for a damaged part
    /// `damage`.
    head: Map<String, Value>,
    /// The decoded content; nothing where there is none, and nothing in it where it is not known.
    content: Option<Option<Content>>,
    /// The damage, if there is any.
    pub loss: Option<Loss>,
}

impl FrameDump {
    /// All of it at once.
    pub fn json(&self) -> Value {
        json!(self)
    }
}

impl Serialize for FrameDump {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(content) = &self.content {
            map.serialize_entry("content", content)?;
        }
        self.head.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?;
        map.end()
    }
}

/// The file header and every frame in order; a damaged frame does not end it.
///
/// # Errors
/// When it is not a `.trg` file, or one of a newer major version.
pub fn dump(bytes: &[u8]) -> Result<impl Iterator<Item = FrameDump> + '_, ReadError> {
    let minor = read_header(bytes)?;
    let header = head(json!({ "kind": "HEADER", "offset": 0, "major": MAJOR, "minor": minor }));
    let header = FrameDump { head: header, content: None, loss: None };
    let mut decoding = Decoding { unpacker: Unpacker::new(), budget: Budget::new(bytes.len()) };
    let frames = Frames::new(bytes).map(move |frame| match frame {
        Ok(frame) => dump_frame(&frame, &mut decoding),
        Err(loss) => dump_loss(loss),
    });
    Ok(std::iter::once(header).chain(frames))
}

/// The members of an object.
fn head(object: Value) -> Map<String, Value> {
    match object {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// Decodes frames within what a file of its length may take.
struct Decoding {
    unpacker: Unpacker,
    budget: Budget,
}

impl Decoding {
    fn content(&mut self, kind: Kind, frame: &RawFrame<'_>) -> Result<Content, Damage> {
        self.budget.unpack(frame.raw_length)?;
        let payload = self.unpacker.unpack(frame)?;
        Ok(Decoded::from_payload(kind, payload, self.budget.room())?.content)
    }
}

fn dump_frame(frame: &RawFrame<'_>, decoding: &mut Decoding) -> FrameDump {
    let kind = Kind::from_number(frame.kind);
    let mut head = head(json!({
        "kind": kind.map_or_else(|| json!(frame.kind), |kind| json!(kind.as_str())),
        "version": frame.version,
        "offset": frame.offset,
        "raw_length": frame.raw_length,
        "stored_length": frame.stored.len(),
        "crc_ok": true,
    }));
    let known = kind.filter(|_| frame.version <= VERSION);
    match known.map(|kind| decoding.content(kind, frame)).transpose() {
        Ok(content) => FrameDump { head, content: Some(content), loss: None },
        Err(damage) => {
            head.insert("damage".to_owned(), json!(damage.to_string()));
            FrameDump { head, content: None, loss: Some(frame.loss(damage)) }
        }
    }
}

fn dump_loss(loss: Loss) -> FrameDump {
    let kind = loss.kind.and_then(Kind::from_number).map(Kind::as_str);
    let head = head(json!({
        "kind": kind.map_or_else(|| json!(loss.kind), |kind| json!(kind)),
        "offset": loss.offset,
        "skipped": loss.length,
        "crc_ok": false,
        "damage": loss.damage.to_string(),
    }));
    FrameDump { head, content: None, loss: Some(loss) }
}
