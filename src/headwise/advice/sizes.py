"""Sizes of a model beside its heads: those that are known, and those assumed for an export."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from headwise.config_fields import ModelSizes

#: What the geometry does not say, to be changed by whoever trains the model.
LAYERS, VOCABULARY, MLP_WIDTHS = 12, 32_000, 4

#: The fields of a configuration, under the names that families give them.
FIELDS = {
    "depth": ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers"),
    "mlp_width": ("intermediate_size", "n_inner", "ffn_dim", "d_ff", "encoder_ffn_dim"),
    "vocabulary": ("vocab_size", "n_vocab"),
    # Of a model that names two lengths its encoder is judged, so the source's comes first.
    "context": (
        "max_position_embeddings",
        "n_positions",
        "n_ctx",
        "max_seq_len",
        "seq_length",
        "max_source_positions",
        "max_target_positions",
    ),
}


@dataclass(frozen=True)
class KnownSizes:
    """The sizes that a config or the data tell; None is not known.

    >>> KnownSizes(depth=2).completed(width=64, length=16)
    ModelSizes(depth=2, mlp_width=256, vocabulary=32000, context=16)
    """

    depth: int | None = None
    mlp_width: int | None = None
    vocabulary: int | None = None
    context: int | None = None

    def completed(self, width: int, length: int) -> ModelSizes:
        """Every size: the known ones, and what is usual for the others."""
        return ModelSizes(
            self.depth or LAYERS,
            self.mlp_width or MLP_WIDTHS * width,
            self.vocabulary or VOCABULARY,
            self.context or length,
        )

    def assumed(self, width: int, length: int) -> str:
        """The sizes that are usual and not known, with their values; empty if all are known.

        >>> KnownSizes(depth=2, vocabulary=50, context=16).assumed(width=64, length=16)
        'intermediate_size 256'
        """
        known, whole = asdict(self), asdict(self.completed(width, length))
        missing = (name for name, value in known.items() if value is None)
        return ", ".join(f"{FIELDS[name][0]} {whole[name]}" for name in missing)


UNKNOWN = KnownSizes()


def told_sizes(*parts: dict[str, Any]) -> KnownSizes:
    """The sizes that a configuration tells, in the first of its parts that does.

    What is no whole number above zero, as a list with one for each layer, tells none.

    >>> told_sizes({"n_layer": 6, "n_inner": None, "vocab_size": 50257})
    KnownSizes(depth=6, mlp_width=None, vocabulary=50257, context=None)
    """
    found = {name: _told(parts, names) for name, names in FIELDS.items()}
    return KnownSizes(**found)


def _told(parts: tuple[dict[str, Any], ...], names: tuple[str, ...]) -> int | None:
    values = (part.get(name) for part in parts for name in names)
    whole = (v for v in values if isinstance(v, int) and not isinstance(v, bool) and v > 0)
    return next(whole, None)
