//! `reshape`.

use crate::array::{Value, numel, per_dtype};
use crate::error::Fault;
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// The same elements in row-major order under another shape; one size may be -1 and is inferred.
    ///
    /// Shapes: any to any with as many elements.
    /// Errors: another number of elements; more than one -1.
    /// Source: `torch.reshape`.
    "reshape", eval, [Param::tensor("input"), Param::needed("shape", Kind::Ints)],
    plain("copy.cu", as_it_lies)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    let x = args.tensor("input")?;
    let target = inferred(&args.ints("shape")?, x.shape().map_or(Ok(1), numel)?)?;
    Ok(
        per_dtype!(x, a => a.reshaped(target)?, else other => return Err(Fault(format!("a tensor is needed, not {}", other.what())))),
    )
}

/// The shape with its -1 replaced by what fits `count` elements.
pub(crate) fn inferred(target: &[i64], count: usize) -> Result<Vec<usize>, Fault> {
    let bad = || Fault(format!("shape {target:?} is invalid for {count} elements"));
    let mut known = 1usize;
    let mut free = None;
    for (i, &d) in target.iter().enumerate() {
        if d == -1 && free.is_none() {
            free = Some(i);
        } else {
            known = usize::try_from(d).ok().and_then(|d| known.checked_mul(d)).ok_or_else(bad)?;
        }
    }
    let rest = match (free, known) {
        (None, _) => 0,
        (Some(_), 0) => return Err(bad()),
        (Some(_), known) if count.is_multiple_of(known) => count / known,
        (Some(_), _) => return Err(bad()),
    };
    Ok(target.iter().enumerate().map(|(i, &d)| if Some(i) == free { rest } else { d as usize }).collect())
}
