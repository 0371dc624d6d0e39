"""Paths that hold tables of other formats: the error says what is there, and which page loads it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyhudi.errors import NotATableError
from pyhudi.storage import open_storage
from pyhudi.table.table import open_table
from support.attempts import rows
from support.drive import KEYED, write
from support.places import files_below

DOCS = Path(__file__).parents[3] / "docs"
FORMATS = "from-delta-lake-or-iceberg"
CASES = {
    "delta": (["_delta_log/00000000000000000000.json", "part-0.snappy.parquet"], "a Delta Lake table", FORMATS),
    "partitioned delta": (["_delta_log/_last_checkpoint", "day=1/part-0.parquet"], "a Delta Lake table", FORMATS),
    "iceberg": (["metadata/v1.metadata.json", "data/0.parquet"], "an Iceberg table", FORMATS),
    "compressed iceberg": (["metadata/00000-1a.gz.metadata.json"], "an Iceberg table", FORMATS),
    "parquet": (["b.parquet", "a.parquet", "_SUCCESS"], "Parquet files, such as a.parquet", "from-parquet"),
    "partitioned parquet": (
        ["_temporary/0.parquet", "day=1/hour=2/part-0.zstd.parquet", "day=2/0.parquet"],
        "Parquet files, such as day=1/hour=2/part-0.zstd.parquet",
        "from-parquet",
    ),
}
OTHERS = {
    "text": ["a.csv"],
    "folders of metadata": ["metadata/notes.json"],
    "hidden": [".staging/a.parquet", "_metadata/b.parquet", "_common.parquet"],
}


def fill(folder: Path, names: list[str]) -> dict[str, bytes]:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"")
    return files_below(folder)


@pytest.mark.parametrize(("names", "what", "section"), CASES.values(), ids=[name.replace(" ", "-") for name in CASES])
def test_reads_and_writes_name_the_format_and_the_section(
    tmp_path: Path, names: list[str], what: str, section: str
) -> None:
    before = fill(tmp_path, names)
    page, _, anchor = f"migrating.md#{section}".partition("#")
    for act in (
        lambda: open_table(open_storage(str(tmp_path))),
        lambda: write(tmp_path, rows(1, value=1), table=KEYED),
    ):
        with pytest.raises(NotATableError, match=re.escape(f"{tmp_path} holds {what}")) as raised:
            act()
        assert f"docs/{page}#{anchor}" in raised.value.todo

    assert files_below(tmp_path) == before
    headings = re.findall(r"^## (.+)$", (DOCS / page).read_text(encoding="utf-8"), re.M)
    assert anchor in [heading.lower().replace(" ", "-") for heading in headings]


@pytest.mark.parametrize("names", OTHERS.values(), ids=[name.replace(" ", "-") for name in OTHERS])
def test_other_folders_are_no_table_and_no_more(tmp_path: Path, names: list[str]) -> None:
    fill(tmp_path, names)

    with pytest.raises(NotATableError, match=r"no \.hoodie folder"):
        open_table(open_storage(str(tmp_path)))
