"""Writes as a user of `pyhudi.arrow` gives them: rows, and options by their keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

import pyarrow as pa
from pyhudi import arrow
from pyhudi.errors import OptionError
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.operations.result import CommitResult
from pyhudi.options.model import HudiOptions
from pyhudi.options.names import OPTIONS
from pyhudi.options.parsing import parse_options, texts_of
from pyhudi.options.types import SettingsField
from support.places import Place

# Values of options that a settings value has in other words.
_WORDS = ("EAGER", "SINGLE_WRITER", "SIMPLE", "uncompressed")


def write_without_spark(table: Place, rows: pa.Table, options: Mapping[str, Any]) -> CommitResult:
    """Run one write by the options that ``df.write`` would take, rows in their order, in milliseconds."""
    opened = arrow.Table(str(table))
    generates = parse_options(options).record_key is None and not arrow.Table.exists(opened.path)
    return opened.write(rows, record_key=None if generates else "", **options)


def options_of(table: TableSettings, settings: WriteSettings) -> dict[str, str] | None:
    """Return the options by which a user says what settings say; None where no options say all of it."""
    wanted = {type(value): value for value in _nested(table, settings)}
    given: dict[str, Any] = {**table.time_options, **settings.commit.extra_metadata}
    for name, info in HudiOptions.model_fields.items():
        sets = (info.json_schema_extra or {}).get("sets")  # type: ignore[union-attr]
        if not isinstance(sets, SettingsField) or sets.settings_class not in wanted or name not in OPTIONS:
            continue
        value = getattr(wanted[sets.settings_class], sets.name)
        told = _value_of(sets, value, info.default)
        if told is not None:
            given[OPTIONS[name].key] = told
    if not settings.upkeep.metadata:
        # Of a metadata table there is no option for its upkeep alone.
        given[OPTIONS["table_services"].key] = False
    if settings.keys.combine_before_insert != settings.keys.insert_drop_duplicates:
        given[OPTIONS["combine_before_insert"].key] = settings.keys.combine_before_insert
    if table.partition_types:
        typed = zip(table.partition_fields or (), table.partition_types, strict=True)
        given[OPTIONS["partition_fields"].key] = [f"{name}:{kind.value}" for name, kind in typed]
    texts = texts_of(given)
    return texts if _says(texts, table, settings) else None


def _nested(*values: object) -> Iterator[object]:
    """Yield settings values, and those in them."""
    for value in values:
        yield value
        yield from _nested(*(one for one in (getattr(value, f.name) for f in fields(value)) if is_dataclass(one)))  # type: ignore[arg-type]


def _value_of(sets: SettingsField, value: Any, default: Any) -> Any:
    """Return the value of an option that sets a field to a value; None where the option's default does."""
    by = sets.convert or (lambda given: given)
    if by(default) == value:
        return None
    if isinstance(value, Enum):
        return value.value
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    words = (value, *((round(value * 1000),) if number else ()), *_WORDS)
    return next((word for word in words if sets.convert is None or _equals(by, word, value)), None)


def _equals(by: Any, word: object, value: object) -> bool:
    try:
        return bool(by(word) == value)
    except (TypeError, AttributeError):
        return False


def _says(texts: Mapping[str, str], table: TableSettings, settings: WriteSettings) -> bool:
    try:
        asked = parse_options(texts).to_write_request("", pa.schema([]), overwrite=False)
    except OptionError:
        return False
    return asked.table == table and asked.write == replace(settings, stream=asked.write.stream)
