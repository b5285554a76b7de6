//! The part of the C++ preprocessor that host code needs: object-like and function-like macros, `#if` and its
//! relatives, nothing else. Includes are skipped (the substrate's headers hold device code).
//!
//! Algorithm: one pass over the tokens with a table of macros; a macro's tokens take the position of its use,
//! and a name is not expanded inside its own expansion. `__CUDA_ARCH__` is undefined, as on the host.
//!
//! What it misses: `##` gives a token that host code may not use, but before `__VA_ARGS__`; `#` leaves out the spaces.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::fail::Fail;
use crate::lex::{Kind, Tok, lex};

/// Tokens that one file may expand to; a kernel file has some thousands.
const MAX_TOKENS: usize = 2_000_000;
/// Macros within macros.
const MAX_DEPTH: usize = 64;

#[derive(Clone, Debug)]
struct Macro<'a> {
    /// Parameter names; `None` for an object-like macro.
    params: Option<Vec<&'a str>>,
    variadic: bool,
    body: Vec<Tok<'a>>,
}

/// A `#` line, taken apart.
pub struct Directive<'a> {
    pub name: &'a str,
    pub rest: &'a str,
    /// Byte offset of `rest` within the directive's text.
    pub rest_at: usize,
}

/// Splits `#  name rest`.
pub fn directive(text: &str) -> Directive<'_> {
    let after = text.strip_prefix('#').unwrap_or(text);
    let trimmed = after.trim_start();
    let end = trimmed.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(trimmed.len());
    let rest_at = text.len() - trimmed.len() + end;
    Directive { name: &trimmed[..end], rest: &trimmed[end..], rest_at }
}

fn define<'a>(tok: &Tok<'a>, d: &Directive<'a>) -> Option<(&'a str, Macro<'a>)> {
    let base = tok.at.saturating_add(u32::try_from(d.rest_at).ok()?);
    let toks = lex(d.rest, base);
    let name = toks.first().filter(|t| t.kind == Kind::Ident)?;
    // `(` must touch the name to make the macro function-like.
    let touching = toks.get(1).filter(|t| t.is("(") && t.at as usize == name.end());
    if touching.is_none() {
        return Some((name.text, Macro { params: None, variadic: false, body: toks[1..].to_vec() }));
    }
    let close = toks.iter().position(|t| t.is(")"))?;
    let inside = &toks[2..close];
    let params = inside.iter().filter(|t| t.kind == Kind::Ident).map(|t| t.text).collect();
    let variadic = inside.iter().any(|t| t.is("..."));
    Some((name.text, Macro { params: Some(params), variadic, body: toks[close + 1..].to_vec() }))
}

/// State of one `#if`: whether this branch is taken, whether any was, and whether the whole is in active text.
struct Branch {
    active: bool,
    taken: bool,
    outer: bool,
}

/// Expands the tokens of a file as the host compiler would see them; directives are dropped.
///
/// # Errors
/// `Unsupported` for an `#if` that cannot be evaluated; `Exhausted` when the expansion does not end.
pub fn preprocess<'a>(tokens: &[Tok<'a>]) -> Result<Vec<Tok<'a>>, Fail> {
    let mut macros: BTreeMap<&'a str, Macro<'a>> = BTreeMap::new();
    let mut branches: Vec<Branch> = Vec::new();
    let mut out = Vec::with_capacity(tokens.len());
    let mut i = 0;
    while i < tokens.len() {
        let tok = tokens[i];
        let active = branches.last().is_none_or(|b| b.active);
        if tok.kind == Kind::Directive {
            let d = directive(tok.text);
            match d.name {
                "if" | "ifdef" | "ifndef" => {
                    let taken = active && condition(&tok, &d, &macros)?;
                    branches.push(Branch { active: taken, taken, outer: active });
                }
                "elif" => {
                    if let Some((outer, taken)) = branches.last().map(|b| (b.outer, b.taken)) {
                        let now = outer && !taken && condition(&tok, &d, &macros)?;
                        if let Some(b) = branches.last_mut() {
                            b.active = now;
                            b.taken |= now;
                        }
                    }
                }
                "else" => {
                    if let Some(b) = branches.last_mut() {
                        b.active = b.outer && !b.taken;
                        b.taken = true;
                    }
                }
                "endif" => {
                    branches.pop();
                }
                "define" if active => {
                    if let Some((name, m)) = define(&tok, &d) {
                        macros.insert(name, m);
                    }
                }
                "undef" if active => {
                    macros.remove(d.rest.trim());
                }
                _ => {}
            }
            i += 1;
            continue;
        }
        if !active {
            i += 1;
            continue;
        }
        if tok.kind == Kind::Ident && macros.contains_key(tok.text) {
            i += expand(tokens, i, &macros, &mut Vec::new(), &mut out, tok.at)?;
        } else {
            out.push(tok);
            i += 1;
        }
        if out.len() > MAX_TOKENS {
            return Err(too_long(tok.at));
        }
    }
    Ok(out)
}

fn too_long(at: u32) -> Fail {
    Fail::exhausted(at, format!("macro expansion exceeds {MAX_TOKENS} tokens"))
}

/// Expands the token at `i`, pushes the result, and says how many tokens of `tokens` that used.
fn expand<'a>(
    tokens: &[Tok<'a>],
    i: usize,
    macros: &BTreeMap<&'a str, Macro<'a>>,
    busy: &mut Vec<&'a str>,
    out: &mut Vec<Tok<'a>>,
    at: u32,
) -> Result<usize, Fail> {
    let tok = tokens[i];
    let plain = |out: &mut Vec<Tok<'a>>| {
        out.push(Tok { at, ..tok });
        Ok(1)
    };
    if tok.kind != Kind::Ident || busy.contains(&tok.text) {
        return plain(out);
    }
    let Some(m) = macros.get(tok.text) else { return plain(out) };
    if busy.len() >= MAX_DEPTH || out.len() > MAX_TOKENS {
        return Err(too_long(at));
    }
    let (body, used) = match &m.params {
        None => (m.body.clone(), 1),
        Some(params) => {
            if !tokens.get(i + 1).is_some_and(|t| t.is("(")) {
                return plain(out);
            }
            let Some((args, used)) = arguments(&tokens[i + 1..]) else { return plain(out) };
            let inside = &tokens[i + 1..i + 1 + used];
            // `__VA_ARGS__` is everything after the named arguments, its commas included.
            let rest: &[Tok<'a>] = match (args.get(params.len()), args.last()) {
                (Some(first), Some(last)) if m.variadic => inside.get(first.start..last.end).unwrap_or(&[]),
                _ => &[],
            };
            let argument = |name: &str| -> Option<&[Tok<'a>]> {
                if m.variadic && name == "__VA_ARGS__" {
                    return Some(rest);
                }
                let p = params.iter().position(|p| *p == name)?;
                Some(args.get(p).and_then(|r| inside.get(r.clone())).unwrap_or(&[]))
            };
            let mut body = Vec::with_capacity(m.body.len());
            let mut j = 0;
            while let Some(t) = m.body.get(j) {
                let next = m.body.get(j + 1).filter(|t| t.kind == Kind::Ident);
                match next.and_then(|n| argument(n.text)) {
                    // A string of the argument's text ([cpp.stringize]).
                    Some(arg) if t.text == "#" => {
                        body.push(Tok { kind: Kind::Spelled, text: "", at });
                        body.extend(arg.iter().map(|a| Tok { kind: Kind::Spelled, text: a.text, at }));
                        j += 2;
                        continue;
                    }
                    // `, ##__VA_ARGS__` takes the comma away where nothing follows.
                    Some(arg) if t.text == "##" && next.is_some_and(|n| n.text == "__VA_ARGS__") => {
                        if arg.is_empty() && body.last().is_some_and(|t: &Tok<'a>| t.is(",")) {
                            body.pop();
                        }
                        j += 1;
                        continue;
                    }
                    _ => {}
                }
                match argument(t.text).filter(|_| t.kind == Kind::Ident) {
                    // An argument is expanded whole before it is put in ([cpp.subst]).
                    Some(arg) => expand_all(arg, macros, busy, &mut body, at)?,
                    None => body.push(*t),
                }
                if body.len() > MAX_TOKENS {
                    return Err(too_long(at));
                }
                j += 1;
            }
            (body, used + 1)
        }
    };
    let pasted = body.iter().any(|t| t.text == "##" || t.text == "#");
    if pasted {
        out.push(Tok { kind: Kind::Pasted, text: tok.text, at });
        return Ok(used);
    }
    busy.push(tok.text);
    expand_all(&body, macros, busy, out, at)?;
    busy.pop();
    Ok(used)
}

fn expand_all<'a>(
    tokens: &[Tok<'a>],
    macros: &BTreeMap<&'a str, Macro<'a>>,
    busy: &mut Vec<&'a str>,
    out: &mut Vec<Tok<'a>>,
    at: u32,
) -> Result<(), Fail> {
    let mut i = 0;
    while i < tokens.len() {
        i += expand(tokens, i, macros, busy, out, at)?;
        if out.len() > MAX_TOKENS {
            return Err(too_long(at));
        }
    }
    Ok(())
}

/// Where the comma-separated arguments of a list that opens at `tokens[0]` are, and its length in tokens.
fn arguments(tokens: &[Tok<'_>]) -> Option<(Vec<Range<usize>>, usize)> {
    let mut depth = 0usize;
    let mut args = Vec::new();
    let mut start = 1;
    for (j, t) in tokens.iter().enumerate() {
        if t.is("(") || t.is("[") || t.is("{") {
            depth += 1;
        } else if t.is(")") || t.is("]") || t.is("}") {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                args.push(start..j);
                return Some((args, j + 1));
            }
        } else if t.is(",") && depth == 1 {
            args.push(start..j);
            start = j + 1;
        }
    }
    None
}

fn condition<'a>(
    tok: &Tok<'a>,
    d: &Directive<'a>,
    macros: &BTreeMap<&'a str, Macro<'a>>,
) -> Result<bool, Fail> {
    match d.name {
        "ifdef" => return Ok(macros.contains_key(lex(d.rest, 0).first().map_or("", |t| t.text))),
        "ifndef" => return Ok(!macros.contains_key(lex(d.rest, 0).first().map_or("", |t| t.text))),
        _ => {}
    }
    // `defined X` first, since X itself must not be expanded.
    let raw = lex(d.rest, tok.at);
    let mut flat: Vec<Tok<'a>> = Vec::new();
    let mut i = 0;
    while i < raw.len() {
        if raw[i].is("defined") {
            let paren = raw.get(i + 1).is_some_and(|t| t.is("("));
            let name = raw.get(i + 1 + usize::from(paren)).map_or("", |t| t.text);
            let text = if macros.contains_key(name) { "1" } else { "0" };
            flat.push(Tok { kind: Kind::Number, text, at: tok.at });
            i += if paren { 4 } else { 2 };
        } else {
            i += expand(&raw, i, macros, &mut Vec::new(), &mut flat, tok.at)?;
        }
    }
    let mut parser = Condition { toks: &flat, i: 0, depth: 0 };
    match parser.binary(0) {
        Some(v) if parser.i == flat.len() => Ok(v != 0),
        _ => Err(Fail::unsupported(tok.at, format!("the condition `{}`", tok.text.trim()))),
    }
}

/// Integer conditions of `#if`: literals, unknown names as 0, unary and binary operators, parentheses.
struct Condition<'t, 'a> {
    toks: &'t [Tok<'a>],
    i: usize,
    depth: usize,
}

impl Condition<'_, '_> {
    fn unary(&mut self) -> Option<i64> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let t = self.toks.get(self.i)?;
        self.i += 1;
        let v = match t.text {
            "!" => i64::from(self.unary()? == 0),
            "-" => self.unary()?.checked_neg()?,
            "+" => self.unary()?,
            "(" => {
                let v = self.binary(0)?;
                if !self.toks.get(self.i)?.is(")") {
                    return None;
                }
                self.i += 1;
                v
            }
            "true" => 1,
            text if t.kind == Kind::Number => {
                let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
                match digits.strip_prefix("0x") {
                    Some(hex) => i64::from_str_radix(hex, 16).ok()?,
                    None => digits.parse().ok()?,
                }
            }
            _ if t.kind == Kind::Ident => 0,
            _ => return None,
        };
        self.depth -= 1;
        Some(v)
    }

    fn binary(&mut self, min: u8) -> Option<i64> {
        let mut left = self.unary()?;
        while let Some(op) = self.toks.get(self.i).map(|t| t.text) {
            let level = match op {
                "||" => 1,
                "&&" => 2,
                "==" | "!=" => 3,
                "<" | ">" | "<=" | ">=" => 4,
                "+" | "-" => 5,
                "*" | "/" | "%" => 6,
                _ => break,
            };
            if level <= min {
                break;
            }
            self.i += 1;
            let right = self.binary(level)?;
            left = match op {
                "||" => i64::from(left != 0 || right != 0),
                "&&" => i64::from(left != 0 && right != 0),
                "==" => i64::from(left == right),
                "!=" => i64::from(left != right),
                "<" => i64::from(left < right),
                ">" => i64::from(left > right),
                "<=" => i64::from(left <= right),
                ">=" => i64::from(left >= right),
                "+" => left.checked_add(right)?,
                "-" => left.checked_sub(right)?,
                "*" => left.checked_mul(right)?,
                "/" => left.checked_div(right)?,
                _ => left.checked_rem(right)?,
            };
        }
        Some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fail::FailKind;

    fn expanded(s: &str) -> String {
        let toks = preprocess(&lex(s, 0)).unwrap();
        toks.iter().map(|t| t.text).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn macros_expand_as_text_and_not_as_values() {
        assert_eq!(expanded("#define N 4+1\nN*2"), "4 + 1 * 2");
        assert_eq!(
            expanded("#define C(a,b) ((a)+(b)-1)/(b)\nC(n, N(1,2))"),
            "( ( n ) + ( N ( 1 , 2 ) ) - 1 ) / ( N ( 1 , 2 ) )"
        );
        assert_eq!(expanded("#define A B\n#define B A\nA"), "A");
        assert_eq!(expanded("#define F(x) x\nF + F(1)"), "F + 1");
        assert_eq!(
            expanded("#define C(x, ...) do { if (!(x)) f(#x, __VA_ARGS__); } while (0)\nC(a.b, 1, 2);"),
            "do { if ( ! ( a . b ) ) f (  a . b , 1 , 2 ) ; } while ( 0 ) ;"
        );
        assert_eq!(
            expanded("#define P(f, ...) g(f, ##__VA_ARGS__)\nP(1) P(1, 2, 3)"),
            "g ( 1 ) g ( 1 , 2 , 3 )"
        );
    }

    #[test]
    fn conditionals_keep_the_host_branch() {
        assert_eq!(expanded("#ifdef __CUDA_ARCH__\na\n#else\nb\n#endif"), "b");
        assert_eq!(
            expanded("#define V 3\n#if V > 2 && !defined(W)\na\n#elif 1\nb\n#else\nc\n#endif\nd"),
            "a d"
        );
        assert_eq!(expanded("#if 0\n#if 1\nx\n#endif\n#else\ny\n#endif"), "y");
    }

    #[test]
    fn an_expansion_bomb_ends_as_exhausted() {
        let mut s = String::from("#define A0 x x x x x x x x x x\n");
        for i in 1..9 {
            s.push_str(&format!("#define A{i} {}\n", format!("A{} ", i - 1).repeat(10)));
        }
        s.push_str("A8");
        assert!(matches!(preprocess(&lex(&s, 0)), Err(Fail { kind: FailKind::Exhausted, .. })));
    }

    #[test]
    fn a_condition_that_cannot_be_evaluated_is_unsupported() {
        assert!(matches!(
            preprocess(&lex("#if __has_include(<a>)\n#endif", 0)),
            Err(Fail { kind: FailKind::Unsupported, .. })
        ));
    }
}
