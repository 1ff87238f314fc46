import pytest
import torch

from headwise.attention.initialisation import gaussian_heads
from headwise.errors import BadInputError


def test_queries_and_keys_have_the_variance_of_a_sum_of_products():
    """Each entry is a sum of ``width`` products of two N(0, 1): mean 0, variance ``width``."""
    width = 384
    queries, keys = gaussian_heads(20, 100, width=width, head_dim=16, seed=1)
    assert queries.dtype == keys.dtype == torch.float64
    for entries in (queries, keys):
        # Heads are independent, entries within one are not quite: take the spread over heads.
        variances = entries.flatten(1).var(-1) / width
        stderr = float(variances.std()) / 20**0.5
        assert float(variances.mean()) == pytest.approx(1, abs=5 * stderr)
        assert stderr < 0.05


def test_one_input_serves_both_and_each_head_has_its_own():
    queries, keys = gaussian_heads(3, 11, width=5, head_dim=7, seed=2)
    both = torch.cat([queries, keys], dim=-1)
    # X W has the rank of X, the width; were there two inputs, the rank would be twice that.
    assert torch.linalg.matrix_rank(both).tolist() == [5, 5, 5]
    assert int(torch.linalg.matrix_rank(both.transpose(0, 1).reshape(11, -1))) == 11


def test_the_seed_decides_and_the_global_generator_does_not():
    first = gaussian_heads(1, 3, width=5, head_dim=2, seed=4)
    torch.manual_seed(0)
    again = gaussian_heads(1, 3, width=5, head_dim=2, seed=4)
    other = gaussian_heads(1, 3, width=5, head_dim=2, seed=5)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("wrong", ["heads", "tokens", "width", "head_dim"])
def test_sizes_below_one_are_refused_by_name(wrong):
    sizes = {"heads": 1, "tokens": 2, "width": 3, "head_dim": 2} | {wrong: 0}
    with pytest.raises(BadInputError, match=f"expected {wrong} of at least 1, got 0"):
        gaussian_heads(**sizes, seed=0)
