"""Write a small table and put its files into docs/concepts.md, so that the picture there is a real one.

python docs/make_layout.py
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pyarrow as pa
from pyhudi.operations.planning.plan import plan_write
from pyhudi.operations.planning.request import TableSettings, WriteRequest
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.task import run_task
from pyhudi.table.files.names import WriteToken

PAGE = Path(__file__).with_name("concepts.md")
BEGIN, END = "<!-- layout: made by docs/make_layout.py -->\n", "<!-- /layout -->\n"

TABLE = TableSettings(
    name="trips", record_key_fields=("id",), partition_fields=("city",), ordering_fields=("ts",), bucket_count=2
)
COLUMNS = ("id", "city", "fare", "ts")
FIRST = pa.table([[1, 2, 3, 4], ["Oslo", "Oslo", "Oslo", "Rome"], [12.5, 8.0, 3.0, 20.0], [1, 1, 1, 1]], COLUMNS)
SECOND = pa.table([[2, 5], ["Oslo", "Rome"], [9.5, 7.0], [2, 2]], COLUMNS)

REMARKS = {
    r".*hoodie\.properties": "what the table is: key, partitions, buckets, version",
    r".*commit\.requested": "a write was requested …",
    r".*inflight": "… began …",
    r".*_.*\.commit": "… and completed: requested time _ completion time",
    r".*sealed/\d+\.v2": "of writes that were requested within one hour",
    r".*sealed/.*/[0-9a-f]{32}\.\d": "names the instant of that write for all of its tasks",
    r".*sealed/.*/\d+": "tells stragglers of that write that it is over",
    r".*decisions/\d+": "decides a commit: its creation is the point of no return",
    r".*partition_metadata": "makes the folder a partition",
    r".*\.heartbeat": "signs of life of running writes",
    r".*\.temp": "markers of running writes: the files that they may leave",
}


def write(path: str, rows: pa.Table) -> None:
    """Upsert rows."""
    plan = plan_write(WriteRequest(path=path, operation="upsert", overwrite=False, schema=rows.schema, table=TABLE))
    commit_write(plan, [run_task(plan, iter(rows.to_batches()), WriteToken(0, 1, 2))])


def tree(folder: Path, depth: int = 0) -> list[tuple[str, str]]:
    """Return the name of each file and folder, indented, with a remark."""
    entries = []
    for path in sorted(folder.iterdir(), key=lambda one: (one.is_dir(), "." in one.name[-3:], one.name)):
        entries.append((f"{'  ' * depth}{path.name}{'/' if path.is_dir() else ''}", remark_on(path)))
        if path.is_dir():
            entries += tree(path, depth + 1)
    return entries


def remark_on(path: Path) -> str:
    """Return what a file is."""
    base = re.fullmatch(r"(\d{8})-.*\.parquet", path.name)
    if base:
        newest = max(path.parent.glob(f"{base[1]}-*"), key=lambda one: one.stem[-17:])
        return f"bucket {int(base[1])}: {'the newest slice' if path == newest else 'an older slice'}"
    return next((remark for pattern, remark in REMARKS.items() if re.fullmatch(pattern, path.as_posix())), "")


def picture() -> str:
    """Return the files of a table after two writes, as a block of Markdown."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trips"
        for rows in (FIRST, SECOND):
            write(str(path), rows)
        found = [("trips/", ""), *tree(path, 1)]
    width = max(len(name) for name, _ in found) + 2
    lines = [f"{name:<{width}}{remark}".rstrip() for name, remark in found]
    return "\n".join(["```text", *lines, "```", ""])


def with_picture(page: str) -> str:
    """Return the page with the picture put between its marks."""
    head, _, rest = page.partition(BEGIN)
    return f"{head}{BEGIN}{picture()}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(with_picture(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
