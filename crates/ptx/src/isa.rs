//! The ISA table: one row per opcode.
//!
//! A row has the mnemonic (and other spellings of the same operation), the PTX ISA version that
//! brought it, the group of the PTX manual that defines it, and its *forms*. A form is
//! `modifiers ; types ; operands`:
//!
//! - modifiers: groups separated by spaces, alternatives by `|`, `?` after a group that may be
//!   left out. Any order is accepted, a group at most once. Words in capitals are classes, see
//!   [`CLASSES`].
//! - types: one group of alternatives for each type modifier, in order.
//! - operands: slots; where several operand lists are possible they are separated by `/`.
//!
//! | slot | operand |
//! |---|---|
//! | `d` | register written |
//! | `d_` | the same, or `_` |
//! | `dp` | register written, or `d\|p` with a predicate; each may be `_` |
//! | `pq` | predicate written, or `p\|q` |
//! | `a`, `b`, `c`, `e` | register, literal or special register |
//! | `x` | like `a`, or a symbol |
//! | `r` | register |
//! | `i` | integer literal |
//! | `q` | predicate register, or `!` and one |
//! | `ar` | register holding an address: 32 or 64 bits, integer |
//! | `A` | address in brackets |
//! | `vd`, `vs` | register(s) written, operand(s) read, as many as `.v2`/`.v4` says |
//! | `fd`, `fs` | matrix fragment written, read |
//! | `md`, `ms` | registers of `ldmatrix`, `stmatrix` |
//! | `mov` | both operands of `mov`, packing and unpacking among them |
//! | `L`, `T`, `call` | label, branch table, the operands of a call |
//!
//! After `:` stands the operand's type: a type name, the number of a type modifier (from 0, the
//! default), or `w` for twice the width of type 0. `~` before a slot: the register may be wider.
//!
//! Source: PTX ISA 9, chapter "Instruction Set". What is not in the table is
//! [`crate::PtxError::Unsupported`].

/// Row of the ISA table.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The opcode.
    pub op: Op,
    /// Spellings without modifiers; the first is [`Op::name`].
    pub names: &'static [&'static str],
    /// First PTX ISA version (major, minor) that has it.
    pub since: (u16, u16),
    /// Group of instructions in the PTX manual.
    pub section: &'static str,
    /// Accepted forms, see the module's header.
    pub forms: &'static [&'static str],
}

macro_rules! isa {
    ($($variant:ident $name:literal $(| $alias:literal)* ($major:literal, $minor:literal) $section:ident
       [$($form:expr),* $(,)?];)*) => {
        /// Opcodes. Source: PTX ISA, chapter "Instruction Set".
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Op { $(#[doc = concat!("`", $name, "`.")] $variant,)* }

        impl Op {
            /// All opcodes, in the table's order.
            pub const ALL: &'static [Op] = &[$(Op::$variant,)*];

            /// The mnemonic, such as `bar.sync`.
            pub fn name(self) -> &'static str {
                match self { $(Op::$variant => $name,)* }
            }

            /// The opcode's row.
            pub fn row(self) -> &'static Row {
                &TABLE[self as usize]
            }
        }

        /// The ISA table, in the order of [`Op::ALL`].
        pub static TABLE: &[Row] = &[$(Row {
            op: Op::$variant,
            names: &[$name $(, $alias)*],
            since: ($major, $minor),
            section: $section,
            forms: &[$($form),*],
        },)*];
    };
}

/// Classes used in forms.
pub static CLASSES: &[(&str, &str)] = &[
    ("RND", "rn|rz|rm|rp"),
    ("RNDI", "rni|rzi|rmi|rpi"),
    ("CMP", "eq|ne|lt|le|gt|ge|lo|ls|hi|hs|equ|neu|ltu|leu|gtu|geu|num|nan"),
    ("LOGIC", "and|or|xor"),
    ("SCOPE", "cta|cluster|gpu|sys"),
    ("ORDER", "relaxed|acquire|release|acq_rel"),
    ("SHARED", "shared|shared::cta|shared::cluster"),
    ("ASPACE", "global|shared|shared::cta|shared::cluster"),
    ("LDSPACE", "const|global|local|param|param::entry|param::func|shared|shared::cta|shared::cluster"),
    ("STSPACE", "global|local|param|param::func|shared|shared::cta|shared::cluster"),
    ("ANYSPACE", "const|global|local|param|param::entry|shared|shared::cta|shared::cluster"),
    ("EV1", "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate"),
    ("EV2", "L2::evict_normal|L2::evict_first|L2::evict_last"),
    ("L2PF", "L2::64B|L2::128B|L2::256B"),
    ("HINT", "L2::cache_hint"),
    ("VEC", "v2|v4"),
    ("PRMT", "f4e|b4e|rc8|ecl|ecr|rc16"),
    ("PROP", "finite|infinite|number|notanumber|normal|subnormal"),
    ("LAYOUT", "row|col"),
    ("LAYOUT2", "row2|col2"),
    ("INT", "u16|s16|u32|s32|u64|s64"),
    ("INT32", "u32|s32|u64|s64"),
    ("INT8", "u8|s8|u16|s16|u32|s32|u64|s64"),
    ("BITS", "b16|b32|b64"),
    ("HALF", "f16|f16x2"),
    ("BHALF", "bf16|bf16x2"),
    ("FLOAT", "f16|bf16|f32|f64"),
    ("MEM", "b8|b16|b32|b64|b128|u8|s8|u16|s16|u32|s32|u64|s64|f32|f64"),
    ("WMMA", "m16n16k16|m32n8k16|m8n32k16"),
];

const INTEGER: &str = "Integer Arithmetic Instructions";
const EXTENDED: &str = "Extended-Precision Integer Arithmetic Instructions";
const FLOATING: &str = "Floating-Point Instructions";
const COMPARE: &str = "Comparison and Selection Instructions";
const LOGIC: &str = "Logic and Shift Instructions";
const DATA: &str = "Data Movement and Conversion Instructions";
const CONTROL: &str = "Control Flow Instructions";
const SYNC: &str = "Parallel Synchronization and Communication Instructions";
const MATRIX: &str = "Warp Level Matrix Multiply-Accumulate Instructions";
const VIDEO: &str = "Video Instructions";
const MISC: &str = "Miscellaneous Instructions";

isa! {
    Abs "abs" (1, 0) INTEGER [
        "; s16|s32|s64 ; d a", "ftz? ; f32|f16|f16x2 ; d a", "; f64|bf16|bf16x2 ; d a",
    ];
    Activemask "activemask" (6, 2) SYNC ["; b32 ; d"];
    Add "add" (1, 0) INTEGER [
        "; INT|u16x2|s16x2 ; d a b", "sat ; s32 ; d a b", "cc ; INT32 ; d a b",
        "RND? ftz? sat? ; f32 ; d a b", "RND? ; f64 ; d a b", "rn? ftz? sat? ; HALF ; d a b",
        "rn? ; BHALF ; d a b", "RND? ftz? ; f32x2 ; d a b",
    ];
    Addc "addc" (1, 2) EXTENDED ["cc? ; INT32 ; d a b"];
    And "and" (1, 0) LOGIC ["; pred|BITS ; d a b"];
    Atom "atom" (1, 1) SYNC [
        "ORDER? SCOPE? ASPACE? HINT? and|or|xor ; b32|b64 ; d_ A b",
        "ORDER? SCOPE? ASPACE? HINT? exch ; b32|b64|b128 ; d_ A b",
        "ORDER? SCOPE? ASPACE? HINT? cas ; b16|b32|b64|b128 ; d_ A b c",
        "ORDER? SCOPE? ASPACE? HINT? add ; u32|s32|u64|f32|f64 ; d_ A b",
        "ORDER? SCOPE? ASPACE? HINT? add noftz ; HALF|BHALF ; d_ A b",
        "ORDER? SCOPE? ASPACE? HINT? inc|dec ; u32 ; d_ A b",
        "ORDER? SCOPE? ASPACE? HINT? min|max ; INT32 ; d_ A b",
    ];
    BarArrive "bar.arrive" | "bar.cta.arrive" | "barrier.arrive" | "barrier.cta.arrive" (2, 0) SYNC [
        "aligned? ; ; a:u32 b:u32",
    ];
    BarRed "bar.red" | "bar.cta.red" | "barrier.red" | "barrier.cta.red" (2, 0) SYNC [
        "popc aligned? ; u32 ; d a:u32 q / d a:u32 b:u32 q",
        "and|or aligned? ; pred ; d a:u32 q / d a:u32 b:u32 q",
    ];
    BarSync "bar.sync" | "bar.cta.sync" | "barrier.sync" | "barrier.cta.sync" (1, 0) SYNC [
        "aligned? ; ; a:u32 / a:u32 b:u32",
    ];
    BarWarpSync "bar.warp.sync" (6, 0) SYNC ["; ; a:u32"];
    BarrierClusterArrive "barrier.cluster.arrive" (7, 8) SYNC ["release|relaxed? aligned? ; ; "];
    BarrierClusterWait "barrier.cluster.wait" (7, 8) SYNC ["acquire? aligned? ; ; "];
    Bfe "bfe" (2, 0) INTEGER ["; INT32 ; d a b:u32 c:u32"];
    Bfi "bfi" (2, 0) INTEGER ["; b32|b64 ; d a b c:u32 e:u32"];
    Bfind "bfind" (2, 0) INTEGER ["shiftamt? ; INT32 ; d:u32 a"];
    Bmsk "bmsk" (7, 6) INTEGER ["clamp|wrap ; b32 ; d a b"];
    Bra "bra" (1, 0) CONTROL ["uni? ; ; L"];
    Brev "brev" (2, 0) INTEGER ["; b32|b64 ; d a"];
    Brkpt "brkpt" (1, 0) MISC ["; ; "];
    BrxIdx "brx.idx" (6, 0) CONTROL ["uni? ; ; a:u32 T"];
    Call "call" (1, 0) CONTROL ["uni? ; ; call"];
    Clz "clz" (2, 0) INTEGER ["; b32|b64 ; d:u32 a"];
    Cnot "cnot" (1, 0) LOGIC ["; BITS ; d a"];
    Copysign "copysign" (2, 0) FLOATING ["; f32|f64 ; d a b"];
    Cos "cos" (1, 0) FLOATING ["approx ftz? ; f32 ; d a"];
    CpAsync "cp.async" (7, 0) DATA [
        "ca|cg shared|shared::cta global HINT? L2PF? ; ; A A i:u32 / A A i:u32 a:u32 / A A i:u32 q",
    ];
    CpAsyncCommitGroup "cp.async.commit_group" (7, 0) DATA ["; ; "];
    CpAsyncMbarrierArrive "cp.async.mbarrier.arrive" (7, 0) DATA ["noinc? SHARED? ; b64 ; A"];
    CpAsyncWaitAll "cp.async.wait_all" (7, 0) DATA ["; ; "];
    CpAsyncWaitGroup "cp.async.wait_group" (7, 0) DATA ["; ; i:u32"];
    Cvt "cvt" (1, 0) DATA [
        "sat? ; INT8 INT8 ; ~d ~a:1",
        "RND sat? ftz? ; FLOAT INT8 ; d ~a:1",
        "RNDI ftz? sat? ; INT8 FLOAT ; ~d a:1",
        "RNDI? ftz? sat? ; f32 f32 ; d a:1",
        "RNDI? sat? ; f64 f64 ; d a:1",
        "RNDI? ftz? sat? ; f16 f16 ; d a:1",
        "RNDI? ; bf16 bf16 ; d a:1",
        "ftz? sat? ; f64 f32|f16|bf16 ; d a:1",
        "ftz? sat? ; f32 f16|bf16 ; d a:1",
        "RND ftz? sat? ; f32 f64 ; d a:1",
        "RND ftz? sat? relu? satfinite? ; f16|bf16 f32|f64|f16|bf16 ; d a:1",
        "rna|rn|rz relu? satfinite? ; tf32 f32 ; d a:1",
        "rn|rz relu? satfinite? ; f16x2|bf16x2 f32 ; d a:1 b:1",
        "rn satfinite relu? ; e4m3x2|e5m2x2 f32 ; d a:1 b:1",
        "rn satfinite relu? ; e4m3x2|e5m2x2 f16x2 ; d a:1",
        "rn relu? ; f16x2 e4m3x2|e5m2x2 ; d a:1",
    ];
    Cvta "cvta" (2, 0) DATA ["ANYSPACE to? ; u32|u64 ; d x"];
    Discard "discard" (7, 4) DATA ["global? L2 ; ; A i:u32"];
    Div "div" (1, 0) INTEGER [
        "; INT ; d a b", "approx|full ftz? ; f32 ; d a b", "RND ftz? ; f32 ; d a b", "RND ; f64 ; d a b",
    ];
    Dp2a "dp2a" (5, 0) INTEGER ["lo|hi ; u32|s32 u32|s32 ; d:b32 a:b32 b:b32 c:b32"];
    Dp4a "dp4a" (5, 0) INTEGER ["; u32|s32 u32|s32 ; d:b32 a:b32 b:b32 c:b32"];
    ElectSync "elect.sync" (8, 0) SYNC ["; ; dp:u32 a:u32"];
    Ex2 "ex2" (1, 0) FLOATING [
        "approx ftz? ; f32 ; d a", "approx ; HALF ; d a", "approx ftz ; BHALF ; d a",
    ];
    Exit "exit" (1, 0) CONTROL ["; ; "];
    Fence "fence" (6, 0) SYNC ["sc|acq_rel|acquire|release? SCOPE ; ; "];
    Fma "fma" (1, 4) FLOATING [
        "RND ftz? sat? ; f32 ; d a b c", "RND ; f64 ; d a b c", "rn ftz? sat? ; HALF ; d a b c",
        "rn ftz? relu ; HALF ; d a b c", "rn relu? ; BHALF ; d a b c",
        "rn oob relu? ; HALF|BHALF ; d a b c", "RND ftz? ; f32x2 ; d a b c",
    ];
    Fns "fns" (6, 0) INTEGER ["; b32 ; d a b c"];
    Getctarank "getctarank" (7, 8) DATA ["shared::cluster? ; u32|u64 ; d:u32 x"];
    Griddepcontrol "griddepcontrol" (7, 8) SYNC ["launch_dependents|wait ; ; "];
    Isspacep "isspacep" (2, 0) DATA ["ANYSPACE ; ; d:pred ar"];
    Ld "ld" (1, 0) DATA [
        "weak? LDSPACE? ca|cg|cs|lu|cv? nc? EV1? EV2? L2PF? HINT? VEC? ; MEM ; ~vd A",
        "volatile LDSPACE? L2PF? VEC? ; MEM ; ~vd A",
        "relaxed|acquire SCOPE LDSPACE? EV1? EV2? L2PF? HINT? VEC? ; MEM ; ~vd A",
        "mmio relaxed sys global? ; MEM ; ~vd A",
    ];
    Ldmatrix "ldmatrix" (6, 5) MATRIX ["sync aligned m8n8 x1|x2|x4 trans? shared|shared::cta? ; b16 ; md A"];
    Ldu "ldu" (2, 0) DATA ["global? VEC? ; MEM ; ~vd A"];
    Lg2 "lg2" (1, 0) FLOATING ["approx ftz? ; f32 ; d a"];
    Lop3 "lop3" (4, 3) LOGIC ["; b32 ; d a b c i:u32", "and|or ; b32 ; dp a b c i:u32 q"];
    Mad "mad" (1, 0) INTEGER [
        "hi|lo ; INT ; d a b c", "hi sat ; s32 ; d a b c", "wide ; u16|s16|u32|s32 ; d:w a b c:w",
        "hi|lo cc ; INT32 ; d a b c", "RND ftz? sat? ; f32 ; d a b c", "RND ; f64 ; d a b c",
    ];
    Mad24 "mad24" (1, 0) INTEGER ["hi|lo ; u32|s32 ; d a b c", "hi sat ; s32 ; d a b c"];
    Madc "madc" (3, 0) EXTENDED ["hi|lo cc? ; INT32 ; d a b c"];
    Mapa "mapa" (7, 8) DATA ["shared::cluster? ; u32|u64 ; d x b:u32"];
    Match "match" (6, 0) SYNC ["any sync ; b32|b64 ; d:b32 a b:u32", "all sync ; b32|b64 ; dp:b32 a b:u32"];
    Max "max" (1, 0) INTEGER [
        "; INT|u16x2|s16x2 ; d a b", "relu ; s32|s16x2 ; d a b", "ftz? NaN? ; f32|HALF ; d a b",
        "ftz? NaN? xorsign abs ; f32|HALF ; d a b", "; f64 ; d a b", "NaN? ; BHALF ; d a b",
        "NaN? xorsign abs ; BHALF ; d a b",
    ];
    MbarrierArrive "mbarrier.arrive" (7, 0) SYNC [
        "release? cta? SHARED? ; b64 ; d_ A / d_ A a:u32", "noComplete release? cta? SHARED? ; b64 ; d A a:u32",
    ];
    MbarrierArriveDrop "mbarrier.arrive_drop" (7, 0) SYNC [
        "release? cta? SHARED? ; b64 ; d_ A / d_ A a:u32", "noComplete release? cta? SHARED? ; b64 ; d A a:u32",
    ];
    MbarrierInit "mbarrier.init" (7, 0) SYNC ["SHARED? ; b64 ; A a:u32"];
    MbarrierInval "mbarrier.inval" (7, 0) SYNC ["SHARED? ; b64 ; A"];
    MbarrierPendingCount "mbarrier.pending_count" (7, 0) SYNC ["; b64 ; d:u32 a"];
    MbarrierTestWait "mbarrier.test_wait" (7, 0) SYNC [
        "acquire? cta? SHARED? ; b64 ; d:pred A a", "parity acquire? cta? SHARED? ; b64 ; d:pred A a:u32",
    ];
    MbarrierTryWait "mbarrier.try_wait" (7, 8) SYNC [
        "acquire? cta? SHARED? ; b64 ; d:pred A a / d:pred A a b:u32",
        "parity acquire? cta? SHARED? ; b64 ; d:pred A a:u32 / d:pred A a:u32 b:u32",
    ];
    Membar "membar" (1, 4) SYNC ["cta|gl|sys ; ; "];
    Min "min" (1, 0) INTEGER [
        "; INT|u16x2|s16x2 ; d a b", "relu ; s32|s16x2 ; d a b", "ftz? NaN? ; f32|HALF ; d a b",
        "ftz? NaN? xorsign abs ; f32|HALF ; d a b", "; f64 ; d a b", "NaN? ; BHALF ; d a b",
        "NaN? xorsign abs ; BHALF ; d a b",
    ];
    Mma "mma" (6, 4) MATRIX [
        "sync aligned m8n8k4 LAYOUT LAYOUT2 ; f16|f32 f16 f16 f16|f32 ; fd fs:1 fs:2 fs:3",
        "sync aligned m16n8k8|m16n8k16 row col2 ; f16|f32 f16 f16 f16|f32 ; fd fs:1 fs:2 fs:3",
        "sync aligned m16n8k8|m16n8k16 row col2 ; f32 bf16 bf16 f32 ; fd fs:1 fs:2 fs:3",
        "sync aligned m16n8k4|m16n8k8 row col2 ; f32 tf32 tf32 f32 ; fd fs:1 fs:2 fs:3",
        "sync aligned m8n8k4|m16n8k4|m16n8k8|m16n8k16 row col2 RND? ; f64 f64 f64 f64 ; fd fs:1 fs:2 fs:3",
        "sync aligned m8n8k16|m16n8k16|m16n8k32 row col2 satfinite? ; s32 s8|u8 s8|u8 s32 ; fd fs:1 fs:2 fs:3",
        "sync aligned m8n8k32|m16n8k32|m16n8k64 row col2 satfinite? ; s32 s4|u4 s4|u4 s32 ; fd fs:1 fs:2 fs:3",
        "sync aligned m8n8k128|m16n8k128|m16n8k256 row col2 xor|and popc ; s32 b1 b1 s32 ; fd fs:1 fs:2 fs:3",
        "sync aligned m16n8k16|m16n8k32 row col2 ; f32|f16 e4m3|e5m2 e4m3|e5m2 f32|f16 ; fd fs:1 fs:2 fs:3",
    ];
    Mov "mov" (1, 0) DATA ["; pred|BITS|b128|INT|f32|f64 ; mov"];
    Movmatrix "movmatrix" (7, 8) MATRIX ["sync aligned m8n8 trans ; b16 ; d:b32 a:b32"];
    Mul "mul" (1, 0) INTEGER [
        "hi|lo ; INT ; d a b", "wide ; u16|s16|u32|s32 ; d:w a b", "RND? ftz? sat? ; f32 ; d a b",
        "RND? ; f64 ; d a b", "rn? ftz? sat? ; HALF ; d a b", "rn? ; BHALF ; d a b",
        "RND? ftz? ; f32x2 ; d a b",
    ];
    Mul24 "mul24" (1, 0) INTEGER ["hi|lo ; u32|s32 ; d a b"];
    Nanosleep "nanosleep" (6, 3) MISC ["; u32 ; a"];
    Neg "neg" (1, 0) INTEGER ["; s16|s32|s64|f64|BHALF ; d a", "ftz? ; f32|HALF ; d a"];
    Not "not" (1, 0) LOGIC ["; pred|BITS ; d a"];
    Or "or" (1, 0) LOGIC ["; pred|BITS ; d a b"];
    Popc "popc" (2, 0) INTEGER ["; b32|b64 ; d:u32 a"];
    Prefetch "prefetch" (2, 0) DATA [
        "global|local? L1|L2 ; ; A", "global L2::evict_last|L2::evict_normal ; ; A",
    ];
    Prefetchu "prefetchu" (2, 0) DATA ["L1 ; ; A"];
    Prmt "prmt" (2, 0) DATA ["PRMT? ; b32 ; d a b c"];
    Rcp "rcp" (1, 0) FLOATING [
        "approx ftz? ; f32 ; d a", "RND ftz? ; f32 ; d a", "RND ; f64 ; d a", "approx ftz ; f64 ; d a",
    ];
    Red "red" (1, 2) SYNC [
        "relaxed|release? SCOPE? ASPACE? HINT? and|or|xor ; b32|b64 ; A b",
        "relaxed|release? SCOPE? ASPACE? HINT? add ; u32|s32|u64|f32|f64 ; A b",
        "relaxed|release? SCOPE? ASPACE? HINT? add noftz ; HALF|BHALF ; A b",
        "relaxed|release? SCOPE? ASPACE? HINT? inc|dec ; u32 ; A b",
        "relaxed|release? SCOPE? ASPACE? HINT? min|max ; INT32 ; A b",
    ];
    Redux "redux" (7, 0) SYNC ["sync add|min|max ; u32|s32 ; d a b:u32", "sync and|or|xor ; b32 ; d a b:u32"];
    Rem "rem" (1, 0) INTEGER ["; INT ; d a b"];
    Ret "ret" (1, 0) CONTROL ["uni? ; ; "];
    Rsqrt "rsqrt" (1, 0) FLOATING ["approx ftz? ; f32|f64 ; d a"];
    Sad "sad" (1, 0) INTEGER ["; INT ; d a b c"];
    Selp "selp" (1, 0) COMPARE ["; BITS|INT|f32|f64 ; d a b r:pred"];
    Set "set" (1, 0) COMPARE [
        "CMP ftz? ; u32|s32|f32|f16|bf16 BITS|INT|f32|f64 ; d a:1 b:1",
        "CMP LOGIC ftz? ; u32|s32|f32|f16|bf16 BITS|INT|f32|f64 ; d a:1 b:1 q",
        "CMP ftz? ; u16|s16|u32|s32|f16|bf16 f16|bf16 ; d a:1 b:1",
        "CMP LOGIC ftz? ; u16|s16|u32|s32|f16|bf16 f16|bf16 ; d a:1 b:1 q",
        "CMP ftz? ; u32|s32|f16x2|bf16x2 f16x2|bf16x2 ; d a:1 b:1",
        "CMP LOGIC ftz? ; u32|s32|f16x2|bf16x2 f16x2|bf16x2 ; d a:1 b:1 q",
    ];
    Setp "setp" (1, 0) COMPARE [
        "CMP ftz? ; BITS|INT|f32|f64|HALF|BHALF ; pq a b",
        "CMP LOGIC ftz? ; BITS|INT|f32|f64|HALF|BHALF ; pq a b q",
    ];
    Shf "shf" (3, 1) LOGIC ["l|r clamp|wrap ; b32 ; d a b c:u32"];
    Shfl "shfl" (3, 0) SYNC ["sync up|down|bfly|idx ; b32 ; dp a b:u32 c:u32 e:u32"];
    Shl "shl" (1, 0) LOGIC ["; BITS ; d a b:u32"];
    Shr "shr" (1, 0) LOGIC ["; BITS|INT ; d a b:u32"];
    Sin "sin" (1, 0) FLOATING ["approx ftz? ; f32 ; d a"];
    Slct "slct" (1, 0) COMPARE [
        "; BITS|INT|f32|f64 s32 ; d a b c:1", "ftz? ; BITS|INT|f32|f64 f32 ; d a b c:1",
    ];
    Sqrt "sqrt" (1, 0) FLOATING ["approx ftz? ; f32 ; d a", "RND ftz? ; f32 ; d a", "RND ; f64 ; d a"];
    St "st" (1, 0) DATA [
        "weak? STSPACE? wb|cg|cs|wt? EV1? EV2? HINT? VEC? ; MEM ; A ~vs",
        "volatile STSPACE? VEC? ; MEM ; A ~vs",
        "relaxed|release SCOPE STSPACE? EV1? EV2? HINT? VEC? ; MEM ; A ~vs",
        "mmio relaxed sys global? ; MEM ; A ~vs",
    ];
    Stmatrix "stmatrix" (7, 8) MATRIX ["sync aligned m8n8 x1|x2|x4 trans? shared|shared::cta? ; b16 ; A ms"];
    Sub "sub" (1, 0) INTEGER [
        "; INT|u16x2|s16x2 ; d a b", "sat ; s32 ; d a b", "cc ; INT32 ; d a b",
        "RND? ftz? sat? ; f32 ; d a b", "RND? ; f64 ; d a b", "rn? ftz? sat? ; HALF ; d a b",
        "rn? ; BHALF ; d a b", "RND? ftz? ; f32x2 ; d a b",
    ];
    Subc "subc" (1, 2) EXTENDED ["cc? ; INT32 ; d a b"];
    Szext "szext" (7, 6) INTEGER ["clamp|wrap ; u32|s32 ; d a b:u32"];
    Tanh "tanh" (7, 0) FLOATING ["approx ; f32|HALF|BHALF ; d a"];
    Testp "testp" (2, 0) FLOATING ["PROP ; f32|f64 ; d:pred a"];
    Trap "trap" (1, 0) MISC ["; ; "];
    Vabsdiff4 "vabsdiff4" (3, 0) VIDEO [
        "sat? ; u32|s32 u32|s32 u32|s32 ; d:b32 a:b32 b:b32 c:b32",
        "add ; u32|s32 u32|s32 u32|s32 ; d:b32 a:b32 b:b32 c:b32",
    ];
    Vote "vote" (1, 2) SYNC ["sync all|any|uni ; pred ; d q b:u32", "sync ballot ; b32 ; d q b:u32"];
    WmmaLoad "wmma.load" (6, 0) MATRIX [
        "a|b|c sync aligned LAYOUT WMMA global|SHARED? ; f16 ; fd A / fd A b:u32",
        "a|b sync aligned LAYOUT WMMA global|SHARED? ; bf16|s8|u8 ; fd A / fd A b:u32",
        "c sync aligned LAYOUT WMMA global|SHARED? ; f32|s32 ; fd A / fd A b:u32",
        "a|b sync aligned LAYOUT m16n16k8 global|SHARED? ; tf32 ; fd A / fd A b:u32",
        "c sync aligned LAYOUT m16n16k8 global|SHARED? ; f32 ; fd A / fd A b:u32",
        "a|b|c sync aligned LAYOUT m8n8k4 global|SHARED? ; f64 ; fd A / fd A b:u32",
        "a|b sync aligned LAYOUT m8n8k32 global|SHARED? ; s4|u4 ; fd A / fd A b:u32",
        "a|b sync aligned LAYOUT m8n8k128 global|SHARED? ; b1 ; fd A / fd A b:u32",
        "c sync aligned LAYOUT m8n8k32|m8n8k128 global|SHARED? ; s32 ; fd A / fd A b:u32",
    ];
    WmmaMma "wmma.mma" (6, 0) MATRIX [
        "sync aligned LAYOUT LAYOUT2 WMMA satfinite? ; f16|f32 f16|f32 ; fd fs:f16 fs:f16 fs:1",
        "sync aligned LAYOUT LAYOUT2 WMMA ; f32 bf16 bf16 f32 ; fd fs:1 fs:2 fs:3",
        "sync aligned LAYOUT LAYOUT2 WMMA satfinite? ; s32 s8|u8 s8|u8 s32 ; fd fs:1 fs:2 fs:3",
        "sync aligned LAYOUT LAYOUT2 m16n16k8 ; f32 tf32 tf32 f32 ; fd fs:1 fs:2 fs:3",
        "sync aligned LAYOUT LAYOUT2 m8n8k4 RND? ; f64 f64 f64 f64 ; fd fs:1 fs:2 fs:3",
        "sync aligned row col2 m8n8k32 satfinite? ; s32 s4|u4 s4|u4 s32 ; fd fs:1 fs:2 fs:3",
        "xor|and popc sync aligned row col2 m8n8k128 ; s32 b1 b1 s32 ; fd fs:1 fs:2 fs:3",
    ];
    WmmaStore "wmma.store" (6, 0) MATRIX [
        "d sync aligned LAYOUT WMMA global|SHARED? ; f16|f32|s32 ; A fs / A fs b:u32",
        "d sync aligned LAYOUT m16n16k8 global|SHARED? ; f32 ; A fs / A fs b:u32",
        "d sync aligned LAYOUT m8n8k4 global|SHARED? ; f64 ; A fs / A fs b:u32",
        "d sync aligned LAYOUT m8n8k32|m8n8k128 global|SHARED? ; s32 ; A fs / A fs b:u32",
    ];
    Xor "xor" (1, 0) LOGIC ["; pred|BITS ; d a b"];
}
