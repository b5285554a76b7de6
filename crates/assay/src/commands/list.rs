//! What there is: mutants of a file, rules, problems, protocols.

use std::fs;
use std::path::Path;

use assay_problems::{Inlined, inline_includes};
use comfy_table::presets;
use comfy_table::{ContentArrangement, Table};
use serde_json::{Value, json};

use crate::cli::{Common, MutateArgs};
use crate::exit::{Exit, Failure};
use crate::output;

/// Largest CUDA file read.
const MAX_SOURCE_BYTES: u64 = 4 << 20;

/// Reads a source file that a user named.
///
/// # Errors
/// Bad input: not there, too large, not UTF-8.
pub fn read_source(path: &Path) -> Result<String, Failure> {
    let fault = |what: String| Failure::bad_input(format!("cannot read `{}`: {what}", path.display()));
    let meta = fs::metadata(path).map_err(|e| fault(e.to_string()))?;
    if !meta.is_file() {
        return Err(fault("not a file".into()));
    }
    if meta.len() > MAX_SOURCE_BYTES {
        return Err(fault(format!("{} bytes, at most {MAX_SOURCE_BYTES} are read", meta.len())));
    }
    fs::read_to_string(path).map_err(|e| fault(e.to_string()))
}

/// Reads a CUDA file with the shared code that it includes (see `docs/adding-a-problem.md`).
///
/// # Errors
/// As [`read_source`].
pub fn read_kernel(path: &Path) -> Result<Inlined, Failure> {
    Ok(inline_includes(path, &read_source(path)?))
}

/// The included file and the line in it that a line of the whole text comes from; none for the file's own lines
/// where it includes nothing.
fn origin(text: &Inlined, line: u32) -> Option<(String, u32)> {
    let (file, line) = text.origin(line);
    (!text.names.is_empty()).then(|| (file.display().to_string(), line))
}

/// A plain table as wide as the terminal.
pub fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut t = Table::new();
    t.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    t.set_width(u16::try_from(output::width()).unwrap_or(80));
    t.set_header(header.to_vec());
    for row in rows {
        // A cell may hold a stranger's text, such as a file's name.
        t.add_row(row.iter().map(|cell| assay_report::text::clean(cell)));
    }
    // comfy-table pads every line to the table's width.
    let mut s: String = t.lines().map(|l| l.trim_end().to_owned() + "\n").collect();
    s.push('\n');
    s
}

/// `assay mutate`.
pub fn mutate(common: &Common, args: &MutateArgs) -> Result<Exit, Failure> {
    if let Some(rule) = &args.rule
        && assay_mutate::rule_named(rule).is_none()
    {
        return Err(Failure::bad_input(format!("unknown rule `{rule}`; `assay mutators` lists them")));
    }
    let inlined = read_kernel(&args.file)?;
    let source = &inlined.text;
    let name = args.file.file_name().map_or_else(|| "kernel.cu".into(), |n| n.to_string_lossy().into_owned());
    let mut mutants = assay_mutate::mutants_in(source, &name)
        .map_err(|e| Failure::bad_input(format!("{}: {e}", args.file.display())))?;
    if let Some(rule) = &args.rule {
        mutants.retain(|m| m.rule == rule);
    }
    if common.json {
        let records: Vec<Value> = mutants
            .iter()
            .map(|m| {
                let mut value =
                    serde_json::to_value(m.record(source)).map_err(|e| Failure::bug(e.to_string()))?;
                if let (Some((file, line)), Some(map)) = (origin(&inlined, m.line), value.as_object_mut()) {
                    map.insert("origin".into(), json!({ "file": file, "line": line }));
                }
                Ok(value)
            })
            .collect::<Result<_, Failure>>()?;
        output::json(&records)?;
        return Ok(Exit::Fine);
    }
    let mut text = String::new();
    for m in &mutants {
        text.push_str(&format!("{}  [{} {} {}]\n", m.name, m.id, m.family, m.rule));
        if let Some((file, line)) = origin(&inlined, m.line) {
            text.push_str(&format!("    from {file}:{line}\n"));
        }
        for line in m.diff(source).lines().skip(2) {
            text.push_str("    ");
            text.push_str(line);
            text.push('\n');
        }
    }
    text.push_str(&format!("{} mutants\n", mutants.len()));
    output::text(&text)?;
    Ok(Exit::Fine)
}

/// `assay mutators`.
pub fn mutators(common: &Common) -> Result<Exit, Failure> {
    let infos: Vec<_> = assay_mutate::RULES.iter().map(|r| r.info()).collect();
    if common.json {
        output::json(&infos)?;
        return Ok(Exit::Fine);
    }
    let rows = infos.iter().map(|i| vec![i.id.to_owned(), i.family.to_string(), i.reason.to_owned()]);
    let mut text = table(&["Rule", "Family", "What it plants"], rows);
    text.push_str(&format!("{} rules\n", infos.len()));
    output::text(&text)?;
    Ok(Exit::Fine)
}

/// `assay protocols`.
pub fn protocols(common: &Common) -> Result<Exit, Failure> {
    let all = assay_measure::builtin().map_err(Failure::bug)?;
    if common.json {
        output::json(&all)?;
        return Ok(Exit::Fine);
    }
    let rows = all.iter().map(|p| {
        let tolerance = if p.atol == p.rtol {
            format!("{:.0e}", p.atol)
        } else {
            format!("{:.0e}/{:.0e}", p.atol, p.rtol)
        };
        let mut asks: Vec<String> = p.inputs.clone();
        if p.targeted {
            asks.push("targeted recipes of the problem".into());
        }
        if let Some(b) = p.suite_budget {
            asks.push(format!("a suite of {b} per problem ({} shipped)", p.problems.len()));
        }
        asks.extend(p.extra_inputs.clone());
        vec![p.name.clone(), tolerance, asks.join(", "), p.title.clone()]
    });
    output::text(&table(&["Protocol", "atol=rtol", "Inputs", "What it is"], rows))?;
    Ok(Exit::Fine)
}

/// The problems that patterns name; the built-in ones without a pattern.
///
/// # Errors
/// Bad input: a pattern that matches nothing, a folder with a fault.
pub fn find_problems(patterns: &[String]) -> Result<Vec<assay_problems::Problem>, Failure> {
    assay_problems::discover(patterns, &assay_problems::Root::locate()).map_err(Failure::bad_input)
}
