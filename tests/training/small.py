"""One small run that several tests share, also as a separate process that can be killed."""

import sys
from pathlib import Path

from headwise.data import FarthestNeighbour
from headwise.models import NeighbourShape
from headwise.training import Fixed, Fresh, Saving, Settings, train

TASK = FarthestNeighbour(8, 5)
VARIANTS = {
    f"r={rank}": NeighbourShape(width=8, tokens=5, rank=rank, copies=4, mlp_width=16).build
    for rank in (1, 4)
}
PROTOCOLS = {
    "fresh": Fresh(),
    "same": Fixed(48, "same"),
    "shuffled": Fixed(48, "shuffled"),
}


def settings(protocol="fresh", **more):
    given = {"steps": 40, "batch": 12, "seeds": (0, 1), "evaluation": 32, "epoch": 4}
    return Settings(protocol=PROTOCOLS[protocol], **(given | more))


def run(protocol="fresh", saving=None, sink=lambda row: None, **more):
    return train(VARIANTS, TASK, settings(protocol, **more), sink=sink, saving=saving)


class Poisoned:
    """The task, but from a step on the sequences of one member hold something else."""

    def __init__(self, member, step, value):
        self.member, self.step, self.value = member, step, value

    def __getattr__(self, name):
        return getattr(TASK, name)

    def noise(self, count, generator):
        return TASK.noise(count, generator)

    def examine(self, count, generator):
        return TASK.examine(count, generator)

    def loss(self, outputs, *targets):
        return TASK.loss(outputs, *targets)

    def score(self, outputs, *targets):
        return TASK.score(outputs, *targets)

    def batch(self, noise, step):
        batch = TASK.batch(noise, step)
        if int(step) >= self.step:
            batch.targets[0][self.member] = self.value
        return batch


if __name__ == "__main__":
    # Rows are printed as they come, so that the parent knows when to strike.
    path, protocol, steps = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    run(
        protocol,
        Saving(path, "small", seconds=0.0),
        lambda row: print(row.step, flush=True),
        steps=steps,
    )
