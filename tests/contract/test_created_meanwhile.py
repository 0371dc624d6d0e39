"""Two processes create one table at the same moment: what the second one makes of the first one's properties."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.arrow import Table
from pyhudi.errors import CommitConflictError, OptionConflictError
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.table.config import TableConfig, create_config
from pyhudi.table.config.property_keys import ADDED_BY_PYHUDI, BUCKET_COUNT, BUCKET_ENGINE, RECORD_KEY_OPTION
from support.attempts import IMPATIENT, rows
from support.drive import KEYED, carry_out, plan, rows_of, task, write
from support.rules.ends import assert_whole
from support.seams import patch_seam, read_seam


def created(path: Path, *, left_out: frozenset[str] = frozenset(), **others: str) -> None:
    """Plan a write that creates a table, create it by other properties, and carry the write out."""
    data = rows(1, value=1)
    planned = plan(path, data.schema, table=KEYED)
    made = {key: text for key, text in planned.config.properties.items() if key not in left_out}
    create_config(open_storage(str(path)), TableConfig({**made, **others}))
    carry_out(planned, [data])


@pytest.mark.parametrize("left_out", [ADDED_BY_PYHUDI, {RECORD_KEY_OPTION}, {BUCKET_ENGINE}], ids=len)
def test_properties_that_pyhudi_adds_by_itself_may_be_missing(tmp_path: Path, left_out: frozenset[str]) -> None:
    created(tmp_path / "t", left_out=frozenset(left_out))

    assert len(rows_of(tmp_path / "t", "id")) == 1


def test_properties_of_a_release_to_come_are_compared(tmp_path: Path) -> None:
    with pytest.raises(CommitConflictError, match=r"meanwhile, with hoodie\.table\.news="):
        created(tmp_path / "t", **{"hoodie.table.news": "x"})


@pytest.mark.parametrize("key", [BUCKET_COUNT, *sorted(ADDED_BY_PYHUDI)])
def test_a_differing_value_is_a_conflict(tmp_path: Path, key: str) -> None:
    with pytest.raises(CommitConflictError, match=f"meanwhile, with {key}='17', but this"):
        created(tmp_path / "t", **{key: "17"})


def test_of_two_creations_of_one_empty_table_the_second_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns, make = (
        pa.schema([("id", pa.int64()), ("n", pa.int64())]),
        read_seam("make the properties of an empty table"),
    )

    def beside_another(storage: Storage, config: TableConfig) -> bool:
        with monkeypatch.context() as alone:
            patch_seam(alone, "make the properties of an empty table", make)
            Table.create(storage.path, columns, record_key="id", if_not_exists=True)
        return make(storage, config)

    patch_seam(monkeypatch, "make the properties of an empty table", beside_another)

    assert Table.create(tmp_path / "a", columns, record_key="id", if_not_exists=True).schema == columns
    with pytest.raises(OptionConflictError, match="'n' with the type bigint"):
        Table.create(tmp_path / "b", pa.schema([("id", pa.int64())]), record_key="id", if_not_exists=True)
    with pytest.raises(OptionConflictError, match="already"):
        Table.create(tmp_path / "c", columns, record_key="id")


@pytest.mark.parametrize(("dead", "next_version"), [(6, None), (None, 6)])
def test_a_creation_that_died_in_another_layout_is_in_the_way(
    tmp_path: Path, dead: int | None, next_version: int | None
) -> None:
    """A table of the other version would not have its instant, by which its files are rolled back."""
    path, begun = tmp_path / "t", replace(KEYED, version=dead)
    planned = plan(path, rows(1, value=1).schema, table=begun, settings=IMPATIENT)
    task(planned, rows(1, value=1), 0)

    with pytest.raises(OptionConflictError, match=r"hoodie\.write\.table\.version"):
        write(path, rows(2, value=2), table=replace(KEYED, version=next_version), settings=IMPATIENT)

    write(path, rows(2, value=2), table=begun, settings=IMPATIENT)
    assert rows_of(path, "id", "value") == [("k2", 2)]
    assert_whole(path)
