//! One run, one problem after the other, into a folder.

use std::path::{Path, PathBuf};

use assay_campaign::store::MutantRow;
use assay_campaign::{Progress, RunReader};
use assay_measure::{
    BUDGETS, CoverOptions, Half, KillMatrix, Origin, Protocol, Scope, Suite, Tolerance, greedy_cover,
    half_of, suites,
};
use assay_report::SuiteSet;
use parquet::data_type::ByteArray;
use serde::Serialize as _;
use serde_json::{Value as Json, json};

use crate::columns::{CHECKS, CONTROLS, EVALUATIONS, INPUTS, KILL_MATRIX, MUTANTS, TABLES, VERDICTS};
use crate::folder::{MARKER, Staging};
use crate::table::{Schema, Table};
use crate::tally::{self, Scores, Tally};
use crate::witness::{Runs, Witness};
use crate::{Counted, Exported, ReleaseError, playbook, readme, taxonomy};

/// Longest name of a problem's folder.
const MOST_LETTERS: usize = 80;

/// The tables while they are written.
struct Tables {
    mutants: Table,
    inputs: Table,
    matrix: Table,
    verdicts: Table,
    controls: Table,
    evaluations: Table,
    /// Begun with the first row: few runs have an external checker.
    checks: Option<Table>,
}

impl Tables {
    fn create(stage: &mut Staging, tool: &str) -> Result<Tables, ReleaseError> {
        let mut begin = |schema: &'static Schema| Table::create(schema, stage.create(schema.file)?, tool);
        Ok(Tables {
            mutants: begin(&MUTANTS)?,
            inputs: begin(&INPUTS)?,
            matrix: begin(&KILL_MATRIX)?,
            verdicts: begin(&VERDICTS)?,
            controls: begin(&CONTROLS)?,
            evaluations: begin(&EVALUATIONS)?,
            checks: None,
        })
    }

    fn finish(self, stage: &mut Staging) -> Result<Vec<(&'static str, u64)>, ReleaseError> {
        let all = [
            (&MUTANTS, Some(self.mutants)),
            (&INPUTS, Some(self.inputs)),
            (&KILL_MATRIX, Some(self.matrix)),
            (&VERDICTS, Some(self.verdicts)),
            (&CONTROLS, Some(self.controls)),
            (&EVALUATIONS, Some(self.evaluations)),
            (&CHECKS, self.checks),
        ];
        let mut rows = Vec::new();
        for (schema, table) in all {
            let Some(table) = table else { continue };
            let (file, n) = table.finish()?;
            stage.close(file)?;
            rows.push((schema.file, n));
        }
        Ok(rows)
    }
}

/// What is written beside the tables.
struct Release<'a> {
    run: &'a RunReader,
    stage: Staging,
    tables: Tables,
    tool: &'a str,
    protocols: Vec<Protocol>,
    tally: Tally,
    /// By budget of [`BUDGETS`].
    suites: Vec<Vec<(Suite, String)>>,
    counted: Counted,
}

/// Writes the release of a run.
///
/// # Errors
/// See [`ReleaseError`].
pub fn export(
    folder: &Path,
    target: &Path,
    tool: &str,
    progress: &dyn Progress,
) -> Result<Exported, ReleaseError> {
    let run = RunReader::open(folder)?;
    let protocols = run.protocols()?;
    let problems = run.problems()?;
    let mut stage = Staging::begin(target, MARKER, crate::KIND)?;
    let tables = Tables::create(&mut stage, tool)?;
    let mut release = Release {
        run: &run,
        stage,
        tables,
        tool,
        tally: Tally::new(protocols.len()),
        protocols,
        suites: vec![Vec::new(); BUDGETS.len()],
        counted: Counted { tool: tool.to_owned(), ..Counted::default() },
    };
    progress.stage("export", problems.len() as u64);
    for key in &problems {
        release.problem(key)?;
        progress.step(1);
    }
    release.finish()
}

/// `1_square_matmul` of mutants named `1_square_matmul/kernel.cu:…`, with the number before it where it lacks one.
fn folder_of(level: u32, id: u32, mutants: &[MutantRow], name: &str) -> String {
    let of_mutants = mutants.first().and_then(|m| m.name.split_once('/')).map(|(slug, _)| slug);
    let usable = |s: &&str| {
        !s.is_empty()
            && s.len() <= MOST_LETTERS
            && s.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    };
    let slug = match of_mutants.filter(usable) {
        Some(slug) => slug.to_owned(),
        None => name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
            .take(MOST_LETTERS)
            .collect(),
    };
    let number = format!("{id}_");
    let slug = if slug.starts_with(&number) { slug } else { format!("{number}{slug}") };
    format!("problems/level{level}/{slug}")
}

impl Release<'_> {
    fn problem(&mut self, key: &str) -> Result<(), ReleaseError> {
        let run = self.run;
        let numbers =
            key.split_once('/').and_then(|(level, id)| Some((level.parse().ok()?, id.parse().ok()?)));
        let Some((level, id)): Option<(u32, u32)> = numbers else {
            return Err(run.bad(format!("`{key}` is no problem (LEVEL/ID)")).into());
        };
        let matrix = run.matrix(key)?;
        let mutants = run.mutants(key)?;
        if let Some(m) =
            mutants.iter().find(|m| m.id.is_empty() || !m.id.bytes().all(|b| b.is_ascii_hexdigit()))
        {
            return Err(run.bad(format!("`{}` is no id of a mutant", m.id)).into());
        }
        // A baseline that failed has no matrix, and its evaluations are all there is.
        let nothing = KillMatrix::new(level, id, "");
        let matrix = matrix.as_ref().unwrap_or(&nothing);
        let listed = |id: &str| mutants.iter().any(|m| m.id == id);
        if let Some(m) = matrix.mutants.iter().find(|m| !listed(&m.id)) {
            return Err(run
                .bad(format!("mutant `{}` of `{key}` is in the matrix and not in the list", m.id))
                .into());
        }
        let problem_folder = folder_of(level, id, &mutants, &matrix.name);
        let text = ByteArray::from(key);
        let mut runs = Runs::new(matrix);
        self.evaluations(key, &text, &mut runs)?;
        self.checks(key, &text)?;
        self.sources(key, &problem_folder)?;
        let scores = Scores::of(matrix, &self.protocols);
        self.mutants(&text, &problem_folder, matrix, &mutants, &runs)?;
        self.inputs(&text, matrix)?;
        self.matrix(&text, matrix, &runs, &scores)?;
        self.tally.add_generated(&mutants);
        if !matrix.unrefereeable {
            let problem =
                tally::Problem { key, name: &matrix.name, folder: &problem_folder, mutants: &mutants };
            self.tally.add(&problem, matrix, &runs, &scores);
        }
        for (budget, chosen) in BUDGETS.iter().zip(&mut self.suites) {
            let one = suites(std::slice::from_ref(matrix), &Scope::Paper, Tolerance::PAPER, Some(*budget));
            chosen.extend(one.into_iter().map(|s| (s, matrix.name.clone())));
        }
        self.counted.problems += 1;
        Ok(())
    }

    fn evaluations(&mut self, key: &str, text: &ByteArray, runs: &mut Runs<'_>) -> Result<(), ReleaseError> {
        let table = &mut self.tables.evaluations;
        let counted = &mut self.counted.evaluations;
        self.run.each_evaluation(key, |k, row| {
            runs.add(&k, &row);
            *counted += 1;
            table.row([
                text.into(),
                k.mutant.as_str().into(),
                k.recipe.as_str().into(),
                k.schedule.as_str().into(),
                k.seed.into(),
                row.end.as_str().into(),
                row.official.into(),
                row.truth.into(),
                row.max_abs.into(),
                row.max_rel.into(),
                row.at.into(),
                row.instructions.into(),
                some(&row.note).into(),
                row.digest.map(|d| format!("{d:016x}")).as_deref().into(),
            ])
        })
    }

    fn checks(&mut self, key: &str, text: &ByteArray) -> Result<(), ReleaseError> {
        for (k, verdict, note) in self.run.checks(key)? {
            if self.tables.checks.is_none() {
                self.tables.checks =
                    Some(Table::create(&CHECKS, self.stage.create(CHECKS.file)?, self.tool)?);
            }
            let Some(table) = &mut self.tables.checks else { continue };
            table.row([
                text.into(),
                k.checker.as_str().into(),
                k.subject.as_str().into(),
                k.recipe.as_str().into(),
                k.seed.into(),
                verdict.name().into(),
                some(&note).into(),
            ])?;
        }
        Ok(())
    }

    fn sources(&mut self, key: &str, folder: &str) -> Result<(), ReleaseError> {
        for source in self.run.sources(key)? {
            let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
            let sound = !source.path.starts_with('.') && source.path.chars().all(plain);
            if source.path.is_empty() || source.path.len() > MOST_LETTERS || !sound {
                return Err(self.run.bad(format!("`{}` is no name of a source file", source.path)).into());
            }
            self.stage.write(&format!("{folder}/{}", source.path), &source.text)?;
        }
        Ok(())
    }

    fn mutants(
        &mut self,
        text: &ByteArray,
        folder: &str,
        matrix: &KillMatrix,
        mutants: &[MutantRow],
        runs: &Runs<'_>,
    ) -> Result<(), ReleaseError> {
        let mut lines = String::new();
        let places: std::collections::HashMap<&str, usize> =
            matrix.mutants.iter().enumerate().map(|(k, m)| (m.id.as_str(), k)).collect();
        for m in mutants {
            let diff = format!("{folder}/mutants/{}.diff", m.id);
            self.stage.write(&diff, &m.diff)?;
            let place = places.get(m.id.as_str()).copied();
            let scored = place.map(|k| &matrix.mutants[k]);
            let witness = place.and_then(|k| runs.witness(k));
            let recipe = |w: &Witness| matrix.inputs[w.input].recipe.as_str();
            let wrong =
                place.map_or(0, |k| (0..matrix.inputs.len()).filter(|&i| runs.wrong(k, i)).count() as u64);
            let split = scored.map(|s| if half_of(&s.id) == Half::Dev { "dev" } else { "test" });
            let w = witness.as_ref();
            self.tables.mutants.row([
                text.into(),
                m.id.as_str().into(),
                m.rule.as_str().into(),
                m.family.as_str().into(),
                m.host.into(),
                m.line.into(),
                m.name.as_str().into(),
                m.status.as_str().into(),
                some(&m.reason).into(),
                some(&m.identity).into(),
                diff.as_str().into(),
                (scored.is_some() && !matrix.unrefereeable).into(),
                scored.is_some_and(|s| s.witnessed).into(),
                scored.is_some_and(|s| s.schedule_witnessed).into(),
                scored.map(|s| s.flagged).into(),
                split.into(),
                w.map(recipe).into(),
                w.map(|w| w.schedule).into(),
                w.map(|w| w.seed).into(),
                w.map(|w| w.official).into(),
                w.map(|w| w.truth).into(),
                wrong.into(),
            ])?;
            self.counted.mutants += 1;
            let Some(w) = &witness else { continue };
            let replay = match w.schedule {
                // No memory holds the input; the audit's search makes its blocks again.
                "sampled" => format!("assay audit --problems {}", matrix.key()),
                _ => playbook::replay(&matrix.key(), &m.id, recipe(w)),
            };
            if self.counted.example.is_none() {
                self.counted.example = Some(replay.clone());
            }
            self.counted.witnesses += 1;
            let line = json!({
                "mutant": m.id,
                "rule": m.rule,
                "family": m.family,
                "name": m.name,
                "diff": format!("mutants/{}.diff", m.id),
                "recipe": recipe(w),
                "schedule": w.schedule,
                "seed": w.seed,
                "tolerance": Tolerance::PAPER.atol,
                "threshold_official": number(w.official)?,
                "threshold_truth": number(w.truth)?,
                "witness_inputs": wrong,
                "replay": replay.replace('\n', " && "),
            });
            lines.push_str(&line.to_string());
            lines.push('\n');
        }
        if !lines.is_empty() {
            self.stage.write(&format!("{folder}/witnesses.jsonl"), &lines)?;
        }
        Ok(())
    }

    fn inputs(&mut self, text: &ByteArray, matrix: &KillMatrix) -> Result<(), ReleaseError> {
        let targets = Scope::Paper.targets(matrix);
        let pool: Vec<usize> = (0..matrix.inputs.len()).collect();
        let cover = greedy_cover(matrix, &targets, &pool, Tolerance::PAPER, CoverOptions::FULL);
        for (i, input) in matrix.inputs.iter().enumerate() {
            let (origin, searched) = match &input.origin {
                Origin::Official => ("official", None),
                Origin::Kbv => ("kbv", None),
                Origin::CiFuzz => ("ci_fuzz", None),
                Origin::Targeted => ("targeted", None),
                Origin::Searched { mutant } => ("searched", Some(mutant.as_str())),
                Origin::Protocol => ("protocol", None),
            };
            let kills = |m: &usize| matrix.mutants[*m].witnessed && matrix.kills(*m, i, Tolerance::PAPER);
            let killed = (0..matrix.mutants.len()).filter(kills).count() as u64;
            let rank = cover.inputs.iter().position(|&c| c == i).map(|k| k as u64 + 1);
            self.tables.inputs.row([
                text.into(),
                input.recipe.as_str().into(),
                origin.into(),
                searched.into(),
                input.targeted.into(),
                input.official_shape.into(),
                input.validity.threshold.into(),
                input.is_valid(Tolerance::PAPER).into(),
                killed.into(),
                rank.into(),
            ])?;
            for c in &input.controls {
                self.tables.controls.row([
                    text.into(),
                    input.recipe.as_str().into(),
                    c.control.as_str().into(),
                    c.end.name().into(),
                    c.official.threshold.into(),
                    c.rejected_by(Tolerance::PAPER).filter(|_| c.end.is_decided()).into(),
                ])?;
            }
        }
        Ok(())
    }

    fn matrix(
        &mut self,
        text: &ByteArray,
        matrix: &KillMatrix,
        runs: &Runs<'_>,
        scores: &Scores<'_>,
    ) -> Result<(), ReleaseError> {
        let recipes: Vec<ByteArray> =
            matrix.inputs.iter().map(|i| ByteArray::from(i.recipe.as_str())).collect();
        for (m, row) in matrix.mutants.iter().enumerate() {
            let id = ByteArray::from(row.id.as_str());
            for (i, recipe) in recipes.iter().enumerate() {
                let Some(cell) = matrix.cell(m, i) else { continue };
                let c = runs.cell(m, i);
                self.tables.matrix.row([
                    text.into(),
                    (&id).into(),
                    recipe.into(),
                    cell.end.name().into(),
                    cell.official.threshold.into(),
                    cell.truth.threshold.into(),
                    matrix.inputs[i].is_valid(Tolerance::PAPER).into(),
                    matrix.kills(m, i, Tolerance::PAPER).into(),
                    runs.wrong(m, i).into(),
                    c.seeds.into(),
                    c.seeds_rejected.into(),
                    c.ahead.into(),
                    c.ahead_rejected.into(),
                    runs.findings(m, i).into(),
                    c.instructions.into(),
                ])?;
                self.counted.cells += 1;
            }
            if matrix.unrefereeable {
                continue;
            }
            for (p, protocol) in self.protocols.iter().enumerate() {
                let (answer, mechanism) = scores.answer(p, m);
                self.tables.verdicts.row([
                    text.into(),
                    (&id).into(),
                    protocol.name.as_str().into(),
                    answer.name().into(),
                    mechanism.map(|w| w.phrase().replace(' ', "_")).as_deref().into(),
                ])?;
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Exported, ReleaseError> {
        let rows = self.tables.finish(&mut self.stage)?;
        let names: Vec<String> = self.protocols.iter().map(|p| p.name.clone()).collect();
        let pretty = |v: &Json| -> Result<String, ReleaseError> {
            let text = serde_json::to_string_pretty(v).map_err(|e| ReleaseError::Internal(e.to_string()))?;
            Ok(text + "\n")
        };
        let stage = &mut self.stage;
        for (budget, chosen) in BUDGETS.iter().zip(self.suites) {
            let set = SuiteSet::of(*budget, chosen);
            stage.write(&format!("suites/{}", set.file_name()), &set.toml())?;
        }
        for (k, p) in self.protocols.iter().enumerate() {
            let plain = p.name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
            let name = if plain { p.name.clone() } else { format!("protocol-{}", k + 1) };
            stage.write(&format!("protocols/{name}.toml"), &p.to_toml())?;
        }
        stage.write("taxonomy.json", &pretty(&taxonomy::json(&self.tally, &names, self.tool))?)?;
        stage.write("taxonomy.md", &taxonomy::markdown(&self.tally, &names))?;
        let mut playbooks = Vec::new();
        for family in taxonomy::families(&self.tally) {
            if playbook::has(&self.tally, &family) {
                let page = playbook::page(&self.tally, &family, &self.protocols);
                stage.write(&format!("playbook/{}", playbook::file_name(&family)), &page)?;
                playbooks.push(family);
            }
        }
        let summary =
            serde_json::to_value(self.run.summary()?).map_err(|e| ReleaseError::Internal(e.to_string()))?;
        stage.write("summary.json", &pretty(&summary)?)?;
        stage.write("manifest.json", &pretty(&self.run.manifest)?)?;
        stage.write("LICENSE-APACHE", include_str!("../../../LICENSE-APACHE"))?;
        stage.write("LICENSE-MIT", include_str!("../../../LICENSE-MIT"))?;
        stage.write(
            "README.md",
            &readme::page(self.run.summary()?, self.run, &self.counted, &rows, &playbooks),
        )?;
        let tables: serde_json::Map<String, Json> = TABLES
            .iter()
            .filter_map(|t| Some((t, rows.iter().find(|(f, _)| *f == t.file)?.1)))
            .map(|(t, n)| {
                let columns: serde_json::Map<String, Json> = t
                    .columns
                    .iter()
                    .map(|c| {
                        let about = json!({ "type": c.holds.name(), "optional": c.optional, "what": c.what });
                        (c.name.to_owned(), about)
                    })
                    .collect();
                (t.file.to_owned(), json!({ "rows": n, "row": t.row, "columns": columns }))
            })
            .collect();
        let marker = json!({
            "kind": crate::KIND,
            "format": crate::FORMAT,
            "tool": self.tool,
            "licence": crate::LICENCE,
            "tables": tables,
        });
        stage.write(MARKER, &pretty(&marker)?)?;
        let (files, bytes) = stage.size();
        let folder: PathBuf = self.stage.finish()?;
        // `SHA256SUMS` is a file as well.
        Ok(Exported { folder, files: files + 1, bytes, rows, counted: self.counted })
    }
}

/// Text that is there.
fn some(s: &str) -> Option<&str> {
    (!s.is_empty()).then_some(s)
}

/// A number for JSON; what JSON has no number for is a word.
fn number(v: f64) -> Result<Json, ReleaseError> {
    struct Word(f64);
    impl serde::Serialize for Word {
        fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
            assay_judge::serde_float::serialize(&self.0, s)
        }
    }
    Word(v).serialize(serde_json::value::Serializer).map_err(|e| ReleaseError::Internal(e.to_string()))
}
