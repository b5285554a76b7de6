"""The metamorphic check on a small transformer with a fault that is put into one of its products."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ElementTree

import pytest

torch = pytest.importorskip("torch", reason="skipped: no torch")

from torch import nn  # noqa: E402
from torch.nn.functional import scaled_dot_product_attention  # noqa: E402

from assay.metamorphic import check, exact_mcnemar, sample_errors  # noqa: E402

SAMPLES, LENGTH, HEADS, WIDTH, CLASSES, CHUNK = 24, 6, 4, 16, 3, 5
# As in the paper's case study (section 4.5) the index into the softmax output wraps: here after 13 samples and 2 heads.
WRAP = (13 * HEADS + 2) * LENGTH * LENGTH


class Scores(nn.Module):
    def forward(self, q, k):
        return (q @ k.transpose(-1, -2)) / math.sqrt(q.shape[-1])


class Context(nn.Module):
    """softmax(QK^T) V, with the flat index into the first operand taken modulo `wrap`."""

    def __init__(self, wrap):
        super().__init__()
        self.wrap = wrap

    def forward(self, p, v):
        if self.wrap is not None:
            p = p.flatten()[torch.arange(p.numel()) % self.wrap].reshape(p.shape)
        return p @ v


class Attention(nn.Module):
    def __init__(self, fused, wrap):
        super().__init__()
        self.fused = fused
        self.project = nn.Linear(WIDTH, 3 * WIDTH)
        self.scores, self.softmax, self.context = Scores(), nn.Softmax(-1), Context(wrap)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = self.project(x).reshape(*x.shape[:2], 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        c = scaled_dot_product_attention(q, k, v) if self.fused else self.context(self.softmax(self.scores(q, k)), v)
        return self.out(c.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, fused, wrap):
        super().__init__()
        self.attention = Attention(fused, wrap)
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 32), nn.ReLU(inplace=True), nn.Linear(32, WIDTH))

    def forward(self, x):
        x = self.first(x + self.attention(x))
        return self.second(x + self.feed(x))


class Classifier(nn.Module):
    def __init__(self, fused=False, wrap=WRAP):
        super().__init__()
        torch.manual_seed(1)
        self.embed = nn.Embedding(50, WIDTH)
        self.place = nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.ModuleList([Layer(fused, None), Layer(fused, wrap)])
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, tokens):
        x = self.embed(tokens) + self.place(torch.arange(LENGTH))
        for layer in self.layers:
            x = layer(x)
        return {"logits": self.head(x.mean(1))}


@pytest.fixture
def tokens():
    return torch.randint(0, 50, (SAMPLES, LENGTH), generator=torch.Generator().manual_seed(2))


def test_a_wrapped_index_in_eager_attention_is_found_at_its_exact_sample_and_head(tokens, tmp_path):
    report = check(Classifier().eval(), tokens, chunk=CHUNK, heads=HEADS, shift=10)
    assert report.first_sample == 13
    assert report.differing == list(range(13, SAMPLES))
    assert float(report.errors[:13].max()) < 1e-5
    first = report.first_module
    assert (first.name, first.kind, first.call) == ("layers.1.attention.context", "Context", 0)
    assert (first.sample, first.head, first.heads) == (13, 2, [2, 3])
    # Everything that ended before agrees, the scores and the softmax of the same layer among it.
    before = report.modules[: report.modules.index(first)]
    assert {"layers.0.attention.context", "layers.1.attention.scores", "layers.1.attention.softmax"} < {
        m.name for m in before
    }
    assert all(m.differing == 0 and m.largest < 1e-5 for m in before)
    # Position, not content: the same positions differ when other samples stand there.
    assert report.shifted.verdict == "position"
    assert report.shifted.positions == report.differing
    assert report.shifted.samples == sorted((p + 10) % SAMPLES for p in range(13, SAMPLES))
    assert not report.clean
    text = str(report)
    assert "11 of 24 samples (45.8%) differ" in text
    assert "first in `layers.1.attention.context` (Context, call 0) at sample 13, head 2" in text
    assert "shifted by 10: position" in text

    report.plot(tmp_path / "errors.svg")
    svg = (tmp_path / "errors.svg").read_text()
    marks = [p.get("d").count("M") for p in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}path")]
    assert marks == [13, 11, 13, 11]
    with pytest.raises(ValueError, match="ends in"):
        report.plot(tmp_path / "errors.png")

    loaded = json.loads(report.to_json())
    assert loaded["first_module"]["head"] == 2
    assert loaded["shifted"]["verdict"] == "position"
    assert len(loaded["errors"]) == SAMPLES


def test_fused_attention_on_the_same_batch_is_clean(tokens):
    report = check(Classifier(fused=True).eval(), tokens, chunk=CHUNK, heads=HEADS, shift=True)
    assert report.clean
    assert (report.first_sample, report.first_module, report.shifted.verdict) == (None, None, "clean")
    assert "24 samples in one batch equal their chunks of 5" in str(report)


def test_a_fault_that_depends_on_content_moves_with_the_samples(tokens):
    model = Classifier(fused=True).eval()

    def faulty(tokens):
        logits = model(tokens)["logits"]
        if len(tokens) > CHUNK:
            logits[tokens[:, 0] > 25] += 1
        return logits

    report = check(faulty, tokens, chunk=CHUNK, shift=10)
    assert report.differing == torch.nonzero(tokens[:, 0] > 25).flatten().tolist()
    assert (report.shifted.verdict, report.shifted.same_samples) == ("content", 1.0)
    assert report.shifted.samples == report.differing
    assert report.modules == []


def test_a_batch_that_differs_everywhere_leaves_position_and_content_undecided(tokens):
    report = check(lambda t: t.double() * len(t), tokens + 1, chunk=CHUNK, shift=True)
    assert len(report.differing) == SAMPLES
    assert report.shifted.verdict == "undecided"


@pytest.mark.parametrize("memory_bytes", [1, 20_000, 1 << 30])
def test_less_memory_takes_more_passes_and_finds_the_same(tokens, memory_bytes):
    model = Classifier().eval()
    passes = []
    model.register_forward_pre_hook(lambda module, args: passes.append(len(args[0])) or None)
    report = check(model, tokens, chunk=CHUNK, heads=HEADS, memory_bytes=memory_bytes)
    assert (report.first_module.name, report.first_module.sample, report.first_module.head) == (
        "layers.1.attention.context",
        13,
        2,
    )
    whole = passes.count(SAMPLES)
    assert whole == 2 if memory_bytes == 1 << 30 else whole > 3


def test_without_the_number_of_heads_the_sample_alone_is_named(tokens):
    first = check(Classifier().eval(), tokens, chunk=CHUNK).first_module
    assert (first.name, first.sample, first.head, first.heads) == ("layers.1.attention.context", 13, None, [])


@pytest.mark.parametrize("form", ["heads second", "heads third", "samples and heads in one dim"])
def test_every_form_of_a_dim_of_heads_is_understood(form):
    class Product(nn.Module):
        def forward(self, x):
            x = x.clone()
            if len(x) > 5:
                x[7, 2] += 1
            if form == "heads third":
                return x.transpose(1, 2)
            return x.flatten(0, 1) if form.startswith("samples") else x

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.product = Product()

        def forward(self, x):
            return self.product(x).reshape(len(x), -1)

    report = check(Model().eval(), torch.rand(12, HEADS, 7, 3) + 1, chunk=5, heads=HEADS)
    assert (report.first_module.name, report.first_module.sample, report.first_module.heads) == ("product", 7, [2])


def test_a_module_that_is_called_twice_is_told_by_its_call():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.same = nn.Identity()

        def forward(self, x, scale):
            x = self.same(x) * scale
            if len(x) > 4:
                x[6] = -x[6]
            return (None, [self.same(x)])

    batch = {"x": torch.rand(9, 3) + 1, "scale": torch.rand(9, 1) + 1}
    report = check(Twice().eval(), batch, chunk=4)
    assert (report.first_module.name, report.first_module.call, report.first_module.sample) == ("same", 1, 6)
    assert [m.differing for m in report.modules] == [0, 1, 1]


def test_a_difference_outside_of_modules_is_said_to_be_outside():
    model = nn.Linear(3, 2).eval()
    report = check(lambda x: model(x) + (x.shape[0] > 4), torch.rand(9, 3), chunk=4, modules=model)
    assert report.first_module is None
    assert "outside of modules" in str(report)


def test_predictions_recalls_and_mcnemar_are_those_counted_by_hand():
    # Ten samples of two classes; in one call the last four collapse onto class 1.
    right = torch.tensor([[2.0, 1.0], [1.0, 2.0]])
    labels = [0, 1, 0, 1, 0, 1, 0, 0, 0, 1]
    x = right[torch.tensor([0, 1, 0, 0, 0, 1, 0, 0, 0, 0])]

    def collapse(x):
        out = x.clone()
        if len(x) == 10:
            out[6:] = torch.tensor([0.0, 3.0])
        return out

    report = check(collapse, x, chunk=3, labels=labels)
    effect = report.labels
    assert report.differing == effect.changed == [6, 7, 8, 9]
    assert (effect.chunks_accuracy, effect.accuracy) == (0.8, 0.6)
    assert effect.chunks_recall == [1.0, 0.5]
    assert effect.recall == [0.5, 0.75]
    assert effect.differing_recall == [0.0, 1.0]
    assert (effect.differing_chunks_accuracy, effect.differing_accuracy) == (0.75, 0.25)
    assert (effect.differing_chunks_predictions, effect.differing_predictions) == ([4, 0], [0, 4])
    assert (effect.only_chunks_right, effect.only_batch_right) == (3, 1)
    assert effect.p == 0.625
    assert "4 predictions change; accuracy 0.800 to 0.600" in str(report)


def test_the_exact_test_gives_the_papers_value_and_the_ends_of_its_range():
    assert f"{exact_mcnemar(266, 114):.1e}" == "4.1e-15"
    assert exact_mcnemar(114, 266) == exact_mcnemar(266, 114)
    assert exact_mcnemar(0, 0) == exact_mcnemar(5, 5) == 1.0
    assert exact_mcnemar(3, 0) == 0.25
    assert 0 < exact_mcnemar(3000, 2700) < 1e-4


def test_errors_are_relative_to_the_sample_and_nan_is_infinite():
    nan, inf = math.nan, math.inf
    want = torch.tensor([[1.0, -4.0], [0.0, 0.0], [0.0, 0.0], [nan, 2.0], [inf, 2.0], [1.0, 1.0]])
    got = torch.tensor([[1.0, -3.0], [0.0, 0.0], [1e-30, 0.0], [nan, 1.0], [inf, 2.0], [nan, 1.0]])
    assert sample_errors(got, want).tolist() == [0.25, 0.0, inf, 0.5, 0.0, inf]
    report = check(lambda x: x / (0 if len(x) > 2 else 1), torch.zeros(4, 2), chunk=2)
    assert json.loads(report.to_json())["errors"] == ["inf"] * 4
    assert sample_errors(torch.zeros(2, 0), torch.zeros(2, 0)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("function", "batch", "more", "words"),
    [
        (lambda x: x, torch.ones(4, 2), {"chunk": 4}, "smaller than the batch"),
        (lambda x, y: x, (torch.ones(4), torch.ones(3)), {"chunk": 2}, "as many"),
        (lambda x: x, [torch.ones(4)], {"chunk": 2}, "not list"),
        (lambda x: x.sum(), torch.ones(4), {"chunk": 2}, "gives an output of shape"),
        (lambda x: 1, torch.ones(4), {"chunk": 2}, "say with `output`"),
        (nn.Linear(2, 2), torch.ones(4, 2), {"chunk": 2}, "training mode"),
        (lambda x: x, torch.ones(4, 2), {"chunk": 2, "shift": 4}, "shift by 4"),
        (lambda x: x, torch.ones(4, 2), {"chunk": 2, "labels": [1]}, "labels"),
    ],
)
def test_what_cannot_be_compared_is_said(function, batch, more, words):
    with pytest.raises(ValueError, match=words):
        check(function, batch, **more)


def test_what_the_function_raises_passes_through_and_no_hook_stays():
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU()).eval()

    def loud(x):
        if len(x) > 2:
            raise MemoryError("too large")
        return model(x)

    with pytest.raises(MemoryError):
        check(loud, torch.ones(4, 3), chunk=2, modules=model)
    check(lambda x: model(x) * len(x), torch.ones(4, 3), chunk=3, modules=model)
    assert not any(m._forward_hooks for m in model.modules())


def test_arguments_are_moved_to_the_device_call_by_call():
    seen = []

    def function(x, y):
        seen.append((len(x), x.device.type, y))
        return torch.zeros(len(x), 1)

    check(function, (torch.ones(5, 1), "as it is"), chunk=2, device="meta")
    assert seen == [(2, "meta", "as it is"), (2, "meta", "as it is"), (1, "meta", "as it is"), (5, "meta", "as it is")]
