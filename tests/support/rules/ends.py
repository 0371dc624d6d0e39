"""The rules in which each history, fault and interleaving ends: one list, to which another property adds a rule."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from pyhudi.storage import open_storage
from pyhudi.table.config import load_config
from support.places import Place, on_disk
from support.rules.checks import assert_format
from support.rules.health import findings, of_metadata
from support.rules.written_metadata import assert_no_left_overs


@dataclass(frozen=True)
class End:
    """A table that a test has come to the end with.

    Attributes:
        path: The table.
        unique: Whether each key is there once; inserts add rows without looking.
        written_down: Whether the second writing-down of the format knows such tables: those whose keys are not
            generated, of which a test holds the files.
        deep: Whether the rows of all files are read.
        tolerated: Codes of what may be wrong with it; None for all that is no error.
    """

    path: Place
    unique: bool = True
    written_down: bool = True
    deep: bool = False
    tolerated: Collection[str] | None = None


def _format(end: End) -> None:
    """Its files, names and counts are those of the format, by rules that are written down a second time."""
    if end.written_down:
        assert_format(end.path, unique=end.unique)


def _health(end: End) -> None:
    """`validate` finds nothing wrong with it, nor with a copy of what is on S3, where each look costs seconds."""
    if "s3://" in str(end.path):
        with on_disk(end.path) as copy:
            _health(replace(end, path=copy))
        return
    table_findings = findings(end.path, deep=end.deep)
    if end.tolerated is None:
        wrong = [one for one in table_findings if one["severity"] == "error"]
    else:
        wrong = [one for one in table_findings if one["code"] not in end.tolerated]
    assert not wrong, wrong


def _metadata(end: End) -> None:
    """Its metadata table, if it has one, says of its files and rows what is so."""
    if load_config(open_storage(str(end.path))).metadata_partitions:
        with on_disk(end.path) as copy:
            wrong = of_metadata(copy)
            assert_no_left_overs(copy)
        assert not wrong, wrong


RULES: list[Callable[[End], None]] = [_format, _health, _metadata]


def assert_whole(
    path: Place,
    *,
    unique: bool = True,
    written_down: bool = True,
    deep: bool = False,
    tolerated: Collection[str] | None = None,
) -> None:
    """Assert that each rule holds of a table; the arguments are the attributes of `End`."""
    for rule in RULES:
        rule(End(path, unique, written_down, deep, tolerated))
