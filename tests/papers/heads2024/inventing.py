"""Answers as training would give them, with losses that a function says."""

from headwise.experiments.training_run import TrainingRun
from headwise.papers.catalogue import chosen
from headwise.papers.exhibit import Answers, Scale
from headwise.runs import Provenance, Record

(
    FIGURE_RANK_DEPTH,
    FIGURE_WHAT_IT_LEARNS,
    FIGURE_SATURATION,
    FIGURE_POSITIONS,
    FIGURE_ROLE_OF_N,
    FIGURE_ROLE_OF_D,
    FIGURE_LARGE_N,
    FIGURE_IN_CONTEXT,
    FIGURE_LOWER_BOUND,
    FIGURE_MAJORITY_VOTE,
    FIGURE_CONSTRUCTION,
    TABLE_MODELS,
) = EXHIBITS = chosen(["heads2024"])

#: The exhibits that train something.
TRAINED = [e for e in EXHIBITS if any(isinstance(s, TrainingRun) for s in e.specs(Scale.PAPER))]
SOURCE = Provenance("0", "0", "cpu", None, 0.0, "", None)


def invented(spec, loss):
    """An answer as training would give it, with losses that a function says."""
    rows = []
    for seed in spec.seeds:
        value = loss(spec) * (1 + 0.01 * seed)
        rows.append(
            {
                "seed": seed,
                "train_loss": value,
                "best_train_loss": value,
                "test_loss": 1.2 * value,
                "test_score": value,
                "diverged_at": None,
                "trivial": 0.9,
                "angle": 179.0,
                "form_size": 100.0,
                "curve_step": [1],
                "curve_train": [1.0],
                "curve_test": [1.0],
            }
        )
    return Record(spec.key, spec.content, tuple(rows), SOURCE)


def presented(exhibit, scale, loss):
    records = tuple(invented(spec, loss) for spec in exhibit.specs(scale))
    return exhibit.present(Answers(scale, records))
