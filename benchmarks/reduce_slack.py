"""Does the slack that a scan shows foretell what a cut costs? One layer of an encoder at a time.

    python -m benchmarks.reduce_slack --model MINILM_FOLDER --text prose.txt --rows rows.jsonl

For every layer, keys (with queries) or values alone are cut to a half and a quarter of their rank.
A row has the ranks that ``headwise scan`` reports for that layer, the predicted cost, and the
measured one: the mean squared change of the normalised embeddings of held-out sequences.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from benchmarks.recording import provenance, read_rows
from benchmarks.scripts import run_script

from headwise.probing import scan
from headwise.probing.rows import mean_of
from headwise.reduction.calibration import calibrate
from headwise.reduction.evaluation import embeddings
from headwise.reduction.families import attention_parts
from headwise.reduction.planning import Cut, LayerCurves, predicted_loss
from headwise.reduction.smaller_model import cut_model
from headwise.reduction.texts import sample_text

#: What a scan says of keys and of values.
COLUMNS = {"keys": "query_key_rank", "values": "output_rank"}
LENGTH = 64


def main() -> None:
    """Cut one part of one layer after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--rows", type=Path, required=True)
    asked = parser.parse_args()
    from transformers import AutoTokenizer, BertModel

    model = BertModel.from_pretrained(asked.model, dtype=torch.float32).eval()
    sample = sample_text(
        AutoTokenizer.from_pretrained(asked.model),
        asked.text.read_text(encoding="utf-8"),
        tokens=4096,
        held_out=4096,
        length=LENGTH,
        needed=1,
        wrap=True,
    )
    parts = attention_parts(model)
    curves = [
        LayerCurves(own, moments, "factors", weighted=True)
        for own, moments in zip(parts, calibrate(model, sample.calibration), strict=True)
    ]
    ranks = scanned(model, sample.calibration[0])
    before, d = embeddings(model, sample.held_out), parts[0].head_dim
    done = {(r["layer"], r["kind"], r["share"]) for r in read_rows([asked.rows])}
    for share in (0.5, 0.25):
        for layer in range(len(curves)):
            for kind in COLUMNS:
                if (layer, kind, share) in done:
                    continue
                cuts = [Cut("factors", d, d)] * len(curves)
                less = int(d * share)
                cuts[layer] = Cut("factors", *((less, d) if kind == "keys" else (d, less)))
                after = embeddings(cut_model(model, curves, cuts), sample.held_out)
                row = {"layer": layer, "kind": kind, "share": share}
                row |= {
                    "scanned_rank": ranks[layer][kind],
                    "head_dim": d,
                    "predicted": LENGTH * predicted_loss(curves, cuts),
                    "measured": float((after - before).square().sum(1).mean()),
                    "made_by": provenance("cpu", "float32", 0),
                }
                print({name: row[name] for name in row if name != "made_by"}, flush=True)
                with asked.rows.open("a") as out:
                    out.write(json.dumps(row) + "\n")


def scanned(model, batch):
    """Return the mean rank over heads of every layer, as a scan of one batch reports it."""
    found = scan(model, batch)
    return [
        {kind: mean_of(found.of_layer(name), column) for kind, column in COLUMNS.items()}
        for name in found.layers
    ]


if __name__ == "__main__":
    run_script(main)
