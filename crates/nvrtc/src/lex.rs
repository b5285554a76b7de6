//! Just enough of C++'s lexical structure to judge a unit: tokens with lines, after line splicing.
//!
//! Source: ISO C++17 [lex.phases]. Not done: trigraphs (NVRTC has them off; callers treat `??` as suspicious) and the
//! reverting of splices inside raw strings (callers treat raw strings as suspicious).

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Ident,
    Number,
    Str,
    RawStr,
    Char,
    /// `<…>` or `"…"` after `#include` and its like, or inside `__has_include(…)`.
    Header,
    /// One character of punctuation, or one of the pairs `##`, `::`.
    Punct,
}

/// A token: its text lies in [`Lexed::text`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
    /// 1-based line in the source as given.
    pub line: u32,
    /// Inside a preprocessor directive, its `#` included.
    pub directive: bool,
    /// First token of a directive.
    pub opens_directive: bool,
    /// White space or a comment stands before it.
    pub spaced: bool,
}

/// A lexed source.
pub(crate) struct Lexed {
    /// The source with spliced lines joined.
    pub text: Vec<u8>,
    pub tokens: Vec<Token>,
    /// Something does not end where it should: a comment, a string, a character.
    pub unterminated: bool,
    /// A line is spliced at the very end, or a `??` or digraph occurs.
    pub odd: bool,
    /// Offset in the source as given for each byte of `text`.
    origin: Vec<usize>,
}

impl Lexed {
    pub(crate) fn str(&self, token: &Token) -> &str {
        std::str::from_utf8(&self.text[token.start..token.end]).unwrap_or("")
    }

    /// Range of a token in the source as given.
    pub(crate) fn source_range(&self, token: &Token) -> std::ops::Range<usize> {
        self.origin[token.start]..self.origin[token.end - 1] + 1
    }
}

/// Joins spliced lines: a backslash, optional blanks, a line end. GCC and EDG accept the blanks.
fn splice(source: &[u8]) -> (Vec<u8>, Vec<usize>, Vec<u32>, bool) {
    let (mut text, mut origin, mut lines) = (Vec::new(), Vec::new(), Vec::new());
    let mut at = 0;
    let mut line = 1u32;
    let mut odd = false;
    while at < source.len() {
        if source[at] == b'\\' {
            let mut end = at + 1;
            while source.get(end).is_some_and(|b| matches!(b, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)) {
                end += 1;
            }
            match source.get(end) {
                Some(b'\n') => {
                    line = line.saturating_add(1);
                    at = end + 1;
                    odd |= at == source.len();
                    continue;
                }
                None => odd = true,
                _ => {}
            }
        }
        text.push(source[at]);
        origin.push(at);
        lines.push(line);
        if source[at] == b'\n' {
            line = line.saturating_add(1);
        }
        at += 1;
    }
    (text, origin, lines, odd)
}

fn ident_start(b: u8) -> bool {
    b.is_ascii_alphabetic() || b == b'_' || b == b'$' || b >= 0x80
}

fn ident_part(b: u8) -> bool {
    ident_start(b) || b.is_ascii_digit()
}

/// Lexes `source`. Never fails: what cannot be right is flagged.
pub(crate) fn lex(source: &str) -> Lexed {
    let (text, origin, lines, mut odd) = splice(source.as_bytes());
    let mut tokens: Vec<Token> = Vec::new();
    let mut unterminated = false;
    let mut at = 0;
    let (mut line_start, mut in_directive, mut spaced) = (true, false, false);
    let peek = |i: usize| text.get(i).copied().unwrap_or(0);
    while at < text.len() {
        let start = at;
        let byte = text[at];
        match byte {
            b'\n' => {
                (line_start, in_directive, spaced) = (true, false, true);
                at += 1;
                continue;
            }
            b' ' | b'\t' | b'\r' | 0x0b | 0x0c => {
                spaced = true;
                at += 1;
                continue;
            }
            b'/' if peek(at + 1) == b'/' => {
                while at < text.len() && text[at] != b'\n' {
                    at += 1;
                }
                spaced = true;
                continue;
            }
            b'/' if peek(at + 1) == b'*' => {
                match find(&text, at + 2, b"*/") {
                    Some(end) => at = end + 2,
                    None => {
                        unterminated = true;
                        at = text.len();
                    }
                }
                spaced = true;
                continue;
            }
            _ => {}
        }
        let close = match byte {
            b'<' => b'>',
            _ => b'"',
        };
        let header_end = (matches!(byte, b'<' | b'"') && expects_header(&text, &tokens))
            .then(|| text[at + 1..].iter().position(|&b| b == close || b == b'\n'))
            .flatten()
            .filter(|&length| text[at + 1 + length] == close);
        let kind = if let Some(length) = header_end {
            at += length + 2;
            Kind::Header
        } else if ident_start(byte) {
            while ident_part(peek(at)) {
                at += 1;
            }
            let prefix = &text[start..at];
            if peek(at) == b'"' && matches!(prefix, b"R" | b"u8R" | b"uR" | b"UR" | b"LR") {
                at = raw_string_end(&text, at).unwrap_or_else(|| {
                    unterminated = true;
                    text.len()
                });
                Kind::RawStr
            } else if matches!(peek(at), b'"' | b'\'') && matches!(prefix, b"u8" | b"u" | b"U" | b"L") {
                let quote = peek(at);
                at = quoted_end(&text, at, &mut unterminated);
                if quote == b'"' { Kind::Str } else { Kind::Char }
            } else {
                Kind::Ident
            }
        } else if byte.is_ascii_digit() || (byte == b'.' && peek(at + 1).is_ascii_digit()) {
            while at < text.len() {
                let exponent =
                    matches!(peek(at), b'e' | b'E' | b'p' | b'P') && matches!(peek(at + 1), b'+' | b'-');
                if exponent || (peek(at) == b'\'' && ident_part(peek(at + 1))) {
                    at += 2;
                } else if ident_part(peek(at)) || peek(at) == b'.' {
                    at += 1;
                } else {
                    break;
                }
            }
            Kind::Number
        } else if byte == b'"' || byte == b'\'' {
            at = quoted_end(&text, at, &mut unterminated);
            if byte == b'"' { Kind::Str } else { Kind::Char }
        } else {
            let pair = [byte, peek(at + 1)];
            odd |= matches!(&pair, b"??" | b"<%" | b"%>" | b"<:" | b":>" | b"%:");
            at += if matches!(&pair, b"##" | b"::" | b"%:") { 2 } else { 1 };
            Kind::Punct
        };
        let opens = line_start && matches!(&text[start..at], b"#" | b"%:");
        in_directive |= opens;
        tokens.push(Token {
            kind,
            start,
            end: at,
            line: lines[start],
            directive: in_directive,
            opens_directive: opens,
            spaced,
        });
        (line_start, spaced) = (false, false);
    }
    // Trigraphs may hide anywhere, also inside comments and strings.
    odd |= find(&text, 0, b"??/").is_some() || find(&text, 0, b"??=").is_some();
    Lexed { text, tokens, unterminated, odd, origin }
}

/// Words of directives that name a file.
pub(crate) const INCLUDE_WORDS: [&[u8]; 4] = [b"include", b"include_next", b"import", b"embed"];
/// Operators of conditions that name a file.
pub(crate) const HAS_WORDS: [&[u8]; 4] =
    [b"__has_include", b"__has_include_next", b"__has_embed", b"__has_include__"];

/// Whether the compiler would read a header name next.
fn expects_header(text: &[u8], tokens: &[Token]) -> bool {
    let word = |token: &Token| &text[token.start..token.end];
    match tokens {
        [.., hash, name] if hash.opens_directive && name.directive => INCLUDE_WORDS.contains(&word(name)),
        [.., name, open] if name.directive && word(open) == b"(" => HAS_WORDS.contains(&word(name)),
        _ => false,
    }
}

fn find(text: &[u8], from: usize, what: &[u8]) -> Option<usize> {
    text.get(from..)?.windows(what.len()).position(|w| w == what).map(|p| p + from)
}

/// End of a string or character that starts at `at`; stops at the line's end if it does not close.
fn quoted_end(text: &[u8], at: usize, unterminated: &mut bool) -> usize {
    let quote = text[at];
    let mut end = at + 1;
    while end < text.len() && text[end] != b'\n' {
        match text[end] {
            b'\\' if end + 1 < text.len() && text[end + 1] != b'\n' => end += 2,
            b if b == quote => return end + 1,
            _ => end += 1,
        }
    }
    *unterminated = true;
    end
}

/// End of a raw string whose `"` is at `at`.
fn raw_string_end(text: &[u8], at: usize) -> Option<usize> {
    let open = find(text, at + 1, b"(")?;
    let delimiter = &text[at + 1..open];
    if delimiter.len() > 16 {
        return None;
    }
    let mut close = vec![b')'];
    close.extend_from_slice(delimiter);
    close.push(b'"');
    find(text, open + 1, &close).map(|p| p + close.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(source: &str) -> Vec<String> {
        let lexed = lex(source);
        lexed
            .tokens
            .iter()
            .map(|t| format!("{}{}", if t.directive { "#" } else { "" }, lexed.str(t)))
            .collect()
    }

    #[test]
    fn comments_strings_and_splices_are_taken_as_the_compiler_takes_them() {
        let cases: &[(&str, &[&str])] = &[
            ("a /* # include */ b // c\nd", &["a", "b", "d"]),
            ("\"x\\\"y\" '\\'' 1'000.5e-3f", &["\"x\\\"y\"", "'\\''", "1'000.5e-3f"]),
            ("#inc\\\nlude <a>\nb", &["##", "#include", "#<a>", "b"]),
            ("x /*\n*/ # y", &["x", "#", "y"]),
            ("/*\n*/ # y\nz", &["##", "#y", "z"]),
            ("R\"q(\n# \")q\" z", &["R\"q(\n# \")q\"", "z"]),
            (
                "#include <a/*b>\n# include \"c\\\"",
                &["##", "#include", "#<a/*b>", "##", "#include", "#\"c\\\""],
            ),
            (
                "#if __has_include(<a//b>) + x",
                &["##", "#if", "#__has_include", "#(", "#<a//b>", "#)", "#+", "#x"],
            ),
            ("a::b c##d", &["a", "::", "b", "c", "##", "d"]),
        ];
        for (source, expected) in cases {
            assert_eq!(words(source), *expected, "{source}");
        }
    }

    #[test]
    fn what_does_not_end_is_flagged() {
        for source in ["/* a", "\"a\nb", "'a", "R\"(abc"] {
            assert!(lex(source).unterminated, "{source}");
        }
        for source in ["a \\", "a \\\n", "x ??/ y", "a <: 0 :>", "%:define x"] {
            assert!(lex(source).odd, "{source}");
        }
        assert!(!lex("a < b ? c : d;\n").odd);
    }

    #[test]
    fn lines_are_those_of_the_source() {
        let lexed = lex("a \\\n b\n/*\n*/c");
        let lines: Vec<u32> = lexed.tokens.iter().map(|t| t.line).collect();
        assert_eq!(lines, [1, 2, 4]);
    }
}
