"""Ctrl-C at any moment of commands that read, compute, train, draw, listen or have workers.

A command that Ctrl-C ends must end as one that was interrupted (or was done), in one line, without
a traceback and without children. A store that it wrote must open.
"""

from __future__ import annotations

import atexit
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
from benchmarks.attack.clusters import members

from headwise.errors import HeadwiseError
from headwise.runs import Store

#: Seconds that a command may take to end after Ctrl-C.
PATIENCE = 120.0

#: Commands, each with the seconds that it may run. STORE, HERE, MATRIX, MODEL and TEXT are paths.
COMMANDS = (
    (12.0, "law --length 4096"),
    (12.0, "bound --width 64 --rank 8 --error 0.1"),
    (15.0, "advise --length 256 --width 128 --html HERE/advice.html"),
    (15.0, "demo --tokens 600"),
    (15.0, "rank MATRIX --tolerance relative:1e-9"),
    (40.0, "reproduce rank2026/figure_2c --scale miniature --store STORE"),
    (40.0, "reproduce rank2026/figure_2c --scale miniature --store STORE --cluster local:2"),
    (40.0, "trial digits --candidates 16x4,4x16 --steps 60 --seeds 2 --folder HERE/trial"),
    (40.0, "scan MODEL --random --length 64 --store STORE --html HERE/scan.html"),
    (40.0, "reduce MODEL --text TEXT --keep 0.9 --length 32 --out HERE/smaller"),
    (15.0, "serve --port 0 --no-browser --store STORE"),
)

#: What Python runs before our first line, and while it ends.
OUTSIDE = re.compile(
    r"headwise/(__init__|__main__)\.py|<frozen|/runpy\.py|/threading\.py|/site\.py"
)


@cache
def _files() -> dict[str, str]:
    """Inputs of the commands, made once."""
    folder = Path(tempfile.mkdtemp(prefix="attack-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    np.save(folder / "matrix.npy", np.random.default_rng(0).random((12, 500, 500)))
    (folder / "text.txt").write_text("the quick brown fox jumps over the lazy dog. " * 400)
    found = {"MATRIX": str(folder / "matrix.npy"), "TEXT": str(folder / "text.txt")}
    with suppress(ImportError):
        found["MODEL"] = _model(folder / "model")
    return found


def _model(folder: Path) -> str:
    """A small decoder with a tokenizer of characters."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {word: at for at, word in enumerate(["[UNK]", *map(chr, range(32, 127))])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    config = transformers.LlamaConfig(
        vocab_size=len(words),
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return str(folder)


def interrupt(dice: random.Random) -> str | None:
    """Send Ctrl-C to a command and its children at a random moment; say what is wrong."""
    longest, line = dice.choice(COMMANDS)
    with tempfile.TemporaryDirectory() as folder:
        places = {"STORE": f"{folder}/results.db", "HERE": folder} | _files()
        if "MODEL" in line and "MODEL" not in places:
            return None
        words = [re.sub("[A-Z]{4,}", lambda found: places[found[0]], w) for w in line.split()]
        process = subprocess.Popen(
            [sys.executable, "-m", "headwise", *words],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # A background job inherits an ignored SIGINT, and Python then leaves it ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        with suppress(subprocess.TimeoutExpired):
            process.wait(dice.uniform(0.2, longest))
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        try:
            said = process.communicate(timeout=PATIENCE)[0].decode()
        except subprocess.TimeoutExpired:
            process.kill()
            return f"Ctrl-C: {line} does not end"
        time.sleep(0.2)
        left = members({process.pid})
        fault = fault_of(process.returncode, said) or _store_fault(Path(places["STORE"]))
    if fault is None and left:
        fault = f"{len(left)} processes are left"
    return f"Ctrl-C: {line}: {fault}" if fault else None


def fault_of(code: int, said: str) -> str | None:
    """What is wrong with how a command ended.

    >>> fault_of(130, "headwise: stopped\\n")
    >>> fault_of(1, "headwise: stopped\\n")
    'it ended with 1: headwise: stopped\\n'
    """
    if _is_pythons_own(said):
        return None
    # Python ends itself by the signal if it came in a string that was executed, as in dataclasses.
    if code not in (0, 130, -signal.SIGINT):
        return f"it ended with {code}: {said[-500:]}"
    return said[-1500:] if "Traceback" in said else None


def _is_pythons_own(said: str) -> bool:
    """Whether there are tracebacks, and all of them lie outside what the command can catch."""
    files = re.findall(r'^ *File "([^"]+)"', said, re.MULTILINE)
    return "Traceback" in said and all(OUTSIDE.search(file) for file in files)


def _store_fault(path: Path) -> str | None:
    """What keeps the store from opening, if there is one."""
    try:
        if path.exists():
            Store.open(path).close()
    except HeadwiseError as error:
        return f"the store does not open: {error}"
    return None
