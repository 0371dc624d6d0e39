"""What the checkpoint folder of a streaming query says, if this process reaches it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

from ...errors import PyHudiError
from ...methods.paths import absolute
from ...storage import open_storage
from ...storage.base import Storage
from ...storage.bounds import parse_json

logger = logging.getLogger("pyhudi")


@dataclass(frozen=True, slots=True)
class CheckpointFolder:
    """A query's folder, which may be "" for an unknown one, or in a store that only Spark reads.

    Attributes:
        table: The path of the table, for log lines.
    """

    path: str
    table: str
    storage_options: Mapping[str, str] = field(repr=False)

    def query_id(self) -> str:
        """Return the query's id; "" if the folder does not tell."""
        return self._read(lambda folder: str(parse_json(folder.read("metadata"))["id"]))

    def offsets(self, batch_id: int) -> str:
        """Return a digest of where and when Spark ended a batch; "" if the folder does not tell.

        Spark notes this before the batch begins and never changes the note (``OffsetSeqLog``). The offsets alone would
        not identify a batch: for a source of files, the offset is only the number of a list.
        """
        return self._read(lambda folder: blake2b(folder.read(f"offsets/{batch_id}"), digest_size=16).hexdigest())

    def _read(self, read_fact: Callable[[Storage], str]) -> str:
        """Return what ``read_fact`` takes from the folder; "" if the folder is unknown, unreadable or lacks it."""
        if not self.path:
            return ""
        try:
            return read_fact(open_storage(absolute(self.path), self.storage_options))
        except (PyHudiError, OSError, ValueError, KeyError, TypeError) as error:
            logger.info("table %s: the checkpoint %s tells nothing of its query: %s", self.table, self.path, error)
            return ""
