"""Every reader of headwise, with small valid files for it to be attacked with."""

from __future__ import annotations

import io
import json
import pickle
import sqlite3
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from benchmarks.attack.mutations import Damage, damaged, damaged_json

from headwise.arrays import read_array
from headwise.data.official import read_svhn
from headwise.data.pickles import read_plain_pickle
from headwise.data.sources import read_source
from headwise.data.text import read_text, tokenizer_file
from headwise.hugging_face import read_config
from headwise.hugging_face.loading import load_model
from headwise.hugging_face.places import find_source
from headwise.runs import LocalExecutor, Store, read_records, run, write_records
from headwise.runs.examples import Square
from headwise.runs.spec_files import read_specs


@dataclass(frozen=True)
class Reader:
    """A reader, the name of the file that it is given, and valid contents."""

    read: Callable[[Path], Any]
    name: str
    contents: tuple[bytes, ...]
    damages: tuple[Damage, ...] = (damaged,)


def _text_of(path: Path) -> Any:
    encode, _ = tokenizer_file(path)
    return encode("one two three")


def _stored(path: Path) -> Any:
    with Store.open(path) as store:
        return list(store.records().values())


def _numpy(*arrays: np.ndarray) -> tuple[bytes, ...]:
    return tuple(_written(np.save, array) for array in arrays)


def _written(save: Callable[..., object], content: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    save(file, content, **options)
    return file.getvalue()


def _arrays() -> dict[str, Reader]:
    from safetensors.torch import save

    square = torch.arange(12.0, dtype=torch.float64).reshape(3, 4)
    whole = np.arange(6, dtype=np.int32).reshape(2, 3)
    compressed = io.BytesIO()
    np.savez_compressed(compressed, a=square.numpy(), b=whole)
    plain = io.BytesIO()
    np.savez(plain, a=square.numpy())
    torch_files = [
        _written(lambda file, tensor: torch.save(tensor, file), tensor)
        for tensor in (square, square.to(torch.bfloat16), square[:1].expand(64, 4), {"a": square})
    ]
    files = [save({"a": square}), save({"a": square, "b": square.half()})]
    return {
        "npy": Reader(read_array, "a.npy", _numpy(square.numpy(), whole, np.ones((2, 3, 4), "f2"))),
        "npz": Reader(read_array, "a.npz", (plain.getvalue(), compressed.getvalue())),
        "pt": Reader(read_array, "a.pt", tuple(torch_files)),
        "safetensors": Reader(read_array, "a.safetensors", tuple(files)),
    }


CONFIGS: tuple[dict[str, Any], ...] = (
    {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 512,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "num_hidden_layers": 4,
        "max_position_embeddings": 2048,
        "rope_scaling": {"type": "linear", "factor": 2.0},
    },
    {"model_type": "bert", "hidden_size": 384, "num_attention_heads": 12, "vocab_size": 30522},
    {"model_type": "clip", "vision_config": {"hidden_size": 64, "num_attention_heads": 4}},
)


def _json(*trees: Any) -> tuple[bytes, ...]:
    return tuple(json.dumps(tree).encode() for tree in trees)


def _tokenizer() -> bytes:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel

    words = WordLevel({"one": 0, "two": 1, "[UNK]": 2}, unk_token="[UNK]")
    return Tokenizer(words).to_str().encode()


def _checkpoints(folder: Path) -> dict[str, Reader]:
    """A folder with a model: its weights are damaged, or its config."""
    from transformers import BertConfig, BertModel

    sizes = {"hidden_size": 8, "intermediate_size": 8, "vocab_size": 11}
    config = BertConfig(**sizes, num_attention_heads=2, num_hidden_layers=1)
    BertModel(config).save_pretrained(folder)
    names = ("model.safetensors", "config.json")
    contents = {name: (folder / name).read_bytes() for name in names}

    def read(path: Path) -> Any:
        for name in names:
            if name != path.name:
                (path.parent / name).write_bytes(contents[name])
        return load_model(find_source(path.parent))

    weights, settings = (contents[name] for name in names)
    return {
        "weights of a model": Reader(read, names[0], (weights,)),
        "config of a model": Reader(read, names[1], (settings,), (damaged, damaged_json)),
    }


def _packed_model(path: Path) -> bytes:
    """A Llama model of one layer as a GGUF file."""
    from gguf import GGUFWriter

    file, width, words = GGUFWriter(str(path), "llama"), 32, "abcdefgh"
    for add in (file.add_context_length, file.add_embedding_length, file.add_feed_forward_length):
        add(width)
    file.add_block_count(1)
    file.add_head_count(2)
    file.add_head_count_kv(1)
    file.add_layer_norm_rms_eps(1e-5)
    file.add_vocab_size(len(words))
    file.add_tokenizer_model("gpt2")
    file.add_token_list(list(words))
    file.add_token_merges(["a b"])
    rng, square = np.random.default_rng(0), (width, width)
    inner = {"attn_q": square, "attn_k": (16, width), "attn_v": (16, width), "attn_output": square}
    inner |= {"ffn_gate": square, "ffn_up": square, "ffn_down": square}
    shapes = {f"blk.0.{name}": shape for name, shape in inner.items()}
    shapes |= dict.fromkeys(("blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"), (width,))
    shapes |= dict.fromkeys(("token_embd", "output"), (len(words), width))
    for name, shape in shapes.items():
        file.add_tensor(f"{name}.weight", rng.standard_normal(shape).astype(np.float32))
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()
    return path.read_bytes()


def _records(folder: Path) -> dict[str, Reader]:
    specs = [Square(number=number) for number in range(3)]
    with Store.open(folder / "results.db") as store:
        run(store.plan(specs), LocalExecutor(workers=1), store)
        records = store.records()
        files = {
            name: write_records(records.values(), folder / f"rows.{name}").read_bytes()
            for name in ("jsonl", "csv")
        }
    with sqlite3.connect(folder / "results.db") as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    found = {
        f"records {name}": Reader(read_records, f"rows.{name}", (content,))
        for name, content in files.items()
    }
    database = (folder / "results.db").read_bytes()
    return found | {"store": Reader(_stored, "results.db", (database,))}


@cache
def readers() -> dict[str, Reader]:
    """Every reader by name."""
    from PIL import Image
    from scipy.io import savemat

    both = (damaged, damaged_json, damaged_json)
    digits = {"X": np.zeros((32, 32, 3, 2), np.uint8), "y": np.array([[1], [10]], np.uint8)}
    batch = {b"data": np.zeros((2, 3072), np.uint8), b"labels": [1, 2], b"batch_label": b"one"}
    pixels = Image.fromarray(np.zeros((9, 7, 3), np.uint8))
    pictures = [
        _written(lambda file, image, kind=kind: image.save(file, kind), pixels)
        for kind in ("PNG", "JPEG", "BMP")
    ]
    specs = [{"kind": "square", "number": 3}, {"kind": "square", "number": 4}]
    with tempfile.TemporaryDirectory() as folder:
        stored = _records(Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        stored |= _checkpoints(Path(folder))
        packed = _packed_model(Path(folder) / "model.gguf")
    return {
        **_arrays(),
        "gguf": Reader(lambda path: load_model(find_source(path)), "model.gguf", (packed,)),
        "config": Reader(read_config, "config.json", _json(*CONFIGS), both),
        "specs": Reader(lambda path: read_specs(Square, path), "specs.json", _json(specs), both),
        "tokenizer": Reader(_text_of, "tokenizer.json", (_tokenizer(),), both),
        "text": Reader(read_text, "a.txt", ("Wörter und mehr.\n".encode(), b"plain words " * 9)),
        "pickle": Reader(read_plain_pickle, "data_batch_1", _pickles(batch)),
        "mat": Reader(
            lambda path: read_svhn(path.parent), "train_32x32.mat", (_written(savemat, digits),)
        ),
        "pictures": Reader(lambda path: read_source(path.parent, size=8), "a.png", tuple(pictures)),
        **stored,
    }


def _pickles(content: Any) -> tuple[bytes, ...]:
    return tuple(pickle.dumps(content, protocol) for protocol in (0, 2, 4))
