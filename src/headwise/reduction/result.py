"""What a reduction gives: the smaller model, and what the cut costs and saves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headwise.reduction.evaluation import Score, Speed
from headwise.reduction.planning import Cut
from headwise.reduction.saving import auto_class
from headwise.report.results import Drawable, Tabular


@dataclass(frozen=True)
class CurvePoint:
    """One budget of the curve.

    Attributes:
        share: The share of the original's KV bytes.
        kv_bytes: Bytes of keys and values for each token.
        predicted: The predicted loss.
        score: The score on held-out text.
    """

    share: float
    kv_bytes: int
    predicted: float
    score: Score


@dataclass(frozen=True, eq=False)
class Reduction(Tabular, Drawable):
    """A cut model, and what the cut costs and saves.

    Attributes:
        model: The cut model.
        cuts: The ranks of every layer.
        whole: The ranks of a layer of the original.
        predicted: Predicted loss: nats for each token (language models), or the squared change of
            the normalised output over the tokens of a sequence (encoders).
        before: Score of the original on held-out text.
        after: Score of the cut model on the same text.
        kv_bytes: Bytes of keys and values for each token, before and after: what a decoder caches.
            An encoder caches nothing.
        parameters: Parameters of the whole model, before and after.
        speed: Times before and after; None for encoders.
        curve: Scores at other budgets, if asked for.
        healed: Steps of healing.
        folder: Where the model was saved, if anywhere.
        name: What the model is called: the last part of its path, or its class.
        architecture: The class of transformers that was cut, with its task head.
        attention_parameters: Parameters of the attention layers, before and after; None if they
            were not counted.

    ``to_frame`` has a row for each layer: ``layer``, and the fields of ``Cut``. ``plot`` draws the
    score against the share of KV bytes: the original, the cut, and the curve.

    Example:
        >>> score = Score("perplexity", 20.0, 0.5)
        >>> cut = Cut("latent", rank=8, value_rank=8)
        >>> whole = Cut("latent", rank=16, value_rank=16)
        >>> found = Reduction(None, (cut,), whole, 0.1, score, score, (256, 128), (900, 700))
        >>> found.as_json()["kv_bytes"]
        (256, 128)
    """

    model: Any
    cuts: tuple[Cut, ...]
    whole: Cut
    predicted: float
    before: Score
    after: Score
    kv_bytes: tuple[int, int]
    parameters: tuple[int, int]
    speed: tuple[Speed, Speed] | None = None
    curve: tuple[CurvePoint, ...] = ()
    healed: int = 0
    folder: str | None = None
    name: str = "a model"
    architecture: str = ""
    attention_parameters: tuple[int, int] | None = None

    def __repr__(self) -> str:
        share = self.kv_bytes[1] / self.kv_bytes[0]
        of = "KV bytes" if self.cached else "keys and values"
        score = f"{self.before.name} {self.before.value:.4g} before, {self.after.value:.4g} after"
        return f"Reduction({len(self.cuts)} layers, {share:.0%} of the {of}, {score})"

    @property
    def cached(self) -> bool:
        """Whether the model is a decoder, which keeps a KV cache."""
        return self.whole.keys != "factors"

    @property
    def mean_ranks(self) -> tuple[float, float]:
        """Mean rank of queries and keys, and of values, over the layers."""
        count = len(self.cuts)
        return sum(cut.rank for cut in self.cuts) / count, sum(
            cut.value_rank for cut in self.cuts
        ) / count

    @property
    def loaded_by(self) -> str:
        """The Auto class of transformers that loads the written folder."""
        return auto_class(self.architecture)

    def _rows(self) -> Iterator[dict[str, Any]]:
        for layer, cut in enumerate(self.cuts):
            yield {"layer": layer} | asdict(cut)

    def _figure(self) -> Any:
        from headwise.reduction.report import score_figure

        return score_figure(self)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write an HTML report that needs no other file: scores, sizes, the curve and all ranks.

        Args:
            path: Where to write it.

        Returns:
            The path.
        """
        from headwise.reduction.report import reduction_page
        from headwise.report import write_page

        return write_page(reduction_page(self), path)

    def as_json(self) -> dict[str, Any]:
        """Return everything but the model itself, for JSON; "model" is its name."""
        fields = {
            name: value for name, value in vars(self).items() if name not in ("model", "name")
        }
        return (
            {"model": self.name}
            | fields
            | {
                "cuts": [asdict(cut) for cut in self.cuts],
                "whole": asdict(self.whole),
                "before": _plain(asdict(self.before)),
                "after": _plain(asdict(self.after)),
                "speed": None if self.speed is None else [asdict(each) for each in self.speed],
                "curve": [_plain(asdict(point)) for point in self.curve],
            }
        )


def _plain(value: Any) -> Any:
    """Replace NaN, the error of a single sequence, by None: JSON has no NaN."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return None if value != value else value
