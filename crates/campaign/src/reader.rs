//! A finished run, read piece by piece: one problem's rows at a time, its evaluations one by one, so that a run of any
//! size needs the memory of its largest problem.

use std::fs;
use std::path::{Path, PathBuf};

use assay_judge::EvaluationEnd;
use assay_measure::{CheckVerdict, KillMatrix, Protocol, Summary};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde_json::Value;

use crate::CampaignError;
use crate::records::SourceRow;
use crate::store::{CheckKey, EvaluationKey, EvaluationRow, MutantRow, PROTOCOLS, Store, sql};

/// An open run. Everything is read as it stood when it was opened.
pub struct RunReader {
    /// `summary.json`, of a finished run.
    summary: Option<Summary>,
    /// What the run was made of and by; null where it states nothing.
    pub manifest: Value,
    connection: Connection,
    database: PathBuf,
}

impl RunReader {
    /// Opens a finished run for reading.
    ///
    /// # Errors
    /// `BadRun` where the folder holds no run, one of another version, or one that was not finished.
    pub fn open(folder: &Path) -> Result<RunReader, CampaignError> {
        RunReader::with(folder, || summary(folder).map(Some))
    }

    /// Opens a run for reading whether it is finished or not, without its summary.
    ///
    /// # Errors
    /// `BadRun` where the folder holds no run, or one of another version.
    pub(crate) fn begun(folder: &Path) -> Result<RunReader, CampaignError> {
        RunReader::with(folder, || Ok(None))
    }

    fn with(
        folder: &Path,
        summary: impl FnOnce() -> Result<Option<Summary>, CampaignError>,
    ) -> Result<RunReader, CampaignError> {
        let connection = Store::read(folder)?;
        let database = folder.join("run.db");
        // One transaction, so that an audit resumed meanwhile changes nothing here.
        connection.execute_batch("BEGIN").map_err(|e| sql(&database, &e))?;
        let summary = summary()?;
        let json: Option<String> = connection
            .query_row("SELECT value FROM meta WHERE key = 'manifest'", [], |r| r.get(0))
            .optional()
            .map_err(|e| sql(&database, &e))?;
        // A run of the tests alone has no manifest; every audit writes one before anything else.
        let manifest = json.and_then(|t| serde_json::from_str(&t).ok()).unwrap_or(Value::Null);
        Ok(RunReader { summary, manifest, connection, database })
    }

    /// `summary.json`.
    ///
    /// # Errors
    /// `BadRun` where the run was opened unfinished.
    pub fn summary(&self) -> Result<&Summary, CampaignError> {
        self.summary.as_ref().ok_or_else(|| self.bad("the run is not finished".to_owned()))
    }

    /// Evaluations that the database holds.
    ///
    /// # Errors
    /// `BadRun` where the database cannot be read.
    pub(crate) fn evaluated(&self) -> Result<u64, CampaignError> {
        self.connection
            .query_row("SELECT COUNT(*) FROM evaluations", [], |r| r.get::<_, i64>(0))
            .map(i64::cast_unsigned)
            .map_err(|e| sql(&self.database, &e))
    }

    /// The database, for messages.
    pub fn database(&self) -> &Path {
        &self.database
    }

    /// What is wrong with the database, as an error.
    pub fn bad(&self, what: impl Into<String>) -> CampaignError {
        CampaignError::BadRun { path: self.database.clone(), what: what.into() }
    }

    fn rows<T>(
        &self,
        query: &str,
        parameters: impl rusqlite::Params,
        row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, CampaignError> {
        let read = || -> rusqlite::Result<Vec<T>> {
            self.connection.prepare_cached(query)?.query_map(parameters, row)?.collect()
        };
        read().map_err(|e| sql(&self.database, &e))
    }

    /// The protocols that were scored, the headline's first.
    ///
    /// # Errors
    /// `BadRun` where the database cannot be read or states none.
    pub fn protocols(&self) -> Result<Vec<Protocol>, CampaignError> {
        let json: Option<String> = self
            .connection
            .query_row("SELECT value FROM meta WHERE key = ?1", [PROTOCOLS], |r| r.get(0))
            .optional()
            .map_err(|e| sql(&self.database, &e))?;
        let json = json.ok_or_else(|| self.bad("the run states no protocols; start a new run with --out"))?;
        let texts: Vec<String> =
            serde_json::from_str(&json).map_err(|e| self.bad(format!("its protocols: {e}")))?;
        texts.iter().map(|t| Protocol::parse(t, "run.db").map_err(|e| self.bad(e.to_string()))).collect()
    }

    /// Seed of the run.
    pub fn seed(&self) -> u64 {
        self.manifest.get("seed").and_then(Value::as_u64).unwrap_or(0)
    }

    /// Every problem that the database has mutants, inputs or evaluations of: those whose baseline failed too. In the
    /// order of their level and number; keys of another form come last.
    ///
    /// # Errors
    /// `BadRun` where the database cannot be read.
    pub fn problems(&self) -> Result<Vec<String>, CampaignError> {
        let mut keys: Vec<String> = self.rows(
            "SELECT problem FROM matrices UNION SELECT problem FROM mutants UNION SELECT problem FROM inputs
             UNION SELECT problem FROM evaluations",
            [],
            |r| r.get(0),
        )?;
        let place = |key: &str| -> Option<(u32, u32)> {
            let (level, id) = key.split_once('/')?;
            Some((level.parse().ok()?, id.parse().ok()?))
        };
        keys.sort_by_key(|k| (place(k).unwrap_or((u32::MAX, u32::MAX)), k.clone()));
        Ok(keys)
    }

    fn matrix_of(&self, problem: &str, json: &str) -> Result<KillMatrix, CampaignError> {
        let bad = |what: String| self.bad(format!("the matrix of `{problem}`: {what}"));
        serde_json::from_str(json).map_err(|e| bad(e.to_string()))
    }

    /// The kill matrix of a problem; none where its baseline failed.
    ///
    /// # Errors
    /// `BadRun` where the database cannot be read, or the matrix is none, is another problem's or contradicts itself.
    pub fn matrix(&self, problem: &str) -> Result<Option<KillMatrix>, CampaignError> {
        let json: Option<String> = self
            .connection
            .query_row("SELECT matrix FROM matrices WHERE problem = ?1", [problem], |r| r.get(0))
            .optional()
            .map_err(|e| sql(&self.database, &e))?;
        let Some(json) = json else { return Ok(None) };
        let matrix = self.matrix_of(problem, &json)?;
        if matrix.key() != problem {
            return Err(self.bad(format!("the matrix of `{problem}` is one of `{}`", matrix.key())));
        }
        matrix.validate().map_err(|e| self.bad(e.to_string()))?;
        Ok(Some(matrix))
    }

    /// Every kill matrix with its key.
    ///
    /// # Errors
    /// `BadRun` where the database cannot be read.
    pub fn matrices(&self) -> Result<Vec<(String, KillMatrix)>, CampaignError> {
        let rows: Vec<(String, String)> =
            self.rows("SELECT problem, matrix FROM matrices", [], |r| Ok((r.get(0)?, r.get(1)?)))?;
        rows.into_iter()
            .map(|(problem, json)| {
                let m = self.matrix_of(&problem, &json)?;
                Ok((problem, m))
            })
            .collect()
    }

    /// The mutants of a problem, by line and then by id.
    ///
    /// # Errors
    /// `BadRun` where the database cannot be read.
    pub fn mutants(&self, problem: &str) -> Result<Vec<MutantRow>, CampaignError> {
        let query = format!("{MUTANTS} WHERE problem = ?1 ORDER BY line, id");
        self.rows(&query, [problem], |r| Ok(mutant(r)?.1))
    }

    /// Every mutant with its problem, by problem, line and id.
    ///
    /// # Errors
    /// `BadRun` where the database cannot be read.
    pub fn all_mutants(&self) -> Result<Vec<(String, MutantRow)>, CampaignError> {
        self.rows(&format!("{MUTANTS} ORDER BY problem, line, id"), [], mutant)
    }

    /// The source files of a problem.
    ///
    /// # Errors
    /// `BadRun` where the database cannot be read.
    pub fn sources(&self, problem: &str) -> Result<Vec<SourceRow>, CampaignError> {
        self.rows(&format!("{SOURCES} WHERE problem = ?1 ORDER BY path"), [problem], source)
    }

    /// Every source file.
    ///
    /// # Errors
    /// `BadRun` where the database cannot be read.
    pub fn all_sources(&self) -> Result<Vec<SourceRow>, CampaignError> {
        self.rows(&format!("{SOURCES} ORDER BY problem, path"), [], source)
    }

    /// Hands over every evaluation of a problem, by mutant, recipe, schedule and seed, one at a time.
    ///
    /// # Errors
    /// `BadRun` where the database cannot be read or an evaluation ends as none does; what `each` returns.
    pub fn each_evaluation<E: From<CampaignError>>(
        &self,
        problem: &str,
        mut each: impl FnMut(EvaluationKey, EvaluationRow) -> Result<(), E>,
    ) -> Result<(), E> {
        let fault = |e: rusqlite::Error| E::from(sql(&self.database, &e));
        let mut q = self.connection.prepare_cached(EVALUATIONS).map_err(fault)?;
        let mut rows = q.query([problem]).map_err(fault)?;
        while let Some(r) = rows.next().map_err(fault)? {
            let (key, row) = evaluation(r).map_err(fault)?;
            if EvaluationEnd::from_name(&row.end).is_none() {
                return Err(self.bad(format!("no evaluation ends as `{}`", row.end)).into());
            }
            each(key, row)?;
        }
        Ok(())
    }

    /// The verdicts of external checkers on a problem, with what they said where they failed; none in a database of
    /// version 1.
    ///
    /// # Errors
    /// `BadRun` where the database cannot be read or holds a verdict of another version.
    pub fn checks(&self, problem: &str) -> Result<Vec<(CheckKey, CheckVerdict, String)>, CampaignError> {
        let tables: i64 = self
            .connection
            .query_row(
                "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'checks'",
                [],
                |r| r.get(0),
            )
            .map_err(|e| sql(&self.database, &e))?;
        if tables == 0 {
            return Ok(Vec::new());
        }
        let rows = self.rows(CHECKS, params![problem], check)?;
        rows.into_iter()
            .map(|(key, verdict, note)| {
                let verdict = CheckVerdict::from_name(&verdict)
                    .ok_or_else(|| self.bad(format!("`{verdict}` is no verdict of a checker")))?;
                Ok((key, verdict, note))
            })
            .collect()
    }
}

/// Every verdict of external checkers on a problem; a row is read by [`check`].
pub(crate) const CHECKS: &str =
    "SELECT checker, subject, recipe, seed, verdict, note FROM checks WHERE problem = ?1
     ORDER BY checker, subject, recipe, seed";

/// A row of [`CHECKS`]: its key, the verdict's name, and what was said.
pub(crate) fn check(r: &Row<'_>) -> rusqlite::Result<(CheckKey, String, String)> {
    let key = CheckKey {
        checker: r.get(0)?,
        subject: r.get(1)?,
        recipe: r.get(2)?,
        seed: r.get::<_, i64>(3)?.cast_unsigned(),
    };
    Ok((key, r.get(4)?, r.get(5)?))
}

const MUTANTS: &str =
    "SELECT problem, id, rule, family, host, line, name, diff, status, reason, identity FROM mutants";

const SOURCES: &str = "SELECT problem, path, text FROM sources";

/// The order is the primary key's, so SQLite sorts nothing.
pub(crate) const EVALUATIONS: &str =
    "SELECT * FROM evaluations WHERE problem = ?1 ORDER BY mutant, recipe, schedule, seed";

fn mutant(r: &Row<'_>) -> rusqlite::Result<(String, MutantRow)> {
    let row = MutantRow {
        id: r.get(1)?,
        rule: r.get(2)?,
        family: r.get(3)?,
        host: r.get(4)?,
        line: r.get::<_, i64>(5)?.cast_unsigned(),
        name: r.get(6)?,
        diff: r.get(7)?,
        status: r.get(8)?,
        reason: r.get(9)?,
        identity: r.get(10)?,
    };
    Ok((r.get(0)?, row))
}

fn source(r: &Row<'_>) -> rusqlite::Result<SourceRow> {
    Ok(SourceRow { problem: r.get(0)?, path: r.get(1)?, text: r.get(2)? })
}

/// A row of [`EVALUATIONS`].
pub(crate) fn evaluation(r: &Row<'_>) -> rusqlite::Result<(EvaluationKey, EvaluationRow)> {
    let key = EvaluationKey {
        mutant: r.get("mutant")?,
        recipe: r.get("recipe")?,
        schedule: r.get("schedule")?,
        seed: r.get::<_, i64>("seed")?.cast_unsigned(),
    };
    // SQLite stores a NaN as NULL; infinities survive.
    let float = |n: &str| -> rusqlite::Result<f64> { Ok(r.get::<_, Option<f64>>(n)?.unwrap_or(f64::NAN)) };
    let digest = match r.get::<_, Option<i64>>("digest") {
        // Databases before version 3 have none.
        Err(rusqlite::Error::InvalidColumnName(_)) => None,
        read => read?.map(i64::cast_unsigned),
    };
    let row = EvaluationRow {
        end: r.get("end")?,
        official: float("official")?,
        truth: float("truth")?,
        max_abs: float("max_abs")?,
        max_rel: float("max_rel")?,
        at: r.get::<_, i64>("at")?.cast_unsigned(),
        instructions: r.get::<_, i64>("instructions")?.cast_unsigned(),
        note: r.get("note")?,
        digest,
    };
    Ok((key, row))
}

fn summary(folder: &Path) -> Result<Summary, CampaignError> {
    let path = folder.join("summary.json");
    let text = fs::read_to_string(&path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => CampaignError::BadRun {
            path: folder.to_owned(),
            what: format!(
                "the run is not finished (no `summary.json`); finish it with `assay audit --resume --out {}`, or see what \
                 is complete with `assay report --partial`",
                folder.display()
            ),
        },
        _ => CampaignError::BadRun { path: path.clone(), what: format!("cannot be read: {e}") },
    })?;
    serde_json::from_str(&text)
        .map_err(|e| CampaignError::BadRun { path, what: format!("not a summary of this version: {e}") })
}
