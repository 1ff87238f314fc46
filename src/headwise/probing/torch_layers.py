"""Read attention that torch computes: ``nn.MultiheadAttention`` and fused attention calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad, scaled_dot_product_attention
from torch.overrides import TorchFunctionMode

from headwise.attention.layer import Attention
from headwise.attention.mask_arguments import recognised_mask, torch_mask
from headwise.attention.masks import EVERYTHING, Causal, Mask
from headwise.attention.projections import HeadWeights
from headwise.attention.scores import default_temperature
from headwise.attention.view import AttentionView
from headwise.hugging_face.attention_interface import Report, is_attending


@contextmanager
def read_multihead_attention(model: nn.Module, report: Report) -> Iterator[None]:
    """Call ``report(name, view)`` for each ``nn.MultiheadAttention`` while the block runs.

    The hooks switch torch's fused encoder path off, so that every layer is called.
    """
    hooks = [
        layer.register_forward_pre_hook(_hook(report, name), with_kwargs=True)
        for name, layer in model.named_modules()
        if isinstance(layer, nn.MultiheadAttention)
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _hook(report: Report, name: str) -> Callable[..., None]:
    def seen(layer: nn.MultiheadAttention, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        order = ("query", "key", "value", "key_padding_mask", "need_weights", "attn_mask")
        report(name, _view(layer, dict(zip(order, given, strict=False)) | named))

    return seen


def _view(layer: nn.MultiheadAttention, inputs: dict[str, Any]) -> AttentionView:
    joint, bias = layer.in_proj_weight, layer.in_proj_bias
    separate = (layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight)
    maps = separate if joint is None else joint.chunk(3)
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    tokens = [_batched(layer, inputs[name]) for name in ("query", "key", "value")]
    queries, keys, values = (
        _by_head(linear(*each), layer.num_heads) for each in zip(tokens, maps, biases, strict=True)
    )
    given = [inputs.get("attn_mask"), inputs.get("key_padding_mask")]
    for extra_key, extra_value in _extra_tokens(layer, keys, values):
        keys, values = torch.cat([keys, extra_key], 2), torch.cat([values, extra_value], 2)
        given = [None if each is None else pad(each, (0, 1)) for each in given]
    mask = torch_mask(*given, batch=len(queries), heads=layer.num_heads, recognise=True)
    return AttentionView(
        queries,
        keys,
        mask,
        layer.head_dim**0.5,
        weights=HeadWeights(*(_rows_by_head(each, layer.num_heads) for each in maps[:2])),
        self_attention=inputs["query"] is inputs["key"],
        values=values,
    )


def _extra_tokens(layer: Any, keys: Tensor, values: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the keys and values that a layer adds to its tokens: learned ones, then zeros."""
    if layer.bias_k is not None:
        learned = (_by_head(each, layer.num_heads) for each in (layer.bias_k, layer.bias_v))
        key, value = (each.expand(len(keys), -1, -1, -1) for each in learned)
        yield key, value
    if layer.add_zero_attn:
        yield torch.zeros_like(keys[:, :, :1]), torch.zeros_like(values[:, :, :1])


def _batched(layer: nn.MultiheadAttention, tokens: Tensor) -> Tensor:
    tokens = tokens.detach()
    if tokens.ndim == 2:
        return tokens.unsqueeze(0)
    return tokens if layer.batch_first else tokens.transpose(0, 1)


def _by_head(rows: Tensor, heads: int) -> Tensor:
    return rows.unflatten(-1, (heads, -1)).transpose(1, 2).detach()


def _rows_by_head(weight: Tensor, heads: int) -> Tensor:
    return weight.detach().unflatten(0, (heads, -1))


@contextmanager
def read_fused_calls(model: nn.Module, report: Report) -> Iterator[None]:
    """Call ``report(name, view)`` for each ``scaled_dot_product_attention`` in the model.

    The name is that of the innermost module that is running. Calls within layers that are read in
    another way are left out.
    """
    running: list[tuple[str, nn.Module]] = []
    hooks = []
    for name, module in model.named_modules():
        hooks += [
            module.register_forward_pre_hook(_entering(running, name), prepend=True),
            module.register_forward_hook(lambda *_: _leave(running), always_call=True),
        ]
    try:
        with _Recorder(running, report):
            yield
    finally:
        for hook in hooks:
            hook.remove()


def _entering(running: list[tuple[str, nn.Module]], name: str) -> Callable[..., None]:
    def enter(module: nn.Module, given: Any) -> None:
        running.append((name, module))

    return enter


def _leave(running: list[tuple[str, nn.Module]]) -> None:
    if running:
        running.pop()


class _Recorder(TorchFunctionMode):
    """Sees every call of torch, also of functions imported by name."""

    def __init__(self, running: list[tuple[str, nn.Module]], report: Report) -> None:
        super().__init__()
        self.running, self.report = running, report

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        if func is scaled_dot_product_attention and self._unread():
            order = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
            inputs = dict(zip(order, args, strict=False)) | named
            self.report(self.running[-1][0], _fused_view(inputs))
        return func(*args, **named)

    def _unread(self) -> bool:
        read_otherwise = (Attention, nn.MultiheadAttention)
        inside = any(isinstance(module, read_otherwise) for _, module in self.running)
        return bool(self.running) and not inside and not is_attending()


def _fused_view(inputs: dict[str, Any]) -> AttentionView:
    queries, keys = (_four(inputs[name].detach()) for name in ("query", "key"))
    scale, given = inputs.get("scale"), inputs.get("attn_mask")
    mask: Mask = Causal() if inputs.get("is_causal") else EVERYTHING
    if given is not None:
        # (b, n, m) belongs to queries of three dimensions, (h, n, m) to those of four.
        single = given.ndim == 3 and inputs["query"].ndim == 3
        mask &= recognised_mask(given.detach().unsqueeze(1) if single else given.detach())
    temperature = default_temperature(queries.shape[-1]) if scale is None else 1 / scale
    values = _four(inputs["value"].detach())
    return AttentionView(queries, keys, mask, float(temperature), values=values)


def _four(tensor: Tensor) -> Tensor:
    """Return (batch, heads, n, d): one head for three dimensions, one batch for two."""
    if tensor.ndim == 3:
        return tensor.unsqueeze(1)
    while tensor.ndim < 4:
        tensor = tensor.unsqueeze(0)
    return tensor.flatten(0, -4)
