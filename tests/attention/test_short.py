"""Short attention against its definition in float64, on a CPU and by the kernels for a GPU.

The kernels themselves run on a GPU, or with TRITON_INTERPRET=1 on any machine with Triton.
"""

import os
from importlib import import_module
from importlib.util import find_spec

import pytest
import torch

from headwise.attention import HeadGeometry, mha, short
from headwise.attention.short import SERVED, served, short_attention
from headwise.randomness import stream
from headwise.training import Settings
from headwise.training.precision import float32_products, products

cuda = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def heads(*shape, device="cpu", dtype=torch.float32, spread=1.5):
    """Queries, keys, values and a direction for the gradient."""
    generator = stream(5, "short heads")
    drawn = (spread * torch.randn(shape, generator=generator) for _ in range(4))
    return [t.to(device=device, dtype=dtype) for t in drawn]


def by_definition(q, k, v, scale, causal=False):
    logits = scale * torch.einsum("snhr,smhr->shnm", q, k)
    if causal:
        later = torch.ones(logits.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        logits = logits.masked_fill(later, float("-inf"))
    return torch.einsum("shnm,smhr->snhr", logits.softmax(-1), v)


def gradients_by_hand(g, q, k, v, scale, causal=False):
    """By queries, keys and values, where nothing records what was done."""
    one_hot = torch.eye(k.shape[1], dtype=k.dtype)[None, :, None].expand(len(k), -1, k.shape[2], -1)
    weights = by_definition(q, k, one_hot, scale, causal).transpose(1, 2)
    slopes = torch.einsum("snhr,smhr->shnm", g, v)
    slopes = scale * weights * (slopes - (weights * slopes).sum(-1, keepdim=True))
    pairs = ((slopes, k), (slopes.mT, q), (weights.mT, g))
    return tuple(torch.einsum("shnm,smhr->snhr", *pair).contiguous() for pair in pairs)


def answer_and_gradients(rule, q, k, v, direction, scale=0.7, causal=False):
    leaves = [t.detach().clone().requires_grad_() for t in (q, k, v)]
    out = rule(*leaves, scale, causal)
    return [out.detach(), *torch.autograd.grad(out, leaves, direction)]


def farthest(found, wanted):
    """The largest difference of any entry, in units of the largest one of its tensor or of 1."""
    far = []
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.shape == theirs.shape
        scale = max(1.0, float(theirs.detach().abs().max()))
        far.append(
            float((ours.detach().double().cpu() - theirs.detach().double().cpu()).abs().max())
            / scale
        )
    # What is not a number is as far as can be: a maximum alone would overlook it.
    return max(far) if all(x == x for x in far) else float("inf")


def rounding(found, q, k, v, direction, scale=0.7, causal=False):
    """The largest error against float64, in units of what is summed and of the largest score.

    A gradient by queries may be zero, and is for one token: what is summed for it is not.
    """
    doubled = [t.double() for t in (q, k, v, direction)]
    wanted = answer_and_gradients(by_definition, *doubled, scale=scale, causal=causal)
    sizes = [t.abs() for t in doubled]
    score = 1 + scale * torch.einsum("snhr,smhr->snmh", sizes[0], sizes[1]).max()
    slope = scale * torch.einsum("snhr,smhr->snmh", sizes[3], sizes[2]).max()
    units = [sizes[2].max(), slope * sizes[1].max(), slope * sizes[0].max(), sizes[3].max()]
    errors = [
        float(((ours.double() - theirs).abs().max() / (unit * score)).cpu())
        for ours, theirs, unit in zip(found, wanted, units, strict=True)
    ]
    assert all(error == error for error in errors)
    return max(errors)


@pytest.mark.parametrize("rank", [1, 2, 3, 8])
@pytest.mark.parametrize("number", [1, 20])
@pytest.mark.parametrize("causal", [False, True])
def test_the_plain_path_is_the_definition(number, rank, causal):
    given = heads(3, 5, number, rank, dtype=torch.float64)
    found = answer_and_gradients(short_attention, *given, causal=causal)
    assert farthest(found, answer_and_gradients(by_definition, *given, causal=causal)) <= 1e-13


#: Rounding of float32, and of products of numbers cut to TF32, with a small factor for sums.
FLOAT32, TF32 = 4 * 2.0**-23, 2.0**-10

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1" and find_spec("triton") is not None


@pytest.mark.skipif(
    not (INTERPRETED or torch.cuda.is_available()),
    reason="needs a CUDA device, or Triton and TRITON_INTERPRET=1",
)
@pytest.mark.parametrize("kernels", ["short_triton", "blocks_triton"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("tokens", "number", "rank"),
    [
        (1, 1, 1),
        (2, 3, 3),
        (7, 5, 4),
        (16, 2, 6),
        (17, 9, 1),
        (33, 3, 12),
        (40, 2, 16),
        (18, 1, 24),
        (82, 2, 3),
        (130, 1, 5),
    ],
)
def test_the_kernels_themselves_are_the_definition(tokens, number, rank, causal, kernels):
    """Ranks that are no powers of two, rows beyond the last token, heads beyond the last head."""
    passes = import_module(f"headwise.attention.{kernels}").PASSES
    device = "cpu" if INTERPRETED else "cuda"
    q, k, v, direction = heads(2, tokens, number, rank, device=device)
    told = (0.7, causal, False)
    out, logsum = passes.forward(q, k, v, *told)
    found = [out, *passes.backward(direction, q, k, v, out, logsum, *told)]
    assert rounding(found, q, k, v, direction, causal=causal) <= FLOAT32


def test_other_devices_and_dtypes_are_not_served():
    assert not served(*heads(1, 4, 2, 4)[:3])


class Noting:
    """Passes that take the definition, and note of each call whether it was to be rounded."""

    def __init__(self):
        self.noted = []

    def forward(self, q, k, v, scale, causal, rounded):
        self.noted.append(("forward", rounded))
        return by_definition(q, k, v, scale, causal).contiguous(), q.new_zeros(q.shape[:3])

    def backward(self, g, q, k, v, out, logsum, scale, causal, rounded):
        self.noted.append(("backward", rounded))
        return gradients_by_hand(g, q, k, v, scale, causal)


@pytest.fixture
def noting(monkeypatch):
    passes = Noting()
    monkeypatch.setattr(short, "_passes", lambda queries: passes)
    monkeypatch.setattr(short, "served", lambda *heads: True)
    return passes


@pytest.mark.parametrize(("before", "rounded"), [("high", True), ("highest", False)])
@pytest.mark.parametrize("after", ["high", "highest"])
def test_the_backward_pass_rounds_as_the_forward_pass_did(before, after, rounded, noting):
    q, k, v, direction = heads(2, 5, 3, 4)
    leaves = [t.requires_grad_() for t in (q, k, v)]
    with float32_products(before):
        out = short_attention(*leaves, 0.7, True)
    with float32_products(after):
        found = torch.autograd.grad(out, leaves, direction)
    assert noting.noted == [("forward", rounded), ("backward", rounded)]
    wanted = answer_and_gradients(by_definition, q, k, v, direction, causal=True)
    assert farthest([out, *found], wanted) <= 1e-6


def test_sixteen_bit_input_is_summed_exactly_at_any_float32_precision(noting):
    given = heads(2, 5, 3, 4, dtype=torch.bfloat16)
    with float32_products("high"):
        answer_and_gradients(short_attention, *given)
        assert not short._small(torch.zeros(1, 100, 1, 64, dtype=torch.bfloat16))
        assert short._small(torch.zeros(1, 100, 1, 64))
    assert noting.noted == [("forward", False), ("backward", False)]


def test_the_operation_is_sound_for_torch(noting):
    """Its schema, its fake form and its gradient, with the arguments it has."""
    leaves = [t.requires_grad_() for t in heads(2, 5, 3, 4)[:3]]
    torch.library.opcheck(
        short._forward,
        (*leaves, 0.7, False, True),
        test_utils=("test_schema", "test_autograd_registration", "test_faketensor"),
    )


def test_many_directions_of_one_gradient(noting):
    """The backward pass takes members as further sequences, as the forward pass does."""
    q, k, v, _ = heads(2, 5, 3, 4)
    directions = heads(6, 5, 3, 4)[3].unflatten(0, (3, 2))
    told = (0.7, False, True)
    known = (q, k, v, *short._forward(q, k, v, *told))
    found = torch.func.vmap(lambda one: short._backward(one, *known, *told))(directions)
    singles = [answer_and_gradients(by_definition, q, k, v, one)[1:] for one in directions]
    wanted = [torch.stack(each) for each in zip(*singles, strict=True)]
    assert farthest(found, wanted) <= 1e-6
    assert noting.noted == [("forward", True), ("backward", True)]


@pytest.mark.parametrize("rank", [1, 2, 3, 8, 12, 16, 32, 64])
@pytest.mark.parametrize("tokens", [1, 7, 16, 31, 82, 256])
@pytest.mark.parametrize("number", [3, 70])
@pytest.mark.parametrize("causal", [False, True])
class TestKernels:
    pytestmark = cuda

    def test_they_agree_with_float64(self, tokens, number, rank, causal):
        given = heads(3, tokens, number, rank, device="cuda")
        if not served(*given[:3]):
            assert not any(rank <= r and tokens <= n for r, n in SERVED)
            pytest.skip("left to the general kernels")
        found = answer_and_gradients(short_attention, *given, causal=causal)
        assert rounding(found, *given, causal=causal) <= FLOAT32


@pytest.mark.parametrize(
    ("tokens", "rank"), [(1, 16), (16, 64), (31, 32), (40, 16), (82, 3), (200, 12), (256, 64)]
)
@pytest.mark.parametrize("causal", [False, True])
class TestRoundedProducts:
    pytestmark = cuda

    def test_they_agree_as_far_as_tf32_goes(self, tokens, rank, causal):
        given = heads(3, tokens, 5, rank, device="cuda")
        with products(Settings(steps=1, precision="tf32", device="cuda")):
            assert served(*given[:3])
            found = answer_and_gradients(short_attention, *given, causal=causal)
        assert FLOAT32 / 8 < rounding(found, *given, causal=causal) <= TF32


@pytest.fixture(
    params=[
        "cpu",
        pytest.param(
            "interpreter",
            marks=pytest.mark.skipif(not INTERPRETED, reason="needs Triton and TRITON_INTERPRET=1"),
        ),
        pytest.param("cuda", marks=cuda),
    ]
)
def device(request, monkeypatch):
    """Where heads lie: on a GPU or in the interpreter the kernels take them, else torch."""
    if request.param == "interpreter":
        monkeypatch.setattr(short, "served", lambda *heads: True)
    return "cuda" if request.param == "cuda" else "cpu"


def taken_by(kernels, q, k, v):
    """Whether these kernels take the heads, where any do."""
    if not short.served(q, k, v):
        return q.device.type == "cpu"
    return short._passes(q) is import_module(f"headwise.attention.{kernels}").PASSES


@pytest.mark.parametrize(
    ("tokens", "number", "rank", "kernels"),
    [
        (16, 40, 1, "short_triton"),
        (16, 20, 4, "short_triton"),
        (16, 6, 16, "blocks_triton"),
        (82, 5, 6, "blocks_triton"),
        (16, 3, 32, "blocks_triton"),
    ],
)
class TestBothFamilies:
    """The contract of short attention on every device, at sizes that reach both kernels."""

    def test_large_logits(self, tokens, number, rank, kernels, device):
        """Rows near one-hot, as trained full-rank heads have."""
        given = heads(4, tokens, number, rank, device=device, spread=24 / rank**0.25)
        assert taken_by(kernels, *given[:3])
        found = answer_and_gradients(short_attention, *given)
        assert rounding(found, *given) <= FLOAT32 / 2

    def test_the_same_twice(self, tokens, number, rank, kernels, device):
        given = heads(4, tokens, number, rank, device=device)
        assert taken_by(kernels, *given[:3])
        first, second = (answer_and_gradients(short_attention, *given) for _ in range(2))
        assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))

    @pytest.mark.filterwarnings("ignore:There is a performance drop")  # torch's, on a CPU
    def test_members_of_a_vectorised_call(self, tokens, number, rank, kernels, device):
        given = heads(6, tokens, number, rank, device=device)[:3]
        assert taken_by(kernels, *given)
        parts = [t.unflatten(0, (3, 2)) for t in given]
        found = torch.func.vmap(lambda *t: short_attention(*t, 0.7))(*parts)
        wanted = torch.stack([short_attention(*t, 0.7) for t in zip(*parts, strict=True)])
        torch.testing.assert_close(found, wanted, rtol=0, atol=0)

    def test_bfloat16_is_summed_in_float32(self, tokens, number, rank, kernels, device):
        given = heads(3, tokens, number, rank, device=device, dtype=torch.bfloat16)[:3]
        assert taken_by(kernels, *given)
        found = short_attention(*given, 0.7)
        wanted = by_definition(*(t.double() for t in given), 0.7)
        assert found.dtype == torch.bfloat16
        torch.testing.assert_close(found.double(), wanted, rtol=0.01, atol=0.01)


class TestOnAGpu:
    pytestmark = cuda

    def test_many_programs_give_the_same_twice(self):
        given = heads(64, 16, 128, 1, device="cuda")
        first, second = (answer_and_gradients(short_attention, *given) for _ in range(2))
        assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))

    @pytest.mark.parametrize(("rank", "number"), [(1, 96), (4, 24), (16, 6)])
    def test_layers_use_them(self, rank, number):
        layer = mha(HeadGeometry.free(32, number, rank), "all").cuda()
        tokens = torch.randn(5, 16, 32, generator=stream(0, "tokens")).cuda()
        view = layer.view(tokens)
        assert served(*(t.transpose(1, 2) for t in (view.queries, view.keys, view.queries)))
        wanted = layer.double()(tokens.double())
        assert farthest([layer.float()(tokens)], [wanted]) <= 1e-5
