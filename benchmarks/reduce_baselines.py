"""Other ways to cut a model, reimplemented for comparison at equal KV bytes.

| name | keys | values | ranks |
|---|---|---|---|
| svd | SVD of each head's W_K | SVD of each head's W_V | one for all |
| weighted_svd | principal components of each head's keys | of its values | one for all |
| magnitude | rotation pairs by ‖w_q‖‖w_k‖ | dimensions by ‖w_v‖‖w_o‖ | one for all |
| eigen | components of keys and queries together | of values | one energy threshold |
| thin_keys | SVD of W_K, all heads together | kept | one for all |
| one_rank | ours, without a plan | ours | one for all |
| ours | best_factors by gradients | best_factors by gradients | planned |
| ours_refit | the same, then output maps fitted again | | planned |
| ours_pairs | rotation pairs by gradients | best_factors | planned |
"""

from __future__ import annotations

import torch

from headwise.reduction.factors import Factors, best_factors
from headwise.reduction.planning import Budget, Cut, LayerCurves, plan

METHODS = (
    "svd",
    "weighted_svd",
    "magnitude",
    "eigen",
    "thin_keys",
    "one_rank",
    "ours",
    "ours_refit",
    "ours_pairs",
)


def planned(method, parts, moments, queries, share, itemsize=4, step=8):
    """Curves and cuts of a method at a share of the KV bytes; None where it has no such cut."""
    kind = "pairs" if method in ("magnitude", "ours_pairs") else "latent"
    curves = [LayerCurves(p, m, kind) for p, m in zip(parts, moments, strict=True)]
    if method in ("ours", "ours_refit", "ours_pairs"):
        return curves, plan(
            curves, Budget(kv_bytes=f"{100 * share}%"), itemsize=itemsize, step=step
        )
    for index, each in enumerate(curves):
        replace_factors(method, each, queries[index])
    d, heads = parts[0].head_dim, parts[0].kv_heads
    if method == "eigen":
        return curves, by_threshold(curves, share)
    if method == "thin_keys":
        rank = round((2 * share - 1) * d * heads)
        return (curves, [Cut("latent", rank, d)] * len(curves)) if rank >= heads else None
    rank = 2 * round(share * d / 2)
    return curves, [Cut(kind, rank if kind == "pairs" else heads * rank, rank)] * len(curves)


def replace_factors(method, curves, queries):
    """Put the factors of a method in place of ours."""
    p, moments = curves.parts, curves.moments
    heads, d = p.kv_heads, p.head_dim
    eye = torch.eye(d, dtype=torch.float64, device=p.key.weight.device)

    def blocks(matrix):
        return [matrix[h * d : (h + 1) * d, h * d : (h + 1) * d] for h in range(heads)]

    own = curves.__dict__
    if method == "magnitude":
        own["pair_orders"] = pairs_by_weight(p)
        own["value_factors"] = values_by_weight(p)
        return
    if method == "one_rank":
        metric = blocks(moments.keys.metric())
        own["key_factors"] = [
            interleaved(
                [
                    best_factors(c, g)
                    for c, g in zip(blocks(moments.keys.moment(False)), metric, strict=True)
                ]
            )
        ]
        return
    key, value = (each.weight.detach().double() for each in (p.key, p.value))
    if method == "thin_keys":
        whole = torch.eye(heads * d, dtype=torch.float64, device=key.device)
        own["key_factors"] = [best_factors(key @ key.T, whole)]
        return
    of_keys, of_values = blocks(key @ key.T), blocks(value @ value.T)
    if method in ("weighted_svd", "eigen"):
        of_keys, of_values = (
            blocks(moments.keys.moment(False)),
            blocks(moments.values.moment(False)),
        )
    if method == "eigen":
        group = p.heads // heads
        asked = queries.unflatten(0, (heads, group)).sum(1)
        # Both have unit weight in the basis, as keys and queries stacked.
        of_keys = [c + q for c, q in zip(of_keys, asked, strict=True)]
        own["key_factors"] = [interleaved([orthogonal(c) for c in of_keys])]
        own["value_factors"] = [orthogonal(c) for c in of_values]
        return
    own["key_factors"] = [interleaved([best_factors(c, eye) for c in of_keys])]
    own["value_factors"] = [best_factors(c, eye) for c in of_values]


def orthogonal(moment: torch.Tensor) -> Factors:
    """Project on the leading eigenvectors; losses are shares of the energy."""
    size, vectors = torch.linalg.eigh(moment)
    size, vectors = size.flip(0).clamp_min(0), vectors.flip(1)
    rest = torch.cat([size.flip(0).cumsum(0).flip(0), size.new_zeros(1)]) / size.sum()
    return Factors(rest, vectors.T, vectors)


def interleaved(heads: list[Factors]) -> Factors:
    """Factors of all heads together, whose rank k·r keeps rank r of each of k heads."""
    d, count = len(heads[0].compress), len(heads)
    expand = torch.block_diag(*(each.expand for each in heads))
    compress = torch.block_diag(*(each.compress for each in heads))
    order = torch.arange(count * d, device=expand.device).reshape(count, d).T.flatten()
    total = sum(each.losses for each in heads)
    losses = torch.cat([total[:-1].repeat_interleave(count), total[-1:]])
    return Factors(losses, compress[order], expand[:, order])


def pairs_by_weight(p):
    """Order rotation pairs by the norms of the weights that make them."""
    d, group = p.head_dim, p.heads // p.kv_heads
    query = p.query.weight.detach().double().unflatten(0, (p.kv_heads, group, 2, d // 2))
    key = p.key.weight.detach().double().unflatten(0, (p.kv_heads, 2, d // 2))
    size = query.square().sum((1, 2, 4)).sqrt() * key.square().sum((1, 3)).sqrt()
    return [(each.argsort().tolist(), [0.0] * (d // 2 + 1)) for each in size]


def values_by_weight(p):
    """Keep the dimensions of values with the largest weights into and out of them."""
    d, group = p.head_dim, p.heads // p.kv_heads
    into = p.value.weight.detach().double().unflatten(0, (p.kv_heads, d)).norm(dim=-1)
    out = p.output.weight.detach().double().T.unflatten(0, (p.kv_heads, group, d))
    size = into * out.square().sum((1, 3)).sqrt()
    eye = torch.eye(d, dtype=torch.float64, device=into.device)
    made = []
    for each in size:
        order = each.argsort(descending=True)
        made.append(Factors(torch.zeros(d + 1, dtype=torch.float64), eye[order], eye[order].T))
    return made


def by_threshold(curves, share):
    """One energy threshold for all layers, as Eigen Attention sets it, that meets the bytes."""

    def cuts(threshold):
        found = []
        for each in curves:
            heads = each.parts.kv_heads
            key = max(1, int((each.key_factors[0].losses[::heads] > heads * threshold).sum()))
            mean = torch.stack([f.losses for f in each.value_factors]).mean(0)
            found.append(Cut("latent", heads * key, max(1, int((mean > threshold).sum()))))
        return found

    def size(found):
        return sum(cut.rank + curves[0].parts.kv_heads * cut.value_rank for cut in found)

    whole = len(curves) * 2 * curves[0].parts.kv_heads * curves[0].parts.head_dim
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if size(cuts(middle)) <= share * whole else (middle, high)
    return cuts(high)
