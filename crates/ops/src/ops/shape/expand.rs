//! `expand`.

use crate::array::{Value, numel, per_dtype};
use crate::error::Fault;
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// Dimensions of size 1 repeated, leading ones added; -1 keeps a size.
    ///
    /// Shapes: any that broadcasts to `size`.
    /// Errors: a size other than 1 that differs.
    /// Source: `torch.Tensor.expand`.
    "expand", eval, [Param::tensor("input"), Param::needed("size", Kind::Ints)],
    plain("copy.cu", expanded)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    let x = args.tensor("input")?;
    let shape = x.shape().unwrap_or_default().to_vec();
    let size = args.ints("size")?;
    let lead = size
        .len()
        .checked_sub(shape.len())
        .ok_or_else(|| Fault(format!("`size` {size:?} has fewer dimensions than the tensor")))?;
    let target = size
        .iter()
        .enumerate()
        .map(|(i, &s)| match i.checked_sub(lead).map(|j| shape[j]) {
            Some(own) if s == -1 || i64::try_from(own) == Ok(s) => Ok(own),
            Some(1) | None if s >= 0 => usize::try_from(s).map_err(|_| Fault::new("`size` is too large")),
            _ => Err(Fault(format!("shape {shape:?} does not expand to {size:?}"))),
        })
        .collect::<Result<Vec<usize>, Fault>>()?;
    numel(&target)?;
    Ok(
        per_dtype!(x, a => a.broadcast(&target), else other => return Err(Fault(format!("a tensor is needed, not {}", other.what())))),
    )
}
