//! Batches as files of the tables.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;

use crate::store::{Error, Part, Tables, hash, make_folder, system};
use crate::tables::Batch;

impl Tables {
    /// Writes some runs of a day, and reads the files back. Nothing refers to them before [`publish`](Self::publish).
    ///
    /// # Errors
    /// A file cannot be written, or is not read back as it was written.
    pub fn write(&self, day: &str, batch: Batch) -> Result<Part, Error> {
        let mut runs: Vec<String> = batch.names().map(str::to_owned).collect();
        runs.sort();
        let mut files = BTreeMap::new();
        for table in batch.tables() {
            let wrong = |source| Error::Parquet { table: table.name, source };
            let mut content = Vec::new();
            table.write(&mut content).map_err(wrong)?;
            let name = self.put(table.name, day, &content)?;
            let path = self.path(table.name, day, &name);
            let written = std::fs::read(&path).map_err(system("read", &path))?;
            table.check(written).map_err(wrong)?;
            files.insert(table.name.to_owned(), name);
        }
        Ok(Part { day: day.to_owned(), runs, files })
    }

    /// Keeps some content under its own hash.
    fn put(&self, table: &str, day: &str, content: &[u8]) -> Result<String, Error> {
        let name = hash(content);
        let path = self.path(table, day, &name);
        let folder = self.folder.join(table);
        make_folder(&folder).map_err(system("make", &folder))?;
        let written = self.new_file().and_then(|mut file| {
            file.write_all(content)?;
            file.as_file().sync_all()?;
            file.persist(&path)?;
            File::open(&folder)?.sync_all()
        });
        written.map_err(system("write", &path))?;
        Ok(name)
    }
}
