"""Settings of a training run: sizes, rates, seeds, protocol, precision, device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from numbers import Real
from typing import Any, Literal

import torch

from headwise.devices import device_kind
from headwise.errors import BadInputError, ParameterError

Precision = Literal["float32", "tf32", "bf16", "float64"]
Execution = Literal["graph", "compiled", "eager"]


@dataclass(frozen=True)
class Fresh:
    """Draw new data for every batch.

    Example:
        >>> Fresh()
        Fresh()
    """


@dataclass(frozen=True)
class Fixed:
    """Draw a set once per member and repeat it.

    Args:
        sequences: The size of the set.
        order: "same" repeats one order in each epoch, as the heads paper's loader does, which
            reseeds at each epoch; "shuffled" draws a new order.

    Example:
        >>> Fixed().sequences
        25600
    """

    sequences: int = 25_600
    order: Literal["same", "shuffled"] = "same"


@dataclass(frozen=True)
class AdamW:
    """The constants of AdamW; the defaults are those of the heads paper.

    Args:
        betas: The decay rates of both moments.
        weight_decay: The decoupled weight decay.
        epsilon: The constant in the denominator.

    Example:
        >>> AdamW().betas
        (0.9, 0.95)
    """

    betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: float = 0.0
    epsilon: float = 1e-8


@dataclass(frozen=True)
class Member:
    """One model of an ensemble.

    Args:
        variant: The name of its variant.
        seed: The seed of its weights and data.
        learning_rate: Its learning rate.
        warm_up: The share of the steps over which the rate rises.

    Example:
        >>> Member("rank 8", seed=0, learning_rate=0.01).variant
        'rank 8'
    """

    variant: str
    seed: int
    learning_rate: float
    warm_up: float | int = 0.05


@dataclass(frozen=True)
class Settings:
    """The settings of a run: every seed is trained with every learning rate.

    The learning rate rises linearly, then falls to zero along a cosine.

    Args:
        steps: The number of updates.
        batch: The batch size.
        seeds: The seeds.
        learning_rates: The learning rates.
        warm_up: The share of the steps over which the rate rises; a tuple has one share for each
            learning rate.
        protocol: Fresh or fixed training data.
        precision: "float32", "tf32", "bf16" or "float64".
        evaluation: The number of test sequences.
        device: Where to train.
        micro_batches: The number of parts that a batch is split into, to save memory.
        epoch: The number of steps over which training losses are averaged.
        optimiser: The constants of AdamW.
        explosion: A member ends if its loss is not finite or exceeds this times its first loss.
        execution: By default a CUDA graph on a GPU and plain calls elsewhere; "compiled" uses
            ``torch.compile`` first.
        rows_per_decade: About how many rows of the curve each decade of steps has.

    Raises:
        ParameterError: If a value is out of range.

    Example:
        >>> settings = Settings(steps=100, seeds=(0, 1), learning_rates=(0.01, 0.001))
        >>> [(m.seed, m.learning_rate) for m in settings.members(["full"])]
        [(0, 0.01), (0, 0.001), (1, 0.01), (1, 0.001)]
        >>> settings = Settings(steps=100, learning_rates=(0.01, 0.1), warm_up=(0.05, 0.4))
        >>> [(m.learning_rate, m.warm_up) for m in settings.members(["full"])]
        [(0.01, 0.05), (0.1, 0.4)]
    """

    steps: int
    batch: int = 256
    seeds: tuple[int, ...] = (0,)
    learning_rates: tuple[float, ...] = (0.01,)
    warm_up: float | int | tuple[float | int, ...] = 0.05
    protocol: Fresh | Fixed = Fresh()
    precision: Precision = "float32"
    evaluation: int = 1024
    device: str = "cpu"
    micro_batches: int = 1
    epoch: int = 100
    optimiser: AdamW = AdamW()
    explosion: float = 1000.0
    execution: Execution | None = None
    rows_per_decade: int = 8

    @classmethod
    def for_epochs(
        cls, samples: int, *, epochs: int, batch: int, warm_up_epochs: float | int = 0, **more: Any
    ) -> Settings:
        """Settings of whole epochs; in each, samples that do not fill a batch are left out.

        Args:
            samples: How many samples there are to train on.
            epochs: How often all of them are seen.
            batch: Samples in a batch.
            warm_up_epochs: Epochs over which the rate rises.
            **more: The other fields.

        Returns:
            Settings with the steps, batch, warm-up and steps per epoch that this makes.

        Raises:
            BadInputError: There are fewer samples than a batch holds.

        Example:
            >>> Settings.for_epochs(1000, epochs=10, batch=128, warm_up_epochs=1).steps
            70
        """
        batches = samples // batch
        if batches == 0:
            raise BadInputError(
                f"expected at least {batch} samples to train on, got {samples}",
                hint="bring more samples, or choose a smaller batch",
            )
        warm_up = min(1.0, warm_up_epochs / epochs)
        return cls(steps=epochs * batches, batch=batch, epoch=batches, warm_up=warm_up, **more)

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "evaluation", "micro_batches", "epoch", "rows_per_decade"):
            _refuse(name, getattr(self, name), getattr(self, name) >= 1, "at least 1")
        seeds, rates = self.seeds, self.learning_rates
        several = isinstance(seeds, Sequence) and len(seeds) > 0
        _refuse("seeds", seeds, several, "a tuple of at least one seed, such as (0, 1)")
        several = isinstance(rates, Sequence) and len(rates) > 0 and min(rates) > 0
        _refuse("learning_rates", rates, several, "a tuple of rates above zero, such as (0.01,)")
        self._refuse_odd_warm_ups()
        whole = self.batch % self.micro_batches == 0
        _refuse("micro_batches", self.micro_batches, whole, f"a divisor of batch={self.batch}")
        self._refuse_odd_set()
        self._refuse_unknown_words()

    def _refuse_odd_warm_ups(self) -> None:
        shares, rates = self.warm_ups, len(self.learning_rates)
        numbers = all(isinstance(share, Real) and 0 <= share <= 1 for share in shares)
        sound = numbers and len(shares) == rates
        wanted = "a share between 0 and 1, or a tuple with one for each learning rate"
        _refuse("warm_up", self.warm_up, sound, f"{wanted}, {rates} here")

    def _refuse_odd_set(self) -> None:
        if not isinstance(self.protocol, Fixed):
            return
        size = self.protocol.sequences
        whole = size >= self.batch and size % self.batch == 0
        _refuse("protocol.sequences", size, whole, f"a multiple of batch={self.batch}")
        order = self.protocol.order
        _refuse("protocol.order", order, order in ("same", "shuffled"), "'same' or 'shuffled'")

    def _refuse_unknown_words(self) -> None:
        known = ("float32", "tf32", "bf16", "float64")
        _refuse("precision", self.precision, self.precision in known, f"one of {known}")
        if device_kind(self.device) != "cuda":
            possible = can_round(self.device, self.precision)
            _refuse("precision", self.precision, possible, "'float32' on a CPU; tf32 needs a GPU")
            _refuse("execution", self.execution, self.execution != "graph", "'eager' on a CPU")

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of parameters and data."""
        return torch.float64 if self.precision == "float64" else torch.float32

    @property
    def warm_ups(self) -> tuple[float | int, ...]:
        """The share of the steps over which each learning rate rises."""
        if isinstance(self.warm_up, tuple):
            return self.warm_up
        return (self.warm_up,) * len(self.learning_rates)

    @property
    def replayed(self) -> bool:
        """Whether steps are replayed from a CUDA graph."""
        on_gpu = self.device.startswith("cuda")
        return self.execution == "graph" or (on_gpu and self.execution != "eager")

    def members(self, variants: Iterable[str]) -> tuple[Member, ...]:
        """Return all members: variants, seeds and rates, the last changing fastest."""
        schedules = tuple(zip(self.learning_rates, self.warm_ups, strict=True))
        triples = product(variants, self.seeds, schedules)
        return tuple(Member(variant, seed, *own) for variant, seed, own in triples)


def _refuse(name: str, value: object, holds: bool, wanted: str) -> None:
    if not holds:
        raise ParameterError(f"{name}={value!r} does not work", hint=f"pass {wanted}")


def can_round(device: str, precision: str) -> bool:
    """Whether the device supports products in this precision: only GPUs have TF32."""
    return precision != "tf32" or device_kind(device) == "cuda"
