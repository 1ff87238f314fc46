"""What a trial answers: each geometry's predicted score, its chance to be best, its cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwise.geometry import HeadGeometry
from headwise.report import write_page
from headwise.report.results import Drawable, Tabular
from headwise.report.tables import counted
from headwise.trials import render
from headwise.trials.candidates import name_of
from headwise.trials.halving import Standing

#: The width of the answer as text.
MOST_COLUMNS = 100


@dataclass(frozen=True)
class Entrant:
    """One geometry of a trial.

    Attributes:
        geometry: Heads and ranks.
        steps: How far it was trained.
        score: Mean score at that point; lower is better.
        predicted: Predicted score at the full length.
        error: Standard error of ``predicted`` against the other entrants.
        probability: Probability that it is the best of all.
        parameters: Attention parameters of one layer.
        cache_bytes: KV cache bytes per token and layer, 16-bit numbers.
        on_front: Whether no other entrant is at least as good in predicted score, parameters and
            cache bytes and better in one of them.
    """

    geometry: HeadGeometry
    steps: int
    score: float
    predicted: float
    error: float
    probability: float
    parameters: int
    cache_bytes: int
    on_front: bool


@dataclass(frozen=True, repr=False)
class Trial(Tabular, Drawable):
    """The answer of a trial, best entrant first.

    Attributes:
        entrants: All candidates, the lowest predicted score first.
        measure: What the score is, such as "error rate" or "loss".
        full: The length of training that was asked about.
        steps: Steps at which scores were taken.
        curves: For each entrant, in order, its scores by look and seed. Those that were stopped
            have the first seed only.
        finished: False if time ran out first.
        constant: The score of the best constant prediction, None if unknown.

    ``to_frame`` has a row for each entrant, best first: heads and ranks, and the fields of
    ``Entrant``. ``plot`` draws the curves, the probabilities and the costs.

    Example:
        >>> one = Entrant(HeadGeometry.free(8, 1, 8), 10, 0.2, 0.1, 0.01, 1.0, 256, 32, True)
        >>> answer = Trial((one,), "loss", 20, (10,), (((0.2,),),), True)
        >>> answer
        Trial(1 x 8 is best of 1, predicted loss 0.1 (0.09 to 0.11) after 20 steps)
        >>> answer.best.geometry.heads, answer.as_json()["entrants"][0]["predicted"]
        (1, 0.1)
    """

    entrants: tuple[Entrant, ...]
    measure: str
    full: int
    steps: tuple[int, ...]
    curves: tuple[tuple[tuple[float, ...], ...], ...]
    finished: bool
    constant: float | None = None

    @property
    def learned(self) -> bool:
        """Whether some geometry is predicted to do better than a constant prediction."""
        return self.constant is None or self.best.predicted < self.constant

    @property
    def best(self) -> Entrant:
        """The entrant with the lowest predicted score: the least regret is to be expected of it."""
        return self.entrants[0]

    def __repr__(self) -> str:
        best = self.best
        if not self.learned:
            return (
                f"Trial(nothing learned by {len(self.entrants)} after {counted(self.full, 'step')})"
            )
        low, high = render.interval(self, best)
        score = f"predicted {self.measure} {best.predicted:.4g} ({low:.4g} to {high:.4g})"
        named = f"{name_of(best.geometry)} is best of {len(self.entrants)}"
        return f"Trial({named}, {score} after {counted(self.full, 'step')})"

    def _rows(self) -> Iterator[dict[str, Any]]:
        blank = {} if self.learned else {"probability": None, "on_front": None}
        for one in self.entrants:
            ranks = ("heads", "kv_heads", "qk_rank", "v_rank")
            fields = {name: value for name, value in vars(one).items() if name != "geometry"}
            yield {name: getattr(one.geometry, name) for name in ranks} | fields | blank

    def _figure(self) -> Any:
        return render.figure(self)

    def report(self, path: Path | str) -> Path:
        """Write an HTML report that needs no other file.

        Args:
            path: Where to write it.

        Returns:
            The path.
        """
        return write_page(render.document(self), path)

    def text(self, width: int = MOST_COLUMNS) -> str:
        """Return the answer in lines of at most this width; a wide table becomes two.

        Args:
            width: The most characters of a line.

        Returns:
            The answer, the table, its legend and what a reader must know besides.
        """
        return render.text(self, width)

    def __str__(self) -> str:
        return self.text()

    def as_json(self) -> dict[str, Any]:
        """Return plain values that JSON takes; what means nothing is None."""
        return {
            "measure": self.measure,
            "full_steps": self.full,
            "finished": self.finished,
            "constant": self.constant,
            "looks": list(self.steps),
            "entrants": [
                {
                    "heads": one.geometry.heads,
                    "qk_rank": one.geometry.qk_rank,
                    "v_rank": one.geometry.v_rank,
                    "steps": one.steps,
                    "score": _plain(one.score),
                    "predicted": one.predicted,
                    "error": one.error,
                    "probability_best": one.probability if self.learned else None,
                    "parameters": one.parameters,
                    "cache_bytes": one.cache_bytes,
                    "pareto": one.on_front if self.learned else None,
                    "curve": [[_plain(score) for score in look] for look in curve],
                }
                for one, curve in zip(self.entrants, self.curves, strict=True)
            ],
        }


def _plain(score: float) -> float | None:
    return score if score == score and abs(score) != float("inf") else None


def answer(
    standing: Standing,
    candidates: Mapping[str, HeadGeometry],
    full: int,
    measure: str,
    constant: float | None = None,
) -> Trial:
    """Turn the standing of a race into a trial's answer."""
    found = standing.predictions(full)
    order = sorted(candidates, key=lambda name: (found[name].score, -found[name].probability))
    points = {
        name: (
            found[name].score,
            geometry.parameters,
            geometry.cache_bytes_per_token(),
        )
        for name, geometry in candidates.items()
    }
    entrants = []
    for name in order:
        last = standing.scores(name)[-1]
        entrants.append(
            Entrant(
                geometry=candidates[name],
                steps=standing.steps[len(standing.curves[name]) - 1],
                score=sum(last) / len(last),
                predicted=max(
                    0.0, found[name].score
                ),  # a difference can lead below what is possible
                error=found[name].error,
                probability=found[name].probability,
                parameters=points[name][1],
                cache_bytes=points[name][2],
                on_front=not any(_dominates(other, points[name]) for other in points.values()),
            )
        )
    curves = tuple(tuple(map(tuple, standing.scores(name))) for name in order)
    steps = tuple(standing.steps)
    return Trial(tuple(entrants), measure, full, steps, curves, not standing.stopped, constant)


def _dominates(one: Sequence[float | int], other: Sequence[float | int]) -> bool:
    """Whether a point is at least as low everywhere and lower somewhere."""
    pairs = list(zip(one, other, strict=True))
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)
