"""The guard on `meta` at true sizes and on the CPU at a small limit: one step below the limit and exactly at it."""

from __future__ import annotations

import threading

import pytest

torch = pytest.importorskip("torch", reason="skipped: no torch")

from torch.nn.functional import linear, scaled_dot_product_attention  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from assay import guard  # noqa: E402
from assay.guard import LIMIT, Guard, TensorTooLarge  # noqa: E402


def meta(*shape, **more):
    return torch.empty(shape, device="meta", **more)


class Seen(TorchDispatchMode):
    """The operators that reach the backend, under whatever modes were entered after this one."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func._schema.name)
        return func(*args, **(kwargs or {}))


# Each case at the number `n` where some tensor has exactly 2^32 elements: what makes the operands, the operation, `n`,
# the operator that is refused, whether before it runs, and the tensor that is named.
B = LIMIT // (256 * 256)
CASES = {
    "bmm, output": (lambda n: (meta(n, 256, 64), meta(n, 64, 256)), torch.bmm, B, "bmm", "output"),
    "bmm, output, b transposed": (
        lambda n: (meta(n, 256, 64), meta(n, 256, 64).transpose(1, 2)),
        torch.bmm,
        B,
        "bmm",
        "output",
    ),
    "matmul of four dims": (lambda n: (meta(n, 16, 64, 8), meta(n, 16, 8, 64)), torch.matmul, B, "bmm", "output"),
    "mm": (lambda n: (meta(n, 8), meta(8, 1 << 16)), torch.mm, 1 << 16, "mm", "output"),
    "addmm": (lambda n: (meta(1 << 16), meta(n, 8), meta(8, 1 << 16)), torch.addmm, 1 << 16, "addmm", "output"),
    "linear": (lambda n: (meta(n, 4, 8), meta(1 << 15, 8)), linear, 1 << 15, "mm", "output"),
    "baddbmm": (
        lambda n: (meta(1, 256, 256), meta(n, 256, 64), meta(n, 64, 256)),
        torch.baddbmm,
        B,
        "baddbmm",
        "output",
    ),
    "fused attention, scores": (
        lambda n: (meta(n, 32, 4096, 8), meta(n, 32, 4096, 8), meta(n, 32, 4096, 8)),
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu,
        8,
        "_scaled_dot_product_flash_attention_for_cpu",
        "scores",
    ),
    "attention in steps": (
        lambda n: (meta(n, 32, 4096, 8), meta(n, 32, 4096, 8), meta(n, 32, 4096, 8)),
        scaled_dot_product_attention,
        8,
        "bmm",
        "output",
    ),
    "cat": (
        lambda n: (meta(1 << 16, 1 << 15), meta(1 << 16, n)),
        lambda a, b: torch.cat([a, b], 1),
        1 << 15,
        "cat",
        "output",
    ),
    "stack": (lambda n: (meta(n, 1 << 15),), lambda a: torch.stack([a, a], -1), 1 << 16, "stack", "output"),
    "zeros": (lambda n: (), lambda: torch.zeros(1 << 16, 1 << 16, device="meta"), None, "zeros", "output"),
    "arange": (lambda n: (n,), lambda n: torch.arange(n, device="meta"), LIMIT, "arange", "output"),
    "expand": (lambda n: (meta(1, 1 << 16), n), lambda x, n: x.expand(n, 1 << 16), 1 << 16, "expand", "output"),
    "broadcast sum": (lambda n: (meta(n, 1), meta(1, 1 << 16)), torch.add, 1 << 16, "add", "output"),
    "outer comparison": (lambda n: (meta(n, 1), meta(1, 1 << 16)), torch.lt, 1 << 16, "lt", "output"),
}


@pytest.mark.parametrize("name", CASES)
def test_on_meta_an_operation_is_refused_at_2_32_elements_and_passes_one_step_below(name):
    make, call, n, operator, tensor = CASES[name]
    if n is not None:
        below = make(n - 1)
        with Guard("meta"):
            call(*below)
    operands = make(n)
    with Seen() as seen, Guard("meta"), pytest.raises(TensorTooLarge) as raised:
        call(*operands)
    e = raised.value
    assert isinstance(e, RuntimeError)
    assert (e.elements, e.limit, e.tensor) == (LIMIT, LIMIT, tensor)
    assert e.operation == f"aten::{operator}"
    # Where the size can be told from the operands, the operator never ran.
    ran = e.operation in seen.names
    assert ran == (operator in ("arange", "expand", "add", "lt")), seen.names


BIG = {
    "a view's transpose is read": lambda x: x.t(),
    "a slice reads the whole": lambda x: x[:1],
    "in place": lambda x: x.add_(1),
    "in place, from a small one": lambda x: x.copy_(meta(1)),
    "a sum": lambda x: x.sum(),
    "in a list": lambda x: torch._foreach_add([meta(2), x], 1.0),
    "as an output argument": lambda x: torch.add(meta(1), meta(1), out=x),
    "an index": lambda x: x[torch.zeros(3, dtype=torch.int64, device="meta")],
    "as a mask": lambda x: torch.where(x > 0, meta(1), meta(1)),
}


@pytest.mark.parametrize("name", BIG)
def test_reading_a_tensor_of_2_32_elements_is_refused_whatever_reads_it(name):
    below, at = meta((1 << 16) - 1, 1 << 16), meta(1 << 16, 1 << 16)
    if name != "as an output argument":
        with Guard("meta"):
            BIG[name](below)
    with Guard("meta"), pytest.raises(TensorTooLarge) as raised:
        BIG[name](at)
    assert raised.value.tensor == "operand"
    assert raised.value.elements == LIMIT


def test_a_small_view_of_a_large_storage_passes_and_an_expanded_small_storage_does_not():
    storage = meta((1 << 16) + 2, 1 << 16)
    view = storage[1:3]
    with Guard("meta"):
        assert (view * 2).shape == (2, 1 << 16)
    wide = meta(1, 1 << 16).expand(1 << 16, -1)
    with Guard("meta"), pytest.raises(TensorTooLarge):
        wide.neg()


def test_of_the_large_storage_already_the_creation_is_refused():
    with Guard("meta"), pytest.raises(TensorTooLarge, match="aten::empty"):
        meta((1 << 16) + 2, 1 << 16)[1:3]


@pytest.mark.parametrize(
    ("a", "b", "safe"),
    [
        ((65537, 256, 64), (65537, 64, 256), 65535),  # the output decides
        ((65536, 256, 256), (65536, 256, 64), 65535),  # an operand does
        ((3, 1 << 16, 1 << 15), (3, 1 << 15, 8), 1),
        ((1, 1 << 16, 8), (1, 8, 1 << 16), 0),
    ],
)
def test_for_bmm_the_message_says_operation_shapes_limit_and_how_many_batches_are_safe(a, b, safe):
    operands = meta(*a), meta(*b)
    with Guard("meta"), pytest.raises(TensorTooLarge) as raised:
        torch.bmm(*operands)
    e, text = raised.value, str(raised.value)
    assert e.batches_per_chunk == safe
    assert e.operands == (a, b)
    for word in ["`aten::bmm` on meta", str(list(a)), str(list(b)), "4294967296"]:
        assert word in text
    assert (f"at most {safe} batches a chunk" if safe else "one batch alone") in text
    if safe:
        # The advice holds: so many pass, one more does not.
        with Guard("meta"):
            torch.bmm(meta(safe, *a[1:]), meta(safe, *b[1:]))
        more = meta(safe + 1, *a[1:]), meta(safe + 1, *b[1:])
        with Guard("meta"), pytest.raises(TensorTooLarge):
            torch.bmm(*more)


def test_rows_and_attention_have_safe_chunks_too():
    operands = meta(1 << 16, 8), meta(8, 1 << 16)
    with Guard("meta"), pytest.raises(TensorTooLarge, match="at most 65535 rows a chunk"):
        torch.mm(*operands)
    q = meta(9, 32, 4096, 64)
    with Guard("meta"), pytest.raises(TensorTooLarge, match="at most 7 batches a chunk") as raised:
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, q, q)
    assert raised.value.shape == (9, 32, 4096, 4096)
    assert raised.value.batches_per_chunk == 7


@pytest.mark.parametrize(
    "name",
    [
        "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_cudnn_attention",
        "_scaled_dot_product_attention_math_for_mps",
        "_scaled_dot_product_fused_attention_overrideable",
        "_scaled_dot_product_flash_attention_backward",
        "_scaled_dot_product_efficient_attention_backward",
        "_flash_attention_forward",
        "_efficient_attention_forward",
    ],
)
def test_every_fused_attention_of_this_release_is_estimated_by_its_scores(name):
    overload = getattr(torch.ops.aten, name, None)
    if overload is None:
        pytest.skip(f"no {name} in this release")
    schema = overload.default._schema
    estimate = guard._learn(overload.default)[3]
    heads_before = "scaled_dot_product" in name
    shapes = {
        "query": (2, 3, 5, 8) if heads_before else (2, 5, 3, 8),
        "key": (2, 3, 7, 8) if heads_before else (2, 7, 3, 8),
    }
    arguments = tuple(meta(*shapes.get(a.name, (1,))) for a in schema.arguments)
    assert estimate(arguments, {}, 2 * 3 * 5 * 7) == ("scores", (2, 3, 5, 7))
    assert estimate(arguments, {}, 2 * 3 * 5 * 7 + 1) is None


def test_the_fused_layers_of_torch_nn_are_estimated_by_their_scores():
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    attention = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = torch.ones(3, 20, 8)
    with torch.no_grad():
        for call in (lambda: layer(x), lambda: attention(x, x, x)):
            with Guard("cpu", limit=3 * 2 * 20 * 20 + 1):
                call()
            with Guard("cpu", limit=3 * 2 * 20 * 20), pytest.raises(TensorTooLarge) as raised:
                call()
            assert raised.value.elements == 3 * 2 * 20 * 20


def test_the_backward_pass_is_covered_where_the_forward_pass_is_below_the_limit():
    # The output is small; the gradient of `a` is what the sum expands.
    a = torch.ones(4, 8, requires_grad=True)
    with Guard("cpu", limit=33):
        a.sum().backward()
    loss = a.sum()
    with Guard("cpu", limit=32), pytest.raises(TensorTooLarge, match="aten::expand"):
        loss.backward()


@pytest.mark.parametrize("limit", [2048, 2049])
def test_gradients_of_a_batched_product_are_stopped_at_the_small_limit_on_the_cpu(limit):
    a, b = torch.randn(8, 16, 4, requires_grad=True), torch.randn(8, 4, 16, requires_grad=True)
    out = torch.bmm(a, b)  # 2,048 elements, and so has the upstream gradient
    upstream = torch.ones_like(out)
    if limit == 2049:
        with Guard("cpu", limit):
            out.backward(upstream)
        assert torch.equal(a.grad, upstream @ b.transpose(1, 2))
    else:
        with Guard("cpu", limit), pytest.raises(TensorTooLarge, match="operand"):
            out.backward(upstream)


@pytest.mark.parametrize(
    ("operator", "call"),
    [
        ("aten::bmm", lambda n: torch.bmm(torch.ones(n, 4, 2), torch.ones(n, 2, 4))),
        ("aten::mm", lambda n: torch.mm(torch.ones(n, 2), torch.ones(2, 16))),
        ("aten::addmm", lambda n: torch.addmm(torch.ones(16), torch.ones(n, 2), torch.ones(2, 16))),
        ("aten::baddbmm", lambda n: torch.baddbmm(torch.ones(1), torch.ones(n, 4, 2), torch.ones(n, 2, 4))),
        ("aten::_scaled_dot", lambda n: scaled_dot_product_attention(*[torch.ones(1, n, 4, 2)] * 3)),
        ("aten::cat", lambda n: torch.cat([torch.ones(8, 16), torch.ones(n - 8, 16)])),
        ("aten::arange", lambda n: torch.arange(16 * n)),
        ("aten::ones", lambda n: torch.ones(n, 16)),
        ("aten::randn", lambda n: torch.randn(n, 16)),
        ("aten::add", lambda n: torch.ones(n, 1) + torch.ones(16)),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_on_the_cpu_at_a_small_limit_the_step_below_passes(operator, call):
    rows, limit = 64, 1024
    with Guard("cpu", limit):
        call(rows - 1)
    with Guard("cpu", limit), pytest.raises(TensorTooLarge) as raised:
        call(rows)
    assert raised.value.elements == limit
    assert raised.value.operation.startswith(operator)


def test_on_the_cpu_at_a_small_limit_in_place_operations_and_views_are_stopped():
    below, at = torch.ones(7, 16), torch.ones(8, 16)
    for call in (lambda x: x.exp_(), lambda x: x.transpose(0, 1), lambda x: x[1:], lambda x: torch.topk(x, 1)):
        with Guard("cpu", 128):
            call(below)
        with Guard("cpu", 128), pytest.raises(TensorTooLarge, match="`operand`"):
            call(at)
    assert (at == 1).all()


def test_only_the_guarded_device_counts():
    with Guard("meta", limit=8):
        torch.ones(4, 4) @ torch.ones(4, 4)
        with pytest.raises(TensorTooLarge):
            torch.ones(2, 4).to("meta")
    with Guard("cpu", limit=8):
        meta(4, 4).neg()
    with Guard(None, limit=8), pytest.raises(TensorTooLarge):
        meta(4, 4)
    with Guard("cuda:1", limit=8) as g:
        assert not g._here(torch.device("cuda", 0))
        assert g._here(torch.device("cuda", 1))


def test_results_are_untouched_and_several_outputs_are_looked_at():
    x = torch.randn(6, 4)
    with Guard("cpu"):
        values, indices = torch.sort(x, dim=1)
        assert x.unbind(0)[2].tolist() == x[2].tolist()
    assert torch.equal(values, torch.gather(x, 1, indices))
    with Guard("cpu", limit=25), pytest.raises(TensorTooLarge, match=r"meshgrid|expand"):
        torch.meshgrid(torch.ones(5), torch.ones(5), indexing="ij")


def test_installing_twice_is_installing_once_and_uninstalling_ends_it():
    assert guard.installed() is None
    first = guard.install("cpu", limit=16)
    try:
        assert guard.install("cpu", limit=8) is first
        assert guard.installed() is first
        with pytest.raises(TensorTooLarge):
            torch.ones(8)
        guard.install("cpu", limit=16)
        torch.ones(8)
        with Seen(), pytest.raises(RuntimeError, match="leave it first"):
            guard.uninstall()
    finally:
        guard.uninstall()
    guard.uninstall()
    assert guard.installed() is None
    torch.ones(16)


def test_the_default_is_mps_and_2_32_elements():
    g = guard.install()
    try:
        assert (str(g.device), g.limit) == ("mps", 2**32)
        with pytest.raises(ValueError, match="positive number"):
            guard.install(limit=0)
    finally:
        guard.uninstall()


def test_a_decorated_function_is_guarded_in_every_thread_and_only_inside():
    @Guard("cpu", limit=16)
    def ones(n):
        """Of so many."""
        return torch.ones(n)

    assert ones.__doc__ == "Of so many."
    assert ones(15).shape == (15,)
    caught = []

    def call():
        try:
            ones(16)
        except TensorTooLarge as e:
            caught.append(e)

    for thread in [threading.Thread(target=call) for _ in range(2)]:
        thread.start()
        thread.join()
    assert len(caught) == 2
    with pytest.raises(TensorTooLarge):
        ones(16)
    torch.ones(16)
    with pytest.raises(TypeError, match="plain functions"):

        @Guard("cpu")
        def numbers():
            yield 1
