"""Candidates trained side by side until it is clear which head geometry is best."""

from headwise.geometry import usual
from headwise.trials.candidates import splits
from headwise.trials.prediction import Prediction, predict
from headwise.trials.result import Entrant, Trial
from headwise.trials.settle import trial, trial_of

__all__ = [
    "Entrant",
    "Prediction",
    "Trial",
    "predict",
    "splits",
    "trial",
    "trial_of",
    "usual",
]
