"""Which index a table has, by name: the built-in ones, and those that other packages offer.

A package offers an index through the entry-point group ``pyhudi.indexes``. The entry point's name is the value of
``hoodie.index.type`` that it serves, its object takes a `TableConfig` and returns an `Index`::

    [project.entry-points."pyhudi.indexes"]
    MY_INDEX = "my_package:index_of_table"

A built-in name cannot be taken over.
"""

from __future__ import annotations

from collections.abc import Callable

from ..errors import MissingOptionError, OptionConflictError, TableConfigError, UnsupportedTableError
from ..table.config import property_keys as key
from ..table.config.table_config import TableConfig
from .append import AppendIndex
from .base import Index
from .bucket import BucketIndex

ENTRY_POINTS = "pyhudi.indexes"
BUCKET = "BUCKET"
BUCKET_EXPRESSIONS = "hoodie.bucket.index.partition.expressions"

IndexFactory = Callable[[TableConfig], Index]


def index_for(config: TableConfig) -> Index:
    """Return the index of a table; a table that names none, but a number of buckets, has a bucket index.

    A table without record key fields has nothing to look up, whatever its properties say.

    Raises:
        MissingOptionError: The table says too little to know its buckets.
        OptionConflictError: Several installed packages offer the index.
        TableConfigError: The table's buckets make no sense.
        UnsupportedTableError: Neither pyhudi nor an installed package has the index.
    """
    if config.generates_keys:
        return AppendIndex()
    kind = (config.index_type or BUCKET).upper()
    return _factory(kind, config)(config)


def _factory(kind: str, config: TableConfig) -> IndexFactory:
    if kind in _BUILT_IN:
        return _BUILT_IN[kind]
    from importlib.metadata import entry_points  # noqa: PLC0415 (slow, and a built-in index needs none)

    offers = {entry for entry in entry_points(group=ENTRY_POINTS) if entry.name.upper() == kind}
    if len(offers) > 1:
        raise OptionConflictError(
            f"Table {config.name!r} has the index {kind}, which several packages offer: "
            f"{', '.join(sorted(entry.value for entry in offers))}.",
            "Uninstall all but one of them.",
        )
    if not offers:
        raise UnsupportedTableError(
            f"Table {config.name!r} has {key.INDEX_TYPE}={kind}, and pyhudi has only {', '.join(sorted(_BUILT_IN))}.",
            f"Use Apache Hudi for this table, or install a package that offers {kind} as an entry point of the group "
            f"{ENTRY_POINTS}.",
        )
    factory: IndexFactory = offers.pop().load()
    return factory


def _bucket(config: TableConfig) -> BucketIndex:
    for option in (key.BUCKET_ENGINE, BUCKET_EXPRESSIONS):
        value = config.properties.get(option)
        if value and (option, value.upper()) != (key.BUCKET_ENGINE, "SIMPLE"):
            raise UnsupportedTableError(
                f"Table {config.name!r} has {option}={value}, and pyhudi has only buckets of one number for all "
                "partitions.",
                "Use Apache Hudi for this table.",
            )
    if config.bucket_count is None:
        raise MissingOptionError(
            f"Table {config.name!r} was made without a note of its number of buckets, because Apache Hudi keeps none.",
            f"Give {key.BUCKET_COUNT} the number that its writers use.",
        )
    hash_fields = config.hash_fields or config.record_key_fields
    strangers = [field for field in hash_fields if field not in config.record_key_fields]
    if config.bucket_count < 1 or strangers:
        what = f"{key.BUCKET_HASH_FIELDS}={','.join(hash_fields)}" if strangers else f"{key.BUCKET_COUNT}=0"
        raise TableConfigError(
            f"Table {config.name!r} has {what} and the record key fields {','.join(config.record_key_fields)}.",
            "Correct the property in hoodie.properties to what the table's writers use.",
        )
    return BucketIndex(config.bucket_count, config.record_key_fields, hash_fields)


_BUILT_IN: dict[str, IndexFactory] = {BUCKET: _bucket}
