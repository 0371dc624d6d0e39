"""Which index a table has, by name: those of pyhudi, and those that other packages offer.

A package offers an index through the entry-point group ``pyhudi.indexes``. The entry point's name is the value of
``hoodie.index.type`` that it serves, its object takes a `TableConfig` and `LookupSettings` and returns an `Index`::

    [project.entry-points."pyhudi.indexes"]
    MY_INDEX = "my_package:index_of_table"

No package can take over the names of Apache Hudi's own indexes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa

from ..errors import MissingOptionError, OptionConflictError, TableConfigError, UnsupportedTableError
from ..table.config import property_keys as key
from ..table.config.table_config import TableConfig
from ..table.files.names import FileGroupId
from .base import ComputedIndex, Index, LookupIndex, Positions
from .bloom import BloomIndex, GlobalBloomIndex
from .bucket import BucketIndex, NumberOfBuckets
from .lookup import GlobalSimpleIndex, SimpleIndex
from .parsed_twice import ParsedTwiceIndex
from .settings import LookupSettings
from .unnoted import UnnotedIndex

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "pyhudi.indexes"
BUCKET = key.BUCKET
BUCKET_EXPRESSIONS = "hoodie.bucket.index.partition.expressions"


class _Unindexed(Index):
    """The index of a table that generates its keys: no key is looked for, and every file group may hold every key."""

    is_global = False
    needs_lookup = False
    can_index_log_files = False

    def misfits(self, record_keys: pa.Array, group: FileGroupId) -> Positions:
        return np.zeros(0, np.int64)

    def rival_key(self, group: FileGroupId) -> str:
        return f"file group {group.file_id}"


IndexFactory = Callable[[TableConfig, LookupSettings], Index]


def index_for(
    config: TableConfig, settings: LookupSettings | None = None, numbers: NumberOfBuckets | None = None
) -> Index:
    """Return the index of a table; ``numbers`` are those of a bucket index, if partitions differ.

    A table that names no index, but a number of buckets, has a bucket index; a table without record key fields has
    nothing to look up. Raises `MissingOptionError` if the number of buckets is unknown, or another option or table
    error.
    """
    if config.generates_keys:
        return _Unindexed()
    kind = config.index_type or BUCKET
    if kind in _LOOKUPS:
        return _LOOKUPS[kind](config, settings or LookupSettings())
    if kind == BUCKET:
        return _bucket_index(config, numbers)
    return _offered_factory(kind, config)(config, settings or LookupSettings())


def noted_index_for(config: TableConfig, numbers: NumberOfBuckets | None = None) -> Index | None:
    """Return the index of a table; None if its properties name neither an index nor a number of buckets."""
    says = config.generates_keys or config.bucket_count is not None or config.index_type not in {None, BUCKET}
    return index_for(config, numbers=numbers) if says else None


def has_buckets(config: TableConfig) -> bool:
    """Return whether a table's properties note the bucket index, so that partitions have numbers of buckets."""
    return config.has_buckets


def placing_index_for(config: TableConfig, numbers: NumberOfBuckets | None = None) -> BucketIndex | None:
    """Return the index that a table's properties name, if the key alone decides a row's file group; else None.

    Reads prune file groups by it, and by the numbers of buckets of their moment. They load no index of another package,
    which may need options of its own.
    """
    return _bucket_index(config, numbers) if has_buckets(config) else None


def computed_index_for(config: TableConfig, numbers: NumberOfBuckets | None = None) -> ComputedIndex:
    """Return the index of a table whose keys alone decide where they are; raises `ValueError` for any other table."""
    index = as_computed(index_for(config, numbers=numbers))
    if index is None:
        raise ValueError(f"the keys of {config.name} do not tell where they are")
    return index


def as_computed(index: Index) -> ComputedIndex | None:
    """Return an index whose keys alone decide where they are; None for any other."""
    return None if index.needs_lookup or isinstance(index, _Unindexed) else cast(ComputedIndex, index)


def lookup_for(config: TableConfig, settings: LookupSettings | None = None) -> LookupIndex | None:
    """Return the index of a table if it has to look keys up; None if the keys alone decide."""
    index = index_for(config, settings)
    return cast(LookupIndex, index) if index.needs_lookup else None


def is_offered(kind: str) -> bool:
    """Return whether pyhudi or an installed package has an index of this name, given in capitals."""
    return kind == BUCKET or kind in key.LOOKUP_INDEXES or bool(_offers(kind))


def _offers(kind: str) -> set[EntryPoint]:
    """Return the entry points of installed packages that offer an index of this name."""
    from importlib.metadata import entry_points  # noqa: PLC0415 (slow, and a built-in index needs none)

    return {entry for entry in entry_points(group=ENTRY_POINTS) if entry.name.upper() == kind}


def _offered_factory(kind: str, config: TableConfig) -> IndexFactory:
    """Return what makes an index of another package.

    Raises `OptionConflictError` if several packages offer it, and `UnsupportedTableError` if none does.
    """
    offers = _offers(kind)
    if len(offers) > 1:
        raise OptionConflictError(
            f"Table {config.name!r} has the index {kind}, which several packages offer: "
            f"{', '.join(sorted(entry.value for entry in offers))}.",
            "Keep one of these packages and uninstall the others.",
        )
    if not offers:
        names = ", ".join(sorted({BUCKET, *_LOOKUPS}))
        raise UnsupportedTableError(
            f"Table {config.name!r} has {key.INDEX_TYPE}={kind}, and pyhudi has only {names}.",
            f"Use Apache Hudi for this table, or install a package that offers {kind} as an entry point of the group "
            f"{ENTRY_POINTS}.",
        )
    factory: IndexFactory = offers.pop().load()
    return factory


def _bucket_index(config: TableConfig, numbers: NumberOfBuckets | None = None) -> BucketIndex:
    """Return the bucket index of a table, or `ParsedTwiceIndex` if two releases may have written its keys.

    Raises `UnsupportedTableError` for another engine of buckets, `MissingOptionError` without a number of buckets, and
    `TableConfigError` for properties that contradict each other.
    """
    for option in (key.BUCKET_ENGINE, BUCKET_EXPRESSIONS):
        value = config.properties.get(option)
        # Only the engine SIMPLE, which is the default, hashes keys into a fixed number of buckets.
        if value and (option, value.upper()) != (key.BUCKET_ENGINE, "SIMPLE"):
            raise UnsupportedTableError(
                f"Table {config.name!r} has {option}={value}, and pyhudi knows neither this engine nor numbers of "
                "buckets from there.",
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
    if not config.has_two_key_rules:
        return BucketIndex(config.bucket_count, config.record_key_fields, hash_fields, numbers=numbers)
    return ParsedTwiceIndex(
        config.bucket_count,
        config.record_key_fields,
        hash_fields,
        numbers=numbers,
        release_0_writes=not config.left_old_layout,
    )


_LOOKUPS: dict[str, Callable[[TableConfig, LookupSettings], LookupIndex]] = {
    key.SIMPLE: lambda _, settings: UnnotedIndex(settings) if settings.unnoted else SimpleIndex(settings),
    key.GLOBAL_SIMPLE: lambda _, settings: GlobalSimpleIndex(settings),
    key.BLOOM: lambda _, settings: BloomIndex(settings),
    key.GLOBAL_BLOOM: lambda _, settings: GlobalBloomIndex(settings),
}
