"""The role of d: the paper finds that what matters is the rank as a share of the width."""

from __future__ import annotations

from headwise.papers.exhibit import Scale
from headwise.papers.heads2024.schedules import ROLE_OF_D, two_layers
from headwise.papers.kinds.trained_grid import TrainedGrid

SIZES = {
    Scale.MINIATURE: {"tokens": 4, "copies": 2},
    Scale.LAPTOP: {"tokens": 8, "copies": 4},
    Scale.PAPER: {"tokens": 16, "copies": 8},
}

FIGURE_ROLE_OF_D = TrainedGrid(
    questions=two_layers("width", ROLE_OF_D, SIZES),
    scales=tuple(ROLE_OF_D),
    curve="width",
    label="d = {}".format,
    panel="Two layers, growing d",
    along=("share", "rank / width"),
    more=lambda row: {"share": row["rank"] / row["width"]},
    schedule="200,000 steps of 256 at rate 0.005 and five",
    columns={"width": "d", "rank": "r"},
).exhibit(
    "Two layers of averaged blocks of d/r heads (the paper: 8 blocks, N = 16); otherwise as the "
    "figure of rank and depth.",
    printed="the figure of the role of d",
)
