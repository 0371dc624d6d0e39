"""Bad inputs: each is refused by its own error, says what to do, leaves nothing behind, and spoils nothing later."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyhudi import errors
from pyhudi.errors import PyHudiError, from_spark
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.operations.transaction.fence import Fence
from pyhudi.reader.scan import RowReader
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.timeline.writers import decisions
from pyhudi.timeline.writers.owner import SEALS
from pyhudi.timeline.writers.patience import Patience
from support.bad_inputs import (
    ANSWERS,
    COLUMNS,
    CREATIONS,
    GOOD,
    KEYED,
    LATE,
    OPTIONS,
    OTHERS,
    QUERIES,
    ROWS,
    UNDOING,
    Act,
    Case,
    Late,
    new_table,
)
from support.drive import rows_of, write
from support.made.strange_index import NAME, saying
from support.places import Place, below, files_below, some_on_s3
from support.recorded.fixture_tables import unpack
from support.seams import patch_seam, read_seam
from support.sick.sick_tables import SICK, Sick

# Rolls back whatever a case left pending, so that the good write after it need not wait.
IMPATIENT = WriteSettings(patience=Patience(heartbeat_misses=0, eager=True))


def each(cases: list[Any]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", [pytest.param(one, id=one.name.replace(" ", "-")) for one in cases])


def read_all(path: Place) -> list[tuple[object, ...]]:
    """Return the data columns as sorted rows, read as Spark reads them."""
    snapshot = open_snapshot(str(path))
    batches = [
        batch
        for split in snapshot.plan(snapshot.schema, (), 1 << 27)
        for batch in RowReader(snapshot.storage, snapshot.schema, snapshot.schema).read(split)
    ]
    rows = pa.Table.from_batches(batches, snapshot.schema).to_pylist()
    return sorted(tuple(value for name, value in row.items() if not name.startswith("_hoodie")) for row in rows)


def less_notes(path: Place) -> dict[str, bytes]:
    """Return every file but the notes by which a write's stragglers, and other writers, learn that it is over."""
    notes = (f"{SEALS}/", f"{decisions.FOLDER}/")
    return {name: data for name, data in files_below(path).items() if not name.startswith(notes)}


def refuse(case: Case | Late | Sick, act: Act, path: Place) -> None:
    """Assert that the act raises the case's error, and that the error helps."""
    with pytest.raises(PyHudiError) as raised:
        act()
    error = raised.value
    text = error.text
    assert type(error) is case.error, text
    for words in case.says:
        assert words.format(path=path) in text
    assert error.what.strip()
    assert error.todo[:1].isupper()
    assert error.todo.endswith(".")
    assert "\n" not in text
    assert type(from_spark(RuntimeError(f"Job aborted.\n{error}\n\tat org.apache.spark"))) is case.error


def check_refused_rows(path: Place, case: Case, colocated: bool) -> None:
    """Assert that bad rows leave a healthy table as it was, and that good ones still go into it."""
    new_table(path, case.good, case.table)
    before, rows = less_notes(path), read_all(path)
    refuse(case, partial(case.prepare(path), colocated=colocated), path)

    assert less_notes(path) == before
    assert read_all(path) == rows
    assert write(path, case.good).updates == case.good.num_rows
    assert read_all(path) == rows


@pytest.mark.parametrize("colocated", [False, True], ids=["plain", "colocated"])
@some_on_s3("case", ROWS, 10)
def test_bad_rows_leave_a_table_as_it_was(anywhere: Place, case: Case, colocated: bool) -> None:
    """The write fails as a whole, whoever merges; the next good one finds nothing of it."""
    check_refused_rows(below(anywhere, "t"), case, colocated)


@pytest.mark.parametrize("colocated", [False, True], ids=["plain", "colocated"])
@some_on_s3("case", LATE, 3)
def test_a_write_that_fails_late_leaves_the_files_that_were_there(
    anywhere: Place, monkeypatch: pytest.MonkeyPatch, case: Late, colocated: bool
) -> None:
    """It had published a file into a new partition, which is gone as a whole."""
    published = []
    after_publish = read_seam("look for the seal after a file")

    def publish(self: Fence, file: str) -> None:
        published.append(file)
        after_publish(self, file)

    patch_seam(monkeypatch, "look for the seal after a file", publish)
    patch_seam(monkeypatch, "most workers of a merge", 1)

    check_refused_rows(below(anywhere, "t"), case, colocated)

    if colocated or case.merging:
        assert "new" not in case.good["p"].to_pylist()
        assert "new" in {file.rpartition("/")[0] for file in published}


@each([*COLUMNS, *OPTIONS, *OTHERS, *UNDOING, *QUERIES])
def test_what_is_refused_leaves_a_table_as_it_was(tmp_path: Path, case: Case) -> None:
    """Not a byte of the table changes, and the next good write goes through."""
    path = tmp_path / "t"
    new_table(path, case.good, case.table)
    act = case.prepare(path)
    before, rows = less_notes(path), read_all(path)
    refuse(case, act, path)

    assert less_notes(path) == before
    assert read_all(path) == rows
    assert write(path, case.good, settings=IMPATIENT).updates == case.good.num_rows
    assert read_all(path) == rows


@each(ANSWERS)
def test_what_an_index_says_wrongly_leaves_a_table_as_it_was(tmp_path: Path, case: Case) -> None:
    """Not a byte of the table changes, and the next write goes through: its new keys join the small files."""
    path = tmp_path / "t"
    with saying():
        write(path, GOOD, table=replace(KEYED, index_type=NAME, bucket_count=None))
    act = case.prepare(path)
    before, rows = less_notes(path), read_all(path)
    refuse(case, act, path)

    assert less_notes(path) == before
    assert read_all(path) == rows
    with saying():
        assert write(path, GOOD, settings=IMPATIENT).updates == GOOD.num_rows
    assert read_all(path) == rows


@each(CREATIONS)
def test_a_refused_creation_leaves_no_table(tmp_path: Path, case: Case) -> None:
    """There is still nothing to read, and the table can be made as if nobody had tried."""
    path = tmp_path / "t"
    refuse(case, case.prepare(path), path)

    assert less_notes(path) == {}
    with pytest.raises(errors.TableNotFoundError):
        open_snapshot(str(path))
    assert write(path, GOOD, table=KEYED).inserts == GOOD.num_rows
    assert read_all(path) == [("a", "x", 1, 10), ("b", "y", 1, 20)]


@each(SICK)
def test_a_sick_table_is_neither_read_wrongly_nor_made_worse(tmp_path: Path, case: Sick) -> None:
    """Reading and writing say what is wrong and change nothing; with its files restored the table is as it was."""
    path = tmp_path / "t"
    new_table(path)
    healthy, rows = files_below(path), read_all(path)
    writes = [partial(write, path, GOOD), partial(write, path, GOOD.select(["id", "p"]), operation="delete")]
    reads = [] if case.reads else [partial(read_all, path)]
    acts = [*reads, *writes] if case.prepare is None else [case.prepare(path)]
    case.spoil(path)
    read_seam("written files that the process knows").clear()  # as a process that never saw the table healthy
    sick = less_notes(path)
    if case.reads:
        assert read_all(path) == rows
    for act in acts:
        refuse(case, act, path)

    assert less_notes(path) == sick
    restore(path, healthy)
    assert read_all(path) == rows
    assert write(path, GOOD).updates == GOOD.num_rows


def restore(path: Path, files: dict[str, bytes]) -> None:
    """Put a table's files back as its owner would from a backup."""
    for name in less_notes(path).keys() - files.keys():
        (path / name).unlink()
    for name, data in files.items():
        if (path / name).is_dir():
            (path / name).rmdir()
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_bytes(data)
    read_seam("written files that the process knows").clear()


OCCUPIED = {
    "file": "rows.csv",
    "folder of files": "data/rows.parquet",
    "partitions of files": "p=1/q=2/rows.parquet",
    "Delta table": "_delta_log/00000000000000000000.json",
    "Iceberg table": "metadata/v1.metadata.json",
    "hidden file": ".gitignore",
}


@pytest.mark.parametrize("overwrite", [False, True], ids=["append", "overwrite"])
@pytest.mark.parametrize("name", OCCUPIED.values(), ids=[one.replace(" ", "-") for one in OCCUPIED])
def test_a_path_that_holds_something_else_is_left_alone(tmp_path: Path, name: str, overwrite: bool) -> None:
    """No mode makes a table out of somebody's files."""
    path = tmp_path / "t"
    (path / name).parent.mkdir(parents=True)
    (path / name).write_text("mine")
    case = Sick(name, errors.NotATableError, ("{path}", "Hudi table"), lambda path: None)
    refuse(case, partial(read_all, path), path)
    refuse(case, partial(write, path, GOOD, table=KEYED, overwrite=overwrite), path)

    assert files_below(path) == {name: b"mine"}


def test_a_path_that_is_a_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_text("mine")
    case = Sick("file", errors.NotATableError, ("{path}",), lambda path: None)
    refuse(case, partial(read_all, path), path)
    refuse(case, partial(write, path, GOOD, table=KEYED), path)

    assert path.read_text() == "mine"


def test_a_store_without_a_safe_way_to_write_can_be_read(tmp_path: Path) -> None:
    """The scheme is known to fsspec alone, which cannot create a file only where none is."""
    path = tmp_path / "t"
    write(path, GOOD, table=KEYED)
    before, url = files_below(path), f"local://{path}"
    case = Sick("read-only", errors.StorageError, ("local://{path}", "scheme local"), lambda path: None)

    assert rows_of(url, "id") == [("a",), ("b",)]
    refuse(case, partial(write, url, GOOD), path)
    assert files_below(path) == before


def test_a_table_of_apache_hudi_with_another_number_of_buckets(tmp_path: Path) -> None:
    """Its files betray the wrong number, with which keys would be looked for where they are not."""
    path = Path(unpack("v9_cow_evolved", tmp_path))
    rows = pa.table({"id": pa.array(range(6), pa.int32()), "n": pa.array(range(6)), "extra": pa.nulls(6, pa.string())})
    before, content = less_notes(path), read_all(path)
    missing = Sick("", errors.MissingOptionError, ("{path}", "hoodie.bucket.index.num.buckets"), lambda path: None)
    refuse(missing, partial(write, path, rows), path)
    misfit = Sick("", errors.BucketMisfitError, ("record key '", "bucket 0", "20261121035254671"), lambda path: None)
    refuse(misfit, partial(write, path, rows, table=TableSettings(bucket_count=3)), path)

    assert less_notes(path) == before
    assert read_all(path) == content
    assert write(path, rows, table=TableSettings(bucket_count=2)).updates == 6
    assert write(path, rows).updates == 6


@pytest.mark.parametrize("buckets", [1, 3, 4])
@pytest.mark.parametrize("name", ["x y", "brand new"], ids=["known partition", "new partition"])
def test_a_wrong_number_of_buckets_is_never_remembered(tmp_path: Path, name: str, buckets: int) -> None:
    """Not even by a write that opens a new partition and merges none of the files which betray it."""
    path = Path(unpack("v9_cow_hive_urlencoded", tmp_path))
    rows = pa.table({"id": pa.array([99], pa.int32()), "s": [name], "n": pa.array([2], pa.int32())})
    before, content = less_notes(path), read_all(path)
    misfit = Sick(
        "", errors.BucketMisfitError, ("record key 'id:", "hoodie.bucket.index.num.buckets"), lambda path: None
    )
    refuse(misfit, partial(write, path, rows, table=TableSettings(bucket_count=buckets)), path)

    assert less_notes(path) == before
    assert read_all(path) == content
    assert write(path, rows, table=TableSettings(bucket_count=2)).inserts == 1


def made_by_the_package() -> set[str]:
    """Return the names of all functions and classes that the package's code calls by their bare names."""
    root = Path(errors.__file__).parent
    folders = [one.parent for one in root.glob("*/__init__.py")]
    files = [*root.glob("*.py"), *(file for one in folders for file in one.rglob("*.py"))]
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in files]
    calls = [node.func for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {func.id for func in calls if isinstance(func, ast.Name)}


def test_every_error_that_a_user_can_cause_has_five_cases() -> None:
    """A class without one is either dead or untried; a base class counts where the package makes errors of it.

    The root does not: it stands for what Spark, and no user, can have done.
    """
    cases = [*ROWS, *LATE, *COLUMNS, *OPTIONS, *OTHERS, *ANSWERS, *UNDOING, *QUERIES, *CREATIONS, *SICK]
    tried = Counter(case.error for case in cases)
    tried[errors.NotATableError] += len(OCCUPIED)
    made = made_by_the_package()
    kinds = [getattr(errors, name) for name in errors.__all__ if name.endswith("Error")]
    wanted = [
        kind for kind in kinds if not kind.__subclasses__() or (kind.__name__ in made and kind is not PyHudiError)
    ]

    assert errors.DataError in wanted
    assert {kind.__name__: tried[kind] for kind in wanted if tried[kind] < 5} == {}
