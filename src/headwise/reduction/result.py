"""What a reduction gives: the smaller model, and what the cut costs and saves."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from headwise.reduction.evaluation import Score, Speed
from headwise.reduction.planning import Cut


@dataclass(frozen=True)
class CurvePoint:
    """One budget of the curve.

    Attributes:
        share: The share of the original's KV bytes.
        kv_bytes: Bytes of KV cache for each token.
        predicted: The predicted loss.
        score: The score on held-out text.
    """

    share: float
    kv_bytes: int
    predicted: float
    score: Score


@dataclass(frozen=True, eq=False)
class Reduction:
    """A cut model, and what the cut costs and saves.

    Attributes:
        model: The cut model.
        cuts: The ranks of every layer.
        whole: The ranks of a layer of the original.
        predicted: Predicted loss: nats for each token (language models), or the squared change of
            the normalised output over the tokens of a sequence (encoders).
        before: Score of the original on held-out text.
        after: Score of the cut model on the same text.
        kv_bytes: Bytes of KV cache for each token, before and after.
        parameters: Parameters of the whole model, before and after.
        speed: Times before and after; None for encoders.
        curve: Scores at other budgets, if asked for.
        healed: Steps of healing.
        folder: Where the model was saved, if anywhere.

    Example:
        >>> score = Score("perplexity", 20.0, 0.5)
        >>> cut = Cut("latent", rank=8, value_rank=8)
        >>> whole = Cut("latent", rank=16, value_rank=16)
        >>> found = Reduction(None, (cut,), whole, 0.1, score, score, (256, 128), (900, 700))
        >>> found.as_dict()["kv_bytes"]
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

    def as_dict(self) -> dict[str, Any]:
        """Return everything but the model, for JSON."""
        fields = {name: value for name, value in vars(self).items() if name != "model"}
        return fields | {
            "cuts": [asdict(cut) for cut in self.cuts],
            "whole": asdict(self.whole),
            "before": _plain(asdict(self.before)),
            "after": _plain(asdict(self.after)),
            "speed": None if self.speed is None else [asdict(each) for each in self.speed],
            "curve": [_plain(asdict(point)) for point in self.curve],
        }


def _plain(value: Any) -> Any:
    """Replace NaN, the error of a single sequence, by None: JSON has no NaN."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return None if value != value else value
