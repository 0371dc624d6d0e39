"""A part of a file is a file of its own: what reads it sees nothing else, and fetches no more than it needs."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyhudi.storage import inputs, open_storage
from support.places import Place, below
from support.seams import patch_seam

BEFORE, BEHIND = b"x" * 1000, b"y" * 1000


@pytest.mark.parametrize("whole", [True, False], ids=["at once", "by ranges"])
def test_a_part_is_read_as_a_file(place: Place, whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    patch_seam(monkeypatch, "most bytes of a file that is read whole", 1 << 20 if whole else 0)
    storage = open_storage(below(place, "t"))
    rows = pa.table({"a": range(20_000), "b": [f"text {one}" for one in range(20_000)]})
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, row_group_size=5_000)
    content = sink.getvalue().to_pybytes()
    storage.write("f", BEFORE + content + BEHIND)

    with inputs.open_part(storage.open_input("f"), len(BEFORE), len(content)) as part:
        assert part.size() == len(content)
        assert pq.read_table(part, pre_buffer=storage.remote) == rows
    with inputs.open_part(storage.open_input("f"), 998, 4) as part:
        assert part.read() == BEFORE[:2] + content[:2]
        assert part.seek(2) == 2
        assert (part.read(9), part.read(1)) == (content[:2], b"")
    with inputs.open_part(storage.open_input("f"), 0, 4) as part:
        part.seek(-1, 2)
        assert (part.read(), part.tell()) == (b"x", 4)


class Counted:
    """Counts the bytes that are read of a file."""

    def __init__(self, source: Any) -> None:
        self.source = source
        self.bytes = 0

    def seek(self, offset: int) -> None:
        self.source.seek(offset)

    def read_buffer(self, size: int) -> Any:
        self.bytes += size
        return self.source.read_buffer(size)

    def close(self) -> None:
        self.source.close()


def test_of_a_large_part_only_what_is_asked_for_is_read() -> None:
    columns = {name: pa.array(range(80_000)) for name in "abcdefgh"}
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink, use_dictionary=False, compression="none")
    content = sink.getvalue().to_pybytes()
    counted = Counted(pa.BufferReader(BEFORE + content + BEHIND))

    with inputs.open_part(counted, len(BEFORE), len(content)) as source:
        found = pq.read_table(source, columns=["c"])

    assert found.column("c").to_pylist()[-1] == 79_999
    assert counted.bytes < len(content) / 6
    assert counted.source.closed
