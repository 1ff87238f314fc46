"""Next-token prediction on ids: no labels, because the text itself is the answer."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from headwise.data.tasks import Batch
from headwise.errors import BadInputError
from headwise.shapes import Int


@dataclass(frozen=True, eq=False)
class NextToken:
    """Windows of ids to draw from, and others to test on.

    Attributes:
        ids: All ids in one row, on the device that trains.
        trained: Places in ``ids`` where windows for training may start.
        held_out: Places where test windows start; no training window overlaps them.
        length: Tokens that the model sees; a window holds one more.

    Example:
        >>> task = NextToken.of_text(torch.arange(50) % 7, length=4)
        >>> batch = task.batch(task.noise(3, torch.Generator().manual_seed(0)))
        >>> batch.inputs[0].shape, bool((batch.targets[0][:, :-1] == batch.inputs[0][:, 1:]).all())
        (torch.Size([3, 4]), True)
    """

    ids: Int[Tensor, " n"]
    trained: Int[Tensor, " t"]
    held_out: Int[Tensor, " h"]
    length: int

    @classmethod
    def of_text(cls, ids: Int[Tensor, " n"], length: int, share: float = 0.1) -> NextToken:
        """One long text: the last ``share`` of it is for the test."""
        cut = len(ids) - max(length + 1, round(share * len(ids)))
        if cut <= length:
            raise BadInputError(
                f"expected at least {2 * length + 3} tokens for sequences of {length}, "
                f"got {len(ids)}",
                hint="pass a longer text or a smaller length",
            )
        trained = torch.arange(cut - length, device=ids.device)
        held_out = torch.arange(cut, len(ids) - length, length, device=ids.device)
        return cls(ids, trained, held_out, length)

    @classmethod
    def of_rows(cls, rows: Int[Tensor, "b n"], share: float = 0.1) -> NextToken:
        """Sequences that do not continue each other: the last ``share`` is for the test."""
        count, size = rows.shape
        if count < 2 or size < 2:
            raise BadInputError(
                f"expected at least 2 sequences of 2 tokens, got shape {tuple(rows.shape)}",
                hint="pass more sequences, or one long row of ids",
            )
        starts = size * torch.arange(count, device=rows.device)
        cut = count - max(1, round(share * count))
        return cls(rows.flatten(), starts[:cut], starts[cut:], size - 1)

    def noise(self, count: int, generator: torch.Generator) -> Tensor:
        """Which windows."""
        size = len(self.trained)
        return torch.randint(size, (count,), generator=generator, device=generator.device)

    def batch(self, noise: Tensor, step: Tensor | None = None) -> Batch:
        """The windows chosen."""
        return self._windows(self.trained[noise])

    def examine(self, count: int, generator: torch.Generator) -> Batch:
        """Up to ``count`` test windows, at equal distances."""
        size = len(self.held_out)
        places = torch.arange(min(count, size), device=self.ids.device) * size // min(count, size)
        return self._windows(self.held_out[places])

    def loss(self, outputs: Tensor, *targets: Tensor) -> Tensor:
        """Cross-entropy in nats per token."""
        return cross_entropy(outputs.flatten(0, -2), targets[0].flatten())

    def score(self, outputs: Tensor, *targets: Tensor) -> Tensor:
        """The share of tokens guessed right."""
        return (outputs.argmax(-1) == targets[0]).to(outputs.dtype).mean()

    def _windows(self, starts: Tensor) -> Batch:
        places = starts.unsqueeze(-1) + torch.arange(self.length + 1, device=self.ids.device)
        windows = self.ids[places]
        return Batch((windows[..., :-1],), (windows[..., 1:],))
