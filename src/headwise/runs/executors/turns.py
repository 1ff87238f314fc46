"""Decide which specs to hand out next if workers may die."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence

from headwise.runs.executors.protocol import DEATHS
from headwise.runs.spec import Spec


class Turns:
    """Hand out specs in order; those whose worker died come last, one at a time.

    A spec may not be the cause of its worker's death. If the worker dies again while it computes
    only this spec, the spec is the cause.
    """

    def __init__(self, specs: Sequence[Spec]) -> None:
        self._waiting, self._suspects = deque(specs), deque[Spec]()
        self._out: dict[str, bool] = {}  # key -> whether it was handed out alone
        self._deaths = Counter[str]()

    @property
    def left(self) -> bool:
        """Return whether any spec has no outcome yet."""
        return bool(self._waiting or self._suspects or self._out)

    def next_specs(self, capacity: int) -> list[Spec]:
        """Return the specs to hand out now, so that ``capacity`` are being computed."""
        specs: list[Spec] = []
        while self._waiting and len(self._out) < capacity:
            specs.append(self._waiting.popleft())
            self._out[specs[-1].key] = False
        if self._suspects and not self._out and capacity:
            specs.append(self._suspects.popleft())
            self._out[specs[-1].key] = True
        return specs

    def finish(self, spec: Spec) -> None:
        """Note that a spec has its outcome."""
        del self._out[spec.key]

    def mourn(self, spec: Spec, deaths: int) -> int | None:
        """Count deaths of a spec's worker; return the total if the spec has failed, else None."""
        alone = self._out.pop(spec.key)
        self._deaths[spec.key] += deaths
        if alone and self._deaths[spec.key] >= DEATHS:
            return self._deaths[spec.key]
        self._suspects.append(spec)
        return None
