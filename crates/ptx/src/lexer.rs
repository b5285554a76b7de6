//! PTX text to tokens, without copying.
//!
//! Comments and white space vanish here. An identifier token takes its dotted tail with it
//! (`ld.global.f32`, `%tid.x`), since in PTX only opcodes and special registers have one; a
//! directive such as `.reg` is a token of its own.

use crate::error::PtxError;
use crate::module::{Span, line_col};

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `name`, `%r1`, `add.s32`, `_`.
    Ident,
    /// `.reg`.
    Directive,
    /// Starts with a digit: integers and floats in any notation.
    Number,
    /// `"…"`, quotes included.
    Str,
    /// One byte of punctuation.
    Punct(u8),
    /// End of the text.
    Eof,
}

/// A token and where it starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token<'a> {
    pub kind: Kind,
    pub text: &'a str,
    pub start: u32,
}

impl Token<'_> {
    pub fn span(&self) -> Span {
        // The text's length fits u32 (see `Lexer::new`), so the end does.
        Span { start: self.start, end: self.start + self.text.len() as u32 }
    }
}

/// Character classes, by byte.
const IDENT_START: u8 = 1;
const IDENT: u8 = 2;
const SPACE: u8 = 4;

static CLASS: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut t = [0u8; 256];
    let mut i = 0;
    while i < 256 {
        let b = i as u8;
        if b.is_ascii_alphabetic() || b == b'_' || b == b'$' || b == b'%' {
            t[i] = IDENT_START | IDENT;
        } else if b.is_ascii_digit() {
            t[i] = IDENT;
        } else if b == b' ' || b == b'\t' || b == b'\n' || b == b'\r' || b == 0x0c || b == 0x0b {
            t[i] = SPACE;
        }
        i += 1;
    }
    t
}

fn is(b: u8, class: u8) -> bool {
    CLASS[b as usize] & class != 0
}

/// Splits a text into tokens, one [`Lexer::next`] at a time.
pub(crate) struct Lexer<'a> {
    text: &'a str,
    pos: usize,
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Result<Lexer<'a>, PtxError> {
        if u32::try_from(text.len()).is_err() {
            let spelling = format!("a text of {} bytes (at most {})", text.len(), u32::MAX);
            return Err(PtxError::Unsupported { spelling, line: 1 });
        }
        Ok(Lexer { text, pos: 0 })
    }

    fn byte(&self, at: usize) -> u8 {
        // 0 stands for the end; a real NUL byte is no token either way.
        self.text.as_bytes().get(at).copied().unwrap_or(0)
    }

    fn error(&self, at: usize, what: String) -> PtxError {
        let (line, column) = line_col(self.text, at as u32);
        PtxError::Syntax { line, column, what }
    }

    /// Skips white space and comments.
    fn skip(&mut self) -> Result<(), PtxError> {
        let bytes = self.text.as_bytes();
        loop {
            while self.pos < bytes.len() && is(bytes[self.pos], SPACE) {
                self.pos += 1;
            }
            if self.byte(self.pos) != b'/' {
                return Ok(());
            }
            match self.byte(self.pos + 1) {
                b'/' => {
                    let rest = &bytes[self.pos..];
                    self.pos += rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
                }
                b'*' => match self.text[self.pos + 2..].find("*/") {
                    Some(n) => self.pos += 2 + n + 2,
                    None => return Err(self.error(self.pos, "comment has no end".into())),
                },
                _ => return Ok(()),
            }
        }
    }

    fn word(&self, mut at: usize) -> usize {
        let bytes = self.text.as_bytes();
        while at < bytes.len() && is(bytes[at], IDENT) {
            at += 1;
        }
        at
    }

    /// The next token.
    pub fn next(&mut self) -> Result<Token<'a>, PtxError> {
        self.skip()?;
        let start = self.pos;
        let b = self.byte(start);
        let (kind, end) = if start >= self.text.len() {
            (Kind::Eof, start)
        } else if is(b, IDENT_START) {
            let mut end = self.word(start + 1);
            loop {
                if self.byte(end) == b'.' && is(self.byte(end + 1), IDENT) {
                    end = self.word(end + 1);
                } else if end > start + 1
                    && self.byte(end) == b':'
                    && self.byte(end + 1) == b':'
                    && is(self.byte(end + 2), IDENT)
                    && self.text[start..end].contains('.')
                {
                    end = self.word(end + 2);
                } else {
                    break;
                }
            }
            (Kind::Ident, end)
        } else if b.is_ascii_digit() {
            (Kind::Number, self.number(start))
        } else if b == b'.' && is(self.byte(start + 1), IDENT) {
            let mut end = self.word(start + 1);
            // `.param::entry`; a label never starts with a dot, so this is no label's colon.
            if self.byte(end) == b':' && self.byte(end + 1) == b':' && is(self.byte(end + 2), IDENT) {
                end = self.word(end + 2);
            }
            (Kind::Directive, end)
        } else if b == b'"' {
            (Kind::Str, self.string(start)?)
        } else if b.is_ascii_punctuation() {
            (Kind::Punct(b), start + 1)
        } else {
            let c = self.text[start..].chars().next().unwrap_or(' ');
            return Err(self.error(start, format!("unexpected character `{}`", c.escape_default())));
        };
        self.pos = end;
        Ok(Token { kind, text: &self.text[start..end], start: start as u32 })
    }

    /// End of the number at `start`.
    fn number(&self, start: usize) -> usize {
        let mut end = self.word(start);
        if self.byte(end) == b'.' && self.byte(end + 1).is_ascii_digit() {
            end = self.word(end + 1);
        } else if self.byte(end) == b'.' && !is(self.byte(end + 1), IDENT) {
            end += 1;
        }
        // An exponent with a sign, but not the `e` of a hexadecimal number.
        let text = &self.text[start..end];
        let radix = text.len() > 1 && text.starts_with('0') && text.as_bytes()[1].is_ascii_alphabetic();
        if !radix && text.ends_with(['e', 'E']) && matches!(self.byte(end), b'+' | b'-') {
            end = self.word(end + 1);
        }
        end
    }

    /// End of the string at `start`, the closing quote included.
    fn string(&self, start: usize) -> Result<usize, PtxError> {
        let bytes = self.text.as_bytes();
        let mut at = start + 1;
        loop {
            match bytes.get(at) {
                None | Some(b'\n') => return Err(self.error(start, "string has no end".into())),
                Some(b'\\') => at += 2,
                Some(b'"') => return Ok(at + 1),
                Some(_) => at += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<String> {
        let mut lexer = Lexer::new(text).unwrap();
        let mut out = Vec::new();
        loop {
            let t = lexer.next().unwrap();
            if t.kind == Kind::Eof {
                return out;
            }
            out.push(format!("{:?}:{}", t.kind, t.text).replace("Punct", ""));
        }
    }

    #[test]
    fn opcodes_registers_and_numbers_are_one_token_each() {
        let cases: &[(&str, &[&str])] = &[
            ("ld.shared::cluster.u32 %r1", &["Ident:ld.shared::cluster.u32", "Ident:%r1"]),
            ("$L__BB0_1:", &["Ident:$L__BB0_1", "(58)::"]),
            (
                ".param .b8 p[16]",
                &["Directive:.param", "Directive:.b8", "Ident:p", "(91):[", "Number:16", "(93):]"],
            ),
            ("%tid.x,0f3F800000", &["Ident:%tid.x", "(44):,", "Number:0f3F800000"]),
            ("1.5e-3 1. 0x1e-3", &["Number:1.5e-3", "Number:1.", "Number:0x1e", "(45):-", "Number:3"]),
            ("a/*x*/b//c\nd", &["Ident:a", "Ident:b", "Ident:d"]),
            (".version 9.5", &["Directive:.version", "Number:9.5"]),
            ("\"a\\\"b\" x", &["Str:\"a\\\"b\"", "Ident:x"]),
            ("%r<103>", &["Ident:%r", "(60):<", "Number:103", "(62):>"]),
        ];
        for (text, want) in cases {
            assert_eq!(tokens(text), *want, "{text}");
        }
    }

    #[test]
    fn what_does_not_end_is_reported_where_it_starts() {
        for (text, what) in [("x\n /* y", "comment has no end"), ("x\n \"y\nz\"", "string has no end")] {
            let mut lexer = Lexer::new(text).unwrap();
            lexer.next().unwrap();
            let want = PtxError::Syntax { line: 2, column: 2, what: what.into() };
            assert_eq!(lexer.next().unwrap_err(), want);
        }
    }
}
