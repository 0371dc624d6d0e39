from __future__ import annotations

import re

import pyarrow as pa
import pytest
from pyhudi.errors import NotATableError, TableNotFoundError
from pyhudi.storage import open_storage
from pyhudi.table.table import open_table
from support.drive import KEYED, write
from support.places import Place, below


@pytest.mark.parametrize("inner", ["Rome", "2024/05", "Rome/.hoodie"])
def test_a_folder_of_a_table_names_the_table_above(place: Place, inner: str) -> None:
    path = below(place, "t")
    write(path, pa.table({"id": ["k"], "ts": [1]}), table=KEYED)

    with pytest.raises(NotATableError, match=re.escape(f"inside the Hudi table {path}.")):
        open_table(open_storage(f"{path}/{inner}"))
    with pytest.raises(TableNotFoundError):
        open_table(open_storage(below(place, "elsewhere/deep")))


def test_nothing_is_above_the_top_of_a_store() -> None:
    for top in ("/", "memory://t", "s3://bucket"):
        assert open_storage(top).parent() is None
    assert open_storage("/a").parent() == open_storage("/")
