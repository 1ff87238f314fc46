"""Arguments of the wrong type: every public parameter refuses them in one line."""

import json
import subprocess
import sys

import pytest

from cli.scanned import checkpoint

__all__ = ["checkpoint"]  # a fixture

#: One process answers all calls, so one worker asks it.
pytestmark = pytest.mark.xdist_group("wrong types of scans")

#: Values of the wrong type for each parameter, as Python writes them.
WRONG = {
    "scan": {
        "model": ["3", "None", "[1]"],
        "inputs": ["3", "'a b'", "[1, 2]"],
        "text": ["3", "['a b c']", "b'a b c'"],
        "images": ["3", "['a']"],
        "ids": ["3", "1.5", "[object()]", "[['a', 'b']]", "['a', 'b']", "{'a': 1}", "[1.5, 2.5]"],
        "random": ["'a'", "1.5", "True", "-1"],
        "length": ["'a'", "1.5", "[8]", "None", "1"],
        "batch": ["'a'", "0", "1.5", "None"],
        "layers": ["9", "1.5", "[1.5]", "[[0]]", "[None]", "'1-0'"],
        "heads": ["0", "1.5", "['a']", "[[0]]", "[True]", "[-1]"],
        "against": ["3", "'a'", "torch.ones(2)"],
        "against_init": ["3", "'yes'", "None"],
        "store": ["3", "['a']", "True"],
        "longest_dense": ["'a'", "0", "1.5", "None"],
        "dtype": ["'float32'", "3", "float"],
        "progress": ["3", "'a'", "print", "None"],
    },
    "capture": {
        "model": ["3", "None", "'a'"],
        "receive": ["3", "None", "'a'"],
        "layers": ["3", "'a'", "[0]", "[None]"],
        "attends": ["'foo'", "3", "None", "[]"],
    },
    "RankMonitor": {
        "inputs": ["3", "None", "'a'", "[1]"],
        "every": ["'a'", "0", "1.5", "None"],
        "collapse": ["'a'", "0", "2", "None"],
        "on_collapse": ["'foo'", "3", "None", "[]"],
        "log": ["3", "'a'"],
    },
    "monitor": {"model": ["3", "None", "'a'"], "step": ["'a'", "1.5", "-1", "[1]"]},
    "look": {"model": ["3", "None", "'a'"], "step": ["'a'", "1.5", "-1", "None"]},
}

ASKING = """
import json, sys, torch
from headwise import HeadGeometry, HeadwiseError, RankMonitor, capture, mha, scan
folder, wrong = sys.argv[1], json.loads(sys.argv[2])
layer, tokens = mha(HeadGeometry.standard(8, heads=2)), torch.randn(1, 6, 8)
monitor = RankMonitor(tokens, every=1)

def scanned(**given):
    others = set(given) - {"text", "images", "ids", "random", "inputs"}
    usual = {"model": folder, "length": 8} | ({"random": 0} if len(others) == len(given) else {})
    scan(**{**usual, **given})

def captured(**given):
    with capture(**{"model": layer, "receive": print, **given}):
        pass

asks = {
    "scan": scanned,
    "capture": captured,
    "RankMonitor": lambda **given: RankMonitor(**{"inputs": tokens, **given}),
    "monitor": lambda **given: monitor(**{"model": layer, "step": 0, **given}),
    "look": lambda **given: monitor.look(**{"model": layer, "step": 0, **given}),
}
said = {}
for name, parameters in wrong.items():
    for parameter, values in parameters.items():
        for value in values:
            try:
                asks[name](**{parameter: eval(value)})
                found = "accepted"
            except HeadwiseError as error:
                found = "" if "\\n" not in str(error) and "; " in str(error) else str(error)
            except BaseException as error:
                found = repr(error)
            said.setdefault(f"{name}.{parameter}", {})[value] = found
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def answers(checkpoint, tmp_path_factory):
    """The answer to each call, from a separate process: here types are checked at every call."""
    given = [sys.executable, "-c", ASKING, str(checkpoint), json.dumps(WRONG)]
    place = tmp_path_factory.mktemp("asking")
    done = subprocess.run(given, capture_output=True, text=True, check=True, cwd=place)
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("function", "parameter"),
    [(function, parameter) for function, known in WRONG.items() for parameter in known],
)
def test_a_value_of_the_wrong_type_is_refused_in_one_line(answers, function, parameter):
    """They raised TypeError or AttributeError from deep inside, or were accepted."""
    said = answers[f"{function}.{parameter}"]
    assert set(said.values()) == {""}, said


def test_every_parameter_of_the_public_functions_is_asked():
    import inspect

    import headwise

    assert set(inspect.signature(headwise.scan).parameters) == set(WRONG["scan"])
    assert set(inspect.signature(headwise.capture).parameters) == set(WRONG["capture"])
    assert set(inspect.signature(headwise.RankMonitor).parameters) == set(WRONG["RankMonitor"])
