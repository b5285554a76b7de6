//! The index of a release.

use assay_campaign::RunReader;
use assay_measure::Summary;
use assay_report::text::{number, percent as shown, tolerance};
use serde_json::Value;

use crate::columns::TABLES;
use crate::{Counted, md};

fn word<'v>(v: &'v Value, key: &str) -> &'v str {
    v.get(key).and_then(Value::as_str).unwrap_or("unknown")
}

/// `README.md`.
pub fn page(
    s: &Summary,
    run: &RunReader,
    counted: &Counted,
    tables: &[(&'static str, u64)],
    playbooks: &[String],
) -> String {
    let p = &s.pipeline;
    let mut out = String::from("# A mutation analysis of checkers for GPU kernels\n\n");
    out.push_str(
        "Small faults were injected into correct CUDA kernels, each proved detectable by a concrete valid input, and \
         counted by which checking protocols catch them. This folder is everything that the run found: every mutant as \
         a diff, its witness, the kill matrix, and what follows from them.\n\n",
    );
    out.push_str(&format!(
        "Made by {} from a run of `assay audit` with {} (NVRTC {}, {}, seed {}, {} extents). `assay export RUN DIR` \
         writes it again, to the byte, from the run's folder.\n\n",
        md::text(&counted.tool),
        md::text(&format!("{} {}", word(&run.manifest, "tool"), word(&run.manifest, "version"))),
        md::text(word(&run.manifest, "nvrtc")),
        md::text(word(&run.manifest, "arch")),
        run.seed(),
        md::text(s.environment.get("extents").and_then(Value::as_str).unwrap_or("unknown")),
    ));
    out.push_str(&format!(
        "Licence: {}, at your option (`LICENSE-APACHE`, `LICENSE-MIT`). Kernels and problems that a user brought to the \
         run are under whatever licence they came with.\n\n",
        crate::LICENCE
    ));

    out.push_str("## In figures\n\n");
    let rows = [
        ("problems", p.problems),
        ("problems whose own kernel failed", p.baselines_failed),
        ("problems that cannot be refereed", p.unrefereeable),
        ("mutants generated", p.generated),
        ("refused by the compiler", p.noncompiling),
        ("with another mutant's image", p.duplicate_image),
        ("with the original's image", p.equivalent),
        ("distinct", p.distinct),
        ("of them quarantined", p.quarantined),
        ("of them witnessed", p.witnessed),
        ("of them witnessed under another schedule only", p.schedule_witnessed),
        ("evaluations", counted.evaluations),
        ("cells of the kill matrix", counted.cells),
    ];
    let rows: Vec<Vec<String>> = rows.iter().map(|(what, n)| vec![(*what).to_owned(), number(*n)]).collect();
    out.push_str(&md::table(&["", "number"], &rows));
    out.push('\n');
    let rows: Vec<Vec<String>> = s
        .protocols
        .iter()
        .map(|p| {
            vec![
                md::code(&p.name),
                number(p.inputs),
                tolerance(p.atol, p.rtol),
                format!("{} of {}", number(p.detected), number(p.witnessed)),
                shown(p.detected_percent),
                number(p.false_kills),
            ]
        })
        .collect();
    let header = ["Protocol", "inputs", "tolerance", "detected", "share", "false kills"];
    out.push_str(&md::table(&header, &rows));
    out.push('\n');
    for c in &s.caveats {
        out.push_str(&format!("- {}\n", md::text(c)));
    }

    out.push_str(
        "\n## What is here\n\n\
         | path | |\n|---|---|\n\
         | `problems/levelL/ID_NAME/kernel.cu` | the correct kernel, with everything that it includes |\n\
         | `problems/levelL/ID_NAME/mutants/ID.diff` | one diff for each mutant, whatever became of it |\n\
         | `problems/levelL/ID_NAME/witnesses.jsonl` | a line for each witnessed mutant: input, schedule, thresholds, the command that shows it |\n\
         | `suites/budget-N.toml` | the strongest N inputs of every problem, as a protocol: `assay audit --protocol`, `assay check --suite` |\n\
         | `protocols/NAME.toml` | the protocols that were scored |\n\
         | `taxonomy.md`, `taxonomy.json` | the rules by family, why and where from, and their counts |\n\
         | `summary.json`, `manifest.json` | every figure of the run; its versions, seed and digests |\n\
         | `release.json`, `SHA256SUMS` | what this folder is; `sha256sum -c SHA256SUMS` checks it |\n",
    );
    for family in playbooks {
        out.push_str(&format!(
            "| [`playbook/{0}`](playbook/{0}) | {1} faults: what misses them, what catches them |\n",
            crate::playbook::file_name(family),
            md::text(family)
        ));
    }
    out.push_str(
        "\nA mutant is its kernel with the diff applied; `assay check` judges it on one input of the run. In a problem's \
         folder:\n\n",
    );
    let shown = counted.example.clone().unwrap_or_else(|| crate::playbook::replay("1/23", "ID", "RECIPE"));
    out.push_str(&md::block("sh", &shown));
    out.push_str(
        "\nTo measure a checker of your own on these faults without Assay's: apply each witnessed diff, run your checker, \
         and count over `mutants.parquet` where `witnessed` and `scored` hold. With Assay: `assay audit --checker 'CMD \
         {dir}'`.\n\n\
         A *recipe* such as `normal(1)@B=2,D=31#1004` replays an input to the bit: the kind of values, the dims that differ \
         from the problem's own, the seed. A *threshold* is the smallest t at which atol = rtol = t accepts an output, so \
         that any such tolerance can be scored from the tables: an input counts where it is valid, `validity_threshold <= \
         t`, and kills where `threshold_official > t`. Definitions and their sources are in Assay's `docs/method.md`.\n\n\
         ## Tables\n\nParquet, compressed with Snappy, in row groups of at most 65,536 rows in the order of problems. The \
         definitions below are in each file's metadata too, as `column.NAME`.\n",
    );
    for schema in TABLES {
        let Some((_, rows)) = tables.iter().find(|(f, _)| *f == schema.file) else { continue };
        out.push_str(&format!("\n### {}\n\n{} Rows: {}.\n\n", schema.file, schema.row, number(*rows)));
        let rows: Vec<Vec<String>> = schema
            .columns
            .iter()
            .map(|c| {
                let null = if c.optional { ", may be null" } else { "" };
                vec![format!("`{}`", c.name), format!("{}{null}", c.holds.name()), c.what.replace('|', "\\|")]
            })
            .collect();
        out.push_str(&md::table(&["column", "type", "definition"], &rows));
    }
    out
}
