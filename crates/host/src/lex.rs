//! CUDA C++ text to tokens.
//!
//! Comments vanish, a preprocessor line (with its continuations) is one token, everything else is an
//! identifier, a number, a string, a character or a punctuator. The lexer never fails: a byte that begins no
//! token is a punctuator of its own, an unterminated string or comment ends with the text.
//!
//! Source: C++17 [lex.phases], [lex.pptoken]; `<<<` and `>>>` from the CUDA C++ programming guide.
//! What it misses: trigraphs, and line splices inside a token.

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Ident,
    Number,
    Str,
    Char,
    Punct,
    /// `#…` up to the end of its logical line, the newline not included.
    Directive,
    /// The result of `##` in a macro, which this crate does not evaluate.
    Pasted,
    /// A piece of the string that `#` makes of a macro's argument; an empty piece begins it.
    Spelled,
}

/// One token; `at` is the byte offset in the file (for the result of a macro: of the macro's use).
#[derive(Clone, Copy, Debug)]
pub struct Tok<'a> {
    pub kind: Kind,
    pub text: &'a str,
    pub at: u32,
}

impl Tok<'_> {
    /// True when this is the punctuator or the identifier `text`.
    pub fn is(&self, text: &str) -> bool {
        matches!(self.kind, Kind::Punct | Kind::Ident) && self.text == text
    }

    /// One past the last byte, for tokens that stand in the file themselves.
    pub fn end(&self) -> usize {
        self.at as usize + self.text.len()
    }
}

const PUNCTUATORS: [&str; 28] = [
    "<<<", ">>>", "<<=", ">>=", "...", "->*", "::", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=",
    "&&", "||", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "##", ".*",
];

fn is_ident_start(b: u8) -> bool {
    b.is_ascii_alphabetic() || b == b'_' || b == b'$' || b >= 0x80
}

fn is_ident(b: u8) -> bool {
    is_ident_start(b) || b.is_ascii_digit()
}

/// Every token of `source`, whose offsets begin at `base`. Texts over 4 GiB are cut (files are far smaller).
pub fn lex(source: &str, base: u32) -> Vec<Tok<'_>> {
    let bytes = source.as_bytes();
    let mut out = Vec::new();
    let mut i = 0usize;
    let mut line_start = true;
    while i < bytes.len() {
        let b = bytes[i];
        if b == b'\n' {
            line_start = true;
            i += 1;
            continue;
        }
        if b.is_ascii_whitespace() || (b == b'\\' && matches!(bytes.get(i + 1), Some(b'\n' | b'\r'))) {
            i += 1;
            continue;
        }
        if let Some(end) = comment_end(bytes, i) {
            i = end;
            continue;
        }
        let start = i;
        let kind = if b == b'#' && line_start {
            i = directive_end(bytes, i);
            Kind::Directive
        } else if is_ident_start(b) {
            while i < bytes.len() && is_ident(bytes[i]) {
                i += 1;
            }
            // A prefix such as u8, L or R belongs to the string that touches it.
            let prefix = &source[start..i];
            if bytes.get(i) == Some(&b'"') && prefix.len() <= 3 && prefix.ends_with('R') {
                i = raw_string_end(bytes, i);
                Kind::Str
            } else if matches!(prefix, "u8" | "u" | "U" | "L") && matches!(bytes.get(i), Some(b'"' | b'\'')) {
                i = quoted_end(bytes, i);
                Kind::Str
            } else {
                Kind::Ident
            }
        } else if b.is_ascii_digit() || (b == b'.' && bytes.get(i + 1).is_some_and(u8::is_ascii_digit)) {
            i = number_end(bytes, i);
            Kind::Number
        } else if b == b'"' {
            i = quoted_end(bytes, i);
            Kind::Str
        } else if b == b'\'' {
            i = quoted_end(bytes, i);
            Kind::Char
        } else {
            let rest = &bytes[i..];
            i += PUNCTUATORS.iter().find(|p| rest.starts_with(p.as_bytes())).map_or(1, |p| p.len());
            Kind::Punct
        };
        line_start = false;
        let Ok(at) = u32::try_from(start) else { break };
        out.push(Tok { kind, text: &source[start..i], at: base.saturating_add(at) });
    }
    out
}

/// Where the comment that begins at `i` ends, if one begins there.
fn comment_end(bytes: &[u8], i: usize) -> Option<usize> {
    match (bytes[i], bytes.get(i + 1)) {
        (b'/', Some(b'/')) => {
            let mut j = i;
            while j < bytes.len() && bytes[j] != b'\n' {
                // A backslash at the end of the line carries the comment on.
                j += if bytes[j] == b'\\' && bytes.get(j + 1) == Some(&b'\n') { 2 } else { 1 };
            }
            Some(j.min(bytes.len()))
        }
        (b'/', Some(b'*')) => {
            let mut j = i + 2;
            while j < bytes.len() {
                if bytes[j] == b'*' && bytes.get(j + 1) == Some(&b'/') {
                    return Some(j + 2);
                }
                j += 1;
            }
            Some(bytes.len())
        }
        _ => None,
    }
}

fn directive_end(bytes: &[u8], mut i: usize) -> usize {
    while i < bytes.len() && bytes[i] != b'\n' {
        if bytes[i] == b'\\' && bytes.get(i + 1) == Some(&b'\n') {
            i += 2;
        } else if bytes[i] == b'\\' && bytes.get(i + 1) == Some(&b'\r') && bytes.get(i + 2) == Some(&b'\n') {
            i += 3;
        } else if bytes[i] == b'/' && bytes.get(i + 1) == Some(&b'*') {
            i = comment_end(bytes, i).unwrap_or(i + 1);
        } else {
            i += 1;
        }
    }
    i.min(bytes.len())
}

fn number_end(bytes: &[u8], mut i: usize) -> usize {
    let hex = bytes[i] == b'0' && matches!(bytes.get(i + 1), Some(b'x' | b'X'));
    while i < bytes.len() {
        let b = bytes[i];
        let exponent = if hex { matches!(b, b'p' | b'P') } else { matches!(b, b'e' | b'E') };
        if exponent && matches!(bytes.get(i + 1), Some(b'+' | b'-')) {
            i += 2;
        } else if b.is_ascii_alphanumeric()
            || b == b'.'
            || b == b'_'
            || (b == b'\'' && bytes.get(i + 1).is_some_and(u8::is_ascii_alphanumeric))
        {
            i += 1;
        } else {
            break;
        }
    }
    i
}

/// End of a quoted text that begins with a quote at `i`; a newline ends an unterminated one.
fn quoted_end(bytes: &[u8], mut i: usize) -> usize {
    let quote = bytes[i];
    i += 1;
    while i < bytes.len() && bytes[i] != quote && bytes[i] != b'\n' {
        i += if bytes[i] == b'\\' { 2 } else { 1 };
    }
    if bytes.get(i) == Some(&quote) { i + 1 } else { i.min(bytes.len()) }
}

/// End of a raw string whose opening quote is at `i`.
fn raw_string_end(bytes: &[u8], i: usize) -> usize {
    let Some(open) = bytes[i..].iter().take(18).position(|&b| b == b'(') else {
        return quoted_end(bytes, i);
    };
    let mut close = vec![b')'];
    close.extend_from_slice(&bytes[i + 1..i + open]);
    close.push(b'"');
    bytes[i + open..]
        .windows(close.len())
        .position(|w| w == close)
        .map_or(bytes.len(), |p| i + open + p + close.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(s: &str) -> Vec<&str> {
        lex(s, 0).iter().map(|t| t.text).collect()
    }

    #[test]
    fn tokens_of_a_launch_are_split_where_cuda_splits_them() {
        assert_eq!(
            texts("k<f,2><<<g, b>>>(x+1.5e-3f, 0x1Fu); // end"),
            [
                "k", "<", "f", ",", "2", ">", "<<<", "g", ",", "b", ">>>", "(", "x", "+", "1.5e-3f", ",",
                "0x1Fu", ")", ";"
            ]
        );
    }

    #[test]
    fn comments_and_strings_hide_what_they_contain() {
        assert_eq!(
            texts("a /* } */ \"{\\\"\" '{' R\"x({\")\")x\" b"),
            ["a", "\"{\\\"\"", "'{'", "R\"x({\")\")x\"", "b"]
        );
        assert_eq!(texts("/* never closed"), Vec::<&str>::new());
        assert_eq!(texts("\"never closed\nb"), ["\"never closed", "b"]);
    }

    #[test]
    fn a_directive_takes_its_continuation_lines_along() {
        assert_eq!(texts("#define A 1 \\\n + 2\nA"), ["#define A 1 \\\n + 2", "A"]);
        assert_eq!(texts("a # b"), ["a", "#", "b"]);
    }

    #[test]
    fn any_bytes_lex_without_panic() {
        for s in ["\\", "'", "\"\\", "R\"", "R\"(", "/", "/*", "#", "0x", "1'", "é{", "@`", "u8\"", "//\\"] {
            let _ = lex(s, 0);
        }
    }
}
