"""Losses known without training, drawn as lines: the trivial error and zero output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headwise.runs import Row

#: Targets are unit vectors, so zero output has a loss of 1; this near is not told from it.
ZERO_OUTPUT = 1e-3


def of_zero_output(losses: Iterable[float]) -> bool:
    """Return whether there are losses and all are those of zero output.

    >>> of_zero_output([1.0002, 1.0]), of_zero_output([0.9, 1.0]), of_zero_output([])
    (True, False, False)
    """
    losses = list(losses)
    return bool(losses) and all(abs(loss - 1) <= ZERO_OUTPUT for loss in losses)


#: Baselines no further apart than this share have one name, above the highest of them.
ALIKE = 0.03


def baselines(labelled: Mapping[str, list[Row]]) -> tuple[tuple[str, float], ...]:
    """Return the trivial baselines, once if curves share it; close ones share a name."""
    found = {label: rows[0]["trivial"] for label, rows in labelled.items() if rows}
    if len(set(found.values())) == 1:
        return (("trivial", next(iter(found.values()))),)
    lines: list[dict[str, float]] = []
    for label, value in sorted(found.items(), key=lambda pair: pair[1]):
        if lines and value <= (1 + ALIKE) * min(lines[-1].values()):
            lines[-1][label] = value
        else:
            lines.append({label: value})
    order = list(found)
    levels: list[tuple[str, float]] = []
    for line in lines:
        *others, highest = sorted(set(line.values()))
        levels += [("", value) for value in others]
        levels.append((f"trivial, {_joined(sorted(line, key=order.index))}", highest))
    return tuple(levels)


def _joined(labels: list[str]) -> str:
    """Join labels such as "N = 16" and "N = 64" to "N = 16, 64"."""
    return ", ".join([labels[0], *(label.rpartition(" ")[2] for label in labels[1:])])
