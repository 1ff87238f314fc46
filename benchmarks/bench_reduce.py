"""Judge reductions of a language model against other methods, at equal KV bytes.

    python -m benchmarks.bench_reduce --model FILE.gguf --ids ids.pt --rows rows.jsonl

``ids.pt`` holds token ids {"calibration": (samples, rows, n), "held_out": (rows, n)}; make it with
``--write-ids FOLDER`` from the IMDB folder on a machine that has the tokenizer. Every row of the
output is one method at one size on one calibration sample; a run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch
from benchmarks.gguf_llama import load_llama
from benchmarks.recording import read_rows
from benchmarks.reduce_baselines import METHODS, planned
from benchmarks.reduce_refit import refit_outputs
from benchmarks.scripts import run_script

from headwise.reduction.calibration import calibrate
from headwise.reduction.cutting import cut_model
from headwise.reduction.evaluation import measure_speed, token_losses
from headwise.reduction.families import attention_parts
from headwise.reduction.healing import heal_model
from headwise.reduction.planning import predicted_loss

FITTED = ("ours_refit",)
HALF = 0.5


def main() -> None:
    """Run what is asked for and not done yet."""
    asked = arguments()
    if asked.write_ids is not None:
        write_ids(asked)
        return
    bench = Bench(asked)
    bench.originals()
    if asked.context:
        bench.speeds()
    # Half of the cache first: a run may end before the rest.
    bench.sweep([share for share in asked.shares if share == HALF])
    if asked.heal:
        for sample in range(asked.samples):
            bench.cut("ours", HALF, sample, heal=asked.heal)
    bench.sweep([share for share in asked.shares if share != HALF])


def arguments():
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--ids", type=Path, required=True)
    parser.add_argument("--write-ids", type=Path, help="IMDB folder")
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--calibration", type=int, default=16, help="sequences in a sample")
    parser.add_argument("--held-out", type=int, default=32, help="sequences")
    parser.add_argument("--batch", type=int, default=1, help="sequences at a time")
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--shares", type=numbers, default=(0.75, 0.625, 0.5, 0.375))
    parser.add_argument("--methods", type=lambda text: text.split(","), default=METHODS)
    parser.add_argument("--heal", type=int, default=0)
    parser.add_argument("--context", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1e9)
    return parser.parse_args()


def numbers(text: str) -> tuple[float, ...]:
    """Return numbers that commas separate."""
    return tuple(float(each) for each in text.split(","))


class Bench:
    """One model on one device, and the rows that are done."""

    def __init__(self, asked) -> None:
        self.asked, self.start = asked, time.monotonic()
        torch.backends.cuda.matmul.allow_tf32 = False
        self.model = load_llama(asked.model).to(asked.device)
        ids = torch.load(asked.ids)
        self.samples = [
            [
                {"input_ids": row.unsqueeze(0).to(asked.device)}
                for row in sample[: asked.calibration]
            ]
            for sample in ids["calibration"].long()
        ]
        self.held_out = [{"input_ids": row.unsqueeze(0)} for row in ids["held_out"].long()]
        self.held_out = self.held_out[: asked.held_out]
        self.done = {self._key(row) for row in read_rows([asked.rows])}
        self.known: dict[int, tuple] = {}

    def batches(self, rows, size=None):
        """Return rows of ids as batches on the device."""
        parts = rows.to(self.asked.device).split(size or self.asked.batch)
        return [{"input_ids": part} for part in parts]

    @staticmethod
    def _key(row) -> tuple:
        return tuple(row.get(name) for name in ("method", "share", "sample", "heal"))

    def sweep(self, shares) -> None:
        """Cut by every method at every size, on every sample."""
        for sample in range(self.asked.samples):
            for share in shares:
                for method in self.asked.methods:
                    self.cut(method, share, sample)

    def originals(self) -> None:
        """Score the original."""
        losses = token_losses(self.model, self.held_out)
        self.reference = losses
        if ("original", 1.0, 0, 0) not in self.done:
            self.write({"method": "original", "share": 1.0, "sample": 0, "heal": 0}, losses, 0.0)

    def calibrated(self, sample: int) -> tuple:
        """Return moments of keys, values and queries on one sample."""
        if sample not in self.known:
            batches = self.samples[sample]
            moments = calibrate(self.model, batches, seed=sample)
            self.known[sample] = (moments, query_moments(self.model, batches))
        return self.known[sample]

    def cut(self, method: str, share: float, sample: int, heal: int = 0) -> None:
        """Cut the model by a method, score it and write the row."""
        row = {"method": method, "share": share, "sample": sample, "heal": heal}
        late = time.monotonic() - self.start > 60 * self.asked.minutes
        if self._key(row) in self.done or late:
            return
        moments, queries = self.calibrated(sample)
        parts = attention_parts(self.model)
        found = planned(method, parts, moments, queries, share)
        if found is None:
            return
        curves, cuts = found
        begin = time.perf_counter()
        made = cut_model(self.model, curves, cuts)
        if method in FITTED:
            refit_outputs(self.model, made, self.samples[sample])
        if heal:
            heal_model(self.model, made, self.training, steps=heal, seed=sample)
        row["seconds"] = time.perf_counter() - begin
        row["kv"] = sum(c.rank + parts[0].kv_heads * c.value_rank for c in made_latent(cuts, parts))
        predicted = predicted_loss(curves, cuts) if method.startswith("ours") else None
        self.write(row, token_losses(made, self.held_out), predicted)

    def speeds(self) -> None:
        """Time the original, and our two cuts at half of the cache."""
        for method in ("original", "ours", "ours_pairs"):
            row = {"method": method, "share": 0.5, "sample": 0, "heal": -1}
            if self._key(row) in self.done:
                continue
            made = self.model
            if method != "original":
                moments, queries = self.calibrated(0)
                parts = attention_parts(self.model)
                made = cut_model(self.model, *planned(method, parts, moments, queries, 0.5))
            measure_speed(made, 64)
            self.append(row | {"speed": vars(measure_speed(made, self.asked.context))})

    def write(self, row, losses, predicted) -> None:
        """Write a row with its scores, paired with the original's."""
        difference = losses - self.reference
        row |= {
            "loss": float(losses.mean()),
            "perplexity": float(losses.mean().exp()),
            "above": float(difference.mean()),
            "above_error": float(difference.std() / len(difference) ** 0.5),
            "predicted": predicted,
            "sequences": len(losses),
            "device": self.asked.device,
        }
        self.append(row)

    def append(self, row) -> None:
        """Print a row and add it to the file."""
        print(json.dumps(row), flush=True)
        if self.asked.rows is not None:
            self.asked.rows.parent.mkdir(parents=True, exist_ok=True)
            with self.asked.rows.open("a") as out:
                out.write(json.dumps(row) + "\n")


def made_latent(cuts, parts):
    """Cuts with key ranks over all heads, so that sizes compare."""
    heads = parts[0].kv_heads
    return [
        type(cut)("latent", cut.rank if cut.keys == "latent" else heads * cut.rank, cut.value_rank)
        for cut in cuts
    ]


@torch.no_grad()
def query_moments(model, batches):
    """E q qᵀ of every query head of every layer, before rotation: (heads, d, d)."""
    parts = attention_parts(model)
    found = [0.0] * len(parts)

    def hook(index):
        def add(_, given, output):
            rows = output.flatten(0, -2).unflatten(-1, (parts[index].heads, -1)).double()
            found[index] = found[index] + torch.einsum("nhd,nhe->hde", rows, rows) / len(rows)

        return add

    hooks = [p.query.register_forward_hook(hook(index)) for index, p in enumerate(parts)]
    for batch in batches:
        model.base_model(input_ids=batch["input_ids"])
    for each in hooks:
        each.remove()
    return [each / len(batches) for each in found]


def write_ids(asked) -> None:
    """Tokenise reviews: train for calibration, test for judging; no review is used twice."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(asked.model.parent, gguf_file=asked.model.name)

    def rows(split, count, skip=0):
        found = []
        files = sorted((asked.write_ids / split).glob("*/*.txt"))[skip::37]
        for place in files:
            text = place.read_text(encoding="utf-8").replace("<br />", " ")
            found += [*tokenizer(text).input_ids, tokenizer.eos_token_id]
            if len(found) >= count * asked.length:
                break
        ids = torch.tensor(found[: count * asked.length], dtype=torch.int32)
        return ids.reshape(count, asked.length)

    torch.save(
        {
            "calibration": torch.stack(
                [rows("train", asked.calibration, skip) for skip in range(asked.samples)]
            ),
            "held_out": rows("test", asked.held_out),
        },
        asked.ids,
    )


if __name__ == "__main__":
    run_script(main)
