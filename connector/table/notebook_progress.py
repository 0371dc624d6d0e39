"""The progress of long calls beneath the cell of a notebook: a line that changes, and that is empty at the end."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from ...operations.inspect.activity import activity_rows
from ...operations.words.progress import Observer, Progress, ShownProgress, polling
from ...operations.words.text import escaped, in_html
from ...operations.write.retries import Retries
from ...options.model import HudiOptions
from ...storage import Storage
from ...table.table import find_table
from ...timeline.writers.markers import Markers
from ...timeline.writers.write_heartbeat import WriteHeartbeat

# Shorter work shows nothing.
PATIENCE_S = 10.0
_REDRAW_S = 1.0

# The observer of the call that this thread shows; calls within that call report to it.
_SHOWN: ContextVar[Observer | None] = ContextVar("pyhudi_shown", default=None)

Display = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class CellLine:
    """One line of text, for notebooks and for frontends without HTML."""

    text: str

    def __repr__(self) -> str:
        return escaped(self.text)

    def _repr_html_(self) -> str:
        return f"<small>{in_html(self.text)}</small>" if self.text else ""


@dataclass
class NotebookProgress(ShownProgress):
    """An observer that shows the progress of a call as an output of the cell that runs."""

    display: Display

    def _loop(self) -> None:
        """Show the text once the call has lasted ten seconds, draw it anew each second, and empty it at the end."""
        if self._is_over.wait(PATIENCE_S):
            return
        output = self.display(CellLine(self.text()), display_id=True)
        while not self._is_over.wait(_REDRAW_S):
            output.update(CellLine(self.text()))
        output.update(CellLine(""))


@contextmanager
def shown_in_notebook(what: str, *, switched_on: bool) -> Iterator[None]:
    """Show how far a call is from its tenth second on, in a notebook's kernel; elsewhere do nothing.

    What the call reports to `observer` is shown. A call within another that is shown has no line of its own.
    """
    display = _notebook_display() if switched_on and _SHOWN.get() is None else None
    if display is None:
        yield
        return
    with NotebookProgress(what, display) as progress:
        token = _SHOWN.set(progress)
        try:
            yield
        finally:
            _SHOWN.reset(token)


def shown_retries(storage: Storage, options: HudiOptions) -> Retries:
    """Return what runs a write until it completes, and shows meanwhile how far it is."""
    progress = shown_in_notebook(f"write {storage.path}", switched_on=options.notebook_progress)
    return Retries.of(
        storage, options.write_settings(), write_id=options.write_id, application=options.application, shown=progress
    )


def observer() -> Observer | None:
    """Return the observer that shows the progress of this thread's call; None if nothing shows it."""
    return _SHOWN.get()


@contextmanager
def noted_write(beat: WriteHeartbeat) -> Iterator[None]:
    """Report, while Spark writes, the phase of the write with this heartbeat and how many data files it has begun."""
    report, storage = _SHOWN.get(), beat.notes.storage

    def look() -> None:
        """Report the phase of the pending instant of this write, and the files it has begun."""
        requested_time, table = beat.notes.newest(), find_table(storage)
        if not requested_time or table is None or report is None:
            return
        pending = [instant for instant in table.timeline().pending if instant.requested_time == requested_time]
        for row in activity_rows(table, pending):
            report(Progress(f"{row['phase']} data files", len(Markers(storage, requested_time).read()), 0, 0))

    with nullcontext() if report is None else polling(look):
        yield


def _notebook_display() -> Display | None:
    """Return IPython's ``display`` for a cell of a notebook; None elsewhere.

    A kernel runs cells in its main thread: the batches of a stream, in others, belong to no cell.
    """
    if threading.current_thread() is not threading.main_thread():
        return None
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if getattr(shell, "kernel", None) is None:
        return None
    display: Display = importlib.import_module("IPython.display").display
    return display
