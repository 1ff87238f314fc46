"""Record queries, keys, mask and scale of chosen layers during a forward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from headwise.attention.layer import Attention
from headwise.attention.view import AttentionView
from headwise.errors import BadInputError, TooLargeError

Receiver = Callable[[str, AttentionView], None]


def attention_layers(model: nn.Module) -> dict[str, Attention]:
    """The attention layers of a model by name, in the order they were made.

    >>> from headwise.attention import HeadGeometry, mha
    >>> list(attention_layers(nn.Sequential(mha(HeadGeometry.standard(8, heads=2)))))
    ['0']
    """
    return {n: m for n, m in model.named_modules() if isinstance(m, Attention)}


@contextmanager
def capture(
    model: nn.Module, receive: Receiver, layers: Iterable[str] | None = None
) -> Iterator[None]:
    """Call ``receive(name, view)`` for each attention layer while the block runs.

    Nothing is kept: a receiver that wants less memory takes what it needs and returns. Without
    ``layers`` all attention layers report.

    >>> from headwise.attention import HeadGeometry, mha
    >>> model = nn.Sequential(mha(HeadGeometry.standard(8, heads=2)))
    >>> with capture(model, lambda name, view: print(name, tuple(view.queries.shape))):
    ...     _ = model(torch.zeros(1, 4, 8))
    0 (1, 2, 4, 4)
    """
    chosen = _chosen(model, layers)
    before = {name: layer.observer for name, layer in chosen.items()}
    for name, layer in chosen.items():
        layer.observer = _observer(receive, name)
    try:
        yield
    finally:
        for name, layer in chosen.items():
            layer.observer = before[name]


class Keep:
    """A receiver that keeps what it is given, up to a number of bytes.

    >>> from headwise.attention import HeadGeometry, mha
    >>> kept, model = Keep(limit_bytes=10**6), mha(HeadGeometry.standard(8, heads=2))
    >>> with capture(model, kept):
    ...     _ = model(torch.zeros(1, 4, 8))
    >>> len(kept.views[""])
    1
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.bytes = 0
        self.views: dict[str, list[AttentionView]] = {}

    def __call__(self, name: str, view: AttentionView) -> None:
        """Keep one view, detached from the graph, or refuse before the limit is passed."""
        size = view.queries.nbytes + view.keys.nbytes
        if self.bytes + size > self.limit_bytes:
            raise TooLargeError(
                f"keeping layer {name!r} would take {self.bytes + size:,} bytes of queries and "
                f"keys, the limit is {self.limit_bytes:,}",
                hint="raise limit_bytes, name fewer layers, or give capture a receiver that "
                "measures each view and keeps none",
            )
        self.bytes += size
        detached = replace(view, queries=view.queries.detach(), keys=view.keys.detach())
        self.views.setdefault(name, []).append(detached)


@torch.no_grad()
def views(model: nn.Module, *inputs: Any, limit_bytes: int = 2**30) -> dict[str, AttentionView]:
    """One view per attention layer, from one forward pass without gradients.

    >>> from headwise.attention import HeadGeometry, mha
    >>> list(views(mha(HeadGeometry.standard(8, heads=2)), torch.zeros(1, 4, 8)))
    ['']
    """
    kept = Keep(limit_bytes)
    with capture(model, kept):
        model(*inputs)
    return {name: found[-1] for name, found in kept.views.items()}


def _chosen(model: nn.Module, layers: Iterable[str] | None) -> dict[str, Attention]:
    known = attention_layers(model)
    if layers is None:
        return known
    wanted = list(layers)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise BadInputError(
            f"the model has no attention layer {unknown[0]!r}",
            hint=f"choose from {', '.join(map(repr, known)) or 'none: it has no such layer'}",
        )
    return {name: known[name] for name in wanted}


def _observer(receive: Receiver, name: str) -> Callable[[AttentionView], None]:
    return lambda view: receive(name, view)
