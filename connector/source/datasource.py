"""The data source ``pyhudi``: what ``spark.read.format`` and ``df.write.format`` find; thin, and quick to import."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import NullType, StructField, StructType

from ...errors import MissingOptionError, OptionConflictError, UnsupportedOptionError
from .paths import COUNTED, FORMAT, LOOKED_UP, ONLY_PATH, PINNED, WHERE, WHOLE, absolute

if TYPE_CHECKING:
    import pyarrow as pa

    from ...options.model import HudiOptions
    from ...timeline.watermark import Watermark


class PyHudiDataSource(DataSource):
    """Apache Hudi tables. The options are those of `pyhudi.options.model.HudiOptions`.

    Examples:
        >>> df.write.format("pyhudi").option("recordkey", "id").mode("append").save(path)  # doctest: +SKIP
        >>> spark.read.format("pyhudi").load(path)  # doctest: +SKIP
    """

    # The moment that `schema` saw. Spark pickles the source afterwards, so that every action on one DataFrame reads
    # the same file slices.
    _pinned: Watermark | None = None
    # The table's columns then, which it may take a large commit to tell.
    _columns: pa.Schema | None = None

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the table's columns, or those that the option ``columns`` names, and pin the moment of the read."""
        if ONLY_PATH in self.options:
            return StructType([StructField(self._path(), NullType())])
        from ...reader.snapshot import open_snapshot  # noqa: PLC0415 (Spark imports this module at each look-up)
        from ...table.schema.columns import without_meta  # noqa: PLC0415
        from .spark_types import select, to_spark  # noqa: PLC0415

        options, path = self._parsed(reading=True)
        pinned = self._given_pin()
        snapshot = open_snapshot(
            path, options.storage_options, pinned, options.to_query(), bases_alone=options.bases_alone
        )
        self._pinned = pinned or snapshot.timeline.watermark()
        self._columns = snapshot.schema
        if options.columns is not None:
            return to_spark(select(snapshot.schema, options.columns, path))
        return to_spark(snapshot.schema if options.meta else without_meta(snapshot.schema))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the columns of ``schema``, which is the user's own or what `schema` returned."""
        from ...reader.snapshot import open_snapshot  # noqa: PLC0415
        from .carried_options import parse_predicates  # noqa: PLC0415
        from .reader import kind_of_reader  # noqa: PLC0415
        from .spark_types import requested_schema  # noqa: PLC0415

        options, path = self._parsed(reading=True)
        asked = tuple(field.name for field in schema.fields)
        if options.columns is not None and options.columns != asked:
            raise OptionConflictError(
                f"The option columns names {', '.join(options.columns)}, and the schema given for reading {path} has "
                f"{', '.join(asked)}.",
                "Give only one of them.",
            )
        given = self._given_pin()
        snapshot = open_snapshot(
            path,
            options.storage_options,
            given or self._pinned,
            options.to_query(),
            bases_alone=options.bases_alone,
            schema=self._columns,
        )
        where = self._given(WHERE)
        return kind_of_reader(options)(
            snapshot,
            requested_schema(snapshot.schema, schema, path),
            options,
            () if where is None else parse_predicates(where, snapshot.schema),
            merged_alone=given is not None and self._given(WHOLE) is None,
        )

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return a writer; nothing is written before the first task has rows."""
        from .writer import HudiWriter  # noqa: PLC0415

        options, path = self._parsed(reading=False)
        known = (self._given(LOOKED_UP), self._given(COUNTED))
        return HudiWriter.planned(path, options, schema, overwrite=overwrite, known=known)

    # Spark asks for these two when the query runs; a source is told nothing sooner by which it could know a stream.

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Refuse."""
        raise _no_streams("readStream", "spark.read with an incremental query")

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Refuse."""
        raise _no_streams("writeStream", "df.write in foreachBatch")

    def _parsed(self, *, reading: bool) -> tuple[HudiOptions, str]:
        from ...options.secrets import tell_what_spark_shows  # noqa: PLC0415
        from ...options.sources import READING, WRITING, resolve_options  # noqa: PLC0415

        path = self._path()
        tell_what_spark_shows(self.options)
        told = {PINNED, WHOLE, WHERE, LOOKED_UP, COUNTED}
        said = {name: value for name, value in self.options.items() if name.lower() not in told}
        return resolve_options(said, path, READING if reading else WRITING).options, path

    def _given_pin(self) -> Watermark | None:
        """Return the moment that `HudiTable.to_df` gave, None where somebody else reads."""
        text = self._given(PINNED)
        if text is None:
            return None
        from ...timeline.watermark import Watermark  # noqa: PLC0415
        from .carried_options import parse_carried  # noqa: PLC0415

        return parse_carried(Watermark, PINNED, text)

    def _given(self, option: str) -> str | None:
        """Return what `HudiTable` gave as an option that is none of a user's."""
        return next((value for name, value in self.options.items() if name.lower() == option), None)

    def _path(self) -> str:
        from ...options.parsing import path_of  # noqa: PLC0415

        if "paths" in self.options:
            raise UnsupportedOptionError(
                f"Several paths were given, {self.options['paths']}, and a read shows one table.",
                "Load each table by itself and unite them.",
            )
        path = path_of(self.options)
        if not path:
            raise MissingOptionError(
                "No path is given, so that nobody knows where the table is; Spark tells a Python data source none when "
                "a table of its catalog is used.",
                "Give one to load() or save(), or to CREATE TEMPORARY VIEW … USING pyhudi OPTIONS (path '…').",
            )
        return absolute(path)


def _no_streams(what: str, instead: str) -> UnsupportedOptionError:
    return UnsupportedOptionError(f"Streams are not done by pyhudi yet: {what} was asked for.", f"Use {instead}.")
