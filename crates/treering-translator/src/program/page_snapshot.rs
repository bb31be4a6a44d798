//! Recent copies of pages of the program's data.

use hashbrown::HashMap;

use crate::program::region::PAGE;
use crate::sys;
use crate::sys::remote_syscall::StoppedThread;

/// Recently read pages of data, for uses in which an old value does no harm: each read is a system call, and
/// the linker's tables are read word by word.
#[derive(Debug, Default)]
pub(crate) struct PageSnapshots {
    pages: HashMap<u64, Box<[u8]>>,
    requests: u32,
}

/// Pages are read again after this many requests, as tables are filled in while the program runs.
const MOST_REQUESTS: u32 = 128;

impl PageSnapshots {
    /// Notes that the program has run since.
    pub(crate) fn age(&mut self) {
        self.requests += 1;
        if self.requests > MOST_REQUESTS {
            self.forget();
        }
    }

    /// Forgets all pages.
    pub(crate) fn forget(&mut self) {
        self.pages.clear();
        self.requests = 0;
    }

    /// Eight bytes, perhaps older ones; nothing where there is no memory, or across two pages.
    pub(crate) fn word(&mut self, address: u64, thread: &StoppedThread<'_>) -> Option<u64> {
        let page = address & !(PAGE - 1);
        let bytes = self.pages.entry(page).or_insert_with(|| {
            let mut bytes = vec![0; PAGE as usize];
            let got = sys::read_memory(thread.tid, page, &mut bytes);
            bytes.truncate(got);
            bytes.into()
        });
        let from = (address - page) as usize;
        let word = bytes.get(from..from + 8)?.try_into().ok()?;
        Some(u64::from_le_bytes(word))
    }
}
