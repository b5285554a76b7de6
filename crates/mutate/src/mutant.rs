//! A mutant: one small fault, as edits of a source, with its name, place and diff.

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::Family;
use crate::edit::{Edit, apply};

/// One faulty version of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mutant {
    /// First 16 hex digits of SHA-256 over file name, rule, spans and replacements.
    pub id: String,
    /// Id of the rule that made it.
    pub rule: &'static str,
    /// Family of that rule.
    pub family: Family,
    /// The splices, in order of position, not overlapping.
    pub edits: Vec<Edit>,
    /// 1-based line of the main edit.
    pub line: u32,
    /// 1-based column of the main edit, in characters.
    pub column: u32,
    /// Function that holds the main edit; `None` for a constant at file scope.
    pub function: Option<String>,
    /// Whether that function runs on the host (`launch`) and not on the device.
    pub host: bool,
    /// One line for people, such as `kernel.cu:4:9: replace < with <= in softmax`.
    pub name: String,
    /// File name as it was given.
    pub file: String,
}

impl Mutant {
    /// The faulty source. `source` is the text that the mutant was made from.
    pub fn apply(&self, source: &str) -> String {
        apply(source, &self.edits)
    }

    /// Unified diff from `source` to the faulty source, with three lines of context.
    pub fn diff(&self, source: &str) -> String {
        let mutated = self.apply(source);
        similar::TextDiff::from_lines(source, &mutated)
            .unified_diff()
            .context_radius(3)
            .header(&format!("a/{}", self.file), &format!("b/{}", self.file))
            .to_string()
    }

    /// The mutant as `assay mutate --json` lists it, diff included.
    pub fn record(&self, source: &str) -> MutantRecord {
        MutantRecord {
            id: self.id.clone(),
            rule: self.rule,
            family: self.family,
            line: self.line,
            column: self.column,
            function: self.function.clone(),
            host: self.host,
            name: self.name.clone(),
            diff: self.diff(source),
        }
    }
}

/// What is published of a mutant; `diff` alone rebuilds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MutantRecord {
    /// See [`Mutant::id`].
    pub id: String,
    /// See [`Mutant::rule`].
    pub rule: &'static str,
    /// See [`Mutant::family`].
    pub family: Family,
    /// See [`Mutant::line`].
    pub line: u32,
    /// See [`Mutant::column`].
    pub column: u32,
    /// See [`Mutant::function`].
    pub function: Option<String>,
    /// See [`Mutant::host`].
    pub host: bool,
    /// See [`Mutant::name`].
    pub name: String,
    /// Unified diff against the original.
    pub diff: String,
}

/// Id of a mutant: the same for the same file name, rule and edits, whatever else is mutated.
pub(crate) fn id_of(file: &str, rule: &str, edits: &[Edit]) -> String {
    let mut hash = Sha256::new();
    // Lengths go in front of every text, so that no two field lists hash the same bytes.
    let mut field = |text: &str| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    };
    field(file);
    field(rule);
    for edit in edits {
        field(&format!("{}..{}", edit.start, edit.end));
        field(&edit.replacement);
    }
    let digest = hash.finalize();
    digest[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `replace OLD with NEW`, `remove OLD` or `insert NEW`, on one line and short.
pub(crate) fn describe(old: &str, new: &str) -> String {
    let (old, new) = (short(old), short(new));
    match (old.is_empty(), new.is_empty() || new == ";") {
        (false, false) => format!("replace {old} with {new}"),
        (false, true) => format!("remove {old}"),
        (true, _) => format!("insert {new}"),
    }
}

/// A text on one line, cut to what fits a name.
pub(crate) fn short(text: &str) -> String {
    const LONGEST_CHARS: usize = 56;
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if flat.chars().count() <= LONGEST_CHARS {
        return flat;
    }
    let head: String = flat.chars().take(LONGEST_CHARS - 1).collect();
    format!("{head}…")
}

/// `swap A and B`, on one line and short.
pub(crate) fn describe_swap(one: &str, other: &str) -> String {
    format!("swap {} and {}", short(one), short(other))
}
