"""Runs of exhibits that were started from the page: a killed server offers to resume them.

The answers lie in the store, so resuming computes what is missing. What the store does not know is
that somebody wanted the rest: a small file beside it does.
"""

from __future__ import annotations

import json
import threading
from functools import cached_property
from pathlib import Path
from typing import Any

from headwise.errors import ParameterError
from headwise.papers.catalogue import entries
from headwise.progress import Progress
from headwise.web.jobs import Work
from headwise.whole_files import write_whole

#: Scales that may be run from the page.
RUNNABLE = ("miniature", "laptop")

#: The file beside the store with runs that are not done.
FILE = "unfinished-runs.json"


class Runs:
    """The runs that were started and are not done.

    Args:
        store: Where answers are kept.
    """

    def __init__(self, store: str) -> None:
        self._store, self._lock = store, threading.Lock()

    @cached_property
    def _file(self) -> Path:
        from headwise.runs import scratch_beside

        return scratch_beside(self._store).parent / FILE

    @cached_property
    def _jobs(self) -> dict[tuple[str, str], str]:
        """The job of each run by exhibit and scale; empty if no job of this server computes it."""
        return dict.fromkeys(self._read(), "")

    def work(self, exhibit: str, scale: str) -> Work:
        """Return what computes an exhibit: what is stored is not computed again.

        Raises:
            ParameterError: If the exhibit or the scale does not exist, or may not be run here.
        """
        (entry,) = entries([exhibit])
        offered = [one for one in RUNNABLE if one in entry.scales]
        if scale not in offered:
            raise ParameterError(
                f"expected a scale among {', '.join(offered) or 'none'}, got {scale!r}",
                hint="choose another scale, or use the command",
            )

        def work(progress: Progress) -> Any:
            import headwise

            command = f"headwise reproduce {exhibit} --scale {scale}"
            found = headwise.reproduce(
                exhibit, scale=scale, store=self._store, progress=progress, command=command
            )
            self.forget(exhibit, scale)
            return {"exhibit": exhibit, "scale": scale, "notes": list(found.notes)}

        return work

    def begin(self, exhibit: str, scale: str) -> None:
        """Remember a run until it is done."""
        with self._lock:
            self._jobs[exhibit, scale] = ""
            self._write()

    def follow(self, exhibit: str, scale: str, job: str) -> None:
        """Remember which job computes a run, unless that is done already."""
        with self._lock:
            if (exhibit, scale) in self._jobs:
                self._jobs[exhibit, scale] = job

    def forget(self, exhibit: str, scale: str) -> bool:
        """Forget a run that is done or not wanted any more; False if it is not known."""
        with self._lock:
            known = self._jobs.pop((exhibit, scale), None) is not None
            if known:
                self._write()
        return known

    def unfinished(self) -> list[dict[str, Any]]:
        """Return each run that is not done: how much is stored, and the job that computes it."""
        from headwise.papers.reproduce import list_exhibits

        with self._lock:
            known = list(self._jobs.items())
        found = []
        for (exhibit, scale), job in known:
            (row,) = list_exhibits(exhibit, store=self._store, states=True)
            state = row["stored"].get(scale, "missing")
            found.append(
                {
                    "exhibit": exhibit,
                    "title": row["title"],
                    "scale": scale,
                    "stored": state,
                    "job": job,
                }
            )
        return found

    def _read(self) -> list[tuple[str, str]]:
        """Read the file; one that is damaged or names what is gone is as good as none."""
        try:
            found = json.loads(self._file.read_text(encoding="utf-8"))
            listed = [(str(one["exhibit"]), str(one["scale"])) for one in found]
            names = {entry.name for entry in entries(["all"])}
        except (OSError, ValueError, TypeError, KeyError):
            return []
        return [(name, scale) for name, scale in listed if name in names and scale in RUNNABLE]

    def _write(self) -> None:
        listed = [{"exhibit": exhibit, "scale": scale} for exhibit, scale in self._jobs]
        self._file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self._file, json.dumps(listed).encode(), hint="choose another store")
