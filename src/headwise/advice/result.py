"""The answer: ranked geometries with their reasons, and the evidence they rest on."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from headwise.advice.costs import Costs
from headwise.advice.curves import RankCurve
from headwise.advice.evidence import Evidence
from headwise.advice.rule import SLACK, Bound, RankChoice, judged_curve
from headwise.advice.shaping import content_rank
from headwise.advice.sizes import UNKNOWN, KnownSizes
from headwise.geometry import HeadGeometry, LatentGeometry

#: What the answer does not promise; every form of it ends with this.
CLOSING = (
    "Not promised: that training reaches the same score. This reads the first layer before "
    "training; depth, optimiser and the task itself can ask for more rank, or less. Train the "
    "rank below and the rank above before you rely on it."
)


#: What stands below the headline where there were no data, by the need that decides.
CAVEATS: dict[Bound, str] = {
    "mixing": "No data were given: this rests on the law of sharp attention on orthonormal tokens. "
    "Real tokens mostly saturate far earlier: give yours to have them measured.",
    "retrieval": "No data were given: this supposes tokens that fill every dimension of the width. "
    "Real tokens mostly fill far fewer: give yours to have them measured.",
}


@dataclass(frozen=True)
class Choice:
    """One geometry: its role, what it costs, what it reaches, and why it stands where it does.

    ``plateau_share`` is how much of the plateau its ``rank`` reaches; ``floor`` the least
    error of exact lookup at that rank and number of heads; ``exact`` whether one head of that
    rank can look tokens up exactly; ``meets`` whether the need that decides is met. Costs are
    shares of those of the habit, of the largest and, where there is one, of the present model.
    """

    role: str
    geometry: HeadGeometry
    costs: Costs
    against_habit: dict[str, float]
    against_largest: dict[str, float]
    against_present: dict[str, float] | None
    plateau_share: float
    floor: float
    exact: bool
    meets: bool
    reasons: tuple[str, ...]

    @property
    def rank(self) -> int:
        """The rank of the query-key form that reads content: without a rotary part."""
        return content_rank(self.geometry)

    @property
    def against_usual(self) -> dict[str, float]:
        """Costs as shares of what one would have otherwise: the present model, else the habit."""
        return self.against_present or self.against_habit


@dataclass(frozen=True)
class Advice:
    """Ranked choices, the geometries they are compared with, and the evidence.

    ``sizes`` are those of the model that a config or the data told, for an export, and
    ``carried`` what else of a config goes into one.
    It prints itself: as text, and in a notebook as a page with curves.

    >>> from headwise.advice import advise_numbers
    >>> advise_numbers(512, 768).best.geometry.qk_rank
    96
    """

    evidence: Evidence
    rank: RankChoice
    choices: tuple[Choice, ...]
    references: tuple[Choice, ...]
    findings: tuple[str, ...]
    sizes: KnownSizes = UNKNOWN
    carried: dict[str, Any] = field(default_factory=dict)

    @property
    def best(self) -> Choice:
        """The choice ranked first."""
        return self.choices[0]

    @property
    def curve(self) -> RankCurve:
        """The curve the rule was read on."""
        return judged_curve(self.evidence.curves)

    @property
    def usual(self) -> str:
        """What one would have otherwise: "present", the model where there is one, or "habit".

        >>> from headwise.advice import advise_numbers
        >>> advise_numbers(512, 768).usual
        'habit'
        """
        return "habit" if self.best.against_present is None else "present"

    @property
    def caveat(self) -> str | None:
        """What to know before the headline is believed; None where data were measured.

        >>> from headwise.advice import advise_numbers
        >>> str(advise_numbers(512, 768).caveat).partition(":")[0]
        'No data were given'
        """
        return CAVEATS[self.rank.binds] if self.evidence.statistics is None else None

    def as_json(self) -> dict[str, Any]:
        """Everything, as plain numbers, lists and words."""
        from headwise.advice.notes import need_note

        return {
            "question": self.evidence.words,
            "caveat": self.caveat,
            "length": self.evidence.length,
            "context": self.evidence.context,
            "width": self.evidence.width,
            "mask": self.evidence.mask,
            "seed": self.evidence.seed,
            "tokens": None
            if self.evidence.statistics is None
            else asdict(self.evidence.statistics),
            "curves": [asdict(curve) for curve in self.evidence.curves],
            "rank": asdict(self.rank),
            "need": need_note(self),
            "choices": [_as_object(choice) for choice in self.choices],
            "references": [_as_object(choice) for choice in self.references],
            "findings": list(self.findings),
            "not_promised": CLOSING,
        }

    def __str__(self) -> str:
        from headwise.advice.notes import notes
        from headwise.advice.tables import cost_table

        first = headline(self) if self.caveat is None else f"{headline(self)}\n{self.caveat}"
        parts = [first, cost_table(self).text(), *notes(self), *self.findings, CLOSING]
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        from headwise.advice.page import fragment

        return fragment(self)


def needed_rank(rank: RankChoice) -> int:
    """The rank looked at that the need which decides asks for, whatever was fixed or rounded to."""
    return rank.mixing if rank.binds == "mixing" else rank.retrieval


def is_met(rank: RankChoice, content: int) -> bool:
    """Whether a head of this content rank meets the need that decides.

    Where the rank still rises at the largest one looked at, nothing is known to meet it.
    """
    known = rank.binds == "retrieval" or rank.reached
    return known and content >= rank.enough


def headline(advice: Advice) -> str:
    """The first choice in one line, and whether it falls short of the need."""
    best, geometry = advice.best, advice.best.geometry
    share = best.against_habit["parameters"]
    words = (
        f"{named(geometry)} at width {geometry.width}: {best.costs.parameters:,} parameters, "
        f"{share:.0%} of habit's ({named(_habit(advice))})"
    )
    words += f"{_of_present(advice)}."
    if best.meets:
        return words
    return f"{words} It does not meet the need: {need_words(advice.rank)}."


def _of_present(advice: Advice) -> str:
    """What share of the present model's parameters that is, where one was given."""
    shares = advice.best.against_present
    return "" if shares is None else f", {shares['parameters']:.0%} of the present model's"


def need_words(rank: RankChoice) -> str:
    """What the need that decides asks for."""
    if rank.binds == "mixing" and not rank.reached:
        return f"mixing still gains at {rank.mixing}, the largest rank looked at"
    if rank.binds == "retrieval":
        return f"retrieval asks for rank {rank.retrieval}"
    words = f"mixing asks for {1 - SLACK:.0%} of the plateau, as rank {rank.mixing} has"
    return f"{words}, and retrieval for rank {rank.retrieval}" if lookup_too(rank) else words


def lookup_too(rank: RankChoice) -> bool:
    """Whether mixing decides, and yet a rank that mixes enough may be too low for lookup."""
    counted = rank.binds == "mixing" and "retrieval" in rank.counts
    return counted and rank.retrieval > rank.mixing_from


def of_plateau(share: float) -> str:
    """A share of the plateau, rounded down: 90% stands where at least that was reached.

    >>> of_plateau(0.8999), of_plateau(0.9), of_plateau(0.29)
    ('89%', '90%', '29%')
    """
    return f"{math.floor(100 * share + 1e-9)}%"


def _habit(advice: Advice) -> HeadGeometry:
    return next(choice.geometry for choice in advice.references if choice.role == "habit")


def named(geometry: HeadGeometry) -> str:
    """A geometry as people say it.

    >>> named(HeadGeometry.standard(64, heads=4)), named(HeadGeometry(64, 4, 2, 8, 16))
    ('4 heads of rank 16', '4 heads (2 key-value heads) of rank 8, values of rank 16')
    >>> named(LatentGeometry(64, 4, 4, 24, 16, kv_latent=32, q_latent=None, rope_rank=8))
    '4 heads of rank 16 and 8 rotary dimensions over a latent of 32'
    """
    heads = "1 head" if geometry.heads == 1 else f"{geometry.heads} heads"
    shared = geometry.kv_heads != geometry.heads
    plural = "head" if geometry.kv_heads == 1 else "heads"
    words = f"{heads} ({geometry.kv_heads} key-value {plural})" if shared else heads
    rank = content_rank(geometry)
    words += f" of rank {rank}"
    if isinstance(geometry, LatentGeometry):
        words += f" and {geometry.rope_rank} rotary dimensions over a latent of"
        words += f" {geometry.kv_latent}"
    if geometry.v_rank != rank:
        words += f", values of rank {geometry.v_rank}"
    return words


def _as_object(choice: Choice) -> dict[str, Any]:
    return asdict(choice) | {"geometry": asdict(choice.geometry), "rank": choice.rank}
