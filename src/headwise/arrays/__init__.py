"""Arrays from files: .npy, .npz, .pt, .pth, .safetensors; a bad file gets one clear line."""

from headwise.arrays.read import read_array

__all__ = ["read_array"]
