"""What ``headwise reproduce`` was asked for: which exhibits, at which scale, computed where."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from headwise.cli.console import UsageError, complain
from headwise.cli.progress_bar import progress_bar
from headwise.errors import BadInputError
from headwise.experiments.training_run import TrainingRun
from headwise.papers.catalogue import chosen
from headwise.papers.exhibit import Exhibit, Scale
from headwise.papers.recorded import recorded_scales
from headwise.papers.reproduction import (
    Reproduced,
    Wanted,
    all_specs,
    from_records,
    from_store,
    largest_recorded,
)
from headwise.runs import (
    ClusterExecutor,
    Executor,
    LocalExecutor,
    Spec,
    Store,
    command_line,
    run,
    scratch_beside,
    sweep,
)
from headwise.runs.locations import DEFAULT_STORE
from headwise.training.device import refuse_absent


def wanted(names: list[str], scale_name: str) -> list[Wanted]:
    """Each exhibit at the scale; those of a group that do not offer it are left out, and said.

    >>> [one.exhibit.name for one in wanted(["rank2026/table_1"], "paper")]
    ['rank2026/table_1']
    """
    scale = _scale(scale_name)
    # A name given in full must offer the scale: specs() refuses with what it offers.
    found = [e for e in chosen(names) if scale in e.scales or (e.name in names and e.specs(scale))]
    left_out = [e.name for e in chosen(names) if e not in found]
    if not found:
        raise UsageError(f"none of {', '.join(left_out)} has a scale {scale.value}")
    if left_out:
        complain(f"left out, having no scale {scale.value}: {', '.join(left_out)}")
    return [Wanted(exhibit, scale) for exhibit in found]


def recorded(names: list[str], scale_name: str | None) -> list[Reproduced]:
    """The exhibits drawn from the rows that come with headwise, by default the largest."""
    scale = None if scale_name is None else _scale(scale_name)
    found = [from_records(one) for e in chosen(names) if (one := _recorded(e, scale, names))]
    if not found:
        raise BadInputError(
            f"no rows of {', '.join(names)} come with headwise", hint="leave out --from-records"
        )
    drawn = {one.wanted.exhibit.name for one in found}
    left_out = [e.name for e in chosen(names) if e.name not in drawn]
    if left_out:
        complain(f"left out, having no rows here: {', '.join(left_out)}")
    return found


def refuse_no_workers(workers: int | None) -> None:
    """Processes draw as well as compute, so less than one is refused whoever computes.

    >>> refuse_no_workers(0)
    Traceback (most recent call last):
    headwise.errors.BadInputError: 0 workers do no work; pass at least 1
    """
    if workers is not None and workers < 1:
        raise BadInputError(f"{workers} workers do no work", hint="pass at least 1")


def executor(
    device: str, cluster: str | None, workers: int | None, place: str | None = None
) -> Executor:
    """Who computes: processes of this machine, or a cluster; checkpoints lie by the store."""
    scratch = scratch_beside(place or DEFAULT_STORE)
    refuse_absent(device)
    if cluster is not None and workers is not None:
        raise UsageError("--workers counts processes here; write --cluster local:4 for a cluster")
    if cluster is not None:
        return ClusterExecutor(cluster, device=device, scratch=scratch)
    # Two processes on one accelerator would only take turns.
    alone = 1 if device != "cpu" else None
    return LocalExecutor(workers=workers or alone, device=device, scratch=scratch)


def computed(
    asked: list[Wanted], by: Executor, place: str | None, *, device: str, retry: bool
) -> list[Reproduced]:
    """Compute what is missing, store it, and present what is there."""
    with Store.open() if place is None else Store.open(place) as store:
        plan = store.plan(all_specs(asked))
        plan = plan.retrying() if retry else plan
        if plan.failed and not retry:
            complain(f"{len(plan.failed)} failed before and are left; --retry asks them again")
        _refuse_impossible(plan.work, device)
        try:
            run(plan, by, store, progress=progress_bar(), command=command_line(sys.argv))
        finally:
            sweep(scratch_beside(place or DEFAULT_STORE), store.answered())
        return [from_store(store, one) for one in asked]


def _refuse_impossible(work: Sequence[Spec], device: str) -> None:
    """Runs of scale gpu round their products as GPUs do: said before a hundred of them fail."""
    training = [spec for spec in work if isinstance(spec, TrainingRun)]
    impossible = [spec for spec in training if not spec.possible_on(device)]
    if impossible:
        raise BadInputError(
            f"{len(impossible)} of {len(work)} runs take products in {impossible[0].dtype}, which "
            f"{device!r} has not",
            hint="pass --device cuda, or --from-records to draw what was recorded",
        )


def _scale(name: str) -> Scale:
    if name not in list(Scale):
        raise UsageError(f"there is no scale {name!r}; choose from {', '.join(Scale)}")
    return Scale(name)


def _recorded(exhibit: Exhibit, scale: Scale | None, names: list[str]) -> Wanted | None:
    """The rows to draw; one asked for by its full name is refused where there are none."""
    if scale is None:
        return largest_recorded(exhibit)
    if scale in recorded_scales(exhibit) or exhibit.name in names:
        return Wanted(exhibit, scale)
    return None
