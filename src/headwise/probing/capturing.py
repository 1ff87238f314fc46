"""One way to read a model: ``capture`` reports every attention layer of a forward pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, get_args

import torch
from torch import nn

from headwise.attention.layer import Attention
from headwise.attention.view import AttentionMaps, AttentionView
from headwise.checks import of_type, one_of
from headwise.errors import BadInputError, ParameterError, TooLargeError
from headwise.hugging_face.attention_interface import (
    Attends,
    Report,
    hugging_face_models,
    read_hugging_face,
)
from headwise.probing.refusals import CHECK_BATCH, one_line_if_unfit
from headwise.probing.torch_layers import read_fused_calls, read_multihead_attention

#: What is read of a layer: queries and keys or, where they cannot be read, attention maps.
Read = AttentionView | AttentionMaps
Receiver = Callable[[str, Any], None]


@contextmanager
def capture(
    model: nn.Module,
    receive: Receiver,
    layers: Iterable[str] | None = None,
    attends: Attends = "eager",
) -> Iterator[None]:
    """Report every attention layer of the model while the block runs; the output stays the same.

    Reads headwise's layers, ``torch.nn.MultiheadAttention``, Hugging Face models and every module
    that calls ``F.scaled_dot_product_attention``, such as the blocks of timm. Nothing is kept.

    Args:
        model: The model; call it in the block.
        receive: Called as ``receive(name, view)``. The view is an ``AttentionView``, or an
            ``AttentionMaps`` for a Hugging Face family that does not hand out queries and keys.
            A module called several times in one forward pass (ALBERT shares its layers) reports
            as "name", "name@2", "name@3" and so on.
        layers: Names of the layers that report; all by default.
        attends: How Hugging Face models attend in the block: "eager" gives their eager output
            bit by bit; "fused" makes no attention matrix, for long sequences.

    Yields:
        Nothing.

    Raises:
        BadInputError: A name in ``layers`` is unknown, or the model was called and no attention
            layer could be read.
        ParameterError: An argument is of the wrong type.

    Example:
        >>> from headwise.attention import HeadGeometry, mha
        >>> model = nn.Sequential(mha(HeadGeometry.standard(8, heads=2)))
        >>> with capture(model, lambda name, view: print(name, tuple(view.queries.shape))):
        ...     _ = model(torch.zeros(1, 4, 8))
        0 (1, 2, 4, 4)
    """  # noqa: DOC501
    of_type("`model`", model, nn.Module, "a torch module")
    of_type("`receive`", receive, Callable, "a function")
    one_of("`attends`", attends, get_args(Attends))
    pass_ = _ForwardPass(model, receive, layers)
    readers = (read_own_layers, read_multihead_attention, read_fused_calls)
    hook = model.register_forward_pre_hook(lambda *_: pass_.begin())
    try:
        with ExitStack() as stack:
            for reader in readers:
                stack.enter_context(reader(model, pass_.report))
            stack.enter_context(read_hugging_face(model, pass_.report, attends))
            yield
    finally:
        hook.remove()
    if pass_.calls and not pass_.read:
        raise unreadable(model)
    pass_.refuse_unheard()


class _ForwardPass:
    """Names the layers in the order of their calls, and passes the chosen ones on."""

    def __init__(self, model: nn.Module, receive: Receiver, layers: Iterable[str] | None) -> None:
        self.receive = receive
        self.chosen = None if layers is None else _checked(model, _names(layers))
        self.calls, self.receiving = 0, False
        self.seen: Counter[str] = Counter()
        self.names: dict[str, None] = {}

    @property
    def read(self) -> bool:
        """Whether any layer was read."""
        return bool(self.names)

    def begin(self) -> None:
        self.calls += 1
        self.seen.clear()

    def report(self, name: str, view: Read) -> None:
        if self.receiving:  # what a receiver computes is not part of the model
            return
        self.seen[name] += 1
        name = name if self.seen[name] == 1 else f"{name}@{self.seen[name]}"
        self.names[name] = None
        if self.chosen is None or name in self.chosen:
            self.receiving = True
            try:
                self.receive(name, view)
            finally:
                self.receiving = False

    def refuse_unheard(self) -> None:
        """Refuse names that no layer of a model had that was called."""
        unheard = sorted((self.chosen or set()) - set(self.names))
        if self.calls and unheard:
            shown = list(self.names)
            raise _no_such_layer(unheard[0], shown[:6] + ["…"] * (len(shown) > 6))


@contextmanager
def read_own_layers(model: nn.Module, report: Report) -> Iterator[None]:
    """Call ``report(name, view)`` for each headwise layer while the block runs."""
    layers = attention_layers(model)
    before = {name: layer.observer for name, layer in layers.items()}
    for name, layer in layers.items():
        layer.observer = lambda view, name=name: report(name, view)
    try:
        yield
    finally:
        for name, layer in layers.items():
            layer.observer = before[name]


def attention_layers(model: nn.Module) -> dict[str, Attention]:
    """Return the headwise attention layers of a model by name.

    Args:
        model: Any module.

    Returns:
        The layers in the order in which they were registered.

    Example:
        >>> from headwise.attention import HeadGeometry, mha
        >>> list(attention_layers(nn.Sequential(mha(HeadGeometry.standard(8, heads=2)))))
        ['0']
    """
    return {n: m for n, m in model.named_modules() if isinstance(m, Attention)}


class Keep:
    """A receiver for ``capture`` that keeps every view, up to a number of bytes.

    Args:
        limit_bytes: How much memory the views may take.

    Example:
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
        self.views: dict[str, list[Any]] = {}

    def __call__(self, name: str, view: Read) -> None:
        """Keep one view, detached from the graph; raise before the limit is exceeded."""
        total = self.bytes + view.nbytes
        if total > self.limit_bytes:
            raise TooLargeError(
                f"expected at most {self.limit_bytes:,} bytes of views, got {total:,} with layer "
                f"{name!r}",
                hint="raise limit_bytes, name fewer layers, or measure each view in a receiver",
            )
        self.bytes = total
        self.views.setdefault(name, []).append(view.detached())


@torch.no_grad()
def views(model: nn.Module, *inputs: Any, limit_bytes: int = 2**30, **named: Any) -> dict[str, Any]:
    """Call the model once, without gradients, and return a view of every attention layer.

    Args:
        model: The model; see ``capture`` for what can be read.
        *inputs: Positional arguments of the model.
        limit_bytes: How much memory the views may take.
        **named: Keyword arguments of the model, such as ``input_ids`` and ``attention_mask``.

    Returns:
        The views by layer name, in the order of the forward pass: ``AttentionView``, or
        ``AttentionMaps`` where queries and keys cannot be read.

    Raises:
        BadInputError: No attention layer could be read, or the model cannot be called so.
        TooLargeError: The views exceed ``limit_bytes``.

    Example:
        >>> from headwise.attention import HeadGeometry, mha
        >>> list(views(mha(HeadGeometry.standard(8, heads=2)), torch.zeros(1, 4, 8)))
        ['']
    """
    kept = Keep(limit_bytes)
    mapped = any(isinstance(each, Mapping) for each in inputs)
    hint = "pass **batch: a mapping is unpacked into arguments" if mapped else CHECK_BATCH
    with one_line_if_unfit(model, lambda: False, hint), capture(model, kept):
        model(*inputs, **named)
    return {name: found[-1] for name, found in kept.views.items()}


def unreadable(model: nn.Module) -> BadInputError:
    """Return the error for a model without an attention layer that can be read."""
    kind = "a Hugging Face model" if hugging_face_models(model) else "a module"
    return BadInputError(
        f"{type(model).__name__} is {kind} in which no attention could be read",
        hint="use headwise layers, nn.MultiheadAttention, F.scaled_dot_product_attention, or a "
        "Hugging Face model that uses AttentionInterface or returns its attentions",
    )


def _names(layers: Any) -> list[str]:
    names = list(layers) if isinstance(layers, Iterable) and not isinstance(layers, str) else None
    if names is None or not all(isinstance(name, str) for name in names):
        raise ParameterError(
            f"expected a list of names for `layers`, got {layers!r}",
            hint="pass the names of attention layers, as views gives them",
        )
    return names


def _checked(model: nn.Module, layers: list[str]) -> set[str]:
    modules = dict(model.named_modules())
    for name in layers:
        if name.partition("@")[0] not in modules and not hugging_face_models(model):
            known = [
                n for n, m in modules.items() if isinstance(m, Attention | nn.MultiheadAttention)
            ]
            raise _no_such_layer(name, known)
    return set(layers)


def _no_such_layer(name: str, known: list[str]) -> BadInputError:
    listed = ", ".join(each if each == "…" else repr(each) for each in known)
    return BadInputError(
        f"expected the name of an attention layer, got {name!r}",
        hint=f"choose from {listed or 'the names that views gives'}",
    )
