"""The cell of a notebook, by what IPython's documentation says of ``display`` and its handles."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest


class Cell:
    """Notes what a cell shows: of each output the HTML that it had, in order."""

    def __init__(self) -> None:
        self.outputs: list[list[str]] = []

    def display(self, value: Any, *, display_id: bool) -> SimpleNamespace:
        assert display_id
        texts = [value._repr_html_()]
        self.outputs.append(texts)
        return SimpleNamespace(update=lambda newer: texts.append(newer._repr_html_()))

    def shows(self, text: str) -> bool:
        """Return whether an output has had a text."""
        return any(text in shown for texts in self.outputs for shown in texts)


def open_notebook(monkeypatch: pytest.MonkeyPatch) -> Cell:
    """Let this process look like the kernel of a notebook."""
    cell = Cell()
    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
    vars(ipython)["get_ipython"] = lambda: SimpleNamespace(kernel=object())
    vars(display)["display"] = cell.display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return cell
