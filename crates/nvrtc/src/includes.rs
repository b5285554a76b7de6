//! Which files a unit may ask for: NVRTC's bundled headers and the folders given with `-I`, by literal names.
//!
//! This check always runs, before the compiler sees the unit. Where workers are confined by the kernel it is the
//! second lock; where they are not (`unconfined`) it is the only one and refuses more: names of headers that do not
//! exist, and conditions on macros that could paste a name together.
//!
//! Headers in given folders are followed; NVRTC's own are not looked into.
//!
//! Missed: nothing known; inline assembly cannot include (ptxas refuses `.include`).

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use crate::lex::{HAS_WORDS, INCLUDE_WORDS, Kind, Lexed, Token, lex};
use crate::prelude;

/// Why a unit was refused, and where.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub line: u32,
    pub message: String,
}

/// The folders that headers may come from.
pub(crate) struct Roots {
    /// NVRTC's own: their headers are not looked into.
    pub bundled: Vec<PathBuf>,
    /// Folders given with `-I`: their headers are checked like the unit.
    pub given: Vec<PathBuf>,
    pub unconfined: bool,
}

/// Where a name leads.
enum Header {
    Trusted,
    Given(PathBuf),
}

/// Longest header looked into, in bytes.
const MAX_HEADER_BYTES: u64 = 16 << 20;

impl Roots {
    /// The compiler looks beside the including file first, then in the folders in order.
    fn find(&self, name: &str, beside: Option<&Path>) -> Option<Header> {
        let given = |dir: &Path| Some(dir.join(name)).filter(|path| self.holds(path)).map(Header::Given);
        if let Some(found) = beside.and_then(given) {
            return Some(found);
        }
        let bundled = self.bundled.iter().any(|dir| dir.join(name).is_file());
        if bundled || prelude::HEADERS.contains(&name) {
            return Some(Header::Trusted);
        }
        self.given.iter().find_map(|dir| given(dir))
    }

    /// True for a file below one of the given folders; a link that leads out of them is none.
    fn holds(&self, path: &Path) -> bool {
        let Ok(real) = path.canonicalize() else { return false };
        let within = |dir: &PathBuf| dir.canonicalize().is_ok_and(|dir| real.starts_with(dir));
        real.is_file() && self.given.iter().any(within)
    }

    fn has(&self, name: &str) -> bool {
        self.find(name, None).is_some()
    }
}

fn refuse<T>(line: u32, message: String) -> Result<T, Refusal> {
    Err(Refusal { line, message })
}

/// Checks every place where `lexed` names a file, and the headers of given folders that it leads to.
pub(crate) fn check(lexed: &Lexed, roots: &Roots) -> Result<(), Refusal> {
    let mut seen = HashSet::new();
    // Headers to look into, with the unit's line that leads there.
    let mut next = Vec::new();
    check_text(lexed, roots, None, &mut |line, path| next.push((line, path)))?;
    while let Some((line, path)) = next.pop() {
        if !seen.insert(path.clone()) {
            continue;
        }
        let refusal = |why: String| Refusal { line, message: format!("header `{}`: {why}", path.display()) };
        let size = std::fs::metadata(&path).map_err(|e| refusal(e.to_string()))?.len();
        if size > MAX_HEADER_BYTES {
            return Err(refusal(format!("{size} bytes, more than the {MAX_HEADER_BYTES} allowed")));
        }
        let bytes = std::fs::read(&path).map_err(|e| refusal(e.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| refusal("not UTF-8".into()))?;
        check_text(&lex(&text), roots, path.parent(), &mut |_, found| next.push((line, found)))
            .map_err(|inner| refusal(format!("line {}: {}", inner.line, inner.message)))?;
    }
    Ok(())
}

fn check_text(
    lexed: &Lexed,
    roots: &Roots,
    beside: Option<&Path>,
    found: &mut dyn FnMut(u32, PathBuf),
) -> Result<(), Refusal> {
    let tokens = &lexed.tokens;
    // Conditional groups around the place.
    let mut groups = 0usize;
    let pastes = tokens.iter().any(|t| lexed.str(t) == "##" || lexed.str(t) == "%:%:");
    let word = |t: &Token| &lexed.text[t.start..t.end];
    for (at, token) in tokens.iter().enumerate() {
        if token.opens_directive
            && let Some(name) = tokens.get(at + 1).filter(|t| t.directive && !t.opens_directive)
        {
            match word(name) {
                b"if" | b"ifdef" | b"ifndef" => groups += 1,
                b"endif" => groups = groups.saturating_sub(1),
                _ => {}
            }
            if INCLUDE_WORDS.contains(&word(name)) {
                let header = directive(lexed, roots, beside, name, tokens.get(at + 2), groups > 0)?;
                if let Header::Given(path) = header {
                    found(name.line, path);
                }
            }
            if roots.unconfined && pastes && matches!(word(name), b"if" | b"elif") {
                condition(lexed, at)?;
            }
            if word(name) == b"pragma" && tokens.get(at + 2).is_some_and(|t| word(t) == b"include_alias") {
                return refuse(name.line, "`#pragma include_alias` is not allowed".into());
            }
        }
        if token.kind == Kind::Ident && HAS_WORDS.contains(&word(token)) {
            has_include(lexed, roots, at)?;
        }
    }
    if lexed.odd || tokens.iter().any(|t| t.kind == Kind::RawStr) {
        // Where it is not sure what is code and what is text, all of it is taken as code.
        naive(lexed, roots)?;
    }
    Ok(())
}

fn directive(
    lexed: &Lexed,
    roots: &Roots,
    beside: Option<&Path>,
    name: &Token,
    argument: Option<&Token>,
    conditional: bool,
) -> Result<Header, Refusal> {
    let directive = lexed.str(name);
    let Some(header) = argument.filter(|t| t.directive && t.kind == Kind::Header) else {
        return refuse(
            name.line,
            format!("`#{directive}` needs a literal `<name>` or `\"name\"`; computed names are not allowed"),
        );
    };
    if directive != "include" {
        return refuse(name.line, format!("`#{directive}` is not allowed, only `#include`"));
    }
    let spelled = lexed.str(header);
    let inner = plain_name(spelled)
        .map_err(|why| Refusal { line: name.line, message: format!("`#include {spelled}`: {why}") })?;
    if let Some(header) = roots.find(inner, beside) {
        return Ok(header);
    }
    if conditional && !roots.unconfined {
        // Such as `<windows.h>` for another system: the compiler knows whether it is wanted, and finds nothing if so.
        return Ok(Header::Trusted);
    }
    refuse(
        name.line,
        format!(
            "`#include {spelled}`: no such file among the headers that NVRTC brings or in a folder given with `-I`"
        ),
    )
}

fn has_include(lexed: &Lexed, roots: &Roots, at: usize) -> Result<(), Refusal> {
    let tokens = &lexed.tokens;
    let name = &tokens[at];
    let text = |i: usize| tokens.get(i).map_or("", |t| lexed.str(t));
    let before = |back: usize| at.checked_sub(back).map_or("", text);
    let asked_for = matches!(before(1), "ifdef" | "ifndef" | "defined" | "elifdef" | "elifndef")
        || (before(1) == "(" && before(2) == "defined");
    if asked_for {
        return Ok(());
    }
    let literal = (text(at + 1) == "(").then(|| tokens.get(at + 2)).flatten();
    let Some(header) = literal.filter(|t| t.kind == Kind::Header) else {
        return refuse(name.line, format!("`{}` needs a literal header name", lexed.str(name)));
    };
    let spelled = lexed.str(header);
    let inner = plain_name(spelled).map_err(|why| Refusal {
        line: name.line,
        message: format!("`{}({spelled})`: {why}", lexed.str(name)),
    })?;
    if roots.unconfined && !roots.has(inner) {
        return refuse(
            name.line,
            format!("`{}({spelled})`: not one of the headers allowed", lexed.str(name)),
        );
    }
    Ok(())
}

/// A condition that calls a macro could build `__has_include` from pieces.
fn condition(lexed: &Lexed, at: usize) -> Result<(), Refusal> {
    let line: Vec<&Token> =
        lexed.tokens[at + 2..].iter().take_while(|t| t.directive && !t.opens_directive).collect();
    for pair in line.windows(2) {
        let name = lexed.str(pair[0]);
        if pair[0].kind == Kind::Ident
            && lexed.str(pair[1]) == "("
            && name != "defined"
            && !HAS_WORDS.contains(&name.as_bytes())
        {
            return refuse(
                pair[0].line,
                format!("a condition calls the macro `{name}` while macros paste names with `##`"),
            );
        }
    }
    Ok(())
}

/// Every `#` followed by an include word, wherever it stands.
fn naive(lexed: &Lexed, roots: &Roots) -> Result<(), Refusal> {
    let text =
        String::from_utf8_lossy(&lexed.text).replace("??=", "#").replace("%:", "#").replace("??/\n", "");
    let mut line = 1u32;
    let mut rest = text.as_str();
    while let Some(at) = rest.find(['#', '\n']) {
        let newline = rest.as_bytes()[at] == b'\n';
        rest = &rest[at + 1..];
        if newline {
            line = line.saturating_add(1);
            continue;
        }
        let after = skip_blank(rest);
        let Some(word) = INCLUDE_WORDS.iter().rev().find(|w| after.as_bytes().starts_with(w)) else {
            continue;
        };
        let argument = skip_blank(&after[word.len()..]);
        let close = match argument.as_bytes().first() {
            Some(b'<') => '>',
            Some(b'"') => '"',
            _ => return refuse(line, "an `#include` without a literal name, perhaps inside a string".into()),
        };
        let name = argument[1..].split([close, '\n']).next().unwrap_or("");
        if plain_name(&format!("<{name}>")).is_err() || !roots.has(name) {
            return refuse(line, format!("`#include` of `{name}`, perhaps inside a string, is not allowed"));
        }
    }
    if roots.unconfined && text.contains("__has_") {
        return refuse(1, "`__has_…` beside raw strings or trigraphs is not allowed".into());
    }
    Ok(())
}

fn skip_blank(mut text: &str) -> &str {
    loop {
        text = text.trim_start_matches([' ', '\t', '\r', '\x0b', '\x0c']);
        match text.strip_prefix("/*").and_then(|t| t.split_once("*/")) {
            Some((_, rest)) => text = rest,
            None => return text,
        }
    }
}

/// The name between the quotes, if it stays below the folder that it is looked up in.
fn plain_name(spelled: &str) -> Result<&str, String> {
    let inner = spelled.get(1..spelled.len().saturating_sub(1)).unwrap_or("");
    if inner.is_empty() || inner.contains('\\') || inner.chars().any(char::is_control) {
        return Err("not a plain header name".into());
    }
    let path = Path::new(inner);
    if path.is_absolute() || !path.components().all(|c| matches!(c, Component::Normal(_))) {
        return Err(
            "only headers that NVRTC brings, or files in a folder given with `-I`, may be included".into()
        );
    }
    Ok(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roots(unconfined: bool) -> (tempfile::TempDir, Roots) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("cuda_fp16.h"), "").unwrap();
        let roots = Roots { bundled: vec![dir.path().to_owned()], given: vec![], unconfined };
        (dir, roots)
    }

    #[test]
    fn headers_outside_the_given_folders_are_refused_with_their_line() {
        let (_dir, roots) = roots(false);
        let refused: &[(&str, u32)] = &[
            ("#include \"/etc/passwd\"", 1),
            ("\n # /* x */ include /* y */ \"/etc/passwd\"", 2),
            ("#inc\\\nlude \"/etc/passwd\"", 1),
            ("%:include </etc/passwd>", 1),
            ("??=include </etc/passwd>", 1),
            ("/* a */ #include \"../x\"", 1),
            ("#include <a/../../b>", 1),
            ("#define H \"/etc/passwd\"\n#include H", 2),
            ("#include_next <cuda_fp16.h>", 1),
            ("#import <cuda_fp16.h>", 1),
            ("int a[] = {\n#embed \"/etc/passwd\"\n};", 2),
            ("#if __has_include(\"/etc/passwd\")\n#endif", 1),
            ("#define H __has_include\n#if H(</etc/passwd>)\n#endif", 1),
            ("#define P </etc/passwd>\n#if __has_include(P)\n#endif", 2),
            ("#if 0\n#include \"/etc/passwd\"\n#endif", 2),
            ("const char* s = R\"(\n)\"; /*)\"*/\n#include \"/etc/passwd\"\n", 3),
            ("#include <cuda_fp16.h/*>\n#include \"/etc/passwd\"", 1),
            ("#include <torch/extension.h>", 1),
            ("#ifdef A\n#endif\n#include <no_such_header.h>", 3),
        ];
        for (source, line) in refused {
            assert_eq!(check(&lex(source), &roots).expect_err(source).line, *line, "{source}");
        }
        let allowed = [
            "#include <cuda_fp16.h>\n#include \"cuda_runtime.h\"",
            "// #include \"/etc/passwd\"\n/*\n#include <torch/extension.h>\n*/",
            "const char* s = \"#include </etc/passwd>\";",
            "#ifdef __has_include\n#if __has_include(<no_such_header.h>)\n#endif\n#endif",
            "#if defined(__has_include)\n#endif",
            "#ifdef _WIN32\n#include <windows.h>\n#endif",
        ];
        for source in allowed {
            assert_eq!(check(&lex(source), &roots), Ok(()), "{source}");
        }
    }

    #[test]
    fn headers_of_given_folders_are_looked_into() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        for (name, text) in [
            ("a.h", "#include \"sub/b.h\"\n"),
            ("sub/b.h", "#include \"c.h\"\n#include <a.h>\n"),
            ("sub/c.h", "\n"),
            ("bad.h", "\n#include \"/etc/passwd\"\n"),
        ] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        let roots = Roots { bundled: vec![], given: vec![dir.path().to_owned()], unconfined: true };
        assert_eq!(check(&lex("#include \"a.h\""), &roots), Ok(()));
        let refusal = check(&lex("\n#include <bad.h>"), &roots).expect_err("refused");
        assert_eq!(refusal.line, 2);
        assert!(refusal.message.contains("bad.h`: line 2: `#include"), "{}", refusal.message);
    }

    #[test]
    fn without_confinement_names_built_from_pieces_are_refused_too() {
        let (_dir, roots) = roots(true);
        for source in [
            "#define C(a,b) a##b\n#if C(__has_,include)(\"/etc/passwd\")\n#endif",
            "#if __has_include(<no_such_header.h>)\n#endif",
            "#ifdef _WIN32\n#include <windows.h>\n#endif",
        ] {
            assert!(check(&lex(source), &roots).is_err(), "{source}");
        }
        assert_eq!(check(&lex("#if __has_include(<cuda_fp16.h>) && defined(X)\n#endif"), &roots), Ok(()));
    }
}
