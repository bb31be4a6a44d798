//! Rows of threads. Threads with equal rows share one copy of them.

use std::hash::{BuildHasher, Hash};

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::ThreadId;

/// A row that belongs to a thread.
pub trait OfThread: Copy + PartialEq + Hash {
    /// The thread.
    fn thread(&self) -> ThreadId;

    /// The same row of another thread.
    #[must_use]
    fn with_thread(self, thread: ThreadId) -> Self;
}

/// Rows of threads. Threads with equal rows in the same order share one list.
///
/// A program that runs the same command a thousand times has two thousand threads and a handful of lists. [`iter`](Self::iter)
/// gives every row of every thread: in the order of threads, and within a thread in the order in which they were added.
/// Sums over threads are cheaper with [`distinct`](Self::distinct).
///
/// ```
/// use treering_profile::{BlockExecutions, BlockId, ThreadId, ThreadRows};
///
/// let row = |thread| BlockExecutions { thread: ThreadId::new(thread), block: BlockId::new(7), executions: 3 };
/// let rows: ThreadRows<_> = (0..1000).map(row).collect();
/// assert_eq!((rows.len(), rows.lists()), (1000, 1));
/// assert_eq!(rows.iter().nth(500), Some(row(500)));
/// ```
#[derive(Clone)]
pub struct ThreadRows<T> {
    /// The thread stored in a row has no meaning: `threads` tells which threads have the list.
    lists: Vec<List<T>>,
    /// Unused lists, which no thread has any more.
    free: Vec<u32>,
    /// By thread, the number of its list plus one; 0 for those without rows.
    threads: Vec<u32>,
    /// The complete lists by their hashes, to find the one that another thread can share.
    complete: HashTable<u32>,
    /// The thread of the latest row. It does not share its list, which is not complete.
    open: Option<Open>,
    hasher: DefaultHashBuilder,
}

#[derive(Clone)]
struct List<T> {
    rows: Vec<T>,
    hash: u64,
    /// How many threads have it.
    threads: u32,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    thread: ThreadId,
    /// Whether the list was complete before. Such a list is never shared again: comparing lists each time that threads
    /// take turns would be slow.
    again: bool,
}

impl<T> Default for ThreadRows<T> {
    fn default() -> Self {
        Self {
            lists: Vec::new(),
            free: Vec::new(),
            threads: Vec::new(),
            complete: HashTable::new(),
            open: None,
            hasher: DefaultHashBuilder::default(),
        }
    }
}

impl<T> ThreadRows<T> {
    /// Whether no thread has a row.
    pub fn is_empty(&self) -> bool {
        self.threads.iter().all(|&list| list == 0)
    }

    /// How many rows there are, those that threads share counted for each of them.
    pub fn len(&self) -> usize {
        self.lists.iter().map(|list| list.rows.len() * list.threads as usize).sum()
    }

    /// How many lists are kept: at most one for each thread.
    pub fn lists(&self) -> usize {
        self.lists.len() - self.free.len()
    }

    /// The threads that have rows, in order.
    pub fn threads(&self) -> impl Iterator<Item = ThreadId> + '_ {
        let threads = self.threads.iter().enumerate().filter(|(_, list)| **list != 0);
        threads.map(|(thread, _)| ThreadId::from_usize(thread))
    }

    /// The number of a thread's list, if it has rows. Threads of the same number have the same rows.
    pub fn list(&self, thread: ThreadId) -> Option<u32> {
        self.threads.get(thread.index())?.checked_sub(1)
    }
}

impl<T: OfThread> ThreadRows<T> {
    /// Every row of every thread.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter { all: self, thread: 0, at: 0 }
    }

    /// The rows of one thread.
    pub fn of(
        &self,
        thread: ThreadId,
    ) -> impl DoubleEndedIterator<Item = T> + ExactSizeIterator + Clone + '_ {
        let rows = self.list(thread).map_or(&[][..], |list| &self.lists[list as usize].rows);
        rows.iter().map(move |row| row.with_thread(thread))
    }

    /// Each row of each list, with the number of threads that have it. The thread stored in the row has no meaning.
    pub fn distinct(&self) -> impl Iterator<Item = (T, u64)> + Clone + '_ {
        self.lists.iter().filter(|list| list.threads > 0).flat_map(|list| {
            let threads = u64::from(list.threads);
            list.rows.iter().map(move |row| (*row, threads))
        })
    }

    /// Adds a row behind those of its thread.
    pub fn push(&mut self, row: T) {
        let thread = row.thread();
        if self.open.is_none_or(|open| open.thread != thread) {
            self.close();
            self.open(thread);
        }
        let hash = self.hasher.hash_one(row.with_thread(ThreadId::new(0)));
        let list = &mut self.lists[self.threads[thread.index()] as usize - 1];
        list.hash = with_row(list.hash, hash);
        list.rows.push(row);
    }

    /// Replaces the rows of each of these threads by `rows`, whose own threads are ignored.
    pub fn set(&mut self, threads: &[ThreadId], rows: Vec<T>) {
        self.close();
        threads.iter().for_each(|&thread| self.leave(thread));
        if let Some(list) = Some(rows).filter(|rows| !rows.is_empty()).map(|rows| self.intern(rows)) {
            threads.iter().for_each(|&thread| self.give(thread, list));
        }
    }

    /// Changes the rows of every list; lists that are equal afterwards are shared. The thread stored in a row has no
    /// meaning.
    pub fn rewrite(&mut self, mut change: impl FnMut(&mut Vec<T>)) {
        let used = self.lists.iter_mut().filter(|list| list.threads > 0);
        used.for_each(|list| change(&mut list.rows));
        self.share();
    }

    /// Keeps the rows for which `kept` is true. The thread stored in a row has no meaning.
    pub fn retain(&mut self, mut kept: impl FnMut(&T) -> bool) {
        self.rewrite(|rows| rows.retain(&mut kept));
    }

    /// Removes all rows.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Adds the rows of another table, each changed by `row`. `thread` maps threads of `from` to threads of this table;
    /// rows of threads without a counterpart are left out.
    pub fn append(
        &mut self,
        from: &Self,
        thread: impl Fn(ThreadId) -> Option<ThreadId>,
        row: impl Fn(T) -> T,
    ) {
        self.close();
        let mut moved: Vec<Option<u32>> = vec![None; from.lists.len()];
        for (old, new) in from.threads().filter_map(|old| Some((old, thread(old)?))) {
            if self.list(new).is_some() {
                from.of(old).for_each(|one| self.push(row(one).with_thread(new)));
                self.close();
                // Lists that were shared may be others' now.
                moved.fill(None);
                continue;
            }
            let Some(list) = from.list(old) else { continue };
            let rows = from.lists[list as usize].rows.iter();
            let known = &mut moved[list as usize];
            let list = *known.get_or_insert_with(|| self.intern(rows.map(|one| row(*one)).collect()));
            self.give(new, list);
        }
    }

    /// The list of some rows, which are at least one. It may be no thread's yet.
    fn intern(&mut self, rows: Vec<T>) -> u32 {
        let list = self.add_list(rows);
        if let Some(same) = self.same_as(list) {
            self.release(list);
            return same;
        }
        self.complete_list(list);
        list
    }

    /// Gives a list to a thread that has none.
    fn give(&mut self, thread: ThreadId, list: u32) {
        self.lists[list as usize].threads += 1;
        *self.list_of(thread) = list + 1;
    }

    fn list_of(&mut self, thread: ThreadId) -> &mut u32 {
        if self.threads.len() <= thread.index() {
            self.threads.resize(thread.index() + 1, 0);
        }
        &mut self.threads[thread.index()]
    }

    /// A list that is no thread's yet.
    fn add_list(&mut self, rows: Vec<T>) -> u32 {
        let hash = self.hash(&rows);
        let list = List { rows, hash, threads: 0 };
        match self.free.pop() {
            Some(free) => {
                self.lists[free as usize] = list;
                free
            }
            None => {
                self.lists.push(list);
                self.lists.len() as u32 - 1
            }
        }
    }

    fn hash(&self, rows: &[T]) -> u64 {
        let rows = rows.iter().map(|row| self.hasher.hash_one(row.with_thread(ThreadId::new(0))));
        rows.fold(0, with_row)
    }

    /// Makes the list of a thread its own.
    fn open(&mut self, thread: ThreadId) {
        let again = match self.list(thread) {
            None => {
                let list = self.add_list(Vec::new());
                self.give(thread, list);
                false
            }
            Some(list) if self.lists[list as usize].threads > 1 => {
                let rows = self.lists[list as usize].rows.clone();
                self.lists[list as usize].threads -= 1;
                let own = self.add_list(rows);
                self.give(thread, own);
                true
            }
            Some(list) => {
                self.forget(list);
                true
            }
        };
        self.open = Some(Open { thread, again });
    }

    /// Takes a list from among the complete ones.
    fn forget(&mut self, list: u32) {
        let hash = self.lists[list as usize].hash;
        if let Ok(entry) = self.complete.find_entry(hash, |&other| other == list) {
            entry.remove();
        }
    }

    /// Takes a thread's rows away.
    fn leave(&mut self, thread: ThreadId) {
        let Some(list) = self.list(thread) else { return };
        *self.list_of(thread) = 0;
        self.lists[list as usize].threads -= 1;
        if self.lists[list as usize].threads == 0 {
            self.forget(list);
            self.release(list);
        }
    }

    fn release(&mut self, list: u32) {
        self.lists[list as usize] = List { rows: Vec::new(), hash: 0, threads: 0 };
        self.free.push(list);
    }

    /// Takes the latest rows for complete: other threads may share them.
    fn close(&mut self) {
        let Some(Open { thread, again: false }) = self.open.take() else { return };
        let Some(list) = self.list(thread) else { return };
        if let Some(same) = self.same_as(list) {
            self.release(list);
            self.give(thread, same);
        } else {
            self.lists[list as usize].rows.shrink_to_fit();
            self.complete_list(list);
        }
    }

    /// A complete list with the rows of another one.
    fn same_as(&self, list: u32) -> Option<u32> {
        let List { rows, hash, .. } = &self.lists[list as usize];
        let plain = |row: &T| row.with_thread(ThreadId::new(0));
        let equal = |&other: &u32| {
            let known = &self.lists[other as usize];
            other != list && known.hash == *hash && known.rows.iter().map(plain).eq(rows.iter().map(plain))
        };
        self.complete.find(*hash, equal).copied()
    }

    fn complete_list(&mut self, list: u32) {
        let lists = &self.lists;
        self.complete.insert_unique(lists[list as usize].hash, list, |&list| lists[list as usize].hash);
    }

    /// Looks for equal lists among all of them.
    fn share(&mut self) {
        self.open = None;
        self.complete.clear();
        let mut now: Vec<u32> = (0..self.lists.len() as u32).collect();
        for list in 0..self.lists.len() as u32 {
            if self.lists[list as usize].threads == 0 {
                continue;
            }
            self.lists[list as usize].hash = self.hash(&self.lists[list as usize].rows);
            match self.same_as(list) {
                Some(same) => now[list as usize] = same,
                None => self.complete_list(list),
            }
        }
        for thread in 0..self.threads.len() {
            let Some(list) = self.threads[thread].checked_sub(1) else { continue };
            let same = now[list as usize];
            if same != list {
                self.lists[list as usize].threads -= 1;
                self.lists[same as usize].threads += 1;
                self.threads[thread] = same + 1;
            }
            if self.lists[same as usize].rows.is_empty() {
                self.threads[thread] = 0;
                self.lists[same as usize].threads -= 1;
            }
        }
        let unused = |list: &u32| self.lists[*list as usize].threads == 0;
        let unused: Vec<u32> = (0..self.lists.len() as u32).filter(unused).collect();
        self.free.clear();
        for list in unused {
            self.forget(list);
            self.release(list);
        }
    }
}

/// The hash of a list with one more row.
fn with_row(list: u64, row: u64) -> u64 {
    (list.rotate_left(5) ^ row).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Every row of every thread; see [`ThreadRows::iter`].
#[derive(Clone)]
pub struct Iter<'a, T> {
    all: &'a ThreadRows<T>,
    thread: usize,
    at: usize,
}

impl<T> std::fmt::Debug for Iter<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Iter").field("thread", &self.thread).field("at", &self.at).finish_non_exhaustive()
    }
}

impl<T: OfThread> Iterator for Iter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        loop {
            let list = self.all.threads.get(self.thread)?;
            let rows = list.checked_sub(1).map_or(&[][..], |list| &self.all.lists[list as usize].rows);
            if let Some(row) = rows.get(self.at) {
                self.at += 1;
                return Some(row.with_thread(ThreadId::from_usize(self.thread)));
            }
            (self.thread, self.at) = (self.thread + 1, 0);
        }
    }
}

impl<'a, T: OfThread> IntoIterator for &'a ThreadRows<T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<T: OfThread> Extend<T> for ThreadRows<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, rows: I) {
        rows.into_iter().for_each(|row| self.push(row));
    }
}

impl<T: OfThread> FromIterator<T> for ThreadRows<T> {
    fn from_iter<I: IntoIterator<Item = T>>(rows: I) -> Self {
        let mut all = Self::default();
        all.extend(rows);
        all.close();
        all
    }
}

impl<T: OfThread> From<Vec<T>> for ThreadRows<T> {
    fn from(rows: Vec<T>) -> Self {
        rows.into_iter().collect()
    }
}

impl<T: OfThread, const N: usize> From<[T; N]> for ThreadRows<T> {
    fn from(rows: [T; N]) -> Self {
        rows.into_iter().collect()
    }
}

impl<T: OfThread + std::fmt::Debug> std::fmt::Debug for ThreadRows<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

/// Equal when every thread has the same rows in the same order.
impl<T: OfThread> PartialEq for ThreadRows<T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BlockExecutions, BlockId};

    fn row(thread: u32, block: u32, executions: u64) -> BlockExecutions {
        BlockExecutions { thread: ThreadId::new(thread), block: BlockId::new(block), executions }
    }

    /// The rows, and how many lists they lie in.
    fn check(rows: &ThreadRows<BlockExecutions>, expected: &[BlockExecutions], lists: usize) {
        assert_eq!(rows.iter().collect::<Vec<_>>(), expected);
        assert_eq!((rows.len(), rows.is_empty()), (expected.len(), expected.is_empty()));
        let sum = |rows: &mut dyn Iterator<Item = (BlockExecutions, u64)>| -> u64 {
            rows.map(|(row, times)| row.executions * times).sum()
        };
        assert_eq!(sum(&mut rows.distinct()), sum(&mut expected.iter().map(|row| (*row, 1))));
        let mut last: Vec<_> = expected.iter().map(|row| row.thread).collect();
        last.dedup();
        assert_eq!(rows.threads().collect::<Vec<_>>(), last);
        assert_eq!(rows.lists(), lists);
    }

    #[test]
    fn threads_share_rows_until_one_of_them_has_more() {
        let mut rows: ThreadRows<_> =
            vec![row(0, 1, 5), row(0, 2, 6), row(3, 1, 5), row(3, 2, 6), row(1, 1, 5), row(1, 2, 7)].into();
        rows.push(row(2, 9, 9));
        let mut expected = vec![
            row(0, 1, 5),
            row(0, 2, 6),
            row(1, 1, 5),
            row(1, 2, 7),
            row(2, 9, 9),
            row(3, 1, 5),
            row(3, 2, 6),
        ];
        check(&rows, &expected, 3);
        rows.push(row(3, 3, 1));
        expected.push(row(3, 3, 1));
        check(&rows, &expected, 4);
        rows.push(row(0, 3, 1));
        expected.insert(2, row(0, 3, 1));
        check(&rows, &expected, 4);
        rows.rewrite(|rows| rows.iter_mut().for_each(|row| row.executions = 2));
        expected.iter_mut().for_each(|row| row.executions = 2);
        check(&rows, &expected, 3);
        rows.retain(|row| row.block == BlockId::new(9));
        check(&rows, &[row(2, 9, 2)], 1);
    }

    #[test]
    fn rows_are_set_and_appended_to_threads() {
        let thread = |thread: u32| ThreadId::new(thread);
        let mut rows: ThreadRows<_> = vec![row(0, 1, 5), row(1, 1, 5), row(2, 4, 4)].into();
        rows.set(&[thread(1), thread(2)], vec![row(7, 3, 3)]);
        check(&rows, &[row(0, 1, 5), row(1, 3, 3), row(2, 3, 3)], 2);
        rows.set(&[thread(0)], Vec::new());
        check(&rows, &[row(1, 3, 3), row(2, 3, 3)], 1);
        let from = rows.clone();
        // Thread 1 is here already, and the other one is new.
        rows.append(&from, |old| Some(thread(old.raw() * 2 - 1)), |row| row);
        check(&rows, &[row(1, 3, 3), row(1, 3, 3), row(2, 3, 3), row(3, 3, 3)], 2);
        rows.append(&from, |_| None, |row| row);
        rows.append(&from, |old| Some(thread(old.raw() + 9)), |row| BlockExecutions { executions: 8, ..row });
        assert_eq!((rows.lists(), rows.len()), (3, 6));
        assert_eq!(rows.of(thread(10)).collect::<Vec<_>>(), [row(10, 3, 8)]);
        rows.clear();
        check(&rows, &[], 0);
    }

    #[test]
    fn threads_that_take_turns_are_not_compared_each_time() {
        let turns = (0..200_000).map(|turn| row(turn % 2, turn / 2, 1));
        let mut rows: ThreadRows<_> = turns.collect();
        assert_eq!((rows.len(), rows.lists()), (200_000, 2));
        rows.rewrite(|_| {});
        assert_eq!((rows.len(), rows.lists()), (200_000, 1));
    }
}
