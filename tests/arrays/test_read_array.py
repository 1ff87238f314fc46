import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from headwise.arrays import read_array
from headwise.errors import BadInputError

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.bool, torch.int64]


def matrix(dtype=torch.float64):
    return (torch.arange(15).reshape(3, 5) % 4).to(dtype)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != torch.bfloat16])
def test_npy_keeps_numbers_shape_and_dtype(tmp_path, dtype):
    np.save(tmp_path / "a.npy", matrix(dtype).numpy())
    assert torch.equal(read_array(tmp_path / "a.npy"), matrix(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ending", ["pt", "pth", "safetensors"])
def test_torch_files_keep_numbers_shape_and_dtype(tmp_path, dtype, ending):
    path = tmp_path / f"a.{ending}"
    if ending == "safetensors":
        save_file({"a": matrix(dtype)}, path)
    else:
        torch.save(matrix(dtype), path)
    found = read_array(path)
    assert found.dtype == dtype
    assert torch.equal(found, matrix(dtype))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f8", ">f8", ">f4"])
def test_npy_of_any_layout_and_byte_order(tmp_path, order, dtype):
    np.save(tmp_path / "a.npy", np.array(matrix().numpy(), dtype=dtype, order=order))
    assert torch.equal(read_array(tmp_path / "a.npy").double(), matrix())


def test_npz_by_name(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", left=np.eye(2), right=matrix().numpy())
    assert torch.equal(read_array(tmp_path / "a.npz", "right"), matrix())


def test_a_single_array_needs_no_name(tmp_path):
    np.savez(tmp_path / "a.npz", only=np.eye(2))
    assert read_array(tmp_path / "a.npz").shape == (2, 2)


def test_an_unnamed_array_is_called_like_its_file(tmp_path):
    np.save(tmp_path / "weights.npy", np.eye(2))
    assert read_array(tmp_path / "weights.npy", "weights").shape == (2, 2)
    wanted = r"no array named 'b'; choose one of weights \(float64, 2×2"
    with pytest.raises(BadInputError, match=wanted):
        read_array(tmp_path / "weights.npy", "b")


def test_nested_checkpoints_are_named_by_their_path(tmp_path):
    saved = {"model": {"q": matrix(), "step": 3}, "list": [torch.eye(2), torch.eye(3)]}
    torch.save(saved, tmp_path / "a.pt")
    assert torch.equal(read_array(tmp_path / "a.pt", "model.q"), matrix())
    assert read_array(tmp_path / "a.pt", "list.1").shape == (3, 3)


def test_parameters_and_the_old_torch_format_are_read(tmp_path):
    parameter = torch.nn.Parameter(matrix())
    torch.save(parameter, tmp_path / "a.pt", _use_new_zipfile_serialization=False)
    found = read_array(tmp_path / "a.pt")
    assert torch.equal(found, matrix())
    assert not found.requires_grad


@pytest.mark.parametrize("ending", ["npz", "pt", "safetensors"])
def test_several_arrays_are_listed_with_their_shapes(tmp_path, ending):
    arrays = {"left": torch.eye(2), "right": torch.ones(3, 5)}
    path = tmp_path / f"a.{ending}"
    {
        "npz": lambda: np.savez(path, **{name: a.numpy() for name, a in arrays.items()}),
        "pt": lambda: torch.save(arrays, path),
        "safetensors": lambda: save_file(arrays, path),
    }[ending]()
    with pytest.raises(BadInputError, match="got 2; choose one by its name") as refused:
        read_array(path)
    assert "left (" in refused.value.hint
    assert "3×5" in refused.value.hint
    with pytest.raises(BadInputError, match="no array named 'up'; choose one of left"):
        read_array(path, "up")


def test_long_lists_are_cut(tmp_path):
    np.savez(tmp_path / "a.npz", **{f"x{i}": np.eye(1) for i in range(40)})
    with pytest.raises(BadInputError, match="and 28 more"):
        read_array(tmp_path / "a.npz")


def test_layouts_that_are_not_plain_are_refused(tmp_path):
    torch.save(torch.eye(3).to_sparse(), tmp_path / "a.pt")
    with pytest.raises(BadInputError, match=r"sparse_coo.*to_dense"):
        read_array(tmp_path / "a.pt")
