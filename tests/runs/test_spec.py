"""Identity of specs: closed, frozen, exact, the same everywhere."""

import json
import subprocess
import sys
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from headwise.errors import BadInputError, UnreadableFileError
from headwise.runs import Row, Spec, parsed_spec, read_specs
from headwise.runs.spec import content_key
from runs.questions import Cube, Kinds, Poison, Slow

FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@given(FLOATS, st.integers(), st.lists(st.text()))
def test_a_spec_survives_json_with_its_key(number, seed, tags):
    spec = Cube(number=number, seed=seed, tags=tuple(tags))
    again = parsed_spec(Kinds, json.loads(spec.model_dump_json()))
    assert again == spec
    assert again.key == spec.key


@given(FLOATS, FLOATS)
def test_equal_numbers_and_only_they_have_equal_keys(one, other):
    assert (Cube(number=one).key == Cube(number=other).key) == (one == other)


def test_neighbouring_floats_and_both_zeros():
    assert Cube(number=0.1).key != Cube(number=0.1 + 2**-56).key
    assert Cube(number=0.0).key == Cube(number=-0.0).key
    assert Cube(number=3).key == Cube(number=3.0).key


def test_keys_never_change():
    """Written down once: a change here would orphan every stored result."""
    assert Cube(number=0.1, seed=7, tags=("ü",)).key == "da2dc679e59661860d628feb52ba6a66f7e507e9"
    assert Poison(how="raises").key == "5035580f5b0bdb73097465ae7fa32f78d42aceb5"


def test_keys_are_the_same_in_another_process():
    code = "from runs.questions import Cube; print(Cube(number=0.1, seed=7).key)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": ":".join(filter(None, sys.path)), "PYTHONHASHSEED": "12345"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == Cube(number=0.1, seed=7).key


def test_kind_and_revision_are_part_of_the_key():
    class Other(Spec, frozen=True):
        kind: Literal["poison"] = "poison"
        revision: Literal[2] = 2
        how: str

        def ask(self) -> Row:
            return {}

    assert Other(how="raises").key != Poison(how="raises").key
    assert content_key(Other(how="raises").content | {"revision": 1}) == Poison(how="raises").key


def test_specs_are_frozen_and_closed():
    spec = Cube(number=1)
    with pytest.raises(ValidationError, match="frozen"):
        spec.number = 2
    with pytest.raises(ValidationError, match="Extra inputs"):
        Cube(number=1, nubmer=2)
    with pytest.raises(ValidationError, match="finite"):
        Cube(number=float("inf"))


def test_a_kind_must_name_itself():
    with pytest.raises(TypeError, match="Nameless needs a kind"):

        class Nameless(Spec, frozen=True):
            def ask(self) -> Row:
                return {}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"kind": "cube", "nubmer": 1}, "'nubmer' is no field of cube; did you mean 'number'?"),
        ({"kind": "cube"}, "field 'number' of cube: field required"),
        ({"kind": "cube", "number": "x"}, "field 'number' of cube: input should be a valid number"),
        ({"kind": "cube", "number": float("nan")}, "finite number, got nan"),
        ({"kind": "cube", "revision": 1, "number": 1}, "field 'revision' of cube: input should be"),
        ({"kind": "cbue"}, "'cbue' is no kind of spec; did you mean 'cube'?"),
        ({"number": 1}, "None is no kind of spec; there are cube, poison, slow"),
        (
            {"kind": "poison", "how": "kills", "zzz": 1},
            "'zzz' is no field of poison; there are how",
        ),
        ([1], "a spec is an object of names and values, not [1]"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(content, words):
    with pytest.raises(BadInputError) as raised:
        parsed_spec(Kinds, content)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_spec_files(tmp_path):
    specs = [Cube(number=1), Slow(number=1, seconds=0, trace="t")]
    for name, text in (
        ("specs.json", json.dumps([spec.content for spec in specs])),
        ("specs.jsonl", "\n".join(spec.model_dump_json() for spec in specs)),
    ):
        (tmp_path / name).write_text(text)
        assert read_specs(Kinds, tmp_path / name) == specs


def test_bad_spec_files(tmp_path):
    path = tmp_path / "specs.json"
    with pytest.raises(UnreadableFileError, match="cannot be read"):
        read_specs(Kinds, path)
    path.write_text("[{")
    with pytest.raises(UnreadableFileError, match=r"specs\.json is not JSON .*; write a list"):
        read_specs(Kinds, path)
    path.write_text('[{"kind": "cube", "number": 1}, {"kind": "cube", "nmber": 1}]')
    with pytest.raises(BadInputError, match=r"spec 2 of .*: 'nmber' is no field of cube; did you"):
        read_specs(Kinds, path)


def test_a_label_names_what_differs_from_the_defaults():
    assert Cube(number=1).label == "cube number=1.0"
    assert Cube(number=1, seed=3).label == "cube number=1.0 seed=3"
