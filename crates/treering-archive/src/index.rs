//! The index: a database of summaries that only saves the time to read all manifests.
//!
//! A damaged or missing index is made again. Each row has a checksum, as the database itself does not notice changed
//! bytes within a text.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, TransactionBehavior, params};

use crate::error::Error;
use crate::id::Id;
use crate::summary::Summary;

/// Above that of an index whose rows mean the same.
const VERSION: u32 = 3;

/// How long another process may keep the index for itself.
const PATIENCE: Duration = Duration::from_secs(5);

const TABLES: &str = "
    CREATE TABLE run (id TEXT PRIMARY KEY, started INTEGER NOT NULL, summary TEXT NOT NULL, checksum TEXT NOT NULL)
        WITHOUT ROWID;
    CREATE INDEX run_started ON run (started, id);";

#[derive(Debug)]
pub(crate) struct Index {
    database: Connection,
}

/// Why an index cannot be used.
#[derive(Debug)]
pub(crate) enum Unusable {
    /// It is damaged, or of another version, and is to be made again.
    Damaged,
    /// It cannot be opened or written: another index has to do.
    Denied,
}

impl From<rusqlite::Error> for Unusable {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::Error::{
            FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, SqliteFailure,
        };
        let is_damaged = match &error {
            // An unknown table or column is `Unknown`.
            SqliteFailure(code, _) => {
                matches!(code.code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::Unknown)
            }
            FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | InvalidColumnType(..) => true,
            _ => false,
        };
        if is_damaged { Self::Damaged } else { Self::Denied }
    }
}

impl Index {
    /// Opens the index in a file, which is made if it is missing.
    pub(crate) fn open(path: &Path) -> Result<Self, Unusable> {
        Self::with(Connection::open(path)?)
    }

    /// An index in memory.
    pub(crate) fn in_memory() -> Result<Self, Unusable> {
        Self::with(Connection::open_in_memory()?)
    }

    fn with(mut database: Connection) -> Result<Self, Unusable> {
        database.busy_timeout(PATIENCE)?;
        let version =
            |database: &Connection| database.pragma_query_value(None, "user_version", |row| row.get(0));
        if version(&database)? != VERSION {
            let made = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
            // Another process may have made it by now.
            match version(&made)? {
                VERSION => {}
                0 => {
                    made.execute_batch(TABLES)?;
                    made.pragma_update(None, "user_version", VERSION)?;
                }
                _ => return Err(Unusable::Damaged),
            }
            made.commit()?;
        }
        Ok(Self { database })
    }

    /// The runs that are in it.
    pub(crate) fn runs(&self) -> Result<HashSet<Id>, Unusable> {
        let mut select = self.database.prepare("SELECT id FROM run")?;
        let ids = select.query_map([], |row| row.get::<_, String>(0))?;
        ids.map(|id| id?.parse().map_err(|_| Unusable::Damaged)).collect()
    }

    /// Adds and removes runs.
    pub(crate) fn change(&mut self, add: &[Summary], remove: &[&Id]) -> Result<(), Unusable> {
        let change = self.database.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut insert = change.prepare("INSERT OR REPLACE INTO run VALUES (?1, ?2, ?3, ?4)")?;
            for summary in add {
                let text = serde_json::to_string(summary).map_err(|_| Unusable::Denied)?;
                let started = i64::try_from(summary.started.0).unwrap_or(i64::MAX);
                insert.execute(params![summary.run.as_str(), started, text, checksum(&text)])?;
            }
            let mut delete = change.prepare("DELETE FROM run WHERE id = ?1")?;
            for id in remove {
                delete.execute([id.as_str()])?;
            }
        }
        Ok(change.commit()?)
    }

    /// The last runs, or all, the latest first.
    pub(crate) fn summaries(&self, last: Option<usize>) -> Result<Vec<Summary>, Unusable> {
        let select = "SELECT id, started, summary, checksum FROM run ORDER BY started DESC, id LIMIT ?1";
        let limit = last.and_then(|last| i64::try_from(last).ok()).unwrap_or(-1);
        let mut select = self.database.prepare(select)?;
        let mut rows = select.query([limit])?;
        let mut summaries = Vec::new();
        while let Some(row) = rows.next()? {
            let (id, started): (String, i64) = (row.get(0)?, row.get(1)?);
            let (text, sum): (String, String) = (row.get(2)?, row.get(3)?);
            if checksum(&text) != sum {
                return Err(Unusable::Damaged);
            }
            let summary: Summary = serde_json::from_str(&text).map_err(|_| Unusable::Damaged)?;
            if summary.run.as_str() != id || i64::try_from(summary.started.0).unwrap_or(i64::MAX) != started {
                return Err(Unusable::Damaged);
            }
            summaries.push(summary);
        }
        Ok(summaries)
    }
}

fn checksum(text: &str) -> String {
    Id::of(text.as_bytes()).short().to_owned()
}

impl Unusable {
    /// Removes a damaged index. Its journal goes first: beside a new index, it would be taken for one of that.
    pub(crate) fn remove(path: &Path) -> Result<(), Error> {
        for ending in ["-journal", "-wal", "-shm", ""] {
            let mut name = path.as_os_str().to_owned();
            name.push(ending);
            match std::fs::remove_file(&name) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::system("remove", name)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }
}
