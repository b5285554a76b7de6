//! Spellings, expanded from the ISA table.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use assay_ptx::Op;
use assay_ptx::isa::{CLASSES, Row, TABLE};

/// One instruction of the table.
#[derive(Clone, Debug)]
pub struct Spelling {
    pub op: Op,
    /// As written in PTX, without operands.
    pub text: String,
    pub words: Vec<&'static str>,
    pub types: Vec<&'static str>,
    /// Operand slots, see the header of `assay_ptx::isa`.
    pub operands: Vec<&'static str>,
}

impl Spelling {
    pub fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    pub fn name(&self) -> &'static str {
        self.op.name()
    }

    /// The type modifier of that number.
    pub fn ty(&self, n: usize) -> &'static str {
        self.types.get(n).copied().unwrap_or("")
    }

    /// The one word of a class.
    pub fn of(&self, class: &str) -> Option<&'static str> {
        let list = CLASSES.iter().find(|(name, _)| *name == class).map(|(_, list)| *list)?;
        self.words.iter().copied().find(|w| list.split('|').any(|x| x == *w))
    }
}

/// Why an opcode has no oracle in this file.
pub fn elsewhere(op: Op) -> Option<&'static str> {
    Some(match op {
        Op::Atom | Op::Red => "memory; atomics have cases in testdata/ptx/pass/memory and unit tests",
        Op::Ld | Op::Ldu | Op::St | Op::Prefetch | Op::Prefetchu | Op::Discard => "memory",
        Op::CpAsync | Op::CpAsyncCommitGroup | Op::CpAsyncWaitAll | Op::CpAsyncWaitGroup => "memory",
        Op::Cvta | Op::Isspacep | Op::Getctarank | Op::Mapa => "addresses",
        Op::Bra | Op::BrxIdx | Op::Call | Op::Ret | Op::Exit => "control",
        Op::Trap | Op::Brkpt | Op::Nanosleep | Op::Griddepcontrol => "control",
        Op::BarSync | Op::BarArrive | Op::BarRed | Op::BarWarpSync => "barriers",
        Op::MbarrierInit | Op::MbarrierInval | Op::MbarrierArrive | Op::MbarrierArriveDrop => "barriers",
        Op::MbarrierTestWait | Op::MbarrierTryWait | Op::MbarrierPendingCount => "barriers",
        Op::CpAsyncMbarrierArrive => "memory",
        Op::BarrierClusterArrive | Op::BarrierClusterWait | Op::Membar | Op::Fence => "barriers",
        Op::Shfl | Op::Vote | Op::Match | Op::Redux | Op::Activemask | Op::ElectSync => {
            "operations of a warp: testdata/ptx/pass/warp"
        }
        Op::Ldmatrix | Op::Stmatrix => "memory: testdata/ptx/pass/matrix",
        Op::Mma | Op::Movmatrix | Op::WmmaLoad | Op::WmmaMma | Op::WmmaStore => "matrix.rs",
        Op::Mov => "copies bits: every program here does, and packing has a case in testdata/ptx",
        _ => return None,
    })
}

/// Why the device refuses a spelling that the table allows.
fn refused(s: &Spelling) -> Option<&'static str> {
    match s.name() {
        "fma" if s.has("oob") => Some("the value that counts as out of bounds is not documented"),
        "set" | "setp" => {
            let source = if s.name() == "set" { s.ty(1) } else { s.ty(0) };
            let integer = !source.contains('f');
            let cmp = s.of("CMP").unwrap_or("");
            let unordered = matches!(cmp, "equ" | "neu" | "ltu" | "leu" | "gtu" | "geu" | "num" | "nan");
            (integer && unordered).then_some("integers are always ordered")
        }
        _ => None,
    }
}

/// True for approximations, which `approx.rs` holds to the manual's errors.
pub fn approximate(s: &Spelling) -> bool {
    s.has("approx") || s.has("full")
}

/// All spellings that have an exact oracle.
pub fn spellings() -> Vec<Spelling> {
    let arithmetic = TABLE.iter().filter(|row| elsewhere(row.op).is_none());
    let all = arithmetic.flat_map(expand_row);
    all.filter(|s| refused(s).is_none() && !approximate(s)).collect()
}

pub fn refused_spellings() -> Vec<Spelling> {
    TABLE.iter().flat_map(expand_row).filter(|s| refused(s).is_some()).collect()
}

pub fn approximations() -> Vec<Spelling> {
    let arithmetic = TABLE.iter().filter(|row| elsewhere(row.op).is_none());
    arithmetic.flat_map(expand_row).filter(approximate).collect()
}

/// Spellings that NVRTC emitted, as the parser's tests have them.
const EMITTED: &str = include_str!("../../../ptx/tests/all/nvrtc_spellings.txt");

/// A spelling without the order of its words.
type Key = (String, Vec<&'static str>);

fn key(name: &str, words: &[&'static str], types: &[&'static str]) -> Key {
    let mut list = words.to_vec();
    list.sort_unstable();
    list.extend(types);
    (name.to_owned(), list)
}

/// What NVRTC emits, by spelling without order.
pub fn emitted() -> &'static BTreeMap<Key, &'static str> {
    static LIST: OnceLock<BTreeMap<Key, &'static str>> = OnceLock::new();
    LIST.get_or_init(|| {
        let types = "pred b8 b16 b32 b64 u8 s8 u16 s16 u32 s32 u64 s64 f16 f16x2 bf16 bf16x2 tf32 f32 f64 \
                     u16x2 s16x2 e4m3x2 e5m2x2";
        let types: BTreeSet<&str> = types.split_whitespace().collect();
        let parse = |text: &'static str| {
            let mut parts = text.split('.');
            let name = parts.next().unwrap_or("");
            let (types, words): (Vec<&'static str>, Vec<_>) = parts.partition(|p| types.contains(p));
            (key(name, &words, &types), text)
        };
        EMITTED.lines().map(parse).collect()
    })
}

/// Every form of a row, each in all its spellings, or if they are many in so many that every pair of words and types
/// that can occur together does.
pub fn expand_row(row: &Row) -> Vec<Spelling> {
    let mut out = Vec::new();
    for form in row.forms {
        let parts: Vec<&'static str> = form.split(';').map(str::trim).collect();
        let [mods, types, shapes] = parts[..] else { panic!("{form}") };
        let mut groups: Vec<Vec<&'static str>> = Vec::new();
        let word_groups = mods.split_whitespace().count();
        for group in mods.split_whitespace() {
            let (names, optional) = match group.strip_suffix('?') {
                Some(names) => (names, true),
                None => (group, false),
            };
            let mut list: Vec<&'static str> = expand(names);
            if optional {
                list.insert(0, "");
            }
            groups.push(list);
        }
        groups.extend(types.split_whitespace().map(expand));
        let total: usize = groups.iter().map(Vec::len).product();
        let mut covered: BTreeSet<(usize, &str, usize, &str)> = BTreeSet::new();
        for index in 0..total {
            // A step that shares no factor with the number of spellings mixes the groups.
            let mut rest = if total > 64 { index.wrapping_mul(7919) % total } else { index };
            let chosen: Vec<&'static str> = groups
                .iter()
                .map(|g| {
                    let c = g[rest % g.len()];
                    rest /= g.len();
                    c
                })
                .collect();
            let words: Vec<&'static str> =
                chosen[..word_groups].iter().copied().filter(|w| !w.is_empty()).collect();
            let types = chosen[word_groups..].to_vec();
            let mut fresh = emitted().contains_key(&key(row.op.name(), &words, &types));
            for (i, x) in chosen.iter().enumerate() {
                for (j, y) in chosen.iter().enumerate().skip(i + 1) {
                    fresh |= covered.insert((i, x, j, y));
                }
            }
            if total > 64 && !fresh {
                continue;
            }
            for shape in shapes.split('/') {
                let list =
                    [row.op.name()].into_iter().chain(words.iter().copied()).chain(types.iter().copied());
                let text: Vec<&str> = list.collect();
                let text = text.join(".").replace("row2", "row").replace("col2", "col");
                let text =
                    emitted().get(&key(row.op.name(), &words, &types)).map_or(text, |t| (*t).to_owned());
                let operands = shape.split_whitespace().collect();
                out.push(Spelling { op: row.op, text, words: words.clone(), types: types.clone(), operands });
            }
        }
    }
    out
}

/// The names in `a|b|CLASS`.
fn expand(group: &'static str) -> Vec<&'static str> {
    let names = group.split('|').flat_map(|name| {
        let class = CLASSES.iter().find(|(class, _)| *class == name).map(|(_, names)| *names);
        class.unwrap_or(name).split('|')
    });
    names.collect()
}
