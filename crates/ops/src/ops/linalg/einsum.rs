//! `einsum`.

use super::matmul::product;
use crate::array::{Array, Value, numel};
use crate::error::Fault;
use crate::op::{Args, Cx, Kind, Param, op};
use crate::ops::reduce::sum::total;
use crate::real::Real;

op! {
    /// Sum of products by index letters, of one or two tensors: `einsum('bijl,lk->bijk', (a, b))`. Letters that stand in
    /// both operands and not in the result are summed as the inner dimension of a matrix product, in the variant's
    /// order; letters of one operand only that are missing from the result are summed before. Without `->` the result
    /// has the letters that occur once, in alphabetical order.
    ///
    /// Shapes: as the letters say.
    /// Errors: a letter twice in one operand; sizes that differ; an ellipsis; more than two operands.
    /// Source: `torch.einsum`.
    "einsum", eval, [Param::needed("equation", Kind::Text), Param::needed("operands", Kind::Tensors)],
    plain("contract.cu", sum_of_products)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let equation: String = args.text("equation")?.chars().filter(|c| !c.is_whitespace()).collect();
    let Value::Tuple(operands) = args.take("operands") else {
        return Err(Fault::new("`operands` takes a tuple of tensors"));
    };
    let (left, right) = match equation.split_once("->") {
        Some((l, r)) => (l, Some(r)),
        None => (equation.as_str(), None),
    };
    let terms: Vec<Vec<char>> = left.split(',').map(|t| t.chars().collect()).collect();
    if terms.len() != operands.len() || !(1..=2).contains(&operands.len()) {
        return Err(Fault(format!(
            "`{equation}` names {} operands and {} are given; one or two are supported",
            terms.len(),
            operands.len()
        )));
    }
    let all: Vec<char> = terms.iter().flatten().copied().collect();
    let result: Vec<char> = match right {
        Some(r) => r.chars().collect(),
        None => {
            let mut once: Vec<char> =
                all.iter().filter(|c| all.iter().filter(|d| d == c).count() == 1).copied().collect();
            once.sort_unstable();
            once
        }
    };
    for letters in terms.iter().chain([&result]) {
        let repeated = letters.iter().enumerate().find(|(i, c)| letters[..*i].contains(c));
        if let Some((_, c)) = repeated {
            return Err(Fault(format!("`{c}` twice in one term of `{equation}` is not supported")));
        }
        if let Some(c) = letters.iter().find(|c| !c.is_ascii_alphabetic()) {
            return Err(Fault(format!("`{c}` in `{equation}` is not an index letter")));
        }
    }
    if let Some(c) = result.iter().find(|c| !all.contains(c)) {
        return Err(Fault(format!("`{c}` in the result of `{equation}` is in no operand")));
    }
    let mut arrays = Vec::new();
    for (k, (operand, letters)) in operands.into_iter().zip(&terms).enumerate() {
        let mut a = operand.into_float()?;
        if a.rank() != letters.len() {
            return Err(Fault(format!(
                "`{}` needs {} dimensions, not {}",
                letters.iter().collect::<String>(),
                letters.len(),
                a.rank()
            )));
        }
        let other = terms.get(1 - k.min(1)).filter(|_| terms.len() == 2);
        let alone = |c: &char| !result.contains(c) && other.is_none_or(|o| !o.contains(c));
        let gone: Vec<i64> = (0..letters.len()).filter(|&d| alone(&letters[d])).map(|d| d as i64).collect();
        if !gone.is_empty() {
            a = total(cx, a, Some(gone), false)?.0;
        }
        arrays.push((a, letters.iter().copied().filter(|c| !alone(c)).collect::<Vec<char>>()));
    }
    let (out, letters) = match arrays.len() {
        1 => arrays.swap_remove(0),
        _ => {
            let (b, bl) = arrays.swap_remove(1);
            let (a, al) = arrays.swap_remove(0);
            pair(cx, (a, &al), (b, &bl), &result)?
        }
    };
    let axes: Vec<usize> = result.iter().filter_map(|c| letters.iter().position(|l| l == c)).collect();
    Ok(Value::Float(out.permuted(&axes)))
}

/// The batched matrix product of two operands: `[batch, m, k] @ [batch, k, n]`, its letters in that order.
fn pair<T: Real>(
    cx: &Cx,
    (a, al): (Array<T>, &[char]),
    (b, bl): (Array<T>, &[char]),
    result: &[char],
) -> Result<(Array<T>, Vec<char>), Fault> {
    let size = |x: &Array<T>, l: &[char], c: char| l.iter().position(|d| *d == c).map(|d| x.shape()[d]);
    for &c in al.iter().filter(|c| bl.contains(c)) {
        let (x, y) = (size(&a, al, c), size(&b, bl, c));
        if x != y {
            return Err(Fault(format!("index `{c}` has sizes {} and {}", x.unwrap_or(0), y.unwrap_or(0))));
        }
    }
    let both = |kept: bool| -> Vec<char> {
        al.iter().copied().filter(|c| bl.contains(c) && result.contains(c) == kept).collect()
    };
    let (batch, inner) = (both(true), both(false));
    let rows: Vec<char> = al.iter().copied().filter(|c| !bl.contains(c)).collect();
    let columns: Vec<char> = bl.iter().copied().filter(|c| !al.contains(c)).collect();
    let sizes = |letters: &[char]| -> Vec<usize> {
        letters.iter().map(|&c| size(&a, al, c).or_else(|| size(&b, bl, c)).unwrap_or(1)).collect()
    };
    let axes = |of: &[char], order: [&[char]; 3]| -> Vec<usize> {
        order.concat().iter().filter_map(|c| of.iter().position(|l| l == c)).collect()
    };
    let (n, m, k, o) =
        (numel(&sizes(&batch))?, numel(&sizes(&rows))?, numel(&sizes(&inner))?, numel(&sizes(&columns))?);
    let x = a.clone().permuted(&axes(al, [&batch, &rows, &inner])).reshaped(vec![n, m, k])?;
    let y = b.clone().permuted(&axes(bl, [&batch, &inner, &columns])).reshaped(vec![n, k, o])?;
    let letters = [&batch[..], &rows, &columns].concat();
    let shape = sizes(&letters);
    Ok((product(cx, x, y)?.reshaped(shape)?, letters))
}
