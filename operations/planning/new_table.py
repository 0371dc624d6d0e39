"""The properties of a table that a write creates, from the options of the write."""

from __future__ import annotations

from dataclasses import replace

from ...errors import MissingOptionError, OptionConflictError, UnsupportedOptionError
from ...index.registry import is_offered
from ...table.config import TableConfig
from ...table.config.key_types import KeyGeneratorType, PartitionType, choose_key_generator, typed_fields
from ...table.config.merge_properties import merge_properties
from ...table.config.property_keys import (
    BUCKET,
    COPY_ON_WRITE,
    FILL_UNAVAILABLE,
    IGNORE_DEFAULTS,
    INDEX_TYPE,
    LOOKUP_INDEXES,
    MERGE_ON_READ,
    NEWEST_VERSION,
    PARTIAL_UPDATE_MODE,
    SORT_BY,
    SORT_CURVE,
    TIME_ZONES,
    VERSIONS,
)
from ...table.config.table_config import types_of_new_tables
from ...table.config.table_settings import TERMS
from ...table.keys.time_partitions import TimeOptions
from .table_terms import NO_UPDATE_MODE, PAYLOAD_CLASS, UNAVAILABLE, TableTerms, shown

DEFAULT_BUCKETS = 8
_VERSION = TERMS["version"].option


class NewTable(TableTerms):
    """The options of a write that creates its table, checked, and made the properties of that table."""

    def config(self, *, generates_keys: bool = False) -> TableConfig:
        """Return the new table's properties; with ``generates_keys`` it needs no record key. Raises OptionError.

        They are the options of the write that creates the table, with pyhudi's defaults for options that are absent.
        With ``generates_keys`` the writes of the table make a key for each row.
        """
        record_key = self.settings.record_key_fields or ()
        if not record_key and not generates_keys:
            raise MissingOptionError(
                f"There is no table at {self.path} yet, and hoodie.datasource.write.recordkey.field, the one "
                "option that a new table needs, is not given.",
                'Add .option("hoodie.datasource.write.recordkey.field", "<column>"); or '
                '.option("hoodie.datasource.write.operation", "insert") for a table that generates its keys and takes '
                "no upserts; or correct the path.",
            )
        self._check_creatable()
        index_type = self._index_type()
        self._check_named_once()
        self._check_curve()
        generator = self._generator()
        ordering = self._ordering_fields()
        merge_mode = self._merge_mode(ordering)
        self.check_hash_fields(self.settings.hash_fields, record_key)
        version = self.settings.or_default("version")
        self._check_merging(version)
        class_marker = self.settings.payload.delete_marker if self.settings.payload else None
        # Some payload classes have a delete marker. A version that stores only the class needs no marker beside it.
        marker = self.marker(None) or (None if merge_properties(version).class_alone_decides else class_marker)
        return TableConfig.new(
            replace(
                self.settings,
                name=self.settings.name or self.path.rstrip("/").rpartition("/")[2],
                partition_types=self.settings.partition_types if generator is KeyGeneratorType.CUSTOM else None,
                ordering_fields=ordering,
                merge_mode=merge_mode,
                delete_field=marker.field if marker else None,
                delete_marker=marker.value if marker else None,
                partial_update_mode=self._partial_update_mode(),
                key_generator=generator,
                index_type=index_type,
                bucket_count=(self.settings.bucket_count or DEFAULT_BUCKETS) if index_type == BUCKET else None,
                time_options=self._time_options(generator),
            )
        )

    def _index_type(self) -> str | None:
        """Return the index of the new table, after a check of the bucket options against it."""
        if not self.settings.record_key_fields:
            self.check_no_index()
            # Apache Hudi's default index, which finds keys in files, goes with generated keys.
            return None
        index_type = self.settings.index_type or BUCKET
        if index_type != BUCKET:
            self.check_no_buckets(index_type)
        return index_type

    def _check_creatable(self) -> None:
        """Refuse a version, an index, a table type, a time zone or a merge mode with which pyhudi makes no table.

        Raises UnsupportedOptionError. A setting that is None was not given, so that a default holds.
        """
        if self.settings.version not in {None, *VERSIONS}:
            raise UnsupportedOptionError(
                f"{_VERSION}={self.settings.version} is given for the new table {self.path}, and pyhudi does not "
                "create tables of that version yet.",
                f"Use {' or '.join(map(str, VERSIONS))}, or create the table with Apache Hudi.",
            )
        if self.settings.index_type is not None and not is_offered(self.settings.index_type):
            raise UnsupportedOptionError(
                f"{INDEX_TYPE}={self.settings.index_type} is given for the new table {self.path}, and pyhudi does not "
                "have that index yet.",
                f"Use one of {', '.join((BUCKET, *LOOKUP_INDEXES))}, or create the table with Apache Hudi.",
            )
        if self.settings.table_type not in {None, COPY_ON_WRITE, MERGE_ON_READ}:
            raise UnsupportedOptionError(
                f"hoodie.datasource.write.table.type={self.settings.table_type} is given for the new table "
                f"{self.path}, and Apache Hudi has no such type.",
                f"Use {COPY_ON_WRITE} or {MERGE_ON_READ}.",
            )
        table_type, version = self.settings.or_default("table_type"), self.settings.or_default("version")
        if table_type not in types_of_new_tables(version):
            raise UnsupportedOptionError(
                f"{_VERSION}={version} is given for the new table {self.path}, which is to be {table_type}, and pyhudi "
                f"makes tables of that version as {' or '.join(types_of_new_tables(version))} alone.",
                f"Use hoodie.datasource.write.table.type={COPY_ON_WRITE}, or {_VERSION}={NEWEST_VERSION}.",
            )
        if self.settings.timezone not in {None, "UTC", "LOCAL"}:
            raise UnsupportedOptionError(
                f"hoodie.table.timeline.timezone={self.settings.timezone} is given for the new table {self.path}.",
                "Use UTC or LOCAL, the two that Apache Hudi knows.",
            )
        if self.settings.merge_mode not in {None, "EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"}:
            raise UnsupportedOptionError(
                f"hoodie.write.record.merge.mode={self.settings.merge_mode} is given for the new table {self.path}.",
                "Use EVENT_TIME_ORDERING or COMMIT_TIME_ORDERING.",
            )

    def _check_merging(self, version: int) -> None:
        """Refuse merge rules that tables of the version cannot store, because other engines would merge differently.

        ``version`` is the version that the new table gets. Merge rules say which of two rows with one key wins: by
        ordering fields, a mode of partial updates, or a payload class with its delete marker.
        """
        ordering, most = self.settings.ordering_fields or (), merge_properties(version).most_ordering_fields
        if most is not None and len(ordering) > most:
            raise OptionConflictError(
                f"The new table {self.path} is to be ordered by {shown(ordering)}, and tables of version "
                f"{version} have one ordering field.",
                f"Name one with hoodie.table.ordering.fields, or use {_VERSION}={NEWEST_VERSION}.",
            )
        rules = merge_properties(version)
        mode = self._partial_update_mode()
        if rules.class_alone_decides:
            # Such a version stores the mode and the marker as a payload class, so a class must have both.
            self._check_class(version, mode)
            return
        if mode is not None and not rules.keeps_partial_updates:
            raise OptionConflictError(
                f"{PARTIAL_UPDATE_MODE}={mode} is given for the new table {self.path}, and tables of version {version} "
                "cannot store it.",
                f"Use {_VERSION}={NEWEST_VERSION}, or leave the option out.",
            )
        if self.settings.payload and self.settings.payload.delete_marker and not rules.keeps_markers:
            raise OptionConflictError(
                f"{PAYLOAD_CLASS}={self.settings.payload.name} is given for the new table {self.path}, and in tables "
                f"of version {version} this class merges by code of its own.",
                f"Use {_VERSION}={NEWEST_VERSION}, or leave the class out and say in every write which rows are "
                "deletes, by hoodie.payload.delete.field and hoodie.payload.delete.marker.",
            )

    def _check_class(self, version: int, mode: str | None) -> None:
        """Refuse merge rules that no payload class has, in a table version that stores nothing else of them.

        Refuse a class by which pyhudi does not merge, too. ``mode`` is the mode of partial updates, None for none.
        """
        payload, cure = self.settings.payload, f"Use {_VERSION}={NEWEST_VERSION}, or leave the option out."
        if payload is not None and payload.ordering_fields:
            raise UnsupportedOptionError(
                f"{PAYLOAD_CLASS}={payload.name} is given for the new table {self.path}. In tables of version "
                f"{version} pyhudi does not merge by this class, which orders rows by "
                f"{', '.join(payload.ordering_fields)}.",
                cure,
            )
        if mode != (None if payload is None else payload.partial_update_mode):
            raise OptionConflictError(
                f"{PARTIAL_UPDATE_MODE}={mode} is given for the new table {self.path}, and tables of version {version} "
                "keep it as a payload class alone.",
                f"Give {PAYLOAD_CLASS}, PartialUpdateAvroPayload or OverwriteNonDefaultsWithLatestAvroPayload. {cure}",
            )

    def _ordering_fields(self) -> tuple[str, ...]:
        """Return the ordering fields: those that the payload class brings, else those of the options; empty for none.

        Raises OptionConflictError if both name fields and these differ.
        """
        class_fields = self.settings.payload.ordering_fields if self.settings.payload else ()
        if class_fields and self.settings.ordering_fields not in {None, class_fields}:
            raise OptionConflictError(
                f"{PAYLOAD_CLASS} orders the rows of the new table {self.path} by {shown(class_fields)}, and "
                f"hoodie.table.ordering.fields names {shown(self.settings.ordering_fields)}.",
                "Leave one of the two out.",
            )
        return class_fields or self.settings.ordering_fields or ()

    def _merge_mode(self, ordering: tuple[str, ...]) -> str:
        """Return the merge mode of the option; without it, event time if there are ordering fields, else commit time.

        Raises OptionConflictError if the option says event time and there is no ordering field.
        """
        mode = self.settings.merge_mode or ("EVENT_TIME_ORDERING" if ordering else "COMMIT_TIME_ORDERING")
        if mode == "EVENT_TIME_ORDERING" and not ordering:
            raise OptionConflictError(
                "hoodie.write.record.merge.mode=EVENT_TIME_ORDERING needs an ordering field, and none is given "
                f"for the new table {self.path}.",
                "Name one with hoodie.table.ordering.fields, or use COMMIT_TIME_ORDERING.",
            )
        return mode

    def _partial_update_mode(self) -> str | None:
        """Return how rows with missing values update stored rows; None if rows replace the stored rows whole.

        The mode comes from its option or from the payload class. Raises if pyhudi or the table's keys do not allow it.
        """
        mode = self.settings.partial_update_mode or (
            self.settings.payload.partial_update_mode if self.settings.payload else None
        )
        mode = None if mode == NO_UPDATE_MODE else mode
        if mode not in {None, IGNORE_DEFAULTS, FILL_UNAVAILABLE}:
            raise UnsupportedOptionError(
                f"{PARTIAL_UPDATE_MODE}={mode} is given for the new table {self.path}, and pyhudi does not support it.",
                f"Use {IGNORE_DEFAULTS} or {FILL_UNAVAILABLE}.",
            )
        if self.settings.unavailable and mode != FILL_UNAVAILABLE:
            raise OptionConflictError(
                f"{UNAVAILABLE} names the placeholder of a missing value in rows of the new table {self.path}, and "
                f"only {PARTIAL_UPDATE_MODE}={FILL_UNAVAILABLE} reads it.",
                "Give both or neither.",
            )
        if mode is not None and not self.settings.record_key_fields:
            raise OptionConflictError(
                f"{PARTIAL_UPDATE_MODE} is {mode}, and the new table {self.path} has no record key, so that no "
                "row is updated.",
                "Leave the option out, or name a record key with hoodie.datasource.write.recordkey.field.",
            )
        return mode

    def _check_named_once(self) -> None:
        """Refuse a column that an option names twice, because no reader knows a table with two equal columns."""
        for fields, key in (
            (self.settings.record_key_fields, "hoodie.datasource.write.recordkey.field"),
            (self.settings.partition_fields, "hoodie.datasource.write.partitionpath.field"),
            (self.settings.sort_by, SORT_BY),
        ):
            if fields and len(set(fields)) < len(fields):
                raise OptionConflictError(
                    f"{key} of the new table {self.path} names a column twice: {shown(fields)}.",
                    "Name each column once.",
                )

    def _check_curve(self) -> None:
        """Refuse a sort curve without columns to sort by."""
        if self.settings.sort_curve is not None and not self.settings.sort_by:
            raise OptionConflictError(
                f"{SORT_CURVE} is {self.settings.sort_curve} for the new table {self.path}, and no columns are named "
                "by which its rows are sorted.",
                f"Name them with {SORT_BY}, or leave the curve out.",
            )

    def _generator(self) -> KeyGeneratorType:
        """Return the key generator of the option; without it, the generator that fits the key and partition columns.

        Raises OptionConflictError if the generator of the option does not fit the columns.
        """
        record_key, partition = self.settings.record_key_fields or (), self.settings.partition_fields or ()
        typed = self.settings.partition_types is not None
        generator = self.settings.key_generator or choose_key_generator(record_key, partition, is_typed=typed)
        fits_columns = {
            KeyGeneratorType.SIMPLE: len(record_key) <= 1 and len(partition) == 1,
            KeyGeneratorType.COMPLEX: True,
            KeyGeneratorType.NON_PARTITION: not partition,
            KeyGeneratorType.TIMESTAMP: len(record_key) <= 1 and len(partition) == 1,
            KeyGeneratorType.CUSTOM: typed or not partition,
        }[generator]
        if fits_columns and (generator is KeyGeneratorType.CUSTOM or not typed):
            return generator
        cure = "Leave it out: it follows from the columns."
        if generator is KeyGeneratorType.CUSTOM:
            cure = "Write each partition column as <column>:SIMPLE or <column>:TIMESTAMP."
        elif generator is KeyGeneratorType.TIMESTAMP:
            cure = (
                "Name one record key column, and one partition column without a type; or use CUSTOM with "
                "<column>:SIMPLE and <column>:TIMESTAMP."
            )
        raise OptionConflictError(
            f"The key generator {generator.value} (hoodie.datasource.write.keygenerator.type) does not fit the "
            f"new table {self.path} with the record key {shown(record_key)} and the partition columns "
            f"{shown(typed_fields(partition, self.settings.partition_types))}.",
            cure,
        )

    def _time_options(self, generator: KeyGeneratorType) -> dict[str, str]:
        """Return the time options that the table stores, with UTC for an unset zone.

        Apache Hudi would take the zone of its machine.
        """
        has_times = generator is KeyGeneratorType.TIMESTAMP or PartitionType.TIMESTAMP in (
            self.settings.partition_types or ()
        )
        if not has_times:
            if self.settings.time_options:
                raise OptionConflictError(
                    f"{next(iter(self.settings.time_options))} says how the new table {self.path} makes partition "
                    f"paths of times, and its key generator {generator.value} makes none.",
                    "Leave the option out, or use hoodie.datasource.write.keygenerator.type=TIMESTAMP.",
                )
            return {}
        options = dict(self.settings.time_options)
        options |= {option: "UTC" for option in TimeOptions(options, self.path).missing() if option in TIME_ZONES}
        # This raises if an option is missing or invalid.
        TimeOptions(options, self.path).partitions()
        return options
