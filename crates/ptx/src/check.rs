//! Operands against the form of their instruction.
//!
//! Register types follow the PTX manual's "Operand Type Checking": sizes are equal and bit types
//! agree with everything, signed with unsigned, floats only with themselves; `ld`, `st` and `cvt`
//! may have wider registers.

use crate::forms::{Form, Slot, SlotKind, SlotTy};
use crate::isa::Op;
use crate::mods::{Fragment, Mods, Shape, Space, Ty};
use crate::module::{Base, Function, FunctionKind, Imm, Instr, Operand, Param, RegId, SymbolRef, Variable};

/// An instruction and what its operands refer to.
pub(crate) struct Operands<'b> {
    pub op: Op,
    pub mods: &'b Mods,
    pub types: &'b [Option<Ty>; 4],
    pub form: &'b Form,
    pub operands: &'b [Operand],
    pub function: &'b Function,
    pub variables: &'b [Variable],
}

/// Why operands do not fit.
pub(crate) enum Fault {
    Invalid { operand: Option<usize>, what: String },
    Unsupported(&'static str),
}

type Check = Result<(), String>;

/// Checks the operands of one instruction; labels and call signatures come later, see [`call`].
pub(crate) fn operands(o: &Operands<'_>) -> Result<(), Fault> {
    let mut list = o.operands;
    if o.mods.cache_hint {
        // The policy operand is last, whatever the form.
        let policy = list.split_last();
        let Some((Operand::Reg(id), rest)) = policy else {
            return Err(Fault::Invalid {
                operand: None,
                what: "a 64-bit cache policy must come last".into(),
            });
        };
        if o.function.reg_ty(*id).bits() != 64 {
            let what = "the cache policy is a 64-bit register".into();
            return Err(Fault::Invalid { operand: Some(rest.len()), what });
        }
        list = rest;
    }
    if o.mods.vector > 1
        && let Some(ty) = o.types[0]
        && u64::from(o.mods.vector) * ty.size_bytes() > 16
    {
        return Err(Fault::Unsupported("(more than 16 bytes)"));
    }
    if o.op == Op::Mov {
        return mov(o);
    }
    if o.op == Op::Call {
        return Ok(());
    }
    let fitting = o.form.shapes.iter().filter(|s| s.len() == list.len());
    let mut first = None;
    for shape in fitting {
        match slots(o, shape, list) {
            Ok(()) => return Ok(()),
            Err(fault) => {
                first.get_or_insert(fault);
            }
        }
    }
    Err(first.unwrap_or_else(|| {
        let counts: Vec<String> = o.form.shapes.iter().map(|s| s.len().to_string()).collect();
        let what = format!("{} operands, expected {}", list.len(), counts.join(" or "));
        Fault::Invalid { operand: None, what }
    }))
}

fn slots(o: &Operands<'_>, shape: &[Slot], list: &[Operand]) -> Result<(), Fault> {
    for (i, (slot, operand)) in shape.iter().zip(list).enumerate() {
        // `cp.async` reads from its second address.
        let space = if o.op == Op::CpAsync && i == 1 { o.mods.src_space } else { o.mods.space };
        one(o, *slot, operand, space).map_err(|fault| match fault {
            Fault::Invalid { operand: None, what } => Fault::Invalid { operand: Some(i), what },
            other => other,
        })?;
    }
    Ok(())
}

fn invalid(what: impl Into<String>) -> Fault {
    Fault::Invalid { operand: None, what: what.into() }
}

fn one(o: &Operands<'_>, slot: Slot, operand: &Operand, space: Option<Space>) -> Result<(), Fault> {
    let ty = match slot.ty {
        SlotTy::Nth(n) => o.types[usize::from(n)].unwrap_or(Ty::B32),
        SlotTy::Fixed(ty) => ty,
        SlotTy::Wide => match o.types[0] {
            Some(Ty::U16) => Ty::U32,
            Some(Ty::S16) => Ty::S32,
            Some(Ty::S32) => Ty::S64,
            _ => Ty::U64,
        },
    };
    let relaxed = slot.relaxed;
    let result: Check = match slot.kind {
        SlotKind::Dest => dest(o, operand, ty, relaxed),
        SlotKind::DestOrSink => match operand {
            Operand::Sink => Ok(()),
            _ => dest(o, operand, ty, relaxed),
        },
        SlotKind::DestPair => match operand {
            Operand::Pair(d, p) => {
                let d = d.map_or(Ok(()), |d| register(o, d, ty, false));
                d.and_then(|()| p.map_or(Ok(()), |p| register(o, p, Ty::Pred, false)))
            }
            _ => dest(o, operand, ty, relaxed),
        },
        SlotKind::PredPair => match operand {
            Operand::Pair(d, p) => {
                [d, p].into_iter().flatten().try_for_each(|r| register(o, *r, Ty::Pred, false))
            }
            _ => dest(o, operand, Ty::Pred, false),
        },
        SlotKind::Source => source(o, operand, ty, relaxed, false),
        SlotKind::SourceOrSymbol => source(o, operand, ty, relaxed, true),
        SlotKind::Register => dest(o, operand, ty, relaxed),
        SlotKind::Integer => match operand {
            Operand::Imm(Imm::Int(_)) => Ok(()),
            _ => Err(expected("an integer literal", operand)),
        },
        SlotKind::PredSource => match operand {
            Operand::Reg(id) | Operand::NotReg(id) => register(o, *id, Ty::Pred, false),
            _ => Err(expected("a predicate", operand)),
        },
        SlotKind::AddressRegister => match operand {
            Operand::Reg(id) => address_register(o, *id),
            _ => Err(expected("a register with an address", operand)),
        },
        SlotKind::Address => address(o, operand, space),
        SlotKind::VectorDest | SlotKind::VectorSource => {
            let read = slot.kind == SlotKind::VectorSource;
            vector(o, operand, usize::from(o.mods.vector), |e| match (read, e) {
                (true, _) => source(o, e, ty, relaxed, false),
                // An element that is not wanted.
                (false, Operand::Sink) if o.mods.vector > 1 => Ok(()),
                (false, _) => dest(o, e, ty, relaxed),
            })
        }
        SlotKind::MatrixDest | SlotKind::MatrixSource => {
            vector(o, operand, usize::from(o.mods.matrices), |e| dest(o, e, Ty::B32, false))
        }
        SlotKind::FragmentDest | SlotKind::FragmentSource => return fragment(o, slot, operand, ty),
        // Resolved at the end of the function.
        SlotKind::Label | SlotKind::Table => Ok(()),
        // Both have functions of their own.
        SlotKind::Mov | SlotKind::Call => Ok(()),
    };
    result.map_err(invalid)
}

fn expected(what: &str, operand: &Operand) -> String {
    let found = match operand {
        Operand::Reg(_) => "a register",
        Operand::NotReg(_) => "a negated predicate",
        Operand::Imm(_) => "a literal",
        Operand::Special(_) => "a special register",
        Operand::Sink => "`_`",
        Operand::Pair(..) => "a pair of registers",
        Operand::Address { .. } => "an address",
        Operand::Symbol { .. } => "a symbol",
        Operand::Vector(_) => "a vector",
        Operand::Label(_) | Operand::BranchTable(_) | Operand::CallTargets(_) | Operand::Prototype(_) => {
            "a label"
        }
    };
    format!("expected {what}, found {found}")
}

fn dotted(ty: Ty) -> String {
    format!(".{}", format!("{ty:?}").to_ascii_lowercase())
}

/// True if a register of type `reg` can be an operand of type `ty`.
fn agrees(reg: Ty, ty: Ty, relaxed: bool) -> bool {
    if reg == Ty::Pred || ty == Ty::Pred {
        return reg == ty;
    }
    let size_fits = if relaxed { reg.bits() >= ty.bits() } else { reg.bits() == ty.bits() };
    if !size_fits {
        return false;
    }
    match (container(reg), container(ty)) {
        (None, _) | (_, None) => true,
        (Some(true), Some(true)) => reg == ty || (reg == Ty::F32 && ty == Ty::Tf32),
        (Some(false), Some(false)) => true,
        (Some(true), Some(false)) | (Some(false), Some(true)) => false,
    }
}

/// Whether a type is a float (`true`), an integer (`false`) or just bits (`None`).
fn container(ty: Ty) -> Option<bool> {
    match ty {
        Ty::Pred | Ty::B1 | Ty::B8 | Ty::B16 | Ty::B32 | Ty::B64 | Ty::B128 => None,
        Ty::U4 | Ty::S4 | Ty::U8 | Ty::S8 | Ty::U16 | Ty::S16 | Ty::U32 | Ty::S32 => Some(false),
        Ty::U64 | Ty::S64 | Ty::U16x2 | Ty::S16x2 => Some(false),
        Ty::F16 | Ty::F16x2 | Ty::Bf16 | Ty::Bf16x2 | Ty::Tf32 | Ty::F32 | Ty::F32x2 | Ty::F64 => Some(true),
        Ty::E4m3 | Ty::E5m2 | Ty::E4m3x2 | Ty::E5m2x2 => Some(true),
    }
}

fn register(o: &Operands<'_>, id: RegId, ty: Ty, relaxed: bool) -> Check {
    let reg = &o.function.registers[id.index()];
    if agrees(reg.ty, ty, relaxed) {
        return Ok(());
    }
    Err(format!("register `{}` is {}, the operand {}", reg.name, dotted(reg.ty), dotted(ty)))
}

fn dest(o: &Operands<'_>, operand: &Operand, ty: Ty, relaxed: bool) -> Check {
    match operand {
        Operand::Reg(id) => register(o, *id, ty, relaxed),
        _ => Err(expected("a register", operand)),
    }
}

fn source(o: &Operands<'_>, operand: &Operand, ty: Ty, relaxed: bool, symbols: bool) -> Check {
    match operand {
        Operand::Reg(id) => register(o, *id, ty, relaxed),
        Operand::Imm(value) => match value.bits_for(ty) {
            Some(_) => Ok(()),
            None => Err(format!("the literal does not fit type {}", dotted(ty))),
        },
        Operand::Special(s) => {
            // 64-bit special registers may be read as 32 bits and the reverse (PTX ISA, "%gridid").
            let fits = match (s.ty(), ty) {
                (Ty::Pred, _) | (_, Ty::Pred) => s.ty() == ty,
                (_, _) => !ty.is_float() && ty.bits() >= 16,
            };
            if fits { Ok(()) } else { Err(format!("`{}` cannot be read as {}", s.name(), dotted(ty))) }
        }
        Operand::Symbol { symbol, .. } if symbols => {
            let narrow_ok = match space_of(o, *symbol) {
                Some(Space::Shared | Space::Local | Space::Const | Space::Param) => true,
                Some(Space::Global) | None => false,
            };
            let fits = !ty.is_float() && (ty.bits() == 64 || (ty.bits() == 32 && narrow_ok));
            if fits { Ok(()) } else { Err(format!("an address does not fit type {}", dotted(ty))) }
        }
        _ => Err(expected("a register or literal", operand)),
    }
}

/// The space that a symbol lives in; `None` for functions.
fn space_of(o: &Operands<'_>, symbol: SymbolRef) -> Option<Space> {
    match symbol {
        SymbolRef::Module(id) => o.variables.get(id.index()).map(|v| v.space),
        SymbolRef::Local(id) => o.function.variables.get(id.index()).map(|v| v.space),
        SymbolRef::Param(_) | SymbolRef::Return(_) => Some(Space::Param),
        SymbolRef::Function(_) => None,
    }
}

fn address_register(o: &Operands<'_>, id: RegId) -> Check {
    let reg = &o.function.registers[id.index()];
    match reg.ty {
        Ty::B32 | Ty::U32 | Ty::S32 | Ty::B64 | Ty::U64 | Ty::S64 => Ok(()),
        _ => Err(format!("register `{}` is {}, which cannot hold an address", reg.name, dotted(reg.ty))),
    }
}

fn address(o: &Operands<'_>, operand: &Operand, space: Option<Space>) -> Check {
    let Operand::Address { base, .. } = operand else { return Err(expected("an address", operand)) };
    match base {
        Base::Reg(id) => address_register(o, *id),
        Base::Absolute => Ok(()),
        Base::Symbol(symbol) => {
            let Some(home) = space_of(o, *symbol) else {
                return Err("a function is not memory".into());
            };
            if let Some(space) = space
                && space != home
            {
                return Err(format!("the symbol is in .{home} space, the access in .{space}"));
            }
            let kernel_param =
                matches!(symbol, SymbolRef::Param(_)) && o.function.kind == FunctionKind::Entry;
            if kernel_param && o.op == Op::St {
                return Err("a kernel's parameters cannot be written".into());
            }
            Ok(())
        }
    }
}

/// A vector of `len` elements, or for `len` 1 the element alone (with or without braces).
fn vector(o: &Operands<'_>, operand: &Operand, len: usize, mut each: impl FnMut(&Operand) -> Check) -> Check {
    match operand {
        Operand::Vector(list) if list.len() == len && (len > 1 || o.op != Op::Ld && o.op != Op::St) => {
            list.iter().try_for_each(each)
        }
        Operand::Vector(list) => Err(format!("a vector of {} elements, expected {len}", list.len())),
        _ if len == 1 => each(operand),
        _ => Err(expected(&format!("a vector of {len} elements"), operand)),
    }
}

/// A matrix fragment: so many registers for its shape and type.
fn fragment(o: &Operands<'_>, slot: Slot, operand: &Operand, ty: Ty) -> Result<(), Fault> {
    let Some(shape) = o.mods.shape else { return Err(Fault::Unsupported("")) };
    let which = match o.op {
        Op::WmmaLoad | Op::WmmaStore => o.mods.fragment.unwrap_or(Fragment::D),
        _ => {
            // `mma d, a, b, c`: told apart by position, which the caller adds; by type they are
            // found through the slot.
            match (slot.kind, slot.ty) {
                (SlotKind::FragmentDest, _) => Fragment::D,
                (_, SlotTy::Nth(1)) if o.types[2].is_some() => Fragment::A,
                (_, SlotTy::Nth(2)) => Fragment::B,
                // f16 `wmma.mma`: a and b have the same number of registers.
                (_, SlotTy::Fixed(_)) => Fragment::A,
                (_, _) => Fragment::C,
            }
        }
    };
    let wmma = matches!(o.op, Op::WmmaLoad | Op::WmmaMma | Op::WmmaStore);
    let len = fragment_registers(shape, ty, which, wmma);
    let reg_ty = match ty {
        Ty::F64 => Ty::F64,
        Ty::F32 => Ty::F32,
        _ => Ty::B32,
    };
    let Operand::Vector(list) = operand else {
        if len == 1 {
            return dest(o, operand, reg_ty, false).map_err(invalid);
        }
        return Err(invalid(expected(&format!("a fragment of {len} registers"), operand)));
    };
    if list.len() as u64 != len {
        return Err(invalid(format!("a fragment of {} registers, expected {len}", list.len())));
    }
    list.iter().try_for_each(|e| dest(o, e, reg_ty, false)).map_err(invalid)
}

/// Registers per thread of a fragment. Source: PTX ISA, "Matrix Fragments" of `wmma` and `mma`.
pub(crate) fn fragment_registers(shape: Shape, ty: Ty, which: Fragment, wmma: bool) -> u64 {
    let (m, n, k) = (u64::from(shape.m), u64::from(shape.n), u64::from(shape.k));
    let elements = match which {
        Fragment::A => m * k,
        Fragment::B => n * k,
        Fragment::C | Fragment::D => m * n,
    };
    let input = matches!(which, Fragment::A | Fragment::B);
    match ty {
        // Every f16 input element is held by two threads, whatever the shape.
        Ty::F16 if wmma && input => 8,
        // Eight quads of threads, each with a whole matrix of 8 x 4.
        Ty::F16 if k == 4 && input => 2,
        Ty::F16 if k == 4 => 4,
        Ty::F32 if k == 4 && m == 8 => 8,
        Ty::F64 => elements / 32,
        _ => (elements * ty.bits() / 32 / 32).max(1),
    }
}

/// `mov`: plain, a symbol's address, packing and unpacking.
fn mov(o: &Operands<'_>) -> Result<(), Fault> {
    let ty = o.types[0].unwrap_or(Ty::B32);
    let [d, a] = o.operands else {
        return Err(invalid(format!("{} operands, expected 2", o.operands.len())));
    };
    let at = |i: usize| move |what: String| Fault::Invalid { operand: Some(i), what };
    match (d, a) {
        (Operand::Vector(_), Operand::Vector(_)) => {
            Err(Fault::Invalid { operand: Some(1), what: "only one side may be a vector".into() })
        }
        (Operand::Vector(list), _) => {
            let element = packed(ty, list.len()).map_err(at(0))?;
            let each = |e: &Operand| match e {
                Operand::Sink => Ok(()),
                _ => dest(o, e, element, false),
            };
            list.iter().try_for_each(each).map_err(at(0))?;
            source(o, a, ty, false, false).map_err(at(1))
        }
        (_, Operand::Vector(list)) => {
            let element = packed(ty, list.len()).map_err(at(1))?;
            list.iter().try_for_each(|e| source(o, e, element, false, false)).map_err(at(1))?;
            dest(o, d, ty, false).map_err(at(0))
        }
        (_, _) => {
            dest(o, d, ty, false).map_err(at(0))?;
            source(o, a, ty, false, true).map_err(at(1))
        }
    }
}

/// The type of one of `len` elements packed into `ty`.
fn packed(ty: Ty, len: usize) -> Result<Ty, String> {
    match (ty, len) {
        (Ty::B16, 2) | (Ty::B32, 4) => Ok(Ty::B8),
        (Ty::B32, 2) | (Ty::B64, 4) => Ok(Ty::B16),
        (Ty::B64, 2) | (Ty::B128, 4) => Ok(Ty::B32),
        (Ty::B128, 2) => Ok(Ty::B64),
        (_, _) => Err(format!("{len} elements do not pack into {}", dotted(ty))),
    }
}

/// Checks a call against its target's signature; anything else passes.
pub(crate) fn call(instr: &Instr, function: &Function, functions: &[Function]) -> Check {
    if instr.op != Op::Call {
        return Ok(());
    }
    let [Operand::Vector(returns), target, Operand::Vector(args), signature @ ..] = instr.operands.as_slice()
    else {
        return Err("malformed call".into());
    };
    let (want_returns, want_params) = match (target, signature) {
        (Operand::Symbol { symbol: SymbolRef::Function(id), offset: 0 }, _) => {
            let Some(f) = functions.get(id.index()) else { return Err("unknown function".into()) };
            if f.kind == FunctionKind::Entry {
                return Err(format!("`{}` is a kernel and cannot be called", f.name));
            }
            (&f.returns, &f.params)
        }
        (Operand::Reg(id), signature) => {
            if function.reg_ty(*id).bits() != 64 {
                return Err("an indirect call needs a 64-bit register".into());
            }
            match signature {
                [Operand::Prototype(i)] => {
                    let p = &function.prototypes[*i as usize];
                    (&p.returns, &p.params)
                }
                [Operand::CallTargets(i)] => {
                    let first = function.call_targets[*i as usize].functions.first();
                    let Some(f) = first.and_then(|id| functions.get(id.index())) else {
                        return Err("`.calltargets` is empty".into());
                    };
                    (&f.returns, &f.params)
                }
                _ => return Err("an indirect call needs a `.callprototype` or `.calltargets`".into()),
            }
        }
        (other, _) => return Err(expected("a function or a register", other)),
    };
    list(function, returns, want_returns, "return values", true)?;
    list(function, args, want_params, "arguments", false)
}

fn list(function: &Function, got: &[Operand], want: &[Param], what: &str, written: bool) -> Check {
    if got.len() != want.len() {
        return Err(format!("{} {what}, the function has {}", got.len(), want.len()));
    }
    for (i, (operand, param)) in got.iter().zip(want).enumerate() {
        let fits = match operand {
            Operand::Symbol { symbol, offset: 0 } => {
                let size = match symbol {
                    SymbolRef::Local(id) => {
                        let v = &function.variables[id.index()];
                        Some(v.size_bytes).filter(|_| v.space == Space::Param)
                    }
                    SymbolRef::Param(i) if !written => Some(function.params[*i as usize].size_bytes),
                    SymbolRef::Return(i) => Some(function.returns[*i as usize].size_bytes),
                    SymbolRef::Param(_) | SymbolRef::Module(_) | SymbolRef::Function(_) => None,
                };
                param.register.is_none() && size == Some(param.size_bytes)
            }
            Operand::Reg(id) => !param.is_array && agrees(function.reg_ty(*id), param.ty, true),
            Operand::Imm(v) => !written && !param.is_array && v.bits_for(param.ty).is_some(),
            Operand::Sink => written,
            _ => false,
        };
        if !fits {
            return Err(format!("{what}: number {} does not fit the function's", i + 1));
        }
    }
    Ok(())
}
