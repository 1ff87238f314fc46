"""Judge reductions of a language model against other methods, at equal KV bytes.

    python -m benchmarks.bench_reduce --model FILE.gguf --ids ids.pt --rows rows.jsonl

``ids.pt`` holds token ids {"calibration": (samples, rows, n), "healing": (rows, n), "held_out":
(rows, n)}; make it with ``--write-ids FOLDER`` from the IMDB folder on a machine that has the
tokenizer. Every row of the output is one method at one size on one calibration sample; a run goes
on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch
from benchmarks.gguf_llama import load_llama
from benchmarks.recording import provenance, read_rows
from benchmarks.reduce_baselines import METHODS, curves_of, cuts_of
from benchmarks.scripts import run_script

from headwise.reduction.calibration import calibrate
from headwise.reduction.evaluation import measure_speed, token_losses
from headwise.reduction.families import attention_parts
from headwise.reduction.healing import heal_model
from headwise.reduction.planning import Cut, predicted_loss
from headwise.reduction.smaller_model import cut_model

HALF = 0.5

#: The ways that are healed and timed.
OURS = ("ours", "ours_rotated")


def main() -> None:
    """Run what is asked for and not done yet."""
    asked = arguments()
    if asked.write_ids is not None:
        write_ids(asked)
        return
    bench = Bench(asked)
    bench.originals()
    # Half of the cache first: a run may end before the rest.
    bench.sweep([share for share in asked.shares if share == HALF])
    if asked.context:
        bench.speeds()
    if asked.heal:
        for sample in range(asked.samples):
            for method in OURS:
                bench.cut(method, HALF, sample, heal=asked.heal)
    if asked.layers:
        bench.single_layers()
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
    parser.add_argument("--healing", type=int, default=2000, help="sequences to heal on")
    parser.add_argument("--batch", type=int, default=1, help="sequences at a time")
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--shares", type=numbers, default=(0.75, 0.625, 0.5, 0.375))
    parser.add_argument("--methods", type=lambda text: text.split(","), default=METHODS)
    parser.add_argument("--heal", type=int, default=0)
    parser.add_argument("--layers", action="store_true", help="cut one layer at a time too")
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
        self.model = load_llama(asked.model).to(asked.device)
        ids = torch.load(asked.ids)
        chosen = ids["calibration"][:, : asked.calibration]
        self.samples = [self.batches(sample, size=1) for sample in chosen]
        self.healing = self.batches(ids["healing"][: asked.healing], size=4)
        self.held_out = self.batches(ids["held_out"][: asked.held_out])
        self.done = {self._key(row) for row in read_rows([asked.rows] if asked.rows else [])}
        self.moments: dict[int, tuple] = {}
        self.curves: dict[tuple[str, int], list] = {}
        print(json.dumps(provenance(asked.device, "float32", 0)), flush=True)

    def batches(self, rows, size=None):
        """Return rows of ids as batches on the device."""
        parts = rows.long().to(self.asked.device).split(size or self.asked.batch)
        return [{"input_ids": part} for part in parts]

    @staticmethod
    def _key(row) -> tuple:
        names = ("method", "share", "sample", "heal", "layer", "kind")
        return tuple(row.get(name) for name in names)

    def todo(self, row) -> bool:
        """Whether a row is missing and there is time for it."""
        late = time.monotonic() - self.start > 60 * self.asked.minutes
        return not late and self._key(row) not in self.done

    def sweep(self, shares) -> None:
        """Cut by every method at every size, on every sample."""
        for share in shares:
            for sample in range(self.asked.samples):
                for method in self.asked.methods:
                    self.cut(method, share, sample)

    def originals(self) -> None:
        """Score the original."""
        self.reference = token_losses(self.model, self.held_out)
        row = {"method": "original", "share": 1.0, "sample": 0, "heal": 0}
        if self._key(row) not in self.done:
            self.write(row, self.reference, 0.0)

    def made_by(self, method: str, sample: int) -> list:
        """Return the curves of a method on one sample."""
        if sample not in self.moments:
            batches = self.samples[sample]
            moments = calibrate(self.model, batches, seed=sample)
            self.moments[sample] = (moments, query_moments(self.model, batches))
        if (method, sample) not in self.curves:
            parts = attention_parts(self.model)
            self.curves[method, sample] = curves_of(method, parts, *self.moments[sample])
        return self.curves[method, sample]

    def cut(self, method: str, share: float, sample: int, heal: int = 0) -> None:
        """Cut the model by a method, score it and write the row."""
        row = {"method": method, "share": share, "sample": sample, "heal": heal}
        if not self.todo(row):
            return
        begin = time.perf_counter()
        curves = self.made_by(method, sample)
        cuts = cuts_of(method, curves, share)
        if cuts is None:
            return
        made = cut_model(self.model, curves, cuts)
        if heal:
            # Training rounds as every trainer on these devices does; scores are in float32.
            torch.backends.cuda.matmul.allow_tf32 = True
            heal_model(self.model, made, self.healing, steps=heal, seed=sample)
            torch.backends.cuda.matmul.allow_tf32 = False
        row["seconds"] = time.perf_counter() - begin
        row["kv"] = numbers_cached(cuts, curves[0].parts)
        row["ranks"] = [(each.rank, each.value_rank) for each in cuts]
        predicted = predicted_loss(curves, cuts) if method.startswith("ours") else None
        self.write(row, token_losses(made, self.held_out), predicted)

    def single_layers(self) -> None:
        """Cut the keys or the values of one layer alone to a half and a quarter."""
        curves, d = self.made_by("ours", 0), attention_parts(self.model)[0].head_dim
        whole = Cut("latent", d * curves[0].parts.kv_heads, d)
        for share in (0.5, 0.25):
            for layer in range(len(curves)):
                for kind in ("keys", "values"):
                    row = {"method": "one_layer", "share": share, "sample": 0, "heal": 0}
                    row |= {"layer": layer, "kind": kind}
                    if not self.todo(row):
                        continue
                    cuts = [whole] * len(curves)
                    keys = kind == "keys"
                    cuts[layer] = Cut(
                        "latent",
                        int(whole.rank * share) if keys else whole.rank,
                        d if keys else int(d * share),
                    )
                    made = cut_model(self.model, curves, cuts)
                    predicted = predicted_loss(curves, cuts)
                    self.write(row, token_losses(made, self.held_out), predicted)

    def speeds(self) -> None:
        """Time the original and our cuts at half of the cache, in turns."""
        models = {"original": self.model}
        for method in (*OURS, "ours_pairs"):
            curves = self.made_by(method, 0)
            models[method] = cut_model(self.model, curves, cuts_of(method, curves, HALF))
        # Processor time on a CPU: others may use it too.
        clock = time.process_time if self.asked.device == "cpu" else time.perf_counter
        for turn in range(3):
            for method, made in models.items():
                row = {"method": method, "share": HALF, "sample": turn, "heal": -1}
                if self.todo(row):
                    measure_speed(made, 64)
                    speed = measure_speed(made, self.asked.context, clock=clock)
                    self.append(row | {"speed": vars(speed), "clock": clock.__name__})

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
        }
        self.append(row)

    def append(self, row) -> None:
        """Print a row and add it to the file."""
        row |= {"made_by": provenance(self.asked.device, "float32", row["sample"])}
        shown = {name: value for name, value in row.items() if name not in ("made_by", "ranks")}
        print(f"{time.monotonic() - self.start:.0f} s {json.dumps(shown)}", flush=True)
        if self.asked.rows is not None:
            self.asked.rows.parent.mkdir(parents=True, exist_ok=True)
            with self.asked.rows.open("a") as out:
                out.write(json.dumps(row) + "\n")


def numbers_cached(cuts, parts) -> int:
    """Return how many numbers all layers cache for each token."""
    shared = ("latent", "rotated")
    keys = sum(cut.rank * (1 if cut.keys in shared else parts.kv_heads) for cut in cuts)
    return keys + parts.kv_heads * sum(cut.value_rank for cut in cuts)


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
    """Tokenise reviews: train to calibrate and heal, test to judge; no review is used twice."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(asked.model.parent, gguf_file=asked.model.name)

    def reviews(split):
        places = sorted((asked.write_ids / split).glob("*/*.txt"))
        order = torch.randperm(len(places), generator=torch.Generator().manual_seed(0))
        for index in order.tolist():
            text = places[index].read_text(encoding="utf-8").replace("<br />", " ")
            yield [*tokenizer(text).input_ids, tokenizer.eos_token_id]

    def rows(source, count):
        found: list[int] = []
        while len(found) < count * asked.length:
            found += next(source)
        ids = torch.tensor(found[: count * asked.length], dtype=torch.int32)
        return ids.reshape(count, asked.length)

    train, test = reviews("train"), reviews("test")
    torch.save(
        {
            "calibration": torch.stack(
                [rows(train, asked.calibration) for _ in range(asked.samples)]
            ),
            "healing": rows(train, asked.healing),
            "held_out": rows(test, asked.held_out),
        },
        asked.ids,
    )


if __name__ == "__main__":
    run_script(main)
