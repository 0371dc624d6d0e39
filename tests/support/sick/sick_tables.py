"""Sick tables as data: ways in which a healthy table is spoiled, each with the error that tells of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyhudi import errors
from pyhudi.errors import PyHudiError
from pyhudi.operations.inspect.history import history, last_commit
from pyhudi.storage import open_storage
from pyhudi.table.files.base_file import STAMP
from support.bad_inputs.case import GOOD, SCHEMA, Act
from support.drive import carry_out, plan, write
from support.made.stated_sizes import state_sizes

PROPERTIES = ".hoodie/hoodie.properties"
TIMELINE = ".hoodie/timeline"
COMMIT = f"{TIMELINE}/*_*.commit"
BASE = "x/*.parquet"


def at(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    """Change the bytes of the one file that a pattern finds."""

    def spoil(path: Path) -> None:
        (file,) = path.glob(name)
        file.write_bytes(change(file.read_bytes()))

    return spoil


def say(key: str, value: str | None) -> Callable[[Path], None]:
    """Set a property of the table, or take it away."""

    def change(data: bytes) -> bytes:
        lines = [line for line in data.decode().splitlines() if not line.startswith(f"{key}=")]
        return "\n".join([*lines, *([] if value is None else [f"{key}={value}"]), ""]).encode()

    return at(PROPERTIES, change)


def lose(name: str) -> Callable[[Path], None]:
    return lambda path: (path / name).unlink()


def leave(name: str) -> Callable[[Path], None]:
    """Put an empty file where none was."""

    def spoil(path: Path) -> None:
        (path / name).write_bytes(b"")

    return spoil


def become_folder(name: str) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        (file,) = path.glob(name)
        file.unlink()
        file.mkdir()

    return spoil


def newer_backup(path: Path) -> None:
    """Leave an update of the properties half done, by a release that has just raised the table's version."""
    say("hoodie.table.version", "10")(path)
    (path / PROPERTIES).rename(path / f"{PROPERTIES}.backup")


def commit_later(path: Path) -> Act:
    """Plan a write while the table is healthy."""
    planned = plan(path, SCHEMA)
    return lambda: carry_out(planned, [GOOD])


def written_by_others(path: Path, *, keys: str) -> None:
    """Take our stamp off a base file, so that its keys are looked at, and give its rows another key."""
    for file in path.glob("x/*.parquet"):
        rows = pq.read_table(file, partitioning=None)
        rows = rows.set_column(2, "_hoodie_record_key", pa.array([keys] * rows.num_rows))
        footer = {name: value for name, value in rows.schema.metadata.items() if name != STAMP}
        pq.write_table(rows.replace_schema_metadata(footer), file, store_schema=False)
    state_sizes(path)


def rename_bucket(path: Path) -> None:
    """Give a base file the name that an index without buckets would, and say so in its commit."""
    (file,) = path.glob("x/*.parquet")
    file_id, renamed = file.name.partition("_")[0], f"abcdef12{file.name[8:]}"
    at(COMMIT, lambda data: data.replace(file_id.encode(), renamed.partition("_")[0].encode()))(path)
    file.rename(file.with_name(renamed))


def move_base_file(to: str) -> Callable[[Path], None]:
    """Move the one base file of a partition to a folder, or to a name that begins otherwise."""

    def spoil(path: Path) -> None:
        (file,) = path.glob(BASE)
        file.rename(path / f"{to}{file.name[1:]}")

    return spoil


@dataclass(frozen=True)
class Sick:
    """A table that cannot be used as it is.

    Attributes:
        name: Says what is wrong.
        error: What a write raises, and a read unless `reads`.
        says: What the message must name.
        spoil: Makes a healthy table sick.
        reads: Whether the table can still be read.
        prepare: Gets the healthy table's path and returns the act that is refused; None for writes and reads.
    """

    name: str
    error: type[PyHudiError]
    says: tuple[str, ...]
    spoil: Callable[[Path], None]
    reads: bool = False
    prepare: Callable[[Path], Act] | None = None


NEWER = [
    Sick(name, errors.TableVersionError, (f"{{path}}/{PROPERTIES}{of}", "version 10"), spoil, prepare=prepare)
    for name, of, spoil, prepare in (
        ("newer version", "", say("hoodie.table.version", "10"), None),
        ("newer version in the backup alone", ".backup", newer_backup, None),
        ("newer version when a write commits", "", say("hoodie.table.version", "10"), commit_later),
        (
            "newer version under mode overwrite",
            "",
            say("hoodie.table.version", "10"),
            lambda path: partial(write, path, GOOD, overwrite=True),
        ),
    )
]
SICK = [
    *(
        Sick(f"properties {name}", errors.TableConfigError, (f"{{path}}/{PROPERTIES}", *says), spoil)
        for name, says, spoil in (
            ("empty", ("empty or cut off",), at(PROPERTIES, lambda data: b"")),
            ("cut off in a line", ("cut off",), at(PROPERTIES, lambda data: data[:400])),
            ("cut off after a line", ("lacks",), at(PROPERTIES, lambda data: data[: data.index(b"\n", 300) + 1])),
            ("of noise", (), at(PROPERTIES, lambda data: bytes(range(256)))),
            ("with a broken escape", ("cannot be read",), at(PROPERTIES, lambda data: data + b"a=\\u12\n")),
            ("with a wrong checksum", ("hoodie.table.checksum=1,",), say("hoodie.table.checksum", "1")),
            ("with another name", ("hoodie.table.checksum", "'z'"), say("hoodie.table.name", "z")),
            ("with no version", ("hoodie.table.version",), say("hoodie.table.version", None)),
            ("with a version in words", ("hoodie.table.version=nine",), say("hoodie.table.version", "nine")),
            ("with a type that is none", ("hoodie.table.type=COW",), say("hoodie.table.type", "COW")),
            ("lost", ("is lost", "completed instants: 1"), lose(PROPERTIES)),
        )
    ),
    Sick("properties unreadable", errors.StorageError, (f"{{path}}/{PROPERTIES}",), become_folder(PROPERTIES)),
    *NEWER,
    *(
        Sick(
            f"{act.__name__} in the layout of version {version}",
            errors.TableVersionError,
            (f"version {version}", "layout"),
            say("hoodie.table.version", version),
            prepare=lambda path, act=act: partial(act, open_storage(str(path))),
        )
        for version, act in (("5", history), ("7", last_commit))
    ),
    *(
        Sick(f"{key} {value}", errors.UnsupportedTableError, ("{path}", f"{key}={value}"), say(key, value), reads)
        for key, value, reads in (
            ("hoodie.table.version", "5", False),
            ("hoodie.table.base.file.format", "ORC", False),
            ("hoodie.populate.meta.fields", "false", False),
            ("hoodie.datasource.write.drop.partition.columns", "true", False),
            ("hoodie.index.type", "RECORD_INDEX", True),
            ("hoodie.index.bucket.engine", "CONSISTENT_HASHING", True),
            ("hoodie.record.merge.mode", "CUSTOM", True),
            ("hoodie.table.cdc.enabled", "true", True),
        )
    ),
    Sick(
        "key generator of the user's own",
        errors.UnsupportedTableError,
        ("com.example.OwnKeys",),
        say("hoodie.table.keygenerator.type", "com.example.OwnKeys"),
        reads=True,
    ),
    Sick(
        "record index",
        errors.UnsupportedTableError,
        ("{path}", "record_index", "drop_index"),
        say("hoodie.table.metadata.partitions", "files,record_index"),
        reads=True,
    ),
    Sick(
        "half a delete marker",
        errors.UnsupportedTableError,
        ("{path}", "hoodie.record.merge.property.hoodie.payload.delete.field=value"),
        say("hoodie.record.merge.property.hoodie.payload.delete.field", "value"),
        reads=True,
    ),
    Sick(
        "no number of buckets",
        errors.MissingOptionError,
        ("{path}", "hoodie.bucket.index.num.buckets"),
        say("hoodie.bucket.index.num.buckets", None),
        reads=True,
    ),
    Sick("file of no bucket", errors.UnsupportedTableError, ("{path}", "abcdef12", "x/"), rename_bucket, reads=True),
    *(
        Sick(
            f"pending {action}",
            errors.ConcurrentWriteError if action == "restore" else errors.UnsupportedTableError,
            ("{path}", f"{action} 20260101000000000"),
            leave(f"{TIMELINE}/20260101000000000.{action}.requested"),
            reads=True,
        )
        for action in ("clustering", "restore")
    ),
    *(
        Sick(
            f"key {key!r} of others",
            errors.BucketMisfitError,
            ("record key", repr(key), "does not belong to bucket", "hoodie.bucket.index.num.buckets"),
            partial(written_by_others, keys=key),
            reads=True,
        )
        for key in ("somebody", "a:b,c:d", "other", "ä", "")
    ),
    *(
        Sick(
            f"key {key!r} in the place of a",
            errors.UnsupportedTableError,
            (repr(key), "pyhudi spells 'a'", "mode overwrite"),
            partial(written_by_others, keys=key),
            reads=True,
        )
        for key in ("id:somebody", "a,b")
    ),
    *(
        Sick(f"newest commit {name}", errors.CorruptInstantError, (f"{{path}}/{TIMELINE}/", ".commit"), at(COMMIT, do))
        for name, do in {
            "empty": lambda data: b"",
            "cut off early": lambda data: data[:40],
            "cut off late": lambda data: data[:-3],
            "of noise": lambda data: bytes(range(200)),
            "in JSON": lambda data: b'{"operationType": "UPSERT"}',
        }.items()
    ),
    *(
        Sick(f"base file {name}", errors.CorruptFileError, ("x/0000000", "instant in its name"), at(BASE, do))
        for name, do in {
            "empty": lambda data: b"",
            "cut off": lambda data: data[: len(data) // 2],
            "without its end": lambda data: data[:-4],
            "of noise": lambda data: b"PAR1" + bytes(range(200)) + b"PAR1",
            "with noise inside": lambda data: data[:4] + b"\xee" * 200 + data[204:],
        }.items()
    ),
    *(
        Sick(
            f"base file {name}",
            errors.MissingFileError,
            ("{path}", "x/0000000", "is gone", "which the commit 20", "backup"),
            spoil,
        )
        for name, spoil in (
            ("lost", lambda path: [file.unlink() for file in path.glob(BASE)]),
            ("lost with its folder", lambda path: shutil.rmtree(path / "x")),
            ("moved out of its partition", move_base_file("0")),
            ("of another name", move_base_file("x/1")),
            ("that has become a folder", become_folder(BASE)),
        )
    ),
]
