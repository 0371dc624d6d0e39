"""Findings: what is wrong with a table, where, and how to mend it."""

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

    Its severity is ``error`` if rows are wrong, missing or in danger, or an engine cannot read or write the table;
    else ``warning``.
    """

    code: str
    meaning: str
    cure: str
    severity: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong with a table; ``file`` and ``instant`` are empty if it concerns no single one of them."""

    check: Check
    what: str
    file: str = ""
    instant: str = ""


class Findings:
    """Collects what checks find in one table; several threads may add.

    Checks report unfinished work once it is ``stale_s`` seconds old; until then a writer may be at work on it.
    """

    def __init__(self, storage: Storage, stale_s: float) -> None:
        self.storage = storage
        self.stale_s = stale_s
        self._gathered: list[Finding] = []

    @property
    def gathered(self) -> tuple[Finding, ...]:
        """All findings until now, in the order in which the checks found them."""
        return tuple(self._gathered)

    def is_old(self, modified: float | None) -> bool:
        """Return whether a file has not changed for ``stale_s`` seconds, so that no writer seems at work on it."""
        return modified is not None and self.storage.now() - modified > self.stale_s

    def add(self, check: Check, what: str, *, file: str = "", instant: str = "") -> None:
        """Add a finding; ``what`` may have characters of a damaged file, and becomes one line."""
        self._gathered.append(Finding(check, _valid(one_line(what)), _valid(file), _valid(instant)))

    @contextmanager
    def turning(self, check: Check, *, file: str = "", instant: str = "") -> Iterator[None]:
        """Turn any error that is raised inside into a finding.

        Any program may have written the bytes, and parsers of damaged bytes may raise any exception.
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
        """Return all findings, errors first, by `FINDINGS_SCHEMA`; a finding that several checks report comes once."""
        ordered = sorted(
            set(self._gathered),
            key=lambda finding: (
                finding.check.severity,
                finding.check.code,
                finding.file,
                finding.instant,
                finding.what,
            ),
        )
        rows = [
            {
                "severity": finding.check.severity,
                "code": finding.check.code,
                "table": self.storage.path,
                "file": finding.file or None,
                "instant": finding.instant or None,
                "what": finding.what,
                "cure": finding.check.cure,
            }
            for finding in ordered
        ]
        return pa.Table.from_pylist(rows, FINDINGS_SCHEMA)


def _valid(text: str) -> str:
    r"""Return a text as UTF-8 can have it: names of files on a disk may be other bytes, which become ``\udcff``."""
    return text.encode("utf-8", "backslashreplace").decode()


UNREADABLE = Check(
    "UNREADABLE",
    "The store cannot read a file, or has a link or a folder instead of it.",
    "Check the file, its permissions and its disk.",
    ERROR,
)
