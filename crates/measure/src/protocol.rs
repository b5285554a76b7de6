//! Protocols: inputs and a tolerance, as data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::MeasureError;

/// Inputs that a generator of the knowledge ladder may ask of a problem, unless told otherwise: what the suites of
/// "Measuring the Checker" hold (about 8).
pub const LADDER_BUDGET: u32 = 8;

/// Problems of the ladder's hard set, unless told otherwise: as many as "Measuring the Checker" took.
pub const LADDER_PROBLEMS: u32 = 30;

/// Seconds that an external generator may take for one problem, unless told otherwise.
pub const GENERATOR_SECONDS: u32 = 60;

/// The tolerance of |out - ref| <= atol + rtol * |ref|.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tolerance {
    /// Absolute part.
    pub atol: f64,
    /// Relative part.
    pub rtol: f64,
}

impl Tolerance {
    /// `atol = rtol = t`.
    pub const fn both(t: f64) -> Tolerance {
        Tolerance { atol: t, rtol: t }
    }

    /// The checker paper's official tolerance.
    pub const PAPER: Tolerance = Tolerance::both(assay_judge::PAPER_TOLERANCE);
}

/// A detection rate that a publication states for the protocol; printed beside ours, never mixed with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedDetection {
    /// Detected, in percent of `denominator`.
    pub detected_percent: f64,
    /// False kills it states, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub false_kills: Option<u64>,
    /// What the rate is a share of.
    pub denominator: String,
}

/// A checking protocol.
///
/// For a problem it asks: its entry in `problems`, or else a suite of `suite_budget` inputs (if that is set), or else
/// `inputs` with the problem's targeted recipes (if `targeted`); and always `extra_inputs`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Protocol {
    /// Its name on the command line: lower-case letters, digits and hyphens.
    pub name: String,
    /// A few words for tables.
    pub title: String,
    /// One sentence.
    pub description: String,
    /// Where inputs and tolerance come from.
    pub source: String,
    /// Recipes asked of every problem.
    pub inputs: Vec<String>,
    /// Absolute tolerance.
    pub atol: f64,
    /// Relative tolerance.
    pub rtol: f64,
    /// Does it ask each problem's targeted recipes too? Those of them that are valid at its tolerance.
    pub targeted: bool,
    /// Does it ask what greedy cover selects at this budget, for a problem not in `problems`?
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suite_budget: Option<u32>,
    /// Recipes asked beside whatever else is asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extra_inputs: Vec<String>,
    /// Recipes by problem, `level/id`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub problems: BTreeMap<String, Vec<String>>,
    /// SHA-256 of inputs by problem and recipe, where the file states them: what the recipe must make.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub digests: BTreeMap<String, BTreeMap<String, String>>,
    /// The command of an external checker that judges the inputs in the tolerance's place: `{dir}` in it stands for the
    /// folder with the tensors. The tolerance then says only which inputs are valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checker: Option<String>,
    /// Seconds that one run of the checker may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checker_seconds: Option<u32>,
    /// What a publication states for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<PublishedDetection>,
}

/// The file as it is written, with positions for messages.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProtocolFile {
    name: Spanned<String>,
    #[serde(default)]
    title: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    source: String,
    #[serde(default)]
    inputs: Vec<Spanned<String>>,
    atol: Spanned<f64>,
    rtol: Spanned<f64>,
    #[serde(default)]
    targeted: bool,
    suite_budget: Option<Spanned<u32>>,
    #[serde(default)]
    extra_inputs: Vec<Spanned<String>>,
    #[serde(default)]
    problems: BTreeMap<String, Spanned<Vec<Spanned<String>>>>,
    #[serde(default)]
    digests: BTreeMap<String, Spanned<BTreeMap<String, Spanned<String>>>>,
    checker: Option<Spanned<String>>,
    checker_seconds: Option<Spanned<u32>>,
    published: Option<Spanned<PublishedDetection>>,
}

/// Largest `suite_budget` and number of inputs that a file may ask for; more is a slip of the pen.
const MOST_INPUTS: usize = 1000;

/// Longest that one run of an external checker may be allowed to take, in seconds.
pub const MOST_CHECKER_SECONDS: u32 = 3600;

/// Seconds that one run of an external checker may take where nothing else is said.
pub const CHECKER_SECONDS: u32 = 60;

/// Where a checker's command names the folder.
pub const CHECKER_FOLDER: &str = "{dir}";

/// Is this a command that an external checker can be started by?
///
/// # Errors
/// What is wrong, as a phrase.
pub fn check_checker(command: &str) -> Result<(), String> {
    if !command.contains(CHECKER_FOLDER) {
        return Err(format!(
            "`{command}` does not say where the folder goes; write `{CHECKER_FOLDER}` in its place"
        ));
    }
    if command.contains('\0') {
        return Err("a command cannot hold a NUL".to_owned());
    }
    Ok(())
}

impl Protocol {
    /// Reads a protocol. `file` is the name that messages show.
    ///
    /// # Errors
    /// `Protocol` with line and column: not TOML, an unknown or missing key, a name, recipe, problem key or tolerance
    /// that is none, `suite_budget` beside `inputs` or `targeted`, nothing to ask.
    pub fn parse(text: &str, file: &str) -> Result<Protocol, MeasureError> {
        let at = |byte: usize, message: String| {
            let (line, column) = position(text, byte);
            MeasureError::Protocol { file: file.to_owned(), line, column, message }
        };
        let raw: ProtocolFile = toml::from_str(text)
            .map_err(|e| at(e.span().map_or(0, |s| s.start), e.message().trim_end().to_owned()))?;

        let name = raw.name.get_ref().clone();
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || name.starts_with('-') || !name.chars().all(plain) {
            return Err(at(
                raw.name.span().start,
                format!("`{name}` is no protocol name; use lower-case letters, digits and hyphens"),
            ));
        }
        for (key, value) in [("atol", &raw.atol), ("rtol", &raw.rtol)] {
            let v = *value.get_ref();
            if !v.is_finite() || v < 0.0 {
                return Err(at(
                    value.span().start,
                    format!("`{key}` is {v}; it must be zero or a positive number"),
                ));
            }
        }
        let recipes = |list: Vec<Spanned<String>>| -> Result<Vec<String>, MeasureError> {
            let mut texts: Vec<String> = Vec::with_capacity(list.len());
            for r in list {
                let (start, recipe) = (r.span().start, r.into_inner());
                check_recipe_text(&recipe).map_err(|what| at(start, format!("recipe `{recipe}`: {what}")))?;
                if texts.contains(&recipe) {
                    return Err(at(start, format!("recipe `{recipe}` stands twice; ask each input once")));
                }
                if texts.len() == MOST_INPUTS {
                    return Err(at(start, format!("more than {MOST_INPUTS} inputs")));
                }
                texts.push(recipe);
            }
            Ok(texts)
        };
        let inputs = recipes(raw.inputs)?;
        let extra_inputs = recipes(raw.extra_inputs)?;
        let mut problems = BTreeMap::new();
        for (key, list) in raw.problems {
            let start = list.span().start;
            if !is_problem_key(&key) {
                return Err(at(start, format!("`{key}` is no problem; write level and id as in `1/23`")));
            }
            let list = list.into_inner();
            if list.is_empty() {
                return Err(at(start, format!("problem `{key}` has no input; give one or drop the line")));
            }
            problems.insert(key, recipes(list)?);
        }
        let mut digests = BTreeMap::new();
        for (key, of) in raw.digests {
            let start = of.span().start;
            let asked = problems.get(&key);
            let mut texts = BTreeMap::new();
            for (recipe, digest) in of.into_inner() {
                let (start, digest) = (digest.span().start, digest.into_inner());
                if digest.len() != 64
                    || !digest.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
                {
                    return Err(at(start, "a digest is 64 lower-case hexadecimal digits".to_owned()));
                }
                if !asked.is_some_and(|list| list.contains(&recipe)) {
                    return Err(at(start, format!("a digest of `{recipe}`, which `{key}` does not ask")));
                }
                texts.insert(recipe, digest);
            }
            if asked.is_none() {
                return Err(at(start, format!("digests of `{key}`, which is not under `problems`")));
            }
            digests.insert(key, texts);
        }
        let suite_budget = match raw.suite_budget {
            None => None,
            Some(budget) => {
                let start = budget.span().start;
                let budget = budget.into_inner();
                if budget == 0 || budget as usize > MOST_INPUTS {
                    return Err(at(
                        start,
                        format!("`suite_budget` is {budget}; it must be 1 to {MOST_INPUTS}"),
                    ));
                }
                if raw.targeted || !inputs.is_empty() {
                    return Err(at(
                        start,
                        "`suite_budget` chooses the inputs itself; put others in `extra_inputs`".to_owned(),
                    ));
                }
                Some(budget)
            }
        };
        if inputs.is_empty() && extra_inputs.is_empty() && !raw.targeted && suite_budget.is_none() {
            return Err(at(
                raw.name.span().start,
                format!(
                    "protocol `{name}` asks nothing of a problem; give `inputs`, `targeted` or `suite_budget`"
                ),
            ));
        }
        let checker = match raw.checker {
            None => None,
            Some(command) => {
                let start = command.span().start;
                let command = command.into_inner();
                check_checker(&command).map_err(|what| at(start, format!("`checker`: {what}")))?;
                // Its verdicts exist only for inputs that are known before the matrix is.
                if suite_budget.is_some() {
                    return Err(at(start, "`checker` needs inputs by name; drop `suite_budget`".to_owned()));
                }
                Some(command)
            }
        };
        let checker_seconds = match raw.checker_seconds {
            None => None,
            Some(seconds) => {
                let (start, seconds) = (seconds.span().start, seconds.into_inner());
                if checker.is_none() {
                    return Err(at(start, "`checker_seconds` needs a `checker`".to_owned()));
                }
                if seconds == 0 || seconds > MOST_CHECKER_SECONDS {
                    return Err(at(
                        start,
                        format!("`checker_seconds` is {seconds}; it must be 1 to {MOST_CHECKER_SECONDS}"),
                    ));
                }
                Some(seconds)
            }
        };
        let published = match raw.published {
            None => None,
            Some(p) => {
                let start = p.span().start;
                let p = p.into_inner();
                if !(0.0..=100.0).contains(&p.detected_percent) {
                    return Err(at(start, "`detected_percent` must be 0 to 100".to_owned()));
                }
                Some(p)
            }
        };
        Ok(Protocol {
            title: if raw.title.is_empty() { name.clone() } else { raw.title },
            name,
            description: raw.description,
            source: raw.source,
            inputs,
            atol: raw.atol.into_inner(),
            rtol: raw.rtol.into_inner(),
            targeted: raw.targeted,
            suite_budget,
            extra_inputs,
            problems,
            digests,
            checker,
            checker_seconds,
            published,
        })
    }

    /// The inputs of this protocol judged by an external checker; they count as valid at this protocol's tolerance.
    ///
    /// # Errors
    /// A command that names no folder, or more seconds than [`MOST_CHECKER_SECONDS`], as a phrase.
    pub fn with_checker(
        &self,
        name: impl Into<String>,
        command: impl Into<String>,
        seconds: u32,
    ) -> Result<Protocol, String> {
        let command = command.into();
        check_checker(&command)?;
        if seconds == 0 || seconds > MOST_CHECKER_SECONDS {
            return Err(format!(
                "{seconds} seconds for a run of a checker; it must be 1 to {MOST_CHECKER_SECONDS}"
            ));
        }
        if self.suite_budget.is_some() {
            return Err(format!(
                "`{}` chooses its inputs after the evaluations; a checker needs them before",
                self.name
            ));
        }
        Ok(Protocol {
            name: name.into(),
            title: "External checker".to_owned(),
            description: format!("The inputs of {}, judged by a command.", self.name),
            source: "given by the user".to_owned(),
            checker: Some(command),
            checker_seconds: Some(seconds),
            published: None,
            ..self.clone()
        })
    }

    /// Its tolerance.
    pub fn tolerance(&self) -> Tolerance {
        Tolerance { atol: self.atol, rtol: self.rtol }
    }

    /// The same inputs at another tolerance, under another name: what decomposes inputs from tolerance. What a
    /// publication states does not carry over.
    pub fn with_tolerance(&self, name: impl Into<String>, tolerance: Tolerance) -> Protocol {
        Protocol {
            name: name.into(),
            atol: tolerance.atol,
            rtol: tolerance.rtol,
            published: None,
            ..self.clone()
        }
    }

    /// The recipes it asks of the problem `key` (`level/id`), each once, in its order. `targeted` are the problem's
    /// targeted recipes; `suite` is called where the inputs are to be chosen by cover, with the budget.
    pub fn recipes(
        &self,
        key: &str,
        targeted: &[String],
        suite: impl FnOnce(u32) -> Vec<String>,
    ) -> Vec<String> {
        let mut asked: Vec<String> = match (self.problems.get(key), self.suite_budget) {
            (Some(list), _) => list.clone(),
            (None, Some(budget)) => suite(budget),
            (None, None) if self.targeted => self.inputs.iter().chain(targeted).cloned().collect(),
            (None, None) => self.inputs.clone(),
        };
        asked.extend(self.extra_inputs.iter().cloned());
        let mut seen = std::collections::BTreeSet::new();
        asked.retain(|r| seen.insert(r.clone()));
        asked
    }

    /// The protocol as a file that [`Protocol::parse`] reads back.
    pub fn to_toml(&self) -> String {
        let quoted = |s: &str| toml::Value::from(s).to_string();
        let list = |items: &[String]| {
            let items: Vec<String> = items.iter().map(|s| quoted(s)).collect();
            format!("[{}]", items.join(", "))
        };
        let number = |v: f64| toml::Value::from(v).to_string();
        let mut lines = vec![
            format!("name = {}", quoted(&self.name)),
            format!("title = {}", quoted(&self.title)),
            format!("description = {}", quoted(&self.description)),
            format!("source = {}", quoted(&self.source)),
        ];
        if !self.inputs.is_empty() {
            lines.push(format!("inputs = {}", list(&self.inputs)));
        }
        if self.targeted {
            lines.push("targeted = true".to_owned());
        }
        if let Some(budget) = self.suite_budget {
            lines.push(format!("suite_budget = {budget}"));
        }
        if !self.extra_inputs.is_empty() {
            lines.push(format!("extra_inputs = {}", list(&self.extra_inputs)));
        }
        lines.push(format!("atol = {}", number(self.atol)));
        lines.push(format!("rtol = {}", number(self.rtol)));
        if let Some(command) = &self.checker {
            lines.push(format!("checker = {}", quoted(command)));
        }
        if let Some(seconds) = self.checker_seconds {
            lines.push(format!("checker_seconds = {seconds}"));
        }
        if !self.problems.is_empty() {
            lines.extend([String::new(), "[problems]".to_owned()]);
            let mut keys: Vec<&String> = self.problems.keys().collect();
            keys.sort_by_key(|k| problem_number(k));
            lines.extend(keys.iter().map(|k| format!("{} = {}", quoted(k), list(&self.problems[*k]))));
        }
        if !self.digests.is_empty() {
            lines.extend([String::new(), "[digests]".to_owned()]);
            let mut keys: Vec<&String> = self.digests.keys().collect();
            keys.sort_by_key(|k| problem_number(k));
            for key in keys {
                let of = &self.digests[key];
                let pairs: Vec<String> =
                    of.iter().map(|(r, d)| format!("{} = {}", quoted(r), quoted(d))).collect();
                lines.push(format!("{} = {{ {} }}", quoted(key), pairs.join(", ")));
            }
        }
        if let Some(p) = &self.published {
            lines.extend([String::new(), "[published]".to_owned()]);
            lines.push(format!("detected_percent = {}", number(p.detected_percent)));
            if let Some(n) = p.false_kills {
                lines.push(format!("false_kills = {n}"));
            }
            lines.push(format!("denominator = {}", quoted(&p.denominator)));
        }
        lines.push(String::new());
        lines.join("\n")
    }
}

/// 1-based line and column (in characters) of a byte offset.
fn position(text: &str, byte: usize) -> (u32, u32) {
    let mut at = byte.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
}

fn problem_number(key: &str) -> Option<(u32, u32)> {
    let (level, id) = key.split_once('/')?;
    Some((level.parse().ok()?, id.parse().ok()?))
}

fn is_problem_key(key: &str) -> bool {
    // Only as written by `KillMatrix::key`: no sign, no leading zero.
    problem_number(key).is_some_and(|(level, id)| format!("{level}/{id}") == key)
}

/// Is this the shape of a recipe's text, `KIND[(args)][*SCALE][+params][@DIM=V,…][#SEED]`?
///
/// A first look, for an error with a position in the protocol's file; whether kind and dims exist is for the
/// problem to say.
///
/// # Errors
/// What is wrong, as a phrase.
pub fn check_recipe_text(text: &str) -> Result<(), String> {
    let kind_end =
        text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-')).unwrap_or(text.len());
    if kind_end == 0 || !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Err("a recipe starts with its kind, such as `official`".to_owned());
    }
    if let Some(c) = text.chars().find(|c| c.is_whitespace() || c.is_control()) {
        return Err(format!("{c:?} cannot stand in a recipe"));
    }
    let mut rest = &text[kind_end..];
    if let Some(inside) = rest.strip_prefix('(') {
        let close = inside.find(')').ok_or("the parenthesis is not closed")?;
        if inside[..close].contains('(') {
            return Err("parentheses do not nest".to_owned());
        }
        rest = &inside[close + 1..];
    }
    // The parts come in this order, each at most once.
    let marks = ['*', '+', '@', '#'];
    let mut next = 0;
    while let Some(mark) = rest.chars().next() {
        let Some(place) = marks.iter().position(|&m| m == mark) else {
            return Err(format!(
                "`{rest}` is no part of a recipe; `*SCALE`, `+params`, `@DIM=V` and `#SEED` are"
            ));
        };
        if place < next {
            return Err(format!("`{mark}` stands twice or too late; the order is `*`, `+`, `@`, `#`"));
        }
        next = place + 1;
        let body = &rest[1..];
        // A scale such as 1e+3 holds a plus that is no mark.
        let exponent = |at: usize| body[..at].ends_with(['e', 'E']) && mark == '*';
        let end = body
            .char_indices()
            .find(|&(at, c)| marks.contains(&c) && !exponent(at))
            .map_or(body.len(), |(at, _)| at);
        let part = &body[..end];
        let good = match mark {
            '*' => part.parse::<f64>().is_ok_and(f64::is_finite),
            '+' => part == "params",
            '@' => part.split(',').all(|dim| {
                dim.split_once('=').is_some_and(|(name, v)| !name.is_empty() && v.parse::<u64>().is_ok())
            }),
            _ => part.parse::<u64>().is_ok(),
        };
        if !good {
            return Err(match mark {
                '*' => format!("`{part}` is no scale; give a finite number"),
                '+' => format!("`+{part}` is unknown; only `+params` may follow a plus"),
                '@' => format!("`{part}` is no list of dims; write `@M=63,N=65`"),
                _ => format!("`{part}` is no seed; give a whole number"),
            });
        }
        rest = &body[end..];
    }
    Ok(())
}

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        /// Names of the shipped protocols, in the order of tables: the first is the official check.
        pub const BUILTIN: &[&str] = &[$($name),*];

        /// The shipped files, in that order: name and text (for manifests and hashes).
        pub const PROTOCOL_FILES: &[(&str, &str)] = &[
            $((concat!($name, ".toml"), include_str!(concat!("../../../protocols/", $name, ".toml")))),*
        ];
    };
}

shipped!(
    "kernelbench-2025",
    "kernelbench",
    "kbv-inputs",
    "kbv",
    "ci-fuzz",
    "robust-kbench",
    "targeted-2",
    "targeted-all"
);

/// The shipped protocols, in the order of [`BUILTIN`].
///
/// # Errors
/// `Protocol`, which a test of this crate excludes.
pub fn builtin() -> Result<Vec<Protocol>, MeasureError> {
    PROTOCOL_FILES.iter().map(|(file, text)| Protocol::parse(text, file)).collect()
}
