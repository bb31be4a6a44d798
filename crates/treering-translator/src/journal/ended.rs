//! The journals of ended address spaces, one behind the other in a single file. Making and removing a file
//! for each would take longer than everything else that is done for a short process.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use hashbrown::HashMap;

/// The name of the file.
pub(crate) const ENDED: &str = "ended";

/// The header of each: the number of its address space and its length, eight bytes each.
const HEADER: usize = 16;

/// The file while it is written.
#[derive(Debug)]
pub(crate) struct EndedJournals {
    file: File,
    length: u64,
}

impl EndedJournals {
    /// Makes the file.
    pub(crate) fn create(directory: &Path) -> io::Result<Self> {
        let file = File::options().append(true).create_new(true).mode(0o600).open(directory.join(ENDED))?;
        Ok(Self { file, length: 0 })
    }

    /// Adds the records of an address space, all of them or none.
    ///
    /// # Errors
    /// The disk is full.
    pub(crate) fn add(&mut self, number: u32, records: &[u8]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(HEADER + records.len());
        bytes.extend_from_slice(&u64::from(number).to_le_bytes());
        bytes.extend_from_slice(&(records.len() as u64).to_le_bytes());
        bytes.extend_from_slice(records);
        if let Err(error) = self.file.write_all(&bytes) {
            self.file.set_len(self.length)?;
            return Err(error);
        }
        self.length += bytes.len() as u64;
        Ok(())
    }
}

/// The same file while it is read; others may be added meanwhile.
#[derive(Debug)]
pub(crate) struct EndedReader {
    path: PathBuf,
    read: u64,
    found: HashMap<u32, Vec<u8>>,
}

impl EndedReader {
    /// The file in a directory, which may not exist.
    pub(crate) fn new(directory: &Path) -> Self {
        Self { path: directory.join(ENDED), read: 0, found: HashMap::new() }
    }

    /// Reads the journals that were added since.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn update(&mut self) -> io::Result<()> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        if file.metadata()?.len() == self.read {
            return Ok(());
        }
        file.seek(SeekFrom::Start(self.read))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let mut rest = &bytes[..];
        while let Some((number, records)) = first(rest) {
            self.found.insert(number, records.to_vec());
            let taken = HEADER + records.len();
            rest = &rest[taken..];
            self.read += taken as u64;
        }
        Ok(())
    }

    /// The highest number of a journal that was read and not taken.
    pub(crate) fn highest(&self) -> u32 {
        self.found.keys().copied().max().unwrap_or(0)
    }

    /// Takes the records of an address space.
    pub(crate) fn take(&mut self, number: u32) -> Option<Vec<u8>> {
        self.found.remove(&number)
    }
}

/// The first journal in the bytes, if it is complete.
fn first(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let records = rest.get(..usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    Some((u32::try_from(u64::from_le_bytes(*number)).ok()?, records))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail by panicking")]
mod tests {
    use super::*;

    #[test]
    fn whole_journals_are_read_while_others_are_added() {
        let directory = std::env::temp_dir().join(format!("treering-ended-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let mut reader = EndedReader::new(&directory);
        reader.update().unwrap();
        assert_eq!(reader.highest(), 0);
        let mut writer = EndedJournals::create(&directory).unwrap();
        writer.add(3, b"records of three").unwrap();
        writer.add(1, b"").unwrap();
        reader.update().unwrap();
        assert_eq!(
            (reader.highest(), reader.take(3), reader.take(2)),
            (3, Some(b"records of three".into()), None)
        );
        assert_eq!(reader.take(1), Some(Vec::new()));
        writer.add(7, b"seven").unwrap();
        let path = directory.join(ENDED);
        let whole = std::fs::read(&path).unwrap();
        for length in 48..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            reader.update().unwrap();
            assert_eq!(reader.take(7), None, "{length}");
        }
        std::fs::write(&path, &whole).unwrap();
        reader.update().unwrap();
        assert_eq!(reader.take(7), Some(b"seven".into()));
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
