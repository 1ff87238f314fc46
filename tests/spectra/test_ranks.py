import math
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headwise.errors import BadInputError, MissingExtraError, UndecidedError
from headwise.spectra import (
    Certificate,
    Counts,
    Spectrum,
    count,
    effective_rank,
    energy_rank,
    measure,
    numerical_rank,
    stable_rank,
)
from oracles import normal

ZERO = Spectrum(torch.zeros(5, dtype=torch.float64))
ONE = Spectrum(torch.tensor([3.0, 0, 0, 0, 0], dtype=torch.float64))
FLAT = Spectrum(torch.full((5,), 0.25, dtype=torch.float64))


def test_degenerate_spectra():
    for spectrum, expected in ((ZERO, 0.0), (ONE, 1.0), (FLAT, 5.0)):
        assert float(stable_rank(spectrum)) == pytest.approx(expected, abs=1e-14)
        assert float(effective_rank(spectrum)) == pytest.approx(expected, rel=1e-14)
    assert [int(energy_rank(s, 0.99)) for s in (ZERO, ONE, FLAT)] == [0, 1, 5]
    assert int(energy_rank(FLAT, 0.6)) == 3


def test_ranks_by_hand():
    spectrum = Spectrum(torch.tensor([2.0, 1.0, 1.0], dtype=torch.float64))
    assert float(stable_rank(spectrum)) == 1.5
    entropy = -(0.5 * math.log(0.5) + 2 * 0.25 * math.log(0.25))
    assert float(effective_rank(spectrum)) == pytest.approx(math.exp(entropy))
    assert int(energy_rank(spectrum, 0.6)) == 1
    assert int(energy_rank(spectrum, 0.7)) == 2


@given(
    st.lists(st.floats(1e-30, 1e30), min_size=1, max_size=20),
    st.floats(1e-100, 1e100),
)
def test_order_and_scale_invariance(values, scale):
    spectrum = Spectrum(torch.tensor(values, dtype=torch.float64).sort(descending=True).values)
    scaled = Spectrum(spectrum.values * scale)
    stable, effective = float(stable_rank(spectrum)), float(effective_rank(spectrum))
    assert 1 - 1e-12 <= stable <= effective**2 + 1e-9
    assert effective <= len(values) * (1 + 1e-12)
    assert float(stable_rank(scaled)) == pytest.approx(stable, rel=1e-9)
    assert float(effective_rank(scaled)) == pytest.approx(effective, rel=1e-9)
    assert int(energy_rank(scaled, 0.9)) == int(energy_rank(spectrum, 0.9))


def test_an_interval_where_a_value_may_lie_on_either_side():
    spectrum = Spectrum(torch.tensor([1.0, 0.5 + 1e-6, 0.1], dtype=torch.float64))
    half = torch.tensor(0.5, dtype=torch.float64)
    counts = numerical_rank(spectrum, half, torch.tensor(1e-5, dtype=torch.float64))
    assert (counts.item().low, counts.item().high) == (1, 2)
    assert not counts.item().exact
    with pytest.raises(UndecidedError, match=r"between 1 and 2.*within 1e-05.*or read \.low"):
        int(counts.item())
    with pytest.raises(UndecidedError, match="1 of 1 ranks"):
        _ = counts.values
    assert int(numerical_rank(spectrum, half, torch.tensor(1e-8, dtype=torch.float64))) == 2


def test_a_count_is_an_index_when_exact():
    assert list(range(Certificate(3, 3, 0.0, "svd"))) == [0, 1, 2]
    assert str(Certificate(3, 3, 0.0, "svd")) == "3"
    assert str(Certificate(3, 5, 0.0, "svd")) == "3 to 5"


def test_certificates_equal_the_number_they_are_certain_of():
    exact, open_ = Certificate(3, 3, 0.0, "svd"), Certificate(3, 5, 0.1, "svd")
    assert exact == 3 == exact and exact != 4 and exact == np.int64(3)
    assert open_ != 2 and open_ != 6
    with pytest.raises(UndecidedError, match="between 3 and 5"):
        assert open_ != 4
    assert hash(exact) == hash(3)


def test_certificates_are_compared_by_every_field():
    assert Certificate(3, 5, 0.1, "svd") == Certificate(3, 5, 0.1, "svd")
    assert Certificate(3, 5, 0.1, "svd") != Certificate(3, 5, 0.2, "svd")
    assert Certificate(3, 3, 0.1, "svd") != Certificate(3, 3, 0.1, "inertia")
    assert Certificate(3, 3, 0.1, "svd") != "3"


def test_counts_of_one_matrix_equal_its_number():
    one = Counts.of([Certificate(3, 3, 0.0, "svd")])
    assert one == 3 and one != 2 and one == one
    with pytest.raises(BadInputError, match="there are 2 ranks"):
        assert Counts.of([*one, *one]) == 3


def test_a_batch_is_not_one_number():
    counts = Counts.of([Certificate(1, 1, 0.0, "svd"), Certificate(2, 2, 0.0, "svd")])
    assert [int(c) for c in counts] == [1, 2]
    with pytest.raises(BadInputError, match="there are 2 ranks, not one"):
        int(counts)


@pytest.mark.parametrize("share", [0.0, 1.0, -1.0, 2.0])
def test_energy_share_must_be_a_share(share):
    with pytest.raises(BadInputError, match="between 0 and 1, got"):
        energy_rank(ONE, share)


def test_a_leading_spectrum_says_what_it_cannot_tell():
    leading = Spectrum(
        torch.tensor([2.0], dtype=torch.float64),
        unseen=3,
        unseen_energy=torch.tensor(4.0, dtype=torch.float64),
    )
    assert float(stable_rank(leading)) == 2.0
    with pytest.raises(UndecidedError, match="3 are not"):
        effective_rank(leading)


def batch_of_six():
    certificates = [Certificate(i, i + i % 2, 0.1, "svd") for i in range(6)]
    return Counts.of(certificates, torch.Size([2, 3])).about(torch.bfloat16, logits=False)


def test_counts_index_like_an_array_of_their_shape():
    counts, array = batch_of_six(), torch.arange(6).reshape(2, 3)
    assert counts.shape == (2, 3)
    assert len(counts) == 2
    assert counts[0, 1].low == 1
    assert counts[-1, -1].low == 5
    assert counts[1].low.tolist() == [3, 4, 5]
    assert counts[:, 1:].low.tolist() == array[:, 1:].tolist()
    assert [row.low.tolist() for row in counts] == array.tolist()
    assert [c.low for row in counts for c in row] == list(range(6))
    with pytest.raises(IndexError):
        counts[2, 0]
    one = count(torch.eye(3, dtype=torch.float64))
    assert one.item().low == 3
    with pytest.raises(TypeError, match="item"):
        len(one)


def test_an_interval_carries_its_reason():
    counts = batch_of_six()
    assert counts[0, 0].reason is None
    expected = "bfloat16 hides whatever is below 0.1; pass the float64 logits, or queries and keys"
    assert counts[0, 1].reason == expected
    assert counts[0:1, 1:2][0, 0].reason == expected
    rounded = torch.softmax(normal(40, 40, seed=0), -1).bfloat16()
    assert "bfloat16" in count(rounded).item().reason
    assert "bfloat16" in measure(rounded).rank.item().reason


@pytest.mark.parametrize("shape", [(5, 5), (4, 30, 30), (2, 3, 20, 20), (500, 4, 4)])
def test_results_print_in_less_than_300_characters(shape):
    found = measure(normal(*shape, seed=0))
    for result in (found, found.rank, found.spectrum):
        assert len(repr(result)) < 300
        assert "\n" not in repr(result)


def test_measure_tries_every_method_before_it_gives_an_interval():
    """Weights near the cut leave near-hardmax an interval where a decomposition is sure."""
    matrix = torch.eye(40, dtype=torch.float64)
    matrix[0, 0] = 1e-8 * (1 + 1e-6)
    assert int(measure(matrix).rank) == 40


def test_a_frame_needs_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'pandas"):
        batch_of_six().to_frame()


def test_counts_become_a_frame_with_one_row_per_matrix():
    frame = batch_of_six().to_frame()
    assert list(frame.columns) == ["index", "low", "high", "delta", "method", "reason"]
    assert frame["index"].tolist() == [(i, j) for i in range(2) for j in range(3)]
    assert frame.low.tolist() == list(range(6))


def test_a_measurement_becomes_a_frame_with_three_more_columns():
    frame = measure(torch.stack([torch.eye(4), torch.zeros(4, 4)]).double()).to_frame()
    assert frame.low.tolist() == frame.high.tolist() == [4, 0]
    assert frame.stable_rank[0] == pytest.approx(4)
    assert {"epsilon", "effective_rank"} <= set(frame.columns)


def drawn(figure) -> dict[str, list[float]]:
    """The heights of the labelled lines in the first panel of a figure."""
    lines = figure.axes[0].lines
    return {str(line.get_label()): list(line.get_ydata()) for line in lines}


def test_counts_draw_the_rank_of_each_matrix_and_mark_the_uncertain_one(tmp_path):
    figure = batch_of_six().plot(tmp_path / "ranks.svg")
    heights = drawn(figure)
    assert heights["rank"] == list(range(6))
    counts = batch_of_six()
    assert heights["at most"] == counts.high[counts.low < counts.high].tolist()
    assert (tmp_path / "ranks.svg").read_bytes().startswith(b"<?xml")


@pytest.mark.parametrize("shape", [(5, 5), (2, 5, 5), (3, 4, 5, 5)])
def test_a_measurement_draws_the_singular_values_of_up_to_eight_matrices(shape):
    found = measure(normal(*shape, seed=0))
    heights = drawn(found.plot())
    first = found.spectrum.values.reshape(-1, 5)[0].tolist()
    assert first in heights.values()
    curves = [values for values in heights.values() if len(values) == 5]
    assert len(curves) == min(8, math.prod(shape[:-2]))


def test_a_zero_matrix_can_be_drawn():
    assert measure(torch.zeros(3, 3).double()).plot().axes
