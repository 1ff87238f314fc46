"""RankMonitor as a callback of other people's training loops; each is imported when asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headwise.errors import MissingExtraError, needs_extra

if TYPE_CHECKING:
    from headwise.probing.monitor import RankMonitor

#: The two names under which Lightning is installed.
LIGHTNING = ("lightning.pytorch", "pytorch_lightning")


def lightning_callback(monitor: RankMonitor) -> Any:
    """A ``lightning.pytorch.Callback`` that looks after each training batch."""
    base = _lightning()

    class LightningRanks(base):
        """Logs ranks, and asks the trainer to stop when the monitor does."""

        def on_train_batch_end(self, trainer: Any, module: Any, *batch: Any) -> None:
            """Look if the step is due."""
            for row in monitor(module, trainer.global_step):
                if trainer.logger is not None:
                    trainer.logger.log_metrics(row.as_metrics(), step=row.step)
            trainer.should_stop = trainer.should_stop or monitor.should_stop

    return LightningRanks()


def transformers_callback(monitor: RankMonitor) -> Any:
    """A ``transformers.TrainerCallback`` that looks after each optimiser step."""
    try:
        from transformers import TrainerCallback
    except ImportError:
        raise needs_extra("transformers", "hub") from None

    class TrainerRanks(TrainerCallback):
        """Keeps ranks in the trainer's log history, and stops it when the monitor does."""

        def on_step_end(
            self, args: Any, state: Any, control: Any, model: Any = None, **others: Any
        ) -> Any:
            """Look if the step is due."""
            for row in monitor(model, state.global_step):
                state.log_history.append(row.as_metrics() | {"step": row.step})
            control.should_training_stop = control.should_training_stop or monitor.should_stop
            return control

    return TrainerRanks()


def _lightning() -> Any:
    for name in LIGHTNING:
        try:
            return import_module(name).Callback
        except ImportError:
            continue
    raise MissingExtraError(
        "this needs the package lightning", hint="install it with: pip install lightning"
    )
