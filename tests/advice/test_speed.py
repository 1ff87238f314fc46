"""What is said of speed where costs do not show it."""

import json

import pytest

from headwise.advice import Constraints, advise_config, advise_numbers
from headwise.advice.speed import speed_finding
from headwise.geometry import HeadGeometry, LatentGeometry

PADS = "take head dimensions in multiples of 8 and pad others"


@pytest.mark.parametrize(
    ("geometry", "said", "unsaid"),
    [
        (
            HeadGeometry.free(64, 16, 4),
            [f"{PADS} (4 here)", "Asking for ranks in multiples of 8 would"],
            ["n × n"],
        ),
        (HeadGeometry(64, 4, 4, 8, 12), ["(12 here)"], ["n × n", "Asking"]),
        (HeadGeometry(64, 4, 4, 3, 12), ["(3 and 12 here)"], ["n × n"]),
        (
            HeadGeometry.free(512, 65, 8),
            ["Each of the 65 heads", "Asking for a set number of heads would"],
            [PADS],
        ),
        (
            HeadGeometry.free(512, 128, 4),
            [
                PADS,
                "Each of the 128 heads",
                "Asking for ranks in multiples of 8 and a set number of heads would limit that.",
            ],
            [],
        ),
        # The rotary part is what makes this dimension odd, and the rank is a multiple already.
        (LatentGeometry(64, 4, 4, 12, 8, 32, None, 4), ["(12 here)"], ["Asking"]),
        (HeadGeometry.free(4, 1, 4), ["(4 here)"], ["Asking"]),
    ],
)
def test_what_is_padded_and_what_are_many_is_said(geometry, said, unsaid):
    (line,) = speed_finding(geometry, Constraints())
    assert line.startswith("Speed: ")
    assert all(words in line for words in said)
    assert not any(words in line for words in unsaid)


@pytest.mark.parametrize("geometry", [HeadGeometry.free(512, 64, 8), HeadGeometry.free(64, 1, 64)])
def test_of_what_kernels_take_nothing_is_said(geometry):
    assert speed_finding(geometry, Constraints()) == []


def speed_of(answer) -> list[str]:
    return [line for line in answer.findings if line.startswith("Speed: ")]


def test_the_options_it_names_do_help():
    told = speed_of(advise_numbers(16, 1024))
    assert advise_numbers(16, 1024).rank.rank % 8
    assert "ranks in multiples of 8 and a set number of heads would" in told[0]
    helped = advise_numbers(16, 1024, constraints=Constraints(multiple_of=8, heads=16))
    assert speed_of(helped) == []


def test_what_was_fixed_is_not_advised_again():
    fixed = advise_numbers(16, 1024, constraints=Constraints(heads=128, rank=4))
    (line,) = speed_of(fixed)
    assert "Each of the 128 heads" in line
    assert "Asking" not in line


def test_a_model_that_stays_as_it_is_gets_no_word_on_speed(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"hidden_size": 64, "n_head": 1, "head_dim": 1}))
    answer = advise_config(path)
    assert answer.best.role == "present"
    assert speed_of(answer) == []
