"""Every error a user of pyhudi can cause, split by what the caller can do about it.

The tree::

    PyHudiError
    ├── OptionError                 change the options of this write or read
    │   ├── UnknownOptionError          UNKNOWN_OPTION         no such key; the error names the nearest
    │   ├── InvalidOptionError          INVALID_OPTION         the value does not fit the key
    │   ├── MissingOptionError          MISSING_OPTION         a key that this table needs is not given
    │   ├── OptionConflictError         OPTION_CONFLICT        the table says otherwise; both values shown
    │   ├── UnsupportedOptionError      UNSUPPORTED_OPTION     known to Hudi, not done by pyhudi yet
    │   ├── UnreadableTimeError         UNREADABLE_TIME        the table's past is not kept so far back
    │   └── PlacementError              PLACEMENT              rows of one file group came from several tasks
    ├── DataError                   change the rows or their schema
    │   ├── NullKeyError                NULL_KEY               a record key is null or empty
    │   ├── NullOrderingError           NULL_ORDERING          an ordering value is null
    │   ├── DuplicateKeyError           DUPLICATE_KEY          a key to be inserted is there already
    │   ├── OlderRowError               OLDER_ROW              a changed row is older than the row it replaces
    │   ├── KeyNotFoundError            KEY_NOT_FOUND          a key to be deleted is not there
    │   ├── PartitionValueError         PARTITION_VALUE        a partition value makes no safe folder
    │   ├── MissingColumnError          MISSING_COLUMN         a column that the table needs is absent
    │   ├── DuplicateColumnError        DUPLICATE_COLUMN       two columns have one name
    │   ├── UnsupportedTypeError        UNSUPPORTED_TYPE       a column's type cannot be stored
    │   ├── SchemaMismatchError         SCHEMA_MISMATCH        columns differ from the table's
    │   └── ColumnValueError            COLUMN_VALUE           a value has no exact place in its column's type
    ├── RetryError                  run it again: the failed write left nothing
    │   ├── ConcurrentWriteError        CONCURRENT_WRITE       another writer is at work on the table
    │   ├── CommitConflictError         COMMIT_CONFLICT        another writer changed the same file groups
    │   ├── WriteSealedError            WRITE_SEALED           a task outlived its own write
    │   └── StorageError                STORAGE                the store failed or refused
    └── TableError                  look at the table
        ├── TableNotFoundError          TABLE_NOT_FOUND        there is no table at the path
        ├── NotATableError              NOT_A_TABLE            the path holds something else
        ├── TableConfigError            TABLE_CONFIG           hoodie.properties cannot be used
        ├── TableVersionError           TABLE_VERSION          pyhudi neither writes nor reads the version
        ├── UnsupportedTableError       UNSUPPORTED_TABLE      a kind of table not done by pyhudi yet
        ├── CorruptInstantError         CORRUPT_INSTANT        an instant's file cannot be parsed
        ├── CorruptFileError            CORRUPT_FILE           a data file cannot be read
        ├── MissingFileError            MISSING_FILE           a base file is gone that a commit names
        ├── BucketMisfitError           BUCKET_MISFIT          a base file holds keys of another bucket
        ├── IndexMisfitError            INDEX_MISFIT           an index contradicts the table
        └── UndoError                   UNDO                   an instant cannot be undone or kept

From a ``df.write`` Spark hands the user only text; its last line reads ``PyHudiError[CODE]: …``, and `from_spark`
returns the error as an object. If the error knows which instant was in the way, a further line tells programs.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import ClassVar

__all__ = [
    "BucketMisfitError",
    "ColumnDifference",
    "ColumnValueError",
    "CommitConflictError",
    "ConcurrentWriteError",
    "CorruptFileError",
    "CorruptInstantError",
    "DataError",
    "DuplicateColumnError",
    "DuplicateKeyError",
    "IndexMisfitError",
    "InvalidOptionError",
    "KeyNotFoundError",
    "MetInstant",
    "MissingColumnError",
    "MissingFileError",
    "MissingOptionError",
    "NotATableError",
    "NullKeyError",
    "NullOrderingError",
    "OlderRowError",
    "OptionConflictError",
    "OptionError",
    "PartitionValueError",
    "PlacementError",
    "PyHudiError",
    "RetryError",
    "SchemaMismatchError",
    "StorageError",
    "TableConfigError",
    "TableError",
    "TableNotFoundError",
    "TableVersionError",
    "UndoError",
    "UnknownOptionError",
    "UnreadableTimeError",
    "UnsupportedOptionError",
    "UnsupportedTableError",
    "UnsupportedTypeError",
    "WriteSealedError",
    "from_spark",
]


@dataclass(frozen=True, slots=True)
class MetInstant:
    """The instant that was in the way of a write or a service, by which programs decide what to do next.

    Attributes:
        instant: Its requested time; empty if the error does not tell it.
        kind: What made it: "write", "rescale", "restore", "rollback", "clean", "compaction", "log compaction",
            "clustering" or "archiving"; "upgrade" if the table went to another version, which is no instant.
        partition_path: The partition in which the two met; None for the whole table, or if the error does not tell
            it.
        file_id: The file group at which they met, in that partition.
        file: The name of the file that is gone, of data or of the timeline.
        from_text: Whether this was read from the text of an error, as Spark hands errors on. Other programs may have
            written that text, so it is a reason to wait, but no reason to undo anything.
    """

    instant: str
    kind: str
    partition_path: str | None = None
    file_id: str | None = None
    file: str | None = None
    from_text: bool = False


class PyHudiError(Exception):
    """The root of every error that pyhudi raises on purpose.

    Args:
        what: One or two sentences that name the table, instant, key or option concerned.
        todo: One sentence, in the imperative, that says what to do next.
        met: The instant that was in the way, or that took what is missing.
    """

    code: ClassVar[str] = "PYHUDI"

    def __init__(self, what: str, todo: str, *, met: MetInstant | None = None) -> None:
        super().__init__(what, todo)
        self.what = what
        self.todo = todo
        self.met = met

    def __str__(self) -> str:
        line = "" if self.met is None or self.met.from_text else _spell(self.met)
        return f"{self.text}\n{line}" if line else self.text

    @property
    def text(self) -> str:
        """What the error says to people, on one line."""
        return one_line(f"PyHudiError[{self.code}]: {self.what} {self.todo}")

    @classmethod
    def from_text(cls, text: str) -> PyHudiError:
        """Return an error of this class from its text.

        Args:
            text: The error's text without its code.

        Returns:
            The error, with the whole text as ``what``.
        """
        return cls(text, "")


def one_line(text: str) -> str:
    """Return the text with every run of white space made one blank, so that it stays one line of a traceback."""
    return " ".join(text.split())


class OptionError(PyHudiError):
    """The options of this write or read have to change."""

    code = "OPTION"


class UnknownOptionError(OptionError):
    """No option of that name exists."""

    code = "UNKNOWN_OPTION"


class InvalidOptionError(OptionError):
    """The value does not fit the option."""

    code = "INVALID_OPTION"


class MissingOptionError(OptionError):
    """An option that this table needs is not given."""

    code = "MISSING_OPTION"


class OptionConflictError(OptionError):
    """The option disagrees with the table or with another option."""

    code = "OPTION_CONFLICT"


class UnsupportedOptionError(OptionError):
    """Apache Hudi knows the option and pyhudi does not do it yet."""

    code = "UNSUPPORTED_OPTION"


class UnreadableTimeError(OptionError):
    """The table's past does not reach back as far as the query asks; the error names the first readable time."""

    code = "UNREADABLE_TIME"


class PlacementError(OptionError):
    """Rows of one file group came from several tasks, and more of them than one commit may merge."""

    code = "PLACEMENT"


class DataError(PyHudiError):
    """The rows or their schema have to change."""

    code = "DATA"


class NullKeyError(DataError):
    """A record key is null or empty."""

    code = "NULL_KEY"


class NullOrderingError(DataError):
    """An ordering value is null."""

    code = "NULL_ORDERING"


class DuplicateKeyError(DataError):
    """The write meets or would leave several rows of one key, which it does not allow."""

    code = "DUPLICATE_KEY"


class OlderRowError(DataError):
    """A changed row has a lesser ordering value than the row that it would replace."""

    code = "OLDER_ROW"


class KeyNotFoundError(DataError):
    """A key to be deleted, or updated in some columns, is not in the table, and the write must not skip it."""

    code = "KEY_NOT_FOUND"


class PartitionValueError(DataError):
    """A partition value makes no safe folder inside the table."""

    code = "PARTITION_VALUE"


class MissingColumnError(DataError):
    """A column that the table needs is absent."""

    code = "MISSING_COLUMN"


class DuplicateColumnError(DataError):
    """Two columns have one name."""

    code = "DUPLICATE_COLUMN"


class UnsupportedTypeError(DataError):
    """A column's type cannot be stored."""

    code = "UNSUPPORTED_TYPE"


@dataclass(frozen=True, slots=True)
class ColumnDifference:
    """One column that does not fit the table's.

    Attributes:
        column: Its name, dotted inside structs, lists and maps.
        table: Its type in the table, or "absent".
        incoming: Its type in the rows, or in the schema that a read asks for, or "absent".
        todo: What to do about it.
    """

    column: str
    table: str
    incoming: str
    todo: str

    def __str__(self) -> str:
        return " | ".join((self.column, self.table, self.incoming, self.todo))


class SchemaMismatchError(DataError):
    """The columns differ from the table's.

    Args:
        what: As in `PyHudiError`; the differences follow it.
        todo: As in `PyHudiError`.
        differences: The columns that do not fit; none if the error is about a value.
    """

    code = "SCHEMA_MISMATCH"

    def __init__(self, what: str, todo: str, differences: Iterable[ColumnDifference] = ()) -> None:
        self.differences = tuple(differences)
        if self.differences:
            what = f"{what} [{_HEADER}: {'; '.join(map(str, self.differences))}]."
        super().__init__(what, todo)

    @classmethod
    def from_text(cls, text: str) -> PyHudiError:
        """Return an error of this class from its text.

        Args:
            text: The error's text without its code.

        Returns:
            The error, with the differences that the text names.
        """
        error = cls(text, "")
        _, _, rest = text.partition(f"[{_HEADER}: ")
        cells = [row.split(" | ") for row in rest.partition("]")[0].split("; ")]
        error.differences = tuple(ColumnDifference(*row) for row in cells if len(row) == len(_HEADER.split(" | ")))
        return error


_HEADER = "column | table | incoming | what to do"


class ColumnValueError(DataError):
    """A value of the rows cannot be stored exactly in the type of its column."""

    code = "COLUMN_VALUE"


class RetryError(PyHudiError):
    """The failed write left nothing behind; running it again may succeed."""

    code = "RETRY"


class ConcurrentWriteError(RetryError):
    """Another writer is at work on the table."""

    code = "CONCURRENT_WRITE"


class CommitConflictError(RetryError):
    """Another writer changed the same file groups first."""

    code = "COMMIT_CONFLICT"


class WriteSealedError(RetryError):
    """A task outlived its own write: the write was committed or given up meanwhile."""

    code = "WRITE_SEALED"


class StorageError(RetryError):
    """The store failed or refused."""

    code = "STORAGE"


class TableError(PyHudiError):
    """The table needs a look before any further operation."""

    code = "TABLE"


class TableNotFoundError(TableError):
    """There is no table at the path."""

    code = "TABLE_NOT_FOUND"


class NotATableError(TableError):
    """The path holds something that is not a Hudi table."""

    code = "NOT_A_TABLE"


class TableConfigError(TableError):
    """hoodie.properties cannot be used."""

    code = "TABLE_CONFIG"


class TableVersionError(TableError):
    """pyhudi neither writes nor reads the table version."""

    code = "TABLE_VERSION"


class UnsupportedTableError(TableError):
    """A kind of table that pyhudi does not do yet."""

    code = "UNSUPPORTED_TABLE"


class CorruptInstantError(TableError):
    """An instant's file cannot be parsed."""

    code = "CORRUPT_INSTANT"


class CorruptFileError(TableError):
    """A base file or a log file cannot be read."""

    code = "CORRUPT_FILE"


class MissingFileError(TableError):
    """A base file that a completed commit names is gone."""

    code = "MISSING_FILE"


class BucketMisfitError(TableError):
    """A base file holds keys that belong to another bucket, or nothing shows which of two buckets a key belongs to."""

    code = "BUCKET_MISFIT"


class IndexMisfitError(TableError):
    """An index of another package contradicts the table."""

    code = "INDEX_MISFIT"


class UndoError(TableError):
    """The table's state does not allow to undo an instant, to savepoint it, or to restore the table to it."""

    code = "UNDO"


_PATTERN = re.compile(r"PyHudiError\[(?P<code>[A-Z_]+)\]: (?P<text>[^\n]*)")


def from_spark(exception: BaseException) -> PyHudiError | None:
    """Return the pyhudi error whose text an exception of Spark contains.

    Args:
        exception: What ``df.write`` or an action on a read raised.

    Returns:
        An error of the class that was raised in Spark's worker; None if the text contains none.
    """
    matches = list(_PATTERN.finditer(str(exception)))
    if not matches:
        return None
    classes = {kind.code: kind for kind in _classes_from(PyHudiError)}
    error_class = classes.get(matches[-1]["code"], PyHudiError)
    error = error_class.from_text(matches[-1]["text"].rstrip())
    error.met = _read_met(str(exception)[matches[-1].end() :].lstrip("\r").removeprefix("\n").partition("\n")[0])
    return error


def _classes_from(root: type[PyHudiError]) -> list[type[PyHudiError]]:
    """Return a class of errors and all classes below it."""
    return [root, *(kind for child in root.__subclasses__() for kind in _classes_from(child))]


_MOST_BYTES = 1024
_MET = re.compile(r"PyHudiMet\[(?P<sum>[0-9a-f]{8})\]: (?P<text>\{[ -~]*\})")
# Of instants, file groups and files.
_NAMES = re.compile(r"[0-9A-Za-z_.-]*")


def _spell(met: MetInstant) -> str:
    """Return the line of an error's text that describes the instant in the way: ASCII, with a checksum.

    It leaves out the partition and the file if it would be longer than 1 KiB with them, and is empty if it still is.
    """
    facts = {name: value for name, value in asdict(met).items() if isinstance(value, str)}
    for fields in (facts, {name: facts[name] for name in ("instant", "kind")}):
        # A partition may have the name of an error.
        text = json.dumps(fields).replace("[", "\\u005b")
        line = f"PyHudiMet[{zlib.crc32(text.encode()):08x}]: {text}"
        if len(line) <= _MOST_BYTES:
            return line
    return ""


def _read_met(line: str) -> MetInstant | None:
    """Return the instant that a line describes; None for any other line, and for a line that was cut or changed."""
    match = _MET.fullmatch(line.strip()[: _MOST_BYTES + 1])
    if match is None or len(match[0]) > _MOST_BYTES or int(match["sum"], 16) != zlib.crc32(match["text"].encode()):
        return None
    try:
        fields = json.loads(match["text"])
    except ValueError:
        return None
    names = {"instant", "kind", "partition_path", "file_id", "file"}
    if not {"instant", "kind"} <= fields.keys() <= names or not all(
        isinstance(value, str) for value in fields.values()
    ):
        return None
    if not _NAMES.fullmatch(f"{fields['instant']}{fields.get('file_id', '')}{fields.get('file', '')}"):
        return None
    return MetInstant(**fields, from_text=True)
