"""What is wrong with a table, as values: which sickness, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from ...errors import PyHudiError, StorageError, one_line
from ...storage.base import Storage

ERROR = "error"
WARNING = "warning"

FINDINGS_SCHEMA = pa.schema(
    [
        pa.field("severity", pa.string(), nullable=False),
        pa.field("code", pa.string(), nullable=False),
        pa.field("table", pa.string(), nullable=False),
        pa.field("file", pa.string()),
        pa.field("instant", pa.string()),
        pa.field("what", pa.string(), nullable=False),
        pa.field("cure", pa.string(), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class Check:
    """One way in which a table can be wrong.

    Attributes:
        code: Names it.
        meaning: What it is, for the documentation.
        cure: What to do about it.
        severity: ``error`` where rows are wrong, missing or in danger, or an engine cannot read or write; else
            ``warning``.
    """

    code: str
    meaning: str
    cure: str
    severity: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a table.

    Attributes:
        check: Its kind.
        what: A sentence that names what is concerned.
        file: Relative to the table's root; empty where it is about no single file.
        instant: Requested time; empty where it is about no single instant.
    """

    check: Check
    what: str
    file: str = ""
    instant: str = ""


class Findings:
    """Collects what checks find in one table, those of several threads among them.

    Attributes:
        storage: Rooted at the table.
        stale_s: After how many seconds something that broke off is reported; a writer may be at work on it before.
    """

    def __init__(self, storage: Storage, stale_s: float) -> None:
        self.storage = storage
        self.stale_s = stale_s
        self._found: list[Finding] = []

    def is_old(self, modified: float | None) -> bool:
        """Return whether a file was not touched for so long that no writer seems to be at work on it."""
        return modified is not None and self.storage.now() - modified > self.stale_s

    def add(self, check: Check, what: str, *, file: str = "", instant: str = "") -> None:
        """Tell of one thing that is wrong."""
        self._found.append(Finding(check, one_line(what), file, instant))

    @contextmanager
    def turning(self, check: Check, *, file: str = "", instant: str = "") -> Iterator[None]:
        """Make a finding of whatever is raised inside, and go on behind it.

        What is looked at was written by anybody, and damaged bytes make parsers fail in every way that Python knows.
        """
        try:
            yield
        except PyHudiError as error:
            kind = UNREADABLE if isinstance(error, StorageError) else check
            self.add(kind, error.what, file=file, instant=instant)
        except Exception as error:  # noqa: BLE001
            what = f"{file or instant} cannot be used ({type(error).__name__}: {error})."
            self.add(check, what, file=file, instant=instant)

    def table(self) -> pa.Table:
        """Return everything that was found, errors first, as `FINDINGS_SCHEMA` says."""
        ordered = sorted(
            set(self._found),
            key=lambda one: (one.check.severity, one.check.code, one.file, one.instant, one.what),
        )
        rows = [
            {
                "severity": one.check.severity,
                "code": one.check.code,
                "table": self.storage.path,
                "file": one.file or None,
                "instant": one.instant or None,
                "what": one.what,
                "cure": one.check.cure,
            }
            for one in ordered
        ]
        return pa.Table.from_pylist(rows, FINDINGS_SCHEMA)


UNREADABLE = Check(
    "UNREADABLE",
    "The store does not give a file, or gives a link or a folder in its place.",
    "Look at the file, its permissions and its disk.",
    ERROR,
)
