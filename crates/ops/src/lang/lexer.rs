//! Text to tokens.

use crate::error::ProgramError;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Name(String),
    Int(i64),
    Float(f64),
    Text(String),
    /// An operator or bracket, by its spelling.
    Sign(&'static str),
    /// End of a logical line.
    Newline,
    End,
}

impl Token {
    pub(super) fn words(&self) -> String {
        match self {
            Token::Name(n) => format!("`{n}`"),
            Token::Int(i) => format!("`{i}`"),
            Token::Float(x) => format!("`{x:?}`"),
            Token::Text(s) => format!("'{s}'"),
            Token::Sign(s) => format!("`{s}`"),
            Token::Newline => "the end of the line".into(),
            Token::End => "the end of the text".into(),
        }
    }
}

/// A place in the text: line and column from 1, the column in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    pub(super) line: u32,
    pub(super) column: u32,
}

impl At {
    pub(super) fn error(self, message: impl Into<String>) -> ProgramError {
        ProgramError { line: self.line, column: self.column, message: message.into() }
    }
}

// Longer spellings first.
const SIGNS: [&str; 25] = [
    "**", "//", "==", "!=", "<=", ">=", "(", ")", "[", "]", ",", "=", "+", "-", "*", "/", "%", "@", "<", ">",
    ".", ":", "{", "}", ";",
];

pub(super) fn tokens(text: &str) -> Result<Vec<(Token, At)>, ProgramError> {
    let mut out = Vec::new();
    let mut depth = 0u32;
    let mut line = 0u32;
    for source in text.split('\n') {
        line = line.saturating_add(1);
        let source = source.strip_suffix('\r').unwrap_or(source);
        let chars: Vec<char> = source.chars().collect();
        let mut i = 0;
        while i < chars.len() {
            let at = At { line, column: u32::try_from(i).unwrap_or(u32::MAX).saturating_add(1) };
            let c = chars[i];
            if c.is_whitespace() {
                i += 1;
            } else if c == '#' {
                break;
            } else if c.is_alphabetic() || c == '_' {
                let start = i;
                while i < chars.len() && (chars[i].is_alphanumeric() || chars[i] == '_') {
                    i += 1;
                }
                out.push((Token::Name(chars[start..i].iter().collect()), at));
            } else if c.is_ascii_digit() || (c == '.' && chars.get(i + 1).is_some_and(char::is_ascii_digit)) {
                let (token, next) = number(&chars, i, at)?;
                out.push((token, at));
                i = next;
            } else if c == '\'' || c == '"' {
                let end = chars[i + 1..].iter().position(|&x| x == c).map(|n| i + 1 + n);
                let Some(end) = end else {
                    return Err(at.error("this string does not end on its line"));
                };
                out.push((Token::Text(chars[i + 1..end].iter().collect()), at));
                i = end + 1;
            } else {
                let sign = SIGNS
                    .into_iter()
                    .find(|s| s.chars().enumerate().all(|(k, x)| chars.get(i + k) == Some(&x)));
                let Some(sign) = sign else {
                    return Err(at.error(format!("unexpected character `{c}`")));
                };
                match sign {
                    "(" | "[" => depth += 1,
                    ")" | "]" => depth = depth.saturating_sub(1),
                    _ => {}
                }
                out.push((Token::Sign(sign), at));
                i += sign.len();
            }
        }
        if depth == 0 {
            let column = u32::try_from(chars.len()).unwrap_or(u32::MAX).saturating_add(1);
            out.push((Token::Newline, At { line, column }));
        }
    }
    out.push((Token::End, At { line, column: 1 }));
    Ok(out)
}

fn number(chars: &[char], start: usize, at: At) -> Result<(Token, usize), ProgramError> {
    let mut i = start;
    let digits = |mut i: usize| {
        while i < chars.len() && (chars[i].is_ascii_digit() || chars[i] == '_') {
            i += 1;
        }
        i
    };
    i = digits(i);
    let mut float = false;
    if chars.get(i) == Some(&'.') {
        float = true;
        i = digits(i + 1);
    }
    if matches!(chars.get(i), Some('e' | 'E')) {
        let signed = usize::from(matches!(chars.get(i + 1), Some('+' | '-')));
        if chars.get(i + 1 + signed).is_some_and(char::is_ascii_digit) {
            float = true;
            i = digits(i + 1 + signed);
        }
    }
    let text: String = chars[start..i].iter().filter(|&&c| c != '_').collect();
    if chars.get(i).is_some_and(|c| c.is_alphanumeric()) {
        return Err(at.error(format!("`{text}{}` is not a number", chars[i])));
    }
    if float {
        let x = text.parse().map_err(|_| at.error(format!("`{text}` is not a number")))?;
        Ok((Token::Float(x), i))
    } else {
        let n = text
            .parse()
            .map_err(|_| at.error(format!("`{text}` does not fit in 64 bits; write it as a float")))?;
        Ok((Token::Int(n), i))
    }
}
