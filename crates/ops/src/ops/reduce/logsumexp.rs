//! `logsumexp`.

use crate::array::{Array, Value};
use crate::error::Fault;
use crate::kernels::reduce::{arrange, beats_max, fold, reduced_dims, reduced_shape, select, selected};
use crate::op::{Args, Cx, Kind, Param, op};
use crate::order::Sum;
use crate::real::Real;

op! {
    /// `log(sum(exp(x)))`, the maximum (where finite) subtracted first; the sum in the variant's order.
    ///
    /// Shapes: any; the dimensions in `dim` are dropped, or kept with size 1 by `keepdim`.
    /// Errors: a dimension out of range or named twice.
    /// Source: `torch.logsumexp`.
    "logsumexp", eval,
    [Param::tensor("input"), Param::needed("dim", Kind::Ints), Param::flag("keepdim", false)],
    plain("logsumexp.cu", dims)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let x = args.float("input")?;
    let dims = reduced_dims(Some(args.ints("dim")?), x.rank())?;
    let shape = reduced_shape(x.shape(), &dims, args.flag("keepdim")?);
    let (x, layout) = arrange(x, &dims)?;
    if layout.terms == 0 {
        return Ok(Value::Float(Array::full(shape, -T::INFINITY)?));
    }
    let max: Vec<T> = selected(x.data(), layout, &select(x.data(), layout, beats_max))
        .into_iter()
        .map(|m| if m.abs() == T::INFINITY { T::ZERO } else { m })
        .collect();
    let mut exps = x.into_data();
    let block = (layout.terms * layout.inner).max(1);
    for (o, part) in exps.chunks_exact_mut(block).enumerate() {
        for row in part.chunks_exact_mut(layout.inner) {
            for (v, &m) in row.iter_mut().zip(&max[o * layout.inner..]) {
                *v = (*v - m).exp();
            }
        }
    }
    let sums = fold::<T, Sum>(cx, &exps, layout)?;
    let out = sums.into_iter().zip(max).map(|(s, m)| s.log() + m).collect();
    Ok(Value::Float(Array::new(shape, out)?))
}
