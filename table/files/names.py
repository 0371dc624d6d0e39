"""The names of data files, and what they say: file id, write token, instant and bucket.

Source: ``org.apache.hudi.common.fs.FSUtils`` and ``BucketIdentifier``; see also RFC-29 (hash index).
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass

from ...errors import MetInstant
from ...storage.base import split

PARQUET = ".parquet"

_BASE = re.compile(
    r"(?P<file_id>[A-Za-z0-9-]+)_(?P<token>[0-9]+-[0-9]+-[0-9]+)_(?P<instant>[0-9]+)(?P<extension>\.[a-z]+)"
)
_LOG = re.compile(
    r"\.(?P<file_id>[A-Za-z0-9-]+)_(?P<instant>[0-9]+)\.log\.(?P<version>[0-9]+)"
    r"(?:_(?P<token>[0-9]+-[0-9]+-[0-9]+))?(?P<suffix>\.cdc)?"
)
# A record index by partitions has the path of a partition of the table in its file ids, escaped in part.
_PARTITIONED = r"(?P<file_id>record-index-.+-[0-9]{4,}-0)"
_BASE_OF_INDEX = re.compile(
    rf"{_PARTITIONED}_(?P<token>[0-9]+-[0-9]+-[0-9]+)_(?P<instant>[0-9]+)(?P<extension>\.hfile)"
)
_LOG_OF_INDEX = re.compile(
    rf"\.{_PARTITIONED}_(?P<instant>[0-9]+)\.log\.(?P<version>[0-9]+)_(?P<token>[0-9]+-[0-9]+-[0-9]+)(?P<suffix>)"
)
_BUCKET = re.compile(r"(?P<bucket>[0-9]{8})(?=-)")
_MAX_BUCKET = 10**8
# No table has so many buckets in a partition.
_MOST_BUCKETS = 100_000

# Fixed for ever: every writer of one instant must invent the same file id for the same bucket.
NAMESPACE = uuid.UUID("5a4cb0ba-5b4a-5d0c-8d75-3c2a2f5c6e1e")


@dataclass(frozen=True, slots=True, order=True)
class WriteToken:
    """The attempt of a task that wrote a file: Spark partition, stage, task attempt id."""

    partition: int
    stage: int
    attempt: int

    @classmethod
    def parse(cls, text: str) -> WriteToken:
        partition, stage, attempt = text.split("-")
        return cls(int(partition), int(stage), int(attempt))

    def __str__(self) -> str:
        return f"{self.partition}-{self.stage}-{self.attempt}"


@dataclass(frozen=True, slots=True, order=True)
class FileGroupId:
    """A file group by its partition and its file id."""

    partition_path: str
    file_id: str

    @property
    def words(self) -> str:
        """The file group as errors name it."""
        return f"file group {self.file_id} of partition {self.partition_path!r}"


RUN_AGAIN = (
    "Run it again: a clean by another writer may have taken it away. If that does not help, the metadata table may "
    "list a file that is gone: read with hoodie.metadata.enable=false, and let HudiTable.validate() look."
)
"""What to do if a file that was listed is gone."""


def met_at_file(path: str, kind: str = "clean") -> MetInstant:
    """Return, for an error, the instant that wrote a file that is gone, and what kind of instant probably took it.

    ``path`` is the file's in the table. The instant's time is "" for a log file.
    """
    folder, name = split(path)
    base, log = BaseFileName.parse(name), LogFileName.parse(name)
    if base is not None:
        return MetInstant(base.instant_time, kind, folder, base.file_id, name)
    # The name of a log file does not say on every version which instant wrote it.
    return MetInstant("", kind, folder, None if log is None else log.file_id, name)


@dataclass(frozen=True, slots=True)
class BaseFileName:
    """The name of a base file, ``<file id>_<write token>_<instant><extension>``."""

    file_id: str
    write_token: WriteToken
    instant_time: str
    extension: str = PARQUET

    @classmethod
    def parse(cls, name: str) -> BaseFileName | None:
        """Return what a name says; None for a name of another form."""
        match = _BASE.fullmatch(name) or _BASE_OF_INDEX.fullmatch(name)
        if match is None:
            return None
        return cls(match["file_id"], WriteToken.parse(match["token"]), match["instant"], match["extension"])

    def format(self) -> str:
        return f"{self.file_id}_{self.write_token}_{self.instant_time}{self.extension}"


@dataclass(frozen=True, slots=True)
class LogFileName:
    """The name of a log file, ``.<file id>_<instant>.log.<version>_<write token>`` and ``.cdc`` for change data.

    Its time is that of the delta commit from table version 8 on, and of the slice's base instant before: `SliceRule`
    says who wrote the file. The oldest releases wrote no write token.
    """

    file_id: str
    named_time: str
    version: int
    write_token: WriteToken | None = None
    is_cdc: bool = False

    @classmethod
    def parse(cls, name: str) -> LogFileName | None:
        """Return what a name says; None for a name of another form."""
        match = _LOG.fullmatch(name) or _LOG_OF_INDEX.fullmatch(name)
        if match is None:
            return None
        token = WriteToken.parse(match["token"]) if match["token"] else None
        return cls(match["file_id"], match["instant"], int(match["version"]), token, bool(match["suffix"]))

    @property
    def order(self) -> tuple[str, int, str, bool]:
        """The key by which the log files of one slice are sorted to be read.

        Write tokens are compared as text, so that 10 comes before 9; Source: ``HoodieLogFile.LogFileComparator``.
        """
        token = "" if self.write_token is None else str(self.write_token)
        return self.named_time, self.version, token, self.is_cdc

    def format(self) -> str:
        token = "" if self.write_token is None else f"_{self.write_token}"
        return f".{self.file_id}_{self.named_time}.log.{self.version}{token}{'.cdc' if self.is_cdc else ''}"


def bucket_of(file_id: str) -> int | None:
    """Return the number in front of a file id; None for an id without eight digits there."""
    match = _BUCKET.match(file_id)
    return None if match is None else int(match["bucket"])


def bucket_by_name(file_id: str) -> int | None:
    """Return the bucket that a file id names, None if no table has as many: one random UUID in forty has digits."""
    number = bucket_of(file_id)
    return None if number is None or number >= _MOST_BUCKETS else number


def new_file_id(instant_time: str, partition_path: str, writer: int) -> str:
    """Return the id of a file group without a bucket: the same for every attempt of the Spark partition ``writer``."""
    invented = str(uuid.uuid5(NAMESPACE, f"{instant_time}/{partition_path}/by {writer}"))
    # A reader would take eight leading digits for a bucket.
    return f"{'abcdef'[int(invented[0], 16) % 6]}{invented[1:]}-0"


def numbered_file_id(file_id: str, number: int) -> str:
    """Return the file id of one of several file groups that are opened together; the first file id ends in 0."""
    return f"{file_id.rpartition('-')[0]}-{number}"


def new_bucket_file_id(instant_time: str, partition_path: str, bucket: int) -> str:
    """Return the file id of a bucket that an instant opens: the same for every task and attempt."""
    if not 0 <= bucket < _MAX_BUCKET:
        raise ValueError(f"bucket {bucket} has no eight digits")
    invented = str(uuid.uuid5(NAMESPACE, f"{instant_time}/{partition_path}/{bucket}"))
    return f"{bucket:08d}{invented[8:]}-0"
