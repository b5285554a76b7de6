//! `cumsum`.

use crate::array::{Array, Value};
use crate::error::Fault;
use crate::kernels::reduce::arrange;
use crate::kernels::scan::{running, scan_block};
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// Sums of the terms up to each, along `dim`; what an order means for a scan is told in `kernels::scan`. Integers
    /// and bools give int64 (wrapping).
    ///
    /// Shapes: any, kept.
    /// Errors: `dim` out of range.
    /// Source: `torch.cumsum`.
    "cumsum", eval, [Param::tensor("input"), Param::needed("dim", Kind::Int)],
    plain("cumsum.cu", dims)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let x = args.tensor("input")?;
    let dim = args.dim("dim", x.shape().map_or(0, <[usize]>::len))?;
    Ok(match x {
        Value::Float(x) => {
            Value::Float(each(x, dim, |block, inner| scan_block(cx.variant.sum, block, inner, |x, y| x + y))?)
        }
        Value::Int(x) => Value::Int(each(x, dim, |block, inner| running(block, inner, i64::wrapping_add))?),
        Value::Bool(x) => Value::Int(each(x.map_to(i64::from), dim, |block, inner| {
            running(block, inner, i64::wrapping_add)
        })?),
        other => return Err(Fault(format!("a tensor is needed, not {}", other.what()))),
    })
}

fn each<E: Copy>(x: Array<E>, dim: usize, scan: impl Fn(&mut [E], usize)) -> Result<Array<E>, Fault> {
    if x.rank() == 0 || x.is_empty() {
        return Ok(x);
    }
    let (x, layout) = arrange(x, &[dim])?;
    let shape = x.shape().to_vec();
    let mut data = x.into_data();
    data.chunks_exact_mut(layout.terms * layout.inner).for_each(|block| scan(block, layout.inner));
    Array::new(shape, data)
}
