//! Shared device code: `#include "…"` becomes the text of the file, before anything else looks at the kernel.
//!
//! A quoted name is looked for in the folders of shared code: `lib` in the problem's folder, `lib` beside it, beside
//! its level's folder where that is called `level*`, and last the catalogue's own, `problems/lib`. The text takes the
//! line's place, between two comments that name the file, so that mutants, findings and reports speak of one text.
//! A file is put in once, wherever it is asked for again; files may include others of the same folders.
//!
//! Arrives: a kernel file's text and its folder. Leaves: the text with everything in it, and for each of its lines
//! the file and line it came from ([`Inlined::origin`]).
//!
//! What it misses: an include whose name is a macro, and one inside a conditional, stay as they are where the text
//! is a stranger's, and are errors in a problem; a header's own `#ifndef` guard is therefore written `#pragma once`.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use crate::error::LoadError;
use crate::folder::{Folder, MAX_FILE_BYTES, embedded_file, read_text};
use crate::snippet::error_at;
use assay_host::fail::line_column;
use assay_host::{directive, directives};

/// Files within files.
const MAX_DEPTH: usize = 16;

/// A kernel file's text with the shared code in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inlined {
    /// The text that is compiled and mutated.
    pub text: String,
    /// The names that were included, in the order of their text.
    pub names: Vec<String>,
    /// The file itself, then the included ones.
    files: Vec<PathBuf>,
    /// For each line of the text: index into `files`, and the 1-based line there.
    lines: Vec<(usize, u32)>,
}

impl Inlined {
    /// A text in which nothing was included.
    pub(crate) fn whole(file: &Path, text: String) -> Inlined {
        Inlined { text, names: Vec::new(), files: vec![file.to_owned()], lines: Vec::new() }
    }

    /// The file itself.
    pub fn file(&self) -> &Path {
        self.files.first().map_or(Path::new(""), PathBuf::as_path)
    }

    /// The file and the 1-based line there from which the 1-based `line` of the text comes; the comments around an
    /// included text come from the line that includes it.
    pub fn origin(&self, line: u32) -> (&Path, u32) {
        let at = usize::try_from(line).ok().and_then(|l| self.lines.get(l.checked_sub(1)?));
        // Past the end, and where nothing was included, a line is its own.
        let (file, line) = at.copied().unwrap_or((0, line));
        (self.files.get(file).map_or(Path::new(""), PathBuf::as_path), line)
    }
}

/// Puts the shared code into any CUDA file on disk; an include that cannot be replaced is left for the compiler to
/// judge.
pub fn inline_includes(file: &Path, text: &str) -> Inlined {
    let dir = file.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let shelf = Shelf::beside(&Folder::Disk(dir.to_owned()));
    inline(file, text, &shelf, Missing::Stays).unwrap_or_else(|_| Inlined::whole(file, text.to_owned()))
}

/// Puts the shared code into a problem's kernel file, where a name that is not found is an error.
pub(crate) fn inline_strictly(file: &Path, text: &str, folder: &Folder) -> Result<Inlined, LoadError> {
    inline(file, text, &Shelf::beside(folder), Missing::Errs)
}

/// What becomes of an include that cannot be replaced.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Stays,
    Errs,
}

/// The folders of shared code, in the order in which they are asked.
struct Shelf {
    dirs: Vec<PathBuf>,
}

impl Shelf {
    fn beside(folder: &Folder) -> Shelf {
        let mut dirs = Vec::new();
        if let Folder::Disk(dir) = folder {
            let dir = dir.canonicalize().unwrap_or_else(|_| dir.clone());
            dirs.push(dir.join("lib"));
            if let Some(parent) = dir.parent() {
                dirs.push(parent.join("lib"));
                let level = parent.file_name().is_some_and(|n| n.to_string_lossy().starts_with("level"));
                dirs.extend(parent.parent().filter(|_| level).map(|root| root.join("lib")));
            }
        }
        Shelf { dirs }
    }

    /// Path and text of the file of that name; none where no folder has it.
    fn find(&self, name: &str) -> Result<Option<(PathBuf, String)>, String> {
        for dir in &self.dirs {
            let file = dir.join(name);
            if !file.is_file() {
                continue;
            }
            // A link may lead out of the folder, which a name may not.
            let inside = file.canonicalize().and_then(|f| Ok(f.starts_with(dir.canonicalize()?)));
            if !inside.unwrap_or(false) {
                return Err(format!("`{}` is a link out of its folder", file.display()));
            }
            return read_text(&file).map(|text| Some((file, text))).map_err(|e| e.to_string());
        }
        let path = format!("lib/{name}");
        Ok(embedded_file(&path).map(|text| (Folder::Embedded(path).path(), text.to_owned())))
    }

    /// The folders in words.
    fn places(&self) -> String {
        let own: Vec<String> = self.dirs.iter().map(|d| format!("`{}`", d.display())).collect();
        own.into_iter().chain(["the built-in `lib`".to_owned()]).collect::<Vec<_>>().join(", ")
    }
}

/// The name between the quotes of an include; none for another directive, `<name>` or a macro.
fn quoted(text: &str) -> Option<&str> {
    let d = directive(text);
    let name = d.rest.trim_start().strip_prefix('"').filter(|_| d.name == "include")?;
    name.split_once('"').map(|(name, _)| name)
}

struct Inliner<'s> {
    shelf: &'s Shelf,
    missing: Missing,
    seen: BTreeSet<PathBuf>,
    out: Inlined,
}

fn inline(file: &Path, text: &str, shelf: &Shelf, missing: Missing) -> Result<Inlined, LoadError> {
    if !directives(text).iter().any(|(_, d)| quoted(d).is_some()) {
        return Ok(Inlined::whole(file, text.to_owned()));
    }
    let out = Inlined::whole(file, String::new());
    let mut inliner = Inliner { shelf, missing, seen: BTreeSet::new(), out };
    inliner.file(0, text, 0)?;
    Ok(inliner.out)
}

impl Inliner<'_> {
    /// Appends text that stands from 1-based `line` on in `files[index]`.
    fn push(&mut self, index: usize, mut line: u32, text: &str) {
        let mut at_start = self.out.text.is_empty() || self.out.text.ends_with('\n');
        for _ in text.split_inclusive('\n') {
            if at_start {
                self.out.lines.push((index, line));
            }
            line = line.saturating_add(1);
            at_start = true;
        }
        self.out.text.push_str(text);
    }

    /// Appends the text of `files[index]`, with what it includes.
    fn file(&mut self, index: usize, text: &str, depth: usize) -> Result<(), LoadError> {
        let line_at = |at: usize| line_column(text, at).0;
        let mut done = 0;
        // Depth of `#if`.
        let mut conditions = 0usize;
        for (at, d) in directives(text) {
            let end = at + d.len();
            match directive(d).name {
                "if" | "ifdef" | "ifndef" => conditions += 1,
                "endif" => conditions = conditions.saturating_sub(1),
                // Every included file is put in once; in the middle of a text the compiler warns of it.
                "pragma" if index > 0 && directive(d).rest.trim() == "once" => {
                    self.push(index, line_at(done), &text[done..at]);
                    done = end;
                }
                _ => {}
            }
            let Some(name) = quoted(d) else { continue };
            let (path, content) = match self.look_up(name, conditions > 0, depth) {
                Ok(found) => found,
                Err(_) if self.missing == Missing::Stays => continue,
                Err(why) => {
                    let message = format!("cannot include `{name}`: {why}");
                    return Err(error_at(&self.out.files[index], text, at, message));
                }
            };
            self.push(index, line_at(done), &text[done..at]);
            done = end;
            let line = line_at(at);
            if !self.seen.insert(path.clone()) {
                self.push(index, line, &format!("// {name}: see above"));
                continue;
            }
            self.out.names.push(name.to_owned());
            self.out.files.push(path);
            let inner = self.out.files.len() - 1;
            self.push(index, line, &format!("// {name}:\n"));
            self.file(inner, &content, depth + 1)?;
            if !self.out.text.ends_with('\n') {
                self.push(inner, 1, "\n");
            }
            self.push(index, line, &format!("// end of {name}"));
        }
        self.push(index, line_at(done), &text[done..]);
        Ok(())
    }

    /// Path and text of what an include names, or why it cannot be put in.
    fn look_up(&self, name: &str, conditional: bool, depth: usize) -> Result<(PathBuf, String), String> {
        let parts = || Path::new(name).components();
        if name.is_empty() || name.contains('\\') || parts().any(|p| !matches!(p, Component::Normal(_))) {
            return Err(
                "the name is to be a path below a folder of shared code, without `..` or a root".into()
            );
        }
        if conditional {
            return Err("shared code is put in whatever a condition says: move it out of the `#if`".into());
        }
        let (path, text) = self.shelf.find(name)?.ok_or_else(|| {
            let places = self.shelf.places();
            format!("no folder of shared code has it ({places}); a compiler's header is written `<{name}>`")
        })?;
        if depth >= MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} files within each other"));
        }
        if (self.out.text.len() + text.len()) as u64 > MAX_FILE_BYTES {
            return Err(format!("the text with it is above the limit of {MAX_FILE_BYTES} bytes"));
        }
        Ok((path, text))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A folder `p` for a problem with `lib` beside it, and what its kernel file becomes.
    fn inlined(kernel: &str, lib: &[(&str, &str)]) -> Result<Inlined, LoadError> {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("p");
        fs::create_dir_all(&dir).unwrap();
        for (name, text) in lib {
            let file = root.path().join("lib").join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        inline_strictly(Path::new("kernel.cu"), kernel, &Folder::Disk(dir))
    }

    #[test]
    fn a_text_takes_the_place_of_its_line_and_keeps_its_lines() {
        let lib = [("a.cuh", "#pragma once\n#include \"in/b.cuh\"\nint a;"), ("in/b.cuh", "int b;\n")];
        let got = inlined("// k\n#include \"a.cuh\" // x\nint k;\n", &lib).unwrap();
        let want =
            "// k\n// a.cuh:\n\n// in/b.cuh:\nint b;\n// end of in/b.cuh\nint a;\n// end of a.cuh\nint k;\n";
        assert_eq!(got.text, want);
        assert_eq!(got.names, ["a.cuh", "in/b.cuh"]);
        let from: Vec<(String, u32)> = (1..=9)
            .map(|n| got.origin(n))
            .map(|(f, l)| (f.file_name().unwrap().to_string_lossy().into_owned(), l))
            .collect();
        let want = [
            ("kernel.cu", 1),
            ("kernel.cu", 2),
            ("a.cuh", 1),
            ("a.cuh", 2),
            ("b.cuh", 1),
            ("a.cuh", 2),
            ("a.cuh", 3),
            ("kernel.cu", 2),
            ("kernel.cu", 3),
        ];
        assert_eq!(from, want.map(|(f, l)| (f.to_owned(), l)));
    }

    #[test]
    fn every_file_is_put_in_once_even_in_a_circle() {
        let lib = [("a.cuh", "#include \"b.cuh\"\nint a;\n"), ("b.cuh", "#include \"a.cuh\"\nint b;\n")];
        let got = inlined("#include \"a.cuh\"\n#include \"b.cuh\"\nint k;\n", &lib).unwrap();
        for name in ["int a;", "int b;", "int k;"] {
            assert_eq!(got.text.matches(name).count(), 1, "{}", got.text);
        }
        assert!(!got.text.contains("#include"), "{}", got.text);
    }

    #[test]
    fn what_is_no_shared_code_stays() {
        for text in [
            "#include <cuda_fp16.h>\nint k;\n",
            "// #include \"a.cuh\"\nconst char* s = \"\\\n#include \\\"a.cuh\\\"\";\n",
            "/*\n#include \"a.cuh\"\n*/\n#define S \"x\"\n#include S\n",
        ] {
            let got = inlined(text, &[("a.cuh", "int a;\n")]).unwrap();
            assert_eq!((got.text.as_str(), got.names.len()), (text, 0));
            assert_eq!(got.origin(2), (Path::new("kernel.cu"), 2));
        }
    }

    #[test]
    fn an_include_that_cannot_be_points_at_its_line() {
        let lib = [
            ("a.cuh", "int a;\n#include \"gone.cuh\"\n"),
            ("g.cuh", "#ifndef G\n#include \"a.cuh\"\n#endif\n"),
        ];
        for (text, line, what) in [
            ("\n#include \"none.cuh\"\n", "kernel.cu:2:1", "no folder of shared code has it"),
            ("#include \"/etc/hostname\"\n", "kernel.cu:1:1", "`..`"),
            ("#include \"../p/kernel.cu\"\n", "kernel.cu:1:1", "`..`"),
            ("#include \"./a.cuh\"\n", "kernel.cu:1:1", "`..`"),
            ("#include \"\"\n", "kernel.cu:1:1", "`..`"),
            ("#if 1\n  #include \"g.cuh\"\n#endif\n", "kernel.cu:2:3", "out of the `#if`"),
            ("#include \"g.cuh\"\n", "lib/g.cuh:2:1", "out of the `#if`"),
            ("#include \"a.cuh\"\n", "lib/a.cuh:2:1", "`gone.cuh`"),
        ] {
            let e = inlined(text, &lib).unwrap_err().to_string();
            let first = e.lines().next().unwrap();
            assert!(
                first.contains(&format!("{line}: cannot include")) && first.contains(what),
                "{text}: {e}"
            );
        }
    }

    #[test]
    fn a_chain_of_files_ends() {
        let chain: Vec<(String, String)> =
            (0..40).map(|i| (format!("{i}.cuh"), format!("#include \"{}.cuh\"\n", i + 1))).collect();
        let lib: Vec<(&str, &str)> = chain.iter().map(|(n, t)| (n.as_str(), t.as_str())).collect();
        let e = inlined("#include \"0.cuh\"\n", &lib).unwrap_err().to_string();
        assert!(e.contains("within each other"), "{e}");
        let big = "// x\n".repeat(700_000);
        let e = inlined("#include \"a\"\n#include \"b\"\n", &[("a", &big), ("b", &big)]).unwrap_err();
        assert!(e.to_string().contains("above the limit"), "{e}");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_out_of_the_folder_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let (dir, lib) = (root.path().join("p"), root.path().join("lib"));
        fs::create_dir_all(&dir).unwrap();
        fs::create_dir_all(&lib).unwrap();
        fs::write(root.path().join("secret"), "int s;\n").unwrap();
        fs::write(lib.join("own.cuh"), "int o;\n").unwrap();
        std::os::unix::fs::symlink(root.path().join("secret"), lib.join("out.cuh")).unwrap();
        std::os::unix::fs::symlink(lib.join("own.cuh"), lib.join("in.cuh")).unwrap();
        let of = |name: &str| {
            let text = format!("#include \"{name}\"\n");
            inline_strictly(Path::new("k.cu"), &text, &Folder::Disk(dir.clone()))
        };
        assert!(of("in.cuh").unwrap().text.contains("int o;"));
        assert!(of("out.cuh").unwrap_err().to_string().contains("link out of its folder"));
    }

    #[test]
    fn strangers_texts_keep_what_is_not_found() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("mine.cu");
        let text = "#include \"mine.h\"\n#include \"../x.h\"\nint k;\n";
        assert_eq!(inline_includes(&file, text).text, text);
        fs::create_dir_all(root.path().join("lib")).unwrap();
        fs::write(root.path().join("lib/mine.h"), "int m;\n").unwrap();
        let got = inline_includes(&file, text);
        assert!(got.text.contains("int m;") && got.text.contains("#include \"../x.h\""), "{}", got.text);
    }
}
