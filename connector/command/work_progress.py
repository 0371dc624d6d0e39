"""How far long work is: a bar or a line that changes on a terminal, else a line a minute."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from time import monotonic
from types import TracebackType
from typing import Any, TextIO

from ...operations.progress import EVERY_S, Progress
from .cells import size_text
from .escaping import escaped
from .text_tables import has_rich

# Shorter work shows nothing.
_PATIENT_S = 2.0
_REDRAW_S = 0.5


class WorkProgress:
    """An observer of services that shows the progress of a command on stderr while its block runs.

    Services that report no steps show for how long they have been at work.
    """

    def __init__(
        self, what: str, stream: TextIO | None = None, every_s: float = EVERY_S, patient_s: float = _PATIENT_S
    ) -> None:
        self._what = what
        self._stream = stream or sys.stderr
        self._every_s = every_s
        self._patient_s = patient_s
        self._began = monotonic()
        self._newest: Progress | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True, name="pyhudi-command")

    def __call__(self, progress: Progress) -> None:
        self._newest = progress

    def __enter__(self) -> WorkProgress:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def text(self) -> str:
        """Return how far the work is, in words."""
        found, seconds = self._newest, monotonic() - self._began
        steps = "" if found is None else f"{found.phase}: {found.done:,} of {found.total:,} done"
        size = "" if found is None else f" ({size_text(found.bytes)})"
        return f"{self._what}: {steps or 'at work'}{size} after {seconds:.0f} s"

    def _loop(self) -> None:
        if not self._stream.isatty():
            while not self._over.wait(self._every_s):
                print(escaped(self.text()), file=self._stream, flush=True)
        elif not self._over.wait(self._patient_s):
            self._draw_rich() if has_rich(self._stream) else self._draw(self._redraw)

    def _draw(self, draw: Callable[[], object]) -> None:
        draw()
        while not self._over.wait(_REDRAW_S):
            draw()
        self._stream.write("\r\x1b[K")
        self._stream.flush()

    def _redraw(self) -> None:
        self._stream.write(f"\r{escaped(self.text())}\x1b[K")
        self._stream.flush()

    def _draw_rich(self) -> None:
        from rich.console import Console  # noqa: PLC0415 (an extra)
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415
        from rich.progress import Progress as Bars  # noqa: PLC0415

        columns: Any = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
        with Bars(*columns, console=Console(file=self._stream), transient=True) as bars:
            task = bars.add_task(escaped(self.text()), total=None)
            while not self._over.wait(_REDRAW_S):
                found = self._newest
                total, done = (None, 0) if found is None else (found.total, found.done)
                bars.update(task, total=total, completed=done, description=escaped(self.text()))
