"""All kinds of specs as one closed union: what a file or a store may hold."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from headwise.experiments.bound_heads import BoundHeads
from headwise.experiments.check_theorem import CheckTheorem
from headwise.experiments.construction import Construction
from headwise.experiments.count_by_method import CountByMethod
from headwise.experiments.image_orthonormality import ImageOrthonormality
from headwise.experiments.majority_vote import MajorityVote
from headwise.experiments.measure_rank import MeasureRank
from headwise.experiments.orthonormality import Orthonormality
from headwise.experiments.predict_rank import PredictRank
from headwise.experiments.random_heads import RandomHeads
from headwise.experiments.real_rank import ImageRank, TextRank
from headwise.experiments.simulate_long_rank import SimulateLongRank
from headwise.experiments.simulate_rank import SimulateRank
from headwise.experiments.train_classifier import TrainImages, TrainTexts
from headwise.experiments.train_incontext import TrainInContext
from headwise.experiments.train_neighbours import TrainNeighbours
from headwise.experiments.train_pairs import TrainPairs

#: The field ``kind`` selects the class; pass this to ``headwise.runs.parsed_spec``.
Kinds = Annotated[
    BoundHeads
    | CheckTheorem
    | Construction
    | CountByMethod
    | ImageOrthonormality
    | ImageRank
    | MajorityVote
    | MeasureRank
    | Orthonormality
    | PredictRank
    | RandomHeads
    | SimulateLongRank
    | SimulateRank
    | TextRank
    | TrainImages
    | TrainInContext
    | TrainNeighbours
    | TrainPairs
    | TrainTexts,
    Field(discriminator="kind"),
]
