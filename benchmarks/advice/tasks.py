"""The tasks: data, model, training, and the tokens an adviser would be shown.

Some are held out: ``imdb``, ``in-context`` and ``svhn`` never served to choose the rank that
tokens ask for; ``digits-denoised`` and ``next-window`` not to choose what regression asks for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch
from benchmarks.advice.datasets import IMDB_LENGTH, read_set
from benchmarks.advice.models import (
    Build,
    Shape,
    image_classifier,
    point_encoder,
    regressor,
    text_classifier,
)
from benchmarks.advice.regression import (
    MaskedPatches,
    NextState,
    NextWindow,
    NoisyPatches,
    token_regressor,
)
from benchmarks.advice.text_sets import (
    CODE_LENGTH,
    LIBRARIES,
    SECTION_LENGTH,
    SECTIONS,
    VOCABULARY,
)
from torch import Tensor
from torch.nn.functional import pad, unfold

from headwise.attention import HeadGeometry
from headwise.data import (
    Batch,
    Curriculum,
    FarthestNeighbour,
    InContext,
    Planted,
    Samples,
    Task,
    Uniform,
)
from headwise.models import Images
from headwise.models.incontext import interleaved
from headwise.randomness import stream

#: The head dimensions of every sweep, as far as the width allows.
RANKS = (1, 2, 4, 8, 16, 32, 64)

Measure = Literal["accuracy", "error"]
SweepName = Literal["heads", "width", "half", "single", "values"]


@dataclass(frozen=True)
class Training:
    """How a task is trained; the same for every geometry."""

    steps: int
    batch: int
    rate: float
    decay: float = 0.05
    evaluation: int = 4096


@dataclass(frozen=True, eq=False)
class Loaded:
    """A task with its data: what trains, what the model is shown, what an adviser is shown.

    ``tokens`` are vectors (b, n, c) or word numbers (b, n).
    """

    task: Task
    examples: tuple[Tensor, ...]
    tokens: Tensor
    vocabulary: int = 0


@dataclass(frozen=True)
class Bench:
    """One task of the judging."""

    name: str
    measure: Measure
    judged: bool
    shape: Shape
    training: Training
    build: Build
    load: Callable[[Path, str], Loaded]

    def geometries(self, sweep: SweepName) -> list[HeadGeometry]:
        """The geometries of a sweep, smallest head dimension first."""
        width, heads = self.shape.width, self.shape.heads
        if sweep == "heads":
            return [HeadGeometry.free(width, heads, rank) for rank in self.ranks]
        if sweep in ("width", "half"):
            together = width if sweep == "width" else heads * self.ranks[-1] // 2
            return [HeadGeometry.free(width, together // rank, rank) for rank in self.ranks]
        if sweep == "values":
            return [HeadGeometry(width, heads, heads, r, width // heads) for r in self.ranks]
        return [HeadGeometry(width, 1, 1, rank, width) for rank in self.ranks]

    @property
    def ranks(self) -> tuple[int, ...]:
        """Head dimensions up to the width or 64."""
        return tuple(rank for rank in RANKS if rank <= self.shape.width)

    def shortened(self, steps: int) -> Bench:
        """The same task trained for fewer steps: for tests of the machinery."""
        return replace(self, training=replace(self.training, steps=steps, batch=16, evaluation=64))


SHOWN = 64  # sequences that the model and the adviser are shown


def _samples(x: Tensor, y: Tensor, held: tuple[Tensor, Tensor], device: str) -> Samples:
    return Samples(_batch(x, y, device), _batch(*held, device))


def _batch(x: Tensor, y: Tensor, device: str) -> Batch:
    return Batch((x.to(device),), (y.to(device),))


# ── images ──────────────────────────────────────────────────────────────────────────────────

DIGITS_TRAINED = 997


def _digits(patch: int) -> Callable[[Path, str], Loaded]:
    def load(folder: Path, device: str) -> Loaded:
        from headwise.data.images import digits, standardised

        found = digits()
        order = torch.randperm(len(found.labels), generator=stream(0, "digits split"))
        images, labels = standardised(found.images).float()[order], found.labels[order]
        held = (images[DIGITS_TRAINED:], labels[DIGITS_TRAINED:])
        kept, known = images[:DIGITS_TRAINED], labels[:DIGITS_TRAINED]
        shown = kept[:SHOWN]
        return Loaded(_samples(kept, known, held, device), (shown,), _patches(shown, patch))

    return load


def _patches(images: Tensor, side: int) -> Tensor:
    return unfold(images, kernel_size=side, stride=side).mT.contiguous()


@dataclass(frozen=True, eq=False)
class Shifted(Samples):
    """Images mirrored at random and shifted by up to ``reach`` pixels, edges filled with zeros.

    With ``orientations`` 1 instead of 2 nothing is mirrored, as digits must not be.
    """

    reach: int = 3
    orientations: int = 2

    def noise(self, count: int, generator: torch.Generator) -> Tensor:
        """Which image, mirrored or not, and how far down and right."""
        sizes = (
            len(self.trained.targets[0]),
            self.orientations,
            2 * self.reach + 1,
            2 * self.reach + 1,
        )
        drawn = [
            torch.randint(size, (count,), generator=generator, device=generator.device)
            for size in sizes
        ]
        return torch.stack(drawn, dim=-1)

    def batch(self, noise: Tensor, step: Tensor | None = None) -> Batch:
        """The chosen images, moved; pixels are looked up in the images with their margins."""
        padded = self.trained.inputs[0]
        channels, side = padded.shape[1], padded.shape[2] - 2 * self.reach
        which, mirrored, down, right = noise.unsqueeze(-1).unsqueeze(-1).unbind(-3)
        line = torch.arange(side, device=noise.device)
        rows = down + line.unsqueeze(-1)
        columns = right + torch.where(mirrored.bool(), side - 1 - line, line)
        planes = which.unsqueeze(-3) * channels + torch.arange(channels, device=noise.device).view(
            channels, 1, 1
        )
        places = (planes * padded.shape[2] + rows.unsqueeze(-3)) * padded.shape[3]
        chosen = padded.flatten()[places + columns.unsqueeze(-3)]
        return Batch((chosen,), (self.trained.targets[0][noise[..., 0]],))


def _pictures(name: str, orientations: int) -> Callable[[Path, str], Loaded]:
    def load(folder: Path, device: str) -> Loaded:
        stored = read_set(folder, name)
        pixels = {part: torch.from_numpy(stored[f"x_{part}"]).float() for part in ("train", "test")}
        mean = pixels["train"].mean((0, 2, 3), keepdim=True)
        spread = pixels["train"].std((0, 2, 3), keepdim=True)
        x, tested = ((pixels[part] - mean) / spread for part in ("train", "test"))
        y, known = (torch.from_numpy(stored[f"y_{part}"]).long() for part in ("train", "test"))
        reach = Shifted.reach
        margins = _batch(pad(x, (reach, reach, reach, reach)), y, device)
        task = Shifted(margins, _batch(tested, known, device), orientations=orientations)
        return Loaded(task, (x[:SHOWN],), _patches(x[:SHOWN], 4))

    return load


# ── text, regression, neighbours ────────────────────────────────────────────────────────────


def _texts(name: str) -> Callable[[Path, str], Loaded]:
    def load(folder: Path, device: str) -> Loaded:
        stored = {
            key: torch.from_numpy(a.astype("int64")) for key, a in read_set(folder, name).items()
        }
        held = (stored["x_test"], stored["y_test"])
        task = _samples(stored["x_train"], stored["y_train"], held, device)
        shown = stored["x_train"][:SHOWN]
        return Loaded(task, (shown,), shown, vocabulary=VOCABULARY)

    return load


def _in_context(task: InContext) -> Callable[[Path, str], Loaded]:
    def load(folder: Path, device: str) -> Loaded:
        shown = task.examine(SHOWN, stream(0, "shown")).inputs
        return Loaded(task, shown, interleaved(*shown))

    return load


def _restored_digits(
    kind: type[MaskedPatches] | type[NoisyPatches],
) -> Callable[[Path, str], Loaded]:
    def load(folder: Path, device: str) -> Loaded:
        found = _digits(2)(folder, "cpu")
        images = found.task.trained.inputs[0], found.task.held_out.inputs[0]
        task = kind(*(_patches(part, 2).float().to(device) for part in images))
        shown = task.batch(task.noise(SHOWN, stream(0, "shown")), None).inputs
        # Nobody shows an adviser what is hidden as zeros; noisy tokens are what there is.
        tokens = shown[0] if isinstance(task, NoisyPatches) else task.trained[:SHOWN]
        return Loaded(task, shown, tokens)

    return load


def _next_token_of(task: NextState | NextWindow) -> Callable[[Path, str], Loaded]:
    def load(folder: Path, device: str) -> Loaded:
        shown = task.examine(SHOWN, stream(0, "shown")).inputs
        return Loaded(task, shown, shown[0])

    return load


def _farthest(width: int, tokens: int, points: Uniform | Planted) -> Callable[[Path, str], Loaded]:
    def load(folder: Path, device: str) -> Loaded:
        task = FarthestNeighbour(width, tokens, points)
        shown = task.examine(SHOWN * 4, stream(0, "shown")).inputs
        return Loaded(task, shown, shown[0])

    return load


# ── the list ────────────────────────────────────────────────────────────────────────────────


def _image_bench(name: str, patch: int, training: Training) -> Bench:
    images = Images(size=8, patch=patch, channels=1)
    shape = Shape(64, depth=2, mlp_width=128, heads=4, tokens=images.tokens)
    build = image_classifier(shape, images)
    return Bench(name, "accuracy", False, shape, training, build, _digits(patch))


def _picture_bench(name: str, *, classes: int, held_out: int, orientations: int) -> Bench:
    images = Images(size=32, patch=4, channels=3)
    shape = Shape(128, 5, mlp_width=256, heads=4, tokens=images.tokens, attention="bf16")
    training = Training(2_500, 128, 1e-3, evaluation=held_out)
    build, load = image_classifier(shape, images, classes), _pictures(name, orientations)
    return Bench(name, "accuracy", name == "svhn", shape, training, build, load)


def _imdb_bench() -> Bench:
    shape = Shape(128, 2, mlp_width=256, heads=4, tokens=IMDB_LENGTH, attention="bf16")
    training = Training(800, 128, 5e-4, evaluation=8_000)
    build = text_classifier(shape, VOCABULARY)
    return Bench("imdb", "accuracy", True, shape, training, build, _texts("imdb"))


def _text_bench(name: str, stored: str, length: int, classes: int) -> Bench:
    shape = Shape(128, 2, mlp_width=256, heads=4, tokens=length)
    training = Training(800, 128, 5e-4, evaluation=2_500)
    build = text_classifier(shape, VOCABULARY, classes)
    return Bench(name, "accuracy", True, shape, training, build, _texts(stored))


def _in_context_bench() -> Bench:
    task = InContext(dimensions=6, points=20, curriculum=Curriculum(3, 10, every=300.0))
    shape = Shape(64, depth=6, mlp_width=128, heads=4, tokens=2 * task.points)
    training = Training(8_000, 128, 1e-3, decay=0.0, evaluation=8_192)
    build = regressor(shape, task.dimensions)
    return Bench("in-context", "error", True, shape, training, build, _in_context(task))


def _short_in_context_bench() -> Bench:
    task = InContext(dimensions=4, points=12, curriculum=Curriculum(2, 6, every=300.0))
    shape = Shape(32, depth=4, mlp_width=64, heads=4, tokens=2 * task.points)
    training = Training(5_000, 64, 1e-3, decay=0.0, evaluation=8_192)
    build = regressor(shape, task.dimensions)
    return Bench("in-context-4", "error", False, shape, training, build, _in_context(task))


def _next_state_bench() -> Bench:
    task = NextState(dimensions=3, states=16)
    shape = Shape(32, depth=4, mlp_width=64, heads=4, tokens=task.states)
    training = Training(3_000, 64, 1e-3, decay=0.0, evaluation=8_192)
    build = token_regressor(shape, task.dimensions, causal=True)
    return Bench("next-state", "error", False, shape, training, build, _next_token_of(task))


def _next_window_bench() -> Bench:
    task = NextWindow(windows=16)
    shape = Shape(32, depth=3, mlp_width=64, heads=4, tokens=task.windows)
    training = Training(3_000, 64, 1e-3, decay=0.0, evaluation=8_192)
    build = token_regressor(shape, task.size, causal=True)
    return Bench("next-window", "error", True, shape, training, build, _next_token_of(task))


def _restored_bench(
    name: str, kind: type[MaskedPatches] | type[NoisyPatches], *, held_out: bool
) -> Bench:
    shape = Shape(64, depth=2, mlp_width=128, heads=4, tokens=16)
    training = Training(2_000, 64, 3e-3, evaluation=800)
    build = token_regressor(shape, 4, hides=kind is MaskedPatches)
    return Bench(name, "error", held_out, shape, training, build, _restored_digits(kind))


def _isotropic_bench(width: int, training: Training) -> Bench:
    shape = Shape(width, depth=1, mlp_width=4 * width, heads=4, tokens=16)
    build, load = point_encoder(shape), _farthest(width, 16, Uniform())
    return Bench(f"farthest-{width}", "error", False, shape, training, build, load)


def _planted_bench(effective_dimension: int) -> Bench:
    shape = Shape(32, depth=1, mlp_width=128, heads=4, tokens=16)
    training = Training(2_500, 64, 0.01, decay=0.0)
    build, load = point_encoder(shape), _farthest(32, 16, Planted(float(effective_dimension)))
    name = f"farthest-planted-{effective_dimension}"
    return Bench(name, "error", False, shape, training, build, load)


def _all() -> dict[str, Bench]:
    found = [
        _imdb_bench(),
        _text_bench("package-sections", "packages", SECTION_LENGTH, len(SECTIONS)),
        _text_bench("code-libraries", "libraries", CODE_LENGTH, len(LIBRARIES)),
        _in_context_bench(),
        _short_in_context_bench(),
        _next_state_bench(),
        _next_window_bench(),
        _restored_bench("digits-masked", MaskedPatches, held_out=False),
        _restored_bench("digits-denoised", NoisyPatches, held_out=True),
        _picture_bench("cifar10", classes=10, held_out=3_000, orientations=2),
        _picture_bench("svhn", classes=10, held_out=2_000, orientations=1),
        _picture_bench("cifar100", classes=20, held_out=2_000, orientations=2),
        _isotropic_bench(64, Training(15_000, 128, 0.01, decay=0.0)),
        _isotropic_bench(32, Training(2_500, 64, 0.01, decay=0.0)),
        *(_planted_bench(effective_dimension) for effective_dimension in (4, 8, 16)),
        _image_bench("digits-patches", 2, Training(1_000, 32, 3e-3, evaluation=800)),
        _image_bench("digits-pixels", 1, Training(1_200, 32, 3e-3, evaluation=800)),
    ]
    return {bench.name: bench for bench in found}


#: Every task by name, the most telling first.
BENCHES = _all()
