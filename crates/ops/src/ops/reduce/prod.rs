//! `prod`.

use crate::array::{Array, Value, numel};
use crate::error::Fault;
use crate::kernels::reduce::{arrange, fold, reduced_dims, reduced_shape};
use crate::op::{Args, Cx, Kind, Param, op};
use crate::order::Product;
use crate::real::Real;

op! {
    /// Product over one dimension or all, in the variant's order. Integers and bools give int64 (wrapping).
    ///
    /// Shapes: any; `dim` (all where absent) is dropped, or kept with size 1 by `keepdim`.
    /// Errors: a dimension out of range.
    /// Source: `torch.prod`.
    "prod", eval, [Param::tensor("input"), Param::none("dim", Kind::OptInt), Param::flag("keepdim", false)],
    plain("prod.cu", dims)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let x = args.tensor("input")?;
    let dims = reduced_dims(args.opt_int("dim")?.map(|d| vec![d]), x.shape().map_or(0, <[usize]>::len))?;
    let keepdim = args.flag("keepdim")?;
    Ok(match x {
        Value::Float(x) => {
            let shape = reduced_shape(x.shape(), &dims, keepdim);
            let (x, layout) = arrange(x, &dims)?;
            Value::Float(Array::new(shape, fold::<T, Product>(cx, x.data(), layout)?)?)
        }
        Value::Int(x) => Value::Int(whole(x, &dims, keepdim)?),
        Value::Bool(x) => Value::Int(whole(x.map_to(i64::from), &dims, keepdim)?),
        other => return Err(Fault(format!("a tensor is needed, not {}", other.what()))),
    })
}

/// The product of integers, which has no order.
fn whole(x: Array<i64>, dims: &[usize], keepdim: bool) -> Result<Array<i64>, Fault> {
    let shape = reduced_shape(x.shape(), dims, keepdim);
    let (x, layout) = arrange(x, dims)?;
    let mut out = vec![1i64; numel(&shape)?];
    for (i, &v) in x.data().iter().enumerate() {
        let slot = &mut out[i / (layout.terms * layout.inner) * layout.inner + i % layout.inner];
        *slot = slot.wrapping_mul(v);
    }
    Array::new(shape, out)
}
