"""One base file: a Parquet file with the five meta columns in front and Hudi's key-values in its footer."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import CorruptFileError, StorageError, UnsupportedTableError
from ...storage.base import Storage
from ...storage.inputs import open_part
from ...timeline import formats
from ...version import VERSION
from ..schema.columns import FILE_NAME, PARTITION_PATH, RECORD_KEY, SEQUENCE_NUMBER, with_meta
from ..schema.conform import conform
from ..schema.types import UTC_MICROS
from .bloom_filter import BloomSettings, FileFilter, checksum
from .column_bounds import ColumnBounds
from .encodings import dictionary_columns, statistics_columns
from .file_group import BaseFile
from .footer_bounds import PartBounds, column_bounds, unstated
from .footers import leaves_of
from .names import PARQUET, RUN_AGAIN, met_at_file
from .old_days import OldMomentsError, has_old_days, with_days_of_now
from .output import Output

if TYPE_CHECKING:
    import pyarrow.parquet as pq

STAMP = b"pyhudi.version"
MIN_KEY = "hoodie_min_record_key"
MAX_KEY = "hoodie_max_record_key"
# The order in which the rows lie, in a file of a table that has one.
SORTED_BY = "pyhudi.sorted.by"
# Parquet has checksums of pages, but not of footers. A flipped bit in a range of keys would turn an update into an
# insert.
RANGE_CHECKSUM = "pyhudi.key.range.crc32"

# This entry tells Spark 3, and Apache Hudi on it, that days before 1582 are in the calendar of Spark 3.0 and later.
# Without the entry they refuse to read such days.
_PROLEPTIC = {"org.apache.spark.version": "4.0.0"}
_REPEATED = frozenset({"_hoodie_commit_time", PARTITION_PATH, FILE_NAME})
_UNIQUE = frozenset({SEQUENCE_NUMBER, RECORD_KEY})
# The errors of pyarrow on damaged bytes; it may also raise `MemoryError`.
_UNREADABLE = (
    pa.ArrowInvalid,
    pa.ArrowKeyError,
    pa.ArrowIndexError,
    pa.ArrowTypeError,
    pa.ArrowNotImplementedError,
    OSError,
    UnicodeDecodeError,
)
# Rows differ in their keys, so that no writer fits more into a byte. A forged footer could make a read endless.
_MOST_ROWS_A_BYTE = 1000
# The type in which Spark and Flink may store times. It says nothing of a zone.
_INT96 = "INT96"
_DICTIONARY = pa.dictionary(pa.int32(), pa.string())
# By how much batches shrink that Parquet C++ cannot read whole.
_FEWER_ROWS = 16
# How much Parquet's own reader fetches first, and the struct that ends a file.
_FOOTER_AHEAD = 64 << 10
_FOOTER_END = struct.Struct("<i4s")
_PARQUET_MAGIC = b"PAR1"
_ENCRYPTED_FOOTER = b"PARE"
# Bytes behind the plain footer of a file with encrypted columns: a nonce and a tag.
_SIGNATURE = 12 + 16
# Encoded bytes of one value, at most, for a string column to count as dictionary-encoded throughout.
_FEW_BYTES = 2.5


def file_schema(schema: pa.Schema, dictionaries: frozenset[str] = frozenset()) -> pa.Schema:
    """Return the Arrow schema of a base file: the meta columns that repeat and ``dictionaries`` are dictionaries."""
    return with_dictionaries(with_meta(schema), _REPEATED | dictionaries)


def with_dictionaries(schema: pa.Schema, names: frozenset[str]) -> pa.Schema:
    """Return a schema in which the string columns ``names`` are dictionary-encoded."""
    return pa.schema([field.with_type(_DICTIONARY) if field.name in names else field for field in schema])


def constant(value: str, length: int) -> pa.DictionaryArray:
    """Return a string column that holds ``value`` in every row, at the price of one index a row."""
    indices = pa.Array.from_buffers(pa.int32(), length, [None, pa.py_buffer(bytes(4 * length))])
    return pa.DictionaryArray.from_arrays(indices, pa.array([value], pa.string()))


class BaseFileWriter:
    """Writes a base file.

    ``previous`` is the open base file whose rows are kept: its bloom filter may be extended. ``sorted_by`` names the
    columns by which conditions choose row groups. ``stamped`` says that the footer gets pyhudi's version, by which
    later writes trust its keys to be in the right bucket; ``notes`` are further entries of the footer. Without
    ``bloom`` the file gets no bloom filter.
    """

    def __init__(
        self,
        stream: Any,
        schema: pa.Schema,
        avro_schema: str,
        output: Output,
        *,
        bloom: BloomSettings | None = None,
        previous: BaseFileReader | None = None,
        stamped: bool = True,
        notes: Mapping[str, str] | None = None,
        sorted_by: Collection[str] = (),
    ) -> None:
        self._stream = stream
        self._sorted_by = sorted_by
        self._notes = {**({STAMP.decode(): VERSION} if stamped else {}), **(notes or {})}
        self._output = output
        self._parquet: pq.ParquetWriter | None = None
        self._schema = schema
        self._avro_schema = avro_schema
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._least: str | None = None
        self._greatest: str | None = None
        self._flushed_bytes = 0
        self._bounded: frozenset[str] = frozenset()
        self._own_bounds: list[PartBounds] = []
        self._filter: FileFilter | None = None
        if bloom is not None:
            footer = {} if previous is None else previous.parquet.metadata.metadata or {}
            self._filter = FileFilter(bloom, footer, 0 if previous is None else previous.rows)
        self.rows = 0

    def bound(self, columns: Collection[str]) -> None:
        """Write bounds of these columns whatever their type, as they hold no NaN; called before the first rows."""
        self._bounded = frozenset(columns)

    def expected(self, more: int) -> int:
        """Return the file's size after ``more`` Arrow bytes; it writes the first row group early to measure that."""
        if not self._flushed_bytes and self._waiting_bytes + more > self._output.row_group_bytes:
            self._flush()
        waiting = self._waiting_bytes + more
        if not self._flushed_bytes:
            return waiting
        written_bytes: int = self._stream.tell()
        return written_bytes + waiting * written_bytes // self._flushed_bytes

    def write(self, batch: pa.RecordBatch, *, from_previous: bool = False) -> None:
        """Add rows in the file's schema; ``from_previous`` says that they come from the previous file."""
        if batch.num_rows == 0:
            return
        span = pc.min_max(batch.column(RECORD_KEY))
        least, greatest = span["min"].as_py(), span["max"].as_py()  # one value a batch
        self._least = least if self._least is None else min(self._least, least)
        self._greatest = greatest if self._greatest is None else max(self._greatest, greatest)
        if self._filter is not None:
            self._filter.add(batch.column(RECORD_KEY), from_previous=from_previous)
        self.rows += batch.num_rows
        self._waiting.append(batch)
        self._waiting_bytes += batch.nbytes
        if self._waiting_bytes >= self._output.row_group_bytes:
            self._flush()

    def end_row_group(self) -> None:
        self._flush()

    def close(self) -> None:
        """Write the waiting rows and the footer, with the range of keys and the bloom filter; the stream stays open."""
        if self._parquet is None:
            # All rows still wait, so that they can be searched for NaN.
            self._bounded |= _without_nan(self._waiting)
        self._flush()
        parquet = self._parquet or self._open(self._schema.empty_table())
        number = {formats.KEY: str(formats.FOOTER_KEYS)}
        footer = {"parquet.avro.schema": self._avro_schema, **number, **self._notes, **_PROLEPTIC}
        if self._least is not None and self._greatest is not None:
            footer |= {MIN_KEY: self._least, MAX_KEY: self._greatest}
            footer[RANGE_CHECKSUM] = checksum(self._least.encode(), self._greatest.encode()).decode()
        if self._filter is not None:
            footer |= self._filter.footer()
        parquet.add_key_value_metadata(footer)
        parquet.close()

    def statistics(self) -> tuple[ColumnBounds, ...] | None:
        """Return the bounds of the columns that the output names, of the closed file; None if it names none."""
        columns = self._output.statistics
        if not columns or self._parquet is None:
            return None
        # A reader finds nulls alone in a column that the file lacks.
        absent = (name for name in columns if name not in self._schema.names)
        bounds_of_absent = [ColumnBounds(name, None, None, self.rows) for name in absent]
        footer = self._parquet.writer.metadata
        return (*column_bounds(footer, columns, self._own_bounds, self._schema), *bounds_of_absent)

    def abandon(self) -> None:
        """Drop the waiting rows, and free Parquet's writer of a file that will not be used."""
        self._waiting = []
        if self._parquet is not None and self._parquet.is_open:
            with suppress(Exception):
                self._parquet.close()

    def _flush(self) -> None:
        """Write the waiting rows as one row group."""
        if self._waiting:
            # A dictionary that changes within a row group would make Parquet give up dictionary encoding there.
            table = pa.Table.from_batches(self._waiting, self._schema).unify_dictionaries()
            parquet = self._parquet or self._open(table)
            parquet.write_table(table, row_group_size=table.num_rows)
            # Parquet's footer may lack these bounds, and the rows are in memory only now.
            self._own_bounds.append(unstated(table, self._output.statistics))
            self._flushed_bytes += self._waiting_bytes
        self._waiting, self._waiting_bytes = [], 0

    def _open(self, rows: pa.Table) -> pq.ParquetWriter:
        """Make Parquet's writer; the first row group's rows decide which columns are dictionary-encoded."""
        import pyarrow.parquet as pq  # noqa: PLC0415 (planning a write opens no file)

        self._parquet = pq.ParquetWriter(
            self._stream,
            self._schema,
            compression=self._output.compression,
            store_schema=False,
            use_dictionary=dictionary_columns(rows.drop_columns(sorted(_UNIQUE)), self._sorted_by),
            write_statistics=statistics_columns(self._schema, self._bounded),
            write_page_checksum=True,
        )
        return self._parquet


def _without_nan(rows: Iterable[pa.RecordBatch]) -> frozenset[str]:
    """Return the columns of floating-point numbers that have no NaN in any of the file's rows.

    Apache Hudi takes a column without bounds for one of nulls, and would leave out the file's rows.
    """
    batches = list(rows)
    names = [field.name for field in batches[0].schema if pa.types.is_floating(field.type)] if batches else []
    return frozenset([name for name in names if not any(_has_nan(batch.column(name)) for batch in batches)])


def _has_nan(values: pa.Array) -> bool:
    return bool(pc.any(pc.is_nan(values)).as_py())  # one value a batch


class BaseFileReader:
    """Reads a base file of any writer in batches of a table's schema; `CorruptFileError` if it is damaged.

    Args:
        plain: Columns to read as plain strings even if the file has them dictionary-encoded; None to read all so.
        part: Offset and length of the Parquet bytes inside a log file; None for the whole file.
        shown: The name of what is read in messages; None for the base file of the path.
        check_footer: Called with the bytes from the Parquet footer on before pyarrow parses them.
        stated: The size that the commit metadata of the file's completed instant states; 0 if it states none.
    """

    def __init__(
        self,
        storage: Storage,
        path: str,
        *,
        plain: Collection[str] | None = None,
        part: tuple[int, int] | None = None,
        shown: str | None = None,
        check_footer: Callable[[bytes], None] | None = None,
        stated: int = 0,
    ) -> None:
        self._shown = shown or f"the base file {path}"
        self._table = storage.path
        try:
            self._input = storage.open_input(path)
            _check_size(storage, path, self._input.size(), stated)
            if part is not None:
                self._input = open_part(self._input, *part)
            # Over a network, fetch neighbouring column chunks in one request.
            self._remote = storage.remote
            self.parquet = self._open(self._footer(check_footer))
            # A forged number of rows could make a read endless.
            if self.rows > _MOST_ROWS_A_BYTE * self._input.size():
                raise pa.ArrowInvalid(f"its footer counts {self.rows} rows in {self._input.size()} bytes")
            self.dictionaries = frozenset() if plain is None else _dictionary_encoded(self.parquet) - frozenset(plain)
            if self.dictionaries:
                self.parquet = self._open(self.parquet.metadata, sorted(self.dictionaries))
        except FileNotFoundError as error:
            raise StorageError(
                f"{_capital(self._shown)} of the table {storage.path} was removed while it was needed.",
                RUN_AGAIN,
                met=met_at_file(path),
            ) from error
        except _UNREADABLE as error:
            raise self._corrupt(error) from error

    def _open(self, footer: pq.FileMetaData, dictionaries: Sequence[str] | None = None) -> pq.ParquetFile:
        """Return Parquet's reader of the file; columns among ``dictionaries`` are read as dictionaries."""
        import pyarrow.parquet as pq  # noqa: PLC0415 (planning a write opens no file)

        return pq.ParquetFile(
            self._input,
            metadata=footer,
            read_dictionary=dictionaries,
            pre_buffer=self._remote,
            # Nanoseconds, as Parquet C++ reads INT96, end in the year 2262.
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=True,
        )

    def _footer(self, check: Callable[[bytes], None] | None) -> pq.FileMetaData:
        """Return the footer, whose bytes ``check`` gets before pyarrow parses them.

        An encrypted file with a plain footer is refused, because it would crash pyarrow.
        """
        import pyarrow.parquet as pq  # noqa: PLC0415 (planning a write opens no file)

        size = self._input.size()
        tail = self._tail(min(size, _FOOTER_AHEAD))
        if len(tail) < _FOOTER_END.size:
            raise pa.ArrowInvalid(f"it has {size} bytes, which are too few for a Parquet footer")
        length, magic = _FOOTER_END.unpack_from(tail, len(tail) - _FOOTER_END.size)
        tail_bytes = length + _FOOTER_END.size
        if magic == _ENCRYPTED_FOOTER:
            raise self._encrypted()
        if magic != _PARQUET_MAGIC or not 0 <= length <= size - _FOOTER_END.size:
            raise pa.ArrowInvalid("it does not end as a Parquet file does")
        # A footer longer than the bytes that were fetched first takes a second request.
        tail = tail[-tail_bytes:] if tail_bytes <= len(tail) else self._tail(tail_bytes)
        if check is not None:
            check(tail)
        footer = pq.read_metadata(pa.BufferReader(tail))
        # Behind a plain footer, bytes of this number sign it, and writers sign only files with encrypted columns.
        if length - footer.serialized_size == _SIGNATURE:
            raise self._encrypted()
        return footer

    def _tail(self, count: int) -> bytes:
        """Return the last ``count`` bytes of the file."""
        self._input.seek(self._input.size() - count)
        return bytes(self._input.read(count))

    def __enter__(self) -> BaseFileReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def stamped(self) -> bool:
        """Whether pyhudi wrote the file, so that its keys are known to sit in the right bucket."""
        return STAMP in (self.parquet.metadata.metadata or {}) and self._format <= formats.FOOTER_KEYS

    def refuse_newer(self) -> None:
        """Raise `UnsupportedTableError` if the file's ``pyhudi.*`` keys have a format too new to rewrite."""
        what = f"{formats.KEY} in the footer of {self._shown}"
        formats.refuse_newer(self._table, what, self._format, formats.FOOTER_KEYS)

    @property
    def _format(self) -> int:
        number = (self.parquet.metadata.metadata or {}).get(formats.KEY.encode(), b"")
        return formats.number_of_keys({formats.KEY: number.decode(errors="replace")})

    @property
    def rows(self) -> int:
        return int(self.parquet.metadata.num_rows)

    @cached_property
    def stored_schema(self) -> pa.Schema:
        """The Arrow schema of the file as it is; pyarrow makes it anew from Parquet's each time."""
        return self.parquet.schema_arrow

    def columns(self, wanted: pa.Schema) -> pa.Schema:
        """Return the file's columns; times in INT96 are moments, unless ``wanted`` has local times in their place."""
        stored, moments = self.stored_schema, self._moments_in_int96(wanted)
        if not moments:
            return stored
        return pa.schema([field.with_type(UTC_MICROS) if field.name in moments else field for field in stored])

    def _moments_in_int96(self, wanted: pa.Schema) -> frozenset[str]:
        """Return the names of the columns of INT96 in whose place ``wanted`` has no local times."""
        local = {field.name for field in self.stored_schema if _is_local(field.type)}
        local -= {field.name for field in wanted if _is_local(field.type)}
        leaves = (self.parquet.schema.column(leaf) for leaf in leaves_of(self.parquet, local)) if local else ()
        return frozenset(leaf.path for leaf in leaves if leaf.physical_type == _INT96)

    def batches(
        self, schema: pa.Schema, *, batch_rows: int = 65_536, row_groups: Sequence[int] | None = None
    ) -> Generator[pa.RecordBatch]:
        """Yield the rows with exactly the columns of ``schema``; columns that the file lacks are null.

        ``row_groups`` are the numbers of the row groups to read, None for all. Columns among `dictionaries` come as the
        file has them, dictionary-encoded.
        """
        moments = self._moments_in_int96(schema)
        old_columns = self._old_columns(moments)
        present = set(self.stored_schema.names)
        columns = [name for name in schema.names if name in present]
        target = with_dictionaries(schema, self.dictionaries)
        plain_fields = pa.schema([field for field in schema if field.name not in self.dictionaries])
        groups = range(self.parquet.num_row_groups) if row_groups is None else row_groups
        try:
            for stored in self._iterate(groups, columns, batch_rows):
                batch = _with_zones(stored, moments) if moments else stored
                if old_columns:
                    batch = with_days_of_now(batch, old_columns)
                conformed = conform(batch, plain_fields, fill_missing=True)
                yield pa.RecordBatch.from_arrays(
                    [(batch if name in self.dictionaries else conformed).column(name) for name in schema.names],
                    schema=target,
                )
        except OldMomentsError as error:
            raise self._old_moments(error.column) from error
        except _UNREADABLE as error:
            raise self._corrupt(error) from error

    def _old_columns(self, moments_in_int96: frozenset[str]) -> frozenset[str]:
        """Return which columns hold days and moments in the calendar of old Spark."""
        days_are_old, int96_is_old = self._is_old
        names = self.stored_schema.names
        return frozenset(name for name in names if (int96_is_old if name in moments_in_int96 else days_are_old))

    @cached_property
    def _is_old(self) -> tuple[bool, bool]:
        """Whether the days and moments of the file, and those in INT96, are in the calendar of old Spark."""
        footer = self.parquet.metadata.metadata or {}
        return has_old_days(footer), has_old_days(footer, int96=True)

    def _old_moments(self, column: str) -> UnsupportedTableError:
        return UnsupportedTableError(
            f"{_capital(self._shown)} has timestamps before 1900 in column {column!r}, in the calendar of Spark before "
            "3.0, in which a timestamp's number depends on the time zone of its writer.",
            "Have Spark rewrite these rows by Apache Hudi, with spark.sql.parquet.datetimeRebaseModeInWrite=CORRECTED "
            "and spark.sql.parquet.int96RebaseModeInWrite=CORRECTED.",
        )

    def _corrupt(self, error: Exception) -> CorruptFileError:
        return CorruptFileError(
            f"{_capital(self._shown)} cannot be read ({type(error).__name__}: {error}).",
            "Restore the file from a backup, or roll back the instant in its name.",
        )

    def _encrypted(self) -> UnsupportedTableError:
        return UnsupportedTableError(
            f"{_capital(self._shown)} is encrypted, and pyhudi decrypts no files.",
            "Read and write the table with the writer that encrypted it.",
        )

    def _iterate(self, row_groups: Iterable[int], columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of row groups as the file has them; `pa.ArrowInvalid` if a group lacks rows."""
        column_names = frozenset(columns)
        is_nested = any(pa.types.is_nested(field.type) for field in self.stored_schema if field.name in column_names)
        for number in row_groups:
            missing_rows = self.parquet.metadata.row_group(number).num_rows
            for batch in self._iterate_one(number, columns, batch_rows, is_nested):
                missing_rows -= batch.num_rows
                yield batch
            if missing_rows:
                # Parquet C++ silently skips pages of an unknown kind.
                raise pa.ArrowInvalid(f"row group {number} lacks {missing_rows} of the rows that the footer counts")

    def _iterate_one(
        self, row_group: int, columns: Sequence[str], batch_rows: int, is_nested: bool
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one row group; texts in nested columns may take smaller batches than ``batch_rows``."""
        rows_yielded = 0
        while True:
            rows_to_skip = rows_yielded
            # Each row group gets its own reader. A reader keeps prefetched bytes until it ends, and a page whose header
            # counts too many values must not take them from the next row group.
            batches = self.parquet.iter_batches(
                batch_size=batch_rows, row_groups=[row_group], columns=columns, use_threads=False
            )
            try:
                for batch in batches:
                    new_rows = batch.slice(rows_to_skip)
                    rows_to_skip -= batch.num_rows - new_rows.num_rows
                    rows_yielded += new_rows.num_rows
                    if new_rows.num_rows:
                        yield new_rows
                return
            except pa.ArrowNotImplementedError:
                # Parquet C++ reads no more than 2 GiB of texts in a nested column at once.
                if not is_nested or batch_rows == 1:
                    raise
                batch_rows = max(batch_rows // _FEWER_ROWS, 1)

    def close(self) -> None:
        self.parquet.close(force=True)


def open_base(storage: Storage, file: BaseFile, *, plain: Collection[str] | None = None) -> BaseFileReader:
    """Open a base file of a file slice, and raise if it has another size than its completed instant states.

    ``plain`` are the columns to read as plain strings, not as dictionaries; None for all.
    """
    return BaseFileReader(storage, file.path, plain=plain, stated=file.stated)


def check_listed(storage: Storage, files: Iterable[BaseFile]) -> None:
    """Raise as `open_base` does, by the sizes in the listing, for files that another reader opens."""
    for file in files:
        _check_size(storage, file.path, file.size, file.stated)


def _check_size(storage: Storage, path: str, size: int, stated: int) -> None:
    """Raise CorruptFileError if a file has another size than its completed instant states; 0 states no size."""
    if stated and size != stated:
        instant_time = path.rpartition("_")[2].removesuffix(PARQUET)
        raise CorruptFileError(
            f"The base file {path} of the table {storage.path} has {size:,} bytes, and the completed instant "
            f"{instant_time}, which wrote it, states {stated:,}: it is cut off, or another file has taken its place.",
            "Restore the file as that instant wrote it, or roll back the instant in its name; HudiTable.validate() "
            "names every such file.",
        )


def _dictionary_encoded(parquet: pq.ParquetFile) -> frozenset[str]:
    """Return the flat string columns that are dictionary-encoded in every row group, judged by their size.

    Once a dictionary is full, a writer stores the other values plainly. Such a column chunk names a dictionary
    encoding, too, and only its bytes a value give it away.
    """
    names = {field.name for field in parquet.schema_arrow if pa.types.is_string(field.type)} - _UNIQUE
    metadata = parquet.metadata
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for position in range(group.num_columns):
            chunk = group.column(position)
            if chunk.path_in_schema in names and (
                ("RLE_DICTIONARY" not in chunk.encodings and "PLAIN_DICTIONARY" not in chunk.encodings)
                or chunk.total_uncompressed_size > _FEW_BYTES * chunk.num_values + 1024
            ):
                names.discard(chunk.path_in_schema)
    return frozenset(names)


def _with_zones(batch: pa.RecordBatch, moments: frozenset[str]) -> pa.RecordBatch:
    """Return a batch in which some columns of local times are moments."""
    for number, field in enumerate(batch.schema):
        if field.name in moments:
            values = batch.column(number).cast(UTC_MICROS)
            batch = batch.set_column(number, field.with_type(UTC_MICROS), values)
    return batch


def _is_local(kind: pa.DataType) -> bool:
    """Return whether values of a type are times without a zone."""
    return bool(pa.types.is_timestamp(kind) and kind.tz is None)


def _capital(text: str) -> str:
    """Return a text with its first letter in upper case."""
    return text[:1].upper() + text[1:]
