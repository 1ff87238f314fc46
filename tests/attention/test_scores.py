"""Logits, softmax and hardmax: degenerate cases, masks, error bounds, refusals."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.attention import (
    Causal,
    Padding,
    SlidingWindow,
    as_mask,
    hardmax_matrix,
    logits,
    softmax_matrix,
)
from headwise.attention.masks import Additive
from headwise.attention.scores import masked
from headwise.errors import BadInputError, ParameterError
from headwise.spectra import LogWeights, count


def gaussian(*shape, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


class TestDegenerate:
    def test_one_token_attends_to_itself(self):
        assert softmax_matrix(gaussian(1, 3), gaussian(1, 3)).tolist() == [[1.0]]

    def test_equal_keys_share_evenly(self):
        found = softmax_matrix(gaussian(5, 3), gaussian(1, 3).expand(4, 3))
        torch.testing.assert_close(found, torch.full((5, 4), 0.25).double(), rtol=1e-14, atol=0)

    def test_zero_queries_share_evenly_and_have_no_error(self):
        found = logits(torch.zeros(5, 3), gaussian(4, 3, dtype=torch.float32))
        assert found.values.abs().max() == 0
        assert softmax_matrix(torch.zeros(5, 3), gaussian(4, 3).float()).unique().tolist() == [0.25]

    def test_tiny_temperature_is_one_hot_without_overflow(self):
        q, k = gaussian(20, 64), gaussian(20, 64, seed=1)
        soft = softmax_matrix(q, k, temperature=1e-5)
        assert torch.equal(soft.round(), hardmax_matrix(q, k))
        assert bool(soft.isfinite().all())

    def test_hardmax_of_ties_is_the_first(self):
        assert hardmax_matrix(torch.ones(1, 2), torch.ones(3, 2)).tolist() == [[1, 0, 0]]

    def test_rank_of_equal_keys_is_one(self):
        assert int(count(logits(gaussian(9, 4), gaussian(1, 4).expand(9, 4)))) == 1


class TestTemperature:
    def test_default_is_the_root_of_the_head_dimension(self):
        q, k = gaussian(3, 16), gaussian(5, 16, seed=1)
        assert torch.equal(logits(q, k).values, logits(q, k, temperature=4.0).values)

    def test_it_is_the_whole_divisor(self):
        q, k = gaussian(3, 16), gaussian(5, 16, seed=1)
        assert torch.equal(logits(q, k, temperature=0.5).values, (q @ k.T) / 0.5)

    @pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
    def test_others_are_refused(self, bad):
        with pytest.raises(
            BadInputError, match=r"`temperature` above zero, got .*; pass for example 2"
        ):
            logits(gaussian(3, 4), gaussian(3, 4), temperature=bad)

    @pytest.mark.parametrize("bad", [0.0, -30.0, math.nan, math.inf])
    def test_a_softcap_is_a_positive_number(self, bad):
        with pytest.raises(ParameterError, match="expected a positive `softcap`"):
            logits(gaussian(3, 4), gaussian(3, 4), softcap=bad)


def exact_logits(q, k, temperature):
    """The logits in 80-bit arithmetic, whose own error is 2000 times smaller."""
    wide = np.longdouble
    return (q.numpy().astype(wide) @ k.numpy().astype(wide).swapaxes(-1, -2)) / wide(temperature)


class TestErrorBound:
    @settings(deadline=None, max_examples=60)
    @given(
        n=st.integers(1, 13),
        rank=st.integers(1, 97),
        temperature=st.sampled_from([1e-5, 1e-3, 0.1, 1.0, 7.0]),
        scale=st.sampled_from([1e-3, 1.0, 1e3]),
        seed=st.integers(0, 2**31),
    )
    def test_it_covers_the_rounding_of_float64(self, n, rank, temperature, scale, seed):
        q, k = gaussian(2, n, rank, seed=seed) * scale, gaussian(2, n, rank, seed=seed + 1)
        found = logits(q, k, temperature=temperature)
        off = np.abs(found.values.numpy() - exact_logits(q, k, temperature)).max(-1)
        assert (off <= found.error.numpy()).all()

    @settings(deadline=None, max_examples=60)
    @given(
        dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.float16]),
        rank=st.integers(1, 97),
        scale=st.sampled_from([1e-6, 1.0, 50.0]),
        seed=st.integers(0, 2**31),
    )
    def test_it_covers_what_a_low_dtype_hides(self, dtype, rank, scale, seed):
        q, k = gaussian(5, rank, seed=seed) * scale, gaussian(7, rank, seed=seed + 1)
        found = logits(q.to(dtype), k.to(dtype))
        meant = logits(q, k)
        assert ((found.values - meant.values).abs().amax(-1) <= found.error).all()

    def test_only_one_of_the_two_may_be_low(self):
        q, k = gaussian(5, 8), gaussian(7, 8, seed=1)
        both = logits(q.float(), k.float()).error
        one = logits(q, k.float()).error
        assert (one < both).all()
        assert (one > logits(q, k).error).all()

    def test_at_tiny_temperature_it_is_as_large_as_the_logits_demand(self):
        q, k = 30 * gaussian(50, 64), 30 * gaussian(50, 64, seed=1)
        found = logits(q, k, temperature=1e-5)
        assert found.values.abs().max() > 1e9
        assert 1e-7 < float(found.error.max()) < 1e-4

    @settings(deadline=None, max_examples=60)
    @given(
        first=st.sampled_from([1e-3, 1.0, 1e16, 1e300]),
        second=st.sampled_from([0.0, 1.0, 1e16, 1e300]),
        scale=st.sampled_from([1e-3, 1.0, 1e16]),
        seed=st.integers(0, 2**31),
    )
    def test_it_covers_the_rounding_of_every_bias(self, first, second, scale, seed):
        products, one, other = (gaussian(5, 5, seed=seed + i) for i in range(3))
        one, other = first * one, second * other - first * one
        masks = Additive(one) & Causal() & Additive(other)
        q, k = scale * products, torch.eye(5, dtype=torch.float64)
        exact = [
            [sum(map(Fraction, cell)) for cell in zip(*rows, strict=True)]
            for rows in zip(*(x.tolist() for x in (q, one, other)), strict=True)
        ]
        for found in (
            logits(q, k, temperature=1.0, mask=masks),
            masked(LogWeights(q), masks),
        ):
            pairs = zip(found.values.tolist(), found.row_error.tolist(), exact, strict=True)
            for i, (row, error, wanted) in enumerate(pairs):
                for computed, meant in list(zip(row, wanted, strict=True))[: i + 1]:
                    assert abs(Fraction(computed) - meant) <= Fraction(error) + Fraction(1, 10**320)

    def test_a_sum_of_biases_that_overflows_is_not_certain(self):
        large = torch.tensor([[-1.5e308, 0.0]], dtype=torch.float64)
        weights = LogWeights(torch.tensor([[-1e308, 0.0]], dtype=torch.float64))
        assert masked(weights, Additive(large) & Additive(-large)).row_error.tolist() == [math.inf]

    def test_a_bias_that_rounding_hides_is_not_certain(self):
        """Beside 1e16 a bias of 0.9 is lost, and without it all rows are equal."""
        bias = 0.9 * torch.eye(2, dtype=torch.float64)
        large = torch.full((2, 2), 1e16, dtype=torch.float64)
        one = masked(LogWeights(large), bias)
        both = logits(bias, bias / 0.9, temperature=1.0, mask=Additive(large) & Additive(-large))
        for found in (count(one).item(), count(both).item()):
            assert found.low <= 2 <= found.high

    def test_it_is_not_wildly_pessimistic(self):
        q, k = gaussian(50, 64), gaussian(50, 64, seed=1)
        found = logits(q, k)
        off = np.abs(found.values.numpy() - exact_logits(q, k, 8.0)).max(-1)
        assert (found.error.numpy() < 1e4 * off.max()).all()


class TestMasks:
    def test_causal_matrix_is_lower_triangular_with_rows_that_sum_to_one(self):
        found = softmax_matrix(gaussian(2, 7, 3), gaussian(2, 7, 3, seed=1), mask=Causal())
        assert torch.equal(found, found.tril())
        torch.testing.assert_close(found.sum(-1), torch.ones(2, 7).double())

    def test_causal_offset_serves_a_cache(self):
        q, k = gaussian(7, 3), gaussian(7, 3, seed=1)
        whole = softmax_matrix(q, k, mask=Causal())
        last = softmax_matrix(q[-2:], k, mask=Causal(offset=5))
        torch.testing.assert_close(last, whole[-2:])

    def test_sliding_window_is_banded(self):
        found = softmax_matrix(gaussian(7, 3), gaussian(7, 3), mask=SlidingWindow(2))
        assert torch.equal(found, found.tril(1).triu(-1))
        assert (found > 0).sum() == 7 + 6 + 6

    def test_padding_equals_dropping_the_columns(self):
        q, k = gaussian(2, 4, 5, 3), gaussian(2, 4, 6, 3, seed=1)
        found = softmax_matrix(q, k, mask=Padding.of_lengths(torch.tensor([2, 6]), size=6))
        torch.testing.assert_close(found[0, :, :, :2], softmax_matrix(q[0], k[0, :, :2]))
        assert found[0, :, :, 2:].abs().max() == 0
        torch.testing.assert_close(found[1], softmax_matrix(q[1], k[1]))

    def test_masks_compose(self):
        both = Causal() & SlidingWindow(3) & Padding(torch.tensor([True] * 6 + [False]))
        found = softmax_matrix(gaussian(7, 3), gaussian(7, 3, seed=1), mask=both) > 0
        i, j = torch.arange(7)[:, None], torch.arange(7)
        assert torch.equal(found, (j <= i) & (i - j < 3) & (j < 6))

    def test_boolean_and_additive_tensors_agree_with_the_rule(self):
        q, k = gaussian(2, 7, 3), gaussian(2, 7, 3, seed=1)
        lower = torch.ones(7, 7, dtype=torch.bool).tril()
        bias = torch.zeros(7, 7).masked_fill(~lower, -math.inf)
        lowest = torch.zeros(7, 7).masked_fill(~lower, torch.finfo(torch.float32).min)
        wanted = softmax_matrix(q, k, mask=Causal())
        for mask in (lower, bias, lowest):
            assert torch.equal(softmax_matrix(q, k, mask=mask), wanted)

    def test_additive_bias_comes_after_the_temperature(self):
        bias = gaussian(3, 3, seed=2)
        found = logits(torch.zeros(3, 2), torch.zeros(3, 2), temperature=0.1, mask=bias)
        assert torch.equal(found.values, bias)

    def test_hardmax_obeys_masks(self):
        found = hardmax_matrix(gaussian(5, 2), gaussian(5, 2, seed=1), mask=SlidingWindow(1))
        assert torch.equal(found, torch.eye(5).double())


@pytest.mark.parametrize("name", ["none", "causal", "causal:2", "window:3", "causal+window:2"])
def test_a_mask_has_the_name_it_is_made_from(name):
    assert as_mask(name).name == name


def test_names_mean_the_masks():
    q, k = gaussian(5, 2), gaussian(5, 2)
    wanted = logits(q, k, mask=Causal() & SlidingWindow(2)).values
    assert torch.equal(logits(q, k, mask="causal+window:2").values, wanted)


REFUSALS = {
    "a row that masks everything": (
        lambda: logits(gaussian(2, 3, 2), gaussian(2, 3, 2), mask=torch.eye(3)[[0, 0, 0]] > 1),
        r"row 0 of matrix \(0,\) masks every key \(6 such rows in all\); drop those rows",
    ),
    "one masked row": (
        lambda: logits(
            gaussian(3, 2), gaussian(3, 2), mask=torch.tensor([[1, 1, 1]] * 2 + [[0] * 3]) > 0
        ),
        r"row 2 masks every key \(1 such rows in all\); drop those rows \(padding\)",
    ),
    "head dimensions differ": (
        lambda: logits(gaussian(3, 4), gaussian(3, 5)),
        "queries have 4 dimensions per head, keys 5; both need the same last dimension",
    ),
    "batches differ": (
        lambda: logits(gaussian(8, 3, 4), gaussian(2, 3, 4)),
        r"batch shape \(8,\), keys \(2,\); make them equal; .*repeat_interleave",
    ),
    "NaN in a key": (
        lambda: logits(gaussian(3, 4), gaussian(3, 4) * math.nan),
        "the key tensor has NaN or infinity in 3 rows",
    ),
    "infinite query": (
        lambda: logits(gaussian(3, 4) * math.inf, gaussian(3, 4)),
        "the query tensor has NaN or infinity in 3 rows",
    ),
    "integers": (
        lambda: logits(torch.full((3, 4), 2**53 + 1), gaussian(3, 4)),
        "the query tensor holds whole numbers above",
    ),
    "complex": (
        lambda: logits(gaussian(3, 4), torch.ones(3, 4, dtype=torch.complex64)),
        "the key tensor has dtype complex64; pass float64",
    ),
    "one dimension": (
        lambda: logits(gaussian(4), gaussian(4)),
        r"the query tensor has shape \(4,\); pass at least two dimensions",
    ),
    "empty": (
        lambda: logits(gaussian(0, 4), gaussian(0, 4)),
        r"the query tensor is empty, shape \(0, 4\)",
    ),
    "mask of wrong shape": (
        lambda: logits(gaussian(3, 4), gaussian(5, 4), mask=torch.ones(5, 3).bool()),
        r"broadcasts to logits of shape \(3, 5\), got shape \(5, 3\); pass \(queries, keys\)",
    ),
    "mask of too many dimensions": (
        lambda: logits(gaussian(3, 4), gaussian(3, 4), mask=torch.ones(1, 3, 3).bool()),
        r"broadcasts to logits of shape \(3, 3\), got shape \(1, 3, 3\)",
    ),
    "integer mask": (
        lambda: logits(gaussian(3, 4), gaussian(3, 4), mask=torch.ones(3, 3).int()),
        "expected a boolean or float mask, got dtype int32; pass True where",
    ),
    "flat mask": (
        lambda: logits(gaussian(3, 4), gaussian(3, 4), mask=torch.ones(3).bool()),
        r"expected a mask of shape .*, got \(3,\); use Padding\(real\)",
    ),
    "NaN in a mask": (
        lambda: logits(gaussian(3, 4), gaussian(3, 4), mask=torch.full((3, 3), math.nan)),
        "got NaN or .infinity; write -infinity",
    ),
    "padding of the wrong length": (
        lambda: logits(gaussian(2, 3, 4), gaussian(2, 3, 4), mask=Padding(torch.ones(2, 4).bool())),
        r"for logits of shape \(2, 3, 3\), got \(2, 4\)",
    ),
    "padding of another dtype": (
        lambda: Padding(torch.ones(2, 4)),
        "expected a boolean padding mask, got dtype float32; pass True",
    ),
    "unknown name": (
        lambda: logits(gaussian(3, 4), gaussian(3, 4), mask="prefix"),
        "expected `mask` none, causal, window:128 or causal.window:128, got 'prefix'",
    ),
    "empty window": (
        lambda: SlidingWindow(0),
        "width at least 1, got 0; pass a larger width",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_bad_input_is_refused_with_the_way_out(name):
    call, message = REFUSALS[name]
    with pytest.raises(BadInputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("mask", ["none", "causal"])
@pytest.mark.parametrize(
    ("q_power", "k_power"), [(-531, -531), (-540, -520), (-600, 500), (-540, 300), (-540, 539)]
)
def test_the_error_of_logits_covers_products_and_norms_that_underflow(q_power, k_power, mask):
    """Norms became zero, the logits passed for exact, and rank 10 was certified as 20."""
    rng = torch.Generator().manual_seed(0)
    queries, keys = (torch.randn(20, 1, dtype=torch.float64, generator=rng) for _ in range(2))
    wanted = logits(queries, keys, temperature=1.0, mask=mask)
    scaled = queries * 2.0**q_power, keys * 2.0**k_power
    found = logits(*scaled, temperature=2.0 ** (q_power + k_power), mask=mask)
    moved = torch.where(wanted.values.isfinite(), (wanted.values - found.values).abs(), 0)
    assert bool((moved.amax(-1) <= found.error).all())
    assert bool((found.error > 0).all())
    truth, count_ = count(wanted, 1e-8).item(), count(found, 1e-8).item()
    assert count_.low <= int(truth) <= count_.high


@pytest.mark.parametrize("name", ["window:99999999999999999999", "causal:" + "9" * 19])
def test_a_mask_whose_number_overflows_is_refused(name):
    """It ended in an OverflowError, or in a sum of distances that wrapped around."""
    with pytest.raises(ParameterError, match="expected `mask` none, causal"):
        as_mask(name)
    kind = SlidingWindow if name.startswith("window") else Causal
    with pytest.raises(ParameterError, match="1,000,000,000"):
        kind(int(name.partition(":")[2]))
