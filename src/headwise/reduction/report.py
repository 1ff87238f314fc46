"""Show a reduction: rows for a table, and a page with the curve and a map of ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwise.reduction.families import SHARED

if TYPE_CHECKING:
    from headwise.reduction.evaluation import Score
    from headwise.reduction.result import Reduction
    from headwise.report import Table

#: What a score is called for people.
SCORES = {"similarity": "rank correlation of similarities"}

#: How the keys of a decoder are cut.
KEYS = {
    "full": "not cut",
    "latent": "a vector of lower rank is cached for all key heads, and keys are restored from it",
    "rotated": "a vector of lower rank is cached for all key heads, after rotation",
    "pairs": "some rotation pairs are dropped",
}


def reduction_rows(found: Reduction) -> list[tuple[str, str, str]]:
    """Return what was before and after: score, bytes, parameters and times.

    Args:
        found: The reduction.

    Returns:
        Rows of name, before and after.

    Example:
        >>> from headwise.reduction import Cut, Reduction, Score
        >>> score, cut = Score("perplexity", 20.0, 0.5), Cut("latent", rank=8, value_rank=8)
        >>> found = Reduction(None, (cut,), cut, 0.1, score, score, (256, 128), (900, 700))
        >>> len(reduction_rows(found)) > 1
        True
    """
    rows = [(SCORES.get(found.before.name, found.before.name), *map(_score, _scores(found)))]
    if found.cached:
        rows.append(("KV bytes per token", *(f"{each:,}" for each in found.kv_bytes)))
    else:
        whole, means = (found.whole.rank, found.whole.value_rank), found.mean_ranks
        for name, before, after in zip(("query-key", "value"), whole, means, strict=True):
            rows.append((f"{name} rank, mean of layers", str(before), f"{after:.4g}"))
    if found.attention_parameters is not None:
        rows.append(("attention parameters", *(f"{n:,}" for n in found.attention_parameters)))
    rows.append(("parameters", *(f"{each:,}" for each in found.parameters)))
    if found.speed is not None:
        context = found.speed[0].context
        rows += [
            ("KV bytes per token, measured", *(f"{each.cache_bytes:,.0f}" for each in found.speed)),
            (f"prefill of {context:,} tokens, s", *(f"{each.prefill:.2f}" for each in found.speed)),
            (
                f"decode at {context:,} tokens, ms",
                *(f"{1000 * each.decode:.1f}" for each in found.speed),
            ),
        ]
    return [(name, before, after) for name, before, after in rows]


def rank_table(found: Reduction) -> Table:
    """Return the ranks of every layer; only a decoder's keys can be cut in several ways.

    Args:
        found: The reduction.

    Returns:
        One row for each layer.

    Example:
        >>> from headwise.reduction import Cut, Reduction, Score
        >>> score, cut = Score("perplexity", 20.0, 0.5), Cut("latent", rank=8, value_rank=8)
        >>> found = Reduction(None, (cut,), cut, 0.1, score, score, (256, 128), (900, 700))
        >>> rank_table(found).columns
        ('layer', 'keys', 'key rank, all heads (of 8)', 'value rank, each head (of 8)')
    """
    from headwise.report import Table

    value_rank = f"value rank, each head (of {found.whole.value_rank})"
    ranks = [(str(cut.rank), str(cut.value_rank)) for cut in found.cuts]
    if not found.cached:
        rows = tuple((str(layer), *each) for layer, each in enumerate(ranks))
        key_rank = f"query-key rank, each head (of {found.whole.rank})"
        return Table(("layer", key_rank, value_rank), rows)
    kinds = [cut.keys for cut in found.cuts]
    rows = tuple(
        (str(layer), kind, *each)
        for layer, (kind, each) in enumerate(zip(kinds, ranks, strict=True))
    )
    key_rank = f"key rank, {_heads_of_a_rank(found)} (of {found.whole.rank})"
    return Table(("layer", "keys", key_rank, value_rank), rows)


def _heads_of_a_rank(found: Reduction) -> str:
    """Say whose rank a key rank is: one vector may hold the keys of all heads."""
    return "all heads" if found.whole.keys in SHARED else "each head"


def reduction_words(found: Reduction) -> list[str]:
    """Return the answer in one sentence, then what its words mean.

    Args:
        found: The reduction.

    Returns:
        Sentences without line breaks; the first is the answer.

    Example:
        >>> from headwise.reduction import Cut, Reduction, Score
        >>> score, cut = Score("perplexity", 20.0, 0.5), Cut("latent", rank=8, value_rank=8)
        >>> found = Reduction(None, (cut,), cut, 0.1, score, score, (256, 128), (900, 700))
        >>> reduction_words(found)[0]
        'a model keeps 50% of its KV cache: perplexity 20 ± 0.5 before, 20 ± 0.5 after.'
    """
    before, after = map(_score, _scores(found))
    if found.cached:
        share = found.kv_bytes[1] / found.kv_bytes[0]
        lines = [
            f"{found.name} keeps {share:.0%} of its KV cache: perplexity {before} before, {after} "
            "after.",
            "Perplexity: exp of the mean loss on held-out text; lower is better.",
        ]
        kinds = sorted({cut.keys for cut in found.cuts})
        lines += [f"keys: {kind} = {KEYS[kind]}." for kind in kinds if kind in KEYS]
    else:
        rank, value_rank = found.mean_ranks
        lines = [
            f"{found.name} keeps query-key rank {rank:.4g} of {found.whole.rank} and value rank "
            f"{value_rank:.4g} of {found.whole.value_rank}: its embedding similarities have rank "
            f"correlation {after} with the original's.",
            "Rank correlation: Spearman's, over the cosine similarities of all pairs of held-out "
            "sequences; 1 is the same order as before.",
            "An encoder is judged by these similarities alone: test a task head on its own task.",
        ]
        if "For" in found.architecture:
            lines.append(f"The result is a {found.architecture} with the original's task head.")
    return lines


def _scores(found: Reduction) -> tuple[Score, Score]:
    return found.before, found.after


def _score(score: Score) -> str:
    """Say a score with its error; that of the original's similarities is known."""
    known = score.name == "similarity" and score.error == 0
    return f"{score.value:.4g}" if known else f"{score.value:.4g} ± {score.error:.2g}"


def reduction_page(found: Reduction) -> str:
    """Return an HTML page: the answer, the table, the curve and the ranks of every layer."""
    from headwise.report import Section, Table, inline_svg, page

    answer, *words = reduction_words(found)
    table = Table(("", "before", "after"), tuple(reduction_rows(found)))
    sections = [Section("Before and after", tuple(words), (), (table,))]
    if found.curve:
        sections.append(Section("Score against size", (), (inline_svg(score_figure(found)),)))
    sections.append(Section("Ranks", (), (_ranks(found),), (rank_table(found),)))
    return page(f"Reduction of {found.name}", answer, sections)


def score_figure(found: Reduction) -> Any:
    """Draw the score on held-out text against the share of keys and values that is left."""
    from headwise.report import Curve, Line, Panel, draw

    own = (found.kv_bytes[1] / found.kv_bytes[0], found.after)
    cut = [(point.kv_bytes / found.kv_bytes[0], point.score) for point in found.curve]
    lines = {"after the cut": [(1.0, found.before), *cut, *([] if found.healed else [own])]}
    if found.healed:
        lines[f"after {found.healed:,} steps of healing"] = [own]
    curves = []
    for name, points in lines.items():
        points.sort(key=lambda point: point[0])
        line = Line(tuple(100 * share for share, _ in points), tuple(s.value for _, s in points))
        curves.append(Curve(name, line, spread=tuple(score.error for _, score in points)))
    size = "KV bytes" if found.cached else "dimensions of keys and values"
    score = SCORES.get(found.before.name, found.before.name)
    panel = Panel("held-out text", f"{size}, % of the original", score, tuple(curves))
    return draw([panel])


def _ranks(found: Reduction) -> str:
    """Return a heat map: layers across, key and value ranks as shares of the original's."""
    from matplotlib.figure import Figure

    from headwise.report import inline_svg
    from headwise.report.figures import in_style

    with in_style():
        figure = Figure(figsize=(4 + 0.3 * len(found.cuts), 1.9))
        axes: Any = figure.add_subplot()
        rows = [[cut.rank for cut in found.cuts], [cut.value_rank for cut in found.cuts]]
        whole = (found.whole.rank, found.whole.value_rank)
        shares = [[each / most for each in row] for row, most in zip(rows, whole, strict=True)]
        image = axes.imshow(shares, aspect="auto", cmap="viridis", vmin=0, vmax=1)
        for row, ranks in enumerate(rows):
            for layer, rank in enumerate(ranks):
                colour = "black" if shares[row][layer] > 0.6 else "white"
                axes.text(layer, row, rank, ha="center", va="center", color=colour, fontsize=6)
        axes.set(xlabel="layer", yticks=[0, 1], xticks=range(len(found.cuts)))
        keys = "keys" if found.cached else "queries, keys"
        axes.set_yticklabels(
            [
                f"{keys}, {_heads_of_a_rank(found)}, of {whole[0]}",
                f"values, each head, of {whole[1]}",
            ]
        )
        axes.grid(visible=False)
        figure.colorbar(image)
        figure.suptitle("Ranks; colour: share of the original's rank")
        figure.tight_layout()
    return inline_svg(figure)
