"""Scan a model: the ranks of every attention head on a batch of inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from headwise.attention.view import AttentionMaps, AttentionView
from headwise.errors import BadInputError, needs_extra
from headwise.probing.reading import Read, capture
from headwise.spectra import measure
from headwise.spectra.ranks import numerical_rank
from headwise.threads import one_thread

#: A trained head is nearly always full at 1e-8. Dropping every singular value below 1e-2 changes
#: the output A·V by at most 1 % of ‖V‖₂, about what bfloat16 (2⁻⁸) rounds away.
COARSE = 1e-2

#: The columns that have one number for each head.
Column = Literal["rank", "coarse_rank", "effective_rank", "stable_rank", "energy_90", "logit_scale"]


@dataclass(frozen=True)
class HeadRow:
    """One head of one layer; every number is a mean over the sequences.

    Attributes:
        layer: Name of the layer.
        head: Index of the head.
        rank_low: Certified lower end of the number of singular values of at least 1e-8, or of at
            least the dtype floor if only attention maps could be read.
        rank_high: Certified upper end of that number.
        coarse_rank: Number of singular values of at least 1e-2.
        effective_rank: exp of the entropy of the normalised singular values.
        stable_rank: ‖A‖_F² / ‖A‖₂².
        energy_90: How many leading singular values hold 90 % of ‖A‖_F².
        logit_scale: Standard deviation of the logits; None for attention maps.
        tokens: Number of tokens without padding.
        head_dim: Dimension of queries and keys; None for attention maps.
        mask: Name of the mask without padding.
        dtype: The dtype in which the model computed.
        sequences: Number of sequences.
    """

    layer: str
    head: int
    rank_low: float
    rank_high: float
    coarse_rank: float
    effective_rank: float
    stable_rank: float
    energy_90: float
    logit_scale: float | None
    tokens: float
    head_dim: int | None
    mask: str
    dtype: str
    sequences: int

    @property
    def rank(self) -> float:
        """The middle of the certified interval."""
        return (self.rank_low + self.rank_high) / 2


@dataclass(frozen=True, repr=False)
class Scan:
    """The rows of a scan, one for each layer and head, in the order of the forward pass.

    Args:
        rows: The rows.

    Example:
        >>> from headwise.attention import HeadGeometry, mha
        >>> found = scan(mha(HeadGeometry.standard(8, heads=2)), torch.zeros(1, 6, 8))
        >>> found.table("rank")
        [[1.0, 1.0]]
    """

    rows: tuple[HeadRow, ...]

    @property
    def layers(self) -> list[str]:
        """The names of the layers."""
        return list(dict.fromkeys(row.layer for row in self.rows))

    def __repr__(self) -> str:
        share = sum(row.coarse_rank / row.tokens for row in self.rows) / max(len(self.rows), 1)
        return (
            f"Scan({len(self.layers)} layers, {len(self.rows)} heads, "
            f"mean rank at 1e-2: {share:.2f} of the tokens)"
        )

    def to_frame(self) -> Any:
        """Return the rows as a pandas DataFrame.

        Returns:
            A frame with the fields of ``HeadRow`` as columns.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise needs_extra("pandas", "frames") from None
        return pandas.DataFrame(
            [asdict(row) for row in self.rows], columns=[field.name for field in fields(HeadRow)]
        )

    def table(self, column: Column = "coarse_rank") -> list[list[float]]:
        """Return one column as layers × heads; NaN where a layer has fewer heads.

        Args:
            column: Which number.

        Returns:
            One list of heads for each layer.
        """
        heads = 1 + max((row.head for row in self.rows), default=-1)
        found = {layer: [float("nan")] * heads for layer in self.layers}
        for row in self.rows:
            value = getattr(row, column)
            found[row.layer][row.head] = float("nan") if value is None else value
        return list(found.values())

    def plot(self, column: Column = "coarse_rank", file: str | Path | None = None) -> Any:
        """Draw one column as a heat map of layers × heads.

        Args:
            column: Which number.
            file: Where to save the figure, if anywhere.

        Returns:
            The matplotlib figure.
        """
        from matplotlib.figure import Figure

        table = self.table(column)
        figure = Figure(figsize=(2 + 0.4 * len(table[0]), 1.5 + 0.3 * len(table)))
        axes = figure.add_subplot()
        image = axes.imshow(table, aspect="auto", cmap="viridis")
        axes.set(xlabel="head", yticks=range(len(table)), title=column.replace("_", " "))
        axes.set_yticklabels(self.layers, fontsize=7)
        figure.colorbar(image)
        figure.tight_layout()
        if file is not None:
            figure.savefig(file)
        return figure


@torch.no_grad()
def scan(model: nn.Module, batch: Tensor | tuple[Any, ...] | Mapping[str, Any]) -> Scan:
    """Measure the rank of every attention head of a model on a batch.

    The model is called once in evaluation mode, and its mode is restored. Each matrix is computed
    in float64 from queries and keys, one head at a time, without padding.

    Args:
        model: Any model that ``capture`` reads.
        batch: What the model is called with: a tensor, a tuple of arguments, or a mapping of
            named arguments such as the output of a tokenizer.

    Returns:
        The rows, one for each layer and head.

    Raises:
        BadInputError: No attention layer can be read, or queries and keys contain NaN.

    Example:
        >>> from headwise.attention import HeadGeometry, mha
        >>> scan(mha(HeadGeometry.standard(8, heads=2)), torch.randn(1, 6, 8))
        Scan(1 layers, 2 heads, mean rank at 1e-2: ... of the tokens)
    """
    rows: list[HeadRow] = []

    def receive(name: str, view: Read) -> None:
        _refuse_not_finite(name, view)
        rows.extend(_rows(name, view))

    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with capture(model, receive):
            if isinstance(batch, Mapping):
                model(**batch)
            else:
                model(*(batch if isinstance(batch, tuple) else (batch,)))
    finally:
        for module, training in modes:
            module.training = training
    return Scan(tuple(rows))


def _rows(name: str, view: Read) -> list[HeadRow]:
    parts = list(view.unpadded())
    return [_row(name, head, parts) for head in range(view.shape[1])]


def _row(name: str, head: int, parts: list[Any]) -> HeadRow:
    """Measure one head on every sequence, one matrix at a time, and take the means."""
    found = [
        _numbers(part.head(sequence, head)) for part in parts for sequence in range(part.shape[0])
    ]
    means = {key: _mean([each[key] for each in found]) for key in found[0]}
    part, scale = parts[0], means.pop("logit_scale")
    read = isinstance(part, AttentionView)
    return HeadRow(
        layer=name,
        head=head,
        **means,
        logit_scale=scale if read else None,
        head_dim=part.queries.shape[-1] if read else None,
        mask=part.mask.name if read else "in the maps",
        dtype=str(part.dtype).removeprefix("torch."),
        sequences=len(found),
    )


def _numbers(view: Any) -> dict[str, float]:
    source = view.source()
    with one_thread():  # one head's matrix is too small to share
        found = measure(source, tolerance=view.tolerance)
    delta = found.rank.delta.reshape(found.epsilon.shape).to(found.epsilon)
    coarse = numerical_rank(found.spectrum, torch.full_like(found.epsilon, COARSE), delta)
    scale = 0.0
    if isinstance(view, AttentionView):
        values = source if isinstance(source, Tensor) else source.values
        values = values.log() if isinstance(source, Tensor) else values
        seen = values[values.isfinite()]
        scale = float(seen.std()) if seen.numel() > 1 else 0.0
    return {
        "rank_low": float(found.rank.low.sum()),
        "rank_high": float(found.rank.high.sum()),
        "coarse_rank": float((coarse.low + coarse.high).sum()) / 2,
        "effective_rank": float(found.effective_rank.sum()),
        "stable_rank": float(found.stable_rank.sum()),
        "energy_90": float(found.energy_rank(0.9).sum()),
        "logit_scale": scale,
        "tokens": float(min(view.shape[-2:])),
    }


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _refuse_not_finite(name: str, view: Read) -> None:
    read = (view.maps,) if isinstance(view, AttentionMaps) else (view.queries, view.keys)
    if not all(bool(tensor.isfinite().all()) for tensor in read):
        raise BadInputError(
            f"expected finite activations, got NaN or infinity in layer {name!r}",
            hint="check the inputs and the layers before it",
        )


def scan_checkpoint(folder: str | Path, text: str, *, length: int = 512) -> Scan:
    """Load a Hugging Face checkpoint from a folder and scan it on a text.

    Args:
        folder: A folder with config.json, weights and a tokenizer.
        text: The text; it is cut to ``length`` tokens.
        length: The largest number of tokens.

    Returns:
        The rows, one for each layer and head.

    Raises:
        BadInputError: The folder has no config or tokenizer, or the text has no tokens.
        MissingExtraError: transformers is not installed.
    """
    folder = Path(folder)
    if not (folder / "config.json").is_file():
        raise BadInputError(
            f"expected a folder with a config.json, got {str(folder)!r}",
            hint="pass the folder that save_pretrained wrote",
        )
    try:
        from transformers import AutoModel, AutoTokenizer
    except ImportError:
        raise needs_extra("transformers", "hub") from None
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model = AutoModel.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError) as error:
        raise BadInputError(
            f"expected a checkpoint with a tokenizer in {str(folder)!r}: "
            f"{str(error).splitlines()[0]}",
            hint="save the model and its tokenizer into one folder",
        ) from None
    batch = tokenizer(text, return_tensors="pt", truncation=True, max_length=length)
    if not text.strip() or batch["input_ids"].shape[-1] < 2:
        raise BadInputError(
            "expected a text of at least two tokens, got fewer", hint="pass a longer text"
        )
    return scan(model, dict(batch))
