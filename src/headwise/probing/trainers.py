"""RankMonitor as a callback of other people's training loops; each is imported when asked for."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from types import FrameType
from typing import TYPE_CHECKING, Any

from headwise.errors import MissingExtraError, needs_extra

if TYPE_CHECKING:
    from headwise.probing.monitor import LayerRank, RankMonitor

#: The two names under which Lightning is installed.
LIGHTNING = ("lightning.pytorch", "pytorch_lightning")


def lightning_callback(monitor: RankMonitor) -> Any:
    """A ``lightning.pytorch.Callback`` that looks after each training batch."""
    base = _lightning()

    class LightningRanks(base):
        """Logs ranks, and asks the trainer to stop when the monitor does."""

        def on_train_start(self, trainer: Any, module: Any) -> None:
            """The first look: a model that cannot be read is refused before it is trained."""
            self._log(trainer, monitor.look(module, trainer.global_step))

        def on_train_batch_end(self, trainer: Any, module: Any, *batch: Any) -> None:
            """Look if the step is due."""
            self._log(trainer, monitor(module, trainer.global_step))
            trainer.should_stop = trainer.should_stop or monitor.should_stop

        def _log(self, trainer: Any, rows: Sequence[LayerRank]) -> None:
            if trainer.logger is None:
                return
            for row in rows:
                trainer.logger.log_metrics(row.as_metrics(), step=row.step)

    return LightningRanks()


def transformers_callback(monitor: RankMonitor) -> Any:
    """A ``transformers.TrainerCallback`` that looks after each optimiser step."""
    try:
        from transformers import TrainerCallback
    except ImportError:
        raise needs_extra("transformers", "hub") from None

    class TrainerRanks(TrainerCallback):
        """Logs ranks as the trainer logs losses, and stops it when the monitor does."""

        def on_train_begin(
            self, args: Any, state: Any, control: Any, model: Any = None, **others: Any
        ) -> None:
            """The first look: a model that cannot be read is refused before it is trained."""
            self._log(args, state, control, monitor.look(model, state.global_step))

        def on_step_end(
            self, args: Any, state: Any, control: Any, model: Any = None, **others: Any
        ) -> Any:
            """Look if the step is due."""
            self._log(args, state, control, monitor(model, state.global_step))
            control.should_training_stop = control.should_training_stop or monitor.should_stop
            return control

        def _log(self, args: Any, state: Any, control: Any, rows: Sequence[LayerRank]) -> None:
            if not rows:
                return
            logs = {name: value for row in rows for name, value in row.as_metrics().items()}
            if state.epoch is not None:
                logs["epoch"] = state.epoch
            state.log_history.append(logs | {"step": state.global_step})
            # Every reporter listens to this event; it also ends a wish to log, here the loss.
            handler, loss_is_due = _calling_handler(self), control.should_log
            if handler is not None:
                handler.on_log(args, state, control, logs)
            control.should_log = loss_is_due

    return TrainerRanks()


def _calling_handler(callback: Any) -> Any:
    """Return the trainer's handler of callbacks from the calling frames, or None.

    A callback receives the model and the state but no trainer. The reporters (W&B, TensorBoard) are
    other callbacks, which only the handler knows.
    """
    from transformers.trainer_callback import CallbackHandler

    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        caller = frame.f_locals.get("self")
        if isinstance(caller, CallbackHandler) and callback in caller.callbacks:
            return caller
        frame = frame.f_back
    return None


def _lightning() -> Any:
    for name in LIGHTNING:
        try:
            return import_module(name).Callback
        except ImportError:
            continue
    raise MissingExtraError(
        "this needs the package lightning", hint="install it with: pip install lightning"
    )
