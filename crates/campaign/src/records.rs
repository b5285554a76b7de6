//! A finished run as its folder keeps it, for reports and suites: reads only, computes nothing.

use std::fs;
use std::path::{Path, PathBuf};

use assay_measure::{KillMatrix, Protocol, Summary};
use rusqlite::{Connection, OptionalExtension as _};

use crate::CampaignError;
use crate::store::{MutantRow, PROTOCOLS, Store, sql};

/// What a finished run holds.
pub struct Records {
    /// `summary.json`.
    pub summary: Summary,
    /// The protocols that were scored, the headline's first.
    pub protocols: Vec<Protocol>,
    /// Kill matrices by problem (`level1/23_softmax`), in the order of the summary.
    pub matrices: Vec<(String, KillMatrix)>,
    /// Every mutant with its problem, by problem and then by line.
    pub mutants: Vec<(String, MutantRow)>,
    /// Source files.
    pub sources: Vec<SourceRow>,
}

/// A source file of a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRow {
    /// The problem, `level1/23_softmax`.
    pub problem: String,
    /// Name of the file.
    pub path: String,
    /// Its text.
    pub text: String,
}

impl Records {
    /// Reads a run folder.
    ///
    /// # Errors
    /// `BadRun` where the folder holds no run, one of another version, or one that was not finished.
    pub fn read(folder: &Path) -> Result<Records, CampaignError> {
        let connection = Store::read(folder)?;
        let summary = summary(folder)?;
        let database = folder.join("run.db");
        let read = Reader { connection, database };
        let mut matrices = read.matrices()?;
        let place = |m: &KillMatrix| summary.problems.iter().position(|p| p.problem == m.key());
        matrices.sort_by_key(|(key, m)| (place(m).unwrap_or(usize::MAX), key.clone()));
        Ok(Records {
            protocols: read.protocols()?,
            mutants: read.mutants()?,
            sources: read.sources()?,
            matrices,
            summary,
        })
    }
}

fn summary(folder: &Path) -> Result<Summary, CampaignError> {
    let path = folder.join("summary.json");
    let text = fs::read_to_string(&path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => CampaignError::BadRun {
            path: folder.to_owned(),
            what: "the run is not finished (no `summary.json`); finish it with `assay audit --resume --out` and this \
                   folder"
                .into(),
        },
        _ => CampaignError::BadRun { path: path.clone(), what: format!("cannot be read: {e}") },
    })?;
    serde_json::from_str(&text)
        .map_err(|e| CampaignError::BadRun { path, what: format!("not a summary of this version: {e}") })
}

struct Reader {
    connection: Connection,
    database: PathBuf,
}

impl Reader {
    fn bad(&self, what: String) -> CampaignError {
        CampaignError::BadRun { path: self.database.clone(), what }
    }

    fn rows<T>(
        &self,
        query: &str,
        row: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, CampaignError> {
        let read = || -> rusqlite::Result<Vec<T>> { self.connection.prepare(query)?.query_map([], row)?.collect() };
        read().map_err(|e| sql(&self.database, &e))
    }

    fn protocols(&self) -> Result<Vec<Protocol>, CampaignError> {
        let json: Option<String> = self
            .connection
            .query_row("SELECT value FROM meta WHERE key = ?1", [PROTOCOLS], |r| r.get(0))
            .optional()
            .map_err(|e| sql(&self.database, &e))?;
        let json = json.ok_or_else(|| self.bad("the run states no protocols; start a new run with --out".into()))?;
        let texts: Vec<String> = serde_json::from_str(&json).map_err(|e| self.bad(format!("its protocols: {e}")))?;
        texts.iter().map(|t| Protocol::parse(t, "run.db").map_err(|e| self.bad(e.to_string()))).collect()
    }

    fn matrices(&self) -> Result<Vec<(String, KillMatrix)>, CampaignError> {
        let rows: Vec<(String, String)> =
            self.rows("SELECT problem, matrix FROM matrices", |r| Ok((r.get(0)?, r.get(1)?)))?;
        rows.into_iter()
            .map(|(problem, json)| {
                let m = serde_json::from_str(&json).map_err(|e| self.bad(format!("the matrix of `{problem}`: {e}")))?;
                Ok((problem, m))
            })
            .collect()
    }

    fn mutants(&self) -> Result<Vec<(String, MutantRow)>, CampaignError> {
        let query = "SELECT problem, id, rule, family, host, line, name, diff, status, reason, identity FROM mutants
                     ORDER BY problem, line, id";
        self.rows(query, |r| {
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
        })
    }

    fn sources(&self) -> Result<Vec<SourceRow>, CampaignError> {
        self.rows("SELECT problem, path, text FROM sources ORDER BY problem, path", |r| {
            Ok(SourceRow { problem: r.get(0)?, path: r.get(1)?, text: r.get(2)? })
        })
    }
}
