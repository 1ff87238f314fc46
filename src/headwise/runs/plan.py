"""Plan: specs without those already answered. Resuming a run is this subtraction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headwise.runs.spec import Spec


@dataclass(frozen=True)
class Plan:
    """What was asked for, by what is known of it; ``work`` is what a run would compute.

    A spec that failed before is not work, or every resume would meet it again;
    :meth:`retrying` makes it so.

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

    @classmethod
    def of(
        cls, specs: Iterable[Spec], *, answered: Iterable[str], failed: Iterable[str] = ()
    ) -> Plan:
        """Sort specs by the keys that a store has; a spec named twice is asked once."""
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
        """The same plan with the failed specs among the work, in front."""
        return Plan(self.answered, self.failed, self.missing, self.failed + self.missing)
