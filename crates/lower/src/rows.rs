//! The table: what each ATen operator is in the catalogue's language.
//!
//! A row that is one operator of ours says where the arguments go: ATen's names in order of the signature, each `same`,
//! `theirs=ours`, `theirs-` (nothing depends on it) or `theirs!` (must be absent, `False` or 0). Others have a function.

use assay_ops::array::Scalar;
use assay_ops::op::Kind;
use assay_ops::{Op, ops};
use assay_tensor::DType;

use crate::emit::{Arg, Cx, TensorId};
use crate::error::Unsupported;
use crate::graph::{Argument, Node};

/// One ATen operator.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its name and overload without `aten.`; a name alone is every overload without a row of its own.
    pub aten: &'static str,
    how: How,
}

#[derive(Clone, Copy, Debug)]
enum How {
    /// An operator of ours and where the arguments go.
    One(&'static str, &'static str),
    /// Anything else.
    By(By),
}

type By = fn(&mut Cx<'_>, &Node) -> Result<Arg, Unsupported>;

const fn one(aten: &'static str, ours: &'static str, args: &'static str) -> Row {
    Row { aten, how: How::One(ours, args) }
}

const fn by(aten: &'static str, f: By) -> Row {
    Row { aten, how: How::By(f) }
}

const CONV: &str = "input weight bias stride padding dilation groups";
const CONV_TRANSPOSE: &str = "input weight bias stride padding output_padding groups dilation";
const MAX_POOL: &str = "self=input kernel_size stride padding dilation ceil_mode";
const AVG_POOL: &str = "self=input kernel_size stride padding ceil_mode count_include_pad divisor_override";
const SELF: &str = "self=input";
const BOTH: &str = "self=input other";
const DIM: &str = "self=input dim keepdim";
const SUM: &str = "self=input dim keepdim dtype!";
const WHOLE: &str = "self=input dtype!";

/// Every ATen operator that is lowered.
pub static ATEN: &[Row] = &[
    // Element by element.
    one("add", "add", "self=input other alpha"),
    one("sub", "sub", "self=input other alpha"),
    by("rsub", rsub),
    one("mul", "mul", BOTH),
    one("multiply", "mul", BOTH),
    one("div.Tensor", "div", BOTH),
    one("div.Scalar", "div", BOTH),
    by("div.Tensor_mode", div_mode),
    by("div.Scalar_mode", div_mode),
    one("true_divide", "div", BOTH),
    one("floor_divide", "floor_divide", BOTH),
    one("remainder", "remainder", BOTH),
    one("maximum", "maximum", BOTH),
    one("minimum", "minimum", BOTH),
    one("max.other", "maximum", BOTH),
    one("min.other", "minimum", BOTH),
    one("lt", "lt", BOTH),
    one("le", "le", BOTH),
    one("gt", "gt", BOTH),
    one("ge", "ge", BOTH),
    one("eq", "eq", BOTH),
    one("ne", "ne", BOTH),
    one("pow", "pow", "self=input exponent"),
    by("square", square),
    one("neg", "neg", SELF),
    one("abs", "abs", SELF),
    one("exp", "exp", SELF),
    one("expm1", "expm1", SELF),
    one("log", "log", SELF),
    one("log1p", "log1p", SELF),
    one("sqrt", "sqrt", SELF),
    one("rsqrt", "rsqrt", SELF),
    one("reciprocal", "reciprocal", SELF),
    one("erf", "erf", SELF),
    one("clamp", "clamp", "self=input min max"),
    one("clamp_min", "clamp", "self=input min"),
    one("clamp_max", "clamp", "self=input max"),
    one("where.self", "where", "condition self=input other"),
    one("where.ScalarOther", "where", "condition self=input other"),
    one("where.ScalarSelf", "where", "condition self=input other"),
    one("masked_fill.Scalar", "masked_fill", "self=input mask value"),
    by("masked_fill.Tensor", masked_fill),
    by("logical_not", logical_not),
    by("bitwise_not", logical_not),
    by("logical_and", logical_and),
    by("bitwise_and", logical_and),
    by("copy", copied),
    // Activations.
    one("relu", "relu", SELF),
    one("relu6", "relu6", SELF),
    one("leaky_relu", "leaky_relu", "self=input negative_slope"),
    one("elu", "elu", "self=input alpha scale! input_scale!"),
    one("selu", "selu", SELF),
    one("gelu", "gelu", "self=input approximate"),
    one("sigmoid", "sigmoid", SELF),
    one("tanh", "tanh", SELF),
    one("silu", "silu", SELF),
    one("mish", "mish", SELF),
    one("hardsigmoid", "hardsigmoid", SELF),
    one("hardswish", "hardswish", SELF),
    one("hardtanh", "hardtanh", "self=input min_val max_val"),
    one("softplus", "softplus", "self=input beta threshold"),
    one("log_sigmoid", "logsigmoid", SELF),
    one("softmax", "softmax", "self=input dim dtype!"),
    one("_softmax", "softmax", "self=input dim half_to_float!"),
    one("log_softmax", "log_softmax", "self=input dim dtype!"),
    one("_log_softmax", "log_softmax", "self=input dim half_to_float!"),
    // Matrix products and convolutions.
    one("matmul", "matmul", BOTH),
    one("mm", "mm", "self=input mat2"),
    one("bmm", "bmm", "self=input mat2"),
    one("mv", "mv", "self=input vec"),
    one("dot", "matmul", "self=input tensor=other"),
    by("addmm", addmm),
    by("baddbmm", addmm),
    one("linear", "linear", "input weight bias"),
    one("einsum", "einsum", "equation tensors=operands path-"),
    one("conv1d.default", "conv1d", CONV),
    one("conv2d.default", "conv2d", CONV),
    one("conv3d.default", "conv3d", CONV),
    one("conv_transpose1d", "conv_transpose1d", CONV_TRANSPOSE),
    one("conv_transpose2d", "conv_transpose2d", CONV_TRANSPOSE),
    one("conv_transpose3d", "conv_transpose3d", CONV_TRANSPOSE),
    by("convolution", convolution),
    one(
        "scaled_dot_product_attention",
        "scaled_dot_product_attention",
        "query key value attn_mask dropout_p! is_causal scale enable_gqa!",
    ),
    // Pools.
    one("max_pool1d", "max_pool1d", MAX_POOL),
    one("max_pool2d", "max_pool2d", MAX_POOL),
    one("max_pool3d", "max_pool3d", MAX_POOL),
    by("max_pool2d_with_indices", max_pool_with_indices),
    by("max_pool3d_with_indices", max_pool_with_indices),
    one("avg_pool1d", "avg_pool1d", "self=input kernel_size stride padding ceil_mode count_include_pad"),
    one("avg_pool2d", "avg_pool2d", AVG_POOL),
    one("avg_pool3d", "avg_pool3d", AVG_POOL),
    one("adaptive_avg_pool1d", "adaptive_avg_pool1d", "self=input output_size"),
    one("adaptive_avg_pool2d", "adaptive_avg_pool2d", "self=input output_size"),
    one("adaptive_avg_pool3d", "adaptive_avg_pool3d", "self=input output_size"),
    one("_adaptive_avg_pool2d", "adaptive_avg_pool2d", "self=input output_size"),
    one("_adaptive_avg_pool3d", "adaptive_avg_pool3d", "self=input output_size"),
    // Normalisations.
    by("batch_norm", batch_norm),
    by("instance_norm", batch_norm),
    one("group_norm", "group_norm", "input num_groups weight bias eps cudnn_enabled-"),
    one("layer_norm", "layer_norm", "input normalized_shape weight bias eps cudnn_enable-"),
    one("rms_norm", "rms_norm", "input normalized_shape weight eps"),
    by("native_layer_norm", native_layer_norm),
    by("native_group_norm", native_group_norm),
    by("_native_batch_norm_legit_functional", native_batch_norm),
    by("_native_batch_norm_legit", native_batch_norm),
    // Reductions and scans.
    one("sum", "sum", SUM),
    one("mean.dim", "mean", SUM),
    one("mean.default", "mean", WHOLE),
    one("sum.default", "sum", WHOLE),
    one("prod.default", "prod", WHOLE),
    one("prod.dim_int", "prod", SUM),
    by("var", spread),
    by("std", spread),
    one("amax", "amax", DIM),
    one("amin", "amin", DIM),
    one("max.default", "amax", SELF),
    one("min.default", "amin", SELF),
    by("max.dim", extreme),
    by("min.dim", extreme),
    one("argmax", "argmax", DIM),
    one("argmin", "argmin", DIM),
    one("logsumexp", "logsumexp", DIM),
    one("cumsum", "cumsum", "self=input dim dtype!"),
    one("cumprod", "cumprod", "self=input dim dtype!"),
    one("linalg_vector_norm", "norm", "self=input ord=p dim keepdim dtype!"),
    one("norm.ScalarOpt_dim", "norm", "self=input p dim keepdim"),
    one("norm.Scalar", "norm", "self=input p"),
    // Losses.
    by("mse_loss", loss),
    by("l1_loss", loss),
    by("smooth_l1_loss", loss),
    by("huber_loss", loss),
    by("kl_div", loss),
    by("cross_entropy_loss", loss),
    by("triplet_margin_loss", loss),
    // Shapes. What only renames indices is a `reshape`, without a kernel.
    by("view", reshaped),
    by("_unsafe_view", reshaped),
    by("reshape", reshaped),
    by("flatten", reshaped),
    by("unflatten", reshaped),
    by("unsqueeze", reshaped),
    by("squeeze", reshaped),
    by("ravel", reshaped),
    by("contiguous", same),
    by("clone", same),
    by("detach", same),
    by("alias", same),
    by("lift_fresh_copy", same),
    by("to", converted),
    by("_to_copy", converted),
    by("type_as", converted),
    by("_assert_tensor_metadata", nothing),
    by("expand", expanded),
    by("expand_as", expanded),
    by("broadcast_to", expanded),
    by("broadcast_tensors", broadcast),
    one("transpose.int", "transpose", "self=input dim0 dim1"),
    one("permute", "permute", "self=input dims"),
    by("numpy_T", reversed),
    by("t", reversed),
    one("flip", "flip", "self=input dims"),
    one("tril", "tril", "self=input diagonal"),
    one("triu", "triu", "self=input diagonal"),
    one("select.int", "select", "self=input dim index"),
    one("narrow.default", "narrow", "self=input dim start length"),
    by("slice.Tensor", slice),
    by("split.Tensor", split),
    by("split_with_sizes", split),
    by("chunk", split),
    by("unbind.int", unbind),
    by("roll", roll),
    by("constant_pad_nd", pad),
    by("pad", pad),
    one("cat", "cat", "tensors dim"),
    one("concat", "cat", "tensors dim"),
    one("stack", "stack", "tensors dim"),
    one("zeros_like", "zeros_like", "self=input dtype- layout- device- pin_memory- memory_format-"),
    one("ones_like", "ones_like", "self=input dtype- layout- device- pin_memory- memory_format-"),
    by("zeros", filled),
    by("ones", filled),
    by("full", filled),
    by("full_like", filled),
    by("scalar_tensor", scalar),
    by("getitem", item),
    // Random numbers.
    by("dropout", dropout),
    by("native_dropout", dropout),
    by("randn", random),
    by("rand", random),
    by("randn_like", random),
    by("rand_like", random),
];

/// The row of an operator, `aten.add.Tensor` or, after an in-place one, `aten.add_.Tensor`.
fn row(op: &str) -> Option<&'static Row> {
    let full = op.strip_prefix("aten.").unwrap_or(op);
    let (name, overload) = full.split_once('.').unwrap_or((full, "default"));
    let name = name.strip_suffix('_').filter(|n| !n.is_empty()).unwrap_or(name);
    let both = format!("{name}.{overload}");
    ATEN.iter().find(|r| r.aten == both).or_else(|| ATEN.iter().find(|r| r.aten == name))
}

/// Lowers a node: its calls are made, its name stands for a value.
///
/// # Errors
/// `Operator` without a row, `Use` for what the row does not cover.
pub(crate) fn lower_node(cx: &mut Cx<'_>, node: &Node) -> Result<(), Unsupported> {
    let row = row(&node.op)
        .ok_or_else(|| Unsupported::Operator { op: node.op.clone(), node: node.name.clone() })?;
    let value = match row.how {
        How::One(ours, args) => {
            let op = ops::find(ours).ok_or_else(|| not(node, format!("there is no operator `{ours}`")))?;
            let given = named(cx, node, args)?;
            direct(cx, node, op, given)?
        }
        How::By(f) => f(cx, node)?,
    };
    cx.define(&node.name, value);
    Ok(())
}

fn not(node: &Node, what: impl Into<String>) -> Unsupported {
    Unsupported::Use { op: node.op.clone(), node: node.name.clone(), what: what.into() }
}

/// Arguments by our names.
fn named(cx: &mut Cx<'_>, node: &Node, spec: &'static str) -> Result<Vec<(&'static str, Arg)>, Unsupported> {
    let slots: Vec<&'static str> = spec.split(' ').collect();
    if node.args.len() > slots.len() {
        return Err(not(node, format!("{} arguments instead of at most {}", node.args.len(), slots.len())));
    }
    let theirs = |slot: &'static str| slot.trim_end_matches(['-', '!']).split('=').next().unwrap_or(slot);
    if let Some(other) = node.kwargs.keys().find(|k| !slots.iter().any(|s| theirs(s) == k.as_str())) {
        return Err(not(node, format!("the argument `{other}`")));
    }
    let mut out = Vec::new();
    for (at, slot) in slots.into_iter().enumerate() {
        let name = theirs(slot);
        let Some(given) = node.args.get(at).or_else(|| node.kwargs.get(name)) else { continue };
        if slot.ends_with('-') {
            continue;
        }
        if slot.ends_with('!') {
            let default = match given {
                Argument::None => true,
                Argument::Bool(b) => !b,
                // A factor of one, a probability of none.
                Argument::Int(i) => *i == i64::from(name.ends_with("scale")),
                Argument::Float(x) => *x == f64::from(u8::from(name.ends_with("scale"))),
                Argument::DType(d) => {
                    node.outputs.first().and_then(Option::as_ref).is_some_and(|m| m.dtype == *d)
                        && same_type(cx, node, d)?
                }
                _ => false,
            };
            if !default {
                return Err(not(node, format!("the argument `{name}`")));
            }
            continue;
        }
        let ours = slot.split('=').next_back().unwrap_or(slot);
        out.push((ours, cx.arg(given)?));
    }
    Ok(out)
}

/// Whether the first argument has that element type already.
fn same_type(cx: &mut Cx<'_>, node: &Node, dtype: &str) -> Result<bool, Unsupported> {
    let Some(first) = node.args.first() else { return Ok(false) };
    let first = cx.arg(first)?;
    Ok(cx.tensor(&first).is_some_and(|t| crate::graph::dtype(dtype) == Some(t.dtype)))
}

/// A call of one operator for the node's one result; numbers alone are computed.
fn direct(
    cx: &mut Cx<'_>,
    node: &Node,
    op: &'static Op,
    given: Vec<(&'static str, Arg)>,
) -> Result<Arg, Unsupported> {
    let meta = cx.meta(node, 0)?;
    let mut args = Vec::with_capacity(given.len());
    for (name, arg) in given {
        let Some(p) = op.params.iter().find(|p| p.name == name) else {
            return Err(not(node, format!("our `{}` has no `{name}`", op.name)));
        };
        let arg = match (p.kind, arg) {
            // An empty list of dimensions is all of them, of strides the default.
            (Kind::OptInts, Arg::Tuple(all)) if all.is_empty() => continue,
            (_, Arg::None) if p.default.is_some() => continue,
            // One dimension in a list.
            (Kind::Int | Kind::OptInt, Arg::Tuple(all)) if all.len() == 1 => all[0].clone(),
            // A tensor where a number is meant becomes one where it is known; else it stays and is refused below.
            (Kind::Tensor | Kind::OptTensor, Arg::Number(n)) => Arg::Tensor(number_tensor(cx, n, node)?),
            (_, arg) => arg,
        };
        let fits = match (p.kind, &arg) {
            (Kind::Tensor | Kind::OptTensor, Arg::Tensor(_)) => true,
            (Kind::OptTensor, Arg::None) => true,
            (Kind::Operand | Kind::OptOperand, Arg::Tensor(_) | Arg::Number(_)) => true,
            (Kind::Tensors, Arg::Tuple(all)) => all.iter().all(|a| matches!(a, Arg::Tensor(_))),
            (Kind::Ints | Kind::OptInts, Arg::Tuple(all)) => {
                all.iter().all(|a| matches!(a, Arg::Number(Scalar::Int(_))))
            }
            (Kind::Int | Kind::OptInt | Kind::Ints | Kind::OptInts, Arg::Number(Scalar::Int(_))) => true,
            (Kind::Number | Kind::OptNumber, Arg::Number(_)) => true,
            (Kind::Bool, Arg::Number(Scalar::Bool(_))) => true,
            (Kind::Text, Arg::Text(_)) => true,
            (Kind::Choice(all), Arg::Text(t)) => all.contains(&t.as_str()),
            _ => false,
        };
        if !fits {
            return Err(not(node, format!("`{name}` takes {}", p.kind.words())));
        }
        args.push((name, arg));
    }
    for p in op.params.iter().filter(|p| p.default.is_none()) {
        if args.iter().any(|(n, _)| *n == p.name) {
            continue;
        }
        // What our operator asks for and ATen leaves open: there are no running statistics.
        if p.kind != Kind::OptTensor {
            return Err(not(node, format!("`{}` is missing", p.name)));
        }
        args.push((p.name, Arg::None));
    }
    Ok(Arg::Tensor(cx.call(op, &args, meta)))
}

/// A number as a tensor without dimensions: `zeros_like` of something, plus the number.
fn number_tensor(cx: &mut Cx<'_>, n: Scalar, node: &Node) -> Result<TensorId, Unsupported> {
    fill(cx, node, n, (DType::F32, Vec::new()))
}

fn int(i: i64) -> Arg {
    Arg::Number(Scalar::Int(i))
}

fn ints(all: impl IntoIterator<Item = i64>) -> Arg {
    Arg::Tuple(all.into_iter().map(int).collect())
}

/// Argument `at` of a node, by position or name.
fn take(cx: &mut Cx<'_>, node: &Node, at: usize, name: &str) -> Result<Arg, Unsupported> {
    match node.args.get(at).or_else(|| node.kwargs.get(name)) {
        Some(a) => cx.arg(a),
        None => Ok(Arg::None),
    }
}

fn take_tensor(cx: &mut Cx<'_>, node: &Node, at: usize, name: &str) -> Result<TensorId, Unsupported> {
    match take(cx, node, at, name)? {
        Arg::Tensor(id) => Ok(id),
        Arg::Number(n) => number_tensor(cx, n, node),
        _ => Err(not(node, format!("`{name}` is no tensor"))),
    }
}

fn take_int(cx: &mut Cx<'_>, node: &Node, at: usize, name: &str, default: i64) -> Result<i64, Unsupported> {
    match take(cx, node, at, name)? {
        Arg::Number(Scalar::Int(i)) => Ok(i),
        Arg::None => Ok(default),
        _ => Err(not(node, format!("`{name}` is no integer"))),
    }
}

fn take_ints(cx: &mut Cx<'_>, node: &Node, at: usize, name: &str) -> Result<Vec<i64>, Unsupported> {
    let wrong = || not(node, format!("`{name}` is no list of integers"));
    match take(cx, node, at, name)? {
        Arg::Number(Scalar::Int(i)) => Ok(vec![i]),
        Arg::None => Ok(Vec::new()),
        Arg::Tuple(all) => all
            .iter()
            .map(|a| match a {
                Arg::Number(Scalar::Int(i)) => Ok(*i),
                _ => Err(wrong()),
            })
            .collect(),
        _ => Err(wrong()),
    }
}

/// A dimension counted from the front.
fn dimension(node: &Node, d: i64, rank: usize) -> Result<usize, Unsupported> {
    let n = i64::try_from(rank).unwrap_or(i64::MAX);
    let at = if d < 0 { d.saturating_add(n) } else { d };
    usize::try_from(at).ok().filter(|at| *at < rank).ok_or_else(|| not(node, format!("no dimension {d}")))
}

fn size(node: &Node, n: u64) -> Result<i64, Unsupported> {
    i64::try_from(n).map_err(|_| not(node, format!("the size {n}")))
}

fn shape_arg(node: &Node, shape: &[u64]) -> Result<Arg, Unsupported> {
    Ok(ints(shape.iter().map(|&n| size(node, n)).collect::<Result<Vec<_>, _>>()?))
}

fn rsub(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    let (x, y) = (take(cx, node, 0, "self")?, take(cx, node, 1, "other")?);
    if !matches!(take(cx, node, 2, "alpha")?, Arg::None | Arg::Number(Scalar::Int(1))) {
        return Err(not(node, "the argument `alpha`"));
    }
    direct(cx, node, &ops::math::sub::OP, vec![("input", y), ("other", x)])
}

fn div_mode(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    let both = vec![("input", take(cx, node, 0, "self")?), ("other", take(cx, node, 1, "other")?)];
    match take(cx, node, 2, "rounding_mode")? {
        Arg::None => direct(cx, node, &ops::math::div::OP, both),
        Arg::Text(t) if t == "floor" => direct(cx, node, &ops::math::floor_divide::OP, both),
        _ => Err(not(node, "this `rounding_mode`")),
    }
}

fn square(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    let x = take(cx, node, 0, "self")?;
    direct(cx, node, &ops::math::mul::OP, vec![("input", x.clone()), ("other", x)])
}

fn masked_fill(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    let (x, mask) = (take(cx, node, 0, "self")?, take(cx, node, 1, "mask")?);
    match take(cx, node, 2, "value")? {
        Arg::Tensor(v) => {
            let args = vec![("condition", mask), ("input", Arg::Tensor(v)), ("other", x)];
            direct(cx, node, &ops::math::where_op::OP, args)
        }
        value => direct(
            cx,
            node,
            &ops::math::masked_fill::OP,
            vec![("input", x), ("mask", mask), ("value", value)],
        ),
    }
}

/// `not x`: whether it is zero.
fn logical_not(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    let x = take(cx, node, 0, "self")?;
    let boolean = cx.tensor(&x).is_some_and(|t| t.dtype == DType::Bool);
    if crate::inplace::base(&node.op).starts_with("bitwise") && !boolean {
        return Err(not(node, "bits of integers"));
    }
    direct(cx, node, &ops::math::eq::OP, vec![("input", x), ("other", int(0))])
}

/// `x and y` of flags: their product is not zero.
fn logical_and(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    let (x, y) = (take(cx, node, 0, "self")?, take(cx, node, 1, "other")?);
    let boolean = |a: &Arg| cx.tensor(a).is_some_and(|t| t.dtype == DType::Bool);
    if !(boolean(&x) && boolean(&y)) {
        return Err(not(node, "operands that are no flags"));
    }
    direct(cx, node, &ops::math::minimum::OP, vec![("input", x), ("other", y)])
}

/// `x.copy_(y)`: the values of `y` from then on.
fn copied(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    let y = take_tensor(cx, node, 1, "src")?;
    let meta = cx.meta(node, 0)?;
    if cx.tensors[y].dtype != meta.0 {
        return Err(not(node, "a copy between element types"));
    }
    expand_to(cx, node, y, meta.1).map(Arg::Tensor)
}

fn addmm(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    let one = |a: Arg| matches!(a, Arg::None | Arg::Number(Scalar::Int(1)));
    if !(one(take(cx, node, 3, "beta")?) && one(take(cx, node, 4, "alpha")?)) {
        return Err(not(node, "factors other than 1"));
    }
    let (bias, a, b) =
        (take(cx, node, 0, "self")?, take_tensor(cx, node, 1, "mat1")?, take_tensor(cx, node, 2, "mat2")?);
    let meta = cx.meta(node, 0)?;
    let product =
        cx.call(&ops::linalg::matmul::OP, &[("input", Arg::Tensor(a)), ("other", Arg::Tensor(b))], meta);
    direct(cx, node, &ops::math::add::OP, vec![("input", Arg::Tensor(product)), ("other", bias)])
}

/// `convolution` of the core operators, which is a convolution or a transposed one.
fn convolution(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    let transposed = take(cx, node, 6, "transposed")? == Arg::Number(Scalar::Bool(true));
    let x = take_tensor(cx, node, 0, "input")?;
    let op = match (cx.tensors[x].shape.len(), transposed) {
        (3, false) => &ops::linalg::conv1d::OP,
        (4, false) => &ops::linalg::conv2d::OP,
        (5, false) => &ops::linalg::conv3d::OP,
        (3, true) => &ops::linalg::conv_transpose1d::OP,
        (4, true) => &ops::linalg::conv_transpose2d::OP,
        (5, true) => &ops::linalg::conv_transpose3d::OP,
        (rank, _) => return Err(not(node, format!("an input of {rank} dimensions"))),
    };
    let mut args = vec![("input", Arg::Tensor(x))];
    for (at, name) in
        [(1, "weight"), (2, "bias"), (3, "stride"), (4, "padding"), (5, "dilation"), (8, "groups")]
    {
        args.push((name, take(cx, node, at, name)?));
    }
    if transposed {
        args.push(("output_padding", take(cx, node, 7, "output_padding")?));
    }
    direct(cx, node, op, args)
}

/// The pair of values and indices, of which only the values can be had.
fn max_pool_with_indices(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    if cx.reads_item(node, 1) {
        return Err(not(node, "the indices of a pool"));
    }
    let op = if crate::inplace::base(&node.op).starts_with("max_pool2d") {
        &ops::pool::max_pool2d::OP
    } else {
        &ops::pool::max_pool3d::OP
    };
    let args = named(cx, node, MAX_POOL)?;
    Ok(Arg::Tuple(vec![direct(cx, node, op, args)?, Arg::None]))
}

/// A normalisation that also gives its moments, which nothing here reads.
fn only_first(cx: &Cx<'_>, node: &Node) -> Result<(), Unsupported> {
    let more = i64::try_from(node.outputs.len()).unwrap_or(i64::MAX);
    if (1..more).any(|k| cx.reads_item(node, k)) {
        return Err(not(node, "the moments of a normalisation"));
    }
    Ok(())
}

fn native_layer_norm(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    only_first(cx, node)?;
    let args = named(cx, node, "input normalized_shape weight bias eps")?;
    Ok(Arg::Tuple(vec![direct(cx, node, &ops::norm::layer_norm::OP, args)?]))
}

fn native_group_norm(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    only_first(cx, node)?;
    let args = named(cx, node, "input weight bias N- C- HxW- group=num_groups eps")?;
    Ok(Arg::Tuple(vec![direct(cx, node, &ops::norm::group_norm::OP, args)?]))
}

/// Running statistics are read only where the input's own do not count; that they are updated is not judged.
fn batch_norm(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    let instance = crate::inplace::base(&node.op) == "instance_norm";
    let (op, flag, own, all) = if instance {
        (
            &ops::norm::instance_norm::OP,
            "use_input_stats",
            "input weight bias running_mean- running_var- use_input_stats momentum- eps cudnn_enabled-",
            "input weight bias running_mean running_var use_input_stats momentum- eps cudnn_enabled-",
        )
    } else {
        (
            &ops::norm::batch_norm::OP,
            "training",
            "input weight bias running_mean- running_var- training momentum- eps cudnn_enabled-",
            "input weight bias running_mean running_var training momentum- eps cudnn_enabled-",
        )
    };
    let training = take(cx, node, 5, flag)? == Arg::Number(Scalar::Bool(true));
    let args = named(cx, node, if training { own } else { all })?;
    direct(cx, node, op, args)
}

fn native_batch_norm(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    only_first(cx, node)?;
    let spec = if node.op.ends_with(".no_stats") {
        "input weight bias training momentum- eps"
    } else {
        "input weight bias running_mean- running_var- training momentum- eps"
    };
    // Position 5 is the flag with statistics, 3 without.
    let at = if node.op.ends_with(".no_stats") { 3 } else { 5 };
    if take(cx, node, at, "training")? != Arg::Number(Scalar::Bool(true)) {
        return Err(not(node, "running statistics"));
    }
    let args = named(cx, node, spec)?;
    Ok(Arg::Tuple(vec![direct(cx, node, &ops::norm::batch_norm::OP, args)?]))
}

/// `var` and `std` with a correction, or with the flag that means one.
fn spread(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    let op =
        if crate::inplace::base(&node.op) == "var" { &ops::reduce::var::OP } else { &ops::reduce::std::OP };
    let mut args = vec![("input", take(cx, node, 0, "self")?)];
    let overload = node.op.rsplit('.').next().unwrap_or("");
    let biased = |a: Arg| if a == Arg::Number(Scalar::Bool(false)) { int(0) } else { Arg::None };
    let correction = match overload {
        "default" => biased(take(cx, node, 1, "unbiased")?),
        "dim" | "correction" => {
            args.push(("dim", take(cx, node, 1, "dim")?));
            args.push(("keepdim", take(cx, node, 3, "keepdim")?));
            match overload {
                "dim" => biased(take(cx, node, 2, "unbiased")?),
                _ => take(cx, node, 2, "correction")?,
            }
        }
        _ => return Err(not(node, "this overload")),
    };
    args.push(("correction", correction));
    direct(cx, node, op, args)
}

/// `max` and `min` along a dimension: the pair of values and positions.
fn extreme(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    let op =
        if crate::inplace::base(&node.op) == "max" { &ops::reduce::max::OP } else { &ops::reduce::min::OP };
    let (dtype, shape) = cx.meta(node, 0)?;
    let x = take_tensor(cx, node, 0, "self")?;
    let mut args = vec![("input", Arg::Tensor(x)), ("dim", int(take_int(cx, node, 1, "dim", 0)?))];
    if let keep @ Arg::Number(_) = take(cx, node, 2, "keepdim")? {
        args.push(("keepdim", keep));
    }
    let wanted = [cx.reads_item(node, 0), cx.reads_item(node, 1)];
    let made = cx.call_pair(op, &args, &shape, dtype, wanted);
    Ok(Arg::Tuple(made.into_iter().map(|id| id.map_or(Arg::None, Arg::Tensor)).collect()))
}

fn loss(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    let (op, spec): (&'static Op, &'static str) = match crate::inplace::base(&node.op) {
        "mse_loss" => (&ops::loss::mse_loss::OP, "self=input target reduction"),
        "l1_loss" => (&ops::loss::l1_loss::OP, "self=input target reduction"),
        "smooth_l1_loss" => (&ops::loss::smooth_l1_loss::OP, "self=input target reduction beta"),
        "huber_loss" => (&ops::loss::huber_loss::OP, "self=input target reduction delta"),
        "kl_div" => (&ops::loss::kl_div::OP, "self=input target reduction log_target"),
        "cross_entropy_loss" => {
            (&ops::loss::cross_entropy::OP, "self=input target weight reduction ignore_index label_smoothing")
        }
        _ => (&ops::loss::triplet_margin_loss::OP, "anchor positive negative margin p eps swap reduction"),
    };
    let args = named(cx, node, spec)?
        .into_iter()
        .map(|(name, a)| match (name, a) {
            ("reduction", Arg::Number(Scalar::Int(k))) => {
                let word = ["none", "mean", "sum"].get(usize::try_from(k).unwrap_or(9));
                let word = word.ok_or_else(|| not(node, format!("the reduction {k}")))?;
                Ok((name, Arg::Text((*word).to_owned())))
            }
            other => Ok(other),
        })
        .collect::<Result<Vec<_>, Unsupported>>()?;
    direct(cx, node, op, args)
}

/// Any operator that keeps the elements in row-major order.
fn reshaped(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    let x = take_tensor(cx, node, 0, "self")?;
    let (dtype, shape) = cx.meta(node, 0)?;
    let t = &cx.tensors[x];
    if t.dtype != dtype || assay_tensor::numel(&t.shape) != assay_tensor::numel(&shape) {
        return Err(not(node, "another element type or number of elements"));
    }
    Ok(Arg::Tensor(cx.reshaped(x, shape)))
}

fn same(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    take(cx, node, 0, "self")
}

fn nothing(_: &mut Cx<'_>, _: &Node) -> Result<Arg, Unsupported> {
    Ok(Arg::None)
}

/// Another element type: only numbers become floats, since the language has no conversion but arithmetic.
fn converted(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    let x = take(cx, node, 0, "self")?;
    let Arg::Tensor(id) = x else { return Ok(x) };
    let (dtype, shape) = cx.meta(node, 0)?;
    match (cx.tensors[id].dtype, dtype) {
        (a, b) if a == b => Ok(x),
        (_, DType::F32) => {
            let args = [("input", x), ("other", Arg::Number(Scalar::Float(1.0)))];
            Ok(Arg::Tensor(cx.call(&ops::math::mul::OP, &args, (dtype, shape))))
        }
        (_, DType::Bool) => {
            let args = [("input", x), ("other", int(0))];
            Ok(Arg::Tensor(cx.call(&ops::math::ne::OP, &args, (dtype, shape))))
        }
        (a, b) => Err(not(node, format!("a conversion from {a} to {b}"))),
    }
}

fn expand_to(cx: &mut Cx<'_>, node: &Node, x: TensorId, shape: Vec<u64>) -> Result<TensorId, Unsupported> {
    if cx.tensors[x].shape == shape {
        return Ok(x);
    }
    let dtype = cx.tensors[x].dtype;
    if assay_tensor::numel(&cx.tensors[x].shape) == assay_tensor::numel(&shape) {
        return Ok(cx.reshaped(x, shape));
    }
    let args = [("input", Arg::Tensor(x)), ("size", shape_arg(node, &shape)?)];
    Ok(cx.call(&ops::shape::expand::OP, &args, (dtype, shape)))
}

fn expanded(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    let x = take_tensor(cx, node, 0, "self")?;
    let (_, shape) = cx.meta(node, 0)?;
    expand_to(cx, node, x, shape).map(Arg::Tensor)
}

fn broadcast(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    let Arg::Tuple(all) = take(cx, node, 0, "tensors")? else {
        return Err(not(node, "`tensors` is no list"));
    };
    let mut out = Vec::new();
    for (k, a) in all.into_iter().enumerate() {
        let Arg::Tensor(id) = a else { return Err(not(node, "an item is no tensor")) };
        let (_, shape) = cx.meta(node, k)?;
        out.push(Arg::Tensor(expand_to(cx, node, id, shape)?));
    }
    Ok(Arg::Tuple(out))
}

/// The dimensions in reverse order.
fn reversed(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    let x = take_tensor(cx, node, 0, "self")?;
    let rank = cx.tensors[x].shape.len();
    if rank < 2 {
        return Ok(Arg::Tensor(x));
    }
    let dims = ints((0..rank).rev().map(|d| i64::try_from(d).unwrap_or(0)));
    direct(cx, node, &ops::shape::permute::OP, vec![("input", Arg::Tensor(x)), ("dims", dims)])
}

fn narrowed(
    cx: &mut Cx<'_>,
    node: &Node,
    x: TensorId,
    d: usize,
    start: u64,
    len: u64,
) -> Result<TensorId, Unsupported> {
    let mut shape = cx.tensors[x].shape.clone();
    if start == 0 && shape[d] == len {
        return Ok(x);
    }
    shape[d] = len;
    let args = [
        ("input", Arg::Tensor(x)),
        ("dim", int(size(node, d as u64)?)),
        ("start", int(size(node, start)?)),
        ("length", int(size(node, len)?)),
    ];
    let dtype = cx.tensors[x].dtype;
    Ok(cx.call(&ops::shape::narrow::OP, &args, (dtype, shape)))
}

/// A range with steps; steps of more than one take the first of every so many.
fn slice(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    let x = take_tensor(cx, node, 0, "self")?;
    let shape = cx.tensors[x].shape.clone();
    let d = dimension(node, take_int(cx, node, 1, "dim", 0)?, shape.len())?;
    let n = size(node, shape[d])?;
    let bound = |i: i64| (if i < 0 { i.saturating_add(n) } else { i }).clamp(0, n);
    let start = bound(take_int(cx, node, 2, "start", 0)?);
    let end = bound(take_int(cx, node, 3, "end", i64::MAX)?).max(start);
    let step = take_int(cx, node, 4, "step", 1)?;
    let (dtype, wanted) = cx.meta(node, 0)?;
    if step == 1 {
        let (start, len) = (start as u64, (end - start) as u64);
        return narrowed(cx, node, x, d, start, len).map(Arg::Tensor);
    }
    let Some(step) = u64::try_from(step).ok().filter(|s| *s > 1) else {
        return Err(not(node, format!("a step of {step}")));
    };
    let (start, groups) = (start as u64, wanted.get(d).copied().unwrap_or(0));
    // The first of every group of `step`; the last group may be cut short, then its first is taken by itself.
    let fits =
        |g: u64| g.checked_mul(step).and_then(|len| len.checked_add(start)).is_some_and(|e| e <= shape[d]);
    let whole = if fits(groups) { groups } else { groups.saturating_sub(1) };
    if groups == 0 || !fits(whole) {
        return Err(not(node, "a range that does not lie inside"));
    }
    let mut parts = Vec::new();
    if whole > 0 {
        let part = narrowed(cx, node, x, d, start, whole * step)?;
        let mut split = cx.tensors[part].shape.clone();
        split[d] = whole;
        split.insert(d + 1, step);
        let grouped = cx.reshaped(part, split);
        let args =
            [("input", Arg::Tensor(grouped)), ("dim", int(size(node, d as u64 + 1)?)), ("index", int(0))];
        let mut own = wanted.clone();
        own[d] = whole;
        parts.push(Arg::Tensor(cx.call(&ops::shape::select::OP, &args, (dtype, own))));
    }
    if whole < groups {
        parts.push(Arg::Tensor(narrowed(cx, node, x, d, start + whole * step, 1)?));
    }
    match parts.as_slice() {
        [one] => Ok(one.clone()),
        _ => {
            let args = [("tensors", Arg::Tuple(parts)), ("dim", int(size(node, d as u64)?))];
            Ok(Arg::Tensor(cx.call(&ops::shape::cat::OP, &args, (dtype, wanted))))
        }
    }
}

/// Consecutive parts, whose sizes the results have.
fn split(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    let x = take_tensor(cx, node, 0, "self")?;
    let rank = cx.tensors[x].shape.len();
    let d = dimension(node, take_int(cx, node, 2, "dim", 0)?, rank)?;
    let mut start = 0u64;
    let mut out = Vec::new();
    for k in 0..node.outputs.len() {
        let (_, shape) = cx.meta(node, k)?;
        let len = shape.get(d).copied().unwrap_or(0);
        if start + len > cx.tensors[x].shape[d] {
            return Err(not(node, "parts beyond the end"));
        }
        out.push(if cx.reads_item(node, k as i64) {
            Arg::Tensor(narrowed(cx, node, x, d, start, len)?)
        } else {
            Arg::None
        });
        start += len;
    }
    Ok(Arg::Tuple(out))
}

fn unbind(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    let x = take_tensor(cx, node, 0, "self")?;
    let rank = cx.tensors[x].shape.len();
    let d = dimension(node, take_int(cx, node, 1, "dim", 0)?, rank)?;
    let mut out = Vec::new();
    for k in 0..node.outputs.len() {
        let meta = cx.meta(node, k)?;
        let args = [
            ("input", Arg::Tensor(x)),
            ("dim", int(size(node, d as u64)?)),
            ("index", int(size(node, k as u64)?)),
        ];
        out.push(if cx.reads_item(node, k as i64) {
            Arg::Tensor(cx.call(&ops::shape::select::OP, &args, meta))
        } else {
            Arg::None
        });
    }
    Ok(Arg::Tuple(out))
}

/// The last elements of each dimension come first.
fn roll(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    let mut x = take_tensor(cx, node, 0, "self")?;
    let (shifts, dims) = (take_ints(cx, node, 1, "shifts")?, take_ints(cx, node, 2, "dims")?);
    if dims.len() != shifts.len() {
        return Err(not(node, "shifts without dimensions"));
    }
    for (shift, d) in shifts.into_iter().zip(dims) {
        let shape = cx.tensors[x].shape.clone();
        let d = dimension(node, d, shape.len())?;
        let n = size(node, shape[d])?;
        let Some(by) = (n > 0).then(|| shift.rem_euclid(n) as u64).filter(|by| *by > 0) else { continue };
        let last = narrowed(cx, node, x, d, shape[d] - by, by)?;
        let first = narrowed(cx, node, x, d, 0, shape[d] - by)?;
        let args = [
            ("tensors", Arg::Tuple(vec![Arg::Tensor(last), Arg::Tensor(first)])),
            ("dim", int(size(node, d as u64)?)),
        ];
        let dtype = cx.tensors[x].dtype;
        x = cx.call(&ops::shape::cat::OP, &args, (dtype, shape));
    }
    Ok(Arg::Tensor(x))
}

/// A constant around; negative widths cut.
fn pad(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    let mut x = take_tensor(cx, node, 0, "self")?;
    let widths = take_ints(cx, node, 1, "pad")?;
    let (at, mode) = if crate::inplace::base(&node.op) == "pad" {
        (3, take(cx, node, 2, "mode")?)
    } else {
        (2, Arg::None)
    };
    if !matches!(&mode, Arg::None) && mode != Arg::Text("constant".to_owned()) {
        return Err(not(node, "a pad by other than a constant"));
    }
    let value = match take(cx, node, at, "value")? {
        Arg::None => Scalar::Float(0.0),
        Arg::Number(n) => n,
        _ => return Err(not(node, "a pad by a tensor")),
    };
    let rank = cx.tensors[x].shape.len();
    for (k, both) in widths.chunks(2).enumerate() {
        let d = rank.checked_sub(k + 1).ok_or_else(|| not(node, "more widths than dimensions"))?;
        let (before, after) = (both[0], both.get(1).copied().unwrap_or(0));
        let n = cx.tensors[x].shape[d];
        let cut = |w: i64| w.min(0).unsigned_abs();
        let keep = n.checked_sub(cut(before)).and_then(|n| n.checked_sub(cut(after)));
        let keep = keep.ok_or_else(|| not(node, "more is cut than there is"))?;
        x = narrowed(cx, node, x, d, cut(before), keep)?;
        let mut parts = Vec::new();
        let mut shape = cx.tensors[x].shape.clone();
        let dtype = cx.tensors[x].dtype;
        for (w, first) in [(before, true), (after, false)] {
            if w > 0 {
                let mut own = shape.clone();
                own[d] = w.unsigned_abs();
                let block = Arg::Tensor(fill(cx, node, value, (dtype, own))?);
                parts.insert(if first { 0 } else { parts.len() }, block);
            }
            if first {
                parts.push(Arg::Tensor(x));
            }
        }
        if parts.len() > 1 {
            shape[d] += before.max(0).unsigned_abs() + after.max(0).unsigned_abs();
            let args = [("tensors", Arg::Tuple(parts)), ("dim", int(size(node, d as u64)?))];
            x = cx.call(&ops::shape::cat::OP, &args, (dtype, shape));
        }
    }
    Ok(Arg::Tensor(x))
}

/// A tensor of one number. The language makes tensors only like others, so the smallest there is gives its element, and
/// a number is put in its place.
fn fill(
    cx: &mut Cx<'_>,
    node: &Node,
    value: Scalar,
    (dtype, shape): (DType, Vec<u64>),
) -> Result<TensorId, Unsupported> {
    let like = (0..cx.tensors.len())
        .filter(|id| cx.tensors[*id].dtype == dtype && !cx.tensors[*id].shape.contains(&0))
        .min_by_key(|id| assay_tensor::numel(&cx.tensors[*id].shape).unwrap_or(u64::MAX));
    let like = like.ok_or_else(|| not(node, "a constant before any tensor of its element type"))?;
    // One element of it, whatever its shape.
    let count = assay_tensor::numel(&cx.tensors[like].shape).unwrap_or(0);
    let flat = cx.reshaped(like, vec![count]);
    let first = narrowed(cx, node, flat, 0, 0, 1)?;
    let zero = cx.call(&ops::shape::zeros_like::OP, &[("input", Arg::Tensor(first))], (dtype, vec![1]));
    let number = if value.to_f64() == 0.0 {
        zero
    } else {
        let args = [("input", Arg::Tensor(zero)), ("other", Arg::Number(value))];
        cx.call(&ops::math::add::OP, &args, (dtype, vec![1]))
    };
    if shape.is_empty() {
        return Ok(cx.reshaped(number, shape));
    }
    let ones = cx.reshaped(number, vec![1; shape.len()]);
    expand_to(cx, node, ones, shape)
}

fn filled(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    let value = match crate::inplace::base(&node.op) {
        "zeros" => Scalar::Float(0.0),
        "ones" => Scalar::Float(1.0),
        _ => match take(cx, node, 1, "fill_value")? {
            Arg::Number(n) => n,
            _ => return Err(not(node, "a fill by a tensor")),
        },
    };
    let meta = cx.meta(node, 0)?;
    let value = match meta.0 {
        DType::F32 => Scalar::Float(value.to_f64()),
        DType::I64 => Scalar::Int(value.to_f64() as i64),
        _ => return Err(not(node, "flags of one value")),
    };
    fill(cx, node, value, meta).map(Arg::Tensor)
}

/// A number, which stays one.
fn scalar(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    take(cx, node, 0, "s")
}

fn item(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    let of = take(cx, node, 0, "0")?;
    let at = take_int(cx, node, 1, "1", 0)?;
    let found = match &of {
        Arg::Tuple(all) => usize::try_from(at).ok().and_then(|at| all.get(at)),
        _ => None,
    };
    match found {
        Some(Arg::None) | None => Err(not(node, format!("item {at} of what it reads"))),
        Some(a) => Ok(a.clone()),
    }
}

/// In training, elements survive with a probability and are scaled up; which do is an input.
fn dropout(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    let native = crate::inplace::base(&node.op) == "native_dropout";
    let x = take(cx, node, 0, "input")?;
    let p = match take(cx, node, 1, "p")? {
        Arg::Number(n) => n.to_f64(),
        _ => return Err(not(node, "`p` is no number")),
    };
    let training = take(cx, node, 2, "train")? == Arg::Number(Scalar::Bool(true));
    let kept = |a: Arg| if native { Arg::Tuple(vec![a, Arg::None]) } else { a };
    if !training || p == 0.0 {
        return Ok(kept(x));
    }
    if !(0.0..1.0).contains(&p) {
        return Err(not(node, format!("the probability {p}")));
    }
    if native && cx.reads_item(node, 1) {
        return Err(not(node, "the mask of a dropout"));
    }
    let (dtype, shape) = cx.meta(node, 0)?;
    // A flag each, so that no input of an audit makes it anything but a mask.
    let mask = cx.random("mask", DType::Bool, shape.clone(), format!("bernoulli({:?})", 1.0 - p));
    let args = [("input", Arg::Tensor(mask)), ("other", Arg::Number(Scalar::Float(1.0 - p)))];
    let noise = cx.call(&ops::math::div::OP, &args, (dtype, shape.clone()));
    let args = [("input", x), ("other", Arg::Tensor(noise))];
    Ok(kept(Arg::Tensor(cx.call(&ops::math::mul::OP, &args, (dtype, shape)))))
}

/// Random numbers that the forward pass draws.
fn random(cx: &mut Cx<'_>, node: &Node) -> Result<Arg, Unsupported> {
    let (dtype, shape) = cx.meta(node, 0)?;
    if dtype != DType::F32 {
        return Err(not(node, "random numbers other than float32"));
    }
    let init = if crate::inplace::base(&node.op).starts_with("randn") { "randn" } else { "rand" };
    Ok(Arg::Tensor(cx.random("noise", dtype, shape, init.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn rows_are_unique_and_name_operators_and_parameters_that_exist() {
        let mut seen = BTreeSet::new();
        for r in ATEN {
            assert!(seen.insert(r.aten), "`{}` appears twice", r.aten);
            let How::One(ours, spec) = r.how else { continue };
            let op = ops::find(ours).unwrap_or_else(|| panic!("`{}`: no operator `{ours}`", r.aten));
            for slot in spec.split(' ').filter(|s| !s.ends_with(['-', '!'])) {
                let name = slot.split('=').next_back().unwrap();
                assert!(op.params.iter().any(|p| p.name == name), "`{}`: `{ours}` has no `{name}`", r.aten);
            }
        }
    }

    #[test]
    fn an_overload_of_its_own_comes_first_and_in_place_operators_have_their_functions_row() {
        let of = |op: &str| row(op).map(|r| r.aten);
        assert_eq!(of("aten.add_.Tensor"), Some("add"));
        assert_eq!(of("aten.sum.dim_IntList"), Some("sum"));
        assert_eq!(of("aten.sum.default"), Some("sum.default"));
        assert_eq!(of("aten._softmax.default"), Some("_softmax"));
        assert_eq!(of("getitem"), Some("getitem"));
        assert_eq!(of("aten.max_unpool2d.default"), None);
        assert_eq!(of("aten.conv2d.padding"), None);
    }
}
