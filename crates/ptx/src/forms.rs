//! The forms of the ISA table, compiled once, and the lookup from a spelling to a form.
//!
//! `resolve("ld.global.v4.f32")` splits the spelling, finds the row by its longest dotted name,
//! gives every word its meaning, and picks the first form of the row whose modifiers and types
//! fit. Callers cache the result by spelling: a module has few distinct ones.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::isa::{CLASSES, Op, TABLE};
use crate::mods::{
    AtomOp, BarRed, BoolOp, Cache, Cmp, Direction, Fragment, Half, Layout, Level, MatchMode, Mods, PrmtMode,
    Rounding, Scope, Semantics, Shape, ShflMode, ShiftMode, Space, TestProperty, Ty, VoteMode,
};

/// How an operand slot is read; see the table in [`crate::isa`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotKind {
    Dest,
    DestOrSink,
    DestPair,
    PredPair,
    Source,
    SourceOrSymbol,
    Register,
    Integer,
    PredSource,
    AddressRegister,
    Address,
    VectorDest,
    VectorSource,
    FragmentDest,
    FragmentSource,
    MatrixDest,
    MatrixSource,
    Mov,
    Label,
    Table,
    Call,
}

/// The type of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotTy {
    /// Type modifier of that index.
    Nth(u8),
    /// Always this.
    Fixed(Ty),
    /// Twice the width of type 0.
    Wide,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    pub kind: SlotKind,
    pub ty: SlotTy,
    /// The register may be wider than the type.
    pub relaxed: bool,
}

/// A set of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Bits([u64; 4]);

impl Bits {
    fn insert(&mut self, word: u8) -> bool {
        let (i, bit) = (usize::from(word >> 6), 1u64 << (word & 63));
        let fresh = self.0[i] & bit == 0;
        self.0[i] |= bit;
        fresh
    }

    fn intersection(self, other: Bits) -> Bits {
        Bits(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }

    fn union(self, other: Bits) -> Bits {
        Bits(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }

    fn count(self) -> u32 {
        self.0.iter().map(|w| w.count_ones()).sum()
    }
}

/// A compiled form.
#[derive(Debug)]
pub(crate) struct Form {
    groups: Vec<(Bits, bool)>,
    allowed: Bits,
    types: Vec<Vec<Ty>>,
    /// Possible operand lists.
    pub shapes: Vec<Vec<Slot>>,
}

/// Sets a modifier that is either there or not.
type SetFlag = fn(&mut Mods);

/// What a modifier word means. Words with several meanings are told apart by the opcode.
#[derive(Debug, Clone, Copy)]
enum Word {
    Round(Rounding),
    Cmp(Cmp),
    Space(Space, bool),
    Cache(Cache),
    Order(Semantics),
    Scope(Scope),
    Logic(BoolOp),
    Atom(AtomOp),
    Shfl(ShflMode),
    Vote(VoteMode),
    HiLo(Half),
    Prmt(PrmtMode),
    Prop(TestProperty),
    Layout(Layout),
    Fragment(Fragment),
    Shift(ShiftMode),
    Dir(Direction),
    Vector(u8),
    Matrices(u8),
    Shape(Shape),
    Level(Level),
    Popc,
    Flag(SetFlag),
    /// Says nothing about the result: eviction priorities, prefetch sizes.
    Hint,
}

/// Everything compiled from the table.
pub(crate) struct Isa {
    words: HashMap<&'static str, (u8, Word)>,
    types: HashMap<&'static str, Ty>,
    names: HashMap<&'static str, Op>,
    /// Forms of each row, compiled when the first instruction of its opcode is read.
    forms: Vec<OnceLock<Vec<Form>>>,
}

/// A spelling with its meaning.
#[derive(Clone, Copy)]
pub(crate) struct Resolved {
    pub op: Op,
    pub mods: Mods,
    pub types: [Option<Ty>; 4],
    pub form: &'static Form,
}

/// The compiled table.
pub(crate) fn isa() -> &'static Isa {
    static ISA: OnceLock<Isa> = OnceLock::new();
    ISA.get_or_init(Isa::compile)
}

fn all_types() -> [(&'static str, Ty); 31] {
    [
        ("pred", Ty::Pred),
        ("b1", Ty::B1),
        ("b8", Ty::B8),
        ("b16", Ty::B16),
        ("b32", Ty::B32),
        ("b64", Ty::B64),
        ("b128", Ty::B128),
        ("u4", Ty::U4),
        ("s4", Ty::S4),
        ("u8", Ty::U8),
        ("s8", Ty::S8),
        ("u16", Ty::U16),
        ("s16", Ty::S16),
        ("u32", Ty::U32),
        ("s32", Ty::S32),
        ("u64", Ty::U64),
        ("s64", Ty::S64),
        ("u16x2", Ty::U16x2),
        ("s16x2", Ty::S16x2),
        ("f16", Ty::F16),
        ("f16x2", Ty::F16x2),
        ("bf16", Ty::Bf16),
        ("bf16x2", Ty::Bf16x2),
        ("tf32", Ty::Tf32),
        ("f32", Ty::F32),
        ("f32x2", Ty::F32x2),
        ("f64", Ty::F64),
        ("e4m3", Ty::E4m3),
        ("e5m2", Ty::E5m2),
        ("e4m3x2", Ty::E4m3x2),
        ("e5m2x2", Ty::E5m2x2),
    ]
}

fn all_words() -> Vec<(&'static str, Word)> {
    let mut w: Vec<(&'static str, Word)> = Vec::with_capacity(192);
    w.extend(Rounding::ALL.iter().map(|r| (r.name(), Word::Round(*r))));
    // `lo` and `hi` are halves of a product as well; `set` and `setp` read them as comparisons.
    let only_cmp = Cmp::ALL.iter().filter(|c| !matches!(c, Cmp::Lo | Cmp::Hi));
    w.extend(only_cmp.map(|c| (c.name(), Word::Cmp(*c))));
    w.extend(Half::ALL.iter().map(|h| (h.name(), Word::HiLo(*h))));
    w.extend(Space::ALL.iter().map(|s| (s.name(), Word::Space(*s, false))));
    w.push(("shared::cta", Word::Space(Space::Shared, false)));
    w.push(("shared::cluster", Word::Space(Space::Shared, true)));
    w.push(("param::entry", Word::Space(Space::Param, false)));
    w.push(("param::func", Word::Space(Space::Param, false)));
    w.extend(Cache::ALL.iter().map(|c| (c.name(), Word::Cache(*c))));
    w.extend(Semantics::ALL.iter().map(|s| (s.name(), Word::Order(*s))));
    w.extend(Scope::ALL.iter().map(|s| (s.name(), Word::Scope(*s))));
    w.push(("gl", Word::Scope(Scope::Gpu)));
    w.extend(BoolOp::ALL.iter().map(|b| (b.name(), Word::Logic(*b))));
    let only_atom = AtomOp::ALL.iter().filter(|a| !matches!(a, AtomOp::And | AtomOp::Or | AtomOp::Xor));
    w.extend(only_atom.map(|a| (a.name(), Word::Atom(*a))));
    w.extend(ShflMode::ALL.iter().map(|s| (s.name(), Word::Shfl(*s))));
    w.extend(VoteMode::ALL.iter().map(|v| (v.name(), Word::Vote(*v))));
    w.extend(PrmtMode::ALL.iter().map(|p| (p.name(), Word::Prmt(*p))));
    w.extend(TestProperty::ALL.iter().map(|p| (p.name(), Word::Prop(*p))));
    w.extend(Layout::ALL.iter().map(|l| (l.name(), Word::Layout(*l))));
    // The second layout of a spelling; never written so, see `resolve`.
    w.push(("row2", Word::Layout(Layout::Row)));
    w.push(("col2", Word::Layout(Layout::Col)));
    w.extend(Fragment::ALL.iter().map(|f| (f.name(), Word::Fragment(*f))));
    w.extend(ShiftMode::ALL.iter().map(|s| (s.name(), Word::Shift(*s))));
    w.extend(Direction::ALL.iter().map(|d| (d.name(), Word::Dir(*d))));
    w.extend(Level::ALL.iter().map(|l| (l.name(), Word::Level(*l))));
    w.extend([("v2", Word::Vector(2)), ("v4", Word::Vector(4))]);
    w.extend([("x1", Word::Matrices(1)), ("x2", Word::Matrices(2)), ("x4", Word::Matrices(4))]);
    let shapes: [(&'static str, u16, u16, u16); 16] = [
        ("m8n8", 8, 8, 0),
        ("m8n8k4", 8, 8, 4),
        ("m8n8k16", 8, 8, 16),
        ("m8n8k32", 8, 8, 32),
        ("m8n8k128", 8, 8, 128),
        ("m16n8k4", 16, 8, 4),
        ("m16n8k8", 16, 8, 8),
        ("m16n8k16", 16, 8, 16),
        ("m16n8k32", 16, 8, 32),
        ("m16n8k64", 16, 8, 64),
        ("m16n8k128", 16, 8, 128),
        ("m16n8k256", 16, 8, 256),
        ("m16n16k8", 16, 16, 8),
        ("m16n16k16", 16, 16, 16),
        ("m32n8k16", 32, 8, 16),
        ("m8n32k16", 8, 32, 16),
    ];
    w.extend(shapes.iter().map(|&(s, m, n, k)| (s, Word::Shape(Shape { m, n, k }))));
    w.push(("popc", Word::Popc));
    let flags: [(&'static str, SetFlag); 25] = [
        ("ftz", |m| m.ftz = true),
        ("noftz", |m| m.noftz = true),
        ("sat", |m| m.sat = true),
        ("satfinite", |m| m.satfinite = true),
        ("relu", |m| m.relu = true),
        ("NaN", |m| m.nan = true),
        ("xorsign", |m| m.xorsign_abs = true),
        ("abs", |m| m.xorsign_abs = true),
        ("approx", |m| m.approx = true),
        ("full", |m| m.full = true),
        ("oob", |m| m.oob = true),
        ("to", |m| m.to = true),
        ("volatile", |m| m.volatile = true),
        ("mmio", |m| m.mmio = true),
        ("nc", |m| m.nc = true),
        ("cc", |m| m.cc = true),
        ("sync", |m| m.sync = true),
        ("aligned", |m| m.aligned = true),
        ("shiftamt", |m| m.shiftamt = true),
        ("trans", |m| m.trans = true),
        ("parity", |m| m.parity = true),
        ("noinc", |m| m.noinc = true),
        // `mbarrier.arrive`: the caller promises something.
        ("noComplete", |_| ()),
        ("L2::cache_hint", |m| m.cache_hint = true),
        // `griddepcontrol`: with one grid at a time both forms have nothing to do.
        ("launch_dependents", |_| ()),
    ];
    w.extend(flags.iter().map(|&(s, f)| (s, Word::Flag(f))));
    w.push(("wait", Word::Flag(|_| ())));
    for hint in [
        "L1::evict_normal",
        "L1::evict_unchanged",
        "L1::evict_first",
        "L1::evict_last",
        "L1::no_allocate",
        "L2::evict_normal",
        "L2::evict_first",
        "L2::evict_last",
        "L2::64B",
        "L2::128B",
        "L2::256B",
    ] {
        w.push((hint, Word::Hint));
    }
    w
}

impl Isa {
    fn compile() -> Isa {
        let mut words = HashMap::with_capacity(256);
        for (i, (text, word)) in all_words().into_iter().enumerate() {
            // Fewer than 256 words: a test counts them.
            words.entry(text).or_insert((i as u8, word));
        }
        let types: HashMap<&'static str, Ty> = all_types().into_iter().collect();
        let mut names = HashMap::with_capacity(256);
        for row in TABLE {
            for name in row.names {
                names.insert(*name, row.op);
            }
        }
        Isa { words, types, names, forms: TABLE.iter().map(|_| OnceLock::new()).collect() }
    }

    /// The forms of an opcode.
    fn forms(&self, op: Op) -> &[Form] {
        let row = op.row();
        match self.forms.get(op as usize) {
            Some(f) => f.get_or_init(|| row.forms.iter().filter_map(|f| self.form(f).ok()).collect()),
            None => &[],
        }
    }

    /// Compiles one form. An error names the part that means nothing; a test checks that the
    /// table has none.
    fn form(&self, text: &'static str) -> Result<Form, String> {
        let mut parts = text.split(';').map(str::trim);
        let (Some(mods), Some(types), Some(shapes), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(format!("`{text}` has not three parts"));
        };
        let mut form =
            Form { groups: Vec::new(), allowed: Bits::default(), types: Vec::new(), shapes: Vec::new() };
        for group in mods.split_whitespace() {
            let (names, optional) = match group.strip_suffix('?') {
                Some(names) => (names, true),
                None => (group, false),
            };
            let mut bits = Bits::default();
            for name in expand(names) {
                let (id, _) = self.words.get(name).ok_or_else(|| format!("word `{name}` in `{text}`"))?;
                bits.insert(*id);
            }
            form.allowed = form.allowed.union(bits);
            form.groups.push((bits, optional));
        }
        for group in types.split_whitespace() {
            let list: Result<Vec<Ty>, String> = expand(group)
                .map(|t| self.types.get(t).copied().ok_or_else(|| format!("type `{t}` in `{text}`")))
                .collect();
            form.types.push(list?);
        }
        for shape in shapes.split('/') {
            let slots: Result<Vec<Slot>, String> = shape.split_whitespace().map(|s| self.slot(s)).collect();
            form.shapes.push(slots?);
        }
        Ok(form)
    }

    fn slot(&self, text: &str) -> Result<Slot, String> {
        let (relaxed, rest) = match text.strip_prefix('~') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (kind, ty) = rest.split_once(':').unwrap_or((rest, "0"));
        let kind = match kind {
            "d" => SlotKind::Dest,
            "d_" => SlotKind::DestOrSink,
            "dp" => SlotKind::DestPair,
            "pq" => SlotKind::PredPair,
            "a" | "b" | "c" | "e" => SlotKind::Source,
            "x" => SlotKind::SourceOrSymbol,
            "r" => SlotKind::Register,
            "i" => SlotKind::Integer,
            "q" => SlotKind::PredSource,
            "ar" => SlotKind::AddressRegister,
            "A" => SlotKind::Address,
            "vd" => SlotKind::VectorDest,
            "vs" => SlotKind::VectorSource,
            "fd" => SlotKind::FragmentDest,
            "fs" => SlotKind::FragmentSource,
            "md" => SlotKind::MatrixDest,
            "ms" => SlotKind::MatrixSource,
            "mov" => SlotKind::Mov,
            "L" => SlotKind::Label,
            "T" => SlotKind::Table,
            "call" => SlotKind::Call,
            _ => return Err(format!("slot `{text}`")),
        };
        let ty = match ty {
            "0" => SlotTy::Nth(0),
            "1" => SlotTy::Nth(1),
            "2" => SlotTy::Nth(2),
            "3" => SlotTy::Nth(3),
            "w" => SlotTy::Wide,
            name => SlotTy::Fixed(*self.types.get(name).ok_or_else(|| format!("slot `{text}`"))?),
        };
        Ok(Slot { kind, ty, relaxed })
    }

    /// The type written `name` (without its dot).
    pub fn ty(&self, name: &str) -> Option<Ty> {
        self.types.get(name).copied()
    }

    /// The row, the meaning of the modifiers and the form of a spelling; `None` if the table has
    /// no such opcode or no form with these modifiers and types.
    pub fn resolve(&'static self, spelling: &str) -> Option<Resolved> {
        let (op, name) = self.opcode(spelling)?;
        let mut mods = Mods::default();
        let mut types = [None; 4];
        let mut types_len = 0;
        let mut seen = Bits::default();
        for text in spelling[name.len()..].split('.').skip(1) {
            if let Some(ty) = self.types.get(text) {
                *types.get_mut(types_len)? = Some(*ty);
                types_len += 1;
                continue;
            }
            let (mut id, word) = *self.words.get(text).filter(|_| text != "row2" && text != "col2")?;
            if let Word::Layout(layout) = word
                && mods.layout_a.is_some()
            {
                id = self.words.get(if layout == Layout::Row { "row2" } else { "col2" })?.0;
            }
            if !seen.insert(id) {
                return None;
            }
            apply(op, word, &mut mods);
        }
        let fits = |form: &&Form| {
            form.types.len() == types_len
                && form.types.iter().zip(&types).all(|(list, ty)| ty.is_some_and(|t| list.contains(&t)))
                && seen.intersection(form.allowed) == seen
                && form.groups.iter().all(|(bits, optional)| match seen.intersection(*bits).count() {
                    0 => *optional,
                    n => n == 1,
                })
        };
        let form = self.forms(op).iter().find(fits)?;
        if name.starts_with("bar.") && op != Op::BarWarpSync {
            mods.aligned = true;
        }
        Some(Resolved { op, mods, types, form })
    }

    /// The opcode of a spelling and its longest name in the table.
    fn opcode<'s>(&self, spelling: &'s str) -> Option<(Op, &'s str)> {
        let ends = spelling.match_indices('.').map(|(i, _)| i).take(4).chain([spelling.len()]);
        let mut found = None;
        for end in ends {
            let name = &spelling[..end];
            if let Some(op) = self.names.get(name) {
                found = Some((*op, name));
            }
        }
        found
    }
}

/// The names in `a|b|CLASS`.
fn expand(group: &'static str) -> impl Iterator<Item = &'static str> {
    group.split('|').flat_map(|name| {
        let class = CLASSES.iter().find(|(class, _)| *class == name).map(|(_, names)| *names);
        class.unwrap_or(name).split('|')
    })
}

/// Sets what `word` means for `op`.
fn apply(op: Op, word: Word, mods: &mut Mods) {
    let atomic = matches!(op, Op::Atom | Op::Red | Op::Redux);
    match word {
        Word::Round(r) => mods.rounding = Some(r),
        Word::Cmp(c) => mods.cmp = Some(c),
        Word::HiLo(h) if matches!(op, Op::Set | Op::Setp) => {
            mods.cmp = match h {
                Half::Hi => Some(Cmp::Hi),
                Half::Lo => Some(Cmp::Lo),
                Half::Wide => None,
            };
        }
        Word::HiLo(h) => mods.half = Some(h),
        Word::Space(space, cluster) => {
            if op == Op::CpAsync && mods.space.is_some() {
                mods.src_space = Some(space);
            } else {
                mods.space = Some(space);
                mods.cluster |= cluster;
            }
        }
        Word::Cache(c) => mods.cache = Some(c),
        Word::Order(s) => mods.semantics = Some(s),
        Word::Scope(s) => mods.scope = Some(s),
        Word::Logic(b) if atomic => {
            mods.atom = Some(match b {
                BoolOp::And => AtomOp::And,
                BoolOp::Or => AtomOp::Or,
                BoolOp::Xor => AtomOp::Xor,
            });
        }
        Word::Logic(b) if op == Op::BarRed => {
            mods.bar_red = match b {
                BoolOp::And => Some(BarRed::And),
                BoolOp::Or => Some(BarRed::Or),
                BoolOp::Xor => None,
            };
        }
        Word::Logic(b) if op == Op::Lop3 => mods.lop3_bool = Some(b),
        Word::Logic(b) => mods.bool_op = Some(b),
        Word::Atom(a) => {
            if op == Op::Vabsdiff4 {
                mods.accumulate = true;
            } else {
                mods.atom = Some(a);
            }
        }
        Word::Shfl(s) => mods.shfl = Some(s),
        Word::Vote(v) => match (op, v) {
            (Op::Match, VoteMode::All) => mods.match_mode = Some(MatchMode::All),
            (Op::Match, VoteMode::Any) => mods.match_mode = Some(MatchMode::Any),
            (Op::Vote, _) => mods.vote = Some(v),
            (_, VoteMode::Uni) => mods.uni = true,
            // No other opcode has these; the forms refuse them.
            (_, VoteMode::All | VoteMode::Any | VoteMode::Ballot) => (),
        },
        Word::Prmt(p) => mods.prmt = Some(p),
        Word::Prop(p) => mods.testp = Some(p),
        Word::Layout(l) => {
            if mods.layout_a.is_none() {
                mods.layout_a = Some(l);
            } else {
                mods.layout_b = Some(l);
            }
        }
        Word::Fragment(f) => mods.fragment = Some(f),
        Word::Shift(s) => mods.shift = Some(s),
        Word::Dir(d) => mods.direction = Some(d),
        Word::Vector(n) => mods.vector = n,
        Word::Matrices(n) => mods.matrices = n,
        Word::Shape(s) => mods.shape = Some(s),
        Word::Level(l) => mods.level = Some(l),
        Word::Popc => {
            if op == Op::BarRed {
                mods.bar_red = Some(BarRed::Popc);
            } else {
                mods.popc = true;
            }
        }
        Word::Flag(set) => set(mods),
        Word::Hint => (),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_the_table_compiles() {
        for row in TABLE {
            for form in row.forms {
                if let Err(what) = isa().form(form) {
                    panic!("{}: {what}", row.op.name());
                }
            }
            assert!(!row.forms.is_empty() && !row.section.is_empty(), "{}", row.op.name());
            assert_eq!(row.names[0], row.op.name());
        }
    }

    #[test]
    fn rows_stand_in_the_order_of_the_enum_and_names_are_unique() {
        let mut names = std::collections::BTreeSet::new();
        for (i, row) in TABLE.iter().enumerate() {
            assert_eq!(row.op as usize, i);
            assert_eq!(Op::ALL[i].row().op, row.op);
            for name in row.names {
                assert!(names.insert(*name), "{name} twice");
            }
        }
    }

    #[test]
    fn words_are_unique_and_fit_the_set() {
        let words = all_words();
        assert!(words.len() <= 256);
        let mut seen = std::collections::BTreeSet::new();
        for (text, _) in &words {
            assert!(seen.insert(*text), "{text} twice");
            assert!(isa().ty(text).is_none(), "{text} is a type too");
        }
        let used: Bits =
            Op::ALL.iter().flat_map(|op| isa().forms(*op)).fold(Bits::default(), |b, f| b.union(f.allowed));
        for (text, _) in &words {
            let mut one = Bits::default();
            one.insert(isa().words[text].0);
            assert_eq!(used.intersection(one).count(), 1, "no form has `{text}`");
        }
    }

    #[test]
    fn a_word_means_what_its_opcode_makes_of_it() {
        let m = |s: &str| isa().resolve(s).unwrap_or_else(|| panic!("{s}")).mods;
        assert_eq!(m("setp.lo.u32").cmp, Some(Cmp::Lo));
        assert_eq!(m("mul.lo.u32").half, Some(Half::Lo));
        assert_eq!(m("setp.lt.and.s32").bool_op, Some(BoolOp::And));
        assert_eq!(m("atom.global.and.b32").atom, Some(AtomOp::And));
        assert_eq!(m("bar.red.and.pred").bar_red, Some(BarRed::And));
        assert_eq!(m("lop3.and.b32").lop3_bool, Some(BoolOp::And));
        assert_eq!(m("vote.sync.any.pred").vote, Some(VoteMode::Any));
        assert_eq!(m("match.any.sync.b32").match_mode, Some(MatchMode::Any));
        assert!(m("bra.uni").uni && m("bar.sync").aligned && !m("barrier.sync").aligned);
        let cp = m("cp.async.ca.shared.global.L2::128B");
        assert_eq!((cp.space, cp.src_space), (Some(Space::Shared), Some(Space::Global)));
        let mma = m("mma.sync.aligned.m8n8k4.row.row.f32.f16.f16.f32");
        assert_eq!((mma.layout_a, mma.layout_b), (Some(Layout::Row), Some(Layout::Row)));
        assert!(m("ld.shared::cluster.u32").cluster && !m("ld.shared::cta.u32").cluster);
    }

    #[test]
    fn modifiers_that_do_not_belong_are_refused() {
        for s in [
            "add",
            "add.f16.f16",
            "add.rn.rz.f32",
            "add.rn.rn.f32",
            "mul.s32",
            "mul.lo.wide.s32",
            "ld.nc.volatile.u32",
            "ld.v2.v4.u32",
            "setp.f32",
            "cvt.f16.f32",
            "cvt.rn.rzi.f32.f32",
            "foo.u32",
            "shl.u32",
            "mma.sync.aligned.m16n8k8.col.row.f32.f16.f16.f32",
            "row2",
            "bar",
            "add.row2.s32",
            "st.const.u32",
            "tex.2d.v4.f32.f32",
        ] {
            assert!(isa().resolve(s).is_none(), "{s}");
        }
    }
}
