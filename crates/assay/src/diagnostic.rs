//! Findings as diagnostics: what, where, both parties with their source lines, what to do.

use std::path::Path;

use assay_report::text::{clean, columns, cut, wrap};
use assay_simt::{Finding, FindingKind, OtherAccess, SourcePlace, ThreadId};

/// Columns of a source line that are shown.
const SHOWN: usize = 72;

/// The user's file.
pub struct Source<'a> {
    /// Its path, as given.
    pub path: &'a Path,
    /// Its text.
    pub text: &'a str,
}

/// Line, column (both from 1) and file of a party.
struct Place<'f> {
    line: u32,
    column: Option<u32>,
    file: Option<&'f str>,
    inlined_at: Option<&'f SourcePlace>,
}

impl<'f> Place<'f> {
    fn of(f: &'f Finding) -> Option<Place<'f>> {
        let (line, inlined_at) = (f.line?, f.inlined_at.as_deref());
        Some(Place { line, column: f.column, file: f.file.as_deref(), inlined_at })
    }

    fn of_other(o: &'f OtherAccess) -> Option<Place<'f>> {
        let (line, inlined_at) = (o.line?, o.inlined_at.as_deref());
        Some(Place { line, column: o.column, file: o.file.as_deref(), inlined_at })
    }
}

impl Source<'_> {
    /// True if the compiler's name of a file is the user's: it is told the last part of the path.
    fn is_own(&self, file: Option<&str>) -> bool {
        let last = |p: &str| p.rsplit('/').next().unwrap_or(p).to_owned();
        file.is_none_or(|f| {
            self.path.file_name().is_some_and(|own| own.to_string_lossy() == last(f).as_str())
        })
    }

    /// A finding in at most `width` columns.
    pub fn finding(&self, f: &Finding, width: usize) -> String {
        let mut s = wrap(&format!("{}: {}", f.kind, clean(&f.message)), width, "", "    ");
        let bytes = |n: Option<u64>| {
            n.map_or(String::new(), |n| format!(" of {n} byte{}", if n == 1 { "" } else { "s" }))
        };
        let noun = |a: Option<assay_simt::AccessKind>, size: Option<u64>| {
            a.map_or(String::new(), |a| format!("{}{} by ", a.noun(), bytes(size)))
        };
        let two = f.other.is_some();
        let who = f.thread.as_ref().map(|t| {
            format!("{}{}{}", if two { "(1) " } else { "" }, noun(f.access, f.size_bytes), thread(t))
        });
        self.party(&mut s, Place::of(f), who, width);
        if let Some(o) = &f.other {
            let by = o.thread.as_ref().map_or_else(|| "another thread".to_owned(), thread);
            let who = format!("(2) {}{by}", noun(o.access, o.size_bytes));
            self.party(&mut s, Place::of_other(o), Some(who), width);
        }
        if let Some(kernel) = &f.kernel {
            s.push_str(&wrap(&format!("in kernel `{}`", clean(kernel)), width, "  = ", "    "));
        }
        if f.count > 1 {
            s.push_str(&format!("  = seen {} times\n", f.count));
        }
        s.push_str(&wrap(help(f.kind), width, "  = help: ", "    "));
        s
    }

    /// One party: its line, quoted and marked, and who it is.
    fn party(&self, s: &mut String, place: Option<Place<'_>>, who: Option<String>, width: usize) {
        let who = who.unwrap_or_default();
        let Some(place) = place else {
            if !who.is_empty() {
                s.push_str(&wrap(&who, width, "  = ", "    "));
            }
            return;
        };
        let own = self.is_own(place.file);
        // What happens in a header is the user's at the place that it was inlined into.
        match place.inlined_at {
            Some(outer) if !own && self.is_own(outer.file.as_deref()) => {
                self.quote(s, outer.line, outer.column, &who, width);
                let file = place.file.map_or("?", |f| f.rsplit('/').next().unwrap_or(f));
                s.push_str(&wrap(
                    &format!("in `{}`, line {}", clean(file), place.line),
                    width,
                    "  = ",
                    "    ",
                ));
            }
            _ if !own => {
                let file = place.file.unwrap_or("?");
                s.push_str(&format!("  --> {}:{}\n", clean(file), place.line));
                if !who.is_empty() {
                    s.push_str(&wrap(&who, width, "  = ", "    "));
                }
            }
            _ => {
                self.quote(s, place.line, place.column, &who, width);
                if let Some(outer) = place.inlined_at.filter(|o| o.line != place.line) {
                    s.push_str(&format!("  = inlined at line {}\n", outer.line));
                }
            }
        }
    }

    fn quote(&self, s: &mut String, line: u32, column: Option<u32>, who: &str, width: usize) {
        let text = self.text.lines().nth(line.saturating_sub(1) as usize).unwrap_or("").trim_end();
        let gutter = line.to_string();
        let pad = " ".repeat(gutter.len());
        let colon = column.map_or(String::new(), |c| format!(":{c}"));
        s.push_str(&format!("  --> {}:{line}{colon}\n", self.path.display()));
        let room = width.saturating_sub(gutter.len() + 5).clamp(20, SHOWN);
        let (shown, mark) = window(text, column, room);
        s.push_str(&format!("  {pad} |\n  {gutter} | {shown}\n"));
        let arm = mark.map_or(String::new(), |m| format!("{}^ ", " ".repeat(m)));
        if columns(&arm) + columns(who) <= room {
            s.push_str(format!("  {pad} | {arm}{who}").trim_end());
            s.push('\n');
        } else {
            if !arm.is_empty() {
                s.push_str(&format!("  {pad} | {}\n", arm.trim_end()));
            }
            if !who.is_empty() {
                s.push_str(&wrap(who, width, &format!("  {pad} = "), &format!("  {pad}   ")));
            }
        }
    }
}

/// A line cut to `room` columns around a byte column, and where that column stands in what is shown. Tabs become
/// blanks, control characters are made visible.
fn window(text: &str, column: Option<u32>, room: usize) -> (String, Option<usize>) {
    let at = column.map(|c| c.saturating_sub(1) as usize).filter(|c| *c < text.len());
    let mark = at.map(|byte| text.char_indices().take_while(|(i, _)| *i < byte).count());
    let plain: Vec<char> = clean(text).chars().collect();
    let Some(mark) = mark else { return (cut(&plain.iter().collect::<String>(), room), None) };
    if plain.len() <= room {
        return (plain.into_iter().collect(), Some(mark));
    }
    // As much as fits from a little before the mark on.
    let from = if mark + 20 < room { 0 } else { mark.saturating_sub(8).min(plain.len()) };
    let (lead, room) = if from > 0 { ("…", room - 1) } else { ("", room) };
    let rest: String = plain[from..].iter().collect();
    (format!("{lead}{}", cut(&rest, room)), Some(mark - from + lead.chars().count()))
}

fn thread(t: &ThreadId) -> String {
    format!("thread {} of block {}", dim3(t.thread), dim3(t.block))
}

fn dim3(d: [u32; 3]) -> String {
    format!("({},{},{})", d[0], d[1], d[2])
}

/// What to look at first.
fn help(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::OobRead | FindingKind::OobWrite => {
            "compare the index with the length of the buffer; is the guard `<` and the grid rounded up?"
        }
        FindingKind::MisalignedAccess => {
            "an access of n bytes needs an address that is a multiple of n; vector loads need rows of such a length"
        }
        FindingKind::UninitReadShared => "write every element that is read, and put the barrier between",
        FindingKind::UninitReadGlobal => "fresh memory holds anything: initialise it, or do not read it",
        FindingKind::UninitReadLocal => "give the variable or array a value on every path before it is read",
        FindingKind::UnwrittenOutput => "does the grid cover the whole output, and does every thread store?",
        FindingKind::RaceShared => {
            "order the two with __syncthreads() or, within a warp, __syncwarp(); shuffles and equal values order nothing"
        }
        FindingKind::RaceGlobal => {
            "blocks run in any order: use an atomic, or give each element to one thread; within a block \
             __syncthreads() orders"
        }
        FindingKind::BarrierDivergence => {
            "every thread of the block must reach the same __syncthreads(): no early return, no barrier in a branch"
        }
        FindingKind::BadShuffleMask => {
            "name exactly the lanes that call it, and read only from a lane that is named"
        }
        FindingKind::InvalidLaunch => {
            "a GPU refuses this launch and runs nothing; cudaGetLastError() would tell"
        }
        FindingKind::Deadlock => "some threads wait for others that can never arrive",
        FindingKind::InputModified => {
            "an input belongs to the caller: write to an output or to scratch, or declare the parameter without const"
        }
        FindingKind::Assert => {
            "an assertion of the kernel's own does not hold; a GPU stops the whole context here"
        }
        FindingKind::Trap => "the kernel asked to be stopped; a GPU stops the whole context here",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source<'_> {
        Source { path: Path::new("dir/k.cu"), text }
    }

    #[test]
    fn both_accesses_are_quoted_and_marked_at_their_statement() {
        let text = "line one\n  s[i] = x; y = s[j];\n";
        let mut f = Finding::new(FindingKind::RaceShared, "race on `s`");
        f.line = Some(2);
        f.column = Some(3);
        f.file = Some("k.cu".into());
        f.access = Some(assay_simt::AccessKind::Write);
        f.size_bytes = Some(4);
        f.thread = Some(ThreadId { block: [0; 3], thread: [1, 0, 0] });
        f.other = Some(
            serde_json::from_value(serde_json::json!({
                "access": "read", "thread": {"block": [0, 0, 0], "thread": [2, 0, 0]}, "line": 2, "column": 13,
                "file": "k.cu", "inlined_at": null, "size_bytes": 4,
            }))
            .unwrap(),
        );
        let shown = source(text).finding(&f, 80);
        assert!(
            shown.contains("2 |   s[i] = x; y = s[j];\n    |   ^ (1) store of 4 bytes by thread (1,0,0)"),
            "{shown}"
        );
        assert!(shown.contains("    |             ^ (2) load of 4 bytes by thread (2,0,0)"), "{shown}");
        assert!(shown.lines().all(|l| columns(l) <= 80), "{shown}");
    }

    #[test]
    fn a_header_is_named_and_the_users_own_line_quoted() {
        let mut f = Finding::new(FindingKind::OobRead, "m");
        f.line = Some(77);
        f.file = Some("/usr/include/lib.cuh".into());
        f.thread = Some(ThreadId { block: [0; 3], thread: [0; 3] });
        f.inlined_at = Some(Box::new(SourcePlace {
            file: Some("k.cu".into()),
            line: 1,
            column: Some(1),
            inlined_at: None,
        }));
        let shown = source("call(x);\n").finding(&f, 80);
        assert!(shown.contains("1 | call(x);") && shown.contains("in `lib.cuh`, line 77"), "{shown}");
        f.inlined_at = None;
        let shown = source("call(x);\n").finding(&f, 80);
        assert!(shown.contains("--> /usr/include/lib.cuh:77") && !shown.contains("call"), "{shown}");
    }

    #[test]
    fn long_lines_show_the_part_around_the_mark() {
        let text = format!("{}HERE{}", "a".repeat(200), "b".repeat(200));
        let (shown, mark) = window(&text, Some(201), 60);
        assert!(columns(&shown) <= 60 && shown.starts_with('…'), "{shown}");
        let mark = mark.unwrap();
        assert_eq!(shown.chars().skip(mark).take(4).collect::<String>(), "HERE");
        assert_eq!(window("\tx\u{1b}[0m", Some(2), 60), (" x\u{fffd}[0m".into(), Some(1)));
    }
}
