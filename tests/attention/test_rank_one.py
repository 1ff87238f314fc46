"""The kernel for rank-one heads against the plain formula, values and gradients."""

import shutil

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import headwise.attention.rank_one as kernel
from attention.copies import close
from headwise import native
from headwise.attention.rank_one import SOURCE, rank_one_attention


def plain(q, k, v):
    """The formula, with the matrices written out."""
    weights = torch.softmax(q.unsqueeze(2) * k.unsqueeze(1), dim=2)
    return (weights * v.unsqueeze(1)).sum(2)


def triple(batch, n, m, heads, *, seed=0, scale=1.0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    shapes = ((batch, n, heads), (batch, m, heads), (batch, m, heads))
    drawn = (torch.randn(s, generator=generator, dtype=torch.float64) * scale for s in shapes)
    return [t.to(dtype).requires_grad_() for t in drawn]


def value_and_gradients(function, inputs, gradient):
    out = function(*inputs)
    return out, *torch.autograd.grad(out, inputs, gradient)


@settings(deadline=None, max_examples=40)
@given(
    batch=st.integers(1, 5),
    n=st.integers(1, 7),
    m=st.integers(1, 7),
    heads=st.integers(1, 11),
    block=st.sampled_from([1, 13, 32768]),
    seed=st.integers(0, 2**31),
)
def test_it_equals_the_formula_in_any_blocking(batch, n, m, heads, block, seed):
    inputs = triple(batch, n, m, heads, seed=seed, scale=2.0)
    gradient = torch.randn(batch, n, heads, dtype=torch.float64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "BLOCK_ELEMENTS", block)
        found = value_and_gradients(rank_one_attention, inputs, gradient)
    for ours, wanted in zip(found, value_and_gradients(plain, inputs, gradient), strict=True):
        close(ours, wanted, limit=1e-12)


def test_gradients_agree_with_finite_differences():
    assert torch.autograd.gradcheck(rank_one_attention, triple(2, 3, 4, 3))


def test_one_key_gives_its_value_and_no_gradient_to_queries():
    q, k, v = triple(2, 3, 1, 5)
    out = rank_one_attention(q, k, v)
    assert torch.equal(out, v.expand(2, 3, 5))
    assert torch.autograd.grad(out.sum(), q)[0].abs().max() < 1e-15


def test_equal_keys_average():
    q, k, v = triple(2, 3, 4, 5)
    out = rank_one_attention(q, k[:, :1].expand(2, 4, 5), v)
    torch.testing.assert_close(out, v.mean(1, keepdim=True).expand(2, 3, 5))


def test_zero_queries_average():
    q, k, v = triple(2, 3, 4, 5)
    torch.testing.assert_close(
        rank_one_attention(0 * q, k, v), v.mean(1, keepdim=True).expand(2, 3, 5)
    )


def test_huge_logits_pick_one_value_without_overflow():
    q, k, v = triple(2, 5, 6, 3)
    found = value_and_gradients(
        rank_one_attention,
        [(1e6 * t).detach().requires_grad_() for t in (q, k)] + [v],
        torch.ones(2, 5, 3).double(),
    )
    assert all(bool(t.isfinite().all()) for t in found)
    chosen = (q.unsqueeze(2) * k.unsqueeze(1)).argmax(2)
    torch.testing.assert_close(found[0], v.gather(1, chosen))


class TestMachineCode:
    """float32 on a processor with a compiler; the torch blocks and float64 are the judges."""

    @pytest.fixture(autouse=True)
    def _compiler(self):
        if shutil.which("cc") is None and shutil.which("gcc") is None:
            pytest.skip("needs a C compiler")
        assert native.library(SOURCE) is not None

    @settings(deadline=None, max_examples=60)
    @given(
        batch=st.integers(1, 5),
        n=st.integers(1, 7),
        m=st.integers(1, 7),
        heads=st.integers(1, 37),
        scale=st.sampled_from([1e-3, 1.0, 5.0]),
        seed=st.integers(0, 2**31),
    )
    def test_it_equals_the_formula_in_float64(self, batch, n, m, heads, scale, seed):
        inputs = triple(batch, n, m, heads, seed=seed, scale=scale, dtype=torch.float32)
        wide = [t.detach().double().requires_grad_() for t in inputs]
        gradient = triple(batch, n, m, heads, seed=seed + 1)[0].detach()
        found = value_and_gradients(rank_one_attention, inputs, gradient.float())
        wanted = value_and_gradients(plain, wide, gradient)
        # A logit of size s is rounded by s·2⁻²⁴, and so are, relatively, the weights.
        reach = 1 + float((wide[0].abs().amax() * wide[1].abs().amax()).detach())
        sizes = [
            1.0,
            *(1 + float(t.detach().abs().max()) ** 2 for t in (wide[1], wide[0], wide[1])),
        ]
        for ours, true, size in zip(found, wanted, sizes, strict=True):
            close(ours.double(), true, limit=2**-24 * 16 * (n + m) * reach * size)

    def test_it_is_as_near_to_float64_as_torchs_own_blocks(self, monkeypatch):
        inputs = triple(4, 16, 16, 67, dtype=torch.float32)
        wanted = plain(*(t.double() for t in inputs)).detach()
        inputs = [t.detach() for t in inputs]
        machine = (rank_one_attention(*inputs).double() - wanted).abs().max()
        monkeypatch.setattr(native, "library", lambda source: None)
        blocks = (rank_one_attention(*inputs).double() - wanted).abs().max()
        assert 0 < float(machine) < 4 * float(blocks)

    @pytest.mark.parametrize("scale", [1e3, 1e6, 1e9])
    @pytest.mark.parametrize("way", ["machine code", "torch"])
    def test_huge_logits_pick_one_value_without_overflow(self, monkeypatch, scale, way):
        if way == "torch":
            monkeypatch.setattr(native, "library", lambda source: None)
        q, k, v = triple(2, 16, 16, 67, dtype=torch.float32)
        big = [(scale * t).detach().requires_grad_() for t in (q, k)]
        found = value_and_gradients(rank_one_attention, [*big, v], torch.ones(2, 16, 67))
        assert all(bool(t.isfinite().all()) for t in found)
        logits = big[0].double().unsqueeze(2) * big[1].double().unsqueeze(1)
        first, second = logits.topk(2, dim=2).values.unbind(2)
        clear = first - second > 100 + 1e-5 * first.abs()  # no tie within float32
        assert clear.double().mean() > 0.9
        chosen = v.gather(1, logits.argmax(2))
        assert torch.equal(found[0][clear], chosen[clear])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_lower_precision_stays_near_float64(dtype):
    inputs = triple(2, 5, 7, 11, dtype=dtype)
    found = rank_one_attention(*inputs)
    assert found.dtype == dtype
    wanted = plain(*(t.double() for t in inputs))
    limit = 8 * torch.finfo(dtype).eps * float(wanted.detach().abs().max())
    torch.testing.assert_close(found.double(), wanted, rtol=0, atol=limit)


def test_it_runs_under_inference_mode():
    with torch.inference_mode():
        inputs = [t.detach() for t in triple(3, 4, 4, 5)]
        torch.testing.assert_close(rank_one_attention(*inputs), plain(*inputs))


def test_the_operator_is_registered_as_torch_requires():
    torch.library.opcheck(torch.ops.headwise.rank_one_attention.default, triple(2, 3, 4, 5))


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_equals_the_processor():
    inputs, gradient = triple(3, 5, 7, 11), torch.ones(3, 5, 11).double()
    found = value_and_gradients(
        rank_one_attention,
        [t.detach().cuda().requires_grad_() for t in inputs],
        gradient.cuda(),
    )
    wanted = value_and_gradients(rank_one_attention, inputs, gradient)
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours.cpu(), theirs)
