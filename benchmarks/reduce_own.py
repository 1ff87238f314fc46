"""Train a vision transformer and a language model of this project, cut them, and judge the cuts.

    python -m benchmarks.reduce_own vit --data local/realdata --epochs 20 --device cuda --out FOLDER
    python -m benchmarks.reduce_own lm --data aclImdb --steps 1500 --device cuda --out FOLDER

``vit`` reads packed CIFAR-10 (benchmarks.packed_data) and is judged by accuracy; ``vit-digits``
reads the embedded digits. ``lm`` reads prose as bytes (an IMDB folder, or a file of bytes made with
``--pack``) and is judged by its loss in nats a byte. FOLDER gets the trained weights and a row for
each method, size and calibration sample; a run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import copy
import json
import lzma
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch
from benchmarks.recording import provenance, read_rows
from benchmarks.reduce_baselines import METHODS, curves_of, cuts_of
from benchmarks.scripts import run_script
from torch import nn
from torch.nn.functional import cross_entropy, pad

from headwise.attention import Attention, HeadGeometry, LearnedAdditive, mha
from headwise.models.classifiers import Images
from headwise.models.decoder import Decoder
from headwise.models.rank_paper import AsLinear, FusedSoftmax, VisionModel
from headwise.models.transformer import EncoderStack, Style
from headwise.reduction.calibration import Probe, drawn_loss, gather
from headwise.reduction.families import AttentionParts
from headwise.reduction.layers import with_maps
from headwise.reduction.planning import predicted_loss
from headwise.reduction.smaller_model import maps_of

SHARES = (0.75, 0.625, 0.5, 0.375, 0.25)

#: Bytes that the language model sees at a time.
CONTEXT = 256


class Vit:
    """Images in, class out; judged by the share of right answers."""

    name, measure = "vit", "accuracy"

    def __init__(self, asked) -> None:
        from benchmarks.packed_data import read

        arrays = read("cifar10", asked.data)
        self.load(asked, {name: torch.from_numpy(each) for name, each in arrays.items()})
        self.batch, self.rate = 256, 1e-3
        self.model = VisionModel().build(HeadGeometry.standard(192, heads=6), seed=asked.seed)

    def load(self, asked, parts) -> None:
        """Standardise the images; the last of the training set calibrate and are not trained on."""
        images = parts["x_train"].float()
        middle, size = images.mean((0, 2, 3), keepdim=True), images.std((0, 2, 3), keepdim=True)
        shown = [
            (((parts[f"x_{part}"].float() - middle) / size), parts[f"y_{part}"].long())
            for part in ("train", "test")
        ]
        kept = len(images) // 10
        self.train = tuple(each[:-kept].to(asked.device) for each in shown[0])
        self.calibration = shown[0][0][-kept:].to(asked.device)
        self.test = tuple(each.to(asked.device) for each in shown[1])
        self.asked, self.shift = asked, images.shape[-1] // 8
        self.steps = asked.epochs * (len(self.train[1]) // 256 + 1)

    def loss(self, model, generator):
        """Return the loss on a batch: shifted by some pixels, and mirrored by chance."""
        images, labels = self.train
        drawn = torch.randint(len(labels), (self.batch,), generator=generator)
        drawn = drawn.to(labels.device)
        wide = pad(images[drawn], [self.shift] * 4)
        row, column = torch.randint(2 * self.shift + 1, (2,), generator=generator).tolist()
        side = images.shape[-1]
        batch = wide[..., row : row + side, column : column + side]
        if self.name == "vit" and torch.rand((), generator=generator) < 0.5:
            batch = batch.flip(-1)
        return cross_entropy(model(batch).float(), labels[drawn], label_smoothing=0.1)

    def calibrating(self, sample):
        """Return batches of images that were not trained on."""
        size = len(self.calibration) // self.asked.samples
        return self.calibration[sample * size : (sample + 1) * size][:512].split(64)

    def rows(self, logits):
        """Return predictions as rows."""
        return logits

    def score(self, model):
        """Return 1 or 0 for each test image."""
        images, labels = self.test
        found = torch.cat([model(each).argmax(-1) for each in images.split(1000)])
        return (found == labels).double().cpu()


class Digits(Vit):
    """The same for 8 × 8 digits: small enough for a CPU."""

    name = "vit-digits"

    def __init__(self, asked) -> None:
        from headwise.data.classification import digits_as_images

        source = digits_as_images()
        parts = {}
        for key, own in (("train", source.train), ("test", source.test)):
            parts |= {f"x_{key}": own.inputs[0], f"y_{key}": own.labels}
        self.load(asked, parts)
        self.batch, self.rate = 64, 1e-3
        self.steps = asked.epochs * (len(self.train[1]) // 64 + 1)
        made = VisionModel(64, depth=4, mlp_width=128, images=Images(8, 2, 1))
        self.model = made.build(HeadGeometry.standard(64, heads=4), seed=asked.seed)


class Language:
    """Bytes in, scores of the next byte out; judged by the loss."""

    name, measure = "lm", "loss"

    def __init__(self, asked) -> None:
        self.asked, self.batch, self.rate, self.steps = asked, asked.batch, 1e-3, asked.steps
        text = torch.from_numpy(np.frombuffer(prose(asked.data), dtype=np.uint8).copy())
        held = len(text) // 20
        self.train, self.calibration, self.test = (
            each[: len(each) // CONTEXT * CONTEXT].view(-1, CONTEXT).to(asked.device)
            for each in (text[: -2 * held], text[-2 * held : -held], text[-held:])
        )
        self.test = self.test[: asked.judged]
        geometry = HeadGeometry.standard(asked.width, heads=4)
        style = Style(
            initialisation=AsLinear(asked.seed), attention=partial(mha, weighting=FusedSoftmax())
        )
        position = LearnedAdditive(CONTEXT, asked.width, asked.seed)
        stack = EncoderStack(
            geometry, position, depth=asked.depth, mlp_width=4 * asked.width, style=style
        )
        self.model = Decoder(stack, vocabulary=256, seed=asked.seed)

    def loss(self, model, generator):
        """Return the loss on some pieces of text."""
        drawn = torch.randint(len(self.train), (self.batch,), generator=generator)
        ids = self.train[drawn.to(self.train.device)].long()
        return cross_entropy(model(ids)[:, :-1].float().mT, ids[:, 1:])

    def calibrating(self, sample):
        """Return batches of text that was not trained on."""
        return self.calibration[64 * sample : 64 * (sample + 1)].long().split(16)

    def rows(self, logits):
        """Return predictions as rows."""
        return logits.flatten(0, 1)

    def score(self, model):
        """Return the loss of each piece of test text."""
        found = []
        for ids in self.test.long().split(64):
            each = cross_entropy(model(ids)[:, :-1].float().mT, ids[:, 1:], reduction="none")
            found.append(each.mean(1).double().cpu())
        return torch.cat(found)


def prose(place: Path) -> bytes:
    """Return text of reviews as bytes, in a drawn order."""
    if place.is_file():
        return lzma.decompress(place.read_bytes())
    places = sorted((place / "train").glob("*/*.txt"))
    order = torch.randperm(len(places), generator=torch.Generator().manual_seed(1)).tolist()
    texts = [places[index].read_bytes().replace(b"<br />", b" ") for index in order]
    return b"\n\n".join(texts)


def train(task) -> nn.Module:
    """Train by AdamW with a warm-up and half a cosine; products in bfloat16 on a GPU."""
    asked, model = task.asked, task.model.to(task.asked.device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=task.rate, weight_decay=0.05)
    rule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, task.rate, total_steps=task.steps, pct_start=0.1
    )
    generator = torch.Generator().manual_seed(asked.seed)
    low = torch.autocast("cuda", torch.bfloat16, enabled=asked.device == "cuda")
    begin = time.monotonic()
    for step in range(task.steps):
        with low:
            loss = task.loss(model, generator)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        rule.step()
        if step % 100 == 0 or step == task.steps - 1:
            print(f"{time.monotonic() - begin:.0f} s step {step} loss {loss:.3f}", flush=True)
    return model


def parts_of(model) -> list[AttentionParts]:
    """Return the maps of every attention layer."""
    return [
        AttentionParts(p.query, p.key, p.value, p.output, g.heads, g.kv_heads)
        for each in model.modules()
        if isinstance(each, Attention)
        for p, g in [(each.projection, each.geometry)]
    ]


def calibrated(task, model, sample) -> tuple:
    """Return the moments of every layer, and of its queries."""
    generator = torch.Generator(task.asked.device).manual_seed(sample)
    parts, queries, batches = parts_of(model), [], task.calibrating(sample)

    def probe(index):
        batch = batches[index]
        sizes = batch.shape if batch.ndim == 2 else (len(batch), model.images.tokens)
        real = torch.ones(sizes, dtype=torch.bool, device=task.asked.device)
        return Probe(real, lambda: drawn_loss(task.rows(model(batch)), generator))

    def keep(_, given, output):
        rows = output.flatten(0, -2).unflatten(-1, (parts[0].heads, -1)).double()
        queries.append((torch.einsum("nhd,nhe->hde", rows, rows) / len(rows)).cpu())

    hooks = [part.query.register_forward_hook(keep) for part in parts]
    moments = gather(model, parts, len(batches), probe)
    for each in hooks:
        each.remove()
    depth = len(parts)
    return moments, [sum(queries[layer::depth]) / len(batches) for layer in range(depth)]


def cut(model, curves, cuts):
    """Return a copy with smaller attention layers."""
    made = copy.deepcopy(model)
    for block, old, curve, each in zip(
        made.stack.blocks, model.stack.blocks, curves, cuts, strict=True
    ):
        block.attention = with_maps(old.attention, *maps_of(curve, each))
    return made


@torch.no_grad()
def judge(task, model, rows_file: Path) -> None:
    """Cut by every method at every size, on every sample."""
    asked = task.asked
    done = {(row["method"], row["share"], row["sample"]) for row in read_rows([rows_file])}
    before = task.score(model)
    names = ["original", *(each for each in METHODS if not each.startswith("ours_"))]
    for sample in range(asked.samples):
        with torch.enable_grad():
            moments, queries = calibrated(task, model, sample)
        for method in names if sample == 0 else names[1:]:
            curves = curves_of(method, parts_of(model), moments, queries)
            for share in SHARES if method != "original" else (1.0,):
                cuts = (
                    None
                    if method == "original"
                    else cuts_of(method, curves, share, step=asked.step)
                )
                if (method, share, sample) in done or (cuts is None and method != "original"):
                    continue
                made = model if cuts is None else cut(model, curves, cuts)
                change = (after := task.score(made)) - before
                row = {"model": task.name, "method": method, "share": share, "sample": sample}
                row |= {
                    task.measure: float(after.mean()),
                    "above": float(change.mean()),
                    "above_error": float(change.std() / len(change) ** 0.5),
                    "predicted": predicted_loss(curves, cuts) if method == "ours" else None,
                    "ranks": [(each.rank, each.value_rank) for each in cuts or ()],
                    "made_by": provenance(asked.device, "float32", asked.seed),
                }
                shown = {name: row[name] for name in ("method", "share", "sample", task.measure)}
                print(json.dumps(shown), flush=True)
                with rows_file.open("a") as out:
                    out.write(json.dumps(row) + "\n")


def main() -> None:
    """Train unless it is done, then judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("vit", "vit-digits", "lm"))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pack", type=Path, help="write the prose of --data here and stop")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--judged", type=int, default=1000, help="pieces of test text")
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--step", type=int, default=4, help="ranks are multiples of it")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    if asked.pack is not None:
        asked.pack.write_bytes(lzma.compress(prose(asked.data)))
        return
    asked.out.mkdir(parents=True, exist_ok=True)
    kinds = {"vit": Vit, "vit-digits": Digits, "lm": Language}
    task = kinds[asked.what](asked)
    weights = asked.out / f"{asked.what}.pt"
    if weights.is_file():
        task.model.load_state_dict(torch.load(weights))
        task.model.to(asked.device)
    else:
        torch.save(train(task).state_dict(), weights)
    judge(task, task.model.eval(), asked.out / f"{asked.what}.jsonl")


if __name__ == "__main__":
    run_script(main)
