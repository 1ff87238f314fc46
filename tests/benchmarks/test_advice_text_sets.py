"""The labelled texts of the judged tasks: what is kept, what is held out, which words count."""

import numpy as np
import pytest
from benchmarks.advice.datasets import libraries, packages, read_set, write_set
from benchmarks.advice.tasks import BENCHES
from benchmarks.advice.text_sets import (
    CODE_LENGTH,
    LIBRARIES,
    OTHER,
    PADDING,
    PIECES,
    SECTION_LENGTH,
    SECTIONS,
    code_libraries,
    numbered,
    package_sections,
    vocabulary_of,
)

STANZA = """Package: {name}
{source}Version: 1.0
Section: {section}
Description-en: {first}
 {rest}
 .
 last words
"""


def both(parts):
    """Trained and held-out texts in one list."""
    return [*parts[0], *parts[1]]


@pytest.fixture
def listing(tmp_path):
    """Writes what ``apt-cache show`` prints for packages of (name, source, section)."""

    def write(*found):
        stanzas = [
            STANZA.format(
                name=name,
                source=f"Source: {source} (2.0)\n" if source else "",
                section=section,
                first=f"Plays {name}",
                rest="more, words",
            )
            for name, source, section in found
        ]
        path = tmp_path / "packages.txt"
        path.write_text("\n".join(stanzas), encoding="utf-8")
        return path

    return write


def test_a_description_is_read_with_all_its_lines(listing):
    texts = both(package_sections(listing(("chess", "", "games"))))
    words = ["plays", "chess", "more", "words", "last", "words"]
    assert texts == [(words, SECTIONS.index("games"))]


def test_a_component_before_the_section_is_ignored_and_other_sections_are_left_out(listing):
    texts = both(package_sections(listing(("a", "", "contrib/net"), ("b", "", "perl"))))
    assert [label for _, label in texts] == [SECTIONS.index("net")]


def test_packages_of_one_source_stay_together(listing):
    found = [(f"p{i}-{j}", f"source{i}", "games") for i in range(40) for j in range(3)]
    trained, held_out = package_sections(listing(*found))
    sources = [{words[1] for words, _ in part} for part in (trained, held_out)]
    assert len(trained) + len(held_out) == 120
    assert len(held_out) > 0
    assert not sources[0] & sources[1]


@pytest.fixture
def site_packages(tmp_path):
    """Two libraries; every word of a file is the file's own name."""
    for library, files in ((LIBRARIES[0], 30), (LIBRARIES[1], 20)):
        (tmp_path / library).mkdir()
        for number in range(files):
            words = f"{library}{number} " * (3 * CODE_LENGTH)
            (tmp_path / library / f"m{number}.py").write_text(words, encoding="utf-8")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "m.py").write_text("word " * 900, encoding="utf-8")
    return tmp_path


def test_every_second_piece_of_a_file_is_kept(site_packages):
    trained, held_out = code_libraries(site_packages)
    labels = [label for _, label in trained + held_out]
    assert (labels.count(0), labels.count(1)) == (60, 40)
    assert all(len(words) == CODE_LENGTH for words, _ in trained + held_out)


def test_a_file_is_trained_on_or_held_out_as_a_whole(site_packages):
    trained, held_out = ({words[0] for words, _ in p} for p in code_libraries(site_packages))
    assert len(trained | held_out) == 50
    assert len(held_out) > 0
    assert not trained & held_out


def test_one_library_gives_a_limited_number_of_pieces(tmp_path):
    (tmp_path / LIBRARIES[0]).mkdir()
    path = tmp_path / LIBRARIES[0] / "long.py"
    path.write_text("word " * (2 * CODE_LENGTH * (PIECES + 10)), encoding="utf-8")
    assert sum(map(len, code_libraries(tmp_path))) == PIECES


def test_frequent_words_get_numbers_and_others_share_one():
    numbers = vocabulary_of([(["b", "a", "b", "c", "a", "b"], 0)], size=4)
    assert numbers == {"b": OTHER + 1, "a": OTHER + 2}
    ids, labels = numbered([(["a", "c", "b", "a"], 7), (["b"], 3)], numbers, 3)
    assert ids.tolist() == [[OTHER + 2, OTHER, OTHER + 1], [OTHER + 1, PADDING, PADDING]]
    assert labels.tolist() == [7, 3]


def test_the_vocabulary_is_of_the_trained_part_alone(site_packages):
    arrays = libraries(site_packages)
    assert set(np.unique(arrays["x_test"])) == {OTHER}
    assert arrays["x_train"].min() > OTHER


@pytest.mark.parametrize("task", ["package-sections", "code-libraries"])
def test_stored_texts_load_as_a_task(task, listing, site_packages, tmp_path):
    found = [(f"p{i}", "", "games" if i % 2 else "net") for i in range(80)]
    made = packages(listing(*found)) if task == "package-sections" else libraries(site_packages)
    name = "packages" if task == "package-sections" else "libraries"
    write_set(tmp_path / "out", name, made)
    loaded = BENCHES[task].load(tmp_path / "out", "cpu")
    length = SECTION_LENGTH if task == "package-sections" else CODE_LENGTH
    assert loaded.tokens.shape == (min(64, len(made["y_train"])), length)
    assert set(read_set(tmp_path / "out", name)) == {"x_train", "y_train", "x_test", "y_test"}
