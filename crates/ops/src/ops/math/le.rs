//! `le`.

use crate::array::Value;
use crate::error::Fault;
use crate::kernels::elementwise::compare;
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// True where `input` is at most `other`, as a bool tensor.
    ///
    /// Shapes: any two that broadcast. Two numbers give a bool.
    /// Errors: no broadcast.
    /// Source: `torch.le`.
    "le", eval, [Param::needed("input", Kind::Operand), Param::needed("other", Kind::Operand)],
    plain("le.cu", each, Operands)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    compare(args.take("input"), args.take("other"), |x, y| x <= y, |x, y| x <= y, |x, y| x <= y)
}
