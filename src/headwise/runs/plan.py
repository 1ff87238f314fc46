"""Plan: the specs that a store has no answer for. Resuming a run means making its plan again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headwise.report.results import short_repr
from headwise.runs.spec import Spec


@dataclass(frozen=True)
class Plan:
    """Specs sorted by what a store holds of them.

    Specs that failed before are not part of ``work``; :meth:`retrying` adds them.

    Args:
        answered: Specs that have an answer.
        failed: Specs that failed.
        missing: Specs that were never asked.
        work: What a run computes.

    Example:
        >>> from headwise.runs.examples import Square
        >>> one, two, three = (Square(number=number) for number in (1, 2, 3))
        >>> plan = Plan.of([one, two, three, one], answered={one.key}, failed={two.key})
        >>> [spec.number for spec in plan.work], [spec.number for spec in plan.retrying().work]
        ([3.0], [2.0, 3.0])
    """

    answered: tuple[Spec, ...]
    failed: tuple[Spec, ...]
    missing: tuple[Spec, ...]
    work: tuple[Spec, ...]

    __repr__ = short_repr

    @classmethod
    def of(
        cls, specs: Iterable[Spec], *, answered: Iterable[str], failed: Iterable[str] = ()
    ) -> Plan:
        """Sort specs by the keys that a store has; a repeated spec counts once."""
        answered = frozenset(answered)
        failed = frozenset(failed) - answered
        by_key = {spec.key: spec for spec in specs}
        missing = by_key.keys() - answered - failed
        known, lost, left = (
            tuple(spec for key, spec in by_key.items() if key in keys)
            for keys in (answered, failed, missing)
        )
        return cls(known, lost, left, work=left)

    def retrying(self) -> Plan:
        """Return the same plan with the failed specs first among the work."""
        return Plan(self.answered, self.failed, self.missing, self.failed + self.missing)
