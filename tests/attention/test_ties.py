"""Keys that occur more than once: their scores are equal, whatever a matrix product makes of them.

The oracle takes the arg-max among the different keys alone, where nothing is tied, and then the
place where the winner occurs first.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.attention import Causal, hardmax_matrix, hardmax_rank, streaming_argmax
from headwise.attention import operator as operator_module
from headwise.attention.scores import first_best, logits
from headwise.attention.weighting import Hardmax, Heads, StraightThroughHardmax
from headwise.errors import BadInputError
from headwise.spectra.measuring import hardmax_rank as rank_of_logits

DTYPES = [torch.float64, torch.float32]


def repeated(n, d, different, seed, dtype):
    """Queries, keys of which only so many differ, and the key that each query picks."""
    generator = torch.Generator().manual_seed(seed)
    queries = torch.randn(n, d, generator=generator, dtype=torch.float64).to(dtype)
    kept = torch.randn(different, d, generator=generator, dtype=torch.float64).to(dtype)
    which = torch.randint(different, (n,), generator=generator)
    first = [which.tolist().index(one) if one in which else n for one in range(different)]
    seen = [one for one in range(different) if first[one] < n]
    scores = queries.double() @ kept[seen].double().mT
    picked = [first[seen[i]] for i in scores.argmax(-1).tolist()]
    # A query whose two best keys rounding cannot tell apart has no certain answer.
    best = scores.topk(min(2, len(seen)), dim=-1).values
    certain = best[:, 0] - best[:, -1] > 1e-3 if len(seen) > 1 else torch.ones(n, dtype=bool)
    return queries, kept[which], torch.tensor(picked), certain


@pytest.mark.parametrize("dtype", DTYPES)
@settings(deadline=None, max_examples=80)
@given(
    n=st.integers(1, 70),
    d=st.integers(1, 33),
    different=st.integers(1, 6),
    limit=st.sampled_from([7, 64, 2**22]),
    seed=st.integers(0, 2**31),
)
def test_the_first_of_equal_keys_is_picked(dtype, n, d, different, limit, seed):
    queries, keys, picked, certain = repeated(n, d, different, seed, dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operator_module, "LOGITS_AT_ONCE", limit)
        found = streaming_argmax(queries, keys)
    assert torch.equal(found[certain], picked[certain])
    dense = hardmax_matrix(queries, keys).argmax(-1)
    assert torch.equal(dense[certain], picked[certain])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 7, 20, 33, 100, 257])
@pytest.mark.parametrize("d", [1, 3, 4, 64])
def test_equal_keys_have_one_column(n, d, dtype):
    queries, keys, _, _ = repeated(n, d, 1, n + d, dtype)
    assert int(hardmax_rank(queries, keys)) == 1
    assert int(rank_of_logits(logits(queries, keys))) == 1
    assert int(hardmax_rank(queries, keys, mask=Causal())) == 1


def test_keys_made_equal_by_a_product_count_once():
    """Equal patches through one embedding: the rows may differ by their own rounding already."""
    generator = torch.Generator().manual_seed(0)
    patches = torch.randn(3, 48, generator=generator, dtype=torch.float64).repeat(37, 1)
    keys = patches @ torch.randn(48, 64, generator=generator, dtype=torch.float64)
    queries = torch.randn(200, 64, generator=generator, dtype=torch.float64)
    assert int(hardmax_rank(queries, keys)) == 3


def test_keys_that_differ_by_more_than_rounding_stay_apart():
    keys = torch.tensor([[1.0], [1.0 + 1e-12], [0.0]], dtype=torch.float64)
    queries = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
    assert streaming_argmax(queries, keys).tolist() == [1, 2]
    assert streaming_argmax(queries, keys, equals="exactly").tolist() == [1, 2]


def test_a_long_key_elsewhere_does_not_make_ties():
    """The tolerance for ties depends on the winner, not on the longest key."""
    keys = torch.tensor([[1.0], [1.001], [-1e12]], dtype=torch.float32)
    assert streaming_argmax(torch.ones(1, 1), keys).tolist() == [1]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_in_sixteen_bits_only_equal_scores_are_ties(dtype):
    keys = torch.tensor([[1.0], [1.0078125], [1.0078125]], dtype=dtype)
    assert streaming_argmax(torch.ones(1, 1, dtype=dtype), keys).tolist() == [1]


@pytest.mark.parametrize("weighting", [Hardmax(), StraightThroughHardmax()])
def test_layers_pick_the_first_of_equal_tokens(weighting):
    tokens = torch.randn(1, 1, 4, generator=torch.Generator().manual_seed(1)).expand(2, 50, 4)
    queries = torch.randn(2, 3, 50, 4, generator=torch.Generator().manual_seed(2))
    keys = torch.stack([tokens] * 3, dim=1)
    heads = Heads(queries, keys, keys, operator_module.EVERYTHING, 2.0)
    assert weighting.eval().weights(heads).argmax(-1).count_nonzero() == 0


def test_masked_scores_are_never_ties():
    queries, keys, _, _ = repeated(9, 4, 1, 3, torch.float64)
    scores = (queries @ keys.mT).masked_fill(torch.arange(9) < 5, -torch.inf)
    assert first_best(queries, keys, scores).tolist() == [5] * 9


@pytest.mark.parametrize("width", [1, 2, 3])
def test_a_long_key_that_wins_by_little_ties_with_the_first(width):
    """The tolerance of ties grows with the winner's norm; the second key had replaced the first."""
    long = torch.tensor([1e8, -1e8 + 1], dtype=torch.float64) + torch.tensor([2e-8, 0])
    keys = torch.stack(
        (torch.tensor([1.0, 0]).double(), torch.tensor([1 + 1e-9, 0]).double(), long)
    )
    query = torch.ones(1, 2, dtype=torch.float64)
    assert (query @ keys.mT).argmax() == 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operator_module, "CPU_TILE", (256, width))
        found = streaming_argmax(query, keys)
    assert found.tolist() == first_best(query, keys, query @ keys.mT).tolist() == [0]


@pytest.mark.parametrize("width", [1, 7, 64, 2**20])
@pytest.mark.parametrize("dtype", DTYPES)
def test_ascending_keys_are_no_chain_of_ties(dtype, width):
    """Each key ties with the next one only, so the last but one wins."""
    step = 8 * torch.finfo(dtype).eps
    keys = (1 + step * torch.arange(200, dtype=torch.float64)).to(dtype).unsqueeze(-1)
    queries = torch.tensor([[1.0], [-1.0]], dtype=dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operator_module, "CPU_TILE", (256, width))
        assert streaming_argmax(queries, keys).tolist() == [198, 0]
        assert int(hardmax_rank(queries, keys)) == 2


@pytest.mark.parametrize(("dtype", "scale"), [(torch.float32, 1e25), (torch.float64, 1e200)])
def test_huge_queries_and_keys_are_no_ties(dtype, scale):
    one, huge = torch.eye(3, dtype=dtype), scale * torch.eye(3, dtype=dtype)
    for queries, keys in ((one, huge), (huge, one)):
        assert int(hardmax_rank(queries, keys)) == 3
        assert torch.equal(hardmax_matrix(queries, keys), one.double())


@pytest.mark.parametrize(
    ("dtype", "size"), [(torch.float16, 300.0), (torch.float32, 1e25), (torch.float64, 1e200)]
)
def test_scores_that_overflow_are_refused(dtype, size):
    queries = torch.tensor([[size]], dtype=dtype)
    keys = torch.tensor([[size], [1.1 * size]], dtype=dtype)
    with pytest.raises(BadInputError, match=r"the scores q·k of 1 queries overflow float\d\d;"):
        hardmax_rank(queries, keys)
    if dtype == torch.float64:
        with pytest.raises(BadInputError, match="overflow float64"):
            hardmax_matrix(queries, keys)


def test_autocast_does_not_round_the_scores():
    generator = torch.Generator().manual_seed(0)
    queries, keys = (torch.randn(300, 16, generator=generator) for _ in range(2))
    wanted = streaming_argmax(queries, keys)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(streaming_argmax(queries, keys), wanted)
