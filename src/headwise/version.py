"""The version of headwise."""

__all__ = ["__version__"]

__version__ = "0.1.0"
