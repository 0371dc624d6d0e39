"""Where tests put tables: a folder of this machine, or S3; the same questions for both."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyhudi.storage import open_storage
from support.s3 import copy_objects, objects_below, put_object

# A folder, or the URL of one.
Place = Path | str
# What no two tables have alike: file ids, who sealed a write, and the attempts of services, whose numbers are drawn.
NAMED_ANYHOW = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{32}|\d{5,10}-\d{5,10}-\d{5,10}")
TIME = re.compile(r"\d{17}")
# Of the folder of seals, which may change between any two writes.
HOUR = re.compile(r"(?<=sealed/)\d{10}(?=\.v\d)")
INVENTED = re.compile(rf"{NAMED_ANYHOW.pattern}|{HOUR.pattern}|\d{{17}}(_\d{{17}})?")
ALSO_ON_S3 = pytest.mark.parametrize("anywhere", ["local", pytest.param("s3", marks=pytest.mark.slow)], indirect=True)


def some_on_s3(name: str, values: Iterable[Any], every: int) -> pytest.MarkDecorator:
    """Parametrize a test by the values, each on this machine and the first of each so many on S3 too."""

    def spelt(one: Any) -> str:
        return str(getattr(one, "name", None) or getattr(one, "__name__", None) or one).replace(" ", "-")

    both = [
        pytest.param(where, one, id=f"{where}-{spelt(one)}", marks=pytest.mark.slow if where == "s3" else ())
        for at, one in enumerate(values)
        for where in (("local", "s3") if at % every == 0 else ("local",))
    ]
    return pytest.mark.parametrize(("anywhere", name), both, indirect=["anywhere"])


def below(place: Place, name: str) -> str:
    """Return the path of something in a place."""
    return f"{place}/{name}"


def files_below(path: Place) -> dict[str, bytes]:
    """Return every file below a table's path with its content, to compare before and after."""
    if str(path).startswith("memory://"):
        storage = open_storage(str(path))
        return {info.path: storage.read(info.path) for info in storage.list("", recursive=True)}
    if "://" in str(path):
        return objects_below(str(path))
    while True:
        try:
            return {name: Path(path, name).read_bytes() for name in names_below(path)}
        except FileNotFoundError:
            # A heartbeat has its temporary file renamed while others look.
            continue


def names_below(path: Place) -> list[str]:
    """Return the names of all files below a table's path, sorted."""
    if "://" in str(path):
        return sorted(objects_below(str(path)))
    if not Path(path).exists():
        return []
    return sorted(_names(str(path), ""))


def _names(folder: str, below: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _names(entry.path, f"{below}{entry.name}/")
            elif entry.is_file():
                yield f"{below}{entry.name}"


def state_of(path: Place, origin: Place | None = None) -> tuple[str, ...]:
    """Return the names of a table's files, times and invented names aside, to tell states apart.

    Args:
        path: The table.
        origin: The table of which it is a copy: the names of its files are taken as they are, and of times their order.
    """
    names = names_below(path)
    if origin is None:
        return tuple(sorted(INVENTED.sub("-", name) for name in names))
    known = set(names_below(origin))
    told = [name if name in known else NAMED_ANYHOW.sub("-", name) for name in names]
    order = {time: f"<{at}>" for at, time in enumerate(sorted({time for name in told for time in TIME.findall(name)}))}
    return tuple(sorted(TIME.sub(lambda match: order[match[0]], name) for name in told))


def put_files(path: Place, files: Mapping[str, bytes]) -> None:
    """Make files below a path, as `files_below` gave them, asking no storage."""
    for name, data in files.items():
        if "://" in str(path):
            put_object(below(path, name), data)
        else:
            target = Path(path) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)


def copy_table(source: Place, target: Place) -> None:
    """Copy a table's files, none where there is none, asking no storage."""
    if "://" in str(source):
        copy_objects(str(source), str(target))
    elif Path(source).exists():
        copied(Path(source), Path(target))


def copied(source: Path, target: Path) -> Path:
    """Return a copy of a table whose files are those of the first one under further names.

    Nobody changes a table's file in its place: what did would be seen in all the copies.
    """
    shutil.copytree(source, target, copy_function=os.link)
    return target


@contextmanager
def on_disk(path: Place) -> Iterator[Path]:
    """Give a folder with a table's files: the table itself where it is local, else a copy."""
    if "://" not in str(path):
        yield Path(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files_below(path).items():
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / name).write_bytes(data)
        yield Path(folder)
