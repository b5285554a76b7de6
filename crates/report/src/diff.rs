//! Unified diffs: the changed part alone, and the span that a mutant changes.

/// A line of a diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// `-`, `+`, a space, or `…` between parts.
    pub mark: char,
    /// The text without mark and line end.
    pub text: String,
}

struct Hunk<'a> {
    /// 1-based.
    old_start: usize,
    lines: Vec<(char, &'a str)>,
}

/// `12,3` or `12`.
fn range(text: &str) -> Option<(usize, usize)> {
    match text.split_once(',') {
        Some((at, n)) => Some((at.parse().ok()?, n.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    }
}

fn hunks(diff: &str) -> Vec<Hunk<'_>> {
    let mut out: Vec<Hunk<'_>> = Vec::new();
    let (mut old_left, mut new_left) = (0usize, 0usize);
    for line in diff.lines() {
        if old_left == 0 && new_left == 0 {
            // Headers, and what stands between hunks.
            let Some(rest) = line.strip_prefix("@@ -") else { continue };
            let mut words = rest.split(' ');
            let old = words.next().and_then(range);
            let new = words.next().and_then(|w| w.strip_prefix('+')).and_then(range);
            if let (Some((old_start, old_lines)), Some((_, new_lines))) = (old, new) {
                out.push(Hunk { old_start, lines: Vec::new() });
                (old_left, new_left) = (old_lines, new_lines);
            }
            continue;
        }
        // An editor may have taken the space of an empty context line.
        let (mark, text) = match line.chars().next() {
            Some(c @ ('-' | '+' | ' ')) => (c, &line[1..]),
            None => (' ', ""),
            Some(_) => continue,
        };
        match mark {
            '-' => old_left = old_left.saturating_sub(1),
            '+' => new_left = new_left.saturating_sub(1),
            _ => {
                old_left = old_left.saturating_sub(1);
                new_left = new_left.saturating_sub(1);
            }
        }
        if let Some(h) = out.last_mut() {
            h.lines.push((mark, text));
        }
    }
    out
}

/// The changed lines of a diff with `context` lines around them; a line of mark `…` stands where lines are left out
/// between two changes.
pub fn changed(diff: &str, context: usize) -> Vec<Line> {
    let mut out: Vec<Line> = Vec::new();
    for hunk in hunks(diff) {
        let near = |i: usize| {
            let from = i.saturating_sub(context);
            let to = (i + context + 1).min(hunk.lines.len());
            hunk.lines[from..to].iter().any(|l| l.0 != ' ')
        };
        let mut skipped = !out.is_empty();
        for (i, &(mark, text)) in hunk.lines.iter().enumerate() {
            if !near(i) {
                skipped = true;
                continue;
            }
            if skipped && !out.is_empty() {
                out.push(Line { mark: '…', text: String::new() });
            }
            skipped = false;
            out.push(Line { mark, text: text.to_owned() });
        }
    }
    out
}

/// `source` with the diff applied; none where it does not fit.
pub fn apply(source: &str, diff: &str) -> Option<String> {
    let lines: Vec<&str> = source.split_inclusive('\n').collect();
    let bare = |l: &str| l.trim_end_matches('\n').trim_end_matches('\r').to_owned();
    let mut out = String::with_capacity(source.len() + 64);
    let mut at = 0usize;
    let hunks = hunks(diff);
    if hunks.is_empty() {
        return None;
    }
    for hunk in hunks {
        let holds_old = hunk.lines.iter().any(|l| l.0 != '+');
        // A hunk that only inserts names the line before it.
        let start = if holds_old { hunk.old_start.checked_sub(1)? } else { hunk.old_start };
        out.extend(lines.get(at..start)?.iter().copied());
        at = start;
        for (mark, text) in hunk.lines {
            if mark == '+' {
                out.push_str(text);
                out.push('\n');
                continue;
            }
            let line = lines.get(at)?;
            if bare(line) != text.trim_end_matches('\r') {
                return None;
            }
            if mark == ' ' {
                out.push_str(line);
            }
            at += 1;
        }
    }
    out.extend(lines.get(at..)?.iter().copied());
    if !source.ends_with('\n') && out.ends_with('\n') {
        out.pop();
    }
    Some(out)
}

/// A place in a source as the Stryker schema has it: lines and columns from 1, columns in UTF-16 units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Line.
    pub line: u64,
    /// Column.
    pub column: u64,
}

/// What a mutant replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// First place.
    pub start: Position,
    /// One past the last.
    pub end: Position,
    /// What stands there in the mutant; empty for a deletion.
    pub replacement: String,
}

/// The smallest span of whole words and operators in which two texts differ; none where they are equal.
pub fn span(source: &str, mutant: &str) -> Option<Span> {
    if source == mutant {
        return None;
    }
    let common = |a: &mut dyn Iterator<Item = char>, b: &mut dyn Iterator<Item = char>| -> usize {
        a.zip(b).take_while(|(x, y)| x == y).map(|(x, _)| x.len_utf8()).sum()
    };
    let mut from = common(&mut source.chars(), &mut mutant.chars());
    let (old, new) = (&source[from..], &mutant[from..]);
    let mut tail = common(&mut old.chars().rev(), &mut new.chars().rev());

    let old = &source[from..source.len() - tail];
    let new = &mutant[from..mutant.len() - tail];
    // Words and operators are not cut in two.
    let edge = |c: Option<char>| {
        [old.chars().next(), new.chars().next()].into_iter().any(|e| e.is_some() && class(e) == class(c))
    };
    while edge(source[..from].chars().next_back()) && class(source[..from].chars().next_back()).is_some() {
        let Some(c) = source[..from].chars().next_back() else { break };
        from -= c.len_utf8();
    }
    let back = |c: Option<char>| {
        [old.chars().next_back(), new.chars().next_back()]
            .into_iter()
            .any(|e| e.is_some() && class(e) == class(c))
    };
    while tail > 0 {
        let next = source[source.len() - tail..].chars().next();
        if class(next).is_none() || !back(next) {
            break;
        }
        tail -= next.map_or(1, char::len_utf8);
    }
    let mut to = source.len() - tail;
    let mut new_to = mutant.len() - tail;
    // A viewer cannot mark nothing: an insertion takes the next character along, or the one before.
    if from == to {
        match (source[to..].chars().next(), source[..from].chars().next_back()) {
            (Some(c), _) if c != '\n' => {
                to += c.len_utf8();
                new_to += c.len_utf8();
            }
            (_, Some(c)) if c != '\n' => from -= c.len_utf8(),
            _ => {}
        }
    }
    Some(Span {
        start: position(source, from),
        end: position(source, to),
        replacement: mutant[from..new_to].to_owned(),
    })
}

/// Words are one class, operators another; nothing else sticks together.
fn class(c: Option<char>) -> Option<u8> {
    match c? {
        c if c.is_alphanumeric() || c == '_' => Some(0),
        c if "<>=!+-*/&|%^~".contains(c) => Some(1),
        _ => None,
    }
}

fn position(text: &str, byte: usize) -> Position {
    let before = &text[..byte];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    Position {
        line: before.matches('\n').count() as u64 + 1,
        column: before[line_start..].encode_utf16().count() as u64 + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "a\nb\nfor (i = 0; i < n; i++) {\nc\nd\ne\nf\ng\n--x;\nh\n";
    const DIFF: &str = "--- a/k.cu\n+++ b/k.cu\n@@ -1,5 +1,5 @@\n a\n b\n-for (i = 0; i < n; i++) {\n+for (i = 0; i <= n; i++) {\n c\n d\n@@ -8,3 +8,3 @@\n g\n---x;\n+++x;\n h\n";

    #[test]
    fn a_diff_is_cut_to_its_changes() {
        let text = |context| -> String {
            changed(DIFF, context).iter().map(|l| format!("{}{}|", l.mark, l.text)).collect()
        };
        assert_eq!(text(0), "-for (i = 0; i < n; i++) {|+for (i = 0; i <= n; i++) {|…|---x;|+++x;|");
        assert_eq!(
            text(1),
            " b|-for (i = 0; i < n; i++) {|+for (i = 0; i <= n; i++) {| c|…| g|---x;|+++x;| h|"
        );
        assert!(changed("not a diff", 1).is_empty());
    }

    #[test]
    fn a_diff_applies_to_its_source_only() {
        let want = "a\nb\nfor (i = 0; i <= n; i++) {\nc\nd\ne\nf\ng\n++x;\nh\n";
        assert_eq!(apply(SOURCE, DIFF).as_deref(), Some(want));
        assert_eq!(apply("a\nb\n", DIFF), None);
        assert_eq!(apply(&SOURCE.replace('<', ">"), DIFF), None);
        assert_eq!(
            apply("a\nb", "@@ -2 +2 @@\n-b\n\\ No newline at end of file\n+c\n").as_deref(),
            Some("a\nc")
        );
        assert_eq!(apply("a\nb\n", "@@ -1,0 +2,1 @@\n+x\n").as_deref(), Some("a\nx\nb\n"));
    }

    #[test]
    fn spans_are_whole_words_with_utf16_columns() {
        // (source, mutant, start, end, replacement)
        let table = [
            ("i < n", "i <= n", (1, 3), (1, 4), "<="),
            ("x\n/*é𝄞*/ foo(n);\n", "x\n/*é𝄞*/ foo(m);\n", (2, 13), (2, 14), "m"),
            ("int tile1 = 0;", "int tile2 = 0;", (1, 5), (1, 10), "tile2"),
            ("a; __syncthreads(); b", "a;  b", (1, 4), (1, 20), ""),
            ("f(a, b)", "f(b, a)", (1, 3), (1, 7), "b, a"),
            ("ab", "ab;", (1, 2), (1, 3), "b;"),
            ("(a)", "(a + 1)", (1, 3), (1, 4), " + 1)"),
            ("one\ntwo\n", "one\n", (2, 1), (3, 1), ""),
        ];
        for (source, mutant, start, end, replacement) in table {
            let s = span(source, mutant).unwrap();
            let at = |p: Position| (p.line, p.column);
            assert_eq!(
                (at(s.start), at(s.end), s.replacement.as_str()),
                (start, end, replacement),
                "{source} -> {mutant}"
            );
        }
        assert_eq!(span("same", "same"), None);
    }
}
