"""The history of a table whose columns were altered with ``hoodie.schema.on.read.enable`` (``InternalSchema``).

Such a table identifies columns by numbers, so that they can be renamed. pyhudi identifies columns by name: it reads the
table as long as every name has had a single number and every number a single name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...errors import CorruptInstantError, UnsupportedTableError
from ...storage.base import Storage
from ...storage.bounds import parse_json

FOLDER = ".hoodie/.schema"
_COMPLETED = ".schemacommit"


def check_history(storage: Storage, *, writing: bool) -> None:
    """Refuse a table whose columns' names do not identify them, and every write to a table that has a history.

    A column that Apache Hudi renamed, or whose name another column had before, is such a column. ``writing`` says that
    the caller will write. Raises UnsupportedTableError; a table without a history passes.
    """
    histories = [file.path for file in storage.list(FOLDER) if file.path.endswith(_COMPLETED)]
    if not histories:
        return
    if writing:
        raise UnsupportedTableError(
            f"The columns of the table {storage.path} were altered with hoodie.schema.on.read.enable, and pyhudi does "
            f"not keep the history of columns in {FOLDER}.",
            "Write this table with Apache Hudi.",
        )
    # The newest holds all versions.
    versions = _versions(storage.read(histories[-1]), f"{storage.path}/{histories[-1]}")
    mixed = _mixed_up(versions)
    if mixed:
        raise UnsupportedTableError(
            f"The column {mixed!r} of the table {storage.path} was renamed, or took the name of another column "
            f"(hoodie.schema.on.read.enable, {histories[-1]}), so that base files cannot be read by the names in them.",
            "Read this table with Apache Hudi, or rewrite it there.",
        )


def _versions(data: bytes, where: str) -> list[dict[str, int]]:
    """Return the number of every dotted name in each version of the columns."""
    try:
        return [dict(_numbers({**entry}, "")) for entry in parse_json(data)["schemas"]]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptInstantError(
            f"The history of columns {where} cannot be read ({type(error).__name__}: {error}).",
            "Restore the file from a backup, or look at the table with Apache Hudi.",
        ) from error


def _numbers(kind: Any, path: str) -> Iterator[tuple[str, int]]:
    """Yield the dotted names inside a type of ``InternalSchema``, each with its number."""
    if not isinstance(kind, dict):
        # A primitive type has no names inside.
        return
    parts = {"array": ("element",), "map": ("key", "value")}.get(kind["type"], ())
    for name in parts:
        yield f"{path}{name}", kind[f"{name}_id"]
        yield from _numbers(kind[name], f"{path}{name}.")
    for field in kind["fields"] if kind["type"] == "record" else ():
        yield f"{path}{field['name']}", field["id"]
        yield from _numbers(field["type"], f"{path}{field['name']}.")


def _mixed_up(versions: list[dict[str, int]]) -> str | None:
    """Return a name that has had two numbers, or whose number has had two names; None without such a name."""
    numbers: dict[str, int] = {}
    names: dict[int, str] = {}
    for version in versions:
        for name, number in version.items():
            if numbers.setdefault(name, number) != number or names.setdefault(number, name) != name:
                return name
    return None
