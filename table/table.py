"""A table that is opened: its store, its properties, and the format of its version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from ..errors import CommitConflictError, NotATableError, PyHudiError, TableNotFoundError
from ..storage.base import Storage
from ..timeline.archive.archive import Archive, ArchiveWriter
from ..timeline.instant_files import InstantFiles
from ..timeline.timeline import Timeline
from .config import PROPERTIES_PATH, TableConfig, load_config, stored_config
from .config.property_keys import LAYOUT_VERSION, LOCK, LOCK_PROVIDER
from .format import TableFormat, format_of


@dataclass(frozen=True, slots=True)
class LockSettings:
    """The provider of a table's lock by its name, and the options that configure it; they travel with tasks."""

    provider: str
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # they may hold secrets


def lock_settings(properties: Mapping[str, str]) -> LockSettings | None:
    """Return the settings of a table's lock; None if its properties name no provider."""
    provider = properties.get(LOCK_PROVIDER)
    if not provider:
        return None
    options = sorted((key, text) for key, text in properties.items() if key.startswith(LOCK))
    return LockSettings(provider, tuple(options))


@dataclass(frozen=True, slots=True)
class Table:
    """One table, opened once per call; it remembers no timeline, and travels with tasks.

    ``lock`` says which lock keeps writers of other software out; None for none.
    """

    storage: Storage = field(repr=False)  # its options may hold secrets
    config: TableConfig
    lock: LockSettings | None = None

    @classmethod
    def of(cls, storage: Storage, config: TableConfig) -> Table:
        """Return the table that its properties describe."""
        return cls(storage, config, lock_settings(config.properties))

    @property
    def path(self) -> str:
        return self.storage.path

    @property
    def format(self) -> TableFormat:
        return format_of(self.config)

    @property
    def instants(self) -> InstantFiles:
        layout = self.format.layout(self.config.timeline_folder, self.config.archive_folder)
        is_current = partial(_has_version, self.storage, self.config.version)
        return InstantFiles(self.storage, layout, self.format.codec, self.archive, is_current)

    @property
    def archive(self) -> Archive:
        return self.format.archive(self.storage, self.config.archive_folder)

    @property
    def archive_writer(self) -> ArchiveWriter:
        return self.format.archive_writer(self.storage, self.config)

    def timeline(self) -> Timeline:
        return Timeline.load(self.instants)


def open_table(storage: Storage) -> Table:
    """Open the table at a store's root; raises if there is none, or pyhudi cannot read its properties."""
    try:
        return Table.of(storage, load_config(storage))
    except (NotATableError, TableNotFoundError) as error:
        enclosing = _enclosing_table(storage)
        if enclosing is None:
            raise
        raise NotATableError(
            f"{storage.path} is no table of its own: it lies inside the Hudi table {enclosing}.",
            f"Give the path {enclosing}, and filter by its partition columns.",
        ) from error


def find_table(storage: Storage) -> Table | None:
    """Return the table at a store's root; None if there is no table."""
    try:
        return Table.of(storage, load_config(storage))
    except TableNotFoundError:
        return None


def _has_version(storage: Storage, version: int) -> bool:
    """Return whether a table's properties now name a version."""
    return load_config(storage).version == version


def refuse_other_version(table: Table, config: TableConfig | None = None) -> None:
    """Raise `CommitConflictError` if a table has another version, or timeline layout, than when it was opened.

    A write that was planned before would put its instant where readers of the other version do not look, in an encoding
    that they do not read. ``config`` has the properties, if the caller has just read them. A table that is not made yet
    has none.
    """
    stored = stored_config(table.storage) if config is None else config
    if stored is None or _version(stored) == _version(table.config):
        return
    way = "downgraded" if stored.version < table.config.version else "upgraded"
    raise CommitConflictError(
        f"The table {table.path} was {way} meanwhile, from {_version(table.config)} to {_version(stored)}, while this "
        "process was at work on it.",
        "Run it again, which reads the table anew.",
    )


def _version(config: TableConfig) -> str:
    """Return a table's version and layout as errors name them."""
    return f"version {config.version} (timeline layout {config.properties[LAYOUT_VERSION]})"


def _enclosing_table(storage: Storage) -> str | None:
    """Return the path of the table in whose folder a store's root lies; None if there is none, or no telling."""
    try:
        parent = storage.parent()
        while parent is not None and not parent.exists(PROPERTIES_PATH):
            parent = parent.parent()
    except PyHudiError:
        return None
    return None if parent is None else parent.path
