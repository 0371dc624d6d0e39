"""The settings of a new table: for each its option, its property, its default, and how the property spells it.

The table options, the properties of new tables and the checks of later writes are derived from this list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, get_type_hints

from . import property_keys as key
from .key_types import KeyGeneratorType, PartitionType
from .payloads import Payload
from .property_keys import COPY_ON_WRITE, NEWEST_VERSION


@dataclass(frozen=True, slots=True)
class Term:
    """One setting of a table.

    Attributes:
        property: The key of the property that keeps it; None if several properties do, or `TableConfig` spells it.
        spelt: Returns a value as the property's text; an empty text is not kept.
        compared: Whether a later write is refused if its value differs from `TableConfig`'s attribute of this name.
        noted: Whether every table has the property, so that its absence differs from every value.
    """

    option: str
    property: str | None = None
    default: Any = None
    spelt: Callable[[Any], str] = str
    compared: bool = True
    noted: bool = True


def _flag(value: bool) -> str:
    return "true" if value else "false"


@dataclass(frozen=True, slots=True)
class TableSettings:
    """The caller's settings of the table itself.

    None means Apache Hudi's default for a new table, and an existing table's own value. A value that disagrees with an
    existing table is refused.

    Attributes:
        partial_update_mode: Which values of a row leave a column to the older row.
        unavailable: The text or bytes that leave a column to the older row, under FILL_UNAVAILABLE.
        time_options: By the keys of `property_keys.TIME_OPTIONS`.
    """

    name: Annotated[str | None, Term(key.NAME, key.NAME)] = None
    database: Annotated[str | None, Term(key.DATABASE, key.DATABASE)] = None
    table_type: Annotated[str | None, Term("hoodie.datasource.write.table.type", key.TYPE, default=COPY_ON_WRITE)] = (
        None
    )
    version: Annotated[int | None, Term("hoodie.write.table.version", key.VERSION, default=NEWEST_VERSION)] = None
    record_key_fields: Annotated[
        tuple[str, ...] | None, Term(key.RECORD_KEY_OPTION, key.RECORD_KEY_FIELDS, spelt=",".join)
    ] = None
    partition_fields: Annotated[
        tuple[str, ...] | None, Term("hoodie.datasource.write.partitionpath.field", default=())
    ] = None
    partition_types: Annotated[
        tuple[PartitionType, ...] | None, Term("hoodie.datasource.write.partitionpath.field")
    ] = None
    ordering_fields: Annotated[tuple[str, ...] | None, Term(key.ORDERING_FIELDS, default=())] = None
    merge_mode: Annotated[str | None, Term("hoodie.write.record.merge.mode")] = None
    payload: Annotated[Payload | None, Term("hoodie.datasource.write.payload.class", compared=False)] = None
    delete_field: Annotated[str | None, Term("hoodie.payload.delete.field", compared=False)] = None
    delete_marker: Annotated[str | None, Term("hoodie.payload.delete.marker", compared=False)] = None
    partial_update_mode: Annotated[str | None, Term(key.PARTIAL_UPDATE_MODE, compared=False)] = None
    unavailable: Annotated[str | None, Term("hoodie.write.partial.update.unavailable.value", compared=False)] = None
    key_generator: Annotated[
        KeyGeneratorType | None,
        Term("hoodie.datasource.write.keygenerator.type", key.KEY_GENERATOR_TYPE, spelt=lambda kind: kind.value),
    ] = None
    hive_style: Annotated[bool | None, Term(key.HIVE_STYLE, key.HIVE_STYLE, default=False, spelt=_flag)] = None
    url_encode: Annotated[bool | None, Term(key.URL_ENCODE, key.URL_ENCODE, default=False, spelt=_flag)] = None
    timezone: Annotated[str | None, Term(key.TIMEZONE, key.TIMEZONE, default="UTC")] = None
    index_type: Annotated[str | None, Term(key.INDEX_TYPE, key.INDEX_TYPE, noted=False)] = None
    bucket_count: Annotated[int | None, Term(key.BUCKET_COUNT, key.BUCKET_COUNT, noted=False)] = None
    hash_fields: Annotated[
        tuple[str, ...] | None, Term(key.BUCKET_HASH_FIELDS, key.BUCKET_HASH_FIELDS, spelt=",".join, noted=False)
    ] = None
    isolation: Annotated[str | None, Term(key.ISOLATION, key.ISOLATION, compared=False, noted=False)] = None
    sort_by: Annotated[tuple[str, ...] | None, Term(key.SORT_BY, key.SORT_BY, spelt=",".join)] = None
    sort_curve: Annotated[str | None, Term(key.SORT_CURVE, key.SORT_CURVE)] = None
    time_options: Mapping[str, str] = field(default_factory=dict)

    def spelt(self, *names: str) -> dict[str, str]:
        """Return the properties of these settings as their texts, without settings that have no value or no text."""
        values = ((TERMS[name], self.or_default(name)) for name in names)
        texts = ((term.property, term.spelt(value)) for term, value in values if term.property and value is not None)
        return {kept: text for kept, text in texts if text}

    def or_default(self, name: str) -> Any:
        """Return the caller's value of a setting, or the default of a new table if there is none."""
        value = getattr(self, name)
        return TERMS[name].default if value is None else value


TERMS: Mapping[str, Term] = {
    name: term
    for name, hint in get_type_hints(TableSettings, include_extras=True).items()
    for term in getattr(hint, "__metadata__", ())
}
