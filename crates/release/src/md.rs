//! Pieces of Markdown. Names, recipes and diffs come from outside: nothing in them ends a table cell, a span or a block.

use assay_report::text::clean;

/// Text in a table cell or a paragraph.
pub fn text(s: &str) -> String {
    let mut out = String::new();
    for c in clean(s).chars() {
        match c {
            '|' | '`' | '<' | '*' | '_' | '[' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// Text as it is typed; also in a table cell.
pub fn code(s: &str) -> String {
    // A backtick inside would end the span, and a bar the cell.
    format!("`{}`", clean(s).replace('`', "'").replace('|', "¦"))
}

/// A block of lines as they are, with its language.
pub fn block(language: &str, s: &str) -> String {
    let longest = s.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let lines: Vec<String> = s.lines().map(clean_line).collect();
    format!("{fence}{language}\n{}\n{fence}\n", lines.join("\n"))
}

/// A line without what a terminal or an editor would obey; tabs stay.
fn clean_line(s: &str) -> String {
    s.split('\t').map(clean).collect::<Vec<_>>().join("\t")
}

/// A table.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let mut out = format!("| {} |\n|{}\n", header.join(" | "), "---|".repeat(header.len()));
    for row in rows {
        out.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_leaves_its_place() {
        assert_eq!(text("a|b `c` <d>\n# e"), "a\\|b \\`c\\` \\<d> # e");
        assert_eq!(code("a`b|c\u{1b}[2J"), "`a'b¦c\u{fffd}[2J`");
        assert_eq!(block("diff", "````\nx"), "`````diff\n````\nx\n`````\n");
        assert_eq!(table(&["a", "b"], &[vec!["1".into(), "2".into()]]), "| a | b |\n|---|---|\n| 1 | 2 |\n");
    }
}
