"""RankMonitor: the rank of every attention layer, every few steps of training."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from headwise.checks import fraction, of_type, one_of, whole
from headwise.probing.capturing import Read, capture
from headwise.probing.refusals import real_parts
from headwise.probing.trainers import lightning_callback, transformers_callback
from headwise.report import Curve, Line, Panel, draw
from headwise.report.results import Drawable, Tabular
from headwise.report.tables import counted
from headwise.spectra import measure

Reaction = Literal["warn", "stop", "ignore"]
Log = Callable[[dict[str, float], int], None]


#: A smaller fall of the effective rank, over the tokens, is no collapse: such a layer had nearly
#: equal rows from the beginning.
NOTICEABLE = 0.001


class CollapseWarning(UserWarning):
    """The rank of a layer fell far below its first value.

    Example:
        >>> issubclass(CollapseWarning, UserWarning)
        True
    """


@dataclass(frozen=True)
class LayerRank:
    """One layer at one step: means over its heads and the sequences that were measured.

    Args:
        step: The training step.
        layer: The name of the layer.
        rank_ratio: Rank / tokens: singular values of the exact attention matrix of at least 1e-8.
        effective_rank_ratio: Effective rank / tokens.
        tokens: The mean number of tokens.

    Example:
        >>> LayerRank(0, "encoder", 0.98, 0.31).as_metrics()
        {'rank_ratio/encoder': 0.98, 'effective_rank_ratio/encoder': 0.31}
    """

    step: int
    layer: str
    rank_ratio: float
    effective_rank_ratio: float
    tokens: float = 0.0

    @property
    def above_one(self) -> float:
        """The effective rank beyond the 1 that rows which are all alike still have, over tokens.

        >>> LayerRank(0, "encoder", 1.0, 0.35, tokens=4.0).above_one
        0.1
        """
        least = 1 / self.tokens if self.tokens else 0.0
        return round(max(0.0, self.effective_rank_ratio - least), 12)

    def as_metrics(self) -> dict[str, float]:
        """The two numbers by name, as loggers take them."""
        name = self.layer or "layer"
        return {
            f"rank_ratio/{name}": self.rank_ratio,
            f"effective_rank_ratio/{name}": self.effective_rank_ratio,
        }


class RankMonitor(Tabular, Drawable):
    """Measure the rank on the same few sequences every ``every`` steps of training.

    A layer has collapsed if its rank, or the part of its effective rank above that of equal rows,
    falls below ``collapse`` times its first value. The monitor reads headwise's own layers,
    ``torch.nn.MultiheadAttention`` and Hugging Face models. In a plain loop call it after each
    step; ``lightning()`` and ``transformers()`` make callbacks for those trainers, which measure
    first before training begins. ``to_frame`` has the fields of ``LayerRank`` as columns; ``plot``
    draws rank and effective rank of every layer against the step.

    Args:
        inputs: What the model is called with: a tensor, a tuple of arguments, or a mapping.
        every: The number of steps between two measurements.
        collapse: The share of the first value below which a layer has collapsed.
        on_collapse: "warn", "stop" (sets ``should_stop``) or "ignore".
        log: Called with the metrics of each measurement.

    Raises:
        ParameterError: If a parameter is out of range.

    Example:
        >>> from headwise.attention import HeadGeometry, mha
        >>> model = mha(HeadGeometry.standard(8, heads=2))
        >>> monitor = RankMonitor(torch.randn(2, 6, 8), every=2)
        >>> for step in range(4):
        ...     seen = monitor(model)
        >>> [row.step for row in monitor.rows]
        [0, 2]
    """

    def __init__(
        self,
        inputs: Tensor | tuple[Any, ...] | Mapping[str, Any],
        *,
        every: int = 100,
        collapse: float = 0.5,
        on_collapse: Reaction = "warn",
        log: Log | None = None,
    ) -> None:
        wanted = "a tensor, a tuple of arguments or a mapping"
        self.inputs = of_type("`inputs`", inputs, (Tensor, tuple, Mapping), wanted)
        self.every = whole("`every`", every)
        self.collapse = fraction("`collapse`", collapse)
        self.on_collapse = one_of("`on_collapse`", on_collapse, get_args(Reaction))
        self.log = of_type("`log`", log, (Callable, type(None)), "a function")
        self.rows: list[LayerRank] = []
        self.should_stop = False
        self._first: dict[str, LayerRank] = {}
        self._fallen: set[str] = set()
        self._calls = 0
        self._last: int | None = None

    def __call__(self, model: nn.Module, step: int | None = None) -> list[LayerRank]:
        """Look if the step is due and not the one last looked at; without it, calls count."""
        of_type("`model`", model, nn.Module, "a torch module")
        step = self._calls if step is None else whole("`step`", step, 0)
        self._calls += 1
        return self.look(model, step) if step % self.every == 0 and step != self._last else []

    def look(self, model: nn.Module, step: int) -> list[LayerRank]:
        """Measure every layer now; the model's mode and gradients stay as they are."""
        found = self._look(model, whole("`step`", step, 0))
        self.rows += found
        self._last = step
        for row in found:
            self._judge(row)
            if self.log is not None:
                self.log(row.as_metrics(), step)
        return found

    def lightning(self) -> Any:
        """A callback for a Lightning trainer; ranks go to its logger too."""
        return lightning_callback(self)

    def transformers(self) -> Any:
        """A callback for a Hugging Face trainer; ranks go where its losses go."""
        return transformers_callback(self)

    def __repr__(self) -> str:
        layers = len({row.layer for row in self.rows})
        rows = f"{counted(len(self.rows), 'row')} of {counted(layers, 'layer')}"
        return f"RankMonitor({rows}, every {counted(self.every, 'step')})"

    def _rows(self) -> list[dict[str, Any]]:
        return self.as_json()

    def _columns(self) -> list[str]:
        return [each.name for each in fields(LayerRank)]

    def as_json(self) -> list[dict[str, Any]]:
        """Return the rows as values that JSON can write.

        Returns:
            One object with the fields of ``LayerRank`` for each measurement of a layer.
        """
        return [asdict(row) for row in self.rows]

    def _figure(self) -> Any:
        panels = [
            Panel("Rank", "step", "rank / tokens", self._curves("rank_ratio")),
            Panel(
                "Effective rank",
                "step",
                "effective rank / tokens",
                self._curves("effective_rank_ratio"),
            ),
        ]
        return draw(panels)

    def _curves(self, field: str) -> tuple[Curve, ...]:
        """One curve for each layer, in the order in which layers were first seen."""
        layers = dict.fromkeys(row.layer for row in self.rows)
        points = {
            name: {row.step: getattr(row, field) for row in self.rows if row.layer == name}
            for name in layers
        }
        return tuple(Curve(name or "layer", Line.of(own)) for name, own in points.items())

    @torch.no_grad()
    def _look(self, model: nn.Module, step: int) -> list[LayerRank]:
        """Measure each layer when it is called, so that no view is kept."""
        of_type("`model`", model, nn.Module, "a torch module")
        found: list[LayerRank] = []
        modes = [(module, module.training) for module in model.modules()]
        model.eval()
        try:
            with capture(model, lambda name, view: found.append(_row(step, name, view))):
                self._call(model)
        finally:
            # Module by module: parts that were frozen in evaluation mode stay so.
            for module, training in modes:
                module.training = training
        return found

    def _call(self, model: nn.Module) -> None:
        device = next((p.device for p in model.parameters()), torch.device("cpu"))
        if isinstance(self.inputs, Mapping):
            model(**{name: _moved(value, device) for name, value in self.inputs.items()})
            return
        given = self.inputs if isinstance(self.inputs, tuple) else (self.inputs,)
        model(*(_moved(value, device) for value in given))

    def _judge(self, row: LayerRank) -> None:
        first = self._first.setdefault(row.layer, row)
        fallen = row.rank_ratio < self.collapse * first.rank_ratio
        lost = first.above_one - row.above_one
        fallen |= row.above_one < self.collapse * first.above_one and lost >= NOTICEABLE
        if not fallen or row.layer in self._fallen:
            return
        self._fallen.add(row.layer)
        if self.on_collapse == "ignore":
            return
        warnings.warn(
            f"layer {row.layer!r} collapsed at step {row.step}: rank / tokens fell from "
            f"{first.rank_ratio:.3f} to {row.rank_ratio:.3f}, effective rank / tokens from "
            f"{first.effective_rank_ratio:.3f} to {row.effective_rank_ratio:.3f}",
            CollapseWarning,
            stacklevel=4,
        )
        self.should_stop = self.on_collapse == "stop"


def _row(step: int, name: str, view: Read) -> LayerRank:
    """Average over heads and sequences, each as a share of its own length without padding."""
    ranks, effective, lengths = [], [], []
    for part in real_parts(view):
        found = measure(part.source(), tolerance=part.tolerance)
        length = min(part.shape[-2:])
        for matrices in range(part.shape[0]):
            count = (found.rank.low[matrices] + found.rank.high[matrices]).double().mean() / 2
            ranks.append(float(count) / length)
            effective.append(float(found.effective_rank[matrices].mean()) / length)
            lengths.append(length)
    tokens = len(lengths) / sum(1 / length for length in lengths)
    return LayerRank(step, name, _mean(ranks), _mean(effective), tokens)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _moved(value: Any, device: torch.device) -> Any:
    return value.to(device) if isinstance(value, Tensor) else value
