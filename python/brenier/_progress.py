"""A line that says how far a run is; nothing where nobody looks."""

from __future__ import annotations

import sys
import time
from typing import Any


class Progress:
    """``12/256 [00:03 left]`` on stderr, rewritten in place. Silent for the first half second and where it is off."""

    def __init__(self, total: int, what: str, shown: bool | None) -> None:
        self._total, self._what = max(total, 1), what
        self._shown = _somebody_looks() if shown is None else shown
        self._began, self._last, self._written = time.monotonic(), 0.0, False

    def __call__(self, done: int, total: int | None = None, note: str = "") -> None:
        self._total = total or self._total
        now = time.monotonic()
        if not self._shown or now - self._began < 0.5 or (now - self._last < 0.1 and done < self._total):
            return
        self._last = now
        left = (now - self._began) / max(done, 1) * (self._total - done)
        bar = "█" * (20 * done // self._total)
        minutes, seconds = divmod(int(left + 0.5), 60)
        note = f" {note}" if note else ""
        sys.stderr.write(f"\r{self._what} {bar:<20} {done}/{self._total} [{minutes:02d}:{seconds:02d} left]{note}")
        sys.stderr.flush()
        self._written = True

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._written:
            sys.stderr.write("\n")
            sys.stderr.flush()


def _somebody_looks() -> bool:
    if "ipykernel" in sys.modules:
        return True
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False
