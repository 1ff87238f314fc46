"""Every kind of spec there is, as one closed union: what a file or a store may hold."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from headwise.experiments.measure_rank import MeasureRank
from headwise.experiments.predict_rank import PredictRank

#: Told apart by their ``kind``; pass this to ``headwise.runs.parsed_spec`` and ``read_specs``.
Kinds = Annotated[MeasureRank | PredictRank, Field(discriminator="kind")]
