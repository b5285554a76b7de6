//! Text splices: the only way in which this crate changes a source.
//!
//! Spans are byte ranges of the original source. Every edit keeps the number of lines, so a line
//! in a mutant's compiler log or finding is the same line of the original.

use serde::Serialize;

/// One splice: the bytes `start..end` of the source become `replacement`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Edit {
    /// First byte replaced.
    pub start: u32,
    /// One past the last byte replaced; equal to `start` for an insertion.
    pub end: u32,
    /// Text that takes the place of the span.
    pub replacement: String,
}

impl Edit {
    /// An edit whose replacement is padded with line ends until it has as many as the span.
    pub(crate) fn keeping_lines(source: &str, start: u32, end: u32, replacement: String) -> Edit {
        let old = lines_in(slice(source, start, end));
        let missing = old.saturating_sub(lines_in(&replacement));
        let mut replacement = replacement;
        replacement.extend(std::iter::repeat_n('\n', missing));
        Edit { start, end, replacement }
    }

    /// Whether the span lies in `source` on character boundaries.
    pub fn fits(&self, source: &str) -> bool {
        source.get(self.start as usize..self.end as usize).is_some()
    }

    /// The same change, written so that two edits with one effect compare equal.
    ///
    /// Common ends of old and new text are cut off; what is then a pure insertion or deletion is
    /// moved as far left as the surrounding text lets it.
    pub(crate) fn canonical(&self, source: &str) -> (u32, u32, Vec<u8>) {
        let bytes = source.as_bytes();
        let (mut start, mut end) = (self.start as usize, self.end as usize);
        let mut new = self.replacement.as_bytes();
        while start < end && new.first() == Some(&bytes[start]) {
            start += 1;
            new = &new[1..];
        }
        while start < end && new.last() == Some(&bytes[end - 1]) {
            end -= 1;
            new = &new[..new.len() - 1];
        }
        let mut new = new.to_vec();
        if start == end {
            while start > 0 && new.last() == Some(&bytes[start - 1]) {
                new.rotate_right(1);
                start -= 1;
                end -= 1;
            }
        } else if new.is_empty() {
            while start > 0 && bytes[start - 1] == bytes[end - 1] {
                start -= 1;
                end -= 1;
            }
        }
        (start as u32, end as u32, new)
    }
}

/// `source` with all `edits` made. They must be in order and must not overlap.
///
/// An edit outside the source, or inside a character, is left out: edits belong to the source
/// that they were made from.
pub fn apply(source: &str, edits: &[Edit]) -> String {
    let mut out = String::with_capacity(source.len() + 64);
    let mut at = 0usize;
    for edit in edits {
        let (start, end) = (edit.start as usize, edit.end as usize);
        if start < at || !edit.fits(source) {
            continue;
        }
        out.push_str(&source[at..start]);
        out.push_str(&edit.replacement);
        at = end;
    }
    out.push_str(&source[at..]);
    out
}

pub(crate) fn slice(source: &str, start: u32, end: u32) -> &str {
    source.get(start as usize..end as usize).unwrap_or("")
}

fn lines_in(text: &str) -> usize {
    text.bytes().filter(|&b| b == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replacement_with_fewer_lines_is_padded() {
        let edit = Edit::keeping_lines("a\nb\nc", 0, 5, "x".into());
        assert_eq!(edit.replacement, "x\n\n");
        assert_eq!(apply("a\nb\nc", &[edit]), "x\n\n");
    }

    #[test]
    fn one_change_spelled_in_two_ways_is_one_key() {
        let source = "i < n";
        let whole = Edit { start: 0, end: 5, replacement: "i <= n".into() };
        let sign = Edit { start: 2, end: 3, replacement: "<=".into() };
        assert_eq!(whole.canonical(source), sign.canonical(source));
        let before = Edit { start: 0, end: 1, replacement: "xx".into() };
        let after = Edit { start: 1, end: 2, replacement: "xx".into() };
        assert_eq!(before.canonical("xx"), after.canonical("xx"));
    }

    #[test]
    fn edits_of_another_source_are_left_out() {
        let edit = Edit { start: 1, end: 2, replacement: "x".into() };
        assert_eq!(apply("é", std::slice::from_ref(&edit)), "é");
        assert_eq!(apply("", &[edit]), "");
    }
}
