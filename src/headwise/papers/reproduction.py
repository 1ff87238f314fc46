"""Present exhibits from stored or recorded answers, whole or in part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headwise.papers.exhibit import Answers, Exhibit, Presentation, Scale
from headwise.papers.recorded import recorded, recorded_scales
from headwise.report.results import short_repr
from headwise.runs import Record, Records, Spec, Store


@dataclass(frozen=True)
class Wanted:
    """An exhibit at a scale."""

    exhibit: Exhibit
    scale: Scale

    __repr__ = short_repr

    def specs(self) -> list[Spec]:
        """Return what it asks."""
        return self.exhibit.specs(self.scale)

    @property
    def command(self) -> str:
        """Return the command that computes it; scale gpu needs an accelerator."""
        device = " --device cuda" if self.scale is Scale.GPU else ""
        return f"headwise reproduce {self.exhibit.name} --scale {self.scale.value}{device}"


@dataclass(frozen=True)
class State:
    """How much of an exhibit at a scale is there."""

    answered: int
    failed: int
    asked: int

    @property
    def complete(self) -> bool:
        """Return whether every answer is there."""
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
    """What became of an exhibit.

    Attributes:
        wanted: The exhibit and its scale.
        presentation: What it shows; None if too few answers are there.
        problem: What is missing or failed, in words. Empty if nothing is.
        sources: The versions and devices that computed the answers.
    """

    wanted: Wanted
    presentation: Presentation | None
    problem: str = ""
    sources: tuple[str, ...] = ()

    __repr__ = short_repr

    @property
    def name(self) -> str:
        """Return the exhibit's name."""
        return self.wanted.exhibit.name

    @property
    def shown(self) -> Presentation:
        """Return the presentation, an empty one if there is none."""
        return self.presentation or Presentation()

    @property
    def title(self) -> str:
        """Return the title of what is shown, or would be."""
        return self.shown.title or self.wanted.exhibit.title

    @property
    def why_uncompared(self) -> str:
        """Return why there are no cells."""
        return self.wanted.exhibit.why_uncompared(self.wanted.scale, self.shown)


def state_in(store: Store, wanted: Wanted) -> State:
    """Return how much of an exhibit at a scale a store holds."""
    plan = store.plan(wanted.specs())
    asked = len(plan.answered) + len(plan.failed) + len(plan.missing)
    return State(len(plan.answered), len(plan.failed), asked)


def from_store(store: Store, wanted: Wanted) -> Reproduced:
    """Present what a store holds; what is missing or failed is in ``problem``."""
    specs = wanted.specs()
    records = store.records_of(specs)
    if len(records) == len(specs):
        return _presented(wanted, tuple(records.values()))
    state = state_in(store, wanted)
    if state.complete:
        return _presented(wanted, tuple(records.of(specs)))
    return _part(wanted, records, specs, str(state))


def from_records(wanted: Wanted) -> Reproduced:
    """Present the rows that come with the package."""
    records, specs = recorded(wanted.exhibit, wanted.scale), wanted.specs()
    missing = records.missing(specs)
    if not missing:
        return _presented(wanted, tuple(records.of(specs)))
    return _part(wanted, records, specs, f"{len(missing)} missing of {len(specs)}")


def best_recorded(exhibit: Exhibit) -> list[Reproduced]:
    """Present the largest scale that is recorded whole, and any larger one of which a part is."""
    found: list[Reproduced] = []
    for scale in reversed(recorded_scales(exhibit)):
        found.insert(0, from_records(Wanted(exhibit, scale)))
        if not found[0].problem:
            break
    return found


def largest_stored(store: Store, exhibit: Exhibit) -> Wanted | None:
    """Return the largest scale that a store holds whole."""
    for scale in reversed(exhibit.scales):
        if state_in(store, Wanted(exhibit, scale)).complete:
            return Wanted(exhibit, scale)
    return None


def missing_words(specs: Sequence[Spec], known: Records) -> str:
    """Say which settings have no answers yet: the values of each field that no answer has."""
    missing = known.missing(specs)
    there = [spec for spec in specs if spec.key in known]
    told = []
    for field in dict.fromkeys(name for spec in specs for name in spec.content):
        have = {str(spec.content.get(field)) for spec in there}
        lack = [spec.content.get(field) for spec in missing if field in spec.content]
        values = list(dict.fromkeys(str(value).strip("[]") for value in lack))
        absent = [value for value in values if value not in {one.strip("[]") for one in have}]
        if absent:
            told.append(f"{field} {', '.join(absent)}")
    where = f" Missing are all with {'; '.join(told)}." if told else ""
    return f"Only {len(there)} of {len(specs)} runs of this scale are there.{where}"


def _part(wanted: Wanted, records: Records, specs: list[Spec], problem: str) -> Reproduced:
    """Present the answers that are there, if the exhibit can show a part."""
    there = tuple(records[spec.key] for spec in specs if spec.key in records)
    if not there or not wanted.exhibit.partial:
        return Reproduced(wanted, None, problem)
    found = _presented(wanted, there)
    remarks = (missing_words(specs, records), *found.shown.remarks)
    return replace(found, presentation=replace(found.shown, remarks=remarks), problem=problem)


def _presented(wanted: Wanted, answers: tuple[Record, ...]) -> Reproduced:
    sources = dict.fromkeys(
        f"headwise {record.provenance.code}, torch {record.provenance.torch}, "
        f"{record.provenance.device}"
        + (f", {record.provenance.dtype}" * bool(record.provenance.dtype))
        for record in answers
    )
    presentation = wanted.exhibit.present(Answers(wanted.scale, answers))
    return Reproduced(wanted, presentation, sources=tuple(sources))
