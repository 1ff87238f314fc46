"""The masks that commands know by name."""

from enum import StrEnum


class Masks(StrEnum):
    """Which tokens a token attends to."""

    none = "none"
    causal = "causal"
