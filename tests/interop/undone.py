"""Tables undone by both sides: Apache Hudi's procedures called, and what both read."""

from __future__ import annotations

import itertools
from pathlib import Path

from interop.apache_hudi import ApacheHudi
from support.upkeep.undoing import content

Rows = list[tuple[object, ...]]
_NAMES = itertools.count()


def call(java: ApacheHudi, table: Path, procedure: str, arguments: str = "") -> None:
    """Run one of Apache Hudi's procedures on a table, under a name that it has not met."""
    name = f"undoing_{next(_NAMES)}"
    java.sql(f"create table {name} using hudi location '{table}'")
    given = ", ".join(filter(None, (f"table => '{name}'", arguments)))
    java.sql(f"call {procedure}({given})")
    java.sql(f"drop table {name}")


def read_by(java: ApacheHudi, table: Path) -> Rows:
    """Return what Apache Hudi reads."""
    found = java.read(table)
    return sorted(zip(*(found.column(name).to_pylist() for name in ("p", "id", "value")), strict=True))


def agreed(java: ApacheHudi, table: Path) -> Rows:
    """Return what both read."""
    ours = content(table)
    assert read_by(java, table) == ours
    return ours


def newest(table: Path) -> str:
    return max(one.name[:17] for one in (table / ".hoodie" / "timeline").glob("*_*.*commit"))


def names(table: Path, pattern: str) -> list[Path]:
    return sorted((table / ".hoodie" / "timeline").glob(pattern))
