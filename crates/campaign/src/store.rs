//! The run folder and its database `run.db` (SQLite, WAL).
//!
//! Everything that was committed survives `kill -9`: one transaction holds the evaluations of one mutant.
//! What is in the database is never computed again, which is all that `--resume` needs: every stage asks the
//! store first, and every value is a function of its key.

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use assay_judge::EvaluationEnd;
use assay_measure::{CheckVerdict, KillMatrix, MatrixCell, Protocol};
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::CampaignError;

/// The version of the tables. A database of version 1, which lacks the verdicts of external checkers, or 2, which lacks
/// the digests of outputs, is read as it is
/// and migrated when it is resumed; one of any other version is refused.
pub const SCHEMA_VERSION: i64 = 3;

/// The oldest version that is read and can be migrated.
const OLDEST_VERSION: i64 = 1;

/// Key of `meta` under which the protocols stand.
pub(crate) const PROTOCOLS: &str = "protocols";

/// How one evaluation ended, and how far its outputs were from the references.
#[derive(Clone, Debug, PartialEq)]
pub struct EvaluationRow {
    /// `pass`, `mismatch`, `nonfinite`, `fault`, `exhausted` or `unsupported`, at no particular tolerance: `pass`
    /// means that outputs of the right shape and finiteness were produced.
    pub end: String,
    /// Smallest t at which atol = rtol = t passes against the float32 reference; infinite where none does.
    pub official: f64,
    /// The same against the float64 reference.
    pub truth: f64,
    /// Largest absolute error against the float64 reference.
    pub max_abs: f64,
    /// Largest relative error against the float64 reference.
    pub max_rel: f64,
    /// Row-major index of the element that sets `truth`.
    pub at: u64,
    /// Warp instructions executed.
    pub instructions: u64,
    /// What the device saw, in words; empty where it saw nothing.
    pub note: String,
    /// XXH64 of the outputs' bytes, one output after the other: equal where two versions give the same bits. None
    /// without output, and in rows of databases before version 3.
    pub digest: Option<u64>,
}

impl EvaluationRow {
    /// As a cell of the matrix.
    pub fn cell(&self) -> MatrixCell {
        let end = EvaluationEnd::from_name(&self.end).unwrap_or(EvaluationEnd::Unsupported);
        MatrixCell::new(end, self.official, self.truth)
    }
}

/// What names an evaluation: a cell of the kill matrix.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EvaluationKey {
    /// The mutant's id, or `baseline`.
    pub mutant: String,
    /// The input recipe's text.
    pub recipe: String,
    /// `hardware`, `run-ahead`, or `sanitize` for the strict sanitized run.
    pub schedule: String,
    /// Seed of the schedule and of the fill.
    pub seed: u64,
}

/// What names a run of an external checker.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CheckKey {
    /// The checker's protocol.
    pub checker: String,
    /// The mutant's id, or the name of a correct implementation.
    pub subject: String,
    /// The input recipe's text.
    pub recipe: String,
    /// Seed of the schedule and of the fill.
    pub seed: u64,
}

/// One mutant as the database keeps it.
#[derive(Clone, Debug, PartialEq)]
pub struct MutantRow {
    /// Id: a hash of file, rule, span and replacement.
    pub id: String,
    /// The rule's id.
    pub rule: String,
    /// The family's name.
    pub family: String,
    /// True where the fault is in the host launcher.
    pub host: bool,
    /// 1-based line in `kernel.cu`.
    pub line: u64,
    /// `kernel.cu:4:9: replace < with <= in softmax`.
    pub name: String,
    /// Unified diff.
    pub diff: String,
    /// `distinct`, `noncompiling`, `duplicate`, `equivalent` or `quarantined`.
    pub status: String,
    /// Why it has that status: the compiler's first error, the id that it repeats, …; of a distinct mutant without a
    /// witness, why none was found.
    pub reason: String,
    /// Identity of the compiled image with its launcher; empty where nothing was compiled.
    pub identity: String,
}

/// An open run folder; at most one process has it open for writing.
pub struct Store {
    folder: PathBuf,
    connection: Mutex<Connection>,
    /// Held for as long as the store lives; none for a store without a folder.
    _lock: Option<File>,
}

impl Store {
    /// Creates the folder and an empty database, or opens an existing one when `resume` is set.
    ///
    /// # Errors
    /// `CannotWrite`; `Busy` where another process has it; `BadRun` where the folder holds a run and `resume` is not
    /// set, where there is none to resume, or where the database is of another version.
    pub fn open(folder: &Path, resume: bool) -> Result<Store, CampaignError> {
        let database = folder.join("run.db");
        if resume && !database.exists() {
            return Err(CampaignError::BadRun {
                path: folder.to_owned(),
                what: "there is no run to resume here (no `run.db`); start it without --resume".into(),
            });
        }
        let taken = || CampaignError::BadRun {
            path: folder.to_owned(),
            what: "the folder already holds a run; add --resume to continue it, or choose another with --out"
                .into(),
        };
        if !resume && database.exists() {
            return Err(taken());
        }
        fs::create_dir_all(folder).map_err(|e| CampaignError::write(folder, e))?;
        let lock_path = folder.join("run.lock");
        let lock = File::create(&lock_path).map_err(|e| CampaignError::write(&lock_path, e))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(CampaignError::Busy { path: folder.to_owned() }),
            Err(TryLockError::Error(e)) => return Err(CampaignError::write(&lock_path, e)),
        }
        // Another process may have been faster, and finished, since the first look.
        if !resume && database.exists() {
            return Err(taken());
        }
        if !resume {
            create(folder, &database)?;
        }
        let connection = Connection::open(&database).map_err(|e| sql(&database, &e))?;
        let store =
            Store { folder: folder.to_owned(), connection: Mutex::new(connection), _lock: Some(lock) };
        if let Err(e) = store.prepare() {
            if !resume {
                // Nothing was begun: what there is of a database would only be in the way of the next attempt.
                let Store { connection, _lock, .. } = store;
                drop(connection);
                for name in ["run.db", "run.db-wal", "run.db-shm"] {
                    let _ = fs::remove_file(folder.join(name));
                }
            }
            return Err(e);
        }
        Ok(store)
    }

    /// A store that is gone with the process.
    ///
    /// # Errors
    /// `BadRun` where SQLite itself fails.
    pub fn in_memory() -> Result<Store, CampaignError> {
        let nowhere = Path::new(":memory:");
        let connection = Connection::open_in_memory().map_err(|e| sql(nowhere, &e))?;
        connection
            .execute_batch(SCHEMA)
            .and_then(|()| connection.execute_batch(CHECKS))
            .map_err(|e| sql(nowhere, &e))?;
        Ok(Store { folder: nowhere.to_owned(), connection: Mutex::new(connection), _lock: None })
    }

    /// Reads a finished or interrupted run without locking it.
    ///
    /// # Errors
    /// `BadRun` where there is no database or it is of another version.
    pub fn read(folder: &Path) -> Result<Connection, CampaignError> {
        let database = folder.join("run.db");
        if !database.is_file() {
            return Err(CampaignError::BadRun {
                path: folder.to_owned(),
                what: "not a run folder (no `run.db`)".into(),
            });
        }
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
        let connection = Connection::open_with_flags(&database, flags).map_err(|e| sql(&database, &e))?;
        check_version(&connection, &database)?;
        Ok(connection)
    }

    /// The run folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn database(&self) -> PathBuf {
        self.folder.join("run.db")
    }

    fn with<T>(&self, f: impl FnOnce(&mut Connection) -> rusqlite::Result<T>) -> Result<T, CampaignError> {
        let mut connection = self
            .connection
            .lock()
            .map_err(|_| CampaignError::Internal("the store's lock is poisoned".into()))?;
        f(&mut connection).map_err(|e| sql(&self.database(), &e))
    }

    fn prepare(&self) -> Result<(), CampaignError> {
        self.with(|c| {
            c.pragma_update(None, "journal_mode", "WAL")?;
            c.pragma_update(None, "synchronous", "NORMAL")
        })?;
        let connection = self
            .connection
            .lock()
            .map_err(|_| CampaignError::Internal("the store's lock is poisoned".into()))?;
        check_version(&connection, &self.database())?;
        drop(connection);
        // From versions 1 and 2; on a database of version 3 it changes nothing.
        self.with(|c| {
            let t = c.transaction()?;
            t.execute_batch(CHECKS)?;
            let digests: i64 = t.query_row(
                "SELECT count(*) FROM pragma_table_info('evaluations') WHERE name = 'digest'",
                [],
                |r| r.get(0),
            )?;
            if digests == 0 {
                t.execute_batch(DIGESTS)?;
            }
            t.execute(
                "UPDATE meta SET value = ?1 WHERE key = 'schema_version' AND value <> ?1",
                params![SCHEMA_VERSION.to_string()],
            )?;
            t.commit()
        })
    }

    /// A value of the `meta` table.
    ///
    /// # Errors
    /// `BadRun` where the database cannot be read.
    pub fn meta(&self, key: &str) -> Result<Option<String>, CampaignError> {
        self.with(|c| {
            c.query_row("SELECT value FROM meta WHERE key = ?1", params![key], |r| r.get(0)).optional()
        })
    }

    /// Sets a value of the `meta` table.
    ///
    /// # Errors
    /// `CannotWrite`.
    pub fn set_meta(&self, key: &str, value: &str) -> Result<(), CampaignError> {
        self.with(|c| {
            c.execute("INSERT OR REPLACE INTO meta VALUES (?1, ?2)", params![key, value]).map(|_| ())
        })
    }

    /// Writes the mutants of one problem; those already there are replaced (they are the same).
    ///
    /// # Errors
    /// `CannotWrite`.
    pub fn put_mutants(&self, problem: &str, rows: &[MutantRow]) -> Result<(), CampaignError> {
        self.with(|c| {
            let t = c.transaction()?;
            {
                let mut q =
                    t.prepare("INSERT OR REPLACE INTO mutants VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)")?;
                for r in rows {
                    let line = i64::try_from(r.line).unwrap_or(i64::MAX);
                    q.execute(params![
                        problem, r.id, r.rule, r.family, r.host, line, r.name, r.diff, r.status, r.reason,
                        r.identity
                    ])?;
                }
            }
            t.commit()
        })
    }

    /// Writes one input of a problem with its validity and the thresholds of the correct control runs.
    ///
    /// # Errors
    /// `CannotWrite`.
    pub fn put_input(
        &self,
        problem: &str,
        recipe: &str,
        origin: &str,
        validity: f64,
        controls: &[(String, f64)],
    ) -> Result<(), CampaignError> {
        self.with(|c| {
            let t = c.transaction()?;
            t.execute(
                "INSERT OR REPLACE INTO inputs VALUES (?1,?2,?3,?4)",
                params![problem, recipe, origin, validity],
            )?;
            for (name, threshold) in controls {
                t.execute(
                    "INSERT OR REPLACE INTO controls VALUES (?1,?2,?3,?4)",
                    params![problem, recipe, name, threshold],
                )?;
            }
            t.commit()
        })
    }

    /// Commits evaluations of one problem, all or none.
    ///
    /// # Errors
    /// `CannotWrite`.
    pub fn put_evaluations(
        &self,
        problem: &str,
        rows: &[(EvaluationKey, EvaluationRow)],
    ) -> Result<(), CampaignError> {
        if rows.is_empty() {
            return Ok(());
        }
        self.with(|c| {
            let t = c.transaction()?;
            {
                let mut q = t.prepare_cached(
                    "INSERT OR REPLACE INTO evaluations VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14)",
                )?;
                for (k, r) in rows {
                    q.execute(params![
                        problem,
                        k.mutant,
                        k.recipe,
                        k.schedule,
                        k.seed.cast_signed(),
                        r.end,
                        r.official,
                        r.truth,
                        r.max_abs,
                        r.max_rel,
                        r.at.cast_signed(),
                        r.instructions.cast_signed(),
                        r.note,
                        r.digest.map(u64::cast_signed)
                    ])?;
                }
            }
            t.commit()
        })
    }

    /// Commits verdicts of external checkers on one problem, all or none: the verdict, and what the checker said where
    /// it failed.
    ///
    /// # Errors
    /// `CannotWrite`.
    pub fn put_checks(
        &self,
        problem: &str,
        rows: &[(CheckKey, (CheckVerdict, String))],
    ) -> Result<(), CampaignError> {
        if rows.is_empty() {
            return Ok(());
        }
        self.with(|c| {
            let t = c.transaction()?;
            {
                let mut q =
                    t.prepare_cached("INSERT OR REPLACE INTO checks VALUES (?1,?2,?3,?4,?5,?6,?7)")?;
                for (k, (verdict, note)) in rows {
                    q.execute(params![
                        problem,
                        k.checker,
                        k.subject,
                        k.recipe,
                        k.seed.cast_signed(),
                        verdict.name(),
                        note
                    ])?;
                }
            }
            t.commit()
        })
    }

    /// Every verdict of external checkers on one problem.
    ///
    /// # Errors
    /// `BadRun` where the database cannot be read or holds a verdict of another version.
    pub fn checks(&self, problem: &str) -> Result<HashMap<CheckKey, (CheckVerdict, String)>, CampaignError> {
        let rows: Vec<(CheckKey, String, String)> = self.with(|c| {
            let mut q = c.prepare(crate::reader::CHECKS)?;
            let rows = q.query_map(params![problem], crate::reader::check)?;
            rows.collect()
        })?;
        rows.into_iter()
            .map(|(key, verdict, note)| {
                let verdict = CheckVerdict::from_name(&verdict).ok_or_else(|| CampaignError::BadRun {
                    path: self.database(),
                    what: format!("`{verdict}` is no verdict of a checker"),
                })?;
                Ok((key, (verdict, note)))
            })
            .collect()
    }

    /// Writes the text of one source file of a problem, for the reports that quote it.
    ///
    /// # Errors
    /// `CannotWrite`.
    pub fn put_source(&self, problem: &str, path: &str, text: &str) -> Result<(), CampaignError> {
        self.with(|c| {
            c.execute("INSERT OR REPLACE INTO sources VALUES (?1,?2,?3)", params![problem, path, text])
                .map(|_| ())
        })
    }

    /// Writes the finished kill matrix of one problem: what the summary was made of, so that reports need no stage.
    ///
    /// # Errors
    /// `CannotWrite`; `Internal` where the matrix cannot be written as JSON.
    pub fn put_matrix(&self, problem: &str, matrix: &KillMatrix) -> Result<(), CampaignError> {
        let json = serde_json::to_string(matrix).map_err(|e| CampaignError::Internal(e.to_string()))?;
        self.with(|c| {
            c.execute("INSERT OR REPLACE INTO matrices VALUES (?1,?2)", params![problem, json]).map(|_| ())
        })
    }

    /// Writes the protocols, in the order of tables, as the files that they are.
    ///
    /// # Errors
    /// `CannotWrite`.
    pub fn put_protocols(&self, protocols: &[Protocol]) -> Result<(), CampaignError> {
        let texts: Vec<String> = protocols.iter().map(Protocol::to_toml).collect();
        let json = serde_json::to_string(&texts).map_err(|e| CampaignError::Internal(e.to_string()))?;
        self.set_meta(PROTOCOLS, &json)
    }

    /// Every evaluation of one problem.
    ///
    /// # Errors
    /// `BadRun` where the database cannot be read.
    pub fn evaluations(&self, problem: &str) -> Result<HashMap<EvaluationKey, EvaluationRow>, CampaignError> {
        self.with(|c| {
            let mut q = c.prepare(crate::reader::EVALUATIONS)?;
            let rows = q.query_map(params![problem], crate::reader::evaluation)?;
            rows.collect()
        })
    }

    /// Number of evaluations committed, over all problems.
    ///
    /// # Errors
    /// `BadRun` where the database cannot be read.
    pub fn count_evaluations(&self) -> Result<u64, CampaignError> {
        self.with(|c| c.query_row("SELECT count(*) FROM evaluations", [], |r| r.get::<_, i64>(0)))
            .map(i64::cast_unsigned)
    }

    /// Writes a file of the run folder, whole or not at all.
    ///
    /// # Errors
    /// `CannotWrite`.
    pub fn write_file(&self, name: &str, bytes: &[u8]) -> Result<(), CampaignError> {
        let path = self.folder.join(name);
        assay_tensor::safetensors_io::write_file_atomic(&path, bytes)
            .map_err(|e| CampaignError::write(&path, e))
    }
}

/// Makes an empty database that appears whole or not at all, so that a kill never leaves one without its tables.
fn create(folder: &Path, database: &Path) -> Result<(), CampaignError> {
    let fresh = folder.join("run.db.new");
    let made = (|| {
        match fs::remove_file(&fresh) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(CampaignError::write(&fresh, e));
            }
            _ => {}
        }
        let mut c = Connection::open(&fresh).map_err(|e| sql(&fresh, &e))?;
        let t = c.transaction().map_err(|e| sql(&fresh, &e))?;
        t.execute_batch(SCHEMA)
            .and_then(|()| t.execute_batch(CHECKS))
            .and_then(|()| {
                t.execute(
                    "INSERT INTO meta VALUES ('schema_version', ?1)",
                    params![SCHEMA_VERSION.to_string()],
                )
            })
            .map_err(|e| sql(&fresh, &e))?;
        t.commit().map_err(|e| sql(&fresh, &e))?;
        c.close().map_err(|(_, e)| sql(&fresh, &e))?;
        fs::rename(&fresh, database).map_err(|e| CampaignError::write(database, e))
    })();
    if made.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&fresh);
        let _ = fs::remove_file(folder.join("run.db.new-journal"));
    }
    made
}

fn check_version(connection: &Connection, database: &Path) -> Result<(), CampaignError> {
    let found: Option<String> = connection
        .query_row("SELECT value FROM meta WHERE key = 'schema_version'", [], |r| r.get(0))
        .optional()
        .map_err(|e| CampaignError::BadRun {
            path: database.to_owned(),
            what: format!("not a run database ({e})"),
        })?;
    match found.as_deref().map(str::parse::<i64>) {
        Some(Ok(OLDEST_VERSION..=SCHEMA_VERSION)) => Ok(()),
        Some(Ok(other)) => Err(CampaignError::BadRun {
            path: database.to_owned(),
            what: format!(
                "run database of version {other}, this build reads version {SCHEMA_VERSION}; start a new run with --out"
            ),
        }),
        _ => Err(CampaignError::BadRun {
            path: database.to_owned(),
            what: "not a run database (it states no version)".into(),
        }),
    }
}

/// SQLite's error as ours: what the disk refuses is `CannotWrite`, what the file holds is `BadRun`.
pub(crate) fn sql(database: &Path, e: &rusqlite::Error) -> CampaignError {
    use rusqlite::ErrorCode as C;
    match e.sqlite_error_code() {
        Some(C::DiskFull | C::ReadOnly | C::SystemIoFailure | C::CannotOpen | C::PermissionDenied) => {
            CampaignError::write(database, e)
        }
        Some(C::DatabaseBusy | C::DatabaseLocked) => {
            CampaignError::Busy { path: database.parent().unwrap_or(database).to_owned() }
        }
        _ => CampaignError::BadRun { path: database.to_owned(), what: e.to_string() },
    }
}

/// What version 3 added.
const DIGESTS: &str = "ALTER TABLE evaluations ADD COLUMN digest INTEGER;";

/// What version 2 added.
const CHECKS: &str = "
CREATE TABLE IF NOT EXISTS checks (
  problem TEXT NOT NULL, checker TEXT NOT NULL, subject TEXT NOT NULL, recipe TEXT NOT NULL, seed INTEGER NOT NULL,
  verdict TEXT NOT NULL, note TEXT NOT NULL,
  PRIMARY KEY (problem, checker, subject, recipe, seed)) WITHOUT ROWID;
";

const SCHEMA: &str = "
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE mutants (
  problem TEXT NOT NULL, id TEXT NOT NULL, rule TEXT NOT NULL, family TEXT NOT NULL, host INTEGER NOT NULL,
  line INTEGER NOT NULL, name TEXT NOT NULL, diff TEXT NOT NULL, status TEXT NOT NULL, reason TEXT NOT NULL,
  identity TEXT NOT NULL, PRIMARY KEY (problem, id)) WITHOUT ROWID;
CREATE TABLE inputs (
  problem TEXT NOT NULL, recipe TEXT NOT NULL, origin TEXT NOT NULL, validity REAL,
  PRIMARY KEY (problem, recipe)) WITHOUT ROWID;
CREATE TABLE sources (
  problem TEXT NOT NULL, path TEXT NOT NULL, text TEXT NOT NULL, PRIMARY KEY (problem, path)) WITHOUT ROWID;
CREATE TABLE matrices (problem TEXT PRIMARY KEY, matrix TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE controls (
  problem TEXT NOT NULL, recipe TEXT NOT NULL, control TEXT NOT NULL, threshold REAL,
  PRIMARY KEY (problem, recipe, control)) WITHOUT ROWID;
CREATE TABLE evaluations (
  problem TEXT NOT NULL, mutant TEXT NOT NULL, recipe TEXT NOT NULL, schedule TEXT NOT NULL, seed INTEGER NOT NULL,
  end TEXT NOT NULL, official REAL, truth REAL, max_abs REAL, max_rel REAL, at INTEGER NOT NULL,
  instructions INTEGER NOT NULL, note TEXT NOT NULL, digest INTEGER,
  PRIMARY KEY (problem, mutant, recipe, schedule, seed)) WITHOUT ROWID;
";

#[cfg(test)]
mod tests {
    use super::*;

    fn row(end: &str, t: f64) -> EvaluationRow {
        EvaluationRow {
            end: end.into(),
            official: t,
            truth: t,
            max_abs: 0.5,
            max_rel: f64::INFINITY,
            at: 3,
            instructions: 9,
            note: String::new(),
            digest: Some(u64::MAX - 1),
        }
    }

    fn key(m: &str) -> EvaluationKey {
        EvaluationKey {
            mutant: m.into(),
            recipe: "official#0".into(),
            schedule: "hardware".into(),
            seed: u64::MAX,
        }
    }

    #[test]
    fn evaluations_come_back_as_they_were_put_infinities_too() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("run");
        let store = Store::open(&run, false).unwrap();
        let rows = [(key("a"), row("pass", 0.25)), (key("b"), row("fault", f64::INFINITY))];
        store.put_evaluations("level1/19_relu", &rows).unwrap();
        drop(store);
        let store = Store::open(&run, true).unwrap();
        let back = store.evaluations("level1/19_relu").unwrap();
        assert_eq!(back.len(), 2);
        for (k, r) in &rows {
            assert_eq!(&back[k], r);
        }
        assert_eq!(store.count_evaluations().unwrap(), 2);
    }

    #[test]
    fn a_second_process_is_refused_while_the_first_has_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("run");
        let _first = Store::open(&run, false).unwrap();
        assert!(matches!(Store::open(&run, true), Err(CampaignError::Busy { .. })));
    }

    #[test]
    fn an_existing_run_is_not_overwritten_and_a_missing_one_not_resumed() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("run");
        assert!(matches!(Store::open(&run, true), Err(CampaignError::BadRun { .. })));
        assert!(!run.exists(), "a refused resume leaves nothing behind");
        drop(Store::open(&run, false).unwrap());
        assert!(matches!(Store::open(&run, false), Err(CampaignError::BadRun { .. })));
    }

    #[test]
    fn a_database_of_another_version_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("run");
        let store = Store::open(&run, false).unwrap();
        store.set_meta("schema_version", "999").unwrap();
        drop(store);
        let e = Store::open(&run, true).err().unwrap().to_string();
        assert!(e.contains("version 999"), "{e}");
        let e = Store::read(&run).err().unwrap().to_string();
        assert!(e.contains("version 999"), "{e}");
    }

    #[test]
    fn a_database_of_version_one_is_read_and_migrated_when_it_is_resumed() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("run");
        fs::create_dir(&run).unwrap();
        {
            let c = Connection::open(run.join("run.db")).unwrap();
            c.execute_batch(&SCHEMA.replace(" digest INTEGER,", "")).unwrap();
            c.execute(
                "INSERT INTO evaluations VALUES ('level1/1_x','m','official#0','hardware',0,'pass',0,0,0,0,0,7,'')",
                [],
            )
            .unwrap();
            c.execute("INSERT INTO meta VALUES ('schema_version', '1'), ('kept', 'yes')", []).unwrap();
        }
        assert!(Store::read(&run).is_ok());
        let store = Store::open(&run, true).unwrap();
        assert_eq!(store.meta("schema_version").unwrap().as_deref(), Some("3"));
        let old: Vec<EvaluationRow> = store.evaluations("level1/1_x").unwrap().into_values().collect();
        assert_eq!((old.len(), old[0].instructions, old[0].digest), (1, 7, None));
        store.put_evaluations("level1/1_x", &[(self::key("new"), row("pass", 0.5))]).unwrap();
        assert_eq!(store.evaluations("level1/1_x").unwrap()[&self::key("new")], row("pass", 0.5));
        assert_eq!(store.meta("kept").unwrap().as_deref(), Some("yes"));
        let key = |subject: &str, seed: u64| CheckKey {
            checker: "checker".into(),
            subject: subject.into(),
            recipe: "official#0".into(),
            seed,
        };
        let rows = [
            (key("m", 0), (CheckVerdict::Rejects, String::new())),
            (key("m", 1), (CheckVerdict::TimedOut, "no end".to_owned())),
            (key("plain-kernel", 0), (CheckVerdict::Accepts, String::new())),
        ];
        store.put_checks("level1/1_x", &rows).unwrap();
        drop(store);
        let store = Store::open(&run, true).unwrap();
        assert_eq!(store.checks("level1/1_x").unwrap(), rows.into_iter().collect());
        assert!(store.checks("level1/2_x").unwrap().is_empty());
    }

    #[test]
    fn a_file_that_is_no_database_is_a_bad_run() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("run.db"), "not a database, but long enough to be read as a header of one")
            .unwrap();
        assert!(matches!(Store::read(dir.path()), Err(CampaignError::BadRun { .. })));
        assert!(matches!(Store::open(dir.path(), true), Err(CampaignError::BadRun { .. })));
    }

    #[test]
    fn an_unwritable_place_is_cannot_write() {
        assert!(matches!(
            Store::open(Path::new("/proc/assay-run"), false),
            Err(CampaignError::CannotWrite { .. })
        ));
    }
}
