//! A file of held random numbers, which programs get in place of `/dev/urandom`.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::rc::Rc;

use crate::surroundings::random::HeldRandom;
use crate::sys::memory_file;

/// The bytes that are random. Zeros follow them: no program reads so many, and the end of the file would be worse.
const RANDOM: usize = 4 << 20;
const SIZE: u64 = 1 << 40;

/// The file. Each opening of it reads from its beginning.
#[derive(Debug, Clone)]
pub(crate) struct RandomFile(Rc<File>);

impl RandomFile {
    pub(crate) fn new() -> io::Result<Self> {
        let mut file = memory_file("treering random", SIZE)?;
        file.write_all(&HeldRandom::default().bytes(RANDOM))?;
        Ok(Self(Rc::new(file)))
    }

    /// Its name for processes that see this one.
    pub(crate) fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()).into()
    }
}
