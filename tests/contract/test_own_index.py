"""The index of one's own that docs/indexes.md shows, held to what every index has to do."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "indexes.md"


def shown() -> dict[str, str]:
    """Return the modules that the page shows, by the names that they begin with."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    named = {found[1]: block for block in blocks if (found := re.match(r'"""(\w+)\.py', block))}
    assert set(named) == {"sqlite_index", "test_sqlite_index"}
    return named


def module(name: str) -> ModuleType:
    made = ModuleType(name)
    sys.modules[name] = made
    exec(compile(shown()[name], f"{PAGE}:{name}.py", "exec"), vars(made))  # noqa: S102
    return made


# The entry point of the page finds the first of them by its name.
module("sqlite_index")
TestSqliteIndex = module("test_sqlite_index").TestSqliteIndex


@pytest.fixture(scope="module", autouse=True)
def forgotten() -> Iterator[None]:
    yield
    for name in shown():
        sys.modules.pop(name, None)
