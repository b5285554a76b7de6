//! A finished run as its folder keeps it, for reports and suites: reads only, computes nothing.

use std::path::Path;

use assay_measure::{
    Environment, FailedBaseline, KillMatrix, Protocol, Summary, SummaryInput, Timing, own_caveats, summarise,
};
use serde_json::Value;

use crate::CampaignError;
use crate::audit::{RESAMPLES, canonical, catalogue};
use crate::reader::RunReader;
use crate::store::MutantRow;

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
    /// Seed of the run.
    pub seed: u64,
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
        let read = RunReader::open(folder)?;
        let mut matrices = read.matrices()?;
        let summary = read.summary()?.clone();
        let place = |m: &KillMatrix| summary.problems.iter().position(|p| p.problem == m.key());
        matrices.sort_by_key(|(key, m)| (place(m).unwrap_or(usize::MAX), key.clone()));
        Ok(Records {
            protocols: read.protocols()?,
            mutants: read.all_mutants()?,
            sources: read.all_sources()?,
            seed: read.seed(),
            matrices,
            summary,
        })
    }
}

impl Records {
    /// As [`Records::read`], of a run that may be unfinished: then the summary is of the problems whose kill matrices are
    /// stored whole, and its first caveat says which are not. What only the end of a run knows (failed baselines, times)
    /// is absent.
    ///
    /// # Errors
    /// `BadRun` where the folder holds no run, one of another version, or one without a complete problem.
    pub fn read_partial(folder: &Path) -> Result<Records, CampaignError> {
        if folder.join("summary.json").is_file() {
            return Records::read(folder);
        }
        let read = RunReader::begun(folder)?;
        let mut named = read.matrices()?;
        named.sort_by_key(|(_, m)| (m.level, m.id));
        let matrices: Vec<KillMatrix> = named.iter().map(|(_, m)| m.clone()).collect();
        let asked: Vec<String> = read
            .manifest
            .get("problems")
            .and_then(Value::as_object)
            .map_or_else(Vec::new, |all| all.keys().cloned().collect());
        let mut missing: Vec<String> =
            asked.iter().filter(|key| !matrices.iter().any(|m| m.key() == **key)).cloned().collect();
        let place = |key: &str| -> Option<(u32, u32)> {
            let (level, id) = key.split_once('/')?;
            Some((level.parse().ok()?, id.parse().ok()?))
        };
        missing.sort_by_key(|k| (place(k).unwrap_or((u32::MAX, u32::MAX)), k.clone()));
        if matrices.is_empty() {
            return Err(read.bad(format!(
                "no problem is complete; go on with `assay audit --resume --out {}`",
                folder.display()
            )));
        }
        let protocols = read.protocols()?;
        let mut caveats = vec![format!(
            "The run is not finished: {} of {} problems are complete and are all that this is about; not complete, or without a \
             baseline that passes: {}. Times are not known.",
            matrices.len(),
            asked.len().max(matrices.len()),
            missing.join(", ")
        )];
        caveats.extend(crate::audit::own_files(&read.manifest["oracle"]));
        let summary = summarise(SummaryInput {
            matrices: &matrices,
            protocols: &protocols,
            rules: &catalogue(),
            baselines_failed: &[],
            timing: Timing { evaluations: read.evaluated()?, ..Timing::default() },
            environment: Environment::new(),
            caveats,
            seed: read.seed(),
            resamples: RESAMPLES,
        })
        .map_err(|e| CampaignError::Input(e.to_string()))?;
        Ok(Records {
            protocols,
            mutants: read.all_mutants()?,
            sources: read.all_sources()?,
            seed: read.seed(),
            matrices: named,
            summary,
        })
    }

    /// What these protocols detect, from the thresholds that the run stores: nothing is executed, and the figures are
    /// those that an audit with them would give. The first is the headline's.
    ///
    /// # Errors
    /// `BadRun` where a protocol asks an input, or an external checker, that the run did not; `Input` where a recipe is
    /// none.
    pub fn rescore(&self, folder: &Path, protocols: &[Protocol]) -> Result<Summary, CampaignError> {
        let matrices: Vec<KillMatrix> = self.matrices.iter().map(|(_, m)| m.clone()).collect();
        let protocols: Vec<Protocol> = protocols.iter().map(canonical).collect::<Result<_, _>>()?;
        let lacks = |what: String| CampaignError::BadRun {
            path: folder.to_owned(),
            what: format!("{what}; start an audit with it: `assay audit --protocol …`"),
        };
        for p in &protocols {
            for matrix in matrices.iter().filter(|m| !m.unrefereeable) {
                let targeted: Vec<String> =
                    matrix.inputs.iter().filter(|i| i.targeted).map(|i| i.recipe.clone()).collect();
                let asked = p.recipes(&matrix.key(), &targeted, |_| Vec::new());
                if let Some(recipe) = asked.iter().find(|r| matrix.input(r).is_none()) {
                    return Err(lacks(format!(
                        "`{}` asks `{recipe}` of {}, which this run did not evaluate",
                        p.name,
                        matrix.key()
                    )));
                }
                let known = matrix.checkers.get(&p.name).is_some_and(|runs| runs.recipes == asked);
                if p.checker.is_some() && !known {
                    return Err(lacks(format!("the checker of `{}` was not run in this audit", p.name)));
                }
            }
        }
        let old = &self.summary;
        let added = own_caveats(&self.protocols, &matrices);
        let failed: Vec<FailedBaseline> = old
            .problems
            .iter()
            .filter(|p| p.status == "baseline_failed")
            .map(|p| FailedBaseline {
                problem: p.problem.clone(),
                name: p.name.clone(),
                reason: p.reason.clone().unwrap_or_default(),
            })
            .collect();
        summarise(SummaryInput {
            matrices: &matrices,
            protocols: &protocols,
            rules: &catalogue(),
            baselines_failed: &failed,
            timing: old.timing,
            environment: old.environment.clone(),
            caveats: old.caveats.iter().filter(|c| !added.contains(c)).cloned().collect(),
            seed: self.seed,
            resamples: RESAMPLES,
        })
        .map_err(|e| CampaignError::Input(e.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use assay_measure::{Filtered, InputRow, MatrixCell, MutantRow as Scored, Origin, builtin};

    use super::*;
    use crate::store::Store;

    fn matrix(id: u32) -> KillMatrix {
        let mut m = KillMatrix::new(1, id, "made up");
        m.filtered = Filtered { generated: 1, ..Filtered::default() };
        m.inputs = vec![InputRow::new("official#0", Origin::Official, 1e-6)];
        m.mutants = vec![Scored { id: format!("m{id}"), witnessed: true, ..Scored::default() }];
        let cell = MatrixCell::new(assay_judge::EvaluationEnd::Fault, f64::INFINITY, f64::INFINITY);
        m.set_cell(0, 0, cell).unwrap();
        m
    }

    #[test]
    fn a_finished_run_reads_back_and_an_unfinished_one_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), false).unwrap();
        let protocols = builtin().unwrap();
        // As an audit would have them: not in the order of their keys.
        let matrices = [matrix(19), matrix(4)];
        for m in &matrices {
            let key = format!("level1/{}_made_up", m.id);
            store.put_matrix(&key, m).unwrap();
            store.put_source(&key, "kernel.cu", "a\nb").unwrap();
        }
        let row = |id: &str, line: u64| MutantRow {
            id: id.into(),
            rule: "r".into(),
            family: "boundary".into(),
            host: true,
            line,
            name: "kernel.cu:4:9: x".into(),
            diff: "-a\n+b".into(),
            status: "duplicate".into(),
            reason: "m2".into(),
            identity: "ff".into(),
        };
        store.put_mutants("level1/19_made_up", &[row("a", 9), row("b", 2)]).unwrap();
        store.put_protocols(&protocols).unwrap();

        let e = Records::read(dir.path()).err().unwrap();
        assert!(matches!(&e, CampaignError::BadRun { .. }) && e.to_string().contains("not finished"), "{e}");

        let manifest =
            serde_json::json!({"problems": {"1/4": {}, "1/19": {}, "2/7": {}, "1/30": {}}, "seed": 3});
        store.set_meta("manifest", &manifest.to_string()).unwrap();
        let part = Records::read_partial(dir.path()).unwrap();
        let said = &part.summary.caveats[0];
        assert!(
            said.contains("2 of 4 problems are complete") && said.contains("passes: 1/30, 2/7."),
            "{said}"
        );
        assert_eq!((part.summary.pipeline.problems, part.summary.problems.len(), part.seed), (2, 2, 3));
        assert_eq!(part.summary.pipeline.witnessed, 2);

        let summary = summarise(SummaryInput {
            matrices: &matrices,
            protocols: &protocols,
            rules: &[],
            baselines_failed: &[],
            timing: Timing::default(),
            environment: Environment::new(),
            caveats: Vec::new(),
            seed: 0,
            resamples: 10,
        })
        .unwrap();
        store.write_file("summary.json", &serde_json::to_vec(&summary).unwrap()).unwrap();
        drop(store);
        let r = Records::read(dir.path()).unwrap();
        assert_eq!((r.summary, r.protocols), (summary, protocols));
        let keys: Vec<&str> = r.matrices.iter().map(|(k, _)| k.as_str()).collect();
        assert_eq!(keys, ["level1/19_made_up", "level1/4_made_up"], "the order is the summary's");
        assert_eq!(r.matrices[0].1, matrices[0]);
        let lines: Vec<u64> = r.mutants.iter().map(|(_, m)| m.line).collect();
        assert_eq!(lines, [2, 9]);
        assert_eq!(r.mutants[1].1, row("a", 9));
        assert_eq!((r.sources.len(), r.sources[0].text.as_str()), (2, "a\nb"));

        std::fs::write(dir.path().join("summary.json"), "{}").unwrap();
        let e = Records::read(dir.path()).err().unwrap().to_string();
        assert!(e.contains("not a summary of this version"), "{e}");
    }

    #[test]
    fn a_folder_without_a_run_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(Records::read(dir.path()), Err(CampaignError::BadRun { .. })));
        assert!(matches!(Records::read_partial(dir.path()), Err(CampaignError::BadRun { .. })));
        let run = dir.path().join("run");
        let store = Store::open(&run, false).unwrap();
        store.put_protocols(&builtin().unwrap()).unwrap();
        let e = Records::read_partial(&run).err().unwrap().to_string();
        assert!(e.contains("no problem is complete"), "{e}");
    }
}
