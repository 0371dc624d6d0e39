"""What a write may choose about its index: how the index looks keys up, and where new keys are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class FileSizes:
    """Where new keys are written under an index that does not bind a key to a file group.

    Attributes:
        small: Base files of fewer bytes take new keys in; 0 for none (``hoodie.parquet.small.file.limit``).
        largest: Bytes up to which a base file is filled (``hoodie.parquet.max.file.size``).
        record_bytes: Assumed size of a row if no commit gives one (``hoodie.copyonwrite.record.size.estimate``).
        telling: A commit counts for the size of a row if it wrote more bytes than so many times `small`
            (``hoodie.record.size.estimation.threshold``).
        most_rewritten: How many small files of a partition take new keys in if the write appends to file groups
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
        prunes_by_ranges: Whether the least and greatest key of a file exclude it
            (``hoodie.bloom.index.prune.by.ranges``).
        keys_per_task: How many pairs of key and candidate file one task tests (``hoodie.bloom.index.keys.per.bucket``).
        caches: Whether Spark keeps the input between the lookup and the write (``hoodie.bloom.index.use.caching``,
            ``hoodie.simple.index.use.caching``).
        moves_rows: Whether a row whose partition changed moves there; else it is updated where it is. Of global indexes
            alone (``hoodie.bloom.index.update.partition.path``, ``hoodie.simple.index.update.partition.path``).
        unnoted: Whether the table says nothing of its index: keys that their own partition lacks are then looked for in
            the other partitions.
        most_elsewhere: How many files such a search opens, after footers have excluded the others
            (``hoodie.pyhudi.unnoted.index.max.files``).
        cache_bytes: Bytes of record keys, all tables together, that a process knows between batches of streams; 0 for
            none (``hoodie.pyhudi.index.cache.bytes``).
        sizes: Where new keys are written.
        own: Options of another package's index, by its own names, in lower case; never shown, because they may hold
            secrets (``hoodie.pyhudi.index.*``).
    """

    prunes_by_ranges: bool = True
    keys_per_task: int = 10_000_000
    caches: bool = True
    moves_rows: bool = True
    unnoted: bool = False
    most_elsewhere: int = 200
    cache_bytes: int = 512 * MIB
    sizes: FileSizes = field(default_factory=FileSizes)
    own: Mapping[str, str] = field(default_factory=dict, repr=False)
