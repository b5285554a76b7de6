//! `prod`.

use crate::array::{Array, Value};
use crate::error::Fault;
use crate::kernels::reduce::{arrange, fold, reduced_dims, reduced_shape};
use crate::op::{Args, Cx, Kind, Param, op};
use crate::order::Product;
use crate::real::Real;

op! {
    /// Product over one dimension or all, in the variant's order.
    ///
    /// Shapes: any; `dim` (all where absent) is dropped, or kept with size 1 by `keepdim`.
    /// Errors: a dimension out of range; an integer or bool tensor (not supported).
    /// Source: `torch.prod`.
    "prod", eval, [Param::tensor("input"), Param::none("dim", Kind::OptInt), Param::flag("keepdim", false)],
    plain("prod.cu", dims)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let x = match args.tensor("input")? {
        Value::Float(x) => x,
        other => return Err(Fault(format!("the product of {} is not supported", other.what()))),
    };
    let dims = reduced_dims(args.opt_int("dim")?.map(|d| vec![d]), x.rank())?;
    let shape = reduced_shape(x.shape(), &dims, args.flag("keepdim")?);
    let (x, layout) = arrange(x, &dims)?;
    Ok(Value::Float(Array::new(shape, fold::<T, Product>(cx, x.data(), layout)?)?))
}
