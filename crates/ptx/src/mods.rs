//! Types, state spaces and instruction modifiers.

/// A PTX type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ty {
    /// `.pred`.
    Pred,
    /// `.b1` (matrix operands only).
    B1,
    /// `.b8`.
    B8,
    /// `.b16`.
    B16,
    /// `.b32`.
    B32,
    /// `.b64`.
    B64,
    /// `.b128`.
    B128,
    /// `.u4` (matrix operands only).
    U4,
    /// `.s4` (matrix operands only).
    S4,
    /// `.u8`.
    U8,
    /// `.s8`.
    S8,
    /// `.u16`.
    U16,
    /// `.s16`.
    S16,
    /// `.u32`.
    U32,
    /// `.s32`.
    S32,
    /// `.u64`.
    U64,
    /// `.s64`.
    S64,
    /// `.u16x2`: two in 32 bits.
    U16x2,
    /// `.s16x2`.
    S16x2,
    /// `.f16`.
    F16,
    /// `.f16x2`.
    F16x2,
    /// `.bf16`.
    Bf16,
    /// `.bf16x2`.
    Bf16x2,
    /// `.tf32`: binary32 bits of which the low 13 are not used.
    Tf32,
    /// `.f32`.
    F32,
    /// `.f32x2`: two in 64 bits.
    F32x2,
    /// `.f64`.
    F64,
    /// `.e4m3` (matrix operands only).
    E4m3,
    /// `.e5m2` (matrix operands only).
    E5m2,
    /// `.e4m3x2`: two in 16 bits.
    E4m3x2,
    /// `.e5m2x2`.
    E5m2x2,
}

impl Ty {
    /// Size in memory (and of the register's used part) in bytes; sub-byte types and predicates
    /// give 1.
    pub fn size_bytes(self) -> u64 {
        self.bits().div_ceil(8)
    }

    /// Width in bits (`.pred` is 1).
    pub fn bits(self) -> u64 {
        match self {
            Ty::Pred | Ty::B1 => 1,
            Ty::U4 | Ty::S4 => 4,
            Ty::B8 | Ty::U8 | Ty::S8 | Ty::E4m3 | Ty::E5m2 => 8,
            Ty::B16 | Ty::U16 | Ty::S16 | Ty::F16 | Ty::Bf16 | Ty::E4m3x2 | Ty::E5m2x2 => 16,
            Ty::B32 | Ty::U32 | Ty::S32 | Ty::U16x2 | Ty::S16x2 => 32,
            Ty::F16x2 | Ty::Bf16x2 | Ty::Tf32 | Ty::F32 => 32,
            Ty::B64 | Ty::U64 | Ty::S64 | Ty::F64 | Ty::F32x2 => 64,
            Ty::B128 => 128,
        }
    }

    /// True for floating-point types, packed ones too.
    pub fn is_float(self) -> bool {
        match self {
            Ty::F16 | Ty::F16x2 | Ty::Bf16 | Ty::Bf16x2 | Ty::Tf32 | Ty::F32 | Ty::F32x2 | Ty::F64 => true,
            Ty::E4m3 | Ty::E5m2 | Ty::E4m3x2 | Ty::E5m2x2 => true,
            Ty::Pred | Ty::B1 | Ty::B8 | Ty::B16 | Ty::B32 | Ty::B64 | Ty::B128 => false,
            Ty::U4 | Ty::S4 | Ty::U8 | Ty::S8 | Ty::U16 | Ty::S16 | Ty::U32 | Ty::S32 => false,
            Ty::U64 | Ty::S64 | Ty::U16x2 | Ty::S16x2 => false,
        }
    }

    /// True for signed integers, packed ones too.
    pub fn is_signed(self) -> bool {
        matches!(self, Ty::S4 | Ty::S8 | Ty::S16 | Ty::S32 | Ty::S64 | Ty::S16x2)
    }
}

macro_rules! spelled {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$vmeta:meta])* $variant:ident $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        $vis enum $name { $(#[doc = concat!("`.", $text, "`.")] $(#[$vmeta])* $variant,)* }

        impl $name {
            /// All variants.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// As written in PTX, without the dot.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

spelled! {
    /// State spaces of memory. An instruction without one uses generic addresses.
    pub enum Space { Const "const", Global "global", Local "local", Param "param", Shared "shared", }
}
spelled! {
    /// Rounding modifiers; those with `i` round to an integral value.
    pub enum Rounding {
        Rn "rn", Rz "rz", Rm "rm", Rp "rp", Rna "rna", Rni "rni", Rzi "rzi", Rmi "rmi", Rpi "rpi",
    }
}
spelled! {
    /// Comparisons. `Lo`, `Ls`, `Hi`, `Hs` are the unsigned spellings of less, less or same,
    /// higher, higher or same; those with `u` are also true for unordered operands.
    pub enum Cmp {
        Eq "eq", Ne "ne", Lt "lt", Le "le", Gt "gt", Ge "ge", Lo "lo", Ls "ls", Hi "hi", Hs "hs",
        Equ "equ", Neu "neu", Ltu "ltu", Leu "leu", Gtu "gtu", Geu "geu", Num "num", Nan "nan",
    }
}
spelled! {
    /// Combination of a comparison with a predicate.
    pub enum BoolOp { And "and", Or "or", Xor "xor", }
}
spelled! {
    /// Which part of a product (or of `dp2a`'s second operand) is meant.
    pub enum Half { Hi "hi", Lo "lo", Wide "wide", }
}
spelled! {
    /// Cache operators of loads and stores.
    pub enum Cache { Ca "ca", Cg "cg", Cs "cs", Cv "cv", Lu "lu", Wb "wb", Wt "wt", }
}
spelled! {
    /// Memory ordering.
    pub enum Semantics {
        Weak "weak", Relaxed "relaxed", Acquire "acquire", Release "release", AcqRel "acq_rel", Sc "sc",
    }
}
spelled! {
    /// Scopes; `membar.gl` has `Gpu`.
    pub enum Scope { Cta "cta", Cluster "cluster", Gpu "gpu", Sys "sys", }
}
spelled! {
    /// Operation of `atom`, `red` and `redux`.
    pub enum AtomOp {
        Add "add", And "and", Cas "cas", Dec "dec", Exch "exch", Inc "inc", Max "max", Min "min", Or "or",
        Xor "xor",
    }
}
spelled! {
    /// Mode of `shfl`.
    pub enum ShflMode { Bfly "bfly", Down "down", Idx "idx", Up "up", }
}
spelled! {
    /// Mode of `vote`.
    pub enum VoteMode { All "all", Any "any", Ballot "ballot", Uni "uni", }
}
spelled! {
    /// Mode of `match`.
    pub enum MatchMode { All "all", Any "any", }
}
spelled! {
    /// Reduction of `bar.red`.
    pub enum BarRed { And "and", Or "or", Popc "popc", }
}
spelled! {
    /// What `shf` does with amounts over 31.
    pub enum ShiftMode { Clamp "clamp", Wrap "wrap", }
}
spelled! {
    /// Direction of `shf`.
    pub enum Direction { Left "l", Right "r", }
}
spelled! {
    /// Modes of `prmt`.
    pub enum PrmtMode { B4e "b4e", Ecl "ecl", Ecr "ecr", F4e "f4e", Rc16 "rc16", Rc8 "rc8", }
}
spelled! {
    /// Property asked by `testp`.
    pub enum TestProperty {
        Finite "finite", Infinite "infinite", Normal "normal", Notanumber "notanumber", Number "number",
        Subnormal "subnormal",
    }
}
spelled! {
    /// Storage order of a matrix.
    pub enum Layout { Col "col", Row "row", }
}
spelled! {
    /// Which matrix a `wmma.load` or `wmma.store` moves.
    pub enum Fragment { A "a", B "b", C "c", D "d", }
}
spelled! {
    /// Cache level of `prefetch`.
    pub enum Level { L1 "L1", L2 "L2", }
}

/// A matrix shape such as `.m16n8k16`; `k` is 0 for `.m8n8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Rows of the result.
    pub m: u16,
    /// Columns of the result.
    pub n: u16,
    /// Length of the inner dimension.
    pub k: u16,
}

/// Modifiers of an instruction, types apart. What the spelling does not have is `None`, `false`
/// or, for `vector` and `matrices`, 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mods {
    /// Rounding.
    pub rounding: Option<Rounding>,
    /// `.ftz`: subnormal inputs and results become zero of the same sign.
    pub ftz: bool,
    /// `.noftz` of half-precision atomics.
    pub noftz: bool,
    /// `.sat`.
    pub sat: bool,
    /// `.satfinite`.
    pub satfinite: bool,
    /// `.relu`.
    pub relu: bool,
    /// `.NaN` of `min` and `max`.
    pub nan: bool,
    /// `.xorsign.abs` of `min` and `max`.
    pub xorsign_abs: bool,
    /// `.approx`.
    pub approx: bool,
    /// `.full` of `div`.
    pub full: bool,
    /// `.oob` of `fma`.
    pub oob: bool,
    /// Comparison of `set` and `setp`.
    pub cmp: Option<Cmp>,
    /// Boolean operator of `set` and `setp`.
    pub bool_op: Option<BoolOp>,
    /// State space (destination of `cp.async`; the one asked about by `isspacep` and `cvta`).
    pub space: Option<Space>,
    /// Source space of `cp.async`.
    pub src_space: Option<Space>,
    /// `::cluster` after a `.shared` space.
    pub cluster: bool,
    /// `.to` of `cvta`: from generic into the space.
    pub to: bool,
    /// Elements of a vector access: 1, 2, 4 or 8.
    pub vector: u8,
    /// `.volatile`.
    pub volatile: bool,
    /// `.mmio`.
    pub mmio: bool,
    /// `.nc`: read-only data.
    pub nc: bool,
    /// Cache operator.
    pub cache: Option<Cache>,
    /// `.L2::cache_hint`: one more operand, the policy.
    pub cache_hint: bool,
    /// Memory ordering.
    pub semantics: Option<Semantics>,
    /// Scope.
    pub scope: Option<Scope>,
    /// Operation of `atom`, `red` and `redux`.
    pub atom: Option<AtomOp>,
    /// Mode of `shfl`.
    pub shfl: Option<ShflMode>,
    /// Mode of `vote`.
    pub vote: Option<VoteMode>,
    /// Mode of `match`.
    pub match_mode: Option<MatchMode>,
    /// Reduction of `bar.red`.
    pub bar_red: Option<BarRed>,
    /// `.hi`, `.lo`, `.wide`.
    pub half: Option<Half>,
    /// `.cc`: the carry flag is written.
    pub cc: bool,
    /// `.uni`: all threads agree.
    pub uni: bool,
    /// `.sync`.
    pub sync: bool,
    /// `.aligned`: all threads of the warp run the same instruction. Always set for `bar.*` on a
    /// block, which is `barrier.*.aligned` by definition.
    pub aligned: bool,
    /// `.wrap`, `.clamp` of `shf` and `bmsk`, `szext`.
    pub shift: Option<ShiftMode>,
    /// `.l`, `.r` of `shf`.
    pub direction: Option<Direction>,
    /// `.shiftamt` of `bfind`.
    pub shiftamt: bool,
    /// Mode of `prmt`.
    pub prmt: Option<PrmtMode>,
    /// Boolean operator of `lop3` with a predicate result (`.and`, `.or`).
    pub lop3_bool: Option<BoolOp>,
    /// Property of `testp`.
    pub testp: Option<TestProperty>,
    /// `.add` of `vabsdiff4`: the sum of the differences is added to the third operand.
    pub accumulate: bool,
    /// Matrix shape.
    pub shape: Option<Shape>,
    /// Order of the first matrix (of the only one, for `wmma.load` and `wmma.store`).
    pub layout_a: Option<Layout>,
    /// Order of the second matrix.
    pub layout_b: Option<Layout>,
    /// Fragment of `wmma.load` and `wmma.store`.
    pub fragment: Option<Fragment>,
    /// Matrices of `ldmatrix` and `stmatrix`: 1, 2 or 4.
    pub matrices: u8,
    /// `.trans` of `ldmatrix` and `stmatrix`.
    pub trans: bool,
    /// `.parity` of `mbarrier.test_wait` and `mbarrier.try_wait`.
    pub parity: bool,
    /// `.noinc` of `cp.async.mbarrier.arrive`.
    pub noinc: bool,
    /// `.popc` of a one-bit `mma`, with its `.and` or `.xor` in `bool_op`.
    pub popc: bool,
    /// Level of `prefetch`.
    pub level: Option<Level>,
}

impl Default for Mods {
    fn default() -> Mods {
        Mods {
            rounding: None,
            ftz: false,
            noftz: false,
            sat: false,
            satfinite: false,
            relu: false,
            nan: false,
            xorsign_abs: false,
            approx: false,
            full: false,
            oob: false,
            cmp: None,
            bool_op: None,
            space: None,
            src_space: None,
            cluster: false,
            to: false,
            vector: 1,
            volatile: false,
            mmio: false,
            nc: false,
            cache: None,
            cache_hint: false,
            semantics: None,
            scope: None,
            atom: None,
            shfl: None,
            vote: None,
            match_mode: None,
            bar_red: None,
            half: None,
            cc: false,
            uni: false,
            sync: false,
            aligned: false,
            shift: None,
            direction: None,
            shiftamt: false,
            prmt: None,
            lop3_bool: None,
            testp: None,
            accumulate: false,
            shape: None,
            layout_a: None,
            layout_b: None,
            fragment: None,
            matrices: 1,
            trans: false,
            parity: false,
            noinc: false,
            popc: false,
            level: None,
        }
    }
}
