//! Decoding of matrix instructions and of asynchronous copies.

use std::sync::Arc;

use assay_ptx::{Fragment, Imm, Layout, Op, Operand, Shape, Space, Ty};

use super::function::{Decoder, Result};
use crate::code::{
    Cold, Collective, CopyOp, Kind, MatrixOp, MatrixWork, MemKind, MemOp, RowsOp, Slot, TileOp, WarpOp,
};
use crate::handlers::matrix;
use crate::semantics::float::mode;
use crate::semantics::matrix::{Part, Product, Which, arithmetic};

impl Decoder<'_, '_> {
    /// The registers of a fragment.
    fn fragment(&mut self, o: &Operand) -> Result<Vec<Slot>> {
        let list = match o {
            Operand::Vector(list) => list.as_slice(),
            o => std::slice::from_ref(o),
        };
        list.iter()
            .map(|o| match o {
                Operand::Reg(r) => Ok(self.reg(*r)),
                _ => Err(self.no()),
            })
            .collect()
    }

    fn part(
        &mut self,
        o: &Operand,
        fragment: Fragment,
        shape: Shape,
        ty: Ty,
        input: Ty,
        order: Layout,
    ) -> Result<Part> {
        let wmma = matches!(self.instr().op, Op::WmmaLoad | Op::WmmaMma | Op::WmmaStore);
        let slots = self.fragment(o)?;
        let which = Which { fragment, shape, ty, wmma, order };
        which.part(slots, input == Ty::F16).ok_or_else(|| self.no())
    }

    /// Emits an operation of the whole warp.
    fn emit_matrix(&mut self, work: MatrixWork) {
        let members = self.frame.constant(Kind::W32, u64::from(u32::MAX));
        let op = Collective::Matrix(Arc::new(MatrixOp { name: self.instr().op.name(), work }));
        self.emit_cold(Cold::Warp(WarpOp { op, dest: None, pred: None, sources: Vec::new(), members }));
    }

    /// `mma` and `wmma.mma`.
    pub(super) fn product(&mut self) -> Result<()> {
        let i = self.instr();
        let shape = i.mods.shape.ok_or_else(|| self.no())?;
        let [d, a, b, c] = &i.operands[..] else { return Err(self.no()) };
        let ty = |n: usize| i.types.get(n).copied().flatten();
        // `wmma.mma` of `.f16` names the types of d and c only.
        let (d_ty, a_ty, b_ty, c_ty) = match (ty(0), ty(1), ty(2), ty(3)) {
            (Some(d), Some(a), Some(b), Some(c)) => (d, a, b, c),
            (Some(d), Some(c), None, None) => (d, Ty::F16, Ty::F16, c),
            _ => return Err(self.no()),
        };
        let (row_a, row_b) = (i.mods.layout_a.unwrap_or(Layout::Row), i.mods.layout_b.unwrap_or(Layout::Col));
        let work = arithmetic(a_ty, mode(&i.mods), i.mods.satfinite, i.mods.bool_op);
        let work = work.ok_or_else(|| self.no())?;
        let a = self.part(a, Fragment::A, shape, a_ty, a_ty, row_a)?;
        let b = self.part(b, Fragment::B, shape, b_ty, a_ty, row_b)?;
        let c = self.part(c, Fragment::C, shape, c_ty, a_ty, Layout::Row)?;
        let d = self.part(d, Fragment::D, shape, d_ty, a_ty, Layout::Row)?;
        let batches = c.rows / usize::from(shape.m);
        let product = Product {
            batches,
            m: usize::from(shape.m),
            n: usize::from(shape.n),
            k: a.cols,
            a,
            b,
            c,
            d,
            arithmetic: work,
        };
        self.emit_matrix(MatrixWork::Product(product));
        let f = matrix::product_pair().pick(self.cx.variant);
        if let Some(e) = self.out.last_mut() {
            e.d.f = f;
        }
        Ok(())
    }

    /// A memory instruction of pieces of `size` bytes at the address `o`.
    fn pieces(
        &mut self,
        kind: MemKind,
        o: &Operand,
        space: Option<Space>,
        ty: Ty,
        size: u8,
    ) -> Result<MemOp> {
        let space = self.space(o, space);
        let (base, offset, frame_relative) = self.address(o, space)?;
        Ok(MemOp {
            kind,
            space,
            base,
            offset,
            frame_relative,
            size,
            ty,
            data: Vec::new(),
            b: None,
            c: None,
            strong: false,
            semantics: None,
            scope: None,
            used: u32::MAX,
        })
    }

    /// `ldmatrix` and `stmatrix`.
    pub(super) fn matrix_rows(&mut self) -> Result<()> {
        let i = self.instr();
        let store = i.op == Op::Stmatrix;
        let [first, second] = &i.operands[..] else { return Err(self.no()) };
        let (data, address) = if store { (second, first) } else { (first, second) };
        let kind = if store { MemKind::Store } else { MemKind::Load };
        // Without a space the address is generic (PTX ISA, `ldmatrix`).
        let mem = self.pieces(kind, address, i.mods.space, Ty::B16, 16)?;
        let slots = self.fragment(data)?;
        self.emit_matrix(MatrixWork::Rows(RowsOp { mem, transpose: i.mods.trans, slots }));
        // Detectors want to see the accesses.
        if let Some(e) = self.out.last_mut() {
            e.checked = Some(e.d.f);
            e.d.f = matrix::rows;
        }
        Ok(())
    }

    /// `movmatrix`.
    pub(super) fn matrix_transpose(&mut self) -> Result<()> {
        let i = self.instr();
        let [Operand::Reg(dest), source] = &i.operands[..] else { return Err(self.no()) };
        let source = self.source(source, Ty::B32)?;
        let dest = self.reg(*dest);
        self.emit_matrix(MatrixWork::Transpose { dest, source });
        Ok(())
    }

    /// `wmma.load` and `wmma.store`.
    pub(super) fn matrix_tile(&mut self) -> Result<()> {
        let i = self.instr();
        let store = i.op == Op::WmmaStore;
        let (shape, ty) = (i.mods.shape.ok_or_else(|| self.no())?, i.ty().ok_or_else(|| self.no())?);
        let fragment = i.mods.fragment.ok_or_else(|| self.no())?;
        let order = i.mods.layout_a.unwrap_or(Layout::Row);
        let (data, address) = if store { (1, 0) } else { (0, 1) };
        let kind = if store { MemKind::Store } else { MemKind::Load };
        let mem = self.pieces(kind, &i.operands[address], i.mods.space, ty, 16)?;
        let part = self.part(&i.operands[data], fragment, shape, ty, ty, order)?;
        let by_column = order == Layout::Col;
        let stride = match i.operands.get(2) {
            Some(o) => self.source(o, Ty::U32)?,
            None => {
                let line = if by_column { part.rows } else { part.cols };
                let elements = if ty == Ty::B1 { line * 32 } else { line };
                self.frame.constant(Kind::W32, elements as u64)
            }
        };
        let mut order = part.at.clone();
        if by_column {
            let (rows, cols) = (part.rows as u16, part.cols as u16);
            for at in order.iter_mut().flatten() {
                *at = *at % cols * rows + *at / cols;
            }
        }
        self.emit_matrix(MatrixWork::Tile(TileOp { mem, part, by_column, stride, order }));
        if let Some(e) = self.out.last_mut() {
            e.checked = Some(e.d.f);
            e.d.f = matrix::tile;
        }
        Ok(())
    }

    /// `cp.async`.
    pub(super) fn copy(&mut self) -> Result<()> {
        let i = self.instr();
        let mut operands = i.operands.as_slice();
        if i.mods.cache_hint {
            operands = &operands[..operands.len().saturating_sub(1)];
        }
        let [to, from, Operand::Imm(Imm::Int(size)), rest @ ..] = operands else { return Err(self.no()) };
        let size = *size;
        let fits = match i.mods.cache {
            Some(assay_ptx::Cache::Cg) => size == 16,
            _ => matches!(size, 4 | 8 | 16),
        };
        if !fits {
            return Err(self.bad("`cp.async` copies 4, 8 or 16 bytes (`.cg`: 16)"));
        }
        if i.mods.cluster {
            return Err(self.no());
        }
        let dest = self.pieces(MemKind::Store, to, Some(Space::Shared), Ty::B8, size as u8)?;
        let source = self.pieces(MemKind::Load, from, Some(Space::Global), Ty::B8, size as u8)?;
        let (mut read, mut ignore) = (None, None);
        match rest {
            [] => {}
            [Operand::Reg(r)] if self.reg(*r).kind == Kind::Pred => ignore = Some(self.reg(*r)),
            [Operand::NotReg(r)] => ignore = Some(Slot { negated: true, ..self.reg(*r) }),
            [o] => read = Some(self.source(o, Ty::U32)?),
            _ => return Err(self.no()),
        }
        self.emit_cold(Cold::Copy(Box::new(CopyOp { source, dest, size, read, ignore })));
        Ok(())
    }

    /// `cp.async.wait_group`.
    pub(super) fn copy_wait(&mut self) -> Result<()> {
        let [Operand::Imm(Imm::Int(left))] = &self.instr().operands[..] else { return Err(self.no()) };
        let left = u32::try_from(*left).unwrap_or(u32::MAX);
        self.emit_cold(Cold::CopyWait(Some(left)));
        Ok(())
    }
}
