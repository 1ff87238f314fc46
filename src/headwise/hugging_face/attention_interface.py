"""Read the attention of Hugging Face models: queries, keys, mask and scale, layer by layer.

Their layers ask ``transformers.AttentionInterface`` for the function that attends, and
``AttentionMaskInterface`` for the masks. While a block runs, a function of ours is set in both: it
reports queries, keys and values and then calls the layer's own eager attention with the eager
mask, so that the output is bit-equal to eager attention. Long sequences are attended to by the
fused kernel instead, which makes no matrix. Families that do not ask the interface return their
attention maps.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn

from headwise.attention.grid import Grid
from headwise.attention.mask_arguments import recognised_mask
from headwise.attention.masks import EVERYTHING, Causal, Mask
from headwise.attention.scores import default_temperature
from headwise.attention.view import AttentionMaps, AttentionView
from headwise.errors import BadInputError
from headwise.hugging_face.projections import Projections

Report = Callable[[str, AttentionView | AttentionMaps], None]

#: The names under which our functions are registered. Names with "flash" or "/" mean kernels.
IMPLEMENTATION, FUSED = "headwise_reading", "headwise_reading_fused"

#: How a model attends while it is read.
Attends = Literal["eager", "fused"]

#: Parts of module names and attributes that mark attention to other tokens.
_CROSS = ("cross", "encdec", "encoder_attn")


def hugging_face_models(model: nn.Module) -> dict[str, nn.Module]:
    """Return the outermost Hugging Face models that a model is or contains, by name.

    Nothing is imported: if transformers is not loaded, no model comes from it.
    """
    library = sys.modules.get("transformers.modeling_utils")
    found: dict[str, nn.Module] = {}
    if library is None:
        return found
    for name, module in model.named_modules():
        inner = any(outer == "" or name.startswith(f"{outer}.") for outer in found)
        if isinstance(module, library.PreTrainedModel) and not inner:
            found[name] = module
    return found


@contextmanager
def read_hugging_face(
    model: nn.Module, report: Report, attends: Attends = "eager"
) -> Iterator[None]:
    """Call ``report(name, view)`` for each Hugging Face attention layer while the block runs.

    Meanwhile the models attend eagerly, or by torch's fused kernel. Their attention
    implementation is restored afterwards.
    """
    block = _Block({id(module): name for name, module in model.named_modules()}, report)
    with ExitStack() as stack:
        for name, each in hugging_face_models(model).items():
            switches = getattr(type(each), "_can_set_attn_implementation", lambda: True)()
            reader = _switched(each, block, attends) if switches else _mapped(each, name, report)
            stack.enter_context(reader)
            stack.enter_context(block.projections.recording(each))
        yield


@dataclass
class _Block:
    """The names of the layers that one block reads, and whom to tell."""

    names: dict[int, str]
    report: Report
    masks: list[tuple[Tensor, Mask]] = field(default_factory=list)
    projections: Projections = field(default_factory=Projections)

    def view(self, module: nn.Module, name: str, inputs: dict[str, Any]) -> AttentionView:
        """Return what the attention function was given as a view."""
        queries, keys = inputs["query"].detach(), inputs["key"].detach()
        scaling, bias = inputs.get("scaling"), inputs.get("position_bias")
        temperature = default_temperature(queries.shape[-1]) if scaling is None else 1 / scaling
        given, sinks = inputs.get("attention_mask"), inputs.get("s_aux")
        mask = self._mask(given) if given is not None or not inputs.get("is_causal") else Causal()
        return AttentionView(
            queries,
            keys,
            mask if bias is None else mask & recognised_mask(bias.detach()),
            float(temperature),
            softcap=inputs.get("softcap"),
            sinks=None if sinks is None else sinks.detach(),
            self_attention=not _attends_elsewhere(name, module),
            weights=self.projections.weights(module, queries, keys),
            values=inputs["value"].detach(),
        )

    def _mask(self, mask: Tensor | None) -> Mask:
        """Return the rule behind a mask; layers share the tensor, so the last one is kept."""
        if mask is None:
            return EVERYTHING
        for known, rule in self.masks:
            if known is mask:
                return rule
        rule = recognised_mask(mask.detach())
        self.masks = [*self.masks[-1:], (mask, rule)]
        return rule


#: Blocks that are running now, in the order they began.
_RUNNING: list[_Block] = []

#: Layers that call the fused kernel now. They have reported already.
_ATTENDING: list[nn.Module] = []


def is_attending() -> bool:
    """Return whether a layer that has reported is calling the fused kernel."""
    return bool(_ATTENDING)


@contextmanager
def _switched(model: nn.Module, block: _Block, attends: Attends) -> Iterator[None]:
    _register()
    configs = _configs(model)
    before = [config._attn_implementation for config in configs]
    name = IMPLEMENTATION if attends == "eager" else FUSED
    model.set_attn_implementation(name)  # pyright: ignore[reportCallIssue]
    _RUNNING.append(block)
    try:
        yield
    finally:
        _RUNNING.remove(block)
        # Outer configs first: setting one sets those within it too.
        for config, implementation in zip(configs, before, strict=True):
            config._attn_implementation = implementation


def _configs(model: nn.Module) -> list[Any]:
    """Return the configs of a model and its parts, outer ones first, each once."""
    found: dict[int, Any] = {}
    for module in model.modules():
        waiting: list[Any] = [module.config] if hasattr(module, "set_attn_implementation") else []
        while waiting:
            config: Any = waiting.pop(0)
            found.setdefault(id(config), config)
            parts = (getattr(config, name, None) for name in config.sub_configs)
            waiting += [part for part in parts if part is not None]
    return list(found.values())


def _register() -> None:
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask, sdpa_mask

    AttentionInterface.register(IMPLEMENTATION, _attend)
    AttentionMaskInterface.register(IMPLEMENTATION, eager_mask)
    AttentionInterface.register(FUSED, _attend_fused)
    AttentionMaskInterface.register(FUSED, sdpa_mask)


def _reported(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """Report what a layer attends with, and return it by name."""
    inputs = dict(zip(("query", "key", "value", "attention_mask"), given, strict=False)) | named
    for block in _RUNNING:
        name = block.names.get(id(module))
        if name is not None:
            block.report(name, block.view(module, name, inputs))
    return inputs


def _attend(module: nn.Module, *given: Any, **named: Any) -> Any:
    """Report what a layer attends with, then attend as its own eager function does."""
    return _eagerly(module, _reported(module, given, named))


def _attend_fused(module: nn.Module, *given: Any, **named: Any) -> Any:
    """Report what a layer attends with, then attend by the fused kernel where it can."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    causal = named.get("is_causal")
    causal = getattr(module, "is_causal", True) if causal is None else causal
    query = given[0] if given else named["query"]
    mask = given[3] if len(given) > 3 else named.get("attention_mask")
    # A causal mask that the kernel applies by itself is not made.
    alone = mask is None and bool(causal) and query.shape[2] > 1
    inputs = _reported(module, given, named | {"is_causal": alone})
    if inputs.get("softcap") is not None or inputs.get("s_aux") is not None:
        if alone:
            n, m = inputs["query"].shape[2], inputs["key"].shape[2]
            inputs["attention_mask"] = Causal().allowed(
                Grid.whole(torch.Size([1, 1, n, m]), inputs["query"].device)
            )
        return _eagerly(module, {k: v for k, v in inputs.items() if k != "is_causal"})
    _ATTENDING.append(module)
    try:
        return sdpa_attention_forward(module, **inputs)
    finally:
        _ATTENDING.pop()


def _eagerly(module: nn.Module, inputs: dict[str, Any]) -> Any:
    mask = inputs.get("attention_mask")
    if mask is not None and mask.dtype == torch.bool:
        # Eager attention adds its mask.
        least = torch.finfo(inputs["query"].dtype).min
        zero = torch.zeros((), dtype=inputs["query"].dtype, device=mask.device)
        inputs["attention_mask"] = torch.where(mask, zero, least)
    inputs.setdefault("attention_mask", None)
    return _eager_function(module)(module, **inputs)


def _eager_function(module: nn.Module) -> Callable[..., Any]:
    """Return the eager attention function in the file that defines the layer."""
    for kind in type(module).__mro__:
        found = getattr(sys.modules.get(kind.__module__), "eager_attention_forward", None)
        if found is not None:
            return found
    raise BadInputError(
        f"expected an eager_attention_forward beside {type(module).__name__}, found none",
        hint="define one in the module of that class",
    )


def _attends_elsewhere(name: str, module: nn.Module) -> bool:
    marked = getattr(module, "is_cross_attention", False)
    return bool(marked) or any(part in name.lower() for part in _CROSS)


@contextmanager
def _mapped(model: nn.Module, name: str, report: Report) -> Iterator[None]:
    """Ask a model that does not use the interface for its attention maps, and report those."""
    asked: list[dict[str, Any]] = []

    def ask(_: nn.Module, given: Any, named: dict[str, Any]) -> Any:
        asked.append(named)
        return given, named | {"output_attentions": True, "return_dict": True}

    def take(_: nn.Module, given: Any, named: dict[str, Any], output: Any) -> Any:
        wanted, real = asked.pop(), named.get("attention_mask")
        real = real.bool() if real is not None and real.ndim == 2 else None
        for key in [key for key in output if key.endswith("attentions")]:
            _report_maps(report, ".".join(filter(None, (name, key))), output[key], real)
        if not wanted.get("output_attentions"):
            kept = {key: each for key, each in output.items() if not key.endswith("attentions")}
            output = type(output)(**kept)
        return output.to_tuple() if wanted.get("return_dict") is False else output

    hooks = [
        model.register_forward_pre_hook(ask, with_kwargs=True, prepend=True),
        model.register_forward_hook(take, with_kwargs=True),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _report_maps(report: Report, name: str, maps: Any, real: Tensor | None) -> None:
    elsewhere = any(part in name for part in _CROSS)
    for index, each in enumerate(maps or ()):
        if each is not None:
            known = None if elsewhere else real
            found = AttentionMaps(each.detach(), known, self_attention=not elsewhere)
            report(f"{name}.{index}", found)
