"""Options of tables whose index looks keys up: how it goes about it, and where new keys go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, Field

from ...index.settings import BloomSettings, FileSizes, LookupSettings
from .types import Count, FilterType, Share, Size, SizeOrNone, option

INDEX_PREFIX = "hoodie.pyhudi.index."
DEFAULTS = LookupSettings()


class LookupOptions(BaseModel):
    """How one write finds keys, and where it puts new ones; a bucket index asks none of it."""

    prune_by_ranges: bool = option(
        DEFAULTS.prunes_by_ranges,
        "Whether files are left out by their least and greatest key before their bloom filters are asked.",
        "hoodie.bloom.index.prune.by.ranges",
    )
    lookup_keys_per_task: Count = option(
        DEFAULTS.keys_per_task,
        "How many pairs of a key and a file that may hold it one of Spark's tasks tests.",
        "hoodie.bloom.index.keys.per.bucket",
    )
    cache_input: bool = option(
        DEFAULTS.caches,
        "Whether Spark keeps the rows between the lookup and the write; else their query runs twice.",
        "hoodie.bloom.index.use.caching",
        "hoodie.simple.index.use.caching",
    )
    update_partition_path: bool = option(
        DEFAULTS.moves_rows,
        "Whether a row that comes with another partition than the table has it in moves there; else it is updated "
        "where it is. Of GLOBAL_BLOOM and GLOBAL_SIMPLE alone.",
        "hoodie.bloom.index.update.partition.path",
        "hoodie.simple.index.update.partition.path",
    )
    filter_type: FilterType = option(
        "DYNAMIC_V0" if DEFAULTS.bloom.dynamic else "SIMPLE",
        "Whether a bloom filter grows with its file's keys or has one size.",
        "hoodie.bloom.index.filter.type",
    )
    filter_entries: Count = option(
        DEFAULTS.bloom.entries, "How many keys a bloom filter is made for.", "hoodie.index.bloom.num_entries"
    )
    filter_false_positives: Share = option(
        DEFAULTS.bloom.false_positives,
        "Share of the keys that a file lacks which its bloom filter takes for there.",
        "hoodie.index.bloom.fpp",
    )
    filter_most_entries: Count = option(
        DEFAULTS.bloom.most_entries,
        "For how many keys a bloom filter that grows keeps that share.",
        "hoodie.bloom.index.filter.dynamic.max.entries",
    )
    small_file_limit: SizeOrNone = option(
        DEFAULTS.sizes.small,
        "Base files of fewer bytes take new keys in, where the index looks keys up; with 0 new keys always open file "
        "groups.",
        "hoodie.parquet.small.file.limit",
    )
    max_file_size: Size = option(
        DEFAULTS.sizes.largest,
        "Bytes that base files are filled up to, where the index looks keys up.",
        "hoodie.parquet.max.file.size",
    )
    record_size_estimate: Count = option(
        DEFAULTS.sizes.record_bytes,
        "Bytes that a row takes in a base file, where no commit of the table tells.",
        "hoodie.copyonwrite.record.size.estimate",
    )
    record_size_threshold: Annotated[float, Field(ge=0)] = option(
        DEFAULTS.sizes.telling,
        "Commits tell the size of a row that wrote more than so many times the limit of small files.",
        "hoodie.record.size.estimation.threshold",
    )
    small_file_candidates: Count = option(
        DEFAULTS.sizes.most_rewritten,
        "How many small files of a partition take new keys in where other rows go to log files.",
        "hoodie.merge.small.file.group.candidates.limit",
    )

    # Filled from a family of keys, not from a key of its own; it may hold secrets.
    index_options: dict[str, str] = Field(default_factory=dict, repr=False)

    def lookup_settings(self) -> LookupSettings:
        """Return how keys are to be looked up."""
        return LookupSettings(
            prunes_by_ranges=self.prune_by_ranges,
            keys_per_task=self.lookup_keys_per_task,
            caches=self.cache_input,
            moves_rows=self.update_partition_path,
            bloom=BloomSettings(
                entries=self.filter_entries,
                false_positives=self.filter_false_positives,
                dynamic=self.filter_type == "DYNAMIC_V0",
                most_entries=self.filter_most_entries,
            ),
            sizes=FileSizes(
                small=self.small_file_limit,
                largest=self.max_file_size,
                record_bytes=self.record_size_estimate,
                telling=self.record_size_threshold,
                most_rewritten=self.small_file_candidates,
            ),
            own=dict(self.index_options),
        )


def index_options(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the options of an index that another package offers, by the index's own names.

    Args:
        texts: Options by lower-case key.
    """
    return {key.removeprefix(INDEX_PREFIX): text for key, text in texts.items() if key.startswith(INDEX_PREFIX)}
