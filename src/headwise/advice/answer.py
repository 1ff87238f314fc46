"""The answer as data: ranked choices, findings, and the evidence behind them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from headwise.advice.evidence import Evidence
from headwise.advice.geometries.candidates import Role
from headwise.advice.geometries.heads import Costs, content_rank
from headwise.advice.judged import judged_tasks
from headwise.advice.question import Question, kind_of
from headwise.advice.rule import RankChoice, Shortage, Support
from headwise.geometry import HeadGeometry
from headwise.hugging_face.family_layers import FamilyLayer
from headwise.hugging_face.sizes import UNKNOWN, KnownSizes
from headwise.report.results import short_repr

#: Heads × rank may miss the width by this share and still count as tried: 8 × 12 at width 97.
EQUAL_COST = 0.1

#: What no trained task of this kind has: any task, such a form of layer, such a cost, such tokens.
Untried = Literal["tasks", "form", "cost", "tokens"]


@dataclass(frozen=True)
class Finding:
    """One thing that was found.

    Attributes:
        code: Its name, such as "repeats".
        values: The values that its sentence is made from.
    """

    code: str
    values: dict[str, Any] = field(default_factory=dict)

    __repr__ = short_repr


@dataclass(frozen=True)
class Choice:
    """One geometry: its role, its costs, and what its heads can do.

    Attributes:
        role: Why it is listed: "advised", "usual", "fewer heads" …
        geometry: Width, heads and ranks.
        costs: Parameters, FLOPs and cache bytes.
        against_usual: Costs as shares of those of the usual head dimension, 64.
        against_largest: Costs as shares of those of the largest rank looked at.
        against_present: Costs as shares of those of the present model, if there is one.
        plateau_share: How far its rank saturates mixing: share of the plateau of the rank curve.
        floor: Lower bound on the error of retrieving single tokens.
        exact: Whether one head of this rank can retrieve tokens exactly.
        meets: Whether its rank meets the need that decides.
    """

    role: Role
    geometry: HeadGeometry
    costs: Costs
    against_usual: dict[str, float]
    against_largest: dict[str, float]
    against_present: dict[str, float] | None
    plateau_share: float
    floor: float
    exact: bool
    meets: bool

    __repr__ = short_repr

    @property
    def rank(self) -> int:
        """The rank with which queries and keys read content: without a rotary part."""
        return content_rank(self.geometry)

    def serves_better_than(self, other: Choice) -> bool:
        """Whether it meets a need that the other does not, meets it cheaper, or comes nearer.

        Nearer is more rank without a larger retrieval error: one large head is no better than many.

        Returns:
            Whether to prefer it.
        """
        if self.meets and other.meets:
            return self.costs.parameters < other.costs.parameters
        if self.meets or other.meets:
            return self.meets
        return self.rank > other.rank and self.floor <= other.floor


@dataclass(frozen=True)
class Answer:
    """Ranked choices, the geometries they are compared with, and the evidence.

    Attributes:
        evidence: Rank curves and statistics of the tokens.
        question: Task, budget and constraints.
        rank: The rank suggested by the tokens, and why.
        choices: Geometries, the advised one first.
        references: The present model if there is one, the usual geometry, the largest rank.
        support: Judged tasks of this kind, and whether they support leaving the usual geometry.
        kept: Whether the usual (or present) geometry leads for lack of such evidence.
        shortage: Why the tokens cannot tell: too few "tokens", or too few "numbers" in each.
        findings: What was found, as codes and values.
        family: The family of the model whose config was judged.
        sizes: Sizes given by a config or the data, for an export.
        carried: Fields of a config that an export keeps.
        layer: Biases and positions of the layer of that config's model.
    """

    evidence: Evidence
    question: Question
    rank: RankChoice
    choices: tuple[Choice, ...]
    references: tuple[Choice, ...]
    support: Support
    kept: bool = False
    shortage: Shortage | None = None
    findings: tuple[Finding, ...] = ()
    family: str | None = None
    sizes: KnownSizes = UNKNOWN
    carried: dict[str, Any] = field(default_factory=dict)
    layer: FamilyLayer | None = None

    @property
    def best(self) -> Choice:
        """The advised choice."""
        return self.choices[0]

    @property
    def usual(self) -> Choice:
        """The usual geometry: head dimension 64, or the nearest that divides the width."""
        return next(choice for choice in self.references if choice.role == "usual")

    @property
    def present(self) -> Choice | None:
        """The geometry of the model whose config was given."""
        return next((choice for choice in self.references if choice.role == "present"), None)

    @property
    def verdict(self) -> str | None:
        """How the present model serves the need, beside the advised geometry."""
        present, best = self.present, self.best
        if present is None:
            return None
        if present.meets:
            return "enough" if present.rank <= self.rank.needed else "more than needed"
        if best.geometry == present.geometry:
            rival = self.rival
            if rival is None:
                return "nothing nearer"
            return "kept, met" if rival.meets else "kept, nearer"
        if best.meets:
            return "met by best"
        if best.rank <= present.rank:
            return "no nearer"
        return "nearer" if best.floor <= present.floor else "mixes more, looks up less"

    @property
    def rival(self) -> Choice | None:
        """What would serve the need better than the model that leads, at no higher cost."""
        present = self.present
        if present is None or present.meets or self.best.geometry != present.geometry:
            return None
        return next((c for c in self.choices[1:] if c.serves_better_than(present)), None)

    @property
    def beyond_trained(self) -> int | None:
        """The largest width of trained retrieval, if retrieval is asked for at a larger one."""
        most = max(task.width for task in judged_tasks() if task.kind == "retrieve")
        asked = self.question.need == "retrieval" and self.evidence.width > most
        return most if asked else None

    @property
    def untried(self) -> Untried | None:
        """In what the advised geometry differs from all that trained tasks compared.

        None if they compared such a geometry on such data, if the advised one is the usual one or
        the model's, and where a need or a rank that was asked for decides instead.
        """
        best, asked = self.best, self.question.need != "data" or self.rank.fixed
        if asked or best.role == "present" or best.geometry == self.usual.geometry:
            return None
        if not self.support.tasks:
            return "tasks"
        if kind_of(best.geometry) != "mha":
            return "form"
        if abs(best.against_usual["parameters"] - 1) > EQUAL_COST:
            return "cost"
        images = {task.data for task in self.support.tasks} == {"images"}
        return "tokens" if images and not self.evidence.images else None

    def finding(self, code: str) -> Finding | None:
        """The finding with this code, if there is one."""
        return next((found for found in self.findings if found.code == code), None)

    def data(self) -> dict[str, Any]:
        """Everything except sentences, as plain numbers, lists and names."""
        evidence = self.evidence
        return {
            "source": evidence.source,
            "family": self.family,
            "task": {"name": self.question.task, "from": self.question.task_from},
            "length": evidence.length,
            "context": evidence.context,
            "width": evidence.width,
            "mask": evidence.mask,
            "seed": evidence.seed,
            "tokens": None if evidence.statistics is None else asdict(evidence.statistics),
            "curves": [asdict(curve) for curve in evidence.curves],
            "rank": asdict(self.rank),
            "evidence": asdict(self.support) | {"usual_kept": self.kept, "shortage": self.shortage},
            "choices": [_as_object(choice) for choice in self.choices],
            "references": [_as_object(choice) for choice in self.references],
        }


def _as_object(choice: Choice) -> dict[str, Any]:
    return asdict(choice) | {"rank": choice.rank}
