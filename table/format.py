"""What differs between table versions: one format a version, chosen when a table is opened.

Tables that were upgraded from version 6 and may have its log files get a variant of their version's format. A format
has a slot where two versions differ; docs/decisions names the fact behind each. What a version's properties say of
merging is chosen in `table.config`, below this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ..errors import TableVersionError
from ..storage.base import Storage
from ..storage.threads import for_each
from ..timeline.archive.archive import Archive, ArchiveWriter
from ..timeline.archive.lsm import LsmArchive
from ..timeline.archive.lsm_writer import LsmWriter
from ..timeline.layout import LayoutV1, LayoutV2, UpgradeLayout
from ..timeline.metadata.avro_codec import AvroCodec
from ..timeline.metadata.codec import Codec
from ..timeline.metadata.json_codec import JsonCodec
from ..timeline.timeline import Timeline
from .config import TableConfig
from .config.support import RAISED_BY_A_WRITE
from .files.file_group import DataFile, LogFile
from .files.logs.log_archive import LogArchive
from .files.logs.log_archive_writer import LogArchiveWriter
from .files.logs.log_file import writers_in
from .files.logs.undo_by_command import AppendsCommands, TakesBlocksBack
from .files.slice_rule import SliceRule, rule_of
from .files.undo import DeletesFiles, Undo


@dataclass(frozen=True, slots=True)
class TableFormat:
    """How tables of some versions keep their timeline and archive; ``layout_version`` is its name in properties.

    ``bucket_rules`` says whether Apache Hudi's writers of the version go by rules of bucket numbers, and
    ``keeps_metadata`` whether pyhudi keeps the metadata table of such a table.
    """

    layout_version: str
    layout: type[LayoutV1] | type[LayoutV2]
    codec: Codec
    archive: Callable[[Storage, str], Archive]
    archive_writer: Callable[[Storage, TableConfig], ArchiveWriter]
    undo: Undo
    bucket_rules: bool
    keeps_metadata: bool

    @property
    def slices(self) -> SliceRule:
        return rule_of(self.layout)

    def makers(self, files: Iterable[DataFile], completed: Timeline, *, opens: bool = False) -> frozenset[str]:
        """Return the requested times of the instants that wrote some files, by the files' names or completed writes.

        An undo, a check or archiving also ``opens`` a log file of which neither says who wrote it. A listing opens no
        file.
        """
        return self.slices.makers(files, completed, partial(writers_in, completed.storage) if opens else None)

    def makers_of_each(self, files: Sequence[DataFile], completed: Timeline) -> list[frozenset[str]]:
        """Return for each file what `makers` returns if it opens log files, but open all of these at once."""
        unknown: list[LogFile] = []

        def note(log: LogFile) -> frozenset[str]:
            # Only noted here: all such files are opened at once below.
            unknown.append(log)
            return frozenset()

        named_makers = [self.slices.makers([file], completed, note) for file in files]
        storage = completed.storage
        makers_inside = for_each(storage, partial(writers_in, storage), unknown)
        makers_by_path = {log.path: makers for log, makers in zip(unknown, makers_inside, strict=True)}
        return [
            makers | makers_by_path.get(file.path, frozenset())
            for file, makers in zip(files, named_makers, strict=True)
        ]


def _lsm_writer(storage: Storage, config: TableConfig) -> ArchiveWriter:
    return LsmWriter(storage, config.archive_folder)


def _log_writer(storage: Storage, config: TableConfig) -> ArchiveWriter:
    return LogArchiveWriter(storage, config.archive_folder, config.timezone)


_LSM = TableFormat(
    "2", LayoutV2, AvroCodec(), LsmArchive, _lsm_writer, DeletesFiles(), bucket_rules=False, keeps_metadata=True
)
_FLAT = TableFormat(
    "1", LayoutV1, JsonCodec(), LogArchive, _log_writer, AppendsCommands(), bucket_rules=False, keeps_metadata=False
)
_FORMATS = {6: _FLAT, 8: _LSM, 9: replace(_LSM, bucket_rules=True)}
_WITH_OLD_LOG_NAMES = {
    version: replace(table_format, layout=UpgradeLayout, undo=TakesBlocksBack())
    for version, table_format in _FORMATS.items()
    if table_format is not _FLAT
}


def format_of(config: TableConfig) -> TableFormat:
    """Return the format of a table; TableVersionError for a version without one.

    A table that was upgraded from version 6 has a variant of its version's format if it may have old log files.
    """
    table_format = _FORMATS.get(config.version)
    if table_format is None:
        raise TableVersionError(
            f"The table {config.name!r} is of version {config.version}, whose timeline has a layout that pyhudi does "
            "not know yet.",
            RAISED_BY_A_WRITE,
        )
    return _WITH_OLD_LOG_NAMES[config.version] if config.has_old_log_names else table_format
