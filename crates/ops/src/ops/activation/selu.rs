//! `selu`.

use crate::array::Value;
use crate::error::Fault;
use crate::kernels::elementwise::unary;
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// Scaled exponential linear unit: `scale * x` above 0, `scale * alpha * (exp(x) - 1)` below, with the constants of Klambauer et al. 2017.
    ///
    /// Shapes: any, kept. A number gives a number.
    /// Errors: none.
    /// Source: `torch.nn.functional.selu`.
    "selu", eval, [Param::needed("input", Kind::Operand)],
    plain("selu.cu", each)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    unary(args.take("input"), f::<T>, f::<f64>)
}

fn f<R: Real>(x: R) -> R {
    let scale = R::from_f64(1.050_700_987_355_480_5);
    let negative = R::from_f64(1.673_263_242_354_377_2 * 1.050_700_987_355_480_5);
    if x <= R::ZERO { x.expm1() * negative } else { x * scale }
}
