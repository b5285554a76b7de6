"""Writes the golden files: PyTorch's results for programs of the reference language.

The program text is the same on both sides: the language is a subset of Python, so this script executes it with
PyTorch's functions in scope, in float64 and in float32, and the Rust test `golden.rs` evaluates it.

    pip install torch==2.13.0 safetensors numpy
    python crates/ops/tests/golden/make_golden.py

One file per family. Tensors are named CASE/in/NAME, CASE/f64/NAME and CASE/f32/NAME; the metadata key `cases` is a JSON
list of {name, program, scalars, outputs, ulp32}, where `ulp32` is the tolerance in float32 epsilons relative to the
largest magnitude of the output. Programs without a float result have equal f64 and f32 entries.
"""

import json
import pathlib

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).parent
INF, NAN = float("inf"), float("nan")

SCOPE = {k: getattr(torch, k) for k in """
    matmul mm mv bmm exp expm1 log log1p sqrt rsqrt reciprocal erf abs neg pow add sub mul div floor_divide remainder
    maximum minimum clamp where lt le gt ge eq ne sum mean prod amax amin max min argmax argmin cumsum cumprod var std
    logsumexp norm transpose permute reshape flatten unsqueeze squeeze triu tril cat stack flip narrow select
    sigmoid tanh
""".split()}
SCOPE |= {k: getattr(F, k) for k in """
    linear relu relu6 leaky_relu gelu silu softplus elu selu hardtanh softsign hardsigmoid hardswish mish logsigmoid
    softmax log_softmax layer_norm rms_norm group_norm instance_norm batch_norm
    conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
    max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d
    cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss kl_div triplet_margin_loss cosine_similarity
    pairwise_distance normalize scaled_dot_product_attention adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d
""".split()}
SCOPE |= {
    "inf": INF,
    "nan": NAN,
    "view": lambda x, size: x.view(size),
    "expand": lambda x, size: x.expand(size),
    "masked_fill": lambda x, mask, value: x.masked_fill(mask, value),
    "diag": torch.diag,
    "logsigmoid": F.logsigmoid,
    "zeros_like": torch.zeros_like,
    "ones_like": torch.ones_like,
    "einsum": lambda equation, tensors: torch.einsum(equation, *tensors),
    "pad": F.pad,
    "roll": torch.roll,
    "unflatten": torch.unflatten,
    "square": torch.square,
    "tile": torch.tile,
    "log2": torch.log2,
    "sin": torch.sin,
    "cos": torch.cos,
}

families = {}


def case(family, name, program, scalars=None, ulp32=8.0, **inputs):
    families.setdefault(family, []).append((name, program, scalars or {}, ulp32, inputs))


def t(*shape, scale=1.0):
    return torch.randn(*shape) * scale


def edge():
    """Special values, zeros of both signs, small and large magnitudes."""
    x = torch.tensor([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1e-30, -1e-30, 3.0, -3.0, 6.5, -6.5, 21.0, -21.0, 88.0, -88.0,
                      200.0, -200.0, INF, -INF, NAN, 1e-4, -1e-4, 0.0001234, 2.5])
    return x


torch.manual_seed(7)
torch.set_num_threads(1)

# ---------------------------------------------------------------- element-wise
for name in ("relu relu6 leaky_relu gelu silu softplus elu selu hardtanh softsign hardsigmoid hardswish mish sigmoid tanh "
             "exp expm1 sqrt rsqrt reciprocal erf abs neg logsigmoid").split():
    case("activation", f"{name}_normal", f"y = {name}(x)", x=t(3, 5, scale=3.0))
    # PyTorch's vectorised float32 gelu gives NaN at infinity on a CPU, infinity on a GPU and in float64.
    x = edge()
    case("activation", f"{name}_edge", f"y = {name}(x)", x=x[x != INF] if name == "gelu" else x)
for name in ("log", "log1p"):
    case("activation", f"{name}_positive", f"y = {name}(x)", x=t(17).abs() + 0.01)
    case("activation", f"{name}_edge", f"y = {name}(x)", x=edge())
case("activation", "gelu_tanh", "y = gelu(x, approximate='tanh')", x=t(4, 7, scale=2.0))
case("activation", "gelu_tanh_edge", "y = gelu(x, approximate='tanh')", x=edge())
case("activation", "leaky_relu_slope", "y = leaky_relu(x, negative_slope=a)", {"a": 0.3}, x=edge())
case("activation", "elu_alpha", "y = elu(x, alpha=0.7)", x=edge())
case("activation", "hardtanh_bounds", "y = hardtanh(x, min_val=-2.0, max_val=0.5)", x=edge())
case("activation", "softplus_beta", "y = softplus(x, beta=2.0, threshold=5.0)", x=edge())
case("activation", "relu_of_integers", "y = relu(x)", x=torch.tensor([-2, 0, 3], dtype=torch.int64))
case("activation", "empty", "y = gelu(x)\nz = relu(x)", x=torch.zeros(0, 3))
for name in ("softmax", "log_softmax"):
    case("softmax", f"{name}_last", f"y = {name}(x, dim=-1)", x=t(4, 33, scale=3.0))
    case("softmax", f"{name}_first", f"y = {name}(x, dim=0)", x=t(9, 4, scale=3.0))
    case("softmax", f"{name}_middle", f"y = {name}(x, dim=1)", x=t(2, 19, 5))
    case("softmax", f"{name}_of_one", f"y = {name}(x, dim=1)", x=t(5, 1))
    case("softmax", f"{name}_rank_zero", f"y = {name}(x, dim=0)", x=torch.tensor(2.0))
    case("softmax", f"{name}_large", f"y = {name}(x, dim=1)", x=t(3, 8, scale=1e4))
    x = t(6, 5)
    x[0, :] = -INF
    x[1, 2] = INF
    x[2, 1] = NAN
    x[3, :3] = -INF
    x[4, 0] = -INF
    x[4, 4] = INF
    x[5, 4] = -INF
    case("softmax", f"{name}_special_rows", f"y = {name}(x, dim=1)", x=x)
    case("softmax", f"{name}_empty", f"y = {name}(x, dim=1)", x=torch.zeros(2, 0))
case("softmax", "logsumexp", "y = logsumexp(x, dim=1)\nz = logsumexp(x, dim=(0, 1), keepdim=True)", x=t(3, 9, scale=4.0))
case("softmax", "logsumexp_special", "y = logsumexp(x, dim=1)", x=torch.tensor([[-INF, -INF], [INF, 1.0], [NAN, 0.0], [-INF, 2.0]]))

case("arithmetic", "broadcast", "y = a + b\nz = a * b - b / a\nw = (a - b) ** 2", a=t(2, 1, 3) + 3.0, b=t(4, 1))
case("arithmetic", "scalars", "y = x * 2.1 + 1\nz = (1 - x) / 3\nw = -x ** 2\nv = 2 ** x\nu = x / s", {"s": 0.3}, x=t(7))
case("arithmetic", "alpha", "y = add(a, b, alpha=2)\nz = sub(a, b, alpha=0.5)", a=t(5), b=t(5))
case("arithmetic", "powers", "a = pow(x, 2)\nb = x ** 3\nc = x ** 0.5\nd = x ** -0.5\ne = x ** -1\nf = x ** -2\ng = x ** 1.7\nh = x ** x",
     x=t(9).abs() + 0.1)
case("arithmetic", "power_edges", "y = x ** 2\nz = x ** 1.5\nw = x ** 0\nv = x ** 4", x=edge())
case("arithmetic", "clamp", "y = clamp(x, min=0)\nz = clamp(x, -1.0, 2.0)\nw = clamp(x, max=0.25)\nv = clamp(x, min=2.0, max=1.0)", x=edge())
case("arithmetic", "clamp_tensor", "y = clamp(x, a, b)", x=t(3, 4), a=t(4) - 1, b=t(3, 1) + 1)
case("arithmetic", "extremes", "y = maximum(a, b)\nz = minimum(a, b)\nw = max(a, b)\nv = min(a, b)",
     a=torch.tensor([1.0, NAN, 2.0, -INF, NAN]), b=torch.tensor([2.0, 1.0, NAN, INF, NAN]))
case("arithmetic", "where", "y = where(x > 0, x, x * 0.5)\nz = where(x <= y, 1.0, 0.0)\nw = where(x == x, x, 0.0)", x=edge())
case("arithmetic", "comparisons", "a = x < y\nb = x <= y\nc = x > y\nd = x >= y\ne = x == y\nf = x != y", x=torch.tensor([1.0, 2.0, NAN, 0.0]), y=torch.tensor([2.0, 2.0, NAN, -0.0]))
case("arithmetic", "integers", "y = i + 3\nz = i * i - 1\nw = i / 2\nv = i * 0.5\nu = i // 2\nt = i % 3\ns = -i\nr = abs(i)\nq = i ** 2",
     i=torch.tensor([-7, -1, 0, 2, 9], dtype=torch.int64))
case("arithmetic", "integer_divisors", "u = i // j\nt = i % j", i=torch.tensor([-7, -7, 7, 7], dtype=torch.int64), j=torch.tensor([2, -2, 2, -2], dtype=torch.int64))
case("arithmetic", "float_floor_divide", "u = x // 0.7\nt = x % 0.7\nv = x // y\nw = x % y", x=t(8, scale=5.0), y=t(8))
case("arithmetic", "masked_fill", "m = x > 0\ny = masked_fill(x, m, 0.25)", x=t(3, 3))
case("arithmetic", "empty_broadcast", "y = a + b", a=torch.zeros(0, 1), b=torch.zeros(1, 4))

# ---------------------------------------------------------------- matrices
for m, k, n in [(1, 1, 1), (3, 5, 7), (17, 33, 9), (5, 0, 3), (0, 4, 2), (4, 130, 1), (1, 65, 40), (33, 64, 31)]:
    case("matmul", f"mm_{m}x{k}x{n}", "y = mm(a, b)\nz = a @ b", a=t(m, k), b=t(k, n))
case("matmul", "vectors", "a = matmul(m, v)\nb = matmul(w, m)\nc = matmul(v, v)\nd = mv(m, v)", m=t(6, 9), v=t(9), w=t(6))
case("matmul", "batched", "y = matmul(a, b)\nz = bmm(a, b)", a=t(3, 4, 5), b=t(3, 5, 2))
case("matmul", "batch_broadcast", "y = matmul(a, b)\nz = matmul(a, c)\nw = matmul(c, a)\nv = matmul(d, a)\nu = matmul(a, e)", a=t(2, 1, 4, 4), b=t(3, 4, 5), c=t(4, 4), d=t(4), e=t(4))
case("matmul", "linear", "y = linear(x, w, b)\nz = linear(x, w)", x=t(2, 3, 8), w=t(5, 8), b=t(5))
case("matmul", "linear_vector", "y = linear(x, w)", x=t(8), w=t(5, 8))
case("matmul", "triangles", "y = matmul(tril(a), tril(b))\nz = triu(matmul(triu(a), triu(b, diagonal=1)), diagonal=-1)", a=t(6, 6), b=t(6, 6))
case("matmul", "transposed", "y = matmul(transpose(a, 0, 1), transpose(b, 0, 1))", a=t(7, 4), b=t(5, 7))
case("matmul", "non_finite", "y = matmul(a, b)", a=torch.tensor([[INF, 1.0], [NAN, 0.0], [0.0, 1.0]]), b=torch.tensor([[1.0, 0.0], [-INF, 2.0]]))

# ---------------------------------------------------------------- convolutions
def conv(dims, n, c, o, size, kernel, groups=1, bias=True, tag="", **kw):
    x = t(*([n] if n else []), c, *size)
    w = t(o, c // groups, *kernel)
    b = t(o)
    args = "".join(f", {k}={v}" for k, v in kw.items()) + (f", groups={groups}" if groups != 1 else "")
    inputs = {"x": x, "w": w} | ({"b": b} if bias else {})
    case("conv", f"conv{dims}d_{tag}", f"y = conv{dims}d(x, w, {'b' if bias else 'None'}{args})", **inputs)


conv(2, 2, 3, 5, (7, 9), (3, 3), tag="plain")
conv(2, 1, 4, 6, (8, 8), (3, 2), tag="stride_padding", stride=2, padding=1)
conv(2, 2, 4, 8, (9, 11), (3, 3), groups=2, tag="groups_dilation", dilation=(2, 3), padding=(2, 1), stride=(1, 2))
conv(2, 1, 6, 6, (6, 7), (3, 3), groups=6, tag="depthwise", padding=1)
conv(2, 1, 4, 8, (5, 5), (3, 3), groups=4, tag="depth_multiplier", bias=False)
conv(2, 1, 16, 3, (4, 5), (1, 1), tag="pointwise")
conv(2, None, 3, 2, (5, 6), (2, 2), tag="unbatched")
conv(2, 1, 2, 3, (3, 40), (3, 5), tag="wide", padding=(0, 7), stride=(1, 3))
conv(2, 2, 3, 4, (1, 1), (3, 3), tag="single_pixel", padding=1)
conv(1, 2, 3, 4, (17,), (3,), tag="plain")
conv(1, 2, 4, 4, (30,), (3,), tag="all", stride=3, padding=2, dilation=4, groups=2)
conv(3, 1, 2, 3, (4, 5, 6), (3, 2, 3), tag="plain")
conv(3, 2, 4, 4, (5, 6, 7), (3, 3, 3), tag="all", stride=(2, 1, 2), padding=(1, 0, 2), dilation=(1, 2, 1), groups=2)


def conv_transpose(dims, n, c, o, size, kernel, groups=1, bias=True, tag="", **kw):
    x = t(*([n] if n else []), c, *size)
    w = t(c, o // groups, *kernel)
    b = t(o)
    args = "".join(f", {k}={v}" for k, v in kw.items()) + (f", groups={groups}" if groups != 1 else "")
    inputs = {"x": x, "w": w} | ({"b": b} if bias else {})
    case("conv", f"conv_transpose{dims}d_{tag}", f"y = conv_transpose{dims}d(x, w, {'b' if bias else 'None'}{args})", **inputs)


conv_transpose(2, 2, 3, 4, (5, 6), (3, 3), tag="plain")
conv_transpose(2, 1, 4, 6, (4, 5), (3, 3), tag="stride", stride=2, padding=1, output_padding=1)
conv_transpose(2, 1, 4, 6, (4, 5), (3, 5), groups=2, tag="all", stride=(2, 3), padding=(1, 2), output_padding=(1, 0), dilation=(2, 1))
conv_transpose(2, 1, 3, 2, (5, 5), (3, 3), tag="stride_beyond_kernel", stride=5, dilation=2, padding=1)
conv_transpose(2, 1, 3, 2, (3, 3), (1, 1), tag="holes", stride=3, bias=False)
conv_transpose(2, None, 3, 2, (4, 3), (2, 2), tag="unbatched", stride=2)
conv_transpose(2, 1, 2, 2, (1, 1), (4, 4), tag="single_pixel", padding=1)
conv_transpose(1, 2, 3, 4, (9,), (5,), tag="plain", stride=2, padding=1)
conv_transpose(1, 2, 4, 4, (9,), (3,), tag="all", stride=2, padding=3, output_padding=1, dilation=3, groups=2)
conv_transpose(3, 1, 2, 3, (3, 4, 5), (3, 3, 3), tag="plain", stride=2, padding=1, output_padding=1)
conv_transpose(3, 1, 4, 4, (3, 2, 3), (3, 5, 3), tag="all", stride=(1, 2, 2), padding=(1, 2, 0), groups=4, output_padding=(0, 1, 1))

# ---------------------------------------------------------------- pooling
case("pool", "max_pool2d_plain", "y = max_pool2d(x, 2)", x=t(2, 3, 7, 8))
case("pool", "max_pool2d_dilated", "y = max_pool2d(x, kernel_size=4, stride=1, padding=1, dilation=1)\nz = max_pool2d(x, 3, 2, 1, dilation=(2, 1))", x=t(1, 2, 11, 9))
case("pool", "max_pool2d_ceil", "y = max_pool2d(x, (3, 2), stride=(2, 3), padding=(1, 0), ceil_mode=True)\nz = max_pool2d(x, 2, ceil_mode=True)", x=t(2, 2, 8, 10))
case("pool", "max_pool2d_all_negative_with_padding", "y = max_pool2d(x, 3, stride=1, padding=1)", x=-t(1, 1, 4, 4).abs() - 1)
x = t(1, 2, 5, 5)
x[0, 0, 1, 1] = NAN
x[0, 1, 2, 2] = INF
x[0, 1, 3] = -INF
case("pool", "max_pool2d_special", "y = max_pool2d(x, 2, stride=1)\nz = max_pool2d(x, 3, padding=1)", x=x)
case("pool", "max_pool2d_unbatched", "y = max_pool2d(x, 2)", x=t(3, 4, 5))
case("pool", "max_pool1d", "y = max_pool1d(x, 3)\nz = max_pool1d(x, 4, stride=2, padding=2, dilation=3)\nw = max_pool1d(x, 3, stride=2, ceil_mode=True)", x=t(2, 3, 20))
case("pool", "max_pool3d", "y = max_pool3d(x, 2)\nz = max_pool3d(x, 3, stride=2, padding=1, dilation=(1, 2, 1), ceil_mode=True)", x=t(1, 2, 5, 6, 7))
case("pool", "avg_pool2d_plain", "y = avg_pool2d(x, 3)\nz = avg_pool2d(x, (2, 3), stride=1, padding=1)", x=t(2, 2, 8, 9))
case("pool", "avg_pool2d_divisors", "y = avg_pool2d(x, 3, 2, 1, count_include_pad=False)\nz = avg_pool2d(x, 3, 2, 1, divisor_override=5)", x=t(1, 2, 7, 8))
case("pool", "avg_pool2d_ceil", "y = avg_pool2d(x, 3, 2, 1, ceil_mode=True)\nz = avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False)\nw = avg_pool2d(x, 2, 3, ceil_mode=True)", x=t(1, 2, 8, 10))
case("pool", "avg_pool1d", "y = avg_pool1d(x, 4)\nz = avg_pool1d(x, 8, stride=1, padding=4)\nw = avg_pool1d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False)", x=t(2, 3, 20))
case("pool", "avg_pool3d", "y = avg_pool3d(x, 3, stride=2, padding=1)\nz = avg_pool3d(x, 2, ceil_mode=True)", x=t(1, 2, 5, 6, 7))

# ---------------------------------------------------------------- normalisation
case("norm", "layer_norm", "y = layer_norm(x, (5, 6), w, b)\nz = layer_norm(x, (6,), eps=0.1)\nv = layer_norm(x, (6,), weight=u)", x=t(3, 4, 5, 6) + 2.0, w=t(5, 6), b=t(5, 6), u=t(6))
case("norm", "layer_norm_rows", "y = layer_norm(x, (7,), w, b)", x=t(19, 7), w=t(7), b=t(7))
case("norm", "layer_norm_single", "y = layer_norm(x, (1,))", x=t(5, 1))
case("norm", "layer_norm_constant", "y = layer_norm(x, (8,))", x=torch.full((2, 8), 3.25))
case("norm", "rms_norm", "y = rms_norm(x, (6,), w, eps=1e-5)\nz = rms_norm(x, (4, 6))", x=t(3, 4, 6), w=t(6))
case("norm", "rms_composition", "rms = sqrt(mean(x ** 2, dim=1, keepdim=True) + eps)\ny = x / rms", {"eps": 1e-5}, x=t(2, 8, 3, 4))
case("norm", "group_norm", "y = group_norm(x, 2, w, b)\nz = group_norm(x, 3)\nv = group_norm(x, 6, eps=0.5)", x=t(2, 6, 4, 5), w=t(6), b=t(6))
# Groups of two elements: the difference of neighbours, so rounding of the mean counts for more.
case("norm", "group_norm_two_dims", "y = group_norm(x, 4)", x=t(3, 8), ulp32=64.0)
case("norm", "instance_norm", "y = instance_norm(x)\nz = instance_norm(x, weight=w, bias=b, eps=1e-3)", x=t(2, 3, 5, 6), w=t(3), b=t(3))
case("norm", "instance_norm_running", "y = instance_norm(x, m, v, w, b, use_input_stats=False)", x=t(2, 3, 5), m=t(3), v=t(3).abs() + 0.5, w=t(3), b=t(3))
case("norm", "batch_norm_training", "y = batch_norm(x, None, None, w, b, training=True)\nz = batch_norm(x, None, None, training=True, eps=0.01)", x=t(4, 3, 5, 2), w=t(3), b=t(3))
case("norm", "batch_norm_two_dims", "y = batch_norm(x, None, None, training=True)", x=t(16, 5))
case("norm", "batch_norm_running", "y = batch_norm(x, m, v, w, b)\nz = batch_norm(x, m, v)", x=t(4, 3, 5), m=t(3), v=t(3).abs() + 0.5, w=t(3), b=t(3))

# ---------------------------------------------------------------- reductions
for name in ("sum", "mean", "amax", "amin", "var", "std"):
    extra = ", dim=1"
    case("reduce", f"{name}_dims", f"a = {name}(x)\nb = {name}(x, dim=0)\nc = {name}(x, dim=1, keepdim=True)\nd = {name}(x, dim=-1)\ne = {name}(x, dim=(0, 2))\nf = {name}(x, dim=(1, 2), keepdim=True)" if name in ("sum", "mean", "var", "std")
         else f"b = {name}(x, dim=0)\nc = {name}(x, dim=1, keepdim=True)\nd = {name}(x, dim=-1)\ne = {name}(x, dim=(0, 2))", x=t(3, 21, 5))
    case("reduce", f"{name}_wide", f"a = {name}(x, dim=1)\nb = {name}(x, dim=0)", x=t(11, 70))
case("reduce", "var_correction", "a = var(x, dim=1, correction=0)\nb = std(x, dim=0, correction=2)\nc = var(x, correction=0, keepdim=True)", x=t(4, 9))
case("reduce", "var_of_one", "a = var(x, dim=1)\nb = var(x, dim=1, correction=0)", x=t(4, 1))
case("reduce", "empty", "a = sum(x, dim=1)\nb = mean(x, dim=1)\nc = prod(x, dim=1)\nd = sum(x)\ne = sum(x, dim=0)\nf = var(x, dim=1)\ng = cumsum(x, dim=1)", x=torch.zeros(3, 0))
case("reduce", "sum_rank_zero", "a = sum(x)\nb = mean(x, dim=0)", x=torch.tensor(2.5))
case("reduce", "sum_special", "a = sum(x, dim=1)\nb = amax(x, dim=1)\nc = amin(x, dim=1)\nd = mean(x, dim=1)\ne = prod(x, dim=1)", x=torch.tensor([[INF, 1.0], [NAN, 2.0], [INF, -INF], [-INF, 0.0]]))
case("reduce", "integers", "m = i > 1\na = sum(i, dim=1)\nb = sum(m)\nc = cumsum(i, dim=0)\nd = amax(i, dim=0)\ne = argmin(i, dim=1)\nf = cumprod(i, dim=1)", i=torch.tensor([[1, 2, 3], [4, 1, 1]], dtype=torch.int64))
case("reduce", "prod", "a = prod(x, dim=1)\nb = prod(x)\nc = prod(x, dim=0, keepdim=True)", x=t(3, 6) + 1.0)
ties = torch.tensor([[1.0, 3.0, 3.0, -2.0, -2.0], [NAN, 5.0, NAN, 1.0, 0.0], [0.0, -0.0, 0.0, -0.0, 0.0], [-INF, INF, INF, -INF, 1.0], [2.0, 2.0, 2.0, 2.0, 2.0]])
case("reduce", "arg_ties", "a = argmax(x, dim=1)\nb = argmin(x, dim=1)\nc = argmax(x, dim=0)\nd = argmin(x, dim=0, keepdim=True)\ne = argmax(x)\nf = argmin(x)", x=ties)
case("reduce", "arg_large", "a = argmax(x, dim=1)\nb = argmin(x, dim=2)\nc = argmax(x)\nd = argmin(x, dim=0)", x=t(4, 31, 7))
case("reduce", "max_pairs", "v, i = max(x, dim=1)\nw, j = min(x, dim=1, keepdim=True)\na = max(x, dim=0)[0]\nb = min(x, dim=0)[1]\nc = max(x)\nd = min(x)", x=t(5, 8))
case("reduce", "max_ties", "v = max(x, dim=1)[0]\nw = min(x, dim=0)[0]\nc = max(x)", x=ties)
case("reduce", "norms", "a = norm(x)\nb = norm(x, p=2, dim=1, keepdim=True)\nc = norm(x, p=1, dim=1)\nd = norm(x, p=inf, dim=0)\ne = norm(x, p=3, dim=1)\nf = norm(x, p=-inf, dim=1)\ng = norm(x, p=0, dim=1)", x=t(4, 17))
case("scan", "cumsum", "a = cumsum(x, dim=1)\nb = cumsum(x, dim=0)\nc = cumsum(x, dim=-1)", x=t(3, 29, 4))
case("scan", "cumsum_long", "a = cumsum(x, dim=0)", x=t(700), ulp32=64.0)
case("scan", "cumprod", "a = cumprod(x, dim=1)\nb = cumprod(x, dim=0)", x=t(3, 9) * 0.3 + 1.0)
case("scan", "cumsum_special", "a = cumsum(x, dim=0)", x=torch.tensor([1.0, INF, 2.0, -INF, 3.0, NAN]))
case("scan", "reverse_cumsum", "a = flip(cumsum(flip(x, (1,)), dim=1), (1,))", x=t(4, 9))
case("scan", "exclusive_cumsum", "z = narrow(x, 1, 0, 1) * 0\na = cumsum(cat((z, x), dim=1), dim=1)\nb = narrow(a, 1, 0, 9)", x=t(4, 9))
case("scan", "masked_cumsum", "m = x > 0\na = cumsum(x * m, dim=1)", x=t(4, 9))

# ---------------------------------------------------------------- shapes
case("shape", "moves", "a = transpose(x, 0, 2)\nb = permute(x, (1, 2, 0))\nc = transpose(x, -1, -2)\nd = x[1]\ne = select(x, 1, -1)\nf = narrow(x, 2, 1, 2)\ng = flip(x, (0, 2))", x=t(2, 3, 4))
case("shape", "reshapes", "a = reshape(x, (4, -1))\nb = view(x, (2, 12))\nc = flatten(x)\nd = flatten(x, 1)\ne = flatten(x, 0, 1)\nf = unsqueeze(x, 0)\ng = unsqueeze(x, -1)\nh = squeeze(f)\ni = squeeze(g, 3)\nj = squeeze(x, 1)", x=t(2, 3, 4))
case("shape", "joins", "a = cat((x, y), dim=1)\nb = cat((x, x, x))\nc = stack((x, x), dim=1)\nd = expand(unsqueeze(x, 1), (2, 4, 3))\ne = expand(x, (5, -1, 3))", x=t(2, 3), y=t(2, 5))
case("shape", "triangles", "a = triu(x)\nb = tril(x)\nc = triu(x, 1)\nd = tril(x, diagonal=-2)\ne = triu(x, -1)", x=t(2, 4, 5))
case("shape", "rank_zero", "a = flatten(x)\nb = unsqueeze(x, 0)\nc = reshape(x, (1, 1))\nd = squeeze(b)", x=torch.tensor(1.5))

# ---------------------------------------------------------------- later ones: the cases above keep their random inputs
case("shape", "likes", "a = zeros_like(x)\nb = ones_like(x)\nc = zeros_like(i)\nd = ones_like(x > 0)", x=t(2, 3), i=torch.tensor([3, 4]))
case("pool", "adaptive_avg_pool1d", "y = adaptive_avg_pool1d(x, 4)\nz = adaptive_avg_pool1d(x, 1)\nw = adaptive_avg_pool1d(x, 13)", x=t(2, 3, 9))
case("pool", "adaptive_avg_pool2d", "y = adaptive_avg_pool2d(x, (3, 4))\nz = adaptive_avg_pool2d(x, 1)\nw = adaptive_avg_pool2d(x, (7, 10))", x=t(2, 3, 7, 10))
case("pool", "adaptive_avg_pool2d_unbatched", "y = adaptive_avg_pool2d(x, (2, 3))", x=t(3, 5, 5))
case("pool", "adaptive_avg_pool3d", "y = adaptive_avg_pool3d(x, (1, 1, 1))\nz = adaptive_avg_pool3d(x, (2, 3, 5))", x=t(2, 2, 3, 5, 4))
case("pool", "adaptive_avg_pool_special", "y = adaptive_avg_pool1d(x, 2)", x=torch.tensor([[[INF, 1.0, 2.0, NAN], [1.0, -INF, INF, 3.0]]]))

# ---------------------------------------------------------------- losses
for name, extra in (("mse_loss", ""), ("l1_loss", ""), ("smooth_l1_loss", ", beta=0.4"), ("huber_loss", ", delta=0.4")):
    case("loss", name, f"a = {name}(x, y)\nb = {name}(x, y, reduction='sum')\nc = {name}(x, y, reduction='none'{extra})\nd = {name}(x, y{extra})", x=t(5, 7), y=t(5, 7))
    case("loss", f"{name}_special", f"c = {name}(x, y, reduction='none')", x=torch.tensor([INF, -INF, NAN, 0.0, 1.0, -0.5]), y=torch.tensor([1.0, INF, 2.0, 0.0, 2.0, NAN]))
case("loss", "smooth_l1_loss_without_beta", "y = smooth_l1_loss(x, y, beta=0.0)", x=t(9), y=t(9))
p = torch.rand(4, 6)
p = p / p.sum(1, keepdim=True)
p[0, 0] = 0.0
case("loss", "kl_div", "a = kl_div(log_softmax(x, dim=1), p, reduction='batchmean')\nb = kl_div(log_softmax(x, dim=1), p, reduction='sum')\nc = kl_div(log_softmax(x, dim=1), p, reduction='none')", x=t(4, 6), p=p)
case("loss", "kl_div_of_logarithms", "a = kl_div(log_softmax(x, dim=1), log_softmax(y, dim=1), reduction='batchmean', log_target=True)\nb = kl_div(x, y, reduction='none', log_target=True)", x=t(4, 6), y=t(4, 6))
case("loss", "cross_entropy", "a = cross_entropy(x, i)\nb = cross_entropy(x, i, reduction='sum')\nc = cross_entropy(x, i, reduction='none')\nd = cross_entropy(x, i, w)\ne = cross_entropy(x, i, w, reduction='none', label_smoothing=0.1)\nf = cross_entropy(x, i, w, label_smoothing=0.1)",
     x=t(6, 5, scale=3.0), i=torch.tensor([0, 4, 2, 2, 1, 3]), w=t(5).abs() + 0.1)
case("loss", "cross_entropy_ignored", "a = cross_entropy(x, i, ignore_index=2)\nb = cross_entropy(x, i, ignore_index=2, reduction='none')", x=t(6, 5), i=torch.tensor([0, 4, 2, 2, 1, 3]))
case("loss", "cross_entropy_images", "a = cross_entropy(x, i)\nb = cross_entropy(x, i, reduction='none')", x=t(2, 3, 2, 4), i=torch.tensor([[[0, 1, 2, 0], [1, 1, 1, 2]], [[2, 2, 0, 0], [0, 1, 2, 0]]]))
case("loss", "cross_entropy_single", "a = cross_entropy(x, i)", x=t(5), i=torch.tensor(3))
case("loss", "cross_entropy_probabilities", "a = cross_entropy(x, q)\nb = cross_entropy(x, q, w, reduction='none', label_smoothing=0.2)\nc = cross_entropy(x, q, w)", x=t(4, 6), q=torch.rand(4, 6), w=t(6).abs() + 0.1)
case("loss", "triplet_margin_loss", "a = triplet_margin_loss(x, y, z, margin=1.0)\nb = triplet_margin_loss(x, y, z, margin=0.3, p=1.0, reduction='none')\nc = triplet_margin_loss(x, y, z, swap=True, reduction='sum')", x=t(6, 9), y=t(6, 9), z=t(6, 9))
case("loss", "triplet_margin_loss_rank_one", "a = triplet_margin_loss(x, y, z)", x=t(9), y=t(9), z=t(9))

# ---------------------------------------------------------------- attention and index sums
case("attention", "plain", "y = scaled_dot_product_attention(q, k, v)\nz = scaled_dot_product_attention(q, k, v, scale=0.7)\nw = scaled_dot_product_attention(q, k, v, is_causal=True)", q=t(2, 3, 7, 8), k=t(2, 3, 5, 8), v=t(2, 3, 5, 6))
case("attention", "masks", "n = scaled_dot_product_attention(q, k, v, attn_mask=m)\nb = scaled_dot_product_attention(q, k, v, attn_mask=m > 0)", q=t(2, 2, 4, 8), k=t(2, 2, 6, 8), v=t(2, 2, 6, 8), m=t(4, 6))
m = torch.zeros(4, 6)
m[1] = -INF
m[2, 3:] = -INF
case("attention", "closed_rows", "y = scaled_dot_product_attention(q, k, v, attn_mask=m)", q=t(1, 2, 4, 8), k=t(1, 2, 6, 8), v=t(1, 2, 6, 8), m=m)
case("attention", "einsum", "a = einsum('bijl,lk->bijk', (x, y))\nb = einsum('bijl->bi', (x,))\nc = einsum('bijl,bijl->bij', (x, x))\nd = einsum('ij,kj', (y, y))\ne = einsum('bijl,bmjl->bjim', (x, x))\nf = einsum('ij->ji', (y,))\ng = einsum('i,j->ji', (z, z))\nh = einsum('i,i->', (z, z))", x=t(2, 3, 4, 5), y=t(5, 6), z=t(7))


def evaluate(program, inputs, scalars, dtype):
    torch.set_default_dtype(dtype)
    scope = SCOPE | scalars
    for k, v in inputs.items():
        scope[k] = v.to(dtype) if v.is_floating_point() else v
    names = []
    for line in program.splitlines():
        exec(line, {"__builtins__": {}}, scope)
        names += [n.strip() for n in line.split("=")[0].split(",")]
    return {n: scope[n] for n in dict.fromkeys(names) if isinstance(scope[n], torch.Tensor)}


for family, cases in families.items():
    tensors, listed = {}, []
    for name, program, scalars, ulp32, inputs in cases:
        double = evaluate(program, inputs, scalars, torch.float64)
        single = evaluate(program, inputs, scalars, torch.float32)
        for k, v in inputs.items():
            tensors[f"{name}/in/{k}"] = v.contiguous().clone()
        for k in double:
            tensors[f"{name}/f64/{k}"] = double[k].contiguous().clone()
            tensors[f"{name}/f32/{k}"] = single[k].contiguous().clone()
        listed.append({"name": name, "program": program, "scalars": scalars, "outputs": list(double), "ulp32": ulp32})
    assert len({c["name"] for c in listed}) == len(listed), family
    path = HERE / f"{family}.safetensors"
    save_file(tensors, path, {"cases": json.dumps(listed), "torch": torch.__version__.split("+")[0]})
    print(f"{path.name}: {len(listed)} cases, {path.stat().st_size} bytes")
