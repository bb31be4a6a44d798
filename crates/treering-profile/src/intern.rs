//! Tables that hold each value once.

use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::StringId;

/// A table that holds each value once and gives it an index.
///
/// The look-up from value to index is built at the first [`intern`](Self::intern), so a profile
/// that is only read never pays for it.
#[derive(Clone)]
pub struct Interner<I, T> {
    entries: Vec<T>,
    lookup: Option<HashTable<u32>>,
    hasher: DefaultHashBuilder,
    index: PhantomData<fn() -> I>,
}

impl<I, T> Default for Interner<I, T> {
    fn default() -> Self {
        Self { entries: Vec::new(), lookup: None, hasher: DefaultHashBuilder::default(), index: PhantomData }
    }
}

impl<I, T: std::fmt::Debug> std::fmt::Debug for Interner<I, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&self.entries).finish()
    }
}

impl<I, T> Interner<I, T>
where
    I: Copy + From32 + Into<usize>,
    T: Eq + Hash,
{
    /// Takes entries in the order of their indexes, as a file holds them.
    ///
    /// Equal entries are kept, so that indexes stay as they are; later look-ups find one of them.
    pub fn from_entries(entries: Vec<T>) -> Self {
        Self { entries, ..Self::default() }
    }

    /// The index of `value`, which is added if it is new.
    pub fn intern(&mut self, value: T) -> I {
        let hash = self.hasher.hash_one(&value);
        let (entries, hasher) = (&mut self.entries, &self.hasher);
        let lookup = self.lookup.get_or_insert_with(|| build_lookup(entries, hasher));
        if let Some(&found) = lookup.find(hash, |&at| entries[at as usize] == value) {
            return I::from32(found);
        }
        let added = next_index(entries.len());
        entries.push(value);
        lookup.insert_unique(hash, added, |&at| hasher.hash_one(&entries[at as usize]));
        I::from32(added)
    }
}

fn build_lookup<T: Eq + Hash>(entries: &[T], hasher: &DefaultHashBuilder) -> HashTable<u32> {
    let mut lookup = HashTable::with_capacity(entries.len());
    for (at, value) in entries.iter().enumerate() {
        let hash = hasher.hash_one(value);
        if lookup.find(hash, |&other: &u32| entries[other as usize] == *value).is_none() {
            let rehash = |&at: &u32| hasher.hash_one(&entries[at as usize]);
            lookup.insert_unique(hash, next_index(at), rehash);
        }
    }
    lookup
}

fn next_index(length: usize) -> u32 {
    u32::try_from(length).expect("a profile table holds at most 2^32 entries")
}

impl<I: Copy + From32 + Into<usize>, T> Interner<I, T> {
    /// The entry at `id`, or nothing when the table is shorter.
    pub fn get(&self, id: I) -> Option<&T> {
        self.entries.get(id.into())
    }

    /// Every entry with its index.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (I, &T)> + '_ {
        self.entries.iter().enumerate().map(|(at, value)| (I::from32(at as u32), value))
    }

    /// The entries in the order of their indexes.
    pub fn entries(&self) -> &[T] {
        &self.entries
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<I: Into<usize>, T> std::ops::Index<I> for Interner<I, T> {
    type Output = T;

    fn index(&self, id: I) -> &T {
        &self.entries[id.into()]
    }
}

/// An index type that can be made from its stored form.
pub trait From32 {
    /// The index stored as `index`.
    fn from32(index: u32) -> Self;
}

macro_rules! from32 {
    ($($name:ident)*) => {
        $(impl From32 for crate::$name {
            fn from32(index: u32) -> Self {
                Self::new(index)
            }
        })*
    };
}
from32!(StringId FunctionId LineId ModuleId CodeSpaceId);

/// The strings of a profile, each held once. String 0 is the empty string.
#[derive(Clone, Debug)]
pub struct StringTable {
    strings: Interner<StringId, Box<str>>,
}

impl Default for StringTable {
    fn default() -> Self {
        let mut strings = Interner::default();
        strings.intern("".into());
        Self { strings }
    }
}

impl StringTable {
    /// Takes strings in the order of their indexes. The first must be the empty string;
    /// otherwise nothing is returned.
    pub fn from_entries(entries: Vec<Box<str>>) -> Option<Self> {
        if entries.first().is_none_or(|first| !first.is_empty()) {
            return None;
        }
        Some(Self { strings: Interner::from_entries(entries) })
    }

    /// The index of `text`, which is added if it is new.
    pub fn intern(&mut self, text: &str) -> StringId {
        if text.is_empty() {
            return StringId::new(0);
        }
        self.strings.intern_borrowed(text)
    }

    /// The string at `id`, or nothing when the table is shorter.
    pub fn get(&self, id: StringId) -> Option<&str> {
        self.strings.get(id).map(|text| &**text)
    }

    /// Every string with its index.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (StringId, &str)> + '_ {
        self.strings.iter().map(|(id, text)| (id, &**text))
    }

    /// How many strings there are; at least one, the empty string.
    #[expect(clippy::len_without_is_empty, reason = "the empty string is always there")]
    pub fn len(&self) -> usize {
        self.strings.len()
    }
}

impl Interner<StringId, Box<str>> {
    /// Like [`intern`](Self::intern), without a copy when `text` is known.
    fn intern_borrowed(&mut self, text: &str) -> StringId {
        let hash = self.hasher.hash_one(text);
        let (entries, hasher) = (&mut self.entries, &self.hasher);
        let lookup = self.lookup.get_or_insert_with(|| build_lookup(entries, hasher));
        if let Some(&found) = lookup.find(hash, |&at| *entries[at as usize] == *text) {
            return StringId::new(found);
        }
        let added = next_index(entries.len());
        entries.push(text.into());
        lookup.insert_unique(hash, added, |&at| hasher.hash_one(&*entries[at as usize]));
        StringId::new(added)
    }
}

impl std::ops::Index<StringId> for StringTable {
    type Output = str;

    fn index(&self, id: StringId) -> &str {
        &self.strings[id]
    }
}
