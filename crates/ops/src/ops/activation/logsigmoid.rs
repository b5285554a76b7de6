//! `logsigmoid`.

use crate::array::Value;
use crate::error::Fault;
use crate::kernels::elementwise::{min_nan, unary};
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// `log(sigmoid(x))`, as `min(x, 0) - log(1 + exp(-|x|))`.
    ///
    /// Shapes: any, kept. A number gives a number.
    /// Errors: none.
    /// Source: `torch.nn.functional.logsigmoid`.
    "logsigmoid", eval, [Param::needed("input", Kind::Operand)],
    plain("logsigmoid.cu", each)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    unary(args.take("input"), f::<T>, f::<f64>)
}

fn f<R: Real>(x: R) -> R {
    min_nan(x, R::ZERO) - (-x.abs()).exp().log1p()
}
