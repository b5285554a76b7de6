//! From a parsed module to code: which functions a kernel reaches, where its variables lie, and each
//! instruction's handler.

mod control;
mod function;
mod fuse;
mod lift;
mod matrix;
mod memory;
mod operands;

pub(crate) use function::PARAM_WINDOW;

use std::collections::BTreeMap;
use std::sync::Arc;

use assay_ptx::{FuncId, Function, FunctionKind, Instr, Module, Op, Operand, Space, SymbolRef, VarId};

use crate::code::{EntryParam, Kernel};
use crate::cpu::Variant;
use crate::error::LoadError;
use crate::memory::{FIRST_REGION, OFFSET_BITS};

/// Functions without a body that the device provides.
pub(crate) const BUILTINS: [&str; 2] = ["vprintf", "__assertfail"];

/// Largest frame of registers and largest local memory of one function.
const MAX_LOCAL_BYTES: u64 = 1 << 24;

/// A module-scope variable in global or constant memory.
#[derive(Clone, Debug)]
pub(crate) struct ModuleVariable {
    pub(crate) name: String,
    pub(crate) constant: bool,
    pub(crate) size_bytes: u64,
    pub(crate) init: Vec<u8>,
    /// Offset, size and value of addresses in the initialiser.
    pub(crate) patches: Vec<(u64, u64, u64)>,
    /// Declared elsewhere: has no memory here.
    pub(crate) is_extern: bool,
}

/// Addresses of module variables: variable number to place in the session's list of regions.
pub(crate) fn variable_regions(m: &Module) -> Vec<Option<u64>> {
    let mut next = FIRST_REGION;
    m.variables
        .iter()
        .map(|v| {
            let has = matches!(v.space, Space::Global | Space::Const);
            has.then(|| {
                next += 1;
                next - 1
            })
        })
        .collect()
}

/// The module's variables in global and constant memory, in the order of their regions.
pub(crate) fn module_variables(m: &Module) -> Vec<ModuleVariable> {
    let regions = variable_regions(m);
    m.variables
        .iter()
        .filter(|v| matches!(v.space, Space::Global | Space::Const))
        .map(|v| ModuleVariable {
            name: v.name.clone(),
            constant: v.space == Space::Const,
            size_bytes: v.size_bytes,
            init: v.init.clone(),
            patches: v
                .relocations
                .iter()
                .filter_map(|r| {
                    let base = match r.symbol {
                        SymbolRef::Module(id) => regions.get(id.index()).copied().flatten()? << OFFSET_BITS,
                        SymbolRef::Function(id) => crate::memory::FUNCTION_WINDOW + u64::from(id.0),
                        SymbolRef::Local(_) | SymbolRef::Param(_) | SymbolRef::Return(_) => return None,
                    };
                    Some((r.offset_bytes, r.size_bytes, base.wrapping_add(r.addend as u64)))
                })
                .collect(),
            is_extern: v.is_extern && v.size_bytes == 0,
        })
        .collect()
}

/// Everything about a kernel that its functions' decoders share.
pub(crate) struct Context<'m> {
    pub(crate) module: &'m Module,
    pub(crate) variant: Variant,
    pub(crate) regions: Vec<Option<u64>>,
    /// Offsets of shared variables: of the module, and of functions by (function, variable).
    pub(crate) shared_module: BTreeMap<u32, u64>,
    pub(crate) shared_local: BTreeMap<(u32, u32), u64>,
    /// Function number to code number.
    pub(crate) by_function: Vec<Option<u32>>,
}

/// An error at an instruction.
pub(crate) fn unsupported(m: &Module, i: &Instr, what: Option<&str>) -> LoadError {
    let spelling = match what {
        Some(w) => format!("{} {w}", m.spelling(i)),
        None => m.spelling(i).to_owned(),
    };
    LoadError::Unsupported {
        spelling,
        line: m.line_col(i.span).0,
        source_line: i.loc.map(|l| l.line).filter(|l| *l > 0),
    }
}

pub(crate) fn invalid(m: &Module, i: &Instr, what: impl Into<String>) -> LoadError {
    LoadError::Invalid { what: what.into(), line: m.line_col(i.span).0 }
}

fn symbols(o: &Operand, f: &mut impl FnMut(SymbolRef)) {
    match o {
        Operand::Symbol { symbol, .. } => f(*symbol),
        Operand::Address { base: assay_ptx::Base::Symbol(symbol), .. } => f(*symbol),
        Operand::Vector(list) => list.iter().for_each(|o| symbols(o, f)),
        _ => {}
    }
}

/// Decodes one entry.
///
/// # Errors
/// [`LoadError`] at the first instruction that cannot run.
pub(crate) fn kernel(m: &Module, entry: FuncId, variant: Variant) -> Result<Kernel, LoadError> {
    let mut by_function: Vec<Option<u32>> = vec![None; m.functions.len()];
    let mut order = vec![entry];
    by_function[entry.index()] = Some(0);
    let mut shared_used: Vec<VarId> = Vec::new();
    let mut touches_variables = false;
    let mut at = 0;
    while at < order.len() {
        let f = &m.functions[order[at].index()];
        at += 1;
        for i in &f.body {
            let mut reach = |id: FuncId| {
                let g = &m.functions[id.index()];
                if g.kind == FunctionKind::Device && g.has_body && by_function[id.index()].is_none() {
                    by_function[id.index()] = Some(order.len() as u32);
                    order.push(id);
                }
            };
            for o in &i.operands {
                symbols(o, &mut |s| match s {
                    SymbolRef::Function(id) => reach(id),
                    SymbolRef::Module(id)
                        if m.variables[id.index()].space == Space::Shared && !shared_used.contains(&id) =>
                    {
                        shared_used.push(id);
                    }
                    SymbolRef::Module(id) => {
                        touches_variables |= m.variables[id.index()].space != Space::Shared
                    }
                    _ => {}
                });
                if let Operand::CallTargets(t) = o {
                    f.call_targets[*t as usize].functions.iter().for_each(|id| reach(*id));
                }
            }
            // The targets of an indirect call may come from a table in memory.
            if i.op == Op::Call && matches!(i.operands.get(1), Some(Operand::Reg(_))) {
                touches_variables = true;
                for v in &m.variables {
                    for r in &v.relocations {
                        if let SymbolRef::Function(id) = r.symbol {
                            reach(id);
                        }
                    }
                }
            }
        }
    }
    shared_used.sort();
    let mut layout = SharedLayout::default();
    let mut cx = Context {
        module: m,
        variant,
        regions: variable_regions(m),
        shared_module: BTreeMap::new(),
        shared_local: BTreeMap::new(),
        by_function,
    };
    let mut dynamic: Vec<(Option<u32>, u32)> = Vec::new();
    for id in &shared_used {
        let v = &m.variables[id.index()];
        if v.is_unsized {
            dynamic.push((None, id.0));
            layout.dynamic_align = layout.dynamic_align.max(v.align);
        } else {
            cx.shared_module.insert(id.0, layout.add(&v.name, v.align, v.size_bytes));
        }
    }
    for id in &order {
        for (k, v) in m.functions[id.index()].variables.iter().enumerate() {
            if v.space != Space::Shared {
                continue;
            }
            if v.is_unsized {
                dynamic.push((Some(id.0), k as u32));
                layout.dynamic_align = layout.dynamic_align.max(v.align);
            } else {
                let offset = layout.add(&v.name, v.align, v.size_bytes);
                cx.shared_local.insert((id.0, k as u32), offset);
            }
        }
    }
    let align = layout.dynamic_align.max(1);
    let base = layout.end.checked_next_multiple_of(align).unwrap_or(u64::MAX);
    for (function, k) in dynamic {
        match function {
            None => cx.shared_module.insert(k, base),
            Some(f) => cx.shared_local.insert((f, k), base),
        };
    }
    let mut codes = Vec::new();
    let mut sites = 0u32;
    for id in &order {
        let mut code = function::decode(&cx, *id)?;
        code.first_site = sites;
        sites = sites.saturating_add(code.plain.len() as u32);
        codes.push(code);
    }
    let f = &m.functions[entry.index()];
    Ok(Kernel {
        name: f.name.clone(),
        codes,
        by_function: cx.by_function,
        params: f.params.iter().map(|p| EntryParam { offset: p.offset_bytes, size: p.size_bytes }).collect(),
        param_bytes: f.param_bytes,
        shared_bytes: layout.end,
        dynamic_align: align,
        shared_names: layout.names,
        max_threads: f.max_ntid.map(|[x, y, z]| x.saturating_mul(y).saturating_mul(z)),
        req_block: f.req_ntid,
        files: Arc::new(m.files.clone()),
        touches_variables,
        jit: crate::jit::Cache::default(),
    })
}

/// Offsets of static shared variables, in order of declaration.
#[derive(Default)]
struct SharedLayout {
    end: u64,
    dynamic_align: u64,
    names: Vec<(String, u64, u64)>,
}

impl SharedLayout {
    fn add(&mut self, name: &str, align: u64, size: u64) -> u64 {
        let offset = self.end.checked_next_multiple_of(align.max(1)).unwrap_or(u64::MAX);
        self.end = offset.saturating_add(size);
        self.names.push((crate::findings::source_name(name), offset, size));
        offset
    }
}

/// Local memory of a function's frame: its `.local` variables, the `.param` variables of its calls, and (device
/// functions) its own parameters and results.
pub(crate) struct LocalFrame {
    pub(crate) variables: Vec<Option<u64>>,
    pub(crate) params: Vec<u64>,
    pub(crate) returns: Vec<u64>,
    pub(crate) bytes: u64,
}

/// Lays out a function's local memory; `None` if it is out of all proportion.
pub(crate) fn local_frame(f: &Function) -> Option<LocalFrame> {
    let mut end = 0u64;
    let mut place = |align: u64, size: u64| -> Option<u64> {
        let at = end.checked_next_multiple_of(align.clamp(1, 16))?;
        end = at.checked_add(size)?;
        (end <= MAX_LOCAL_BYTES).then_some(at)
    };
    let mut variables = Vec::new();
    for v in &f.variables {
        variables.push(match v.space {
            Space::Local | Space::Param => Some(place(v.align, v.size_bytes)?),
            Space::Const | Space::Global | Space::Shared => None,
        });
    }
    let (mut params, mut returns) = (Vec::new(), Vec::new());
    if f.kind == FunctionKind::Device {
        for p in &f.params {
            params.push(place(p.align, p.size_bytes)?);
        }
        for p in &f.returns {
            returns.push(place(p.align, p.size_bytes)?);
        }
    }
    Some(LocalFrame { variables, params, returns, bytes: end.next_multiple_of(16) })
}
