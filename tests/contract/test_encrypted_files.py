"""Base files that another writer has encrypted: whatever needs them names them."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyarrow.parquet import encryption
from pyhudi.errors import UnsupportedTableError
from pyhudi.operations.planning.request import WriteSettings
from support.attempts import rows
from support.drawn.upkept import OFF
from support.drive import KEYED, write
from support.made import compacting
from support.made.stated_sizes import state_sizes
from support.readers import read_without_spark
from support.rules.health import findings

TABLE = replace(KEYED, table_type="MERGE_ON_READ")
QUIET = WriteSettings(upkeep=OFF)


class _Keys(encryption.KmsClient):
    """Wraps keys by writing them out."""

    def __init__(self, _: object) -> None:
        super().__init__()

    def wrap_key(self, key: bytes, _: str) -> bytes:
        return base64.b64encode(key)

    def unwrap_key(self, wrapped: bytes, _: str) -> bytes:
        return base64.b64decode(wrapped)


def encrypt(path: Path, *columns: str, footer: bool) -> None:
    """Encrypt some columns of each base file of a table, and perhaps the footers."""
    factory = encryption.CryptoFactory(_Keys)
    wished = encryption.EncryptionConfiguration("footer", column_keys={"k": [*columns]}, plaintext_footer=not footer)
    for file in path.rglob("*.parquet"):
        if ".hoodie" in file.parts:
            continue
        table = pq.read_table(file, partitioning=None)
        properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), wished)
        with pq.ParquetWriter(file, table.schema, encryption_properties=properties) as writer:
            writer.write_table(table)
    state_sizes(path)


@pytest.mark.parametrize("footer", [True, False], ids=["footer", "columns"])
@pytest.mark.parametrize("index", ["BUCKET", "SIMPLE", "BLOOM"])
def test_whatever_needs_an_encrypted_file_names_it(tmp_path: Path, index: str, footer: bool) -> None:
    made = replace(TABLE, index_type=index, bucket_count=1 if index == "BUCKET" else None)
    write(tmp_path, rows(1, 2, value=0), table=made, settings=QUIET)
    write(tmp_path, rows(1, value=1, ts=2), settings=QUIET)
    encrypt(tmp_path, "_hoodie_record_key", "value", footer=footer)
    ways: list[Callable[[], object]] = [lambda: read_without_spark(tmp_path), lambda: compacting.run(tmp_path)]
    if index != "BUCKET":
        ways.append(lambda: write(tmp_path, rows(2, 9, value=9, ts=3), settings=QUIET))
    for way in ways:
        with pytest.raises(UnsupportedTableError, match=r"base file .*parquet is encrypted"):
            way()

    found = {one["code"]: one["what"] for one in findings(tmp_path)}
    assert "is encrypted" in found["NOT_CHECKED"]
    assert "FILE_CORRUPT" not in found
