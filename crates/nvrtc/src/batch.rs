//! The text of one NVRTC call for several units, and whose fault a failure is.

use std::collections::BTreeSet;

use crate::lex::{Kind, lex};
use crate::prelude;
use crate::unit::{Shape, edited};

/// Namespace of unit `index`. It ends in `_`, so that its number does not run into what follows in a mangled name.
fn namespace(index: usize) -> String {
    format!("assay_unit_{index}_")
}

/// Folder that the file of unit `index` gets in line markers.
fn folder(index: usize) -> String {
    format!("assay-unit-{index}-/")
}

/// A file name that can stand in a line marker; absolute paths lose their leading slash in a batch.
pub(crate) fn label(file: &str) -> String {
    let safe: String =
        file.chars().map(|c| if c.is_alphanumeric() || "._-+/ ".contains(c) { c } else { '_' }).collect();
    if safe.trim().is_empty() { "kernel.cu".into() } else { safe }
}

/// One unit of a batch.
pub(crate) struct Part<'a> {
    pub source: &'a str,
    pub file: &'a str,
    pub shape: &'a Shape,
    /// Functions of the unit whose names exist outside it too: their overloads are to stay visible.
    pub shared_names: Vec<&'a str>,
    pub kernels: &'a [String],
}

/// The program for a unit on its own: exactly its text, after the prelude.
pub(crate) fn alone(source: &str, file: &str) -> String {
    format!("{}#line 1 \"{}\"\n{source}\n", prelude::text(), label(file))
}

/// The program for several units, all with the same includes.
pub(crate) fn program(parts: &[Part]) -> String {
    let mut out = prelude::text();
    if let Some(first) = parts.first() {
        for header in &first.shape.includes {
            out.push_str(&format!("#include {header}\n"));
        }
    }
    for (index, part) in parts.iter().enumerate() {
        out.push_str(&format!("namespace {} {{\n", namespace(index)));
        for name in &part.shared_names {
            out.push_str(&format!("using ::{name};\n"));
        }
        let label = label(part.file);
        out.push_str(&format!("#line 1 \"{}{}\"\n", folder(index), label.trim_start_matches('/')));
        out.push_str(&edited(part.source, part.shape));
        out.push('\n');
        for name in &part.shape.macros {
            out.push_str(&format!("#undef {name}\n"));
            if let Some(body) = prelude::macro_body(name) {
                out.push_str(&format!("#define {name} {body}\n"));
            }
        }
        out.push_str("}\n");
    }
    out
}

/// The name expression for a kernel of unit `index`: its own types among template arguments are qualified too.
pub(crate) fn name_expression(index: usize, kernel: &str, shape: &Shape) -> String {
    let outer = namespace(index);
    let lexed = lex(kernel);
    let mut out = String::new();
    let mut previous = "";
    for (at, token) in lexed.tokens.iter().enumerate() {
        let text = lexed.str(token);
        if at == 0 && text == "::" {
            continue;
        }
        let own = token.kind == Kind::Ident
            && previous != "::"
            && (at == 0 || shape.names.contains(text) || shape.functions.contains(text));
        if token.spaced && !out.is_empty() {
            out.push(' ');
        }
        if own || out.is_empty() {
            out.push_str(&format!("{outer}::"));
        }
        out.push_str(text);
        previous = text;
    }
    out
}

/// Whether a text can be a kernel's name expression: a name, perhaps qualified, perhaps with template arguments.
pub(crate) fn is_name_expression(text: &str) -> bool {
    let first = text.trim_start_matches("::").chars().next();
    first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && text.len() <= 1024
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_:<>,*&+-. ()".contains(c))
}

/// Units that a failed batch's log blames.
pub(crate) fn guilty(log: &str, units: usize) -> BTreeSet<usize> {
    let mut out = BTreeSet::new();
    let mut block = String::new();
    // Messages are separated by blank lines; warnings blame nobody.
    for line in log.lines().chain([""]) {
        if !line.trim().is_empty() {
            block.push_str(line);
            block.push('\n');
            continue;
        }
        if block.contains("error") || block.contains("fatal") {
            let mut found = numbers_after(&block, "assay-unit-", '-');
            if found.is_empty() {
                found = numbers_after(&block, "assay_unit_", '_');
            }
            out.extend(found.into_iter().filter(|&n| n < units));
        }
        block.clear();
    }
    out
}

fn numbers_after(text: &str, marker: &str, end: char) -> BTreeSet<usize> {
    text.split(marker)
        .skip(1)
        .filter_map(|rest| rest.split_once(end).and_then(|(number, _)| number.parse().ok()))
        .collect()
}

/// Takes the folders of the batch, and the worker's current folder, off the file names of a PTX text.
pub(crate) fn clean_ptx(ptx: &str) -> String {
    let mut out = String::with_capacity(ptx.len());
    for line in ptx.split_inclusive('\n') {
        match line.split_once('"').filter(|_| line.trim_start().starts_with(".file")) {
            Some((before, name)) => {
                out.push_str(before);
                out.push('"');
                out.push_str(own_name(name));
            }
            None => out.push_str(line),
        }
    }
    out
}

fn own_name(name: &str) -> &str {
    let relative = name.strip_prefix('/').unwrap_or(name);
    let inside = relative.strip_prefix("assay-unit-").and_then(|rest| rest.split_once("-/"));
    match inside {
        Some((_, own)) => own,
        // A file in the worker's current folder, which is the root: a unit on its own.
        None if !relative.contains('/') => relative,
        None => name,
    }
}

/// A text that finds out which names exist before a unit's first line, and how to read the answer.
pub(crate) struct Probe {
    pub program: String,
    /// Every name, in order of the line numbers that the log uses.
    items: Vec<(String, bool)>,
}

impl Probe {
    /// `functions` are asked for in the global namespace, `macros` as definitions.
    pub(crate) fn new(includes: &[String], functions: &[String], macros: &[String]) -> Self {
        let mut program = prelude::text();
        for header in includes {
            program.push_str(&format!("#include {header}\n"));
        }
        let items: Vec<(String, bool)> = functions
            .iter()
            .map(|f| (f.clone(), true))
            .chain(macros.iter().map(|m| (m.clone(), false)))
            .collect();
        for (at, (name, function)) in items.iter().enumerate() {
            let line = at + 1;
            if *function {
                program.push_str(&format!(
                    "#line {line} \"assay-probe\"\nnamespace assay_probe_{at} {{ using ::{name}; }}\n"
                ));
            } else {
                program.push_str(&format!(
                    "#ifdef {name}\n#line {line} \"assay-probe\"\n__device__ assay_no_such_type assay_probe_{at};\n#endif\n"
                ));
            }
        }
        Self { program, items }
    }

    /// Which names exist, from the compiler's log.
    pub(crate) fn read(&self, log: &str) -> Vec<(String, bool)> {
        let errors: BTreeSet<usize> = log
            .lines()
            .filter(|l| l.contains("error"))
            .filter_map(|l| l.split_once("assay-probe(")?.1.split_once(')')?.0.parse().ok())
            .collect();
        let exists = |(at, (name, function)): (usize, &(String, bool))| {
            // A function that does not exist is an error; a macro that does.
            (name.clone(), errors.contains(&(at + 1)) != *function)
        };
        self.items.iter().enumerate().map(exists).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_expressions_are_qualified_with_their_own_types() {
        let shape = Shape { names: ["Pair".to_owned()].into(), ..Shape::default() };
        let cases = [
            ("softmax", "assay_unit_3_::softmax"),
            ("::softmax", "assay_unit_3_::softmax"),
            ("inner::k", "assay_unit_3_::inner::k"),
            ("scale<float, 3>", "assay_unit_3_::scale<float, 3>"),
            ("k<Pair,other::Pair*>", "assay_unit_3_::k<assay_unit_3_::Pair,other::Pair*>"),
        ];
        for (kernel, expected) in cases {
            assert_eq!(name_expression(3, kernel, &shape), expected);
        }
        assert!(is_name_expression("a::scale<float,(3+1)>"));
        for bad in ["", "k; int x", "k\n", "\"k\"", "1k", "k{}"] {
            assert!(!is_name_expression(bad), "{bad}");
        }
    }

    #[test]
    fn errors_blame_their_unit_and_warnings_nobody() {
        let log = "assay-unit-1-/k.cu(3): error: x\n  x\n  ^\n\n/assay-unit-2-/k.cu(3): warning #1: y\n\n\
                   __nv_name_map(4): error: namespace \"assay_unit_12_\" has no member \"q\"\n\n";
        assert!(guilty(log, 20).into_iter().eq([1, 12]));
    }

    #[test]
    fn file_names_in_ptx_are_those_of_the_units() {
        let ptx = "\t.loc 1 2 3\n\t.file\t1 \"/assay-unit-4-/a/k.cu\"\n\t.file\t2 \"/x.cu\"\n\t.file\t3 \"/usr/y.h\"\n";
        let clean = "\t.loc 1 2 3\n\t.file\t1 \"a/k.cu\"\n\t.file\t2 \"x.cu\"\n\t.file\t3 \"/usr/y.h\"\n";
        assert_eq!(clean_ptx(ptx), clean);
    }
}
