//! How a case of each operator is drawn: its inputs, their shapes, and a program that calls it.
//!
//! To add an operator: its name in a row of [`ROWS`], unless it works on the elements of one tensor alone. A generator draws what PyTorch accepts as a rule, and now and then
//! what it refuses; shapes with empty and size-1 dimensions come by themselves.

use assay_ops::op::Kind;
use assay_tensor::DType;

use super::draw::{Case, Draw, Values};

/// Draws a case of the operator of that name.
pub type Generator = fn(Draw, &str) -> Case;

/// Which generator draws for which operators. Those on the elements of one tensor alone have no row: [`unary`] draws for
/// them.
pub const ROWS: &[(&[&str], Generator)] = &[
    (&["leaky_relu"], leaky_relu),
    (&["elu"], elu),
    (&["hardtanh"], hardtanh),
    (&["softplus"], softplus),
    (&["gelu"], gelu),
    (&["softmax", "log_softmax"], softmax),
    (&["add", "sub"], add),
    (&["mul", "div", "maximum", "minimum"], binary),
    (&["floor_divide", "remainder"], divide),
    (&["lt", "le", "gt", "ge", "eq", "ne"], compare),
    (&["pow"], pow),
    (&["clamp"], clamp),
    (&["where"], where_),
    (&["masked_fill"], masked_fill),
    (&["matmul"], matmul),
    (&["mm"], mm),
    (&["mv"], mv),
    (&["bmm"], bmm),
    (&["linear"], linear),
    (&["conv1d", "conv2d", "conv3d"], conv),
    (&["conv_transpose1d", "conv_transpose2d", "conv_transpose3d"], conv_transpose),
    (&["einsum"], einsum),
    (&["scaled_dot_product_attention"], attention),
    (&["max_pool1d", "max_pool2d", "max_pool3d"], max_pool),
    (&["avg_pool1d", "avg_pool2d", "avg_pool3d"], avg_pool),
    (&["adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"], adaptive),
    (&["layer_norm", "rms_norm"], layer_norm),
    (&["group_norm"], group_norm),
    (&["instance_norm"], instance_norm),
    (&["batch_norm"], batch_norm),
    (&["sum", "mean", "amax", "amin", "logsumexp"], reduce),
    (&["var", "std"], var),
    (&["prod", "argmax", "argmin"], reduce_one),
    (&["max", "min"], max),
    (&["cumsum", "cumprod"], scan),
    (&["norm"], norm),
    (&["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"], loss),
    (&["kl_div"], kl_div),
    (&["cross_entropy"], cross_entropy),
    (&["triplet_margin_loss"], triplet),
    (&["transpose", "permute", "flip", "squeeze", "unsqueeze", "flatten"], moves),
    (&["reshape", "view", "expand"], reshape),
    (&["triu", "tril"], triangle),
    (&["cat", "stack"], join),
    (&["narrow", "select"], cut),
];

/// The generator of an operator.
pub fn generator(operator: &str) -> Option<Generator> {
    let row = ROWS.iter().find(|(names, _)| names.contains(&operator)).map(|(_, g)| *g);
    row.or_else(|| is_unary(operator).then_some(unary as Generator))
}

/// Is it an operator on the elements of one tensor, without parameters?
fn is_unary(operator: &str) -> bool {
    let one = |op: &&assay_ops::Op| {
        op.name == operator && matches!(op.params, [p] if matches!(p.kind, Kind::Tensor | Kind::Operand))
    };
    assay_ops::sampled::is_pointwise(operator) && assay_ops::OPS.iter().any(one)
}

/// A tuple as Python writes it.
fn tuple<T: std::fmt::Display>(items: &[T]) -> String {
    let list: Vec<String> = items.iter().map(ToString::to_string).collect();
    if list.len() == 1 { format!("({},)", list[0]) } else { format!("({})", list.join(", ")) }
}

/// One integer for all, or one for each, as Python writes it.
fn ints(d: &mut Draw, items: &[u64]) -> String {
    let alike = items.windows(2).all(|w| w[0] == w[1]);
    match items {
        [first, ..] if alike && d.chance(50) => first.to_string(),
        _ => tuple(items),
    }
}

fn unary(mut d: Draw, op: &str) -> Case {
    let shape = d.shape(0, 3);
    if d.chance(10) {
        d.ints("x", &shape, -3, 3);
    } else {
        d.float("x", &shape, Values::Wild);
    }
    d.case(format!("y = {op}(x)"), &["y"])
}

fn wild(d: &mut Draw) {
    let shape = d.shape(0, 3);
    d.float("x", &shape, Values::Wild);
}

fn leaky_relu(mut d: Draw, op: &str) -> Case {
    wild(&mut d);
    let slope = d.pick(&["", ", negative_slope=0.2", ", 1.5", ", negative_slope=0", ", -0.5"]);
    d.case(format!("y = {op}(x{slope})"), &["y"])
}

fn elu(mut d: Draw, op: &str) -> Case {
    wild(&mut d);
    let alpha = d.pick(&["", ", alpha=0.7", ", 2", ", alpha=-0.5"]);
    d.case(format!("y = {op}(x{alpha})"), &["y"])
}

fn hardtanh(mut d: Draw, op: &str) -> Case {
    wild(&mut d);
    let bounds = d.pick(&["", ", -2, 0.5", ", min_val=0.0, max_val=6.0", ", max_val=3.0"]);
    d.case(format!("y = {op}(x{bounds})"), &["y"])
}

fn softplus(mut d: Draw, op: &str) -> Case {
    wild(&mut d);
    let more = d.pick(&["", ", beta=2", ", beta=0.5, threshold=5.0", ", 1, 3"]);
    d.case(format!("y = {op}(x{more})"), &["y"])
}

fn gelu(mut d: Draw, op: &str) -> Case {
    wild(&mut d);
    let more = d.pick(&["", ", approximate='tanh'", ", approximate='none'"]);
    d.case(format!("y = {op}(x{more})"), &["y"])
}

fn softmax(mut d: Draw, op: &str) -> Case {
    let shape = d.shape(0, 3);
    let values = d.pick(&[Values::Normal(3.0), Values::Normal(1e3), Values::Special, Values::Ties]);
    d.float("x", &shape, values);
    let dim = d.dim(shape.len());
    d.case(format!("y = {op}(x, dim={dim})"), &["y"])
}

/// Two operands that broadcast: tensors of any kind, or a tensor and a number. Their texts.
fn operands(d: &mut Draw, values: Values, numbers: &[&'static str]) -> (String, String) {
    let shape = d.shape(0, 3);
    let tensor = |d: &mut Draw, name: &str, shape: &[u64]| match d.below(12) {
        0 => d.ints(name, shape, -4, 4),
        1 => d.bools(name, shape),
        _ => d.float(name, shape, values),
    };
    tensor(d, "a", &shape);
    if d.chance(25) {
        let number = d.pick(numbers).to_owned();
        return if d.chance(40) { (number, "a".into()) } else { ("a".into(), number) };
    }
    let other = d.partner(&shape);
    tensor(d, "b", &other);
    if d.chance(50) { ("a".into(), "b".into()) } else { ("b".into(), "a".into()) }
}

/// The operator between its operands where the language has a sign for it, else a call.
fn written(d: &mut Draw, op: &str, a: &str, b: &str) -> String {
    let sign = match op {
        "add" => "+",
        "sub" => "-",
        "mul" => "*",
        "div" => "/",
        "floor_divide" => "//",
        "remainder" => "%",
        "lt" => "<",
        "le" => "<=",
        "gt" => ">",
        "ge" => ">=",
        "eq" => "==",
        "ne" => "!=",
        "pow" => "**",
        _ => "",
    };
    // PyTorch's functions take a tensor first, as a rule; the sign takes either.
    let number_first = a != "a" && a != "b";
    if sign.is_empty() || (!number_first && d.chance(50)) {
        return format!("y = {op}({a}, {b})");
    }
    let a = if a.starts_with('-') { format!("({a})") } else { a.to_owned() };
    let b = if b.starts_with('-') { format!("({b})") } else { b.to_owned() };
    format!("y = {a} {sign} {b}")
}

fn add(mut d: Draw, op: &str) -> Case {
    let scaled = d.chance(15);
    let values = if scaled { Values::Normal(2.0) } else { Values::Wild };
    let (a, b) = operands(&mut d, values, &["2", "0.3", "-1.5", "0"]);
    let both = a.len() + b.len() == 2 && a.chars().chain(b.chars()).all(char::is_alphabetic);
    if both && scaled {
        let alpha = d.pick(&["2", "0.5", "-3"]);
        return d.case(format!("y = {op}({a}, {b}, alpha={alpha})"), &["y"]);
    }
    let text = written(&mut d, op, &a, &b);
    d.case(text, &["y"])
}

fn binary(mut d: Draw, op: &str) -> Case {
    let (a, b) = operands(&mut d, Values::Wild, &["2", "0.3", "-1.5", "3"]);
    let text = written(&mut d, op, &a, &b);
    d.case(text, &["y"])
}

fn divide(mut d: Draw, op: &str) -> Case {
    let values = d.pick(&[Values::Normal(5.0), Values::Special, Values::Ties]);
    let (a, b) = operands(&mut d, values, &["2", "0.7", "-1.5", "-3"]);
    let text = written(&mut d, op, &a, &b);
    d.case(text, &["y"])
}

fn compare(mut d: Draw, op: &str) -> Case {
    let values = d.pick(&[Values::Ties, Values::Special, Values::Wild]);
    let (a, b) = operands(&mut d, values, &["0", "0.5", "-1", "1"]);
    let text = written(&mut d, op, &a, &b);
    d.case(text, &["y"])
}

fn pow(mut d: Draw, op: &str) -> Case {
    let values = d.pick(&[Values::Positive, Values::Normal(2.0), Values::Special, Values::Wild]);
    let (a, b) = operands(&mut d, values, &["2", "3", "0.5", "-0.5", "-1", "-2", "0", "1.7", "4"]);
    let text = written(&mut d, op, &a, &b);
    d.case(text, &["y"])
}

fn clamp(mut d: Draw, op: &str) -> Case {
    let shape = d.shape(0, 3);
    d.float("x", &shape, Values::Wild);
    let text = if d.chance(30) {
        let (low, high) = (d.partner(&shape), d.partner(&shape));
        d.float("a", &low, Values::Special);
        d.float("b", &high, Values::Special);
        d.pick(&["min=a", "max=b", "min=a, max=b", "a, b"])
    } else {
        d.pick(&["min=0", "max=0.25", "-1.0, 2.0", "min=2.0, max=1.0", "-1, 1", "min=-0.5"])
    };
    d.case(format!("y = {op}(x, {text})"), &["y"])
}

fn where_(mut d: Draw, op: &str) -> Case {
    let shape = d.shape(0, 3);
    let condition = d.partner(&shape);
    d.bools("c", &condition);
    d.float("x", &shape, Values::Special);
    let other = if d.chance(60) {
        let other = d.partner(&shape);
        d.float("z", &other, Values::Special);
        "z"
    } else {
        d.pick(&["0.25", "inf", "-1.0"])
    };
    let args = if d.chance(50) { format!("x, {other}") } else { format!("{other}, x") };
    d.case(format!("y = {op}(c, {args})"), &["y"])
}

fn masked_fill(mut d: Draw, op: &str) -> Case {
    let shape = d.shape(0, 3);
    let mask = d.partner(&shape);
    if d.chance(15) {
        d.ints("x", &shape, -5, 5);
    } else {
        d.float("x", &shape, Values::Special);
    }
    d.bools("m", &mask);
    let value = d.pick(&["0.0", "2", "-inf", "0.25", "nan"]);
    d.case(format!("y = {op}(x, m, {value})"), &["y"])
}

/// What the factors of sums of products are like.
const FACTORS: &[Values] =
    &[Values::Normal(1.0), Values::Normal(1.0), Values::Positive, Values::Ties, Values::Special];

fn matmul(mut d: Draw, op: &str) -> Case {
    let (m, k, n) = (d.extent(), d.extent(), d.extent());
    let values = d.pick(FACTORS);
    let batch = d.shape_of(2).iter().map(|&e| e.min(3)).collect::<Vec<_>>();
    let lead = |d: &mut Draw| if d.chance(40) { d.partner(&batch) } else { Vec::new() };
    let mut a = if d.chance(15) { vec![k] } else { [lead(&mut d), vec![m, k]].concat() };
    let b = if d.chance(15) { vec![k] } else { [lead(&mut d), vec![k, n]].concat() };
    if d.chance(3) {
        a[0] += 1;
    }
    d.float("a", &a, values);
    d.float("b", &b, values);
    let text = if d.chance(50) { format!("y = {op}(a, b)") } else { "y = a @ b".into() };
    d.case(text, &["y"])
}

fn mm(mut d: Draw, op: &str) -> Case {
    let (m, k, n) = (d.extent(), d.extent(), d.extent());
    let values = d.pick(FACTORS);
    d.float("a", &[m, k], values);
    d.float("b", &[k, n], values);
    d.case(format!("y = {op}(a, b)"), &["y"])
}

fn mv(mut d: Draw, op: &str) -> Case {
    let (m, k) = (d.extent(), d.extent());
    let values = d.pick(FACTORS);
    d.float("a", &[m, k], values);
    d.float("v", &[k], values);
    d.case(format!("y = {op}(a, v)"), &["y"])
}

fn bmm(mut d: Draw, op: &str) -> Case {
    let (b, m, k, n) = (d.extent().min(5), d.extent(), d.extent(), d.extent());
    let values = d.pick(FACTORS);
    d.float("a", &[b, m, k], values);
    d.float("b", &[b, k, n], values);
    d.case(format!("y = {op}(a, b)"), &["y"])
}

fn linear(mut d: Draw, op: &str) -> Case {
    let (k, n) = (d.extent(), d.some());
    let values = d.pick(FACTORS);
    let lead = d.shape(0, 2);
    let lead: Vec<u64> = lead.iter().map(|&e| e.min(9)).collect();
    d.float("x", &[lead, vec![k]].concat(), values);
    d.float("w", &[n, k], values);
    if d.chance(50) {
        d.float("b", &[n], values);
        return d.case(format!("y = {op}(x, w, b)"), &["y"]);
    }
    d.case(format!("y = {op}(x, w)"), &["y"])
}

/// The spatial dimensions that a name such as `conv2d` ends with.
fn spatial(op: &str) -> usize {
    op.bytes().rev().nth(1).map_or(1, |b| usize::from(b.saturating_sub(b'0')))
}

/// An argument for each spatial dimension, left out where it is the default everywhere.
fn argument(d: &mut Draw, name: &str, default: u64, values: &[u64]) -> String {
    if values.iter().all(|&v| v == default) && d.chance(70) {
        return String::new();
    }
    format!(", {name}={}", ints(d, values))
}

fn conv(mut d: Draw, op: &str) -> Case {
    let dims = spatial(op);
    let values = d.pick(FACTORS);
    let groups = d.pick(&[1, 1, 1, 2, 3]);
    let (c, o) = (d.between(1, 3) * groups, d.between(1, 3) * groups);
    let (mut size, mut kernel) = (Vec::new(), Vec::new());
    let (mut stride, mut padding, mut dilation) = (Vec::new(), Vec::new(), Vec::new());
    let most = [20, 11, 7][dims - 1];
    for _ in 0..dims {
        let (k, p, l) = (d.between(1, 3), d.pick(&[0, 0, 1, 2]), d.pick(&[1, 1, 2]));
        let reach = (k - 1) * l + 1;
        // Now and then a kernel that does not fit.
        let least = reach.saturating_sub(2 * p).max(1);
        size.push(if d.chance(2) { 1 } else { d.between(least, least.max(most)) });
        kernel.push(k);
        padding.push(p);
        dilation.push(l);
        stride.push(d.pick(&[1, 1, 2, 3]));
    }
    let batch = if d.chance(10) { Vec::new() } else { vec![d.pick(&[1, 1, 2, 3, 0])] };
    d.float("x", &[batch, vec![c], size].concat(), values);
    d.float("w", &[vec![o, c / groups], kernel].concat(), values);
    let bias = if d.chance(50) {
        d.float("b", &[o], values);
        "b"
    } else {
        "None"
    };
    let more = argument(&mut d, "stride", 1, &stride)
        + &argument(&mut d, "padding", 0, &padding)
        + &argument(&mut d, "dilation", 1, &dilation);
    let groups = if groups == 1 { String::new() } else { format!(", groups={groups}") };
    d.case(format!("y = {op}(x, w, {bias}{more}{groups})"), &["y"])
}

fn conv_transpose(mut d: Draw, op: &str) -> Case {
    let dims = spatial(op);
    let values = d.pick(FACTORS);
    let groups = d.pick(&[1, 1, 1, 2, 3]);
    let (c, o) = (d.between(1, 3) * groups, d.between(1, 3) * groups);
    let (mut size, mut kernel) = (Vec::new(), Vec::new());
    let (mut stride, mut padding, mut dilation, mut extra) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let most = [12, 6, 4][dims - 1];
    for _ in 0..dims {
        let (k, l, s) = (d.between(1, 4), d.pick(&[1, 1, 2]), d.pick(&[1, 1, 2, 3]));
        size.push(d.between(1, most));
        padding.push(d.pick(&[0, 0, 1]).min((k - 1) * l / 2));
        extra.push(d.pick(&[0, 0, 1]).min(s.max(l) - 1));
        kernel.push(k);
        stride.push(s);
        dilation.push(l);
    }
    let batch = if d.chance(10) { Vec::new() } else { vec![d.pick(&[1, 1, 2, 3, 0])] };
    d.float("x", &[batch, vec![c], size].concat(), values);
    d.float("w", &[vec![c, o / groups], kernel].concat(), values);
    let bias = if d.chance(50) {
        d.float("b", &[o], values);
        "b"
    } else {
        "None"
    };
    let more = argument(&mut d, "stride", 1, &stride)
        + &argument(&mut d, "padding", 0, &padding)
        + &argument(&mut d, "output_padding", 0, &extra)
        + &argument(&mut d, "dilation", 1, &dilation);
    let groups = if groups == 1 { String::new() } else { format!(", groups={groups}") };
    d.case(format!("y = {op}(x, w, {bias}{more}{groups})"), &["y"])
}

fn einsum(mut d: Draw, op: &str) -> Case {
    let equation = d.pick(&[
        "ij,jk->ik",
        "bij,bjk->bik",
        "bijl,lk->bijk",
        "ij->ji",
        "ij,ij->",
        "i,j->ij",
        "bhld,bhmd->bhlm",
        "ij->i",
        "ij,kj",
        "bij->b",
        "i,i->i",
        "ijk->kij",
        "bij,bij->bj",
    ]);
    let mut extents = std::collections::BTreeMap::new();
    let left = equation.split("->").next().unwrap_or_default();
    let values = d.pick(FACTORS);
    let mut names = Vec::new();
    for (i, letters) in left.split(',').enumerate() {
        let shape: Vec<u64> =
            letters.chars().map(|c| *extents.entry(c).or_insert_with(|| d.extent().min(9))).collect();
        let name = ["a", "b"][i.min(1)];
        d.float(name, &shape, values);
        names.push(name);
    }
    d.case(format!("y = {op}('{equation}', {})", tuple(&names)), &["y"])
}

fn attention(mut d: Draw, op: &str) -> Case {
    let lead: Vec<u64> = d.shape(0, 2).iter().map(|&e| e.clamp(1, 3)).collect();
    let (l, s, e, v) = (d.some().min(17), d.some().min(17), d.some().min(17), d.some().min(17));
    let values = d.pick(&[Values::Normal(1.0), Values::Normal(1.0), Values::Ties, Values::Normal(4.0)]);
    let with = |tail: [u64; 2]| [lead.clone(), tail.to_vec()].concat();
    d.float("q", &with([l, e]), values);
    d.float("k", &with([s, e]), values);
    d.float("v", &with([s, v]), values);
    let mut more = String::new();
    match d.below(4) {
        0 => more.push_str(", is_causal=True"),
        1 => {
            d.bools("m", &[l, s]);
            more.push_str(", attn_mask=m");
        }
        2 => {
            d.float("m", &[l, s], Values::Normal(1.0));
            more.push_str(", attn_mask=m");
        }
        _ => {}
    }
    if d.chance(25) {
        more.push_str(", scale=0.7");
    }
    d.case(format!("y = {op}(q, k, v{more})"), &["y"])
}

/// Batch, channels and spatial extents; now and then without a batch.
fn image(d: &mut Draw, dims: usize, least: &[u64]) -> Vec<u64> {
    let most = [24, 11, 7][dims - 1];
    let mut shape = if d.chance(15) { vec![] } else { vec![d.pick(&[1, 1, 2, 0])] };
    shape.push(d.between(1, 3));
    shape.extend(least.iter().map(|&l| d.between(l.max(1), l.max(most))));
    shape
}

fn max_pool(mut d: Draw, op: &str) -> Case {
    let dims = spatial(op);
    let (mut kernel, mut stride, mut padding, mut dilation, mut least) =
        (vec![], vec![], vec![], vec![], vec![]);
    for _ in 0..dims {
        let (k, l) = (d.between(1, 4), d.pick(&[1, 1, 1, 2]));
        let p = d.below(k / 2 + 1);
        least.push(((k - 1) * l + 1).saturating_sub(2 * p));
        kernel.push(k);
        stride.push(d.between(1, 3));
        padding.push(p);
        dilation.push(l);
    }
    let shape = image(&mut d, dims, &least);
    let values = d.pick(&[Values::Normal(1.0), Values::Special, Values::Ties]);
    d.float("x", &shape, values);
    let mut text = format!("x, {}", ints(&mut d, &kernel));
    if d.chance(60) {
        text += &format!(", stride={}", ints(&mut d, &stride));
    }
    text += &argument(&mut d, "padding", 0, &padding);
    text += &argument(&mut d, "dilation", 1, &dilation);
    if d.chance(35) {
        text += ", ceil_mode=True";
    }
    d.case(format!("y = {op}({text})"), &["y"])
}

fn avg_pool(mut d: Draw, op: &str) -> Case {
    let dims = spatial(op);
    let (mut kernel, mut stride, mut padding, mut least) = (vec![], vec![], vec![], vec![]);
    for _ in 0..dims {
        let k = d.between(1, 4);
        let p = d.below(k / 2 + 1);
        least.push(k.saturating_sub(2 * p));
        kernel.push(k);
        stride.push(d.between(1, 3));
        padding.push(p);
    }
    let shape = image(&mut d, dims, &least);
    let values = d.pick(&[Values::Normal(1.0), Values::Special, Values::Ties]);
    d.float("x", &shape, values);
    let mut text = format!("x, {}", ints(&mut d, &kernel));
    if d.chance(60) {
        text += &format!(", stride={}", ints(&mut d, &stride));
    }
    text += &argument(&mut d, "padding", 0, &padding);
    if d.chance(35) {
        text += ", ceil_mode=True";
    }
    if d.chance(35) {
        text += ", count_include_pad=False";
    }
    if dims > 1 && d.chance(20) {
        text += ", divisor_override=5";
    }
    d.case(format!("y = {op}({text})"), &["y"])
}

fn adaptive(mut d: Draw, op: &str) -> Case {
    let dims = spatial(op);
    let shape = image(&mut d, dims, &vec![1; dims]);
    let values = d.pick(&[Values::Normal(1.0), Values::Special]);
    d.float("x", &shape, values);
    let size: Vec<u64> = (0..dims).map(|_| d.between(1, 6)).collect();
    let size = ints(&mut d, &size);
    d.case(format!("y = {op}(x, {size})"), &["y"])
}

/// What normalised values are like.
const NORMALISED: &[Values] = &[Values::Normal(1.0), Values::Normal(30.0), Values::Positive, Values::Special];

fn layer_norm(mut d: Draw, op: &str) -> Case {
    d.without_repeats();
    let mut shape = d.shape(1, 4);
    let inner = d.between(1, shape.len() as u64) as usize;
    let at = shape.len() - inner;
    if shape[at..].iter().product::<u64>() < 3 {
        shape[at] = 5;
    }
    let tail = shape[at..].to_vec();
    let values = d.pick(NORMALISED);
    d.float("x", &shape, values);
    let mut text = format!("x, {}", tuple(&tail));
    if d.chance(50) {
        d.float("w", &tail, Values::Normal(1.0));
        text += ", weight=w";
        if op == "layer_norm" && d.chance(70) {
            d.float("b", &tail, Values::Normal(1.0));
            text += ", bias=b";
        }
    }
    text += d.pick(&["", ", eps=0.001", ", eps=0.1"]);
    d.case(format!("y = {op}({text})"), &["y"])
}

/// Batch, channels and up to three spatial extents with enough elements for a variance.
fn channels(d: &mut Draw, c: u64, least: u64) -> Vec<u64> {
    let spatial = d.shape(1, 2);
    let spatial: Vec<u64> = spatial.iter().map(|&e| e.min(16)).collect();
    let mut shape = [vec![d.between(1, 4), c], spatial].concat();
    let per: u64 = shape[2..].iter().product();
    if per < least {
        shape[2] = least + 2;
        shape[3..].fill(1);
    }
    shape
}

/// Weight and bias of `c` channels, or not.
fn affine(d: &mut Draw, c: u64) -> String {
    let mut text = String::new();
    if d.chance(60) {
        d.float("w", &[c], Values::Normal(1.0));
        d.float("b", &[c], Values::Normal(1.0));
        text += ", weight=w, bias=b";
    }
    text
}

fn group_norm(mut d: Draw, op: &str) -> Case {
    d.without_repeats();
    let groups = d.between(1, 4);
    let c = groups * d.between(1, 4);
    let shape = channels(&mut d, c, 3);
    let values = d.pick(NORMALISED);
    d.float("x", &shape, values);
    let more = affine(&mut d, c) + d.pick(&["", ", eps=0.001", ", eps=0.5"]);
    d.case(format!("y = {op}(x, {groups}{more})"), &["y"])
}

/// Running statistics of `c` channels.
fn running(d: &mut Draw, c: u64) {
    d.float("m", &[c], Values::Normal(1.0));
    d.float("v", &[c], Values::Positive);
}

fn instance_norm(mut d: Draw, op: &str) -> Case {
    d.without_repeats();
    let c = d.between(1, 5);
    let shape = channels(&mut d, c, 3);
    let values = d.pick(NORMALISED);
    d.float("x", &shape, values);
    let mut text = "x".to_owned();
    if d.chance(25) {
        running(&mut d, c);
        text += ", m, v, use_input_stats=False";
    }
    text += &affine(&mut d, c);
    text += d.pick(&["", ", eps=0.001"]);
    d.case(format!("y = {op}({text})"), &["y"])
}

fn batch_norm(mut d: Draw, op: &str) -> Case {
    d.without_repeats();
    let c = d.between(1, 5);
    let mut shape = channels(&mut d, c, 1);
    if d.chance(20) {
        shape.truncate(2);
    }
    // Two values for a channel are their own signs times what the variance leaves of their distance to eps.
    if shape.iter().product::<u64>() / c < 3 {
        shape[0] = 5;
    }
    let values = d.pick(NORMALISED);
    d.float("x", &shape, values);
    let mut text = "x".to_owned();
    if d.chance(40) {
        running(&mut d, c);
        text += ", m, v";
    } else {
        text += ", None, None";
    }
    text += &affine(&mut d, c);
    if text.contains("None, None") || d.chance(20) {
        text += ", training=True";
    }
    text += d.pick(&["", ", eps=0.001"]);
    d.case(format!("y = {op}({text})"), &["y"])
}

/// What reduced values are like.
const REDUCED: &[Values] =
    &[Values::Normal(1.0), Values::Normal(1.0), Values::Ties, Values::Special, Values::Positive];

/// Dimensions as an argument: one, several, or none.
fn some_dims(d: &mut Draw, rank: usize) -> String {
    if rank == 0 || d.chance(25) {
        return String::new();
    }
    let keep = if d.chance(40) { ", keepdim=True" } else { "" };
    if rank > 1 && d.chance(35) {
        let first = d.below(rank as u64) as i64;
        let second = (first + 1 + d.below(rank as u64 - 1) as i64) % rank as i64;
        let second = if d.chance(30) { second - rank as i64 } else { second };
        return format!(", dim=({first}, {second}){keep}");
    }
    format!(", dim={}{keep}", d.dim(rank))
}

/// An input of the reductions that take integers and bools too.
fn reduced(d: &mut Draw) -> usize {
    let shape = d.shape(0, 4);
    match d.below(12) {
        0 => d.ints("x", &shape, -5, 5),
        1 => d.bools("x", &shape),
        _ => {
            let values = d.pick(REDUCED);
            d.float("x", &shape, values);
        }
    }
    shape.len()
}

fn reduce(mut d: Draw, op: &str) -> Case {
    let rank = reduced(&mut d);
    let mut dims = some_dims(&mut d, rank);
    if op == "logsumexp" && dims.is_empty() {
        dims = format!(", dim={}", d.dim(rank));
    }
    d.case(format!("y = {op}(x{dims})"), &["y"])
}

fn var(mut d: Draw, op: &str) -> Case {
    let shape = d.shape(0, 4);
    let values = d.pick(REDUCED);
    d.float("x", &shape, values);
    let dims = some_dims(&mut d, shape.len());
    let correction = d.pick(&["", "", ", correction=0", ", correction=2"]);
    d.case(format!("y = {op}(x{dims}{correction})"), &["y"])
}

fn reduce_one(mut d: Draw, op: &str) -> Case {
    let rank = reduced(&mut d);
    let dim = if d.chance(25) {
        String::new()
    } else {
        let keep = if d.chance(40) { ", keepdim=True" } else { "" };
        format!(", dim={}{keep}", d.dim(rank))
    };
    d.case(format!("y = {op}(x{dim})"), &["y"])
}

fn max(mut d: Draw, op: &str) -> Case {
    if d.chance(25) {
        let shape = d.shape(0, 3);
        let other = d.partner(&shape);
        d.float("x", &shape, Values::Special);
        d.float("z", &other, Values::Special);
        return d.case(format!("y = {op}(x, z)"), &["y"]);
    }
    let rank = reduced(&mut d);
    if d.chance(30) {
        return d.case(format!("y = {op}(x)"), &["y"]);
    }
    let dim = d.dim(rank);
    let keep = if d.chance(40) { ", keepdim=True" } else { "" };
    d.case(format!("y, i = {op}(x, dim={dim}{keep})"), &["y", "i"])
}

fn scan(mut d: Draw, op: &str) -> Case {
    let shape = d.shape(0, 3);
    match d.below(10) {
        0 => d.ints("x", &shape, -2, 2),
        _ => {
            let values = if op == "cumprod" {
                d.pick(&[Values::NearOne, Values::Ties, Values::Special])
            } else {
                d.pick(REDUCED)
            };
            d.float("x", &shape, values);
        }
    }
    let dim = d.dim(shape.len());
    d.case(format!("y = {op}(x, dim={dim})"), &["y"])
}

fn norm(mut d: Draw, op: &str) -> Case {
    let shape = d.shape(0, 3);
    let values = d.pick(REDUCED);
    d.float("x", &shape, values);
    let p = d.pick(&["", ", p=2", ", p=1", ", p=inf", ", p=-inf", ", p=0", ", p=3", ", p=0.5"]);
    let dims = some_dims(&mut d, shape.len());
    d.case(format!("y = {op}(x{p}{dims})"), &["y"])
}

/// How a loss is reduced.
fn reduction(d: &mut Draw) -> &'static str {
    d.pick(&["", ", reduction='sum'", ", reduction='none'", ", reduction='mean'"])
}

fn loss(mut d: Draw, op: &str) -> Case {
    let shape = d.shape(0, 3);
    let values = d.pick(&[Values::Normal(1.0), Values::Special, Values::Ties]);
    d.float("x", &shape, values);
    d.float("t", &shape, values);
    let mut more = reduction(&mut d).to_owned();
    match op {
        "smooth_l1_loss" => more += d.pick(&["", ", beta=0.4", ", beta=0.0"]),
        "huber_loss" => more += d.pick(&["", ", delta=0.4"]),
        _ => {}
    }
    d.case(format!("y = {op}(x, t{more})"), &["y"])
}

fn kl_div(mut d: Draw, op: &str) -> Case {
    let shape = d.shape(1, 3);
    d.float("x", &shape, Values::Normal(1.0));
    let log = d.chance(40);
    d.float("t", &shape, if log { Values::Normal(1.0) } else { Values::Unit });
    let more = d.pick(&["", ", reduction='sum'", ", reduction='none'", ", reduction='batchmean'"]);
    let target = if log { ", log_target=True" } else { "" };
    d.case(format!("y = {op}(x, t{more}{target})"), &["y"])
}

fn cross_entropy(mut d: Draw, op: &str) -> Case {
    let (n, c) = (d.some(), d.between(1, 9));
    let spatial: Vec<u64> = d.shape(0, 2).iter().map(|&e| e.clamp(1, 4)).collect();
    let shape = match d.below(8) {
        0 => vec![c],
        _ => [vec![n, c], spatial].concat(),
    };
    let classes: Vec<u64> = if shape.len() == 1 { vec![] } else { [&shape[..1], &shape[2..]].concat() };
    d.float("x", &shape, Values::Normal(3.0));
    let probabilities = d.chance(25);
    if probabilities {
        d.float("t", &shape, Values::Unit);
    } else {
        d.ints_as("t", DType::I64, &classes, 0, c as i64 - 1);
    }
    let mut more = String::new();
    if d.chance(40) {
        d.float("w", &[c], Values::Positive);
        more += ", weight=w";
    }
    if !probabilities && d.chance(25) {
        more += ", ignore_index=0";
    }
    more += reduction(&mut d);
    more += d.pick(&["", "", ", label_smoothing=0.1"]);
    d.case(format!("y = {op}(x, t{more})"), &["y"])
}

fn triplet(mut d: Draw, op: &str) -> Case {
    let shape = if d.chance(15) { vec![d.some()] } else { vec![d.some(), d.some()] };
    for name in ["x", "p", "n"] {
        d.float(name, &shape, Values::Normal(1.0));
    }
    let mut more = reduction(&mut d).to_owned();
    more += d.pick(&["", ", margin=0.3", ", margin=2.0"]);
    more += d.pick(&["", "", ", p=1.0", ", p=3.0"]);
    more += d.pick(&["", "", ", swap=True"]);
    d.case(format!("y = {op}(x, p, n{more})"), &["y"])
}

/// An input of the operators that only move elements.
fn moved(d: &mut Draw, shape: &[u64]) {
    match d.below(8) {
        0 => d.ints("x", shape, -9, 9),
        1 => d.bools("x", shape),
        _ => d.float("x", shape, Values::Special),
    }
}

fn moves(mut d: Draw, op: &str) -> Case {
    let shape = d.shape(0, 4);
    moved(&mut d, &shape);
    let rank = shape.len();
    let order = |d: &mut Draw| {
        let mut order: Vec<i64> = (0..rank as i64).collect();
        for i in (1..rank).rev() {
            order.swap(i, d.below(i as u64 + 1) as usize);
        }
        order
    };
    let more = match op {
        "transpose" => format!(", {}, {}", d.dim(rank), d.dim(rank)),
        "permute" => format!(", {}", tuple(&order(&mut d))),
        "flip" => {
            let mut dims = order(&mut d);
            let keep = d.between(1, rank.max(1) as u64) as usize;
            dims.truncate(keep);
            format!(", {}", tuple(&dims))
        }
        "squeeze" if d.chance(40) => String::new(),
        "squeeze" if rank > 1 && d.chance(30) => ", (0, 1)".to_owned(),
        "squeeze" => format!(", {}", d.dim(rank)),
        "unsqueeze" => format!(", {}", d.dim(rank + 1)),
        _ if d.chance(30) => String::new(),
        _ => {
            let start = d.below(rank.max(1) as u64);
            let end = d.between(start, rank.max(1) as u64 - 1);
            format!(", {start}, {end}")
        }
    };
    d.case(format!("y = {op}(x{more})"), &["y"])
}

fn reshape(mut d: Draw, op: &str) -> Case {
    let shape = if op == "expand" { d.shape(0, 3) } else { d.shape(1, 4) };
    moved(&mut d, &shape);
    let size: Vec<i64> = if op == "expand" {
        let lead = d.below(2) as usize;
        let lead: Vec<i64> = (0..lead).map(|_| d.between(1, 3) as i64).collect();
        let rest = shape.iter().map(|&e| match e {
            1 => d.between(1, 4) as i64,
            _ if d.chance(30) => -1,
            e => e as i64,
        });
        let rest: Vec<i64> = rest.collect();
        [lead, rest].concat()
    } else {
        let mut size: Vec<i64> = match d.below(3) {
            0 => vec![shape.iter().product::<u64>() as i64],
            1 => shape.iter().rev().map(|&e| e as i64).collect(),
            _ => {
                // Two neighbours as one.
                let mut out: Vec<i64> = shape.iter().map(|&e| e as i64).collect();
                if out.len() > 1 {
                    let at = d.below(out.len() as u64 - 1) as usize;
                    out[at] *= out.remove(at + 1);
                }
                out
            }
        };
        if d.chance(40) {
            let at = d.below(size.len() as u64) as usize;
            size[at] = -1;
        }
        size
    };
    d.case(format!("y = {op}(x, {})", tuple(&size)), &["y"])
}

fn triangle(mut d: Draw, op: &str) -> Case {
    let shape = d.shape(2, 4);
    moved(&mut d, &shape);
    let diagonal = d.pick(&["", ", 1", ", diagonal=-2", ", diagonal=3", ", 0", ", -40"]);
    d.case(format!("y = {op}(x{diagonal})"), &["y"])
}

fn join(mut d: Draw, op: &str) -> Case {
    let shape = if op == "cat" { d.shape(1, 3) } else { d.shape(0, 3) };
    let rank = shape.len() + usize::from(op == "stack");
    let dim = d.dim(rank);
    let at = if dim < 0 { dim + rank as i64 } else { dim } as usize;
    let count = d.between(1, 3) as usize;
    let names = &["a", "b", "c"][..count];
    let kind = d.below(6);
    for name in names {
        let mut own = shape.clone();
        if op == "cat" && d.chance(60) {
            own[at] = d.between(0, 5);
        }
        match kind {
            0 => d.ints_as(name, DType::I64, &own, -9, 9),
            1 => d.bools(name, &own),
            _ => d.float(name, &own, Values::Special),
        }
    }
    d.case(format!("y = {op}({}, dim={dim})", tuple(names)), &["y"])
}

fn cut(mut d: Draw, op: &str) -> Case {
    let shape = d.shape(1, 4);
    moved(&mut d, &shape);
    let dim = d.dim(shape.len());
    let at = if dim < 0 { dim + shape.len() as i64 } else { dim } as usize;
    let extent = shape[at];
    if op == "narrow" {
        let start = d.below(extent + 1);
        let length = d.below(extent - start + 1);
        return d.case(format!("y = {op}(x, {dim}, {start}, {length})"), &["y"]);
    }
    let index = d.below(extent.max(1)) as i64;
    let index = if d.chance(30) { index - extent.max(1) as i64 } else { index };
    if at == 0 && d.chance(50) {
        return d.case(format!("y = x[{index}]"), &["y"]);
    }
    d.case(format!("y = {op}(x, {dim}, {index})"), &["y"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_has_one_generator_and_every_row_an_operator() {
        let rows: Vec<&str> = ROWS.iter().flat_map(|(names, _)| names.iter().copied()).collect();
        let mut unary = 0;
        for op in assay_ops::OPS {
            let alone = is_unary(op.name);
            unary += usize::from(alone);
            let named = rows.iter().filter(|n| **n == op.name).count();
            assert_eq!(named + usize::from(alone), 1, "`{}`", op.name);
        }
        assert!(unary > 20, "{unary}");
        assert_eq!(rows.len() + unary, assay_ops::OPS.len());
    }

    #[test]
    fn every_drawn_program_calls_its_operator() {
        for op in assay_ops::OPS {
            let generate = generator(op.name).unwrap();
            for case in 0..40 {
                let case = generate(Draw::new(1, op.name, case), op.name);
                let names: Vec<&str> = case.inputs.iter().map(|(_, p)| p.name.as_str()).collect();
                let program = assay_ops::Program::parse(&case.program, &names, &[])
                    .unwrap_or_else(|e| panic!("`{}`: {e}", case.program));
                // An index into a tensor is written without a call.
                let called = program.operators().contains(&op.name);
                assert!(called || (op.name == "select" && case.program.contains("x[")), "`{}`", case.program);
            }
        }
    }
}
