"""Functions refuse a wrong parameter before they compute, in one line that names it."""

import json
import subprocess
import sys

import pytest

import headwise
from headwise.errors import HeadwiseError
from headwise.hugging_face import loading
from headwise.hugging_face.loading import from_pretrained
from headwise.hugging_face.places import Source

#: One process answers all calls, so one worker asks it.
pytestmark = pytest.mark.xdist_group("wrong parameters")

SETUP = """
import json, sys, numpy as np, torch
from headwise import *
from headwise.attention.initialisation import gaussian_heads
ids, labels = np.arange(64).reshape(8, 8) % 5, np.arange(8) % 2
tokens, sizes = torch.zeros(1, 4, 8), {"length": 64, "width": 64}
heads = HeadGeometry.standard(8, heads=2)
exhibit = "heads2024/table_models"

def small(**asked):
    return trial(ids, labels, **{"steps": 2, "width": 8, "seeds": [0, 1], **asked})

def drawn(exhibits=exhibit, **asked):
    return reproduce(exhibits, **{"from_records": True, **asked})

def said(call):
    try:
        return f"answered {eval(call)!r}"
    except HeadwiseError as error:
        return str(error)
    except Exception as error:
        return repr(error)

print(json.dumps({call: said(call) for call in json.load(sys.stdin)}))
"""

#: A call, and what its refusal says.
REFUSED = {
    "advise(**sizes, heads='x')": "expected a whole number for `heads`, got 'x'",
    "advise(**sizes, multiple_of='x')": "expected a whole number for `multiple_of`, got 'x'",
    "advise(tokens, seed='x')": "expected a whole number for `seed`, got 'x'",
    "advise(**sizes, any_shape='yes')": "expected `any_shape` True or False, got 'yes'",
    "advise(tokens, name=5)": "expected the name of an array for `name`, got 5",
    "expected_rank(64, 8, seed='x')": "expected a whole number for `seed`, got 'x'",
    "expected_rank(64, 8, temperature=-1)": "`temperature` does not go with hardmax",
    "expected_rank(64, 8, epsilon=0)": "`epsilon` does not go with hardmax",
    "expected_rank([64], 8)": "expected a whole number for `n`, got [64]",
    "expected_rank(64, 0)": "expected `d_h` from 1 to 100,000, got 0",
    "expected_rank(64, 8, attention='softmax', temperature=-1)": "a positive `temperature`, got -1",
    "law(128, '8,16')": "expected a whole number for `head_dim`, got '8,16'",
    "law(128, [8, 'x'])": "expected a whole number for `head_dim`, got 'x'",
    "law(10**30)": "got 1,000,000,000,000,000,000,000,000,000,000;",
    "law(128, progress=3)": "an object with the methods of headwise.Progress for `progress`, got 3",
    "law(128).plot(3)": "expected a path for `file`, got 3",
    "rank(np.eye(3), logits='yes')": "expected `logits` True or False, got 'yes'",
    "rank('a.npy', name=5)": "expected the name of an array for `name`, got 5",
    "rank(np.eye(3), progress=3)": "headwise.Progress for `progress`, got 3",
    "heads.cache_bytes_per_token('b')": "a whole number for `bytes_per_number`, got 'b'",
    "heads.flops_per_token(-1000)": "expected `context` of at least 0, got -1,000",
    "gaussian_heads(1, 4, width=4, head_dim=2, seed='a')": "a whole number for `seed`, got 'a'",
    "measure(torch.eye(3)).energy_rank('a')": "expected `share` between 0 and 1, got 'a'",
    "mha(heads, position='rope')": "expected a position rule such as Rotary(8) for `position`",
    "mha(heads, weighting='softmax')": "expected a weighting such as Softmax() or Hardmax() for",
    "mha(heads, combination='sum')": "expected HeadSum() or HeadMean() for `combination`",
    "drawn(from_records='no')": "expected `from_records` True or False, got 'no'",
    "reproduce(exhibit, only='layers')": "such as layers=3 for `only`, got 'layers'",
    "reproduce(exhibit, only=3)": "such as layers=3 for `only`, got 3",
    "expected_rank(64, 8, 'none', 'softmax', temperature=1., epsilon=0)": "pass 1e-08 for example",
    "expected_rank(64, 8, method='exact')": "formulas are exact for d_h = 1, 2 without a mask",
    "expected_rank(64, 8, method='law')": "the law starts at d_h = 16",
    "bound(64, 8, heads=10**400)": "expected at most 10^300 `heads`, got more",
    "bound(64, 8, heads='x')": "expected a whole number for `heads`, got 'x'",
    "bound(64, 8, error='x')": "(the error without heads), got 'x'",
    "small(seeds=['a', 'b'])": "expected a whole number for `seeds`, got 'a'",
    "small(seeds=[0, 0])": "expected at least 2 different seeds, got 1",
    "small(seeds=[0, 1, 1])": "expected different seeds, got [0, 1, 1]",
    "small(seeds=0.5)": "expected a whole number or a list of them for `seeds`, got 0.5",
    "small(seeds=1)": "expected at least 2 different seeds, got 1",
    "small(candidates=[3])": "expected HeadGeometry objects or a text for `candidates`, got 3",
    "small(candidates='16y4')": "expected `candidates` as heads x rank, got '16y4'",
    "small(candidates=3)": "expected HeadGeometry objects or a text for `candidates`, got 3",
    "small(rate=-1)": "expected a positive `rate`, got -1",
    "small(steps=2.5)": "expected a whole number for `steps`, got 2.5",
    "small(width='64')": "expected a whole number for `width`, got '64'",
    "small(minutes=-1)": "expected a positive `minutes`, got -1",
    "small(folder=5)": "expected a path for `folder`, got 5",
    "small(patch=4)": "`patch` goes with images, got token ids",
    "trial(None)": "expected data for `source`, got none",
    "drawn([])": "expected at least one exhibit, got none",
    "drawn(5)": "expected names of exhibits for `exhibits`, got 5",
    "drawn([exhibit, 3])": "expected names of exhibits for `exhibits`, got 3",
    "drawn(seconds=-1)": "expected a positive `seconds`, got -1",
    "drawn(seconds='x')": "expected a positive `seconds`, got 'x'",
    "drawn(store=5)": "expected a path for `store`, got 5",
    "drawn(out=sys.executable)": "cannot write into the folder /",
    "RankMonitor('x')": "a tuple of arguments or a mapping for `inputs`, got 'x'",
    "RankMonitor(tokens, log=5)": "expected a function for `log`, got 5",
    "RankMonitor(tokens, every='x')": "expected a whole number for `every`, got 'x'",
    "RankMonitor(tokens)(5)": "expected a torch module for `model`, got 5",
    "scan(5, tokens)": "expected a torch module or the path of a checkpoint for `model`, got 5",
    "scan('model', random=True)": "expected a whole number for random, got True; pass 0 or more",
    "scan('model')": "expected text, images, ids or random, got none of them; pass one of them",
    "scan('model', tokens, text='a b')": "expected no `text` with `inputs`, got both",
    "scan(mha(heads), tokens, text='a b')": "expected no `text` with a model, got both",
    "scan(mha(heads), 'text')": "expected a tensor, a tuple or a mapping as `inputs`, got str",
    "scan(mha(heads), tokens, layers='1-0')": "ranges from the smaller to the larger number",
    "scan(mha(heads), tokens, heads=[-1])": "expected heads from 0 on, got [-1]",
    "scan(mha(heads), tokens).plot('x')": "or 'logit_scale', got 'x'",
    "scan(mha(heads), tokens).table('x')": "or 'logit_scale', got 'x'",
    "mha('x')": "expected a HeadGeometry for `geometry`, got 'x'",
    "mha(heads, initialisation='x')": "for `initialisation`, got 'x'",
    "reproduce('zebra')": "`list_exhibits` lists them all",
}


@pytest.fixture(scope="module")
def said():
    """What each call says, from one process of its own: here types are checked at every call."""
    asked = json.dumps(list(REFUSED))
    done = subprocess.run(
        [sys.executable, "-c", SETUP], input=asked, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("call", REFUSED)
def test_a_wrong_parameter_is_refused_in_one_line_that_names_it(call, said):
    assert REFUSED[call] in said[call]
    assert "\n" not in said[call] and "Error(" not in said[call]


def test_the_list_of_exhibits_that_a_refusal_names_is_there():
    assert headwise.list_exhibits("beyond")


def test_a_hub_that_does_not_answer_is_not_asked_again(monkeypatch):
    """Only the cache is searched then; the library alone would retry for 45 seconds."""
    monkeypatch.setattr(loading, "_hub_answers", lambda: False)
    seen = {}

    class Kind:
        @staticmethod
        def from_pretrained(place, **given):
            seen.update(given)
            raise OSError("not in the cache")

    with pytest.raises(HeadwiseError, match="it could not be fetched"):
        from_pretrained(Source("nosuch"), Kind)
    assert seen["local_files_only"] is True
