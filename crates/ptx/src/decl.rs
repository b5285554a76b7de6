//! Declarations: variables with initialisers, parameters.

use crate::error::PtxError;
use crate::forms::isa;
use crate::lexer::Kind;
use crate::mods::{Space, Ty};
use crate::module::{
    FunctionKind, Imm, Linkage, Param, PointerAttr, RegId, Register, Relocation, Span, SymbolRef, VarId,
    Variable,
};
use crate::parser::{Global, Parser};

type Result<T> = std::result::Result<T, PtxError>;

/// What stands between a space and a name: alignment, vector width, type.
struct Head {
    align: Option<u64>,
    vector: u64,
    ty: Ty,
    pointer: Option<PointerAttr>,
}

impl Head {
    /// Size of one (vector) element.
    fn element_bytes(&self) -> u64 {
        // At most 16 x 4.
        self.ty.size_bytes() * self.vector
    }
}

/// `offset` rounded up to a multiple of `align`, a power of two.
fn align_up(offset: u64, align: u64) -> Option<u64> {
    Some(offset.checked_add(align - 1)? & !(align - 1))
}

impl<'a> Parser<'a> {
    /// `.align N`, the directive being current.
    fn align(&mut self) -> Result<u64> {
        self.bump()?;
        let span = self.tok.span();
        let align = self.integer("an alignment")?;
        if !align.is_power_of_two() || align > 1 << 31 {
            return Err(self.invalid(span, format!("alignment {align} is not a power of two up to 2^31")));
        }
        Ok(align)
    }

    fn head(&mut self) -> Result<Head> {
        let mut align = None;
        let mut vector = 1;
        let mut ty = None;
        let mut pointer: Option<PointerAttr> = None;
        while self.tok.kind == Kind::Directive {
            let tok = self.tok;
            match tok.text {
                ".align" => {
                    let n = self.align()?;
                    match &mut pointer {
                        Some(p) => p.align = n,
                        None => align = Some(n),
                    }
                }
                ".v2" | ".v4" => {
                    self.bump()?;
                    vector = if tok.text == ".v2" { 2 } else { 4 };
                }
                ".ptr" => {
                    self.bump()?;
                    pointer = Some(PointerAttr { space: None, align: 1 });
                }
                ".global" | ".const" | ".shared" | ".local" if pointer.is_some() => {
                    self.bump()?;
                    let space = match tok.text {
                        ".global" => Space::Global,
                        ".const" => Space::Const,
                        ".shared" => Space::Shared,
                        _ => Space::Local,
                    };
                    pointer = pointer.map(|p| PointerAttr { space: Some(space), ..p });
                }
                ".attribute" => {
                    self.bump()?;
                    self.expect(b'(')?;
                    // `.managed` memory is global memory that the host sees too.
                    if !self.at_directive(".managed") {
                        return Err(self.unknown_directive());
                    }
                    self.bump()?;
                    self.expect(b')')?;
                }
                name => {
                    let Some(found) = isa().ty(&name[1..]) else {
                        return Err(self.unknown_directive());
                    };
                    if ty.replace(found).is_some() {
                        return Err(self.syntax(tok.span(), format!("a second type `{name}`")));
                    }
                    self.bump()?;
                }
            }
        }
        let ty = ty.ok_or_else(|| self.expected("a type"))?;
        Ok(Head { align, vector, ty, pointer })
    }

    /// Refuses types that a variable or parameter cannot have.
    fn memory_type(&self, ty: Ty, span: Span) -> Result<()> {
        match ty {
            Ty::Pred
            | Ty::B1
            | Ty::U4
            | Ty::S4
            | Ty::Tf32
            | Ty::E4m3
            | Ty::E5m2
            | Ty::E4m3x2
            | Ty::E5m2x2 => Err(self.invalid(span, format!("a variable cannot have type {ty:?}"))),
            Ty::U16x2
            | Ty::S16x2
            | Ty::F32x2
            | Ty::Bf16
            | Ty::Bf16x2
            | Ty::F16
            | Ty::F16x2
            | Ty::F32
            | Ty::F64 => Ok(()),
            Ty::B8 | Ty::B16 | Ty::B32 | Ty::B64 | Ty::B128 | Ty::U8 | Ty::S8 | Ty::U16 | Ty::S16 => Ok(()),
            Ty::U32 | Ty::S32 | Ty::U64 | Ty::S64 => Ok(()),
        }
    }

    /// `[n][m]…`; `None` for a first `[]`.
    fn dims(&mut self) -> Result<Vec<Option<u64>>> {
        let mut dims = Vec::new();
        while self.eat(b'[')? {
            if self.at(b']') && dims.is_empty() {
                dims.push(None);
            } else {
                dims.push(Some(self.integer("an array length")?));
            }
            self.expect(b']')?;
        }
        Ok(dims)
    }

    /// Product of the known dimensions and the element size.
    fn size_of(&self, span: Span, element_bytes: u64, dims: &[Option<u64>]) -> Result<u64> {
        dims.iter()
            .try_fold(element_bytes, |size, dim| size.checked_mul(dim.unwrap_or(0)))
            .ok_or_else(|| self.invalid(span, "the size overflows 64 bits".into()))
    }

    /// The declarations after a space directive, up to and with the semicolon. `local` is set in a
    /// function's body, where nothing may be left without a size.
    pub fn variable_list(
        &mut self,
        space: Space,
        linkage: Linkage,
        local: bool,
        out: &mut Vec<(&'a str, Variable)>,
    ) -> Result<()> {
        let head_span = self.tok.span();
        let head = self.head()?;
        self.memory_type(head.ty, head_span)?;
        loop {
            let name = self.ident("a variable name")?;
            let span = name.span();
            if self.at(b'<') {
                return Err(self.unsupported(span, &format!("{}<…> for variables", name.text)));
            }
            let mut dims = self.dims()?;
            let element_bytes = head.element_bytes();
            let mut variable = Variable {
                name: name.text.to_string(),
                linkage,
                space,
                ty: head.ty,
                align: head.align.unwrap_or(element_bytes),
                size_bytes: self.size_of(span, element_bytes, &dims)?,
                is_unsized: dims.first() == Some(&None),
                init: Vec::new(),
                has_init: false,
                relocations: Vec::new(),
                is_extern: linkage == Linkage::Extern,
                span,
            };
            if self.at(b'=') {
                let allowed = matches!(space, Space::Global | Space::Const) && linkage != Linkage::Extern;
                if !allowed {
                    let what = format!("`{}` cannot have an initialiser in this space", name.text);
                    return Err(self.invalid(self.tok.span(), what));
                }
                self.bump()?;
                self.initialiser(&mut variable, &head, &mut dims)?;
                variable.has_init = true;
            } else if variable.is_unsized && (local || linkage != Linkage::Extern) {
                return Err(self.invalid(span, format!("`{}` needs a size, being defined here", name.text)));
            }
            out.push((name.text, variable));
            if !self.eat(b',')? {
                break;
            }
        }
        self.expect(b';')?;
        Ok(())
    }

    /// `value` or `{…}`, nested as the dimensions are; rows cut short are filled with zeros.
    fn initialiser(
        &mut self,
        variable: &mut Variable,
        head: &Head,
        dims: &mut Vec<Option<u64>>,
    ) -> Result<()> {
        if head.vector > 1 {
            dims.push(Some(head.vector));
        }
        let element = head.ty.size_bytes();
        // strides[d]: elements of one entry of dimension d. No overflow: the size was checked, and
        // an unsized first dimension is not a factor.
        let mut strides = vec![1u64; dims.len()];
        for d in (1..dims.len()).rev() {
            let stride = strides[d].checked_mul(dims[d].unwrap_or(0));
            strides[d - 1] =
                stride.ok_or_else(|| self.invalid(variable.span, "the size overflows 64 bits".into()))?;
        }
        let total = if variable.is_unsized { None } else { Some(variable.size_bytes / element) };
        let mut pos = 0u64;
        let mut starts: Vec<u64> = Vec::new();
        loop {
            // A value or an opening brace.
            let span = self.tok.span();
            if self.at(b'{') {
                if starts.len() >= dims.len() {
                    return Err(self.invalid(span, "more braces than dimensions".into()));
                }
                self.bump()?;
                starts.push(pos);
                // `{}` is allowed and means zeros.
                if !self.at(b'}') {
                    continue;
                }
            } else {
                if starts.is_empty() && !dims.is_empty() && self.tok.kind != Kind::Str {
                    return Err(self.expected("`{`"));
                }
                if total.is_some_and(|t| pos >= t) {
                    return Err(self
                        .invalid(span, format!("more initialisers than `{}` has elements", variable.name)));
                }
                self.initial_value(variable, pos, element)?;
                pos += 1;
            }
            // Closing braces, then a comma or the end.
            while self.at(b'}') {
                let Some(start) = starts.pop() else { return Err(self.expected("`;`")) };
                let span = self.tok.span();
                let depth = starts.len();
                if let Some(len) = dims[depth] {
                    let end = strides[depth].checked_mul(len).and_then(|n| n.checked_add(start));
                    match end {
                        Some(end) if pos <= end => pos = end,
                        _ => {
                            return Err(
                                self.invalid(span, "more initialisers than the row has elements".into())
                            );
                        }
                    }
                }
                self.bump()?;
            }
            if starts.is_empty() {
                break;
            }
            self.expect(b',')?;
        }
        if variable.is_unsized {
            let rows = pos.div_ceil(strides[0].max(1));
            let size = rows.checked_mul(strides[0]).and_then(|n| n.checked_mul(element));
            variable.size_bytes =
                size.ok_or_else(|| self.invalid(variable.span, "the size overflows 64 bits".into()))?;
            variable.is_unsized = false;
        }
        Ok(())
    }

    /// One value, stored as element `pos`.
    fn initial_value(&mut self, variable: &mut Variable, pos: u64, element: u64) -> Result<()> {
        let span = self.tok.span();
        let offset = pos.checked_mul(element);
        let end = offset.and_then(|o| o.checked_add(element));
        let (Some(offset), Some(end)) = (offset, end) else {
            return Err(self.invalid(span, "the size overflows 64 bits".into()));
        };
        let bits = match self.tok.kind {
            Kind::Ident => {
                let (symbol, addend, generic) = self.initial_symbol()?;
                if element != 8 {
                    return Err(self.unsupported(span, "an address stored in fewer than 64 bits"));
                }
                let relocation = Relocation { offset_bytes: offset, size_bytes: 8, symbol, addend, generic };
                variable.relocations.push(relocation);
                0
            }
            Kind::Str => return Err(self.unsupported(span, "a string as initialiser")),
            Kind::Number | Kind::Punct(_) | Kind::Directive | Kind::Eof => {
                let value = self.signed_number()?;
                if self.at(b'(') {
                    return Err(self.unsupported(span, "a mask operator in an initialiser"));
                }
                let value = match (value, variable.ty) {
                    // An integer for a float variable is its value, as in `.f32 x = 1`.
                    (Imm::Int(v), Ty::F32 | Ty::F64) => Imm::F64((v as i64 as f64).to_bits()),
                    _ => value,
                };
                value.bits_for(variable.ty).ok_or_else(|| {
                    self.invalid(span, format!("a float literal cannot initialise `{}`", variable.name))
                })?
            }
        };
        let have = variable.init.len() as u64;
        if end > have {
            if end - have > self.init_budget {
                return Err(self.unsupported(span, "initialised data of more than 64 MiB of zeros"));
            }
            self.init_budget -= end - have;
            variable.init.resize(end as usize, 0);
        }
        let bytes = u128::from(bits).to_le_bytes();
        variable.init[offset as usize..end as usize].copy_from_slice(&bytes[..element as usize]);
        Ok(())
    }

    /// `name`, `name+4` or `generic(name)`, the name being one of module scope.
    fn initial_symbol(&mut self) -> Result<(SymbolRef, i64, bool)> {
        let mut name = self.ident("a symbol")?;
        let generic = name.text == "generic" && self.at(b'(');
        if generic {
            self.bump()?;
            name = self.ident("a symbol")?;
        }
        let mut addend = self.offset()?;
        if generic {
            self.expect(b')')?;
            addend = addend.wrapping_add(self.offset()?);
        }
        let symbol = match self.globals.get(name.text) {
            Some(Global::Variable(index)) => SymbolRef::Module(VarId(*index)),
            Some(Global::Function(id)) => SymbolRef::Function(*id),
            None => return Err(self.invalid(name.span(), format!("unknown symbol `{}`", name.text))),
        };
        Ok((symbol, addend, generic))
    }

    /// `+4`, `-4`, `+-4` or nothing.
    pub fn offset(&mut self) -> Result<i64> {
        if !self.at(b'+') && !self.at(b'-') {
            return Ok(0);
        }
        let span = self.tok.span();
        match self.signed_number()? {
            Imm::Int(v) => Ok(v as i64),
            Imm::F32(_) | Imm::F64(_) => Err(self.syntax(span, "an offset is an integer".into())),
        }
    }

    /// A parenthesised list of formal parameters. Registers declared by it go to `registers`.
    pub fn params(&mut self, kind: FunctionKind, registers: &mut Vec<Register>) -> Result<Vec<Param>> {
        self.expect(b'(')?;
        let mut params = Vec::new();
        let mut offset = 0u64;
        while !self.at(b')') {
            if !params.is_empty() {
                self.expect(b',')?;
            }
            let is_reg = match self.tok.text {
                ".param" => false,
                ".reg" if kind == FunctionKind::Device => true,
                _ => return Err(self.expected("`.param`")),
            };
            self.bump()?;
            let head_span = self.tok.span();
            let head = self.head()?;
            if !(is_reg && head.ty == Ty::Pred) {
                self.memory_type(head.ty, head_span)?;
            }
            let name = self.ident("a parameter name")?;
            let span = name.span();
            let dims = self.dims()?;
            if dims.first() == Some(&None) {
                return Err(self.unsupported(span, &format!("{}[], a variable argument list", name.text)));
            }
            let element = head.element_bytes();
            let size_bytes = self.size_of(span, element, &dims)?;
            let align = head.align.unwrap_or(element);
            let start = align_up(offset, align);
            let end = start.and_then(|s| s.checked_add(size_bytes));
            let (Some(start), Some(end)) = (start, end) else {
                return Err(self.invalid(span, "the parameters' size overflows 64 bits".into()));
            };
            offset = end;
            let register = if is_reg {
                if !dims.is_empty() || head.vector > 1 {
                    return Err(self.invalid(span, "a register cannot be an array".into()));
                }
                // Fewer registers than bytes of text, which fit u32.
                let id = RegId(registers.len() as u32);
                registers.push(Register { name: name.text.to_string(), ty: head.ty });
                Some(id)
            } else {
                None
            };
            params.push(Param {
                name: name.text.to_string(),
                ty: head.ty,
                size_bytes,
                align,
                offset_bytes: start,
                is_array: !dims.is_empty(),
                register,
                pointer: head.pointer,
                span,
            });
        }
        self.bump()?;
        Ok(params)
    }
}
