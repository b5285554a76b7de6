//! The data types of a parsed and validated PTX module.
//!
//! Everything is indexed densely: registers by [`RegId`] within their function, module variables
//! by [`VarId`], functions by [`FuncId`], labels by the index of the instruction that they stand
//! before. Only registers that the code really names exist, so a declaration such as
//! `%r<4000000000>` costs nothing.
//!
//! A [`Module`] that comes out of [`crate::parse_module`] is validated: every index is in range,
//! operand counts and classes fit the instruction, so a consumer may index freely.

use std::sync::Arc;

use crate::isa::Op;
use crate::mods::{Mods, Space, Ty};

/// A half-open range of bytes in the PTX text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The line and column (both from 1, the column in bytes) of the span's first byte in `text`.
    pub fn line_col(self, text: &str) -> (u32, u32) {
        line_col(text, self.start)
    }
}

/// Line and column of the byte `offset` in `text`, both counted from 1, the column in bytes.
///
/// An offset past the end gives the position just after the last byte.
pub fn line_col(text: &str, offset: u32) -> (u32, u32) {
    let bytes = text.as_bytes();
    let end = (offset as usize).min(bytes.len());
    let before = &bytes[..end];
    let line = before.iter().filter(|b| **b == b'\n').count();
    let start = before.iter().rposition(|b| *b == b'\n').map_or(0, |p| p + 1);
    // Texts are at most u32::MAX bytes long (checked by the lexer), so neither count overflows.
    (line as u32 + 1, (end - start) as u32 + 1)
}

/// Index of a register in [`Function::registers`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegId(pub u32);

/// Index of a variable, in [`Module::variables`] or [`Function::variables`] as [`SymbolRef`] says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VarId(pub u32);

/// Index of a function in [`Module::functions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FuncId(pub u32);

macro_rules! index_impl {
    ($($name:ident),*) => {$(
        impl $name {
            /// The index as `usize`.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}
index_impl!(RegId, VarId, FuncId);

/// The PTX ISA version of `.version`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Before the dot.
    pub major: u16,
    /// After the dot.
    pub minor: u16,
}

/// What `.target` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Compute capability times ten: 75 for `sm_75`, 90 for `sm_90a`.
    pub sm: u32,
    /// The whole list as written, such as `sm_90a, texmode_independent`.
    pub spelling: String,
}

/// A parsed and validated PTX module.
#[derive(Debug, Clone)]
pub struct Module {
    /// The PTX text that was parsed; spans point into it.
    pub source: Arc<str>,
    /// `.version`.
    pub version: Version,
    /// `.target`.
    pub target: Target,
    /// `.address_size` in bits: 64 (32 is refused as unsupported).
    pub address_bits: u32,
    /// Paths of the `.file` directives that a `.loc` may name, in order of appearance.
    pub files: Vec<String>,
    /// Module-scope variables.
    pub variables: Vec<Variable>,
    /// Functions and entries, a declaration and its definition being one.
    pub functions: Vec<Function>,
}

impl Module {
    /// The entry called `name`, if there is one.
    pub fn entry(&self, name: &str) -> Option<(FuncId, &Function)> {
        let i = self.functions.iter().position(|f| f.kind == FunctionKind::Entry && f.name == name)?;
        Some((FuncId(i as u32), &self.functions[i]))
    }

    /// The text under `span`; empty if the span is not one of this module's.
    pub fn text(&self, span: Span) -> &str {
        self.source.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    /// The opcode of `instr` with all its modifiers as written, such as `ld.global.f32`.
    pub fn spelling(&self, instr: &Instr) -> &str {
        self.text(instr.spelling)
    }

    /// Line and column of a span, both from 1, the column in bytes.
    pub fn line_col(&self, span: Span) -> (u32, u32) {
        span.line_col(&self.source)
    }
}

/// Linkage directive before a variable or function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Linkage {
    /// None written: visible in this module only.
    Internal,
    /// `.visible`.
    Visible,
    /// `.weak`.
    Weak,
    /// `.extern`.
    Extern,
    /// `.common`.
    Common,
}

/// What a symbol name refers to, seen from within one function (or a module-scope initialiser,
/// where only `Module` and `Function` occur).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SymbolRef {
    /// A variable of [`Module::variables`].
    Module(VarId),
    /// A variable of this function's [`Function::variables`].
    Local(VarId),
    /// An index into this function's [`Function::params`].
    Param(u32),
    /// An index into this function's [`Function::returns`].
    Return(u32),
    /// A function, taken as an address or called.
    Function(FuncId),
}

/// An address in an initialiser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relocation {
    /// Where in the variable the address is stored, in bytes.
    pub offset_bytes: u64,
    /// Size of the stored address in bytes: always 8.
    pub size_bytes: u64,
    /// What it points at.
    pub symbol: SymbolRef,
    /// Added to the symbol's address.
    pub addend: i64,
    /// True for `generic(symbol)`: the generic address, not the one within the symbol's space.
    pub generic: bool,
}

/// A variable in `.global`, `.const`, `.shared`, `.local` or (call sequences) `.param` space.
#[derive(Debug, Clone)]
pub struct Variable {
    /// Name as written.
    pub name: String,
    /// Linkage.
    pub linkage: Linkage,
    /// State space.
    pub space: Space,
    /// Element type.
    pub ty: Ty,
    /// Alignment in bytes: as written, else the size of the (vector) element.
    pub align: u64,
    /// Size in bytes; 0 for an unsized extern array (dynamic shared memory, or defined elsewhere).
    pub size_bytes: u64,
    /// True if declared `name[]` and extern.
    pub is_unsized: bool,
    /// Initial bytes, little-endian, at most `size_bytes`; the rest is zero. Relocated places are 0.
    pub init: Vec<u8>,
    /// True if an initialiser was written.
    pub has_init: bool,
    /// Addresses to be stored over `init`.
    pub relocations: Vec<Relocation>,
    /// True for `.extern`.
    pub is_extern: bool,
    /// The declaration's name.
    pub span: Span,
}

/// A function's role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FunctionKind {
    /// `.entry`: a kernel.
    Entry,
    /// `.func`: callable from the device.
    Device,
}

/// A formal parameter or return value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// Name as written; empty or `_` in prototypes.
    pub name: String,
    /// Element type.
    pub ty: Ty,
    /// Size in bytes (of the whole array).
    pub size_bytes: u64,
    /// Alignment in bytes.
    pub align: u64,
    /// Offset in the parameter block, each parameter aligned to `align` after the one before.
    pub offset_bytes: u64,
    /// True if declared as an array (`name[16]`).
    pub is_array: bool,
    /// The register, where a `.func` declares it `.reg` and not `.param`.
    pub register: Option<RegId>,
    /// `.ptr` attribute: the space pointed at (`None` for generic) and the alignment promised.
    pub pointer: Option<PointerAttr>,
    /// The parameter's name in the text.
    pub span: Span,
}

/// The `.ptr` attribute of an entry's parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PointerAttr {
    /// Space pointed at; `None` is generic.
    pub space: Option<Space>,
    /// Promised alignment in bytes.
    pub align: u64,
}

/// A register that the function's code names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Register {
    /// Name as written; names may repeat where an inner scope shadows an outer one.
    pub name: String,
    /// Declared type.
    pub ty: Ty,
}

/// `.branchtargets` of a `brx.idx`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchTable {
    /// Its label.
    pub name: String,
    /// Instruction indices, all below the body's length.
    pub targets: Vec<u32>,
}

/// `.calltargets` of an indirect call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallTargets {
    /// Its label.
    pub name: String,
    /// The functions that may be called.
    pub functions: Vec<FuncId>,
}

/// `.callprototype` of an indirect call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prototype {
    /// Its label.
    pub name: String,
    /// Return values.
    pub returns: Vec<Param>,
    /// Parameters.
    pub params: Vec<Param>,
    /// `.noreturn`.
    pub noreturn: bool,
}

/// An entry or device function.
#[derive(Debug, Clone)]
pub struct Function {
    /// Name as written (mangled for C++).
    pub name: String,
    /// Linkage.
    pub linkage: Linkage,
    /// Entry or device function.
    pub kind: FunctionKind,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// Size of the parameter block in bytes: end of the last parameter.
    pub param_bytes: u64,
    /// Return values (device functions).
    pub returns: Vec<Param>,
    /// The registers named in the body; `RegId` indexes this.
    pub registers: Vec<Register>,
    /// Variables declared inside, in order, `.param` ones of call sequences among them.
    pub variables: Vec<Variable>,
    /// Instructions. Never empty if `has_body`; control never runs past the last one (where the
    /// text's body can fall off its end, a `ret` is appended).
    pub body: Vec<Instr>,
    /// False for a declaration without a definition (such as `vprintf`).
    pub has_body: bool,
    /// Tables of `brx.idx`.
    pub branch_tables: Vec<BranchTable>,
    /// Target lists of indirect calls.
    pub call_targets: Vec<CallTargets>,
    /// Prototypes of indirect calls.
    pub prototypes: Vec<Prototype>,
    /// Labels with the instruction index that they stand before, in order of the text.
    pub labels: Vec<(String, u32)>,
    /// `.maxntid`, missing dimensions 1.
    pub max_ntid: Option<[u64; 3]>,
    /// `.reqntid`, missing dimensions 1.
    pub req_ntid: Option<[u64; 3]>,
    /// `.minnctapersm`.
    pub min_nctapersm: Option<u64>,
    /// `.maxnreg`.
    pub max_nreg: Option<u64>,
    /// `.reqnctapercluster`, missing dimensions 1.
    pub req_nctapercluster: Option<[u64; 3]>,
    /// `.noreturn`.
    pub noreturn: bool,
    /// The name in the text (of the definition, where there is one).
    pub span: Span,
}

impl Function {
    /// The type that register `id` was declared with.
    ///
    /// Panics if `id` is not one of this function's.
    pub fn reg_ty(&self, id: RegId) -> Ty {
        self.registers[id.index()].ty
    }
}

/// `@%p` or `@!%p` before an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Guard {
    /// A `.pred` register.
    pub reg: RegId,
    /// True for `@!`.
    pub negated: bool,
}

/// A place in a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Site {
    /// Index into [`Module::files`].
    pub file: u32,
    /// Line, from 1 (0 where the compiler knew none).
    pub line: u32,
    /// Column as written.
    pub column: u32,
}

/// What the last `.loc` before an instruction said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Loc {
    /// Index into [`Module::files`].
    pub file: u32,
    /// Line, from 1 (0 where the compiler knew none).
    pub line: u32,
    /// Column as written.
    pub column: u32,
    /// Where the code was inlined, one level up; look up that site's own `.loc` for the next level.
    pub inlined_at: Option<Site>,
    /// The outermost of the sites of inlining: in the function that the programmer wrote.
    pub outermost: Option<Site>,
}

/// One instruction.
#[derive(Debug, Clone)]
pub struct Instr {
    /// Guard predicate.
    pub guard: Option<Guard>,
    /// Opcode.
    pub op: Op,
    /// Modifiers.
    pub mods: Mods,
    /// Types in the order written: `cvt.rn.f16.f32` has `F16`, `F32`; `mma` up to four.
    pub types: [Option<Ty>; 4],
    /// Operands in the order written; their number and kinds fit the opcode's row.
    ///
    /// `call` always has `[Vector(returns), target, Vector(args)]`, and after them a `Prototype`
    /// or `CallTargets` where one is written.
    pub operands: Vec<Operand>,
    /// From guard (or opcode) up to and with the semicolon.
    pub span: Span,
    /// The opcode with its modifiers.
    pub spelling: Span,
    /// Source position.
    pub loc: Option<Loc>,
    /// Of a load, the bytes that the program uses, as `.pragma "used_bytes_mask"` before it says: bit k for byte k.
    /// The compiler widened the load; the other bytes have no meaning in the source.
    pub used_bytes: Option<u32>,
}

impl Instr {
    /// The first type modifier (of the result, for opcodes with several).
    pub fn ty(&self) -> Option<Ty> {
        self.types[0]
    }

    /// The second type modifier: the source type of `cvt`, `set`, `slct`, ….
    pub fn src_ty(&self) -> Option<Ty> {
        self.types[1]
    }
}

/// A literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Imm {
    /// An integer as 64 two's-complement bits; narrower types take the low bits.
    Int(u64),
    /// `0f…`: the bits of a binary32.
    F32(u32),
    /// `0d…` or a decimal literal: the bits of a binary64.
    F64(u64),
}

impl Imm {
    /// The literal's bits as a value of type `ty`, in the low bits of the result.
    ///
    /// Integers are truncated to the width; a float literal is converted between binary32 and
    /// binary64 (round to nearest even) where `ty` is the other one. `None` where PTX has no such
    /// operand: a float literal for an integer type (bit types of the same width are fine), an
    /// integer for `.f32`/`.f64`. For `.pred`, zero is 0 and anything else 1.
    pub fn bits_for(self, ty: Ty) -> Option<u64> {
        match self {
            Imm::Int(v) => match ty {
                Ty::F32 | Ty::F64 => None,
                Ty::Pred => Some(u64::from(v != 0)),
                _ => match ty.size_bytes() {
                    1 => Some(v & 0xff),
                    2 => Some(v & 0xffff),
                    4 => Some(v & 0xffff_ffff),
                    8 | 16 => Some(v),
                    _ => None,
                },
            },
            Imm::F32(bits) => match ty {
                Ty::F32 | Ty::B32 => Some(u64::from(bits)),
                Ty::F64 => Some(f64::from(f32::from_bits(bits)).to_bits()),
                _ => None,
            },
            Imm::F64(bits) => match ty {
                Ty::F64 | Ty::B64 => Some(bits),
                Ty::F32 => Some(u64::from((f64::from_bits(bits) as f32).to_bits())),
                _ => None,
            },
        }
    }
}

/// Where an address starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Base {
    /// `[%rd1+4]`.
    Reg(RegId),
    /// `[name+4]`.
    Symbol(SymbolRef),
    /// `[4096]`.
    Absolute,
}

/// An operand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operand {
    /// A register.
    Reg(RegId),
    /// `!%p`, a negated predicate source.
    NotReg(RegId),
    /// A literal (`WARP_SZ` is `Imm::Int(32)`).
    Imm(Imm),
    /// A predefined read-only register.
    Special(Special),
    /// `_`, a result that is not wanted (or an unused vector element).
    Sink,
    /// `d|p`: two results; `None` where `_` is written.
    Pair(Option<RegId>, Option<RegId>),
    /// `[base+offset]`, in bytes.
    Address {
        /// Where it starts.
        base: Base,
        /// Bytes added.
        offset: i64,
    },
    /// A symbol's address (or a function, as a call target), plus bytes.
    Symbol {
        /// What is named.
        symbol: SymbolRef,
        /// Bytes added.
        offset: i64,
    },
    /// `{a, b, …}`: elements are `Reg`, `Imm`, `Special` or `Sink`; for a `call`'s lists also
    /// `Symbol`, and possibly empty.
    Vector(Vec<Operand>),
    /// A branch target: an instruction index below the body's length.
    Label(u32),
    /// Index into [`Function::branch_tables`].
    BranchTable(u32),
    /// Index into [`Function::call_targets`].
    CallTargets(u32),
    /// Index into [`Function::prototypes`].
    Prototype(u32),
}

macro_rules! special {
    ($($(#[$meta:meta])* $name:ident $text:literal $ty:ident,)*) => {
        /// Predefined special registers. Source: PTX ISA, "Special Registers".
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Special {
            $(#[doc = concat!("`", $text, "`.")] $(#[$meta])* $name,)*
        }

        impl Special {
            /// All of them.
            pub const ALL: &'static [Special] = &[$(Special::$name,)*];

            /// As written in PTX.
            pub fn name(self) -> &'static str {
                match self { $(Special::$name => $text,)* }
            }

            /// The register's type.
            pub fn ty(self) -> Ty {
                match self { $(Special::$name => Ty::$ty,)* }
            }

            /// The register written `text`, such as `%tid.x`.
            pub fn from_name(text: &str) -> Option<Special> {
                match text { $($text => Some(Special::$name),)* _ => None }
            }
        }
    };
}

special! {
    TidX "%tid.x" U32, TidY "%tid.y" U32, TidZ "%tid.z" U32,
    NtidX "%ntid.x" U32, NtidY "%ntid.y" U32, NtidZ "%ntid.z" U32,
    CtaidX "%ctaid.x" U32, CtaidY "%ctaid.y" U32, CtaidZ "%ctaid.z" U32,
    NctaidX "%nctaid.x" U32, NctaidY "%nctaid.y" U32, NctaidZ "%nctaid.z" U32,
    ClusteridX "%clusterid.x" U32, ClusteridY "%clusterid.y" U32, ClusteridZ "%clusterid.z" U32,
    NclusteridX "%nclusterid.x" U32, NclusteridY "%nclusterid.y" U32, NclusteridZ "%nclusterid.z" U32,
    ClusterCtaidX "%cluster_ctaid.x" U32, ClusterCtaidY "%cluster_ctaid.y" U32,
    ClusterCtaidZ "%cluster_ctaid.z" U32,
    ClusterNctaidX "%cluster_nctaid.x" U32, ClusterNctaidY "%cluster_nctaid.y" U32,
    ClusterNctaidZ "%cluster_nctaid.z" U32,
    ClusterCtarank "%cluster_ctarank" U32, ClusterNctarank "%cluster_nctarank" U32,
    IsExplicitCluster "%is_explicit_cluster" Pred,
    Laneid "%laneid" U32, Warpid "%warpid" U32, Nwarpid "%nwarpid" U32,
    Smid "%smid" U32, Nsmid "%nsmid" U32, Gridid "%gridid" U64,
    LanemaskEq "%lanemask_eq" U32, LanemaskLe "%lanemask_le" U32, LanemaskLt "%lanemask_lt" U32,
    LanemaskGe "%lanemask_ge" U32, LanemaskGt "%lanemask_gt" U32,
    Clock "%clock" U32, ClockHi "%clock_hi" U32, Clock64 "%clock64" U64,
    Globaltimer "%globaltimer" U64, GlobaltimerLo "%globaltimer_lo" U32, GlobaltimerHi "%globaltimer_hi" U32,
    DynamicSmemSize "%dynamic_smem_size" U32, TotalSmemSize "%total_smem_size" U32,
    AggrSmemSize "%aggr_smem_size" U32,
    ReservedSmemOffsetBegin "%reserved_smem_offset_begin" B32,
    ReservedSmemOffsetEnd "%reserved_smem_offset_end" B32,
    ReservedSmemOffsetCap "%reserved_smem_offset_cap" B32,
    ReservedSmemOffset0 "%reserved_smem_offset_0" B32, ReservedSmemOffset1 "%reserved_smem_offset_1" B32,
    CurrentGraphExec "%current_graph_exec" U64,
    // The two that cooperative groups read for a grid-wide barrier.
    Envreg1 "%envreg1" B32, Envreg2 "%envreg2" B32,
}
