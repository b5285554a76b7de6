//! Suites that greedy cover selected, as protocol files and as tables.

use assay_measure::{
    BudgetScore, KillMatrix, Protocol, Scope, Suite, Tolerance, budget_scores, shipped_protocol, suites,
};
use serde_json::{Value, json};

use crate::text::{Side, Table, clean, counted, cut, number, percent};

/// The suites of every problem at one budget.
#[derive(Clone, Debug)]
pub struct SuiteSet {
    /// Inputs a problem, at most.
    pub budget: u32,
    /// A suite for each refereeable problem.
    pub suites: Vec<Suite>,
    /// What they detect.
    pub score: Option<BudgetScore>,
    /// Names of the problems, beside `suites`.
    names: Vec<String>,
}

impl SuiteSet {
    /// Selects on the witnessed mutants of the paper's families at its tolerance, as the summary's figures are.
    pub fn select(matrices: &[KillMatrix], budget: u32) -> SuiteSet {
        let chosen = suites(matrices, &Scope::Paper, Tolerance::PAPER, Some(budget));
        let name = |s: &Suite| {
            matrices.iter().find(|m| m.key() == s.problem).map_or_else(String::new, |m| m.name.clone())
        };
        SuiteSet {
            budget,
            names: chosen.iter().map(name).collect(),
            score: budget_scores(matrices, &Scope::Paper, Tolerance::PAPER, &[budget]).pop(),
            suites: chosen,
        }
    }

    /// Suites that were selected one by one, each with its problem's name; what they detect together is not known here.
    pub fn of(budget: u32, chosen: Vec<(Suite, String)>) -> SuiteSet {
        let (suites, names) = chosen.into_iter().unzip();
        SuiteSet { budget, suites, score: None, names }
    }

    /// The file's name in `suites/`.
    pub fn file_name(&self) -> String {
        format!("budget-{}.toml", self.budget)
    }

    /// The suites as a protocol's file, for `--protocol FILE`.
    pub fn toml(&self) -> String {
        self.protocol().to_toml()
    }

    /// The suites as a protocol.
    pub fn protocol(&self) -> Protocol {
        let inputs = counted(u64::from(self.budget), "input");
        let base = Protocol {
            name: format!("suite-{}", self.budget),
            title: format!("{inputs} a problem, by greedy cover"),
            description: format!(
                "At most {inputs} a problem, selected on every witnessed mutant of one audit; a problem that is not \
                 listed gets what greedy cover selects in the audit that uses this file."
            ),
            source: "greedy set cover over the kill matrix of an `assay audit`".to_owned(),
            inputs: Vec::new(),
            atol: Tolerance::PAPER.atol,
            rtol: Tolerance::PAPER.rtol,
            targeted: false,
            suite_budget: Some(self.budget),
            extra_inputs: Vec::new(),
            problems: std::collections::BTreeMap::new(),
            digests: std::collections::BTreeMap::new(),
            checker: None,
            checker_seconds: None,
            published: None,
        };
        shipped_protocol(&base, &self.suites)
    }

    /// The table of `assay suite`.
    pub fn page(&self, width: usize) -> String {
        let mut out = String::new();
        let mut t = Table::new(&[
            ("Id", Side::Left),
            ("Problem", Side::Left),
            ("Input", Side::Left),
            ("killed", Side::Right),
            ("of", Side::Right),
        ]);
        for (s, name) in self.suites.iter().zip(&self.names) {
            if s.recipes.is_empty() {
                let none = if s.witnessed == 0 { "(no witnessed fault)" } else { "(no input kills any)" };
                t.row(vec![s.problem.clone(), cut(name, 24), none.into(), "0".into(), number(s.witnessed)]);
            }
            for (at, (recipe, killed)) in s.recipes.iter().zip(&s.killed).enumerate() {
                let (id, name) =
                    if at == 0 { (s.problem.clone(), cut(name, 24)) } else { (String::new(), String::new()) };
                t.row(vec![id, name, recipe.clone(), number(*killed), number(s.witnessed)]);
            }
        }
        out.push_str(&t.draw(width));
        if let Some(s) = &self.score {
            let line = format!(
                "{} a problem: {} of {} witnessed faults ({}); selected on one half, {} of the other.",
                counted(u64::from(self.budget), "input"),
                number(s.full_pool_detected),
                number(s.full_pool_witnessed),
                percent(s.full_pool_percent()),
                percent(s.held_out_percent()),
            );
            out.push('\n');
            out.push_str(&crate::text::wrap(&clean(&line), width, "", ""));
        }
        out
    }

    /// The JSON of `assay suite`.
    pub fn json(&self) -> Value {
        let problems: Vec<Value> = self
            .suites
            .iter()
            .zip(&self.names)
            .map(|(s, name)| {
                json!({ "problem": s.problem, "name": name, "recipes": s.recipes, "killed": s.killed,
                        "witnessed": s.witnessed })
            })
            .collect();
        json!({
            "budget": self.budget,
            "full_pool": self.score.and_then(|s| s.full_pool_percent()),
            "held_out": self.score.and_then(|s| s.held_out_percent()),
            "problems": problems,
        })
    }
}
