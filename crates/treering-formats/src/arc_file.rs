//! The file in which a program that was compiled with `-pg` counts its calls, under `treering gprof`.
//!
//! The layout is [`treering_events::arc_file`]. The file holds addresses of the running process, and the files that
//! code was mapped from; a caller that can read those files turns the addresses into functions. It may be read while
//! the program runs, and after any kind of end.

mod read;

pub use read::{read, used_bytes};

/// The contents of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArcFile {
    /// The process that made it.
    pub process: u32,
    /// How many calls were not counted for want of room.
    pub lost: u64,
    /// The files that code was mapped from.
    pub objects: Vec<Object>,
    /// The calls of each thread.
    pub tables: Vec<Table>,
}

/// A file that code was mapped from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Object {
    /// The process that noted it. What it forks afterwards has it as well.
    pub process: u32,
    /// How often libraries had been unloaded before.
    pub generation: u64,
    /// Where it is mapped.
    pub start: u64,
    /// The address behind it.
    pub end: u64,
    /// Where in the file the mapping begins.
    pub offset: u64,
    /// The path of the file, as the process saw it.
    pub path: String,
}

/// The calls of one thread; a thread may have several tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The process.
    pub process: u32,
    /// The thread. Threads that followed each other may share a table, under the number of the last one.
    pub thread: u32,
    /// How often libraries had been unloaded before.
    pub generation: u64,
    /// The calls.
    pub arcs: Vec<Calls>,
}

/// How often one function called another from one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calls {
    /// The return address in the caller.
    pub from: u64,
    /// The place in the callee behind the call by which it reports itself.
    pub callee: u64,
    /// How often.
    pub calls: u64,
}

impl ArcFile {
    /// The object that held an address of a process, at a time.
    pub fn object_at(&self, address: u64, process: u32, generation: u64) -> Option<&Object> {
        let holds = |object: &&Object| {
            object.generation == generation && (object.start..object.end).contains(&address)
        };
        let own = self.objects.iter().filter(|object| object.process == process).find(holds);
        // Mappings from before a process was forked are noted for its parent.
        own.or_else(|| self.objects.iter().find(holds))
    }
}
