"""Compile presets whole and compare with eager, outside the test process.

The checks of types that the tests hook into every function cannot be traced, so this file is
run as a separate program: ``python compile_presets.py BACKEND NAME...``.
"""

import sys

import torch

from attention.copies import close, random_, tokens
from attention.every_preset import PRESETS
from headwise.attention import Causal


def compare(name, backend):
    layer = random_(PRESETS[name]()).double()
    compiled = torch.compile(layer, fullgraph=True, backend=backend)
    x, y = tokens(2, 5, 16).requires_grad_(), tokens(2, 5, 16).requires_grad_()
    a, b = layer(x), compiled(y)
    close(b, a)
    a.square().sum().backward()
    b.square().sum().backward()
    close(y.grad, x.grad)


def compare_masks(backend):
    layer = random_(PRESETS["gqa"]()).double()
    compiled = torch.compile(layer, fullgraph=True, backend=backend)
    x = tokens(2, 5, 16)
    close(compiled(x, mask=Causal()), layer(x, mask=Causal()))
    allowed = torch.ones(5, 5, dtype=torch.bool).tril(1)
    close(compiled(x, mask=allowed), layer(x, mask=allowed))


if __name__ == "__main__":
    backend, *names = sys.argv[1:]
    for name in names:
        compare(name, backend)
        print("compiled", name, flush=True)
    if backend == "aot_eager":
        compare_masks(backend)
        print("compiled masks")
