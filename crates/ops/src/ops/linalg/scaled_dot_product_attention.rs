//! `scaled_dot_product_attention`.

use super::matmul::product;
use crate::array::{Array, Value};
use crate::error::Fault;
use crate::kernels::elementwise::zip;
use crate::kernels::softmax::softmax_rows;
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// `softmax(query @ key^T * scale + mask, dim=-1) @ value` with `scale` 1/sqrt(E) where absent. A boolean mask
    /// forbids where it is false; `is_causal` forbids keys behind the query's own position, counted from the upper left
    /// corner. A query without any allowed key gives zeros. Without dropout.
    ///
    /// Shapes: `[.., L, E]`, `[.., S, E]`, `[.., S, V]` with leading dimensions that broadcast give `[.., L, V]`; the
    /// mask broadcasts to `[.., L, S]`.
    /// Errors: sizes that differ; fewer than 2 dimensions; dropout; a mask together with `is_causal`.
    /// Source: `torch.nn.functional.scaled_dot_product_attention`.
    "scaled_dot_product_attention", eval,
    [
        Param::tensor("query"),
        Param::tensor("key"),
        Param::tensor("value"),
        Param::none("attn_mask", Kind::OptTensor),
        Param::float("dropout_p", 0.0),
        Param::flag("is_causal", false),
        Param::none("scale", Kind::OptNumber),
    ],
    plain("scaled_dot_product_attention.cu", attention)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let (q, k, v) = (args.float("query")?, args.float("key")?, args.float("value")?);
    if q.rank() < 2 || k.rank() < 2 || v.rank() < 2 {
        return Err(Fault::new("`query`, `key` and `value` need at least 2 dimensions"));
    }
    if args.number("dropout_p")?.to_f64() != 0.0 {
        return Err(Fault::new("dropout draws random numbers, pass its mask as an input instead"));
    }
    let mask = args.take("attn_mask");
    let causal = args.flag("is_causal")?;
    if causal && !matches!(mask, Value::None) {
        return Err(Fault::new("`attn_mask` and `is_causal` exclude each other"));
    }
    let width = T::from_i64(q.shape()[q.rank() - 1] as i64);
    let scale = match args.opt_number("scale")? {
        Some(s) => T::from_f64(s.to_f64()),
        None => T::ONE / width.sqrt(),
    };
    let mut axes: Vec<usize> = (0..k.rank()).collect();
    axes.swap(k.rank() - 2, k.rank() - 1);
    let mut scores = product(cx, q, k.permuted(&axes))?.map(|s| s * scale);
    let rank = scores.rank();
    let (rows, terms) = (scores.shape()[rank - 2], scores.shape()[rank - 1]);
    match mask {
        Value::None => {}
        Value::Bool(m) => {
            let (shape, data) = zip(&scores, &m, |s, keep| if keep { s } else { T::NEG_INFINITY })?;
            scores = Array::new(shape, data)?;
        }
        m => {
            let (shape, data) = zip(&scores, &m.into_float()?, |s, m| s + m)?;
            scores = Array::new(shape, data)?;
        }
    }
    if scores.rank() != rank || scores.shape()[rank - 2..] != [rows, terms] {
        return Err(Fault(format!("`attn_mask` does not broadcast to [.., {rows}, {terms}]")));
    }
    let shape = scores.shape().to_vec();
    let mut data = scores.into_data();
    let row_of = |r: usize| r % rows.max(1);
    if causal {
        for (r, row) in data.chunks_exact_mut(terms.max(1)).enumerate() {
            for s in row.iter_mut().skip(row_of(r) + 1) {
                *s = T::NEG_INFINITY;
            }
        }
    }
    let closed: Vec<bool> =
        data.chunks_exact(terms.max(1)).map(|row| row.iter().all(|&s| s == T::NEG_INFINITY)).collect();
    let count = data.len().checked_div(terms).unwrap_or(0);
    softmax_rows(cx, &mut data, count, terms, false)?;
    for (row, _) in data.chunks_exact_mut(terms.max(1)).zip(closed).filter(|(_, closed)| *closed) {
        row.fill(T::ZERO);
    }
    Ok(Value::Float(product(cx, Array::new(shape, data)?, v)?))
}
