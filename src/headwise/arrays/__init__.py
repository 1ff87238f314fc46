"""Read arrays from .npy, .npz, .pt, .pth and .safetensors files."""

from headwise.arrays.plain import plain
from headwise.arrays.read import read_array

__all__ = ["plain", "read_array"]
