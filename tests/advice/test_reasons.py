"""What is said follows what was measured."""

from dataclasses import replace

import pytest

from headwise.advice.curves import RankCurve
from headwise.advice.evidence import Evidence, TokenStatistics
from headwise.advice.reasons import findings, length_finding
from headwise.advice.rule import choose_rank
from headwise.advice.theory_curve import law_curve

LAW = law_curve(64, 32)
STATISTICS = TokenStatistics(8, 64, 32, 30.0, 0.0, 0.06, 0.001, False)


def said(shift: float, half: float) -> str:
    """The finding about the law when the measured curve lies ``shift`` above it at d_h = 8."""
    dims = LAW.head_dims
    means = tuple(LAW.at(dim) + (shift if dim == 8 else 0.0) for dim in dims)
    paper = RankCurve("paper", dims, means, (half,) * len(dims), 8, 0.63, "theory")
    model = replace(paper, start="model")
    evidence = Evidence("tokens", 64, 32, (model, paper, LAW), STATISTICS, 0)
    found = findings(evidence, choose_rank(evidence.curves, 30.0, 32, False, "data"))
    return next(line for line in found if "nearly orthonormal" in line)


@pytest.mark.parametrize(
    ("dimension", "words"),
    [
        (6.0, "about 2 times that in training: rank 12"),
        (7.0, "about 2 times that in training, at most the width: rank 12"),
    ],
)
def test_it_is_said_where_the_width_limits_lookup(dimension, words):
    statistics = replace(STATISTICS, width=12, effective_dimension=dimension)
    evidence = Evidence("tokens", 64, 12, (law_curve(64, 12),), statistics, 0)
    found = findings(evidence, choose_rank(evidence.curves, dimension, 12, False, "data"))
    assert any(f"takes {words}." in line for line in found)


@pytest.mark.parametrize("shift", [0.0, 0.009, -0.009])
def test_the_law_describes_what_keeps_it_in_its_band(shift):
    assert "and the finite law describes them" in said(shift, half=0.01)


@pytest.mark.parametrize(
    ("shift", "side", "because"),
    [
        (0.04, "above", "; softer attention has more rank."),
        (-0.04, "below", "; tokens that are equal, or not centred, have less rank."),
    ],
)
def test_outside_the_band_it_is_said_how_far_and_why(shift, side, because):
    words = said(shift, half=0.01)
    assert "does not describe them" in words
    assert f"up to 0.040 {side} it (at head dimension 8, band ± 0.010)" in words
    assert words.endswith(because)


def about(**changed) -> str:
    statistics = replace(STATISTICS, **changed)
    evidence = Evidence("tokens", 64, 32, (law_curve(64, 32),), statistics, 0)
    return " ".join(findings(evidence, choose_rank(evidence.curves, 30.0, 32, False, "data")))


@pytest.mark.parametrize(("distinct", "said_so"), [(31, True), (119, True), (121, False)])
def test_tokens_too_few_to_show_their_dimension_are_named(distinct, said_so):
    assert (f"Few tokens: {distinct} different ones" in about(distinct=distinct)) is said_so
    assert "Few tokens" not in about(distinct=distinct, learned=True)


@pytest.mark.parametrize(
    ("distinct", "words"),
    [
        (1, "1 different one was given, which shows no more than 0 dimensions."),
        (2, "2 different ones were given, which show no more than 1 dimension."),
    ],
)
def test_one_is_spoken_of_as_one(distinct, words):
    assert words in about(distinct=distinct)


@pytest.mark.parametrize(("share", "said_so"), [(0.3, False), (0.4, True)])
def test_a_token_that_is_nearly_everywhere_is_named(share, said_so):
    assert ("Repeats: 40% of the tokens" in about(repeated=share)) is said_so


@pytest.mark.parametrize(
    ("count", "words"),
    [(1, "holds 74% of their variance and is left out"), (5, "hold 74% of their variance and are")],
)
def test_few_tokens_with_much_of_the_variance_are_named(count, words):
    with_them = {"dimension_with_outliers": 1.6, "mean_share_with_outliers": 0.2}
    said = about(outliers=count, outlier_share=0.74, **with_them)
    assert f"Outliers: {count} of the 512 tokens looked at {words}" in said
    assert "that would be 1.6, not 30.0, and the common mean would hold 20% of the mean" in said


def test_outliers_that_were_counted_need_no_word():
    assert "Outliers" not in about(outliers=3, outlier_share=0.2)
    assert "Outliers" not in about()


def test_a_mean_that_outliers_do_not_move_needs_no_word():
    with_them = {"dimension_with_outliers": 1.6, "mean_share_with_outliers": 0.001}
    said = about(outliers=1, outlier_share=0.74, **with_them)
    assert "that would be 1.6, not 30.0. A layer norm" in said


@pytest.mark.parametrize(
    ("returning", "by_chance", "said_so"),
    [
        (0.94, 0.10, True),  # four tokens, sixteen times each
        (0.94, 0.94, False),  # four letters
        (0.70, 0.58, False),  # words of a text
        (0.45, 0.00, False),
    ],
)
def test_sequences_that_repeat_themselves_are_named_and_text_is_not(returning, by_chance, said_so):
    words = about(returning=returning, returning_by_chance=by_chance)
    assert ("Repeats: 94% of the tokens occurred before in their sequence" in words) is said_so
    assert ("Repeats" in words) is said_so


@pytest.mark.parametrize(("spread", "said_so"), [(0.001, True), (0.09, True), (0.11, False)])
def test_tokens_not_well_above_the_positions_are_named(spread, said_so):
    assert (f"Positions: the numbers of the tokens lie {spread} from" in about(spread=spread)) is (
        said_so
    )


@pytest.mark.parametrize(("learned", "advised"), [(False, True), (True, False)])
def test_only_vectors_can_have_their_mean_subtracted(learned, advised):
    words = about(mean_share=0.5, learned=learned)
    assert "the common mean holds 50%" in words
    assert ("subtract the mean first" in words) is advised
    assert ("ids that return often" in words) is not advised
    centred = about(mean_share=0.2, learned=learned)
    assert "lower the rank" not in centred


@pytest.mark.parametrize("learned", [True, False])
@pytest.mark.parametrize(("sequences", "said_so"), [(1, True), (7, True), (8, False)])
def test_few_tokens_in_all_are_named_be_they_ids_or_vectors(sequences, learned, said_so):
    words = about(sequences=sequences, learned=learned, distinct=121)
    assert (f"Few tokens: {64 * sequences} in all were looked at" in words) is said_so


def test_few_tokens_are_one_finding_whatever_they_are_too_few_for():
    words = about(sequences=1, distinct=40)
    assert words.count("Few tokens: ") == 1
    assert "64 in all were looked at" in words
    assert "40 different ones were given, which show no more than 32 dimensions" in words


@pytest.mark.parametrize(
    ("measured", "taken", "words"),
    [
        (
            128,
            40_960,
            "128 tokens, the model takes 40,960. Longer sequences can ask for more rank: "
            "pass sequences of 512.",
        ),
        (128, 256, "takes 256. Longer sequences can ask for more rank: pass sequences of 256."),
        (512, 40_960, "takes 40,960. Longer sequences can ask for more rank."),
        (512, 96, "takes 96. Ask again with a length of 96 to cut them."),
    ],
)
def test_another_length_than_the_models_is_named(measured, taken, words):
    evidence = Evidence("tokens", measured, 32, (LAW,), STATISTICS, 0)
    assert length_finding(evidence, taken)[0].endswith(words)


def test_the_models_own_length_needs_no_word_and_the_law_has_measured_none():
    assert length_finding(Evidence("tokens", 64, 32, (LAW,), STATISTICS, 0), 64) == []
    assert length_finding(Evidence("numbers", 64, 32, (LAW,), None, 0), 128) == []
