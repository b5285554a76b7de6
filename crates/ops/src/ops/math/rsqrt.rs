//! `rsqrt`.

use crate::array::Value;
use crate::error::Fault;
use crate::kernels::elementwise::unary;
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// `1 / sqrt(x)`.
    ///
    /// Shapes: any, kept. A number gives a number.
    /// Errors: none.
    /// Source: `torch.rsqrt`.
    "rsqrt", eval, [Param::needed("input", Kind::Operand)],
    plain("rsqrt.cu", each)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    unary(args.take("input"), f::<T>, f::<f64>)
}

fn f<R: Real>(x: R) -> R {
    R::ONE / x.sqrt()
}
