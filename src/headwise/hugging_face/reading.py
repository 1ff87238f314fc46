"""Read the attention of Hugging Face models: queries, keys, mask and scale, layer by layer.

Their layers ask ``transformers.AttentionInterface`` for the function that attends, and
``AttentionMaskInterface`` for the masks. While a block runs, a function of ours is set in both: it
reports queries and keys and then calls the layer's own eager attention with the eager mask, so
that the output is bit-equal to eager attention. Families that do not ask the interface return
their attention maps instead.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from headwise.attention.mask_arguments import recognised_mask
from headwise.attention.masks import EVERYTHING, Mask
from headwise.attention.scores import default_temperature
from headwise.attention.view import AttentionMaps, AttentionView
from headwise.errors import BadInputError

Report = Callable[[str, AttentionView | AttentionMaps], None]

#: The name under which our functions are registered. Names with "flash" or "/" mean kernels.
IMPLEMENTATION = "headwise_reading"

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
def read_hugging_face(model: nn.Module, report: Report) -> Iterator[None]:
    """Call ``report(name, view)`` for each Hugging Face attention layer while the block runs.

    Meanwhile the models attend eagerly. Their attention implementation is restored afterwards.
    """
    block = _Block({id(module): name for name, module in model.named_modules()}, report)
    with ExitStack() as stack:
        for name, each in hugging_face_models(model).items():
            switches = getattr(type(each), "_can_set_attn_implementation", lambda: True)()
            reader = _switched(each, block) if switches else _mapped(each, name, report)
            stack.enter_context(reader)
        yield


@dataclass
class _Block:
    """The names of the layers that one block reads, and whom to tell."""

    names: dict[int, str]
    report: Report
    masks: list[tuple[Tensor, Mask]] = field(default_factory=list)

    def view(self, module: nn.Module, name: str, inputs: dict[str, Any]) -> AttentionView:
        """Return what the attention function was given as a view."""
        queries, keys = inputs["query"].detach(), inputs["key"].detach()
        scaling, bias = inputs.get("scaling"), inputs.get("position_bias")
        temperature = default_temperature(queries.shape[-1]) if scaling is None else 1 / scaling
        mask = self._mask(inputs.get("attention_mask"))
        sinks = inputs.get("s_aux")
        return AttentionView(
            queries,
            keys,
            mask if bias is None else mask & recognised_mask(bias.detach()),
            float(temperature),
            softcap=inputs.get("softcap"),
            sinks=None if sinks is None else sinks.detach(),
            self_attention=not _attends_elsewhere(name, module),
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


@contextmanager
def _switched(model: nn.Module, block: _Block) -> Iterator[None]:
    _register()
    configs = _configs(model)
    before = [config._attn_implementation for config in configs]
    model.set_attn_implementation(IMPLEMENTATION)  # pyright: ignore[reportCallIssue]
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
    from transformers.masking_utils import eager_mask

    AttentionInterface.register(IMPLEMENTATION, _attend)
    AttentionMaskInterface.register(IMPLEMENTATION, eager_mask)


def _attend(module: nn.Module, *given: Any, **named: Any) -> Any:
    """Report what a layer attends with, then attend as its own eager function does."""
    inputs = dict(zip(("query", "key", "value", "attention_mask"), given, strict=False)) | named
    for block in _RUNNING:
        name = block.names.get(id(module))
        if name is not None:
            block.report(name, block.view(module, name, inputs))
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
