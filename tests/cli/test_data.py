"""headwise data: what is there, and how to get the rest."""

import json


def test_missing_sets_come_with_their_command(headwise, tmp_path):
    ran = headwise("data", tmp_path)
    assert ran.code == 0
    assert ran.out.count("get it: mkdir -p") == 4
    assert "curl -LO https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz" in ran.out
    assert "digits    found in the package" in ran.out


def test_json_lists_what_the_text_lists(headwise, tmp_path):
    text = headwise("data", tmp_path).out
    sets = json.loads(headwise("data", tmp_path, "--json").out)["sets"]
    assert [each["name"] for each in sets] == ["digits", "cifar10", "cifar100", "svhn", "imdb"]
    assert sets[0]["path"] == "digits"
    for each in sets[1:]:
        assert each["get"].startswith(f"mkdir -p {tmp_path} && cd {tmp_path} && ")
        assert f"get it: {each['get']}\n" in text


def test_a_folder_that_is_not_there_is_refused(headwise, tmp_path):
    said = headwise("data", tmp_path / "absent").one_line(1)
    assert f"there is no folder {tmp_path / 'absent'}; create it, or name no folder" in said


def test_the_usual_folder_may_be_missing(headwise, tmp_path, monkeypatch):
    monkeypatch.setenv("HEADWISE_DATA", str(tmp_path / "absent"))
    ran = headwise("data")
    assert ran.code == 0
    assert ran.out.startswith(f"folder {str(tmp_path / 'absent')!r} does not exist")
    assert ran.out.count("get it: mkdir -p") == 4


def test_a_set_is_found_whole_or_not_at_all(headwise, tmp_path):
    (tmp_path / "cifar-100-python").mkdir()
    (tmp_path / "train_32x32.mat").touch()  # SVHN without its test part
    found = {
        s["name"]: s["path"] for s in json.loads(headwise("data", tmp_path, "--json").out)["sets"]
    }
    assert found["cifar100"] == str(tmp_path / "cifar-100-python")
    assert found["svhn"] is found["cifar10"] is found["imdb"] is None


def test_the_environment_names_the_folder(headwise, tmp_path, monkeypatch):
    monkeypatch.setenv("HEADWISE_DATA", str(tmp_path))
    assert f"not in {tmp_path}" in headwise("data").out


def test_a_file_is_no_folder_of_data(headwise, tmp_path):
    (tmp_path / "a.npy").touch()
    said = headwise("data", tmp_path / "a.npy").one_line(1)
    assert "expected a folder of data sets, got the file" in said
    assert "mkdir" not in said
