"""Every result has a short repr, JSON, a frame of its rows and a figure of its curves."""

import json
from dataclasses import fields, is_dataclass
from functools import cache
from inspect import getsource, isclass

import pandas
import pytest
import torch
from matplotlib.figure import Figure

import headwise
from architecture.test_docstrings import PUBLIC
from headwise import HeadGeometry, RankMonitor, mha
from headwise.attention import compare_ranks
from headwise.data import FarthestNeighbour
from headwise.models import NeighbourShape
from headwise.papers.exhibit import Presentation
from headwise.probing import summary, views
from headwise.reduction import Reduction, Score
from headwise.reduction.planning import Cut
from headwise.runs import Records
from headwise.spectra import count
from headwise.training import Settings, train
from headwise.trials import Entrant, Trial

MATRICES = torch.eye(5, dtype=torch.float64).repeat(2, 3, 1, 1)
TOKENS = torch.randn(2, 6, 8, generator=torch.Generator().manual_seed(0))
LONGEST = 300


def _layer():
    return mha(HeadGeometry.standard(8, heads=2))


def _monitor():
    monitor = RankMonitor(TOKENS, every=1)
    monitor(_layer())
    return monitor


def _trial():
    one = Entrant(HeadGeometry.free(8, 1, 8), 10, 0.2, 0.1, 0.01, 1.0, 256, 32, True)
    return Trial((one,), "loss", 20, (10,), (((0.2,),),), True)


def _reduction():
    score, cut = Score("perplexity", 20.0, 0.5), Cut("latent", rank=8, value_rank=8)
    sizes = {"kv_bytes": (256, 128), "parameters": (900, 700)}
    return Reduction(torch.nn.Linear(9, 9), (cut,) * 40, cut, 0.1, score, score, **sizes)


def _trained():
    shape = NeighbourShape(width=4, tokens=3, rank=4, mlp_width=8)
    return train({"full": shape.build}, FarthestNeighbour(4, 3), Settings(steps=2, batch=8))


#: What the public functions and classes return.
RESULTS = {
    "advise": lambda: headwise.advise("digits"),
    "bound": lambda: headwise.bound(64, 8, heads=8),
    "compare_ranks": lambda: compare_ranks(tokens=40, head_dim=5),
    "count": lambda: count(MATRICES),
    "law": lambda: headwise.law(128),
    "measure": lambda: headwise.measure(MATRICES),
    "monitor": _monitor,
    "rank": lambda: headwise.rank(MATRICES),
    "reduce": _reduction,
    "reproduce": lambda: headwise.reproduce("rank2026/table_1", from_records=True),
    "scan": lambda: headwise.scan(_layer(), TOKENS),
    "train": _trained,
    "trial": _trial,
}

#: Trained holds the rows that runs store as JSON, and functions.
WITHOUT_JSON = {"train"}


@cache
def result(name):
    return RESULTS[name]()


def parts_of(value, seen):
    """Every result inside a result: fields, and the items of tuples and mappings."""
    if id(value) in seen or isinstance(value, (str, torch.Tensor, torch.nn.Module)):
        return
    seen[id(value)] = value
    if isinstance(value, (tuple, list)):
        inner = value
    elif isinstance(value, dict):
        inner = value.values()
    elif is_dataclass(value) and not isclass(value):
        inner = [getattr(value, each.name) for each in fields(value)]
        yield value
    else:
        inner = ()
    for part in inner:
        yield from parts_of(part, seen)


@pytest.mark.parametrize("name", RESULTS)
def test_the_repr_of_a_result_and_of_its_parts_is_short(name):
    found = result(name)
    assert len(repr(found)) < LONGEST
    seen = {}
    inside = [part for part in parts_of(found, seen) if is_ours(part)]
    long = {type(part).__qualname__: len(repr(part)) for part in inside}
    assert not {kind: size for kind, size in long.items() if size >= LONGEST}


def is_ours(part):
    """Results only: panels and tables are what documents are made of."""
    home = type(part).__module__
    return home.startswith("headwise") and not home.startswith("headwise.report")


@pytest.mark.parametrize(
    "made",
    [
        lambda: next(iter(views(_layer(), TOKENS).values())),
        lambda: next(iter(views(_layer(), TOKENS).values())).operator(),
        lambda: summary(result("scan")),
        lambda: headwise.expected_rank(64, 8),
        lambda: result("measure").spectrum,
        lambda: Records([]),
    ],
)
def test_the_repr_of_what_else_functions_return_is_short(made):
    assert len(repr(made())) < LONGEST


def test_public_records_with_tensors_do_not_print_them():
    """Masks, tasks and operators made of functions are arguments, not results."""
    arguments = {"Additive", "Allowed", "EpochTask", "FunctionalOperator", "NextToken", "Padding"}
    long = [
        name
        for name, kind in PUBLIC.items()
        if is_dataclass(kind)
        and any("Tensor" in str(each.type) for each in fields(kind))
        and "__repr__" not in getsource(kind)
    ]
    assert {name.rpartition(".")[2] for name in long} == arguments


@pytest.mark.parametrize("name", sorted(RESULTS.keys() - WITHOUT_JSON))
def test_a_result_writes_json(name):
    written = json.dumps(result(name).as_json(), allow_nan=False)
    assert len(written) > 20


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_makes_a_frame_and_a_figure(name, tmp_path):
    frame = result(name).to_frame()
    assert isinstance(frame, pandas.DataFrame) and len(frame) >= 1
    drawn = result(name).plot()
    figures = drawn.values() if isinstance(drawn, dict) else [drawn]
    assert all(isinstance(figure, Figure) for figure in figures)


def test_records_make_a_frame():
    assert len(Records([]).to_frame()) == 0


def test_counts_index_like_their_shape():
    found = count(MATRICES)
    plain = torch.arange(6).reshape(2, 3)
    assert (len(found), tuple(found.shape)) == (2, (2, 3))
    assert found[0, 1].low == found[1][2].low == 5
    for index in (0, -1, (0, 1), (..., 2), slice(1), (slice(None), 1), (0, slice(0, 2))):
        picked, wanted = found[index], plain[index]
        shape = tuple(picked.shape) if wanted.ndim else ()
        assert shape == tuple(wanted.shape)
    assert [tuple(one.shape) for one in found] == [(3,), (3,)]
    with pytest.raises(IndexError):
        found[2, 0]


def test_a_long_repr_would_be_noticed():
    shown = Presentation(panels=(), cells=())
    assert [*parts_of((shown,), {})] == [shown]
    assert not [*parts_of("text", {})]
