"""Read arrays from .npy, .npz, .pt, .pth and .safetensors files."""

from headwise.arrays.read import read_array

__all__ = ["read_array"]
