"""Files appear whole or not at all; devices and pipes stay what they are."""

import os
import stat
import threading

import pytest

from headwise.errors import BadInputError
from headwise.whole_files import possible_file, write_whole


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe, read = tmp_path / "rows.csv", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_whole(pipe, b"layer,head\n", hint="choose another place")
    reader.join(timeout=20)
    assert read == [b"layer,head\n"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path):
    place = tmp_path / "rows.csv"
    place.write_bytes(b"old")
    write_whole(place, b"new", hint="choose another place")
    assert [each.name for each in tmp_path.iterdir()] == ["rows.csv"]
    assert place.read_bytes() == b"new"


def test_a_folder_in_the_way_is_one_line_and_stays(tmp_path):
    place = tmp_path / "rows.csv"
    place.mkdir()
    with pytest.raises(BadInputError, match=r"cannot be written.*choose another place"):
        write_whole(place, b"new", hint="choose another place")
    assert [each.name for each in tmp_path.iterdir()] == ["rows.csv"] and place.is_dir()


def test_a_folder_that_can_be_made_leaves_none_of_its_parents(tmp_path):
    """Parents of a new folder stayed behind."""
    assert possible_file(tmp_path / "one" / "two" / "page.html").name == "page.html"
    assert not list(tmp_path.iterdir())
