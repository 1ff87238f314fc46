"""Run exhibits: compute what is missing, and present what is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headwise.papers.exhibit import Answers, Exhibit, Presentation, Scale
from headwise.papers.recorded import recorded, recorded_scales
from headwise.runs import Record, Spec, Store


@dataclass(frozen=True)
class Wanted:
    """An exhibit at a scale.

    >>> from headwise.papers.rank2026.table_1 import TABLE_1
    >>> Wanted(TABLE_1, Scale.PAPER).exhibit.name
    'rank2026/table_1'
    """

    exhibit: Exhibit
    scale: Scale

    def specs(self) -> list[Spec]:
        """What it asks."""
        return self.exhibit.specs(self.scale)

    @property
    def command(self) -> str:
        """What computes it; the scale that needs an accelerator names one.

        >>> from headwise.papers.rank2026.table_1 import TABLE_1
        >>> Wanted(TABLE_1, Scale.PAPER).command
        'headwise reproduce rank2026/table_1 --scale paper'
        """
        device = " --device cuda" if self.scale is Scale.GPU else ""
        return f"headwise reproduce {self.exhibit.name} --scale {self.scale.value}{device}"


@dataclass(frozen=True)
class State:
    """How much of an exhibit at a scale a store holds.

    >>> str(State(answered=3, failed=0, asked=3)), str(State(answered=0, failed=0, asked=3))
    ('stored', 'missing')
    >>> str(State(answered=2, failed=1, asked=4))
    '1 failed, 1 missing of 4'
    """

    answered: int
    failed: int
    asked: int

    @property
    def complete(self) -> bool:
        """Whether it can be drawn."""
        return self.answered == self.asked

    def __str__(self) -> str:
        if self.complete:
            return "stored"
        missing = self.asked - self.answered - self.failed
        if missing == self.asked:
            return "missing"
        parts = [f"{self.failed} failed"] * bool(self.failed)
        parts += [f"{missing} missing"] * bool(missing)
        return f"{', '.join(parts)} of {self.asked}"


@dataclass(frozen=True)
class Reproduced:
    """What became of an exhibit: its presentation, or None with the reason in words."""

    wanted: Wanted
    presentation: Presentation | None
    problem: str = ""
    sources: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What is shown, or would be.

        >>> from headwise.papers.rank2026.table_1 import TABLE_1
        >>> Reproduced(Wanted(TABLE_1, Scale.PAPER), Presentation(title="Two rows of it")).title
        'Two rows of it'
        """
        own = self.wanted.exhibit.title
        return own if self.presentation is None else self.presentation.title or own

    @property
    def why_uncompared(self) -> str:
        """Return why there are no cells."""
        shown = self.presentation or Presentation()
        return self.wanted.exhibit.why_uncompared(self.wanted.scale, shown)


def state_in(store: Store, wanted: Wanted) -> State:
    """What a store knows of an exhibit at a scale."""
    plan = store.plan(wanted.specs())
    asked = len(plan.answered) + len(plan.failed) + len(plan.missing)
    return State(len(plan.answered), len(plan.failed), asked)


def all_specs(wanted: Sequence[Wanted]) -> list[Spec]:
    """Every question of several exhibits, each once: they may share some."""
    return list({spec.key: spec for one in wanted for spec in one.specs()}.values())


def from_store(store: Store, wanted: Wanted) -> Reproduced:
    """Present what a store holds; what is missing or failed is said, not raised."""
    specs = wanted.specs()
    records = store.records_of(specs)
    # A record for each spec is all of them, in order: no need to look at every key again.
    if len(records) == len(specs):
        return _presented(wanted, tuple(records.values()))
    state = state_in(store, wanted)
    if not state.complete:
        return Reproduced(wanted, None, problem=str(state))
    return _presented(wanted, tuple(records.of(specs)))


def from_records(wanted: Wanted) -> Reproduced:
    """Present the rows that come with the package."""
    records = recorded(wanted.exhibit, wanted.scale)
    return _presented(wanted, tuple(records.of(wanted.specs())))


def largest_recorded(exhibit: Exhibit) -> Wanted | None:
    """The largest scale of which rows come with the package.

    >>> from headwise.papers.rank2026.table_1 import TABLE_1
    >>> found = largest_recorded(TABLE_1)
    >>> found is None or found.scale in TABLE_1.scales
    True
    """
    scales = recorded_scales(exhibit)
    return Wanted(exhibit, scales[-1]) if scales else None


def largest_stored(store: Store, exhibit: Exhibit) -> Wanted | None:
    """The largest scale that a store holds whole."""
    for scale in reversed(exhibit.scales):
        if state_in(store, Wanted(exhibit, scale)).complete:
            return Wanted(exhibit, scale)
    return None


def _presented(wanted: Wanted, answers: tuple[Record, ...]) -> Reproduced:
    sources = dict.fromkeys(
        f"headwise {record.provenance.code}, torch {record.provenance.torch}, "
        f"{record.provenance.device}"
        + (f", {record.provenance.dtype}" * bool(record.provenance.dtype))
        for record in answers
    )
    presentation = wanted.exhibit.present(Answers(wanted.scale, answers))
    return Reproduced(wanted, presentation, sources=tuple(sources))
