"""How an index that looks keys up goes about it, and where new keys go: what a write may choose each time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class FileSizes:
    """Where new keys go under an index that lets them go anywhere.

    Attributes:
        small: Base files of fewer bytes take new keys in; 0 for none (``hoodie.parquet.small.file.limit``).
        largest: Bytes that a base file is filled up to (``hoodie.parquet.max.file.size``).
        record_bytes: Assumed size of a row where no commit tells (``hoodie.copyonwrite.record.size.estimate``).
        telling: Commits tell the size of a row that wrote more bytes than so many times `small`
            (``hoodie.record.size.estimation.threshold``).
        most_rewritten: How many small files of a partition take new keys in where rows are appended otherwise
            (``hoodie.merge.small.file.group.candidates.limit``).
    """

    small: int = 100 * MIB
    largest: int = 120 * MIB
    record_bytes: int = 1024
    telling: float = 1.0
    most_rewritten: int = 1


@dataclass(frozen=True, slots=True)
class LookupSettings:
    """How keys are looked up.

    Attributes:
        prunes_by_ranges: Whether files are left out by their least and greatest key
            (``hoodie.bloom.index.prune.by.ranges``).
        keys_per_task: How many pairs of key and candidate file one task tests (``hoodie.bloom.index.keys.per.bucket``).
        caches: Whether Spark keeps the input between the lookup and the write (``hoodie.bloom.index.use.caching``,
            ``hoodie.simple.index.use.caching``).
        moves_rows: Whether a row whose partition changed moves there; else it is updated where it is. Of global
            indexes alone (``hoodie.bloom.index.update.partition.path``, ``hoodie.simple.index.update.partition.path``).
        sizes: Where new keys go.
        own: Options of an index that another package offers, by its own names, lower-case; not shown, because secrets
            may be among them (``hoodie.pyhudi.index.*``).
    """

    prunes_by_ranges: bool = True
    keys_per_task: int = 10_000_000
    caches: bool = True
    moves_rows: bool = True
    sizes: FileSizes = field(default_factory=FileSizes)
    own: Mapping[str, str] = field(default_factory=dict, repr=False)
