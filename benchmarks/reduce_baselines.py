"""Other ways to cut a model, reimplemented for comparison at equal KV bytes.

| name | keys | values | ranks |
|---|---|---|---|
| svd | SVD of each head's W_K | SVD of each head's W_V | one for all |
| weighted_svd | principal components of each head's keys | of its values | one for all |
| magnitude | rotation pairs or dimensions by ‖w_q‖‖w_k‖ | dimensions by ‖w_v‖‖w_o‖ | one for all |
| eigen | components of keys and queries together | of values | one energy threshold |
| thin_keys | SVD of W_K, all heads together | kept | one for all |
| one_rank | ours, without a plan | ours | one for all |
| ours | best_factors by gradients | best_factors by gradients | planned |
| ours_weighted | the same, where tokens count with their squared gradients | | planned |
| ours_rotated | the same after the rotation | best_factors by gradients | planned |
| ours_pairs | rotation pairs by gradients | best_factors | planned |

Eigen Attention sets its threshold on the energy of keys and queries stacked, and of values. Thin
keys cuts keys alone, so it exists above half of the bytes only.
"""

from __future__ import annotations

import torch

from headwise.reduction.budgets import Budget
from headwise.reduction.factors import Factors, best_factors
from headwise.reduction.planning import Cut, LayerCurves, plan

METHODS = (
    "svd",
    "weighted_svd",
    "magnitude",
    "eigen",
    "thin_keys",
    "one_rank",
    "ours",
    "ours_weighted",
    "ours_rotated",
    "ours_pairs",
)


def curves_of(method, parts, moments, queries):
    """The factors of every layer, as a method makes them."""
    rotary = parts[0].rope_theta is not None
    kinds = {"magnitude": "pairs", "ours_pairs": "pairs", "ours_rotated": "rotated"}
    kind = kinds.get(method, "latent") if rotary else "factors"
    weighted = method == "ours_weighted"
    curves = [LayerCurves(p, m, kind, weighted) for p, m in zip(parts, moments, strict=True)]
    if not method.startswith("ours"):
        for index, each in enumerate(curves):
            replace_factors(method, each, queries[index])
    return curves


def cuts_of(method, curves, share, itemsize=4, step=8):
    """The ranks of a method at a share of the KV bytes; None where it has no such cut."""
    if method.startswith("ours"):
        asked = Budget(kv_bytes=f"{100 * share}%")
        return plan(curves, asked, itemsize=itemsize, step=step)
    if method == "eigen":
        return by_threshold(curves, share)
    kind, d = curves[0].kind, curves[0].parts.head_dim
    heads = curves[0].parts.kv_heads if kind == "latent" else 1
    if method == "thin_keys":
        rank = round((2 * share - 1) * d * heads)
        return [Cut(kind, rank, d)] * len(curves) if rank >= heads else None
    rank = 2 * round(share * d / 2)
    return [Cut(kind, heads * rank, rank)] * len(curves)


def replace_factors(method, curves, queries):
    """Put the factors of a method in place of ours."""
    p, own = curves.parts, curves.__dict__
    heads, d = p.kv_heads, p.head_dim
    eye = torch.eye(d, dtype=torch.float64)

    def blocks(matrix):
        return [matrix[h * d : (h + 1) * d, h * d : (h + 1) * d] for h in range(heads)]

    def put(of_keys, of_values):
        together = curves.kind == "latent"
        own["key_factors"] = [interleaved(of_keys)] if together else of_keys
        own["value_factors"] = of_values

    key, value = (each.weight.detach().double().cpu() for each in (p.key, p.value))
    seen = [blocks(each.moment()) for each in (curves.moments.keys, curves.moments.values)]
    if method == "magnitude":
        own["pair_orders"] = pairs_by_weight(p)
        put(dimensions_by_weight(p, "keys"), dimensions_by_weight(p, "values"))
    elif method == "one_rank":
        metric = blocks(curves.moments.keys.metric())
        found = [best_factors(c, g) for c, g in zip(seen[0], metric, strict=True)]
        put(found, curves.value_factors)
    elif method == "thin_keys" and curves.kind == "latent":
        whole = torch.eye(heads * d, dtype=torch.float64)
        own["key_factors"] = [best_factors(key @ key.T, whole)]
    elif method == "eigen":
        asked = queries.cpu().unflatten(0, (heads, p.heads // heads)).sum(1)
        # Both have unit weight in the basis, as keys and queries stacked.
        put(
            [orthogonal(c + q) for c, q in zip(seen[0], asked, strict=True)],
            [orthogonal(c) for c in seen[1]],
        )
    else:
        if method in ("svd", "thin_keys"):
            seen = [blocks(key @ key.T), blocks(value @ value.T)]
        put(*([best_factors(c, eye) for c in each] for each in seen))


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
    query = p.query.weight.detach().double().cpu().unflatten(0, (p.kv_heads, group, 2, d // 2))
    key = p.key.weight.detach().double().cpu().unflatten(0, (p.kv_heads, 2, d // 2))
    size = query.square().sum((1, 2, 4)).sqrt() * key.square().sum((1, 3)).sqrt()
    return [(each.argsort().tolist(), [0.0] * (d // 2 + 1)) for each in size]


def dimensions_by_weight(p, kind):
    """Keep the dimensions with the largest weights into and out of them, head by head."""
    d, group = p.head_dim, p.heads // p.kv_heads
    into, out = (p.key.weight, p.query.weight) if kind == "keys" else (p.value.weight, None)
    out = p.output.weight.T if out is None else out
    into = into.detach().double().cpu().unflatten(0, (p.kv_heads, d)).norm(dim=-1)
    out = out.detach().double().cpu().unflatten(0, (p.kv_heads, group, d))
    size = into * out.square().sum((1, 3)).sqrt()
    eye = torch.eye(d, dtype=torch.float64)
    made = []
    for each in size:
        order = each.argsort(descending=True)
        made.append(Factors(torch.zeros(d + 1, dtype=torch.float64), eye[order], eye[order].T))
    return made


def by_threshold(curves, share):
    """One energy threshold for all layers, as Eigen Attention sets it, that meets the bytes."""
    p = curves[0].parts
    heads = p.kv_heads if curves[0].kind == "latent" else 1

    def cuts(threshold):
        found = []
        for each in curves:
            keys = sum(f.losses for f in each.key_factors)[::heads] / p.kv_heads
            values = sum(f.losses for f in each.value_factors) / p.kv_heads
            ranks = [max(1, int((losses > threshold).sum())) for losses in (keys, values)]
            found.append(Cut(each.kind, heads * ranks[0], ranks[1]))
        return found

    def size(found):
        return sum(cut.rank // heads + cut.value_rank for cut in found)

    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        fits = size(cuts(middle)) <= share * len(curves) * 2 * p.head_dim
        low, high = (low, middle) if fits else (middle, high)
    return cuts(high)
