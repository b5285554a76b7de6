//! The operators: one file each, one row each in [`OPS`].
//!
//! To add one: write its file (documentation, signature, evaluator, plain kernel) in the folder of its family, name it
//! in the family's `mod.rs`, add its row here, its kernel to `cuda/` (or use one that is there), and a case to
//! `tests/golden/make_golden.py`.

pub mod activation;
pub mod linalg;
pub mod loss;
pub mod math;
pub mod norm;
pub mod pool;
pub mod reduce;
pub mod shape;

use crate::array::{Scalar, Value};
use crate::error::Fault;
use crate::op::Op;
use crate::real::Real;

/// Every operator of the reference language.
pub static OPS: &[&Op] = &[
    &activation::sigmoid::OP,
    &activation::tanh::OP,
    &activation::silu::OP,
    &activation::softsign::OP,
    &activation::hardsigmoid::OP,
    &activation::hardswish::OP,
    &activation::relu6::OP,
    &activation::mish::OP,
    &activation::selu::OP,
    &activation::logsigmoid::OP,
    &activation::leaky_relu::OP,
    &activation::elu::OP,
    &activation::hardtanh::OP,
    &activation::softplus::OP,
    &activation::relu::OP,
    &activation::gelu::OP,
    &activation::softmax::OP,
    &activation::log_softmax::OP,
    &math::exp::OP,
    &math::expm1::OP,
    &math::log::OP,
    &math::log1p::OP,
    &math::sqrt::OP,
    &math::rsqrt::OP,
    &math::reciprocal::OP,
    &math::erf::OP,
    &math::add::OP,
    &math::sub::OP,
    &math::mul::OP,
    &math::div::OP,
    &math::floor_divide::OP,
    &math::remainder::OP,
    &math::maximum::OP,
    &math::minimum::OP,
    &math::lt::OP,
    &math::le::OP,
    &math::gt::OP,
    &math::ge::OP,
    &math::eq::OP,
    &math::ne::OP,
    &math::neg::OP,
    &math::abs::OP,
    &math::pow::OP,
    &math::clamp::OP,
    &math::where_op::OP,
    &math::masked_fill::OP,
    &linalg::matmul::OP,
    &linalg::mm::OP,
    &linalg::mv::OP,
    &linalg::bmm::OP,
    &linalg::linear::OP,
    &linalg::conv1d::OP,
    &linalg::conv_transpose1d::OP,
    &linalg::conv2d::OP,
    &linalg::conv_transpose2d::OP,
    &linalg::conv3d::OP,
    &linalg::conv_transpose3d::OP,
    &linalg::einsum::OP,
    &linalg::scaled_dot_product_attention::OP,
    &pool::max_pool1d::OP,
    &pool::avg_pool1d::OP,
    &pool::max_pool2d::OP,
    &pool::avg_pool2d::OP,
    &pool::max_pool3d::OP,
    &pool::avg_pool3d::OP,
    &pool::adaptive_avg_pool1d::OP,
    &pool::adaptive_avg_pool2d::OP,
    &pool::adaptive_avg_pool3d::OP,
    &norm::layer_norm::OP,
    &norm::rms_norm::OP,
    &norm::group_norm::OP,
    &norm::instance_norm::OP,
    &norm::batch_norm::OP,
    &reduce::sum::OP,
    &reduce::mean::OP,
    &reduce::var::OP,
    &reduce::std::OP,
    &reduce::prod::OP,
    &reduce::amax::OP,
    &reduce::max::OP,
    &reduce::argmax::OP,
    &reduce::amin::OP,
    &reduce::min::OP,
    &reduce::argmin::OP,
    &reduce::cumsum::OP,
    &reduce::cumprod::OP,
    &reduce::logsumexp::OP,
    &reduce::norm::OP,
    &loss::mse_loss::OP,
    &loss::l1_loss::OP,
    &loss::smooth_l1_loss::OP,
    &loss::huber_loss::OP,
    &loss::kl_div::OP,
    &loss::cross_entropy::OP,
    &loss::triplet_margin_loss::OP,
    &shape::transpose::OP,
    &shape::permute::OP,
    &shape::reshape::OP,
    &shape::view::OP,
    &shape::flatten::OP,
    &shape::unsqueeze::OP,
    &shape::squeeze::OP,
    &shape::expand::OP,
    &shape::triu::OP,
    &shape::tril::OP,
    &shape::cat::OP,
    &shape::stack::OP,
    &shape::flip::OP,
    &shape::narrow::OP,
    &shape::select::OP,
    &shape::zeros_like::OP,
    &shape::ones_like::OP,
];

/// The operator of that name.
pub fn find(name: &str) -> Option<&'static Op> {
    OPS.iter().copied().find(|op| op.name == name)
}

/// `value[at]`: an item of a tuple.
pub(crate) fn index<T: Real>(value: Value<T>, at: i64) -> Result<Value<T>, Fault> {
    match value {
        Value::Tuple(mut all) => {
            let n = all.len() as i64;
            if at < -n || at >= n {
                return Err(Fault(format!("index {at} is out of range for a tuple of {n}")));
            }
            Ok(all.swap_remove(if at < 0 { at + n } else { at } as usize))
        }
        v => Err(Fault(format!("{} cannot be indexed", v.what()))),
    }
}

/// A function of two numbers: in integers where both are (bools count), else in float64.
pub(crate) fn number(
    a: Scalar,
    b: Scalar,
    int: impl Fn(i64, i64) -> Option<i64>,
    float: impl Fn(f64, f64) -> f64,
) -> Result<Scalar, Fault> {
    match (a.to_i64(), b.to_i64()) {
        (Some(x), Some(y)) => {
            int(x, y).map(Scalar::Int).ok_or_else(|| Fault::new("the result does not fit in 64 bits"))
        }
        _ => Ok(Scalar::Float(float(a.to_f64(), b.to_f64()))),
    }
}

/// Quotient rounded down and remainder with the divisor's sign, of integers; the divisor is not zero.
pub(crate) fn floor_div_mod(x: i64, y: i64) -> (i64, i64) {
    let (q, r) = (x.wrapping_div(y), x.wrapping_rem(y));
    if r != 0 && (r < 0) != (y < 0) { (q - 1, r + y) } else { (q, r) }
}

/// Quotient rounded down and remainder with the divisor's sign, of floats, as Python and PyTorch compute them.
pub(crate) fn python_mod<T: Real>(x: T, y: T) -> (T, T) {
    if y == T::ZERO {
        return (x / y, T::NAN);
    }
    let mut r = x.fmod(y);
    let mut q = (x - r) / y;
    if r != T::ZERO && (r < T::ZERO) != (y < T::ZERO) {
        r += y;
        q = q - T::ONE;
    }
    if q == T::ZERO {
        return (q, r);
    }
    let down = q.floor();
    // The quotient is whole but for rounding.
    (if q - down > T::from_f64(0.5) { down + T::ONE } else { down }, r)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_every_operator_is_documented() {
        let mut seen = BTreeSet::new();
        for op in OPS {
            assert!(seen.insert(op.name), "`{}` appears twice", op.name);
            for part in ["Shapes:", "Errors:", "Source: `torch."] {
                assert!(op.docs.contains(part), "`{}` lacks `{part}`", op.name);
            }
            let names: BTreeSet<_> = op.params.iter().map(|p| p.name).collect();
            assert_eq!(names.len(), op.params.len(), "`{}` repeats a parameter", op.name);
            let optional = op.params.iter().position(|p| p.default.is_some()).unwrap_or(op.params.len());
            assert!(
                op.params[optional..].iter().all(|p| p.default.is_some()),
                "`{}`: order of defaults",
                op.name
            );
        }
    }
}
