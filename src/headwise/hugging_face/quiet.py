"""Keep the messages and bars of transformers away while a model is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from logging import ERROR, getLogger


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Show no bar and no report of transformers in the block; then restore the user's choice.

    What a report says, such as weights that are missing, is said in notes of our own.
    """
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars
    from transformers.utils import logging

    hub = getLogger("huggingface_hub")
    verbosity, level = logging.get_verbosity(), hub.level
    bars, no_downloads = logging.is_progress_bar_enabled(), are_progress_bars_disabled()
    logging.set_verbosity_error()
    hub.setLevel(ERROR)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        hub.setLevel(level)
        if bars:
            logging.enable_progress_bar()  # it also enables the bars of downloads
        if no_downloads:
            disable_progress_bars()
