"""How far long work is: a bar or a line that changes on a terminal, else a line a minute."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TextIO

from ...operations.words.progress import EVERY_S, ShownProgress
from .cells import escaped
from .output import has_rich

# Shorter work shows nothing.
_PATIENCE_S = 2.0
_REDRAW_S = 0.5


@dataclass
class WorkProgress(ShownProgress):
    """An observer of services that shows the progress of a command on stderr while its block runs."""

    stream: TextIO = field(default_factory=lambda: sys.stderr)
    every_s: float = EVERY_S
    patience_s: float = _PATIENCE_S

    def _loop(self) -> None:
        """Print a line at times if stderr is no terminal; on a terminal, draw once the work has lasted a while."""
        if not self.stream.isatty():
            while not self._is_over.wait(self.every_s):
                print(escaped(self.text()), file=self.stream, flush=True)
        elif not self._is_over.wait(self.patience_s):
            self._draw_rich() if has_rich(self.stream) else self._draw(self._redraw)

    def _draw(self, draw: Callable[[], object]) -> None:
        """Draw again and again until the work is over, and then empty the line."""
        draw()
        while not self._is_over.wait(_REDRAW_S):
            draw()
        self.stream.write("\r\x1b[K")
        self.stream.flush()

    def _redraw(self) -> None:
        self.stream.write(f"\r{escaped(self.text())}\x1b[K")
        self.stream.flush()

    def _draw_rich(self) -> None:
        """Draw a bar by rich until the work is over, of unknown length if the work tells none."""
        from rich.console import Console  # noqa: PLC0415 (an extra)
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415
        from rich.progress import Progress as Bars  # noqa: PLC0415

        columns: Any = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
        with Bars(*columns, console=Console(file=self.stream), transient=True) as bars:
            task = bars.add_task(escaped(self.text()), total=None)
            while not self._is_over.wait(_REDRAW_S):
                newest = self._newest
                total, completed = (None, 0) if newest is None else (newest.total or None, newest.finished)
                bars.update(task, total=total, completed=completed, description=escaped(self.text()))
