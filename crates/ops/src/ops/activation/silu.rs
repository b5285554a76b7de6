//! `silu`.

use crate::array::Value;
use crate::error::Fault;
use crate::kernels::elementwise::unary;
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// Swish: `x / (1 + exp(-x))`.
    ///
    /// Shapes: any, kept. A number gives a number.
    /// Errors: none.
    /// Source: `torch.nn.functional.silu`.
    "silu", eval, [Param::needed("input", Kind::Operand)],
    plain("silu.cu", each)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    unary(args.take("input"), f::<T>, f::<f64>)
}

fn f<R: Real>(x: R) -> R {
    x / (R::ONE + (-x).exp())
}
