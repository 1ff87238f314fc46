"""What is measured of each head: the fields of a row, and what its columns are called."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from headwise.report.results import short_repr

#: The columns that have one number for each head.
Column = Literal[
    "coarse_rank",
    "output_rank",
    "rank",
    "effective_rank",
    "stable_rank",
    "energy_90",
    "hardmax_rank",
    "query_key_rank",
    "logit_rank",
    "logit_scale",
]

#: What each column is called in a figure.
TITLES: dict[str, str] = {
    "coarse_rank": "singular values ≥ 0.01",
    "output_rank": "rank of the output to 1%",
    "rank": "singular values ≥ 1e-8",
    "effective_rank": "effective rank",
    "stable_rank": "stable rank",
    "energy_90": "rank of 90% of the energy",
    "hardmax_rank": "hardmax rank",
    "query_key_rank": "query-key rank, logits to 0.1",
    "logit_rank": "rank of the logits",
    "logit_scale": "standard deviation of the logits",
}

#: Which field of a row a column cannot exceed.
LIMITS: dict[str, str] = {
    "coarse_rank": "tokens",
    "rank": "tokens",
    "hardmax_rank": "tokens",
    "output_rank": "value_dim",
    "query_key_rank": "head_dim",
    "logit_rank": "head_dim",
}

#: What the columns of the tables say, in the terminal and on the page.
LEGEND = (
    "rank 0.01, rank 1e-8: singular values of at least that; output: rank of A·V to 1%;",
    "eff. rank: exp of the entropy of the singular values; hardmax: keys that some query",
    "scores highest; law: the same for random queries and keys; query-key: rank of the",
    "logits to 0.1 in root mean square; logit scale: standard deviation of the logits.",
)

#: What the page shows beside.
LEGEND_OF_THE_REST = (
    "stable rank: sum of the squared singular values, over the largest squared; energy 90%: "
    "singular values that hold 90% of that sum; logit rank: rank of the logits to the accuracy of "
    "the dtype; W_QᵀW_K: rank of that product, empty where positions make it more than one matrix. "
    "An empty cell is a number that is not known."
)


@dataclass(frozen=True)
class HeadRow:
    """One head of one layer; every number is a mean over the sequences.

    None means that the number is not known: values or queries were not read, or the sequence is
    so long that the matrix is not formed.

    Attributes:
        layer: Name of the layer.
        head: Index of the head.
        coarse_rank: Number of singular values of at least 0.01. Dropping the others changes the
            output A·V by at most 1 % of ‖V‖₂.
        output_rank: Least k for which a matrix of rank k is within 1 % of A·V, in Frobenius norm.
        rank_low: Certified lower end of the number of singular values of at least 1e-8, or of at
            least the dtype floor if only attention maps could be read.
        rank_high: Certified upper end of that number.
        effective_rank: exp of the entropy of the normalised singular values.
        effective_rank_error: Standard error of ``effective_rank``; zero if it was computed from
            all singular values.
        stable_rank: ‖A‖_F² / ‖A‖₂².
        energy_90: How many leading singular values hold 90 % of ‖A‖_F².
        hardmax_rank: Number of different keys that some query scores highest.
        law: The hardmax rank that random Gaussian queries and keys of this size have on average.
        logit_rank: Numerical rank of the logits q·k, to the accuracy of the model's dtype.
        query_key_rank: Least r for which logits of rank r are within 0.1 of the logits, in root
            mean square and up to a constant per row, which softmax ignores. The KL divergence
            between rows of both attention matrices is then about 0.005 nats.
        form_rank: Numerical rank of W_QᵀW_K; None where positions make it more than one matrix.
        logit_scale: Standard deviation of the logits that the mask leaves.
        tokens: Number of tokens without padding.
        head_dim: Dimension of queries and keys.
        value_dim: Dimension of values.
        mask: Name of the mask without padding.
        dtype: The dtype in which the model computed.
        sequences: Number of sequences.
        excluded: Number of query rows that attend to nothing and were left out.
        method: "dense", or "matrix-free" for long sequences.
    """

    layer: str
    head: int
    coarse_rank: float | None
    output_rank: float | None
    rank_low: float | None
    rank_high: float | None
    effective_rank: float | None
    effective_rank_error: float | None
    stable_rank: float | None

    __repr__ = short_repr
    energy_90: float | None
    hardmax_rank: float | None
    law: float | None
    logit_rank: float | None
    query_key_rank: float | None
    form_rank: int | None
    logit_scale: float | None
    tokens: float
    head_dim: int | None
    value_dim: int | None
    mask: str
    dtype: str
    sequences: int
    excluded: int
    method: str

    @property
    def rank(self) -> float | None:
        """The middle of the certified interval."""
        if self.rank_low is None or self.rank_high is None:
            return None
        return (self.rank_low + self.rank_high) / 2


def mean_of(rows: Iterable[HeadRow], column: str) -> float | None:
    """Return the mean of a column over the rows in which it is known.

    Args:
        rows: The rows.
        column: A field of ``HeadRow``.

    Returns:
        The mean, or None if no row has the number.

    Example:
        >>> mean_of([], "stable_rank") is None
        True
    """
    known = [value for row in rows if (value := getattr(row, column)) is not None]
    return sum(known) / len(known) if known else None
