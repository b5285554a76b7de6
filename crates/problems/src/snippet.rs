//! Quoting a line of a file with a mark under the place that is wrong.

use std::path::Path;

use crate::error::LoadError;
use assay_host::fail::line_column;

/// Characters of a line that are shown around the place.
const WIDTH: usize = 100;

/// The error at byte `at` of `text`, which is the content of `file`.
pub(crate) fn error_at(file: &Path, text: &str, at: usize, message: impl Into<String>) -> LoadError {
    let (line, column) = line_column(text, at);
    LoadError::At {
        file: file.to_owned(),
        line,
        column,
        message: message.into(),
        snippet: quote(text, line, line, column),
    }
}

/// The error at a 1-based line and column of `text`, which is line `own` of `file`.
pub(crate) fn error_on(
    file: &Path,
    text: &str,
    (line, own): (u32, u32),
    column: u32,
    message: impl Into<String>,
) -> LoadError {
    LoadError::At {
        file: file.to_owned(),
        line: own,
        column,
        message: message.into(),
        snippet: quote(text, line, own, column),
    }
}

/// The line with its mark, numbered `shown_as`.
fn quote(text: &str, line: u32, shown_as: u32, column: u32) -> String {
    let shown: Vec<char> = text
        .lines()
        .nth(line.saturating_sub(1) as usize)
        .unwrap_or("")
        .chars()
        // One character, one column: tabs and control characters would move the mark.
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let at = (column.saturating_sub(1) as usize).min(shown.len());
    let from = at.saturating_sub(WIDTH / 2);
    let to = shown.len().min(from + WIDTH);
    let cut: String = shown[from..to].iter().collect();
    let number = shown_as.to_string();
    let pad = " ".repeat(number.len());
    format!("{pad} |\n{number} | {cut}\n{pad} | {}^", " ".repeat(at - from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_stands_under_the_place() {
        let e = error_at(Path::new("a.toml"), "x = 1\ny\t= \"é\" + 2\n", 15, "no");
        assert_eq!(e.to_string(), "a.toml:2:9: no\n  |\n2 | y = \"é\" + 2\n  |         ^");
    }

    #[test]
    fn long_lines_and_places_past_the_end_are_cut() {
        let text = "a".repeat(1000);
        assert!(error_at(Path::new("a"), &text, 500, "no").to_string().len() < 250);
        assert!(error_at(Path::new("a"), "", 7, "no").to_string().starts_with("a:1:1: no"));
    }
}
