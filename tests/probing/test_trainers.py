"""RankMonitor as a callback of a Hugging Face and of a Lightning trainer."""

import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch import nn

from headwise.attention import HeadGeometry
from headwise.errors import BadInputError, MissingExtraError
from headwise.models import EncoderStack
from headwise.probing import CollapseWarning, RankMonitor
from hugging_face.tiny_models import inputs, tiny

TOKENS = torch.randn(2, 7, 8, generator=torch.Generator().manual_seed(0))


def stack():
    return EncoderStack(HeadGeometry.standard(8, heads=2), depth=2, mlp_width=16)


def recorder(callbacks):
    """A callback that keeps what reaches the reporters, as W&B's and TensorBoard's would."""

    class Recorder(callbacks.TrainerCallback):
        def __init__(self):
            self.seen = []

        def on_log(self, args, state, control, logs=None, **others):
            self.seen.append((state.global_step, logs))

    return Recorder()


class Driven:
    """The events of a trainer, raised by hand: the trainer itself needs accelerate."""

    def __init__(self, monitor, model):
        self.callbacks = pytest.importorskip(
            "transformers.trainer_callback", reason="needs headwise[hub]"
        )
        self.recorder = recorder(self.callbacks)
        given = [self.callbacks.DefaultFlowCallback(), self.recorder, monitor.transformers()]
        self.handler = self.callbacks.CallbackHandler(given, model, None, None, None)
        self.state, self.control = self.callbacks.TrainerState(), self.callbacks.TrainerControl()
        self.state.max_steps, self.state.logging_steps = 100, 2
        self.args = SimpleNamespace(
            logging_first_step=False,
            logging_strategy="steps",
            eval_strategy="no",
            save_strategy="no",
        )

    def begin(self):
        self.control = self.handler.on_train_begin(self.args, self.state, self.control)

    def step(self):
        self.state.global_step += 1
        self.handler.on_step_begin(self.args, self.state, self.control)
        self.control = self.handler.on_step_end(self.args, self.state, self.control)


def test_a_hugging_face_trainer_looks_before_the_first_step_and_reports_each_look_once():
    driven = Driven(RankMonitor(TOKENS, every=2, on_collapse="stop"), stack())
    driven.begin()
    loss_due = []
    for _ in range(4):
        driven.step()
        loss_due.append(driven.control.should_log)
    assert [step for step, _ in driven.recorder.seen] == [0, 2, 4]
    assert [row["step"] for row in driven.state.log_history] == [0, 2, 4]
    names = {
        f"{kind}/blocks.{i}.attention"
        for kind in ("rank_ratio", "effective_rank_ratio")
        for i in (0, 1)
    }
    assert all(set(logs) - {"epoch"} == names for _, logs in driven.recorder.seen)
    assert loss_due == [False, True, False, True]  # the trainer still logs its loss
    assert not driven.control.should_training_stop


def test_a_hugging_face_trainer_refuses_before_training():
    with pytest.raises(BadInputError, match="Linear is a module in which no attention"):
        Driven(RankMonitor(TOKENS), nn.Linear(8, 8)).begin()


def test_a_hugging_face_trainer_that_resumes_looks_at_the_step_it_resumes_from():
    driven = Driven(RankMonitor(TOKENS, every=2), stack())
    driven.state.global_step, driven.state.epoch = 5, 1.5
    driven.begin()
    driven.step()
    assert [step for step, _ in driven.recorder.seen] == [5, 6]
    assert driven.recorder.seen[0][1]["epoch"] == 1.5


def test_a_hugging_face_trainer_stops_at_a_collapse():
    transformers = pytest.importorskip("transformers", reason="needs headwise[hub]")
    model = tiny(transformers, "bert")
    driven = Driven(RankMonitor(inputs("bert"), every=1, on_collapse="stop"), model)
    driven.begin()
    driven.step()
    assert not driven.control.should_training_stop
    make_uniform(model)
    with pytest.warns(
        CollapseWarning, match=r"bert\.encoder\.layer\.\d\.attention\.self.* at step 2"
    ):
        driven.step()
    assert driven.control.should_training_stop


def test_without_a_handler_only_the_history_is_kept():
    pytest.importorskip("transformers", reason="needs headwise[hub]")
    state, control = SimpleNamespace(global_step=0, epoch=None, log_history=[]), SimpleNamespace()
    control.should_log = False
    RankMonitor(TOKENS).transformers().on_train_begin(None, state, control, model=stack())
    assert [row["step"] for row in state.log_history] == [0]


@torch.no_grad()
def make_uniform(model):
    """Queries of zero: every row of attention is uniform, of rank one."""
    for layer in model.bert.encoder.layer:
        layer.attention.self.query.weight.zero_()
        layer.attention.self.query.bias.zero_()


def test_a_real_hugging_face_trainer_logs_the_ranks_of_a_real_model(tmp_path):
    pytest.importorskip("accelerate", reason="the Trainer of transformers needs accelerate")
    transformers = pytest.importorskip("transformers", reason="needs headwise[hub]")
    given, kept = inputs("bert"), recorder(transformers.trainer_callback)
    model = tiny(transformers, "bert", "sdpa")
    monitor = RankMonitor(given, every=2)
    arguments = transformers.TrainingArguments(
        str(tmp_path), max_steps=6, logging_steps=3, report_to=[], use_cpu=True, disable_tqdm=True
    )
    data = [{"input_ids": row, "labels": row[0] % 2} for row in given["input_ids"]] * 24
    trainer = transformers.Trainer(
        model, arguments, train_dataset=data, callbacks=[kept, monitor.transformers()]
    )
    trainer.train()
    ranked = [
        step for step, logs in kept.seen if any(name.startswith("rank_ratio/") for name in logs)
    ]
    assert ranked == [0, 2, 4, 6]
    assert [step for step, logs in kept.seen if "loss" in logs] == [3, 6]
    in_history = [
        row["step"] for row in trainer.state.log_history if any("rank_ratio/" in n for n in row)
    ]
    assert in_history == ranked


def test_a_lightning_trainer_calls_it(monkeypatch):
    """Against the protocol alone: Lightning itself is no dependency of the tests."""
    package, pytorch = ModuleType("lightning"), ModuleType("lightning.pytorch")
    pytorch.Callback = type("Callback", (), {})
    monkeypatch.setitem(sys.modules, "lightning", package)
    monkeypatch.setitem(sys.modules, "lightning.pytorch", pytorch)
    logged, model = [], stack()
    logger = SimpleNamespace(log_metrics=lambda metrics, step: logged.append((step, metrics)))
    trainer = SimpleNamespace(global_step=0, logger=logger, should_stop=False)
    monitor = RankMonitor(TOKENS, every=2)
    callback = monitor.lightning()
    assert isinstance(callback, pytorch.Callback)
    callback.on_train_start(trainer, model)
    for trainer.global_step in (0, 1, 1, 2, 2):  # two batches to a step
        callback.on_train_batch_end(trainer, model, None, None, 0)
    assert [step for step, _ in logged] == [0, 0, 2, 2]
    assert not trainer.should_stop
    monitor.should_stop = True
    callback.on_train_batch_end(trainer, model, None, None, 1)
    assert trainer.should_stop
    with pytest.raises(BadInputError, match="Linear is a module in which no attention"):
        callback.on_train_start(trainer, nn.Linear(8, 8))


def test_without_lightning_the_error_names_it(monkeypatch):
    for name in ("lightning", "lightning.pytorch", "pytorch_lightning"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match="pip install lightning"):
        RankMonitor(TOKENS).lightning()


def test_without_transformers_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'transformers"):
        RankMonitor(TOKENS).transformers()
