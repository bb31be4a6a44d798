//! Chooses runs by a condition in SQL.

use rusqlite::{Connection, params};

use crate::archive::Archive;
use crate::error::Error;
use crate::id::Id;
use crate::summary::Summary;

/// The columns that a condition can name.
pub const COLUMNS: &str = "run, project, version, host, rank, day, started, collector, machine, revision, dirty, session, \
                           has_profile";

const TABLE: &str = "
    CREATE TABLE run (run TEXT, project TEXT, version TEXT, host TEXT, rank INTEGER, day TEXT, started TEXT,
        collector TEXT, machine TEXT, revision TEXT, dirty INTEGER, session TEXT, has_profile INTEGER)";

impl Archive {
    /// The runs for which a condition holds, the latest first: `project = 'lua' AND day >= '2026-11-01'`. It can name
    /// [`COLUMNS`]; days and times are in UTC.
    ///
    /// # Errors
    /// It is no condition, or the archive cannot be read.
    pub fn select(&mut self, condition: &str) -> Result<Vec<Id>, Error> {
        let summaries = self.summaries(None)?;
        let wrong = |error: rusqlite::Error| {
            let mut why = match &error {
                rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
                rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
                other => other.to_string(),
            };
            // A text without an end goes on into what stands behind the condition.
            if let Some(line) = why.find('\n') {
                why.replace_range(line.., "\"");
            }
            Error::Condition { condition: condition.to_owned(), why }
        };
        matching(&summaries, condition).map_err(wrong)
    }
}

fn matching(summaries: &[Summary], condition: &str) -> rusqlite::Result<Vec<Id>> {
    let mut database = Connection::open_in_memory()?;
    database.execute_batch(TABLE)?;
    let insert = database.transaction()?;
    {
        let mut row = insert
            .prepare("INSERT INTO run VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)")?;
        for of in summaries {
            let started = of.started.to_string();
            row.execute(params![
                of.run.as_str(),
                of.program,
                of.version,
                of.host,
                of.rank,
                started.get(..10),
                started,
                of.collector,
                of.machine,
                of.commit,
                of.dirty,
                of.session,
                of.has_profile
            ])?;
        }
    }
    insert.commit()?;
    // A newline, as the condition may end in a comment.
    let mut select =
        database.prepare(&format!("SELECT run FROM run WHERE ({condition}\n) ORDER BY started DESC, run"))?;
    let names = select.query_map([], |row| row.get::<_, String>(0))?;
    let ids = names.map(|name| name.map(|name| name.parse::<Id>().ok()));
    ids.filter_map(Result::transpose).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{Manifest, example};
    use crate::moment::Moment;

    fn archive() -> (tempfile::TempDir, Archive) {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = Archive::open(&folder.path().join("archive")).unwrap();
        for (program, rank) in [("lua", Some(0)), ("lua", Some(1)), ("it's", None)] {
            let manifest = Manifest { rank, ..example(program, 0) };
            archive.add(&manifest).unwrap();
        }
        archive.add(&Manifest { started: Moment(86_400_000_000_000), ..example("late", 0) }).unwrap();
        (folder, archive)
    }

    #[test]
    fn runs_are_chosen_by_their_columns() {
        let (_folder, mut archive) = archive();
        let mut count = |condition: &str| {
            archive.select(condition).map(|runs| runs.len()).map_err(|error| error.to_string())
        };
        assert_eq!(count("project = 'lua'"), Ok(2));
        assert_eq!(count("project = 'lua' AND rank > 0"), Ok(1));
        assert_eq!(count("rank IS NULL -- those without"), Ok(2));
        assert_eq!(count("project = 'it''s'"), Ok(1));
        assert_eq!(count("day >= '1970-01-02'"), Ok(1));
        assert_eq!(count("collector IS NULL"), Ok(4));
        assert_eq!(count("true"), Ok(4));
    }

    #[test]
    fn a_wrong_condition_is_named_and_changes_nothing() {
        let (_folder, mut archive) = archive();
        for (condition, said) in [
            ("projekt = 'lua'", "no such column: projekt"),
            ("project =", "syntax error"),
            ("true); DROP TABLE run; --", "syntax error"),
            ("project = 'lua", "unrecognized token: \"'lua\""),
        ] {
            let error = archive.select(condition).unwrap_err().to_string().to_lowercase();
            assert!(error.contains(said), "{error}");
            assert!(!error.contains("order by"), "{error}");
        }
        assert_eq!(archive.select("true").unwrap().len(), 4);
    }
}
