"""The base of the parts of `HudiTable`: session, path and options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import PyHudiError
from ...operations.html_text import html_table, in_html
from ...options.catalogue import Scope
from ...options.parsing import texts_of
from ...options.sources import READING, ResolvedOptions, find_config, resolve_options
from ...storage import open_storage
from ...table.config import TableConfig
from ..source.paths import AnyPath, absolute_for
from .other_keywords import TABLE_KEYWORDS
from .other_names import TABLE_CALLS, NamesOtherCalls

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class TableBase(NamesOtherCalls):
    _other_calls = TABLE_CALLS
    _other_keywords = TABLE_KEYWORDS
    _takes_session = True

    def __init__(self, spark: SparkSession, path: AnyPath, options: Mapping[str, Any] | None = None) -> None:
        self._spark = spark
        self._path = absolute_for(spark, path)
        self._options = dict(options or {})
        self._storage = open_storage(self._path, self.storage_options)
        # By name of each view that follows the table: its columns, None for all, and the DataFrame that it shows now.
        self._following: dict[str, tuple[Sequence[str] | None, DataFrame]] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._path!r}: {self._state()})"

    def _repr_html_(self) -> str:
        try:
            config = find_config(self._storage)
            facts = {} if config is None else _facts(config)
        except PyHudiError as error:
            facts = {"error": str(error)}
        return f"<p>{in_html(repr(self))}</p>{html_table((), facts.items())}"

    def _state(self) -> str:
        try:
            config = find_config(self._storage)
        except PyHudiError as error:
            return error.code.lower().replace("_", " ")
        return "no table yet" if config is None else config.table_type

    @property
    def path(self) -> str:
        """The table's path."""
        return self._path

    @property
    def storage_options(self) -> Mapping[str, str]:
        """The options of the table's store: ``hoodie.pyhudi.storage.*`` without that prefix.

        Raises:
            OptionError: An option cannot be used.
        """
        return self._resolve({}, READING).options.storage_options

    def _changed(self) -> None: ...

    def _resolve(self, given: Mapping[str, Any], scopes: frozenset[Scope], *, warn: bool = False) -> ResolvedOptions:
        said = {**texts_of(self._options), **texts_of(given)}
        return resolve_options(said, self._path, scopes, session=self._spark, warn=warn)


def _facts(config: TableConfig) -> dict[str, str]:
    told = {
        "name": config.name,
        "type": config.table_type,
        "record key": ", ".join(config.record_key_fields) or "generated",
        "partitioned by": ", ".join(config.partition_fields),
        "ordered by": ", ".join(config.ordering_fields),
        "index": config.index_type,
        "buckets": config.bucket_count,
    }
    return {name: str(value) for name, value in told.items() if value}
