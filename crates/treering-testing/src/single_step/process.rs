//! A process that is stepped: its code and what is mapped where.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::decode::Instruction;

/// A process that is being stepped.
#[derive(Debug)]
pub struct SteppedProcess {
    pid: u32,
    image: u32,
    changes: u32,
    memory: Option<File>,
    instructions: HashMap<u64, Instruction>,
    mappings: Vec<Mapping>,
}

/// An executable mapping of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Its first address.
    pub start: u64,
    /// The address behind its last.
    pub end: u64,
    /// Where it starts in its file, in bytes.
    pub file_offset: u64,
    /// The file, a name in brackets, or empty for memory of no file.
    pub path: PathBuf,
}

impl SteppedProcess {
    pub(super) fn new(pid: u32, image: u32) -> Self {
        let (instructions, mappings) = (HashMap::new(), Vec::new());
        Self { pid, image, changes: 0, memory: None, instructions, mappings }
    }

    /// The number that the system gave it.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// A number that no other process has, and that changes when the process becomes another program.
    pub fn image(&self) -> u32 {
        self.image
    }

    /// How often its executable mappings were found changed.
    pub fn changes(&self) -> u32 {
        self.changes
    }

    /// The name of its program, cut to 15 bytes.
    pub fn name(&self) -> String {
        let name = std::fs::read_to_string(format!("/proc/{}/comm", self.pid)).unwrap_or_default();
        name.trim_end().to_owned()
    }

    /// Reads memory of the process; fewer bytes where less is mapped.
    pub fn read(&mut self, address: u64, length: usize) -> Vec<u8> {
        if self.memory.is_none() {
            self.memory = File::open(format!("/proc/{}/mem", self.pid)).ok();
        }
        let mut bytes = vec![0; length];
        let memory = self.memory.as_ref();
        let read = memory.and_then(|memory| {
            let whole = memory.read_at(&mut bytes, address).ok();
            // A read that reaches into memory that is not there may fail as a whole.
            whole.or_else(|| {
                let page = (4096 - (address % 4096) as usize).min(bytes.len());
                memory.read_at(&mut bytes[..page], address).ok()
            })
        });
        bytes.truncate(read.unwrap_or(0));
        bytes
    }

    /// The mapping that holds an address.
    pub fn mapping(&mut self, address: u64) -> Option<Mapping> {
        let holds = |mapping: &&Mapping| (mapping.start..mapping.end).contains(&address);
        if self.mappings.iter().find(holds).is_none() {
            self.mappings = executable_mappings(self.pid);
        }
        self.mappings.iter().find(holds).cloned()
    }

    /// The instruction at an address. Code is decoded once for as long as no system call is made.
    pub(super) fn instruction(&mut self, address: u64) -> Instruction {
        if let Some(&known) = self.instructions.get(&address) {
            return known;
        }
        let bytes = self.read(address, LONGEST);
        let instruction = Instruction::decode(&bytes, address);
        self.instructions.insert(address, instruction);
        instruction
    }

    /// A system call was made: mappings may be others, and with them the code.
    pub(super) fn may_have_changed(&mut self) {
        let now = executable_mappings(self.pid);
        if now != self.mappings {
            self.mappings = now;
            self.changes += 1;
            self.instructions.clear();
        }
    }
}

/// No instruction is longer.
const LONGEST: usize = 15;

fn executable_mappings(pid: u32) -> Vec<Mapping> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    text.lines().filter_map(parse_mapping).collect()
}

/// One line of `/proc/PID/maps`, if it is executable.
fn parse_mapping(line: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let executable = fields.next()?.contains('x');
    let offset = fields.next()?;
    let path = Path::new(fields.nth(2).unwrap_or_default().trim_start()).to_owned();
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let mapping = Mapping { start: hex(start)?, end: hex(end)?, file_offset: hex(offset)?, path };
    executable.then_some(mapping)
}
