"""Time decoding and prefill of a model before and after its recorded cuts, in processor seconds.

    python -m benchmarks.reduce_speed --model FILE.gguf --rows rows.jsonl

Times depend on shapes alone, so the ranks come from the recorded cuts at half of the KV bytes, and
the cut layers are not filled. The cache is filled with random numbers, one token is decoded by each
model in turn, and bytes are those that the cache holds.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import time
from pathlib import Path

import torch
from benchmarks.gguf_llama import load_llama
from benchmarks.recording import RECORDS, provenance, read_rows
from benchmarks.scripts import run_script
from transformers import DynamicCache

from headwise.reduction.modeling_headwise import cut_layers

KINDS = {"ours": "latent", "ours_rotated": "rotated", "ours_pairs": "pairs"}


def main() -> None:
    """Decode by turns, then read the context once with each model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--turns", type=int, default=9)
    asked = parser.parse_args()
    models = cut_by_record(load_llama(asked.model))
    with torch.no_grad():
        for row in (*decoding(models, asked), *prefill(models, asked)):
            row |= {"made_by": provenance("cpu", "float32", 0)}
            print(json.dumps(row), flush=True)
            with asked.rows.open("a") as out:
                out.write(json.dumps(row) + "\n")


def cut_by_record(model):
    """Return the original and models with the shapes of the recorded cuts."""
    models = {"original": model}
    for row in read_rows([RECORDS / "reduce_smollm2_h200_202611.jsonl"]):
        if row["heal"] or row["sample"] or row["method"] not in KINDS:
            continue
        kind, made = KINDS[row["method"]], copy.deepcopy(model)
        cuts = [
            {
                "keys": "full" if kind == "pairs" and rank == 64 else kind,
                "rank": rank,
                "value_rank": value_rank,
            }
            for rank, value_rank in row["ranks"]
        ]
        models[kind] = cut_layers(made, cuts).eval()
    return models


def filled(model, context):
    """Return a cache of random keys and values of the sizes that the model caches."""
    short = model(input_ids=torch.zeros(1, 2, dtype=torch.long), use_cache=True).past_key_values
    cache = DynamicCache()
    for index, layer in enumerate(short.layers):
        keys, values = (
            torch.randn(*each.shape[:2], context, each.shape[3])
            for each in (layer.keys, layer.values)
        )
        cache.update(keys, values, index)
    return cache


def decoding(models, asked):
    """Yield the median processor seconds for one more token, and the bytes of the cache."""
    caches = {name: filled(model, asked.context) for name, model in models.items()}
    held = {
        name: sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)
        for name, cache in caches.items()
    }
    times = {name: [] for name in models}
    for _ in range(asked.turns):
        for name, model in models.items():
            start = time.process_time()
            model(input_ids=torch.ones(1, 1, dtype=torch.long), past_key_values=caches[name])
            times[name].append(time.process_time() - start)
    for name, each in times.items():
        yield {
            "model": name,
            "what": "decode",
            "context": asked.context,
            "seconds": statistics.median(each[1:]),
            "least": min(each),
            "cache_bytes": held[name],
        }


def prefill(models, asked):
    """Yield the processor seconds to read the context."""
    for name, model in models.items():
        ids = torch.ones(1, asked.context, dtype=torch.long)
        start = time.process_time()
        model(input_ids=ids, use_cache=True, logits_to_keep=1)
        seconds = time.process_time() - start
        yield {"model": name, "what": "prefill", "context": asked.context, "seconds": seconds}


if __name__ == "__main__":
    run_script(main)
