"""The table options of a write to an existing table, checked against its properties."""

from __future__ import annotations

from collections.abc import Callable

from ...errors import MissingOptionError, OptionConflictError
from ...table.config import TableConfig
from ...table.config.key_types import PartitionType
from ...table.config.property_keys import (
    BLOOM,
    BUCKET,
    BUCKET_COUNT,
    GLOBAL_BLOOM,
    GLOBAL_INDEXES,
    GLOBAL_SIMPLE,
    INDEX_TYPE,
    PARTIAL_UPDATE_MODE,
    RECORD_INDEX_LOOKUP,
    SIMPLE,
)
from ...table.config.table_config import bucket_properties
from ...table.config.table_settings import TERMS
from ...table.inferred.index import InferredIndex, is_unnoted, mixed, with_inferred
from ...table.keys.time_partitions import TimeOptions, with_both_zones
from .table_terms import DELETE_FIELD, DELETE_MARKER, NO_UPDATE_MODE, PAYLOAD_CLASS, UNAVAILABLE, TableTerms, shown


def _index_without_rows() -> InferredIndex:
    """Return the inferred index of a table without file groups, whose names could tell an index."""
    return InferredIndex(SIMPLE)


class AdoptedTable(TableTerms):
    """The table options of a write to an existing table, checked against the properties that the table has."""

    def changes_to(
        self, config: TableConfig, look: Callable[[], InferredIndex] = _index_without_rows, *, rewrites: bool = False
    ) -> tuple[TableConfig, dict[str, str]]:
        """Return the table's properties with those that this write adds, and the added properties alone.

        Apache Hudi stores neither the index nor the number of buckets: the first write whose options name them adds
        them. An index that ``look`` infers from names of file groups is returned but not added, because the next
        overwrite of another writer may choose a different index. An index that it infers from a record index is added,
        because a write takes the record index out of use. A write that ``rewrites`` replaces all file groups, so that
        their names forbid no index.
        """
        self._check_agrees(config)
        marker = self.marker(config.delete_marker)
        if marker is not None and config.delete_marker is None:
            # The marker is for this write alone, as in Apache Hudi.
            config = config.with_delete_marker(marker)
        # Options about buckets name the bucket index, too.
        named_index = self.settings.index_type or (
            BUCKET if self.settings.bucket_count is not None or self.settings.hash_fields else None
        )
        if is_unnoted(config) and named_index != BUCKET:
            inferred = look()
            if named_index is not None:
                added = self._added_lookup(named_index, inferred, rewrites=rewrites)
            elif inferred.by_record_index:
                self.check_no_buckets(str(inferred.kind))
                added = {RECORD_INDEX_LOOKUP: str(inferred.kind)}
            else:
                added, config = {}, self._as_inferred(config, inferred)
        else:
            added = self._added_buckets(config)
        additions = {**added, **self._added_times(config)}
        return (TableConfig({**config.properties, **additions}) if additions else config), additions

    def _check_agrees(self, config: TableConfig) -> None:
        """Raise OptionConflictError if options of the write contradict the table; the error names each such option.

        ``config`` has the table's properties. An option that the write does not give contradicts nothing.
        """
        conflicts = []
        for name, term in TERMS.items():
            asked_value = getattr(self.settings, name)
            if asked_value is None or not term.compared:
                continue
            stored = getattr(config, name)
            # A property that not every table has contradicts nothing where it is absent.
            if asked_value != stored and (term.noted or stored is not None):
                conflicts.append(f"{term.option} is {shown(asked_value)} here and {shown(stored)} in the table")
        marker = self.marker(config.delete_marker)
        if marker is not None and config.delete_marker not in {None, marker}:
            conflicts.append(
                f"{DELETE_FIELD} and {DELETE_MARKER} are {marker} here and {config.delete_marker} in the table"
            )
        class_marker = self.settings.payload.delete_marker if self.settings.payload else None
        if class_marker and marker is None:
            conflicts.append(
                f"{PAYLOAD_CLASS} means here that rows with {class_marker} are deletes, and the table was made without "
                f"it ({DELETE_FIELD} and {DELETE_MARKER} say so for one write)"
            )
        conflicts += self._update_mode_conflicts(config)
        conflicts += self._time_conflicts(config)
        if conflicts:
            raise OptionConflictError(
                f"Options disagree with the table {self.path}: {'; '.join(conflicts)}.",
                "Leave these options out: after creation a write needs none.",
            )

    def _time_conflicts(self, config: TableConfig) -> list[str]:
        """Return a sentence for each time option that contradicts the table; empty for none."""
        # Only with time options, because the properties of some tables lack the types of their partitions.
        if self.settings.time_options and PartitionType.TIMESTAMP not in config.partition_types:
            return [
                f"{key} is given, and no partition of the table is made of times" for key in self.settings.time_options
            ]
        stored = with_both_zones(config.time_options)
        return [
            f"{key} is {shown(asked_value)} here and {shown(stored[key])} in the table"
            for key, asked_value in with_both_zones(self.settings.time_options).items()
            if stored.get(key, asked_value) != asked_value
        ]

    def _update_mode_conflicts(self, config: TableConfig) -> list[str]:
        """Return a sentence for each option of partial updates that contradicts the table; empty for none."""
        asked_mode, stored_mode = self.settings.partial_update_mode, config.partial_update_mode or NO_UPDATE_MODE
        differing = []
        if asked_mode not in {None, stored_mode}:
            differing.append(f"{PARTIAL_UPDATE_MODE} is {asked_mode} here and {stored_mode} in the table")
        if self.settings.unavailable is not None and self.settings.unavailable != config.unavailable_value:
            differing.append(
                f"{UNAVAILABLE} is {shown(self.settings.unavailable)} here and {shown(config.unavailable_value)} in "
                "the table"
            )
        return differing

    def _added_times(self, config: TableConfig) -> dict[str, str]:
        """Return the time options of the write that the table does not store yet."""
        if PartitionType.TIMESTAMP not in config.partition_types:
            return {}
        time_options = config.time_options
        # This raises if an option is missing or invalid.
        TimeOptions({**time_options, **self.settings.time_options}, self.path).partitions()
        return {option: text for option, text in self.settings.time_options.items() if option not in time_options}

    def _added_buckets(self, config: TableConfig) -> dict[str, str]:
        """Return the bucket properties that the table lacks; empty if it stores them, or has an index without buckets.

        Raises MissingOptionError if neither the table nor the options have the number of buckets.
        """
        if config.generates_keys:
            self.check_no_index()
            return {}
        if config.index_type not in {None, BUCKET}:
            self.check_no_buckets(str(config.index_type))
            return {}
        if config.bucket_count is not None:
            return {}
        if self.settings.bucket_count is None:
            raise self._missing_count_error()
        hash_fields = self.settings.hash_fields or config.record_key_fields
        self.check_hash_fields(hash_fields, config.record_key_fields)
        return bucket_properties(self.settings.bucket_count, config.record_key_fields, hash_fields)

    def _added_lookup(self, index_type: str, inferred: InferredIndex, *, rewrites: bool) -> dict[str, str]:
        """Return the added properties of a write that names a lookup index; raise if file groups forbid that index.

        ``index_type`` is the named index, which looks keys up instead of computing a bucket. ``inferred`` is the index
        that the names of file groups or a record index show; it forbids nothing if the write ``rewrites`` the table.
        """
        # This raises if the write also gives options about buckets.
        self.check_no_buckets(index_type)
        if inferred.kind == BUCKET and not rewrites:
            raise OptionConflictError(
                f"{INDEX_TYPE} is {index_type} here, and the file groups of the table {self.path} are buckets. Writers "
                "of buckets find no row elsewhere, and fail on other file groups.",
                f"Leave the option out and give {BUCKET_COUNT}, or rewrite the table with mode overwrite.",
            )
        if inferred.kind in GLOBAL_INDEXES and index_type in {SIMPLE, BLOOM} and not rewrites:
            raise OptionConflictError(
                f"{INDEX_TYPE} is {index_type} here, and the table {self.path} has a record index, by which its keys "
                "are unique in the whole table, not only within their partitions.",
                f"Leave the option out, or give {INDEX_TYPE}={GLOBAL_SIMPLE} or {GLOBAL_BLOOM}.",
            )
        return {INDEX_TYPE: index_type}

    def _as_inferred(self, config: TableConfig, inferred: InferredIndex) -> TableConfig:
        """Return the properties with the index that the names of file groups show.

        Raises if these names contradict each other, or show buckets, whose number they do not tell.
        """
        if inferred.kind is None:
            raise mixed(inferred, self.path)
        if inferred.kind == BUCKET:
            raise self._missing_count_error()
        return with_inferred(config, inferred)

    def _missing_count_error(self) -> MissingOptionError:
        """Return the error of a bucket table whose number of buckets no property and no option tells."""
        return MissingOptionError(
            f"The table {self.path} does not store its number of buckets, because Apache Hudi wrote none.",
            f"Give {BUCKET_COUNT} the number that its writers use, once; pyhudi stores it in the table.",
        )
