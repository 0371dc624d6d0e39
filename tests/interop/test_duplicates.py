"""Rows of one key in a batch, and keys that are there already: who stays, for Apache Hudi and for pyhudi."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi, ApacheHudiError
from interop.instants import newest_write
from interop.readers import read_hudi_rs
from interop.scenarios import BUCKETS, SMALL
from interop.writer import write_without_spark
from pyhudi.errors import DuplicateKeyError, OptionConflictError

pytestmark = pytest.mark.interop

OPERATION = "hoodie.datasource.write.operation"
FOLD_INSERTS = "hoodie.combine.before.insert"
FOLD_UPSERTS = "hoodie.combine.before.upsert"
FOLD_DELETES = "hoodie.combine.before.delete"
DROP = "hoodie.datasource.write.insert.drop.duplicates"
POLICY = "hoodie.datasource.insert.dup.policy"
ROW_WRITER = "hoodie.datasource.write.row.writer.enable"
OPTIONS = {**SMALL, BUCKETS: "1"}


def rows(*given: tuple[str, str, int, str]) -> pa.Table:
    return pa.table([list(column) for column in zip(*given, strict=True)], ["id", "p", "ts", "n"])


HELD = rows(("k", "a", 10, "held k"), ("l", "a", 10, "held l"), ("k", "b", 10, "held k of b"))
# In a partition that the table lacks: the greater ordering value comes first, comes last, is tied.
NEW = rows(
    ("u", "new", 9, "u1"),
    ("u", "new", 8, "u2"),
    ("v", "new", 8, "v1"),
    ("v", "new", 9, "v2"),
    ("w", "new", 8, "w1"),
    ("w", "new", 8, "w2"),
)
# Lesser and greater than what the table holds.
KNOWN = rows(("k", "a", 9, "k1"), ("k", "a", 8, "k2"), ("l", "a", 11, "l1"), ("l", "a", 12, "l2"))
BOTH = pa.concat_tables([NEW, KNOWN])
# Of a bucket that has a file.
NEIGHBOUR = rows(("m", "a", 1, "m1"))


@dataclass(frozen=True)
class Case:
    """One write to a table of HELD."""

    operation: str
    rows: pa.Table
    options: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        said = (f"{name.removeprefix('hoodie.').split('.', 1)[1]}={value}" for name, value in self.options.items())
        return " ".join([self.operation, *said])


SAME = [
    Case("insert", BOTH, {FOLD_INSERTS: "true"}),
    Case("insert", BOTH, {FOLD_INSERTS: "false", POLICY: "none"}),
    Case("insert", BOTH, {POLICY: "drop"}),
    Case("insert", BOTH, {POLICY: "drop", FOLD_INSERTS: "true"}),
    Case("insert", NEW, {POLICY: "fail"}),
    Case("insert", KNOWN, {DROP: "true"}),
    Case("upsert", BOTH, {POLICY: "drop"}),
    Case("upsert", BOTH, {FOLD_UPSERTS: "true"}),
    Case("upsert", KNOWN, {FOLD_UPSERTS: "false"}),
    # Of tied rows the row writer keeps the first, every other way the last.
    Case("bulk_insert", NEW, {FOLD_INSERTS: "true", ROW_WRITER: "false"}),
    Case("bulk_insert", NEW.slice(0, 4), {FOLD_INSERTS: "true"}),
    Case("delete", KNOWN.slice(0, 2), {FOLD_DELETES: "true"}),
    Case("delete", KNOWN.slice(0, 2), {FOLD_DELETES: "false"}),
    Case("insert_overwrite", BOTH, {FOLD_INSERTS: "true"}),
    Case("insert_overwrite_table", BOTH, {FOLD_INSERTS: "true"}),
    # The older option folds incoming rows too, unless it is told not to.
    Case("insert", BOTH, {DROP: "true"}),
    Case("upsert", BOTH, {DROP: "true"}),
    Case("insert", BOTH, {DROP: "true", FOLD_INSERTS: "false"}),
    Case("insert_overwrite", BOTH, {DROP: "true"}),
    Case("insert_overwrite_table", BOTH, {DROP: "true"}),
]


class Pair:
    """Two copies of a table of HELD, one for each writer."""

    def __init__(self, held: Path, apache: ApacheHudi, folder: Path) -> None:
        self.ours, self.theirs = (Path(shutil.copytree(held, folder / name)) for name in ("ours", "theirs"))
        self._apache = apache

    def write_ours(self, case: Case) -> list[str]:
        """Let pyhudi write, and return the rows that are left."""
        write_without_spark(self.ours, case.rows, {**OPTIONS, OPERATION: case.operation, **case.options})
        return left(self.ours)

    def write_theirs(self, case: Case) -> list[str]:
        """Let Apache Hudi write, and return the rows that are left."""
        self._apache.write(self.theirs, case.rows, {**OPTIONS, OPERATION: case.operation, **case.options})
        return left(self.theirs)


def left(table: Path) -> list[str]:
    """Return the rows that the table holds, by their names."""
    return sorted(read_hudi_rs(table)["n"].to_pylist())


@pytest.fixture(scope="module")
def held(apache: ApacheHudi, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of HELD."""
    table = tmp_path_factory.mktemp("duplicates") / "held"
    apache.write(table, HELD, {**OPTIONS, OPERATION: "bulk_insert"})
    return table


@pytest.fixture
def pair(held: Path, apache: ApacheHudi, tmp_path: Path) -> Pair:
    """Both tables."""
    return Pair(held, apache, tmp_path)


@pytest.mark.parametrize("case", SAME, ids=str)
def test_the_same_rows_stay(pair: Pair, case: Case) -> None:
    assert pair.write_ours(case) == pair.write_theirs(case)


@pytest.mark.parametrize("operation", ["insert", "upsert"])
def test_both_fail_where_a_key_is_there(pair: Pair, operation: str) -> None:
    case, before = Case(operation, BOTH, {POLICY: "fail"}), newest_write(pair.ours)

    with pytest.raises(ApacheHudiError, match="HoodieDuplicateKeyException"):
        pair.write_theirs(case)
    with pytest.raises(DuplicateKeyError):
        pair.write_ours(case)
    assert newest_write(pair.ours) == newest_write(pair.theirs) == before


def test_a_bulk_insert_that_drops_duplicates_is_refused_by_both(pair: Pair) -> None:
    case = Case("bulk_insert", NEW, {DROP: "true"})

    with pytest.raises(ApacheHudiError, match="Dropping duplicates with bulk_insert"):
        pair.write_theirs(case)
    with pytest.raises(OptionConflictError):
        pair.write_ours(case)


class TestWherePyhudiDoesOtherwise:
    """As docs/operations.md says; when one of these fails, that has to change."""

    def test_a_policy_looks_new_keys_up_that_apache_hudi_takes_for_duplicates(self, pair: Pair) -> None:
        before = left(pair.theirs)

        assert pair.write_theirs(Case("insert", NEIGHBOUR, {POLICY: "drop"})) == before
        with pytest.raises(ApacheHudiError, match="Duplicate key found for insert statement, key is: m"):
            pair.write_theirs(Case("insert", NEIGHBOUR, {POLICY: "fail"}))
        assert pair.write_ours(Case("insert", NEIGHBOUR, {POLICY: "drop"})) == sorted([*before, "m1"])
        assert pair.write_ours(Case("insert", rows(("o", "a", 1, "o1")), {POLICY: "fail"})) == sorted(
            [*before, "m1", "o1"]
        )

    def test_an_upsert_folds_what_apache_hudi_leaves_where_the_file_group_is_new(self, pair: Pair) -> None:
        case, before = Case("upsert", NEW, {FOLD_UPSERTS: "false"}), left(pair.ours)

        assert pair.write_theirs(case) == sorted([*before, "u1", "u2", "v1", "v2", "w1", "w2"])
        assert pair.write_ours(case) == sorted([*before, "u1", "v2", "w2"])

    def test_a_bulk_insert_refuses_the_policy_that_apache_hudi_overlooks(self, pair: Pair) -> None:
        case, before = Case("bulk_insert", NEW, {POLICY: "drop"}), left(pair.ours)

        assert pair.write_theirs(case) == sorted([*before, "u1", "u2", "v1", "v2", "w1", "w2"])
        with pytest.raises(OptionConflictError):
            pair.write_ours(case)
