"""Options of tables whose index looks keys up: how a lookup works, and where new keys go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from ..index.settings import FileSizes, LookupSettings
from ..table.files.bloom_filter import DYNAMIC, BloomSettings
from .types import Count, FieldsOf, FilterType, OptionPart, Share, Size, SizeOrNone, family, option

INDEX_PREFIX = "hoodie.pyhudi.index."
CACHE_BYTES = f"{INDEX_PREFIX}cache.bytes"

LOOKUP, BLOOM, SIZES = map(FieldsOf, (LookupSettings, BloomSettings, FileSizes))


class LookupOptions(OptionPart):
    """How one write finds keys, and where it puts new keys; a bucket index needs none of these options."""

    prune_by_ranges: bool = option(
        LOOKUP.prunes_by_ranges,
        "Skip files by their least and greatest key before reading their bloom filters.",
        "hoodie.bloom.index.prune.by.ranges",
    )
    lookup_keys_per_task: Count = option(
        LOOKUP.keys_per_task,
        "How many pairs of a key and a candidate file one Spark task tests.",
        "hoodie.bloom.index.keys.per.bucket",
    )
    cache_input: bool = option(
        LOOKUP.caches,
        "Let Spark keep the rows between the lookup and the write. Otherwise the query of the rows runs twice.",
        "hoodie.bloom.index.use.caching",
        "hoodie.simple.index.use.caching",
    )
    update_partition_path: bool = option(
        LOOKUP.moves_rows,
        "Move a stored row to the partition of the incoming row. Otherwise the row is updated in its old partition. "
        "Only for GLOBAL_BLOOM and GLOBAL_SIMPLE.",
        "hoodie.bloom.index.update.partition.path",
        "hoodie.simple.index.update.partition.path",
    )
    unnoted_index_files: Count = option(
        LOOKUP.most_elsewhere,
        "For a table of another engine that records no index: how many files a write may open to look for its keys "
        "in other partitions. A write that would open more is refused and asks for the index.",
        "hoodie.pyhudi.unnoted.index.max.files",
    )
    index_cache_bytes: SizeOrNone = option(
        LOOKUP.cache_bytes,
        "Bytes of record keys, 16 for each key, that a process keeps between the batches of a stream, so that no "
        "lookup reads the same file again; 0 keeps none.",
        CACHE_BYTES,
    )
    filter_type: FilterType = option(
        BLOOM.dynamic.of(lambda kind: kind == DYNAMIC, default=DYNAMIC),
        "DYNAMIC_V0: a bloom filter grows with the keys of its file. SIMPLE: it has one size.",
        "hoodie.bloom.index.filter.type",
    )
    filter_entries: Count = option(
        BLOOM.entries, "How many keys a bloom filter is made for.", "hoodie.index.bloom.num_entries"
    )
    filter_false_positives: Share = option(
        BLOOM.false_positives,
        "False positives of a bloom filter: the share of absent keys that it takes for present.",
        "hoodie.index.bloom.fpp",
    )
    filter_most_entries: Count = option(
        BLOOM.most_entries,
        "Up to how many keys a growing bloom filter keeps its share of false positives.",
        "hoodie.bloom.index.filter.dynamic.max.entries",
    )
    small_file_limit: SizeOrNone = option(
        SIZES.small,
        "Base files with fewer bytes take in new keys, if the index looks keys up. With 0, new keys always open file "
        "groups.",
        "hoodie.parquet.small.file.limit",
    )
    max_file_size: Size = option(
        SIZES.largest,
        "Bytes up to which base files are filled, if the index looks keys up.",
        "hoodie.parquet.max.file.size",
    )
    record_size_estimate: Count = option(
        SIZES.record_bytes,
        "Bytes of a row in a base file, if no commit of the table shows them.",
        "hoodie.copyonwrite.record.size.estimate",
    )
    record_size_threshold: Annotated[float, Field(ge=0)] = option(
        SIZES.telling,
        "Only commits that wrote more than this multiple of the limit of small files count for the size of a row.",
        "hoodie.record.size.estimation.threshold",
    )
    small_file_candidates: Count = option(
        SIZES.most_rewritten,
        "How many small files of a partition take in new keys, if other rows go to log files.",
        "hoodie.merge.small.file.group.candidates.limit",
    )

    index_options: dict[str, str] = family(LOOKUP.own, secret=True)


def index_options(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the options of an index of another package, by the index's own names; ``texts`` has lower-case keys."""
    keys_of_index = (key for key in texts if key.startswith(INDEX_PREFIX) and key != CACHE_BYTES)
    return {key.removeprefix(INDEX_PREFIX): texts[key] for key in keys_of_index}
