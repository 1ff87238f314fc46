"""Keep what a reduction cost and saved in the result store, where the page shows it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any, Literal

from headwise.errors import BadInputError
from headwise.reduction.result import Reduction
from headwise.runs import Answer, Row, Spec, Store
from headwise.runs.attempt import stamp


class ReducedModel(Spec, frozen=True):
    """One reduction: the model, the text by its contents, and what was asked for."""

    kind: Literal["reduced_model"] = "reduced_model"
    revision: Literal[1] = 1
    model: str
    text: str
    asked: tuple[tuple[str, str], ...]
    seed: int

    def ask(self) -> Row:
        """Refuse: a reduction needs the model."""
        raise BadInputError("expected a reduction, got its name", hint="call headwise.reduce")


def keep_reduction(
    place: str | os.PathLike[str],
    found: Reduction,
    *,
    model: str,
    text: str,
    asked: Mapping[str, Any],
    seed: int,
    command: str = "",
) -> None:
    """Store a reduction: scores and sizes before and after, and the ranks of every layer.

    Args:
        place: The store: a path or a URL.
        found: The reduction.
        model: What a person calls the model.
        text: The text that it was calibrated and judged on.
        asked: What was asked for, by name; None is left out.
        seed: The seed of the random draws.
        command: The command to record with it.

    Raises:
        StoreError: The store cannot be used.

    Example:
        >>> import tempfile
        >>> from headwise.reduction import Cut, Reduction, Score
        >>> score, cut = Score("perplexity", 20.0, 0.5), Cut("latent", rank=8, value_rank=8)
        >>> found = Reduction(None, (cut,), cut, 0.1, score, score, (256, 128), (900, 700))
        >>> place = os.path.join(tempfile.mkdtemp(), "results.db")
        >>> keep_reduction(place, found, model="m", text="words", asked={"rank": 8}, seed=0)
    """
    digest = hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
    given = tuple((name, str(value)) for name, value in asked.items() if value is not None)
    spec = ReducedModel(model=model, text=digest, asked=given, seed=seed)
    with Store.open(place) as store:
        store.put(spec, Answer(spec.key, (found.as_json(),), stamp(spec, "cpu", 0.0, command)))
