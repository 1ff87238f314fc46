"""Compute what exhibits lack, or read it from the records that come with the package."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from headwise.checks import one_of
from headwise.data import KNOWN_SETS, data_folder, require_sets
from headwise.devices import refuse_absent
from headwise.errors import BadInputError, ParameterError, StoreError, UnreadableFileError
from headwise.experiments.ensembles import EnsembleExecutor, having
from headwise.experiments.training_run import TrainedSpec
from headwise.papers.catalogue import chosen
from headwise.papers.exhibit import Exhibit, Scale
from headwise.papers.recorded import recorded, recorded_scales
from headwise.papers.reproduction import (
    Reproduced,
    Wanted,
    best_recorded,
    from_records,
    from_store,
)
from headwise.progress import Progress
from headwise.runs import (
    Answer,
    ClusterExecutor,
    Executor,
    LocalExecutor,
    Plan,
    Spec,
    Store,
    run,
    scratch_beside,
    sweep,
)
from headwise.runs.locations import DEFAULT_STORE

#: A path or an SQLAlchemy URL.
Location = str | os.PathLike[str]


@dataclass(frozen=True, kw_only=True)
class Computation:
    """How missing answers are computed; ``reproduce`` explains the fields."""

    device: str
    cluster: str | None
    workers: int | None
    seconds: float | int | None
    store: Location | None
    only: Mapping[str, str] | None
    retry: bool
    take_records: bool
    progress: Progress
    command: str

    @property
    def location(self) -> str:
        """Return where answers are kept."""
        return store_location(self.store)

    def executor(self) -> Executor:
        """Return processes of this machine, a cluster, or this process on an accelerator."""
        refuse_absent(self.device)
        scratch = scratch_beside(self.location)
        if self.cluster is not None:
            return ClusterExecutor(self.cluster, device=self.device, scratch=scratch)
        # Two processes on one accelerator would take turns; one that stacks runs fills it.
        if self.device != "cpu" or self.seconds is not None:
            limit = math.inf if self.seconds is None else self.seconds
            say = self.progress.log
            return EnsembleExecutor(self.device, scratch=scratch, seconds=limit, say=say)
        return LocalExecutor(workers=self.workers, device=self.device, scratch=scratch)

    def plan(self, store: Store, wanted: Sequence[Wanted]) -> Plan:
        """Return what is left to do."""
        asked = (spec for one in wanted for spec in one.specs())
        plan = store.plan(having(asked, self.only or {}))
        return plan.retrying() if self.retry else plan


def scale_named(name: str) -> Scale:
    """Return the scale of this name."""
    return Scale(one_of("`scale`", name, [scale.value for scale in Scale]))


def wanted_at(names: list[str], scale_name: str) -> tuple[list[Wanted], list[str]]:
    """Each exhibit at the scale; those of a folder that do not offer it are left out."""
    scale, every = scale_named(scale_name), chosen(names)
    # A name given in full must offer the scale: specs() raises with what it offers.
    found = [e for e in every if scale in e.scales or (e.name in names and e.specs(scale))]
    left_out = [e.name for e in every if e not in found]
    if not found:
        raise ParameterError(
            f"none of {', '.join(left_out)} has a scale {scale.value}", hint="choose another scale"
        )
    notes = [f"left out, having no scale {scale.value}: {', '.join(left_out)}"] * bool(left_out)
    return [Wanted(exhibit, scale) for exhibit in found], notes


def drawn_from_records(
    names: list[str], scale_name: str | None
) -> tuple[list[Reproduced], list[str]]:
    """The exhibits drawn from the rows that come with headwise, by default the largest."""
    scale, every = None if scale_name is None else scale_named(scale_name), chosen(names)
    found = [one for exhibit in every for one in _of_records(exhibit, scale, names)]
    if not found:
        raise ParameterError(
            f"no rows of {', '.join(names)} come with headwise", hint="compute them instead"
        )
    drawn = {one.name for one in found}
    left_out = [e.name for e in every if e.name not in drawn]
    return found, [f"left out, having no recorded rows: {', '.join(left_out)}"] * bool(left_out)


def _of_records(exhibit: Exhibit, scale: Scale | None, names: list[str]) -> list[Reproduced]:
    """What is recorded; an exhibit asked for by its full name must be."""
    if scale is None:
        return best_recorded(exhibit)
    if scale in recorded_scales(exhibit) or exhibit.name in names:
        return [from_records(Wanted(exhibit, scale))]
    return []


def computed(wanted: list[Wanted], how: Computation) -> tuple[list[Reproduced], list[str]]:
    """Compute what is missing, store it, and present what is there; also return notes."""
    notes, executor = [], how.executor()
    with Store.open(how.location) as store:
        if how.take_records:
            notes.append(f"{take_recorded(store, wanted)} answers come with headwise")
        plan = how.plan(store, wanted)
        if plan.failed and not how.retry:
            notes.append(f"{len(plan.failed)} failed before and are not asked again without retry")
        _refuse_impossible(plan.work, how.device)
        plan, left_out = _without_absent_data(plan)
        notes += left_out
        try:
            run(plan, executor, store, progress=how.progress, command=how.command)
        finally:
            # Checkpoints of what is answered are of no more use.
            with suppress(StoreError):
                sweep(scratch_beside(how.location), store.answered())
        return [from_store(store, one) for one in wanted], notes


def take_recorded(store: Store, wanted: Sequence[Wanted]) -> int:
    """Store the answers that come with the package; return how many were new."""
    known = 0
    for one in wanted:
        if one.scale in recorded_scales(one.exhibit):
            records = recorded(one.exhibit, one.scale)
            for spec in store.plan(one.specs()).work:
                if spec.key in records:
                    found = records[spec.key]
                    store.put(spec, Answer(spec.key, found.rows, found.provenance))
                    known += 1
    return known


def _refuse_impossible(work: Sequence[Spec], device: str) -> None:
    """Runs of scale gpu round their products as GPUs do: refuse before a hundred of them fail."""
    training = [spec for spec in work if isinstance(spec, TrainedSpec)]
    impossible = [spec for spec in training if not spec.possible_on(device)]
    if impossible:
        raise BadInputError(
            f"{len(impossible)} of {len(work)} runs take products in {impossible[0].dtype}, which "
            f"{device!r} does not have",
            hint="use the device cuda, or draw the recorded rows",
        )


def _without_absent_data(plan: Plan) -> tuple[Plan, list[str]]:
    """Leave out work on sets that are not here, with a note; refuse if that is all of it."""
    folder, names = data_folder(), {getattr(spec, "dataset", "") for spec in plan.work}
    absent = [own.name for own in KNOWN_SETS if own.name in names and own.place(folder) is None]
    kept = tuple(spec for spec in plan.work if getattr(spec, "dataset", "") not in absent)
    try:
        require_sets(absent, folder)
    except UnreadableFileError as error:
        if not kept:
            raise
        return replace(plan, work=kept), [f"left out: {error}"]
    return plan, []


def store_location(store: Location | None) -> str:
    """Return where answers are kept."""
    return str(DEFAULT_STORE) if store is None else os.fspath(store)


def store_exists(location: str) -> bool:
    """Return whether a store is there; databases are taken to be."""
    return "://" in location or Path(location).exists()
