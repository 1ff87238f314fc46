"""Train many models at once, with checkpoints and learning curves."""

from headwise.training.checkpoint import Saving
from headwise.training.curve import CurveRow, curve_steps
from headwise.training.ensemble import Ensemble
from headwise.training.loop import Trained, train, train_one
from headwise.training.settings import AdamW, Fixed, Fresh, Member, Settings

__all__ = [
    "AdamW",
    "CurveRow",
    "Ensemble",
    "Fixed",
    "Fresh",
    "Member",
    "Saving",
    "Settings",
    "Trained",
    "curve_steps",
    "train",
    "train_one",
]
