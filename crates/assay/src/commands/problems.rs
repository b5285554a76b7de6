//! `assay problems`: what there is, filtered; with `--verify` the gate, with `--ceilings` how large inputs may be.

use assay_problems::{Dim, Extents, Problem, Reach, Recipe, Trivial, known_names, spread};
use serde_json::{Value, json};

use crate::cli::{Common, ProblemsArgs, YesNo};
use crate::commands::{audit, ceilings, list, substrates};
use crate::exit::{Exit, Failure};
use crate::output;

/// Notes are printed for so many problems; a longer list is for choosing.
const WITH_NOTES: usize = 5;

/// Runs the command.
///
/// # Errors
/// Bad input: a pattern that matches nothing, a name that no problem has, a folder with a fault, a gate over no problem.
pub fn problems(common: &Common, args: &ProblemsArgs) -> Result<Exit, Failure> {
    if let Some(folder) = &args.files.kernelbench {
        return substrates::substrates(common, args, folder);
    }
    let mut all = list::find_problems(&args.problems)?;
    known_names(&all, &args.operators, &args.techniques).map_err(Failure::bad_input)?;
    all.retain(|p| fits(p, args));
    if let Some(count) = args.sample {
        all = spread(all, usize::try_from(count).unwrap_or(usize::MAX));
    }
    if args.verify {
        if all.is_empty() {
            return Err(Failure::bad_input("no problem fits; there is nothing to verify"));
        }
        return audit::verify(common, all);
    }
    if args.ceilings {
        return ceilings::print(common, &all);
    }
    if common.json {
        let records: Vec<Value> = all.iter().map(record).collect::<Result<_, _>>()?;
        output::json(&records)?;
        return Ok(Exit::Fine);
    }
    output::text(&page(&all))?;
    Ok(Exit::Fine)
}

/// Whether a problem is what the filters ask for.
fn fits(p: &Problem, args: &ProblemsArgs) -> bool {
    let lower = |s: &str| s.to_lowercase();
    let calls = |name: &String| p.operators.iter().any(|o| lower(o) == lower(name));
    let uses = |part: &String| p.techniques.iter().any(|t| lower(t).contains(&lower(part)));
    (args.levels.is_empty() || args.levels.contains(&p.level))
        && args.operators.iter().all(calls)
        && args.techniques.iter().all(uses)
        && args.refereeable.is_none_or(|want| p.can_referee() == (want == YesNo::Yes))
}

fn record(p: &Problem) -> Result<Value, Failure> {
    let dims = |e: Extents| p.dims_for(&Recipe::official(0), e).map_err(Failure::bad_input);
    Ok(json!({
        "level": p.level,
        "id": p.id,
        "name": p.name,
        "refereeable": p.can_referee(),
        "degenerate": p.degenerate,
        "techniques": p.techniques,
        "operators": p.operators,
        "includes": p.includes,
        "official": dims(Extents::Official)?,
        "desk": dims(Extents::Desk)?,
        "losses": p.desk_losses(),
        "notes": p.notes,
        "folder": p.dir.display().to_string(),
    }))
}

/// The list for people, with the notes where it is short.
fn page(all: &[Problem]) -> String {
    let rows = all.iter().map(|p| {
        let extents: Vec<String> = p.dims.iter().map(extent).collect();
        vec![p.key(), p.name.clone(), extents.join(" "), losses(p), judged(p).to_owned()]
    });
    let header = ["Id", "Problem", "Extents, official>desk", "Lost at the desk", "Trivial pass"];
    let mut text = list::table(&header, rows);
    if all.len() <= WITH_NOTES {
        for p in all {
            text.push_str(&details(p));
        }
    }
    text.push_str(&match all.len() {
        1 => "1 problem\n".to_owned(),
        n => format!("{n} problems\n"),
    });
    text
}

/// What desk extents lose, in words.
fn losses(p: &Problem) -> String {
    p.desk_losses().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// `K=8192>2048`; a dim that is not cut has one extent.
fn extent(d: &Dim) -> String {
    if d.official == d.desk {
        format!("{}={}", d.name, d.desk)
    } else {
        format!("{}={}>{}", d.name, d.official, d.desk)
    }
}

/// The trivial answer that passes official inputs, for a column.
fn judged(p: &Problem) -> &'static str {
    match p.degenerate.as_ref().map(|d| (d.passes, d.inputs)) {
        _ if !p.refereeable => "not refereeable",
        None => "",
        Some((Trivial::Zeros, Reach::Any)) => "zeros, always",
        Some((Trivial::Constant, Reach::Any)) => "a constant, always",
        Some((Trivial::Flat, Reach::Any)) => "one number each, always",
        Some((Trivial::Zeros, Reach::Official)) => "zeros",
        Some((Trivial::Constant, Reach::Official)) => "a constant",
        Some((Trivial::Flat, Reach::Official)) => "one number each",
    }
}

/// What the file says of a problem, in lines that fit.
fn details(p: &Problem) -> String {
    let mut parts = vec![
        ("operators", p.operators.join(", ")),
        ("techniques", p.techniques.join(", ")),
        ("includes", p.includes.join(", ")),
        ("lost at the desk", losses(p)),
        ("notes", p.notes.clone().unwrap_or_default()),
    ];
    if let Some(d) = &p.degenerate {
        let which = if d.inputs == Reach::Any { "any input" } else { "official inputs" };
        let what = match d.passes {
            Trivial::Zeros => "zeros pass",
            Trivial::Constant => "a constant passes",
            Trivial::Flat => "one number for each input passes",
        };
        parts.push(("degenerate", format!("{what} on {which}: {}", d.reason)));
    }
    let mut text = format!("{} {}\n", p.key(), p.name);
    for (name, said) in parts.iter().filter(|(_, said)| !said.trim().is_empty()) {
        text.push_str(&wrapped(&format!(
            "{name}: {}",
            said.split_whitespace().collect::<Vec<_>>().join(" ")
        )));
    }
    text.push('\n');
    text
}

/// Words in indented lines as wide as the terminal.
fn wrapped(words: &str) -> String {
    let width = output::width().saturating_sub(2);
    let mut text = String::new();
    let mut line = String::new();
    for word in words.split(' ') {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            text.push_str(&format!("  {line}\n"));
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    text + &format!("  {line}\n")
}
