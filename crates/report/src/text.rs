//! Numbers, wrapped paragraphs and plain tables for a terminal: no colour, no line wider than asked.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Columns that a text takes on a terminal.
pub fn columns(s: &str) -> usize {
    s.width()
}

/// The text on one line and without anything that a terminal would obey: control characters, direction marks.
pub fn clean(s: &str) -> String {
    s.chars()
        .map(|c| match c {
            '\n' | '\r' | '\t' => ' ',
            '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{2066}'..='\u{2069}' => '\u{fffd}',
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// A count with a comma between thousands.
pub fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// `1 problem`, `14 problems`; `thing` is singular and takes an s.
pub fn counted(n: u64, thing: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{} {thing}{s}", number(n))
}

/// A percentage to one decimal, or a dash.
pub fn percent(p: Option<f64>) -> String {
    p.map_or_else(|| "–".to_owned(), |p| format!("{p:.1}%"))
}

/// A difference of two percentages, with its sign: `+4.0`, `-0.3`, or a dash.
pub fn points(p: Option<f64>) -> String {
    p.map_or_else(|| "–".to_owned(), |p| if p == 0.0 { "0.0".to_owned() } else { format!("{p:+.1}") })
}

/// A tolerance: `1e-2`, or `1e-2/1e-5` where atol and rtol differ.
pub fn tolerance(atol: f64, rtol: f64) -> String {
    if atol == rtol { format!("{atol:e}") } else { format!("{atol:e}/{rtol:e}") }
}

/// A threshold to two digits; `inf` for an output that is not finite or not there.
pub fn threshold(t: f64) -> String {
    if t == 0.0 {
        "0".to_owned()
    } else if t.is_nan() || t.is_infinite() {
        "inf".to_owned()
    } else if (0.01..1000.0).contains(&t) {
        let s = format!("{t:.3}");
        s.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        format!("{t:.1e}")
    }
}

/// A time: `92.1 s`, `2 min 5 s`, `3 h 20 min`.
pub fn seconds(s: f64) -> String {
    if !s.is_finite() || s < 0.0 {
        return "–".to_owned();
    }
    // Saturates far beyond any run.
    let whole = s.round() as u64;
    match whole {
        0..=119 => format!("{s:.1} s"),
        120..=7199 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole / 60 % 60),
    }
}

/// A rate: one decimal while it is small.
pub fn rate(r: f64) -> String {
    if !r.is_finite() || r < 0.0 {
        "–".to_owned()
    } else if r < 100.0 {
        format!("{r:.1}")
    } else {
        number(r.round() as u64)
    }
}

/// A word for a shell to take as it is.
pub fn shell(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=,:+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The text cut to that many columns, its end replaced by `…` where something is missing.
pub fn cut(s: &str, width: usize) -> String {
    if columns(s) <= width {
        return s.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in s.chars() {
        let w = c.width().unwrap_or(0);
        if used + w + 1 > width {
            break;
        }
        used += w;
        out.push(c);
    }
    if width > 0 {
        out.push('…');
    }
    out
}

/// Breaks a paragraph at spaces, its first line after `first` and the others after `rest`; a word too long for a line
/// is broken where it must be.
pub fn wrap(text: &str, width: usize, first: &str, rest: &str) -> String {
    let mut out = String::new();
    let mut line = first.to_owned();
    let mut empty = true;
    for word in text.split(' ').filter(|w| !w.is_empty()) {
        let gap = usize::from(!empty);
        if columns(&line) + gap + columns(word) <= width {
            if !empty {
                line.push(' ');
            }
            line.push_str(word);
            empty = false;
            continue;
        }
        if !empty {
            finish(&mut out, &line);
            line = rest.to_owned();
        }
        for c in word.chars() {
            let full = columns(&line) + c.width().unwrap_or(0) > width;
            if full && columns(&line) > columns(rest) {
                finish(&mut out, &line);
                line = rest.to_owned();
            }
            line.push(c);
        }
        empty = false;
    }
    if !empty {
        finish(&mut out, &line);
    }
    out
}

fn finish(out: &mut String, line: &str) {
    out.push_str(line.trim_end());
    out.push('\n');
}

/// On which side of its column a cell stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A table of aligned columns, two spaces apart. Where it is too wide, the widest left column gives way.
pub struct Table {
    sides: Vec<Side>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with that header, which also says how columns are aligned.
    pub fn new(header: &[(&str, Side)]) -> Table {
        Table {
            sides: header.iter().map(|h| h.1).collect(),
            rows: vec![header.iter().map(|h| h.0.to_owned()).collect()],
        }
    }

    /// Adds a row; its cells are cleaned.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells.iter().map(|c| clean(c)).collect());
    }

    /// The lines, none wider than `width`.
    pub fn draw(&self, width: usize) -> String {
        const GAP: usize = 2;
        let mut widths: Vec<usize> = (0..self.sides.len())
            .map(|c| self.rows.iter().filter_map(|r| r.get(c)).map(|s| columns(s)).max().unwrap_or(0))
            .collect();
        let total = |w: &[usize]| w.iter().sum::<usize>() + GAP * w.len().saturating_sub(1);
        let over = total(&widths).saturating_sub(width);
        let widest = (0..widths.len())
            .filter(|&c| self.sides[c] == Side::Left)
            .max_by_key(|&c| (widths[c], usize::MAX - c));
        if let Some(c) = widest {
            widths[c] = widths[c].saturating_sub(over).max(8.min(widths[c]));
        }
        let mut out = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (c, (&w, &side)) in widths.iter().zip(&self.sides).enumerate() {
                if c > 0 {
                    line.push_str(&" ".repeat(GAP));
                }
                let cell = cut(row.get(c).map_or("", String::as_str), w);
                let pad = " ".repeat(w.saturating_sub(columns(&cell)));
                match side {
                    Side::Left => line.extend([cell.as_str(), &pad]),
                    Side::Right => line.extend([pad.as_str(), &cell]),
                }
            }
            finish(&mut out, &cut(line.trim_end(), width));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_commas_between_thousands() {
        let table = [(0, "0"), (999, "999"), (1000, "1,000"), (7384, "7,384"), (1_234_567, "1,234,567")];
        for (n, want) in table {
            assert_eq!(number(n), want);
        }
        assert_eq!(number(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn thresholds_times_and_tolerances_are_short() {
        assert_eq!(threshold(f64::INFINITY), "inf");
        assert_eq!(
            (threshold(0.25), threshold(3.0), threshold(1.234e-7)),
            ("0.25".into(), "3".into(), "1.2e-7".into())
        );
        assert_eq!(
            (seconds(92.13), seconds(125.0), seconds(12_000.0)),
            ("92.1 s".into(), "2 min 5 s".into(), "3 h 20 min".into())
        );
        assert_eq!((seconds(f64::NAN), rate(-1.0)), ("–".into(), "–".into()));
        assert_eq!((tolerance(1e-2, 1e-2), tolerance(1e-3, 1.5e-5)), ("1e-2".into(), "1e-3/1.5e-5".into()));
    }

    #[test]
    fn no_wrapped_line_is_wider_than_asked() {
        let text = "a short one and averyveryverylongwordthatfitsnowhere and 漢字漢字漢字 end";
        for width in 8..40 {
            let out = wrap(text, width, "- ", "  ");
            assert!(out.lines().all(|l| columns(l) <= width), "{width}\n{out}");
            let kept: String = out.lines().flat_map(|l| l[2..].chars()).filter(|c| *c != ' ').collect();
            assert_eq!(kept, text.replace(' ', ""), "{width}");
        }
    }

    #[test]
    fn a_table_keeps_its_width_and_its_numbers() {
        let mut t = Table::new(&[("Name", Side::Left), ("n", Side::Right)]);
        t.row(vec!["a long name that has to give way".into(), "12,345".into()]);
        t.row(vec!["b\u{1b}[31m\nc".into(), "7".into()]);
        let out = t.draw(24);
        assert_eq!(
            out,
            "Name                   n\na long name tha…  12,345\nb\u{fffd}[31m c               7\n"
        );
        assert!(t.draw(10).lines().all(|l| columns(l) <= 10));
    }

    #[test]
    fn words_are_quoted_for_a_shell_where_they_must_be() {
        assert_eq!(shell("runs/a-1"), "runs/a-1");
        assert_eq!(shell("my run's"), r"'my run'\''s'");
    }
}
