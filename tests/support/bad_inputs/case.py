"""What a bad input is, and the short words in which the tables beside this module speak of one."""

from __future__ import annotations

import pickle
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import pyarrow as pa
from pyhudi.errors import PyHudiError
from pyhudi.operations.planning.plan import plan_write
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.options.parsing import parse_options
from support.drive import DEFAULTS, carry_out, write
from support.places import Place

TIMELINE = ".hoodie/timeline"

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("value", pa.int64())])
GOOD = pa.table([["a", "b"], ["x", "y"], [1, 1], [10, 20]], schema=SCHEMA)
KEYED = TableSettings(
    name="bad_inputs", record_key_fields=("id",), partition_fields=("p",), ordering_fields=("ts",), bucket_count=2
)
COMPOSITE = replace(KEYED, record_key_fields=("id", "value"))

Act = Callable[..., object]


@dataclass(frozen=True)
class Case:
    """One bad input.

    Attributes:
        name: Says what is bad.
        error: The class that refuses it.
        says: What the message must name; ``{path}`` stands for the table's path.
        prepare: Gets the table's path, may change what is there, and returns the bad act.
        good: Rows that the table takes.
        table: The options that make it.
    """

    name: str
    error: type[PyHudiError]
    says: tuple[str, ...]
    prepare: Callable[[Path], Act]
    good: pa.Table = field(default_factory=lambda: GOOD)
    table: TableSettings = KEYED


def new_table(path: Place, good: pa.Table = GOOD, table: TableSettings = KEYED) -> None:
    """Make a table that holds some rows: on this machine a copy of one that was written so before."""
    if "://" in str(path):
        write(path, good, table=table)
    else:
        # Whoever spoils it may write into its files.
        shutil.copytree(f"{_made(pickle.dumps((good, table))).name}/t", path)


@cache
def _made(given: bytes) -> tempfile.TemporaryDirectory[str]:
    good, table = pickle.loads(given)  # noqa: S301
    folder = tempfile.TemporaryDirectory()
    write(f"{folder.name}/t", good, table=table)
    return folder


def upsert(
    rows: pa.Table | list[pa.Table], *, settings: WriteSettings = DEFAULTS, **options: object
) -> Callable[[Path], Act]:
    """Write rows in tasks, those of a list in one each; the act may be told that they are colocated."""
    parts = [rows] if isinstance(rows, pa.Table) else rows

    def prepare(path: Path) -> Act:
        def act(*, colocated: bool = settings.colocated) -> object:
            return write(path, parts, settings=replace(settings, colocated=colocated), **options)

        return act

    return prepare


def ask(given: Mapping[str, object], *, overwrite: bool = False) -> Callable[[Path], Act]:
    """Write good rows with the options that a user types."""

    def prepare(path: Path) -> Act:
        def act() -> object:
            options = parse_options(given)
            return carry_out(plan_write(options.to_write_request(str(path), SCHEMA, overwrite=overwrite)), [GOOD])

        return act

    return prepare


def changed(name: str, values: list[object] | pa.Array, kind: pa.DataType | None = None) -> pa.Table:
    """Return the good rows with other values in one column."""
    at = SCHEMA.get_field_index(name)
    column = pa.array(values, kind or SCHEMA.field(name).type) if isinstance(values, list) else values
    return GOOD.set_column(at, pa.field(name, column.type), column)


def added(name: str, kind: pa.DataType) -> pa.Table:
    """Return the good rows with a column of nulls more."""
    return GOOD.append_column(pa.field(name, kind), pa.nulls(GOOD.num_rows, kind))
